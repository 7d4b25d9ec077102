"""Artifacts between real jobs: who makes one, who waits for it, and what is said when it is not
there."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Bench
from headway.base.errors import ConflictError, InvalidInputError, NotFoundError
from headway.client import Client
from headway.core.states import Status
from headway.jobs.artifacts import list_artifacts, parse_data, publish, show_artifact
from headway.jobs.context import Context
from headway.jobs.request import Request


def waiting(bench: Bench, job: int) -> str:
    document = bench.client.document(job)
    assert document["state"] == "waiting_on_deps", document
    assert document["wait"]["kind"] == "dependencies"
    return str(document["wait"]["detail"])


def inside(bench: Bench, job: int, *, token: str | None = None) -> Client:
    """The client as a process of that running job has it."""
    with bench.store.read() as tx:
        claim = tx.claims.of_job(job)
    environ = {
        **bench.client.context.environ,
        "HEADWAY_HOME": bench.home.path,
        "HEADWAY_JOB_ID": f"job-{job}",
        "HEADWAY_CLAIM": token or (claim.token if claim else "0" * 32),
    }
    return Client(
        Context(
            bench.home, bench.config, bench.store, bench.clock, environ=environ, actor=f"job-{job}"
        )
    )


@pytest.mark.req("V54", "V56", "V75")
def test_what_a_producer_declared_is_there_when_it_has_succeeded(bench: Bench) -> None:
    producer = bench.submit("true", produces=("custom:report:june",))
    consumer = bench.submit("true", needs=("custom:report:june",), priority=1)
    bench.step()
    assert waiting(bench, consumer) == "waiting on custom:report:june"
    bench.until_ended(producer, consumer)
    assert bench.status(consumer) is Status.SUCCEEDED
    assert "published" in bench.kinds(producer)


@pytest.mark.req("V53")
def test_an_artifact_that_is_there_satisfies_whatever_became_of_its_producer(
    bench: Bench, tmp_path: Path
) -> None:
    made = tmp_path / "data.csv"
    made.touch()
    failed = bench.submit("false", produces=(f"file:{made}", "custom:report:june"))
    bench.until_ended(failed)
    consumer = bench.submit("true", needs=(f"file:{made}",))
    bench.until_ended(consumer)
    assert bench.status(consumer) is Status.SUCCEEDED


@pytest.mark.req("V57")
def test_nobody_produces_it(bench: Bench) -> None:
    consumer = bench.submit("true", needs=("custom:report:june",))
    bench.step()
    assert bench.status(consumer) is Status.BLOCKED_BY_DEPENDENCY
    assert bench.job(consumer).reason == "missing custom:report:june"


@pytest.mark.req("V57", "V56")
def test_under_the_policy_wait_a_producer_may_come_later(bench: Bench) -> None:
    bench.client.set_setting("scheduler.missing_producer", "wait")
    consumer = bench.submit("true", needs=("custom:report:june",))
    bench.step()
    assert waiting(bench, consumer) == "waiting on custom:report:june"
    producer = bench.submit("true", produces=("custom:report:june",), delay=3_600_000_000)
    with bench.store.read() as tx:
        assert [each.id for each in tx.waits.woken(10, bench.client.context.queues)] == [
            consumer,
            producer,
        ], "it heard of that"
    bench.client.cancel([producer])
    bench.step()
    assert bench.job(consumer).reason == "dependency failed for custom:report:june"


@pytest.mark.req("V58")
def test_a_producer_that_succeeded_without_making_it(bench: Bench, tmp_path: Path) -> None:
    missing = tmp_path / "never"
    producer = bench.submit("true", produces=(f"file:{missing}",))
    consumer = bench.submit("true", needs=(f"file:{missing}",))
    bench.until_ended(producer, consumer)
    assert bench.status(consumer) is Status.BLOCKED_BY_DEPENDENCY
    assert bench.job(consumer).reason == f"missing file:{missing}"


@pytest.mark.req("V54", "V56")
def test_what_was_made_since_the_last_look_is_seen_before_anyone_is_blocked(
    bench: Bench, tmp_path: Path
) -> None:
    """The file was looked for a moment ago and was not there; then its producer made it and ended.
    The old look must not decide."""
    made = tmp_path / "data.csv"
    for _ in range(3):
        producer = bench.submit("touch", str(made), produces=(f"file:{made}",))
        consumer = bench.submit("true", needs=(f"file:{made}",), priority=1)
        bench.step()
        bench.until_ended(producer, consumer)
        assert bench.job(consumer).reason is None
        assert bench.status(consumer) is Status.SUCCEEDED
        made.unlink()


@pytest.mark.req("V59")
@pytest.mark.parametrize("end", ["failed", "cancelled", "blocked"])
def test_all_producers_ended_without_success(bench: Bench, end: str) -> None:
    never = bench.submit("false", name="never")
    after = (never,) if end == "blocked" else ()
    command = "true" if end == "blocked" else "false"
    producer = bench.submit(command, produces=("custom:a:b",), after=after, priority=-1)
    other = bench.submit("false", produces=("custom:a:b",))
    consumer = bench.submit("true", needs=("custom:a:b",))
    bench.step()
    assert waiting(bench, consumer) == "waiting on custom:a:b"
    if end == "cancelled":
        bench.client.cancel([producer])
    bench.until_ended(never, producer, other, consumer)
    assert bench.status(consumer) is Status.BLOCKED_BY_DEPENDENCY
    assert bench.job(consumer).reason == "dependency failed for custom:a:b"


@pytest.mark.req("V56", "V58")
def test_one_producer_that_is_still_active_is_worth_waiting_for(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=5)
    failed = bench.submit("false", produces=("custom:a:b",))
    slow = bench.submit("sleep", "60", produces=("custom:a:b",))
    consumer = bench.submit("true", needs=("custom:a:b",))
    bench.until_ended(failed)
    assert waiting(bench, consumer) == "waiting on custom:a:b"
    bench.client.cancel([slow])
    bench.until_ended(consumer)
    assert bench.job(consumer).reason == "dependency failed for custom:a:b"


@pytest.mark.req("V56")
def test_a_failure_that_a_retry_will_repair_is_not_seen_by_the_consumer(
    bench: Bench, tmp_path: Path
) -> None:
    script = f"test -e {tmp_path}/second || {{ touch {tmp_path}/second; exit 1; }}"
    producer = bench.submit("sh", "-c", script, produces=("custom:a:b",), retries=1, retry_base=0)
    consumer = bench.submit("true", needs=("custom:a:b",))
    bench.until_ended(producer, consumer)
    assert bench.status(producer) is Status.FAILED
    assert bench.status(consumer) is Status.SUCCEEDED
    assert "blocked_by_dependency" not in bench.kinds(consumer)


@pytest.mark.req("V52")
def test_the_first_unmet_artifact_in_the_listed_order_decides(bench: Bench) -> None:
    slow = bench.submit("true", produces=("custom:x:slow",), delay=3_600_000_000)
    waits = bench.submit("true", needs=("custom:x:slow", "custom:x:nobody"))
    blocked = bench.submit("true", needs=("custom:x:nobody", "custom:x:slow"))
    bench.step()
    assert waiting(bench, waits) == "waiting on custom:x:slow"
    assert bench.job(blocked).reason == "missing custom:x:nobody"
    bench.client.cancel([slow])


@pytest.mark.req("V75", "V54")
def test_branches_documents_and_patches_are_looked_up_where_they_are(
    make_bench: Callable[..., Bench], tmp_path: Path
) -> None:
    repo = tmp_path / "repo"
    git(tmp_path, "init", "-q", "-b", "main", "repo")
    git(repo, "commit", "-q", "--allow-empty", "-m", "first")
    git(repo, "checkout", "-q", "-b", "draft/login")
    (repo / ".headway/plans").mkdir(parents=True)
    (repo / ".headway/plans/login.md").write_text("the plan")
    git(repo, "add", "-f", ".headway/plans/login.md")
    git(repo, "commit", "-q", "-m", "plan")
    bench = make_bench(max_active=20)
    job = bench.submit("true")
    bench.until_ended(job)
    present = ("plan_branch:login", "plan_doc:login", "plan_commits:login", "target_branch:main")
    needing = [bench.submit("true", needs=(each,), cwd=str(repo)) for each in present]
    needing.append(bench.submit("true", needs=(f"command_patch:job-{job}",)))
    absent = ("plan_branch:other", "plan_doc:other", "target_branch:dev", "merge_sentinel:login")
    missing = {each: bench.submit("true", needs=(each,), cwd=str(repo)) for each in absent}
    bench.until_ended(*needing, *missing.values())
    assert {bench.status(each) for each in needing} == {Status.SUCCEEDED}
    for text, each in missing.items():
        assert bench.job(each).reason == f"missing {text}"


def git(folder: Path, *arguments: str) -> None:
    config = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    environ = {"PATH": os.environ["PATH"], "HOME": "/", "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *config, *arguments], cwd=folder, env=environ, check=True)


# -- publishing ------------------------------------------------------------------------------


@pytest.mark.req("V55", "V54")
def test_a_running_job_publishes_with_a_payload_and_the_consumer_starts_at_once(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=5)
    producer = bench.submit("sleep", "60", produces=("custom:report:june",))
    consumer = bench.submit("true", needs=("custom:report:june",))
    bench.step()
    assert waiting(bench, consumer) == "waiting on custom:report:june"
    publish(inside(bench, producer).context, "report", "june", {"rows": 3})
    bench.until_ended(consumer)
    assert bench.status(consumer) is Status.SUCCEEDED, "its producer still runs"
    assert bench.status(producer) is Status.RUNNING
    told = show_artifact(bench.client.context, "custom:report:june", "/")
    assert (told["state"], told["data"]) == ("present", {"rows": 3})
    assert told["published_by"] == f"job-{producer}"
    assert [each["id"] for each in told["consumers"]] == [f"job-{consumer}"]
    assert [each["id"] for each in told["producers"]] == [f"job-{producer}"]


@pytest.mark.req("V55")
def test_published_again_it_carries_what_is_given_then(bench: Bench) -> None:
    job = bench.submit("sleep", "60", produces=("custom:a:b",))
    bench.step()
    client = inside(bench, job)
    for data in ({"n": 1}, [1, "zwei", None], None):
        publish(client.context, "a", "b", data)
        assert show_artifact(bench.client.context, "custom:a:b", "/")["data"] == data
    assert bench.kinds(job).count("published") == 3


@pytest.mark.req("V55")
def test_success_keeps_what_the_job_gave_itself(bench: Bench, tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    job = bench.submit("cat", str(go), produces=("custom:a:b",))
    bench.step()
    publish(inside(bench, job).context, "a", "b", {"n": 1})
    go.write_text("")
    bench.until_ended(job)
    assert show_artifact(bench.client.context, "custom:a:b", "/")["data"] == {"n": 1}
    assert bench.kinds(job).count("published") == 1


def test_a_claim_that_is_over_publishes_nothing(bench: Bench) -> None:
    job = bench.submit("true")
    bench.step()
    while_running = inside(bench, job)
    bench.until_ended(job)
    waits = bench.submit("true", require_approval=True)
    for client in (while_running, inside(bench, waits), inside(bench, 99)):
        with pytest.raises(ConflictError, match="no longer runs under this claim"):
            publish(client.context, "a", "b")
    other = bench.submit("sleep", "60")
    bench.step()
    with pytest.raises(ConflictError, match="custom:a:b was not published"):
        publish(inside(bench, other, token="f" * 32).context, "a", "b")
    with pytest.raises(NotFoundError):
        show_artifact(bench.client.context, "custom:a:b", "/")


def test_only_a_job_of_this_home_publishes(bench: Bench) -> None:
    with pytest.raises(InvalidInputError, match="only a running command publishes"):
        publish(bench.client.context, "a", "b")
    job = bench.submit("sleep", "60")
    bench.step()
    client = inside(bench, job)
    client.context.environ = {**client.context.environ, "HEADWAY_HOME": "/elsewhere"}
    with pytest.raises(InvalidInputError, match="belongs to /elsewhere"):
        publish(client.context, "a", "b")
    with pytest.raises(InvalidInputError, match="custom:TYPE:KEY"):
        publish(inside(bench, job).context, "a b", "c")


def test_a_withdrawn_artifact_counts_again_once_its_chain_publishes_it(
    make_bench: Callable[..., Bench],
) -> None:
    bench = make_bench(max_active=5)
    job = bench.submit("sleep", "60", produces=("custom:a:b",))
    bench.step()
    publish(inside(bench, job).context, "a", "b", 1)
    with bench.store.write() as tx:
        assert tx.graph.withdraw([job]) == ["custom:a:b"]
    assert show_artifact(bench.client.context, "custom:a:b", "/")["state"] == "withdrawn"
    consumer = bench.submit("true", needs=("custom:a:b",))
    bench.step()
    assert waiting(bench, consumer) == "waiting on custom:a:b"
    publish(inside(bench, job).context, "a", "b", 2)
    bench.until_ended(consumer)
    assert bench.status(consumer) is Status.SUCCEEDED


def test_the_list_has_what_is_published_and_what_active_jobs_make_or_need(
    bench: Bench, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    there.touch()
    done = bench.submit("true", produces=("custom:a:done",))
    bench.until_ended(done)
    makes = bench.submit("true", produces=("custom:a:soon",), delay=3_600_000_000)
    needs = ("custom:a:soon", f"file:{there}", f"file:{tmp_path}/not")
    consumer = bench.submit("true", needs=needs, after=(makes,))
    found, left_out = list_artifacts(bench.client.context)
    told = {each["artifact"]: each for each in found}
    assert left_out == 0
    assert {name: each["state"] for name, each in told.items()} == {
        "custom:a:done": "present",
        "custom:a:soon": "missing",
        f"file:{there}": "present",
        f"file:{tmp_path}/not": "missing",
    }
    assert told["custom:a:done"]["published_by"] == f"job-{done}"
    assert told["custom:a:soon"]["producers"] == [f"job-{makes}"]
    assert told["custom:a:soon"]["consumers"] == [f"job-{consumer}"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1,}', "line 1, column 9"),
        (b'{\n  "a": x\n}', "line 2, column 8"),
        (b"", "line 1, column 1"),
        (b"NaN", "NaN is not a number of JSON"),
        (b"1e999", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'"\xff"', "byte 1 is not UTF-8"),
        (b'"' + b"x" * (1 << 20) + b'"', "larger than 1 MiB"),
    ],
    ids=["comma", "word", "empty", "nan", "infinite", "deep", "bytes", "large"],
)
def test_data_that_is_not_json_is_refused_with_its_place(content: bytes, words: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_data(content, "--data x")
    assert words in str(refused.value)


def test_any_json_survives_the_store(bench: Bench) -> None:
    job = bench.submit("sleep", "60")
    bench.step()
    data = {"text": "grün\0\n漢\ud800", "big": 2**70, "deep": [[[{}]]], "none": None, "f": 1.5}
    publish(inside(bench, job).context, "a", "b", data)
    assert show_artifact(bench.client.context, "custom:a:b", "/")["data"] == json.loads(
        json.dumps(data)
    )


def test_a_job_publishes_by_the_command(bench: Bench, tmp_path: Path) -> None:
    payload = tmp_path / "payload.json"
    payload.write_text('{"rows": 3}')
    Path(bench.home.config).write_text("[worker]\nautostart = false\n")
    program = f"{sys.executable} -m headway artifacts publish"
    script = f"{program} report june --data {payload} && {program} report july --data - <{payload}"
    request = Request(
        shell=script,
        env={
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PATH": os.environ["PATH"],
        },
    )
    job = bench.client.submit(request).job_id
    bench.until_ended(job)
    assert bench.status(job) is Status.SUCCEEDED, Path(
        bench.home.job(job), "stderr.log"
    ).read_text()
    for key in ("june", "july"):
        assert show_artifact(bench.client.context, f"custom:report:{key}", "/")["data"] == {
            "rows": 3
        }
