"""Templates: stored specifications with defaults. Jobs have copies, so nothing reaches them."""

from pathlib import Path
from typing import Any

import pytest

from harness import Bench
from headway.base.errors import ConflictError, InvalidInputError, NotFoundError
from headway.core.model import Job, Lock, LockMode, Rate
from headway.core.states import Status
from headway.jobs.graph_file import FORMS
from headway.jobs.request import Request
from headway.jobs.templates import (
    FILLED,
    OF_ONE_JOB,
    add_template,
    archive_template,
    submit_template,
)
from headway.store.records import Template

SECOND = 1_000_000


def made(bench: Bench, name: str, /, **asked: Any) -> Job:
    return bench.job(submit_template(bench.client.context, name, **asked).job_id)


def test_the_words_of_a_template_are_those_of_a_graph_file() -> None:
    assert FORMS.keys() >= OF_ONE_JOB
    assert set(FILLED) <= FORMS.keys() - {"shell"}, "a value must never be read by a shell"


@pytest.mark.req("D13")
def test_a_template_has_three_retries_of_ten_seconds_unless_it_says_otherwise(bench: Bench) -> None:
    add_template(bench.client.context, "plain", argv=["true"])
    retry = made(bench, "plain").retry
    assert (retry.max_attempts, retry.base) == (3, 10 * SECOND)
    add_template(bench.client.context, "never", argv=["true"], retries=0)
    assert made(bench, "never").retry.max_attempts == 0
    assert bench.job(bench.submit("true")).retry.max_attempts == 0, "nobody said it may be repeated"


def test_a_job_has_all_that_its_template_says(bench: Bench) -> None:
    add_template(
        bench.client.context,
        "whole",
        argv=["true"],
        name="the name",
        slug="slug",
        type="story",
        priority=7,
        labels={"a": "b"},
        locks=["repo:shared"],
        resources=["ollama"],
        rates=["claude=10/min"],
        target="east",
        timeout="5m",
        retries=2,
        retry_base="1s",
        retry_cap="3s",
        retry_jitter=0.5,
        retry_on=["75", "signal"],
        env={"X": "1"},
        skip_exit_codes=[9],
        require_approval=True,
    )
    job = made(bench, "whole")
    assert (job.name, job.slug, job.type, job.priority) == ("the name", "slug", "story", 7)
    assert job.labels == {"a": "b"} and job.locks == (Lock("repo", LockMode.SHARED),)
    assert (job.resources, job.target) == (("ollama",), "east")
    assert job.rates == (Rate("claude", 10, 60 * SECOND),)
    assert job.retry == (2, 1 * SECOND, 3 * SECOND, 0.5, ("75", "signal"))
    assert job.params["env"] == {"X": "1"} and job.params["timeout_seconds"] == 300
    assert job.params["skip_exit_codes"] == [9] and job.approval is not None
    assert job.template_id == "whole"
    assert bench.client.document(job.id)["template_id"] == "whole"


def test_what_is_given_takes_the_place_of_what_the_template_says(bench: Bench) -> None:
    add_template(
        bench.client.context,
        "base",
        argv=["true"],
        labels={"a": "1", "b": "1"},
        env={"X": "1", "Y": "1"},
        locks=["one"],
        delay="1h",
        priority=1,
    )
    before = bench.submit("true")
    job = made(
        bench,
        "base",
        argv=["false"],
        labels={"b": "2"},
        env={"Y": "2"},
        locks=["two"],
        at="2040-01-01T00:00:00Z",
        retries=1,
        after=[before],
        key="once",
    )
    assert job.params["argv"] == ["false"] and job.priority == 1
    assert job.labels == {"a": "1", "b": "2"} and job.params["env"] == {"X": "1", "Y": "2"}
    assert [lock.key for lock in job.locks] == ["two"] and job.retry.max_attempts == 1
    assert job.after == (before,) and job.not_before == 2_208_988_800 * SECOND
    again = submit_template(
        bench.client.context, "base", argv=["false"], labels={"b": "2"}, env={"Y": "2"},
        locks=["two"], at="2040-01-01T00:00:00Z", retries=1, after=[f"job-{before}"], key="once",
    )  # fmt: skip
    assert again == (job.id, False)
    shell = made(bench, "base", shell="exit 3")
    assert "argv" not in shell.params and shell.params["shell"] == "exit 3"


