"""The job document: one schema, whole for every job, and no value of an environment in it."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Bench
from headway.core import settle
from headway.core.model import Claim, Job, Lock, LockMode, Run, Wait, WaitKind
from headway.core.states import API_STATUS, RUN_STATUS, Status
from headway.jobs.views.documents import job_document, shown_params
from headway.jobs.views.hosts import output_folder
from headway.store.records import Progress
from headway.supervise.logs import read_log

# The job document, as docs/ promise it.
DOCUMENT = """
id name slug type state status reason priority position params after needs produces locks
pinned_head preconditions approval wait waited_on group_id sequence_number template_id
schedule_id workflow subject target resources retry_of attempt max_attempts created_at
not_before started_at finished_at execution_root run
"""
RUN = """
run_id status exit_code signal error started_at finished_at duration_ms worker_id artifacts
params_snapshot stdout_path stderr_path
"""
ADDED = ["rates", "sling", "labels", "submitted_by", "cancel_requested_at", "worktree", "webhooks"]
RUN_ADDED = [
    "dropped_bytes",
    "usage",
    "patch",
    "not_produced",
    "late_outcome",
    "host",
    "result",
    "progress",
]
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def job(status: Status = Status.QUEUED, **changes: Any) -> Job:
    return Job(
        **{
            "id": 7,
            "name": "nightly",
            "type": "command",
            "status": status,
            "priority": 0,
            "position": 100,
            "params": {"argv": ["true"]},
            "created_at": 0,
            "chain": 7,
            **changes,
        }
    )


def test_the_keys_are_those_of_the_design(bench: Bench) -> None:
    waiting = bench.submit("true", delay=3_600_000_000)
    done = bench.submit("true")
    bench.until_ended(done)
    for each in (waiting, done):
        assert sorted(bench.client.document(each)) == sorted(DOCUMENT.split() + ADDED)
    assert bench.client.document(waiting)["run"] is None
    assert sorted(bench.client.document(done)["run"]) == sorted(RUN.split() + RUN_ADDED)


def test_the_copy_in_the_jobs_folder_is_the_same_document(bench: Bench) -> None:
    done = bench.submit("sh", "-c", "exit 3", labels={"a": "b"}, slug="x", locks=(Lock("repo"),))
    bench.until_ended(done)
    path = Path(bench.home.job(done), "job.json")
    assert json.loads(path.read_bytes()) == {"version": 1, "job": bench.client.document(done)}
    assert path.stat().st_mode & 0o777 == 0o400


def test_times_are_rfc_3339_in_utc_and_what_does_not_apply_is_null(bench: Bench) -> None:
    later = bench.submit("true", delay=3_600_000_000)
    done = bench.submit("true")
    bench.until_ended(done)
    document, waiting = bench.client.document(done), bench.client.document(later)
    for holder, names in (
        (document, ("created_at", "started_at", "finished_at")),
        (document["run"], ("started_at", "finished_at")),
        (waiting, ("created_at", "not_before")),
    ):
        for name in names:
            assert RFC_3339.fullmatch(holder[name]), (name, holder[name])
    assert document["created_at"] <= document["started_at"] <= document["finished_at"]
    assert document["not_before"] is None and document["cancel_requested_at"] is None
    assert waiting["started_at"] is None and waiting["finished_at"] is None
    for name in ("slug", "reason", "retry_of", "approval", "pinned_head", "workflow", "subject"):
        assert document[name] is None, name


def test_the_document_says_what_was_asked_for() -> None:
    document = job_document(
        job(
            after=(3, 4),
            locks=(Lock("a"), Lock("b", LockMode.SHARED)),
            labels={"k": "v"},
            retry_of=5,
            attempt=2,
            wait=Wait(WaitKind.LOCKS, "waiting for b", topics=("lock:b",), remedy="wait"),
            waited_on=("dependencies", "locks"),
            submitted_by="",
        )
    )
    assert document["id"] == "job-7" and document["retry_of"] == "job-5"
    assert document["after"] == ["job-3", "job-4"]
    assert document["locks"] == [
        {"key": "a", "mode": "exclusive"},
        {"key": "b", "mode": "shared"},
    ]
    assert document["wait"] == {"kind": "locks", "detail": "waiting for b"}
    assert document["waited_on"] == ["dependencies", "locks"]
    assert document["labels"] == {"k": "v"} and document["submitted_by"] is None
    json.dumps(document)


def test_a_wait_for_capacity_overrides_the_stored_one() -> None:
    stored = job(wait=Wait(WaitKind.TIME, "stored"))
    document = job_document(stored, wait=Wait(WaitKind.PAUSED, "now"))
    assert document["wait"] == {"kind": "paused", "detail": "now"}


@pytest.mark.parametrize(
    ("status", "projected"),
    [
        (Status.QUEUED, "QUEUED"),
        (Status.WAITING_ON_DEPS, "QUEUED"),
        (Status.WAITING_ON_APPROVAL, "QUEUED"),
        (Status.WAITING_ON_LOCKS, "QUEUED"),
        (Status.RUNNING, "RUNNING"),
        (Status.SUCCEEDED, "COMPLETED"),
        (Status.FAILED, "FAILED"),
        (Status.SKIPPED, "SKIPPED"),
        (Status.CANCELLED, "CANCELLED"),
        (Status.BLOCKED_BY_DEPENDENCY, "CANCELLED"),
        (Status.BLOCKED_BY_APPROVAL, "CANCELLED"),
    ],
)
def test_state_is_the_status_and_status_its_projection(status: Status, projected: str) -> None:
    document = job_document(job(status))
    assert (document["state"], document["status"]) == (status.value, projected)


def test_the_projection_covers_every_status() -> None:
    assert set(API_STATUS) == set(Status)
    assert RUN_STATUS[Status.CANCELLED] == "FAILED", "a run that was cancelled did not complete"


def test_names_but_never_values_of_variables_are_shown(bench: Bench) -> None:
    secret = "xyzzy-4711"
    done = bench.submit("true", env={"TOKEN": secret, "A": secret}, on_finish=("true",))
    bench.until_ended(done)
    document = bench.client.document(done)
    assert document["params"]["env"] == ["A", "TOKEN"]
    assert document["run"]["params_snapshot"]["env"] == ["A", "TOKEN"]
    everything = json.dumps(bench.client.listing(everything=True) + bench.client.jobs.chain(done))
    assert secret not in everything
    assert secret not in Path(bench.home.job(done), "job.json").read_text()
    assert secret not in str(bench.events(done))


@pytest.mark.parametrize(
    ("params", "shown"),
    [
        ({"argv": ["x"]}, {"argv": ["x"]}),
        ({"env": {}}, {"env": {}}),
        ({"env": {"B": "1", "A": "2"}, "cwd": "/"}, {"env": ["A", "B"], "cwd": "/"}),
    ],
)
def test_params_are_shown_as_they_are_but_for_values(
    params: dict[str, Any], shown: dict[str, Any]
) -> None:
    assert shown_params(params) == shown


@pytest.mark.parametrize("head", ["32MiB", "0"])
def test_a_silent_stream_has_an_empty_log(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, head: str
) -> None:
    monkeypatch.setattr(settle, "LAUNCH_DELAYS", (1, 1))
    bench = make_bench(settings={"logs.head": head})
    silent, half, unfound = (
        bench.submit("true"),
        bench.submit("sh", "-c", "echo out"),
        bench.submit("/nowhere/program", check=False),
    )
    bench.until_ended(silent, half, unfound)
    for job_id in (silent, half):
        run = bench.client.document(job_id)["run"]
        for path in (run["stdout_path"], run["stderr_path"]):
            assert os.stat(path).st_mode & 0o777 == 0o600
        assert Path(run["stderr_path"]).read_bytes() == b""
        kept = json.loads((Path(bench.home.job(job_id)) / "job.json").read_text())["job"]["run"]
        assert kept["stdout_path"] == run["stdout_path"]
    assert read_log(bench.home.job(silent), "stdout", 0, 9) == (b"", 0, 0)
    assert read_log(bench.home.job(half), "stdout", 0, 9) == (b"out\n", 4, 0)
    for name in ("stdout_path", "stderr_path"):
        path = (bench.client.document(unfound)["run"] or {}).get(name)
        assert path is None or os.path.exists(path)


def test_the_run_says_where_its_output_is_and_what_it_used(bench: Bench) -> None:
    done = bench.submit("sh", "-c", "echo out; echo err >&2; exit 4")
    bench.until_ended(done)
    document = bench.client.document(done)["run"]
    assert Path(document["stdout_path"]).read_text() == "out\n"
    assert Path(document["stderr_path"]).read_text() == "err\n"
    assert os.path.dirname(document["stdout_path"]) == bench.home.job(done)
    assert document["run_id"] == f"run-{done}" and document["worker_id"] == "worker-test"
    assert (document["status"], document["exit_code"], document["signal"]) == ("FAILED", 4, None)
    assert document["error"] == "exit code 4" and document["artifacts"] == []
    assert 0 <= document["duration_ms"] < 30_000
    assert set(document["usage"]) == {"user_seconds", "system_seconds", "max_rss_kb"}
    assert document["usage"]["max_rss_kb"] > 0
    assert document["dropped_bytes"] == 0 and document["late_outcome"] is None


def test_a_skipped_and_a_cancelled_run_say_so(bench: Bench) -> None:
    skipped = bench.submit("sh", "-c", "exit 75", skip_exit_codes=(75,))
    bench.until_ended(skipped)
    running = bench.submit("sh", "-c", "echo up; exec sleep 60")
    log = Path(bench.home.job(running), "stdout.log")
    bench.until(lambda: log.exists() and log.read_text())
    bench.client.cancel([running])
    bench.until_ended(running)
    one, other = bench.client.document(skipped), bench.client.document(running)
    assert (one["status"], one["run"]["status"]) == ("SKIPPED", "SKIPPED")
    assert (other["status"], other["run"]["status"]) == ("CANCELLED", "FAILED")
    assert other["run"]["exit_code"] == 143 and RFC_3339.fullmatch(other["cancel_requested_at"])


def test_the_output_of_a_function_is_in_its_jobs_folder_and_not_in_its_hosts(
    bench: Bench,
) -> None:
    claim = Claim(7, "t" * 32, 1, "w", "h", bench.home.path, "b", bench.home.job(7), 0)
    assert output_folder(claim) == bench.home.job(7)
    host = os.path.join(bench.home.hosts, "h" * 32)
    called = claim._replace(folder=host, function_host="h" * 32)
    assert output_folder(called) == bench.home.job(7)


def test_the_result_and_the_progress_of_a_function_are_in_its_run() -> None:
    run = Run(7, 0, "w", {})
    document = job_document(
        job(type="function"), run, result={"a": 1}, progress=Progress(7, 0.25, "reading")
    )
    assert document["run"]["result"] == {"a": 1}
    assert document["run"]["progress"] == {"fraction": 0.25, "text": "reading"}
