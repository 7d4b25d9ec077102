"""Whatever happens to its members, a group stands as they do, and keeps their order."""

import tempfile
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from stocked import START, System, add

from headway.base.errors import ConflictError
from headway.base.home import Home
from headway.base.new_home import make_home
from headway.client import Client
from headway.core.groups import POLICIES, GroupMode
from headway.core.model import Claim, JobId, JobSpec, RetryPolicy, shown
from headway.core.settle import Ending, Judgement, Outcome, Verdict
from headway.jobs.context import Context
from headway.jobs.groups import Plan, cancel, close, create, document
from headway.jobs.membership import new_group
from headway.jobs.retry import rewind
from headway.jobs.settings import Config
from headway.jobs.submit import submit_calls
from headway.store.store import Store
from headway.testing.clock import FakeClock
from postgres import fresh_schema
from ready import open_ready

A_NUMBER = st.integers(0, 1 << 16)
GOOD = ("succeeded", "skipped")
ENDED = (*GOOD, "failed", "cancelled", "blocked_by_dependency", "blocked_by_approval")


class Row(NamedTuple):
    id: JobId
    chain: JobId
    group: int
    number: int
    status: str
    started_at: int | None


def expected(rows: Iterable[Row], *, closed: bool) -> str:
    """The status of a group as the rules say it, without a clever query."""
    rows = list(rows)
    last = {row.chain: row.status for row in sorted(rows, key=lambda row: row.id)}
    if not closed or any(status not in ENDED for status in last.values()):
        return "RUNNING"
    if last and all(status in GOOD for status in last.values()):
        return "COMPLETED"
    return "PARTIAL" if any(row.started_at is not None for row in rows) else "CANCELLED"


class Groups(RuleBasedStateMachine):
    """Random stories; after each act the planner steps until it is quiet."""

    def __init__(self) -> None:
        super().__init__()
        self._story = ExitStack()
        folder = Path(self._story.enter_context(tempfile.TemporaryDirectory()))
        self.clock = FakeClock(START)
        url, without_durability = self.new_store(folder)
        self.store: Any = open_ready(url, self.clock)
        self.store.database.execute(without_durability, {})
        self.system = System(self.store, self.clock, folder)
        self.system.set_max_active(-1)
        home = Home(str(folder / ".headway"))
        make_home(home)
        settings = Config({"worker.autostart": False})
        self.client = Client(
            Context(home, settings, self.store, self.clock, environ={}, actor="ann")
        )
        self.groups: list[tuple[int, Plan]] = []
        self.jobs: list[JobId] = []

    def new_store(self, folder: Path) -> tuple[str, str]:
        return f"sqlite://{folder}/headway.db", "pragma synchronous = off"

    def teardown(self) -> None:
        for _ in range(4 * len(self.jobs) + 4):
            self.end_all(self.live(), ["succeed"])
            self.clock.advance(120)
            self.system.until_quiet()
        self.groups_stand_as_their_members_do()
        with self.store.read() as tx:
            assert tx.jobs.active() == []
        self.store.close()
        self._story.close()

    # -- acts --------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.groups) < 3)
    @rule(mode=st.sampled_from(GroupMode), on_failure=st.sampled_from(sorted(POLICIES)))
    def make(self, mode: GroupMode, on_failure: str) -> None:
        plan = Plan(mode.value, on_failure)
        self.groups.append((create(self.client.context, plan).group, plan))
        note(f"group-{self.groups[-1][0]}: {plan}")

    @precondition(lambda self: self.groups)
    @rule(which=A_NUMBER, count=st.integers(1, 3), retries=st.sampled_from((0, 0, 1)))
    def join(self, which: int, count: int, retries: int) -> None:
        group, plan = self.groups[which % len(self.groups)]
        spec = JobSpec(
            {"argv": ["true"], "any_host": True},
            "member",
            retry=RetryPolicy(max_attempts=retries, base=2_000_000),
            group=f"group-{group}",
        )
        last = {row.chain: row.status for row in self.rows() if row.group == group}
        stopped = any(status in ENDED and status not in GOOD for status in last.values())
        refused = self.closed(group) or (stopped and plan.on_failure != "continue")
        note(f"{count} join group-{group}, refused {refused}")
        if refused:
            with pytest.raises(ConflictError):
                submit_calls(self.client.context, [spec] * count)
        else:
            self.jobs += [each.job_id for each in submit_calls(self.client.context, [spec] * count)]

    @precondition(lambda self: self.live())
    @rule(
        which=st.lists(A_NUMBER, min_size=1, max_size=3),
        how=st.lists(st.sampled_from(("succeed", "fail", "skip")), min_size=3, max_size=3),
    )
    def end(self, which: list[int], how: list[str]) -> None:
        """Several at once: their ends are one transaction."""
        live = self.live()
        claims = {live[each % len(live)].job_id: live[each % len(live)] for each in which}
        note(f"end {list(claims)}: {how}")
        self.end_all(list(claims.values()), how)

    def end_all(self, claims: list[Claim], how: list[str]) -> None:
        judged: list[tuple[Claim, Judgement]] = []
        for number, claim in enumerate(claims):
            word = how[number % len(how)]
            ending = Ending.SKIPPED if word == "skip" else Ending.EXITED
            outcome = Outcome(ending, self.clock.now(), exit_code=int(word == "fail"))
            judged.append((claim, Verdict(outcome, tree_gone=True)))
        with self.store.write() as tx:
            self.system.settler.apply(tx, judged)

    @precondition(lambda self: self.jobs)
    @rule(which=st.lists(A_NUMBER, min_size=1, max_size=2))
    def cancel_jobs(self, which: list[int]) -> None:
        ids = sorted({self.jobs[each % len(self.jobs)] for each in which})
        note(f"cancel {ids}")
        with suppress(ConflictError):
            self.client.cancel(ids)

    @precondition(lambda self: self.jobs)
    @rule(which=A_NUMBER)
    def retry(self, which: int) -> None:
        note(f"retry {self.jobs[which % len(self.jobs)]}")
        with suppress(ConflictError):
            rewind(self.client.context, self.jobs[which % len(self.jobs)])

    @precondition(lambda self: self.groups)
    @rule(which=A_NUMBER)
    def close_one(self, which: int) -> None:
        note(f"close group-{self.groups[which % len(self.groups)][0]}")
        close(self.client.context, str(self.groups[which % len(self.groups)][0]))

    @precondition(lambda self: self.groups)
    @rule(which=A_NUMBER)
    def cancel_one(self, which: int) -> None:
        note(f"cancel group-{self.groups[which % len(self.groups)][0]}")
        with suppress(ConflictError):
            cancel(self.client.context, str(self.groups[which % len(self.groups)][0]))

    @rule()
    def let_time_pass(self) -> None:
        self.clock.advance(3)

    # -- what always holds -------------------------------------------------------------------------

    def live(self) -> list[Claim]:
        with self.store.read() as tx:
            return sorted(tx.claims.live(), key=lambda claim: claim.job_id)

    def rows(self) -> list[Row]:
        with self.store.read():
            found = self.store.database.execute(
                "select id, chain, group_id, sequence_number, status, started_at from jobs "
                "order by id",
                {},
            )
        return [Row(*row) for row in found]

    def closed(self, group: int) -> bool:
        with self.store.read() as tx:
            return tx.groups.by_id([group])[group].closed_at is not None

    @invariant()
    def groups_stand_as_their_members_do(self) -> None:
        self.system.until_quiet()
        assert self.system.missed() == {}
        rows = self.rows()
        with self.store.read() as tx:
            events = [each for each in tx.events.since(0, 100_000) if each.kind == "group_ended"]
        for group, plan in self.groups:
            members = [row for row in rows if row.group == group]
            told = document(self.client.context, str(group))
            wanted = expected(members, closed=told["closed_at"] is not None)
            assert told["status"] == wanted
            assert (told["ended_at"] is not None) == (wanted != "RUNNING")
            if wanted != "RUNNING":
                last = [each for each in events if each.data["group"] == f"group-{group}"][-1]
                assert last.data["status"] == wanted
            if plan.mode == GroupMode.SEQUENTIAL:
                self._order_is_kept(members)

    def _order_is_kept(self, members: list[Row]) -> None:
        active = [row for row in members if row.status not in ENDED]
        running = [row for row in active if row.status == "running"]
        assert len(running) <= 1, "two members of a sequential group run at once"
        for row in running:
            assert all(row.number <= other.number for other in active), shown(row.id)


