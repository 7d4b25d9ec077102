"""Keys: a submit that was made before is found again, and another one is told apart."""

import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Bench
from headway.core.model import Lock
from headway.jobs.digest import digest
from headway.jobs.request import Request
from headway.jobs.specification import parse_lock, specify

ENVIRON = {"PATH": os.environ["PATH"]}

CHANGES: dict[str, Any] = {
    "argv": ("false",),
    "name": "other",
    "slug": "other",
    "labels": {"a": "c"},
    "priority": 1,
    "after": (9,),
    "locks": (Lock("other"),),
    "delay": 1,
    "timeout": 2_000_000,
    "idle_timeout": 3_000_000,
    "grace": 1_000_000,
    "retries": 1,
    "retry_base": 1,
    "retry_on": ("1",),
    "skip_exit_codes": (3,),
    "env": {"A": "2"},
    "cwd": "/tmp",
    "stdin": "/dev/null",
    "on_finish": ("true",),
}


def digest_of(request: Request, **context: Any) -> str:
    return digest(specify(request, **{"environ": ENVIRON, "working_directory": "/", **context}))


@pytest.mark.parametrize("changed", sorted(CHANGES))
def test_a_key_tells_every_other_specification_apart(changed: str) -> None:
    plain = Request(argv=("true",), key="k", check=False)
    assert digest_of(plain._replace(**{changed: CHANGES[changed]})) != digest_of(plain)


@given(
    st.sets(st.sampled_from(sorted(CHANGES))),
    st.dictionaries(st.text("ABC", min_size=1, max_size=3), st.text(max_size=5), max_size=3),
    st.sampled_from(["/", "/tmp", "/usr"]),
)
def test_a_key_ignores_who_asks_from_where_and_when(
    changed: set[str], environ: dict[str, str], here: str
) -> None:
    request = Request(argv=("true",), key="k", check=False)
    request = request._replace(**{name: CHANGES[name] for name in changed})
    one = digest_of(request)
    assert digest_of(request, environ=environ, working_directory=here) == one
    assert digest_of(request._replace(key="other")) == one


@given(st.lists(st.sampled_from(["a", "b:shared", "c"])), st.randoms())
def test_a_key_ignores_the_order_in_which_locks_and_labels_were_given(
    locks: list[str], random: Any
) -> None:
    def request() -> Request:
        random.shuffle(locks)
        labels = [("x", "1"), ("y", "2"), ("z", "3")]
        random.shuffle(labels)
        return Request(
            argv=("true",),
            locks=tuple(parse_lock(each) for each in locks),
            labels=dict(labels),
            check=False,
        )

    assert digest_of(request()) == digest_of(request())


def test_a_later_submit_from_elsewhere_finds_the_job_of_its_key(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = bench.submit("true", key="nightly", delay=60_000_000)
    bench.client.context.environ = {**bench.client.context.environ, "COLOUR": "blue"}
    monkeypatch.chdir("/tmp")
    again = bench.client.submit(Request(argv=("true",), key="nightly", delay=60_000_000))
    assert (again.job_id, again.created) == (first, False)