@pytest.mark.req("D5")
def test_changing_or_archiving_a_template_changes_no_job(bench: Bench) -> None:
    add_template(
        bench.client.context, "build", argv=["sh", "-c", "exit 1"], retries=1, retry_base="0s"
    )
    bench.client.pause("hold")
    job = made(bench, "build", labels={"a": "b"})
    add_template(bench.client.context, "build", replace=True, argv=["true"], retries=0, priority=9)
    assert bench.job(job.id) == job
    archive_template(bench.client.context, "build")
    assert bench.job(job.id) == job
    bench.client.resume()
    last = bench.until_ended(job.id)[0]
    assert last.params["argv"] == ["sh", "-c", "exit 1"], "a retry, too, is the same work"
    assert (last.attempt, last.template_id, last.priority) == (2, "build", 0)
    by_hand = bench.client.retry(job.id)
    assert by_hand.params == job.params, "what exists goes on, whatever became of its template"
    bench.until_ended(job.id)


@pytest.mark.req("D5")
def test_an_archived_template_makes_no_jobs_by_any_way(bench: Bench) -> None:
    add_template(bench.client.context, "old", argv=["true"])
    assert archive_template(bench.client.context, "old") and not archive_template(
        bench.client.context, "old"
    )
    with pytest.raises(ConflictError, match="'old' is archived and makes no jobs"):
        submit_template(bench.client.context, "old")
    with pytest.raises(ConflictError, match="archived"):  # archived after it was read
        bench.client.submit(Request(argv=("true",), template="old"))
    with pytest.raises(NotFoundError, match="there is no template 'none'"):
        bench.client.submit(Request(argv=("true",), template="none"))
    with pytest.raises(NotFoundError):
        archive_template(bench.client.context, "none")
    assert bench.client.listing() == []
    with pytest.raises(ConflictError, match="'old' is archived; --replace"):
        add_template(bench.client.context, "old", argv=["true"])
    add_template(bench.client.context, "old", argv=["true"], replace=True)
    assert made(bench, "old").template_id == "old"


def test_a_template_of_the_same_name_is_not_overwritten_by_accident(bench: Bench) -> None:
    add_template(bench.client.context, "build", argv=["true"])
    with pytest.raises(ConflictError, match="'build' is there already; --replace"):
        add_template(bench.client.context, "build", argv=["false"])
    assert made(bench, "build").params["argv"] == ["true"]


def test_parameters_are_filled_in_once_and_by_no_shell(bench: Bench) -> None:
    add_template(
        bench.client.context,
        "say",
        params={"what": None, "who": "world"},
        argv=["printf", "%s", "{what} {who} {{who}} {print} ${HOME}"],
        name="say {what}",
        locks=["person-{who}"],
        labels={"who": "{who}"},
    )
    hostile = "$(touch pwned) {who} ; `id` \n'"
    job = made(bench, "say", params={"what": hostile}, name="said")
    assert job.params["argv"][2] == f"{hostile} world {{world}} {{print}} ${{HOME}}"
    assert [lock.key for lock in job.locks] == ["person-world"]
    assert job.labels == {"who": "world"} and job.name == "said"
    bench.until_ended(job.id)
    output = Path(bench.home.job(job.id), "stdout.log").read_bytes()
    assert output == job.params["argv"][2].encode()
    assert not (bench.folder / "pwned").exists()


def test_a_parameter_never_stands_in_a_script_that_a_shell_would_run(bench: Bench) -> None:
    argv = ["nice", "bash", "-euc", "make '{what}'"]
    with pytest.raises(InvalidInputError, match=r"{what} stands in the script of bash -c"):
        add_template(bench.client.context, "build", argv=argv, params={"what": "all"})
    document = {"job": {"argv": argv, "retries": 0}, "params": {"what": "all"}}
    with bench.store.write() as tx:  # as an earlier version has let it in
        tx.templates.put(Template("old", document, tx.now(), "ada"))
    with pytest.raises(InvalidInputError, match=r"would run its value as code; give it as an"):
        submit_template(bench.client.context, "old", params={"what": "'; touch pwned; '"})
    assert bench.client.listing() == []
    right = ["sh", "-c", 'echo "$1" ${HOME:+{other}}', "sh", "{what}"]
    add_template(bench.client.context, "right", argv=right, params={"what": None})
    job = made(bench, "right", params={"what": "'; touch pwned; '"})
    assert job.params["argv"][2:] == [right[2], "sh", "'; touch pwned; '"]
    assert made(bench, "old", argv=["sh", "-c", "echo {what}"]), "a command of who submits"


