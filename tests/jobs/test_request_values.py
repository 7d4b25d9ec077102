"""A request takes what the pages say, and names the field of a value that it cannot take."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from harness import Bench
from headway.base.errors import InvalidInputError, NotFoundError
from headway.core.model import Lock, LockMode, Rate
from headway.jobs.request import Request
from headway.jobs.request_values import _READERS, read_request

NOW = 1_700_000_000_000_000


def read(**given: Any) -> Request:
    return read_request(Request(**{"argv": ("true",)} | given), lambda: NOW)


TAKEN: list[tuple[str, Any, Any]] = [
    ("argv", ["make", "test"], ("make", "test")),
    ("argv", None, ()),
    ("timeout", "5m", 300_000_000),
    ("timeout", timedelta(seconds=5), 5_000_000),
    ("timeout", 600, 600),
    ("delay", "5s", 5_000_000),
    ("grace", "1s", 1_000_000),
    ("retry_base", "1m", 60_000_000),
    ("retry_cap", "1h", 3_600_000_000),
    ("at", NOW + 1, NOW + 1),
    ("at", "2023-11-14T22:13:21Z", NOW + 1_000_000),
    ("at", datetime.fromtimestamp(1_700_000_060, UTC), NOW + 60_000_000),
    ("locks", ["db:shared", Lock("web")], (Lock("db", LockMode.SHARED), Lock("web"))),
    ("rates", ["api"], (Rate("api"),)),
    ("after", ["build", 3], ("build", 3)),
    ("needs", ["file:app"], ("file:app",)),
    ("skip_exit_codes", [3], (3,)),
    ("on_finish", "echo 'all done'", ("echo", "all done")),
    ("on_finish", ["echo", "done"], ("echo", "done")),
    ("worktree", True, ""),
    ("pin_head", "main", "main"),
    ("group", 4, "4"),
]


@pytest.mark.parametrize(("field", "given", "counts"), TAKEN)
def test_what_a_program_gives_is_read(field: str, given: Any, counts: Any) -> None:
    assert getattr(read(**{field: given}), field) == counts


def test_a_time_from_now_is_a_delay() -> None:
    assert read(at="+10m")[8:10] == (600_000_000, None)


REFUSED: list[tuple[str, Any, str]] = [
    ("argv", "ls", "argv is 'ls'; give a list"),
    ("argv", ["sleep", 1], "argv[1] is 1, not a text"),
    ("after", "job-3", "after is 'job-3'; give a list"),
    ("after", [1.5], "after[0] is 1.5, not the id"),
    ("locks", "db", "locks is 'db'; give a list"),
    ("locks", Lock("db"), "give a list"),
    ("locks", [3], "locks[0] is 3, not a text"),
    ("timeout", 1.5, "timeout is 1.5, not a duration"),
    ("timeout", "5", "timeout '5' is not a duration"),
    ("timeout", True, "timeout is True, not a duration"),
    ("retries", "3", "retries is '3', not a whole number"),
    ("priority", 1.0, "priority is 1.0, not a whole number"),
    ("labels", ["a"], "labels is ['a']; give a dict of texts"),
    ("env", {"A": 1}, "env['A'] is 1, not a text"),
    ("at", 1.5, "at is 1.5, not a time"),
    ("check", "no", "check is 'no', not True or False"),
    ("name", 7, "name is 7, not a text"),
    ("input", "text", "input is 'text', not bytes"),
]


@pytest.mark.parametrize(("field", "given", "words"), REFUSED)
def test_a_wrong_type_is_refused_with_the_name_of_its_field(
    field: str, given: Any, words: str, bench: Bench
) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(words)):
        bench.client.jobs.submit(Request(**{"argv": ("true",)} | {field: given}))


def test_every_field_of_a_request_is_read() -> None:
    assert {*_READERS, "at"} == {*Request._fields}


def test_a_request_that_needs_no_reading_stays_the_same() -> None:
    request = Request(argv=("true",), locks=(Lock("db"),), timeout=5)
    assert read_request(request, lambda: NOW) is request


def test_something_else_is_no_request(bench: Bench) -> None:
    with pytest.raises(InvalidInputError, match="'make' is not a request"):
        bench.client.jobs.submit("make")  # type: ignore[arg-type]


def test_a_job_is_named_by_its_id_as_a_text_or_by_its_slug(bench: Bench) -> None:
    jobs = bench.client.jobs
    job = jobs.submit(Request(argv=("true",), slug="build")).job_id
    assert jobs.get(f"job-{job}") == jobs.get("build") == jobs.get(str(job)) == jobs.get(job)
    assert jobs.why("build") == jobs.why(job)
    for wrong in (1.5, None, True):
        with pytest.raises(InvalidInputError, match="is not a job; give its id"):
            jobs.get(wrong)  # type: ignore[arg-type]
    with pytest.raises(NotFoundError):
        jobs.get("nothing")
    assert [each.job_id for each in jobs.cancel("build")] == [job]