class GroupsOnPostgres(Groups):
    server = ""

    def new_store(self, folder: Path) -> tuple[str, str]:
        url = self._story.enter_context(fresh_schema(self.server))
        return url, "set synchronous_commit = off"


@pytest.mark.req("D6")
def test_random_groups_stand_as_their_members_do() -> None:
    run_state_machine_as_test(
        Groups,
        settings=settings(
            max_examples=30,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_random_groups_stand_as_their_members_do_on_a_server(postgres_server: str) -> None:
    GroupsOnPostgres.server = postgres_server
    run_state_machine_as_test(
        GroupsOnPostgres,
        settings=settings(
            max_examples=8,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


# -- sequences that are easily got wrong -----------------------------------------------------------


def test_a_retry_made_with_the_end_of_another_member_keeps_the_group_running(
    store: Store, system: System
) -> None:
    """Both ends are written in one transaction, and the success comes first."""
    system.set_max_active(-1)
    with store.write() as tx:
        group = new_group(tx, mode="parallel", actor="ann")
        add(tx, group_id=group.id, sequence_number=1)
        policy = RetryPolicy(max_attempts=1)
        again = add(tx, group_id=group.id, sequence_number=2, retry=policy)
        tx.groups.close(group.id)
    judged: list[tuple[Claim, Judgement]] = [
        (claim, Verdict(Outcome(Ending.EXITED, START, exit_code=number), tree_gone=True))
        for number, claim in enumerate(system.step().started)
    ]
    with store.write() as tx:
        system.settler.apply(tx, judged)
        assert tx.groups.by_id([group.id])[group.id].ended_at is None
        last = tx.jobs.last_in_chain(again.chain)
        assert last is not None and last.attempt == 2 and last.group_id == group.id