def test_a_parameter_that_is_missing_or_unknown_is_refused_by_name(bench: Bench) -> None:
    add_template(
        bench.client.context, "say", params={"a": None, "b": None}, argv=["echo", "{a}{b}"]
    )
    with pytest.raises(InvalidInputError) as refused:
        submit_template(bench.client.context, "say", params={"a": "1", "c": "2"})
    assert str(refused.value) == (
        "template 'say' has no parameter 'c'; there are a, b; "
        "parameter 'b' of template 'say' has no value; give --param b=VALUE"
    )
    with pytest.raises(InvalidInputError, match="give a text"):
        submit_template(bench.client.context, "say", params={"a": 1, "b": "2"})  # type: ignore[dict-item]
    assert made(bench, "say", argv=["true"]).params["argv"] == ["true"], "nothing is left to fill"
    assert made(bench, "say", argv=["echo", "{a}"]).params["argv"] == ["echo", "{a}"]
    assert len(bench.client.listing()) == 2


def test_a_template_is_checked_as_a_whole_when_it_is_added(bench: Bench) -> None:
    with pytest.raises(InvalidInputError) as refused:
        add_template(
            bench.client.context,
            "bad",
            params={"1x": None, "unused": "y"},
            argv=["no-such-program"],
            slug="a b",
            timeout="0s",
            rates=["claude=often"],
            priority=10**9,
            key="once",
            subject="bug-1",
        )
    told = str(refused.value)
    for each in (
        "parameter '1x'",
        "parameter 'unused' is used nowhere",
        "program 'no-such-program' was not found",
        "slug 'a b'",
        "timeout must be longer",
        "'often' is not a rate",
        "priority 1000000000 is not between",
        "key is about one job",
        "subject is about one job",
    ):
        assert each in told
    assert len(refused.value.problems) == 9  # type: ignore[attr-defined]
    for wrong, said in (
        ({}, "give a command"),
        ({"argv": ["true"], "shell": "true"}, "not both"),
        ({"argv": "true"}, 'argv is "true"; give a list of texts'),
        ({"argv": ["true"], "retires": 1}, "did you mean 'retries'"),
        ({"shell": "echo {a}", "params": {"a": None}}, "a line for a shell takes none"),
        ({"argv": ["true"], "delay": "1s", "cwd": "none"}, "there is no directory"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            add_template(bench.client.context, "bad", **wrong)
    with pytest.raises(InvalidInputError, match="template 'a b' may have"):
        add_template(bench.client.context, "a b", argv=["true"])
    with bench.store.read() as tx:
        assert tx.templates.all() == []


def test_what_only_a_parameter_will_name_is_looked_for_when_it_is_known(bench: Bench) -> None:
    add_template(bench.client.context, "any", params={"program": None}, argv=["{program}"])
    with pytest.raises(InvalidInputError, match="program 'no-such' was not found"):
        submit_template(bench.client.context, "any", params={"program": "no-such"})
    job = made(bench, "any", params={"program": "true"})
    assert bench.until_ended(job.id)[0].status is Status.SUCCEEDED
    with pytest.raises(InvalidInputError, match="'nix' was not found"):
        add_template(bench.client.context, "default", params={"p": "nix"}, argv=["{p}"])


def test_what_happens_to_templates_is_recorded(bench: Bench) -> None:
    add_template(bench.client.context, "build", argv=["true"])
    add_template(bench.client.context, "build", argv=["true"], replace=True)
    archive_template(bench.client.context, "build")
    with bench.store.read() as tx:
        events = [each for each in tx.events.since(0, 100) if each.kind.startswith("template_")]
    assert [(each.kind, each.actor, dict(each.data)) for each in events] == [
        ("template_added", "tester", {"template": "build", "replaced": False}),
        ("template_added", "tester", {"template": "build", "replaced": True}),
        ("template_archived", "tester", {"template": "build"}),
    ]
