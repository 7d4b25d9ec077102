"""A step that fires schedules: what is broken costs only its own slots, and much at once costs no
more queries than a little."""

from pathlib import Path
from typing import Any

import pytest

from headway.core.states import ACTIVE
from headway.jobs.agents import agent_request
from headway.jobs.settings import Config
from headway.jobs.templates import add_template
from headway.store.access import Access
from keeping import Keeping


@pytest.mark.parametrize(
    "document",
    [
        "{broken",
        "[]",
        "null",
        '{"job": [], "params": {}}',
        '{"job": {"argv": 7}, "params": {}}',
        '{"params": {}}',
        '{"job": ' + "[" * 100_000,
    ],
    ids=lambda text: text[:20],
)
def test_a_damaged_template_stops_neither_the_step_nor_the_others(
    paused: Keeping, document: str
) -> None:
    add_template(paused.client.context, "build", argv=["true"])
    name = paused.add(template="build", overlap="queue")
    beside = paused.add(overlap="queue")
    database = paused.bench.store.database  # type: ignore[attr-defined]
    database.execute(f"update templates set document = '{document}'", {})
    paused.later(60)
    paused.later(60)
    assert paused.slots(beside) == [("fired", 1, None)] * 2
    ((outcome, count, reason),) = paused.slots(name)
    assert (outcome, count) == ("skipped", 2) and reason and len(reason) <= 300


@pytest.mark.parametrize(
    "document", ["{", "[]", "7", "{}", '{"rule": 3}', '{"rule": {"every": []}}']
)
def test_a_damaged_schedule_stops_neither_the_step_nor_the_others(
    paused: Keeping, document: str
) -> None:
    name, beside = paused.add(name="lost"), paused.add(overlap="queue")
    database = paused.bench.store.database  # type: ignore[attr-defined]
    database.execute(f"update schedules set document = '{document}' where id = 1", {})
    paused.later(60)
    paused.later(60)
    assert paused.slots(beside) == [("fired", 1, None)] * 2 and paused.slots(name) == []
    assert [each.data["name"] for each in paused.events("schedule_stopped")] == ["lost"]
    assert paused.client.schedules.show(name)["in_words"]
    assert paused.client.schedules.disable(name)
    assert paused.client.schedules.add(name=name, every="1m", argv=["true"], replace=True)
    assert paused.client.schedules.remove(name)


def test_of_many_made_together_only_the_one_that_is_refused_is_skipped(paused: Keeping) -> None:
    first = paused.add(needs=["custom:part:a"], produces=["custom:part:b"])
    second = paused.add(needs=["custom:part:b"], produces=["custom:part:a"])
    third = paused.add()
    paused.later(60)
    assert paused.slots(first) == paused.slots(third) == [("fired", 1, None)]
    ((outcome, _, reason),) = paused.slots(second)
    assert outcome == "skipped" and str(reason).startswith("a cycle")
    assert [job.submitted_by for job in paused.jobs()] == ["schedule-1", "schedule-3"]
    events = {each.job_id: each.actor for each in paused.events("submitted")}
    assert list(events.values()) == ["schedule-1", "schedule-3"]


def test_a_job_is_replaced_only_by_one_that_could_be_made(paused: Keeping) -> None:
    name = paused.add(name="a", overlap="replace")
    paused.later(60)
    paused.bench.submit("true", needs=("custom:part:a",), produces=("custom:part:b",))
    paused.add(
        name="a",
        overlap="replace",
        replace=True,
        needs=["custom:part:b"],
        produces=["custom:part:a"],
    )
    paused.later(60)
    assert paused.bench.job(1).status in ACTIVE, "what there is stays"
    assert paused.slots(name)[-1][0] == "skipped"


@pytest.fixture
def with_runner(paused: Keeping) -> Path:
    """A runner that only this home knows, and that its config names."""
    folder = Path(paused.bench.home.path) / "runners"
    folder.mkdir()
    described = folder / "mine.toml"
    words = 'argv = ["/bin/true", "{model}", "{max_turns}"]\nprompt = "stdin"\nparser = "text"\n'
    described.write_text(words)
    given = {"agent.runner": "mine", "agent.model": "small", "worker.autostart": False}
    paused.client.context.config = Config(given)
    return described


@pytest.mark.parametrize(
    "options", [{}, {"model": "large", "max_turns": 3, "retry_on": ["stalled"]}]
)
def test_what_is_asked_of_an_agent_is_settled_when_its_schedule_is_added(
    paused: Keeping, with_runner: Path, options: dict[str, Any]
) -> None:
    """Who fires it may be another host, with other runners and settings."""
    paused.client.schedules.add(name="a", every="1m", prompt="tidy up", **options)
    asked = {**options, "retry_on": tuple(options.get("retry_on", ()))}
    paused.client.submit(agent_request("tidy up", **asked))
    with_runner.unlink()
    paused.client.context.config = Config({"worker.autostart": False})
    paused.later(60)
    submitted, fired = paused.jobs()
    assert fired.params["agent"]["runner"] == "mine"
    assert fired.params["agent"]["model"] == options.get("model", "small")
    assert (fired.type, fired.params, fired.retry) == ("agent", submitted.params, submitted.retry)
    assert fired.retry.max_attempts == 0, "nobody has said that it may be repeated"


def test_a_template_asks_an_agent_when_a_slot_fires(paused: Keeping, with_runner: Path) -> None:
    add_template(paused.client.context, "tidy", prompt="tidy up", runner="mine")
    name = paused.add(template="tidy", overlap="queue")
    paused.later(60)
    (job,) = paused.jobs()
    assert (job.params["agent"]["runner"], job.retry.max_attempts) == ("mine", 0)
    with_runner.unlink()
    paused.later(60)
    outcome, _, reason = paused.slots(name)[-1]
    assert outcome == "skipped" and "mine" in str(reason)


QUERIES = (
    *("templates_by_name", "next_places", "add_jobs", "add_events"),
    *("due_schedules", "add_firings"),
)


def test_many_slots_of_a_template_cost_no_more_queries_than_two(
    paused: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of all writers is held meanwhile."""
    add_template(paused.client.context, "build", argv=["true"])
    asked: list[str] = []
    for verb in ("all", "many", "send"):
        ask = getattr(Access, verb)

        def counted(self: Access, query: str, /, *rows: Any, ask: Any = ask, **said: Any) -> Any:
            asked.append(query)
            return ask(self, query, *rows, **said)

        monkeypatch.setattr(Access, verb, counted)
    counts = []
    paused.settle()
    for number in (2, 18):
        for _ in range(number):
            paused.add(template="build", overlap="queue")
        asked.clear()
        paused.clock.advance(60)
        paused.bench.step()
        counts.append([asked.count(query) for query in QUERIES])
    assert counts[0] == counts[1] and counts[0][:3] == [2, 1, 1], counts
    assert len(paused.jobs()) == 2 + 20
