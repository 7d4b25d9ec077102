"""All that the command line can do with the queue, a program can: by methods of the client."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Bench
from headway.base.errors import ConflictError, HeadwayError, InvalidInputError
from headway.core.order import Place, Side
from headway.core.retention import RetentionRule
from headway.core.states import Status
from headway.core.targets import Target
from headway.jobs.groups import Plan
from headway.jobs.quotas import parse_rate
from headway.jobs.request import Request
from headway.workitems.sling import Wish


def test_the_queue_is_steered_by_methods_of_the_client(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=1)
    client = bench.client
    client.pause("to look at it")
    first, second = bench.submit("true"), bench.submit("true")
    client.jobs.move(second, Place(Side.FRONT))
    assert client.scheduler.dry_run(5).to_dispatch == ()
    client.jobs.reorder([first, second])
    made = client.groups.create(Plan(mode="parallel"), [first, second])
    whole, (third,) = client.groups.submit([Request(argv=("true",))], Plan())
    assert [each["id"] for each in client.groups.list()] == [
        f"group-{made.group}",
        f"group-{whole.group}",
    ]
    client.groups.cancel(f"group-{whole.group}")
    assert bench.status(third.job_id) is Status.CANCELLED
    client.templates.add("nothing", argv=["true"])
    fourth = client.templates.submit("nothing").job_id
    assert client.templates.archive("nothing")
    assert client.scheduler.status()["queued_total"] == 3
    client.resume()
    bench.until_ended(fourth)
    assert client.groups.show(f"group-{made.group}")["status"] == "COMPLETED"
    assert client.groups.close(f"group-{made.group}")[1] == "COMPLETED"


def test_work_items_are_slung_by_methods_of_the_client(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=1)
    client = bench.client
    tasks = Path(bench.home.path) / "tasks"
    tasks.mkdir()
    (tasks / "aa-1.toml").write_text('title = "one"\n')
    client.targets.add(Target(name="here", prefix="aa-", argv=("true", "{subject}")))
    assert client.items.sling(Wish(words=("aa-1",)), rehearse=True).scheduled
    client.pause("not yet")
    client.items.sling(Wish(words=("aa-1",)))
    (told,) = client.items.list()
    assert (told["target"], [each["subject"] for each in told["jobs"]]) == ("here", ["aa-1"])
    assert len(client.items.clear("aa-1").cleared) == 1
    client.targets.remove("here")
    assert client.items.list() == []


def test_a_waiting_job_is_decided_and_changed_by_methods_of_the_client(bench: Bench) -> None:
    client = bench.client
    client.pause("to look at it")
    asking = client.jobs.submit(Request(argv=("true",), require_approval=True)).job_id
    other = client.jobs.submit(Request(argv=("true",), require_approval=True)).job_id
    assert [each["id"] for each in client.jobs.approvals()] == [f"job-{asking}", f"job-{other}"]
    assert client.jobs.approve(asking).approval is not None
    assert client.jobs.reject(other, "not now").status is Status.BLOCKED_BY_APPROVAL
    assert client.jobs.edit(asking, name="night").fields == ("name",)
    assert client.jobs.why(asking)["objections"] and "paused" in (client.jobs.why_not(asking) or "")
    assert [each["place"] for each in client.jobs.queue().documents] == [1]
    assert {node.id for node in client.jobs.graph().rows} == {asking, other}
    assert client.jobs.tries(asking)[0]["state"] == "queued"
    assert client.scheduler.locks() == []
    assert client.artifacts.list() == ([], 0)
    assert "claude" in [each["name"] for each in client.runners.list()]
    assert client.runners.show("claude")["built_in"]
    last = client.events.last()
    client.resume()
    bench.until_ended(asking)
    assert client.events.started_since(last) == [f"job-{asking}"]
    assert client.wait(asking).status is Status.SUCCEEDED and client.jobs.run(asking).id == asking
    assert client.jobs.preview_retry(other).members == (other,)
    assert client.jobs.gc(RetentionRule(0, None), preview=True).jobs == (asking, other)
    assert client.jobs.clean(other).jobs == (other,)
    assert client.jobs.gc(RetentionRule(0, None)).jobs == (asking,)


def test_a_home_is_cared_for_by_methods_of_the_client(bench: Bench, tmp_path: Path) -> None:
    client = bench.client
    assert Path(client.admin.backup(str(tmp_path / "copy.db"))).exists()
    assert {each.level for each in client.admin.doctor()} <= {"green", "yellow"}
    client.admin.configure("worker.autostart", False)
    client.admin.configure("worker.idle", "5s")
    assert client.admin.unset("worker.idle") and not client.admin.unset("worker.idle")
    assert "autostart = false" in Path(bench.home.config).read_text()
    client.scheduler.set("scheduler.max_active", 3)
    assert client.scheduler.settings()["scheduler.max_active"] == 3
    client.scheduler.unset("scheduler.max_active")
    assert client.scheduler.settings() == {}
    assert client.jobsfile.check(b"jobs: {}\n") == [] and client.jobsfile.schema()
    assert client.jobsfile.list()["entries"] == []


def test_a_client_that_acts_for_another_takes_nothing_from_its_process(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "of the server")
    environ = {"PATH": "/bin:/usr/bin", "WORD": "hers"}
    theirs = bench.client.acting(
        "token:ann", "person", folder=str(tmp_path), environ=environ, umask=0o027
    )
    job = theirs.submit(Request(shell='pwd; umask; echo "$WORD$SECRET"')).job_id
    bench.until_ended(job)
    output = Path(bench.home.job(job), "stdout.log").read_text().split()
    assert output == [str(tmp_path), "0027", "hers"]
    assert theirs.document(job)["submitted_by"] == "token:ann"


def test_an_agent_decides_nothing_that_a_person_must(bench: Bench, tmp_path: Path) -> None:
    job = bench.submit("true", require_approval=True)
    agent = bench.client.acting(
        "token:bot", "agent", folder=str(tmp_path), environ={"PATH": "/bin"}, umask=0o022
    )
    with pytest.raises(ConflictError, match="token:bot may not approve: a person decides"):
        agent.jobs.approve(job)
    assert bench.client.jobs.approve(job).status is Status.QUEUED


REFUSED_SETTINGS: list[tuple[str, Any, str]] = [
    ("scheduler.max_active", "three", "scheduler.max_active: 'three' is not a whole number"),
    ("scheduler.max_active", [2], "is a list; give one value"),
    ("scheduler.maxactive", 3, "did you mean scheduler.max_active?"),
    ("scheduler.ageing", 5, "'5' is not a duration"),
    ("scheduler.limits.resource.gpu", "one", "'one' is not a whole number"),
    ("worker.idle", "5m", "worker.idle stands in config.toml, not in the store"),
]


@pytest.mark.parametrize(("key", "value", "words"), REFUSED_SETTINGS)
def test_a_setting_of_the_store_is_checked_as_the_command_does(
    key: str, value: Any, words: str, bench: Bench
) -> None:
    with pytest.raises(HeadwayError, match=re.escape(words)):
        bench.client.scheduler.set(key, value)
    assert bench.client.scheduler.settings() == {}


def test_a_setting_of_the_file_is_checked_as_the_command_does(bench: Bench) -> None:
    with pytest.raises(InvalidInputError, match=re.escape("worker.idle: 'soon' is not")):
        bench.client.admin.configure("worker.idle", "soon")
    with pytest.raises(InvalidInputError, match="is kept in the store"):
        bench.client.admin.configure("scheduler.max_active", 2)


def test_a_setting_may_be_given_as_it_is_written(bench: Bench) -> None:
    bench.client.scheduler.set("scheduler.max_active", "3")
    assert bench.client.scheduler.settings() == {"scheduler.max_active": 3}


@pytest.mark.parametrize(
    "key",
    [
        "scheduler.max_active",
        "scheduler.batch_size",
        "scheduler.spawn_delay",
        "scheduler.ageing",
        "scheduler.pressure.load",
        "scheduler.limits.resource.gpu",
        "scheduler.limits.rate.api",
        "scheduler.maxactive",
    ],
)
def test_a_stored_value_that_cannot_be_used_stops_nothing(key: str, bench: Bench) -> None:
    """A program of before may have stored it."""
    with bench.store.write() as tx:
        tx.settings.set(key, "bad", by="earlier")
    job = bench.client.submit(
        Request(argv=("true",), resources=("gpu",), rates=(parse_rate("api"),))
    ).job_id
    assert bench.client.jobs.why(job)
    bench.until_ended(job)
    assert bench.client.jobs.get(job).status is Status.SUCCEEDED
    (told,) = bench.client.scheduler.status()["unusable_settings"]
    assert told["key"] == key and told["next"] == f"headway config unset {key}"
    (found,) = [each for each in bench.client.admin.doctor() if each.check == "settings"]
    assert found.level == "yellow" and key in found.detail
    bench.client.scheduler.unset(key)
    assert bench.client.scheduler.settings() == {}
    assert not bench.client.scheduler.status()["unusable_settings"]
