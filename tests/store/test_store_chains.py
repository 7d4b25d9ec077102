"""Retry chains by the clock alone: planned and settled on every store, without processes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from stocked import HOST, SECOND, START, Opener, System

from headway.base.home import Home
from headway.base.new_home import make_home
from headway.client import Client
from headway.core.model import Claim, JobId, RetryPolicy
from headway.core.settle import Ending, Outcome, Verdict
from headway.core.states import TERMINAL, Status
from headway.jobs.context import Context
from headway.jobs.groups import Plan, create
from headway.jobs.groups import document as group_document
from headway.jobs.retry import rewind
from headway.jobs.settings import Config
from headway.jobs.templates import add_template, submit_template
from headway.store.store import Store
from headway.testing.clock import FakeClock
from headway.worker.settler import Settler


@pytest.fixture
def client(store: Store, clock: FakeClock, tmp_path: Path) -> Client:
    home = Home(str(tmp_path / ".headway"))
    make_home(home)
    config = Config({"worker.autostart": False})
    return Client(
        Context(home, config, store, clock, environ={"PATH": "/bin:/usr/bin"}, actor="ann")
    )


def fail(system: System, claim: Claim) -> None:
    outcome = Outcome(Ending.EXITED, system.clock.now(), exit_code=1)
    system.judge(claim, Verdict(outcome, tree_gone=True))


def succeed(system: System, claim: Claim) -> None:
    outcome = Outcome(Ending.EXITED, system.clock.now(), exit_code=0)
    system.judge(claim, Verdict(outcome, tree_gone=True))


def failures(system: System, chain: JobId, new: Callable[[], System]) -> list[float]:
    """Let each execution of the chain fail at once, until there is no other; when each began, in
    seconds. Before each retry the program is a new one, and one instant too early it waits."""
    began = []
    while True:
        started = system.until_quiet()
        if not started:
            return began
        assert len(started) == 1
        began.append((system.clock.now() - START) / SECOND)
        fail(system, started[0])
        last = system.look(lambda tx: tx.jobs.last_in_chain(chain))
        if last.status in TERMINAL:
            continue
        system = new()
        assert last.not_before is not None
        system.clock.advance((last.not_before - system.clock.now() - 1) / SECOND)
        assert system.until_quiet() == [], "not before its time"
        system.clock.advance(1 / SECOND)


@pytest.mark.req("E16", "E17", "E18", "E19", "E20", "D13")
def test_a_template_that_always_fails_is_executed_four_times_10_20_and_40_seconds_apart(
    client: Client, opener: Opener, clock: FakeClock, tmp_path: Path
) -> None:
    def new() -> System:
        return System(opener(), clock, tmp_path)

    system = new()
    add_template(client.context, "always-fails", argv=["false"], any_host=True)
    first = submit_template(client.context, "always-fails").job_id
    assert failures(system, first, new) == [0, 10, 30, 70]
    chain = system.look(lambda tx: tx.jobs.chain(first))
    assert [each.retry_of for each in chain] == [None, *(each.id for each in chain[:-1])]
    assert chain[-1].reason == "exit code 1; attempt 4 of 4, no retry is left"
    clock.advance(365 * 86_400)
    assert system.until_quiet() == [], "no more by itself, ever"

    rewind(client.context, first)
    again = (clock.now() - START) / SECOND
    assert failures(system, first, new) == [again + wait for wait in (0, 10, 30, 70)]
    chain = system.look(lambda tx: tx.jobs.chain(first))
    assert [each.attempt for each in chain] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert len(system.look(lambda tx: tx.jobs.runs([each.id for each in chain]))) == 8


@pytest.mark.req("E19")
def test_cap_and_jitter_hold_also_across_restarts(
    client: Client, opener: Opener, clock: FakeClock, tmp_path: Path
) -> None:
    def new() -> System:
        made = System(opener(), clock, tmp_path)
        made.settler = made.planner._settler = Settler(HOST, "worker", chance=lambda: 0.5)
        return made

    add_template(
        client.context,
        "careful",
        argv=["false"],
        any_host=True,
        retries=4,
        retry_base="10s",
        retry_cap="30s",
        retry_jitter=0.2,
    )
    first = submit_template(client.context, "careful").job_id
    # 10, 20, 30 and 30 s, and half of a fifth more.
    assert failures(new(), first, new) == [0, 11, 33, 66, 99]


@pytest.mark.req("E18")
def test_what_a_template_names_is_retried_and_nothing_else(
    client: Client, system: System, clock: FakeClock
) -> None:
    add_template(client.context, "picky", argv=["false"], any_host=True, retry_on=["75"])
    first = submit_template(client.context, "picky").job_id
    assert system.look(lambda tx: tx.jobs.by_id([first])[first].retry) == RetryPolicy(3, on=("75",))
    [claim] = system.until_quiet()
    fail(system, claim)
    assert len(system.look(lambda tx: tx.jobs.chain(first))) == 1


@pytest.mark.req("D13", "E22")
@pytest.mark.parametrize("retries", [0, 1, 3])
def test_recovery_goes_by_what_the_template_allows(
    client: Client, system: System, clock: FakeClock, retries: int
) -> None:
    add_template(client.context, "lost", argv=["true"], any_host=True, retries=retries)
    first = submit_template(client.context, "lost").job_id
    for _ in range(retries + 1):
        [claim] = system.until_quiet()
        lost = Outcome(Ending.OUTCOME_UNKNOWN, clock.now())
        system.judge(claim, Verdict(lost, tree_gone=True))
        assert system.until_quiet() == [], "a retry after a crash waits, too"
        clock.advance(3600)
    assert system.until_quiet() == []
    chain = system.look(lambda tx: tx.jobs.chain(first))
    assert len(chain) == retries + 1
    assert all((each.reason or "").startswith("Scheduler crash recovery") for each in chain)


@pytest.mark.req("D6", "D19")
def test_a_group_is_completed_when_the_last_retry_of_its_template_succeeds(
    client: Client, system: System, clock: FakeClock
) -> None:
    add_template(client.context, "flaky", argv=["false"], any_host=True)
    create(client.context, Plan(name="both"))
    first = submit_template(client.context, "flaky", group="both").job_id
    second = submit_template(client.context, "flaky", group="both", last=True).job_id
    for wait in (10, 20, 40):
        [claim] = system.until_quiet()
        fail(system, claim)
        assert system.until_quiet() == [], "the next member waits for the chain, not for the job"
        assert group_document(client.context, "both")["status"] == "RUNNING"
        clock.advance(wait)
    [claim] = system.until_quiet()
    assert claim.job_id == system.look(lambda tx: tx.jobs.last_in_chain(first)).id != first
    succeed(system, claim)
    [claim] = system.until_quiet()
    assert claim.job_id == second
    succeed(system, claim)
    assert group_document(client.context, "both")["status"] == "COMPLETED"


@pytest.mark.req("D18")
def test_a_group_is_partial_when_a_template_has_used_up_its_retries(
    client: Client, system: System, clock: FakeClock
) -> None:
    add_template(client.context, "broken", argv=["false"], any_host=True)
    create(client.context, Plan(name="both"))
    submit_template(client.context, "broken", group="both")
    rest = submit_template(client.context, "broken", group="both", last=True).job_id
    for wait in (10, 20, 40, 80):
        [claim] = system.until_quiet()
        fail(system, claim)
        clock.advance(wait)
    assert system.until_quiet() == []
    never = system.look(lambda tx: tx.jobs.by_id([rest])[rest])
    assert (never.status, never.reason) == (Status.CANCELLED, "predecessor failed")
    assert group_document(client.context, "both")["status"] == "PARTIAL"
