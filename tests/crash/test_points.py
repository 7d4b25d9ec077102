"""Every named crash point is visited: a process dies there, the next one comes, nothing is lost.

What each scene checks in the end is in `Stage.check_settled`: no job lost, none run twice, the
true exit codes, every lock free, dependents started or blocked, no process left, and a further
start that changes nothing. The commands themselves keep a ledger of what they did.
"""

from collections.abc import Iterator
from pathlib import Path

import calls
import checkouts
import periodic
import pytest
import removals
import rewinds
import scenes
import slots
from scenes import (
    LOST_AFTER,
    LOST_AT_GO,
    LOST_BEFORE_GO,
    Fate,
    Scene,
    child_dies,
    child_dies_with_worker,
    worker_dies,
)
from stage import Stage

import flows
from headway.core.states import Status

KILLED_COMMAND = Fate(Status.FAILED, (0,), "killed by SIGKILL")


def at_visits(*visits: int) -> list[Scene]:
    return [worker_dies(visit) for visit in visits]


def twice(fate: Fate = scenes.RAN) -> list[Scene]:
    return [child_dies(fate), child_dies_with_worker(fate)]


def both_hosts(first: Status, begun: int) -> list[Scene]:
    return [calls.host_dies(first, begun), calls.host_dies_with_worker(first, begun)]


POINTS: dict[str, list[Scene]] = {
    "autostart.cleaned": [scenes.starter_dies],
    "autostart.coming": [scenes.starter_dies],
    "autostart.detached": [scenes.starter_dies],
    "autostart.forked": [scenes.starter_dies],
    "child.checking": checkouts.dies_around_its_command(KILLED_COMMAND),
    "child.let_go": twice(KILLED_COMMAND),
    "child.prepared": checkouts.dies_around_its_command(KILLED_COMMAND),
    "child.preparing": checkouts.dies_around_its_command(KILLED_COMMAND),
    "child.reported": [scenes.child_dies_reporting],
    "pool.launched": [calls.worker_dies_calling],
    "pool.sent": [
        calls.worker_dies_calling,
        calls.worker_dies_among_many,
        calls.worker_dies_one_by_one,
        flows.worker_dies_in_flow_of_calls,
    ],
    "pool.taken_back": [calls.worker_dies_taking_back],
    "engine.claimed": [
        *at_visits(1, 2),
        slots.worker_dies_firing,
        calls.worker_dies_among_many,
        flows.worker_dies_in_flow_of_calls,
    ],
    "engine.documented": at_visits(1, 2),
    "engine.forced": [scenes.worker_dies_forcing],
    "engine.judged": [scenes.worker_dies_recovering],
    "engine.launched": at_visits(1, 2),
    "engine.planned": [
        *at_visits(1, 2),
        calls.worker_dies_among_many,
        flows.worker_dies_in_flow,
    ],
    "engine.proved_gone": [scenes.worker_dies_proving],
    "engine.recovered": [scenes.worker_dies_recovering],
    "engine.settled": [*at_visits(1, 2), flows.worker_dies_in_flow],
    "engine.woken": [*at_visits(1), scenes.worker_dies_recovering],
    "evidence.cancel_requested": [scenes.canceller_dies],
    "evidence.claim_made": at_visits(1, 2),
    "evidence.discarded": [scenes.worker_dies_undoing_its_step],
    "evidence.outcome_linked": at_visits(1, 2),
    "evidence.prepared": at_visits(1, 2),
    "evidence.shed": [scenes.worker_dies_recovering],
    "evidence.voided": [scenes.worker_dies_recovering],
    "evidence.worker_wanted": [scenes.asker_dies],
    "launches.parent_replaced": [scenes.worker_dies_replacing_its_parent],
    "gc.cleaned": [removals.cleaner_dies],
    "gc.files_deleted": [removals.collector_dies, removals.worker_dies_collecting],
    "gc.files_noted": [removals.collector_dies],
    "gc.removed": [removals.collector_dies, removals.worker_dies_collecting],
    "host.called": both_hosts(Status.FAILED, 1),
    "host.ready": both_hosts(Status.SUCCEEDED, 1),
    "host.started": both_hosts(Status.FAILED, 0),
    "inputs.placed": [scenes.reader_dies],
    "inputs.synced": [scenes.reader_dies],
    "inputs.written": [scenes.reader_dies],
    "janitor.dropped": [scenes.janitor_dies],
    "janitor.moved_aside": [scenes.janitor_dies],
    "janitor.put_back": [scenes.janitor_dies],
    "janitor.restored": [scenes.worker_dies_putting_back],
    "launcher.sent": at_visits(1, 2),
    "launcher.started": at_visits(1),
    "node.outputs": [flows.supervisor_dies_with_outputs, flows.supervisor_dies_with_a_commit],
    "parent.acked": twice(),
    "parent.forked": [*twice(), scenes.child_sleeps],
    "parent.read": [*twice(), scenes.child_sleeps, scenes.parent_wakes_late],
    "recovery.ended_claim": [scenes.worker_dies_recovering],
    "recovery.ended_lost": [scenes.worker_dies_recovering],
    "recovery.locked": [scenes.worker_dies_recovering],
    "recovery.voided": [scenes.worker_dies_recovering],
    "rewind.committed": [rewinds.rewinder_dies],
    "rounds.made": [periodic.worker_dies_making],
    "step.recorded": [
        calls.host_dies_between_steps(worker_dies=False),
        calls.host_dies_between_steps(worker_dies=True),
    ],
    "store.committed": [*at_visits(1, 2, 3, 4), scenes.submitter_dies, scenes.canceller_dies],
    "store.migrated": [scenes.maker_dies],
    "supervisor.child_ended": twice(LOST_AFTER),
    "supervisor.crash_traced": [scenes.supervisor_dies_of_itself],
    "supervisor.finishing": checkouts.dies_around_its_command(LOST_AFTER),
    "supervisor.forked": twice(),
    "supervisor.go": twice(LOST_AT_GO),
    "supervisor.locked": [*twice(), scenes.child_sleeps],
    "supervisor.outcome_renamed": twice(),
    "supervisor.outcome_synced": twice(),
    "supervisor.outcome_written": [*twice(LOST_AFTER), scenes.child_sleeps],
    "supervisor.request_taken": [scenes.asked_dies],
    "supervisor.started": [*twice(LOST_BEFORE_GO), scenes.child_sleeps],
    "supervisor.told": twice(),
    "supervisor.tree_made": [*twice(), scenes.child_sleeps],
    "timekeeper.fired": [slots.worker_dies_firing],
    "wake.sent": [scenes.submitter_dies],
    "worker.answered": [scenes.worker_dies_answering],
    "worker.draining": [scenes.worker_dies_leaving],
    "worker.end_recorded": [scenes.worker_dies_leaving],
    "worker.gave_up": [scenes.worker_dies_idle],
    "worker.left": [scenes.worker_dies_idle],
    "worker.listening": at_visits(1),
    "worker.placed": at_visits(1),
    "worker.registered": at_visits(1),
    "worker.settled": [scenes.worker_dies_settled],
    "worker.stop_marked": [scenes.worker_dies_leaving],
    "worker.up": at_visits(1),
    "workflow.started": [flows.starter_dies_of_flow],
    "route.loop": [flows.worker_dies_in_loop],
    "fan.expanded": [flows.worker_dies_in_loop],
    "worktrees.cleaned": [checkouts.cleaner_dies],
    "worktrees.recorded": [checkouts.cleaner_dies],
}
# On a store that hosts share a worker stays, however idle.
SQLITE_ALONE = {"worker.gave_up", "worker.left"}

STORES = ("sqlite", "postgres")
# These processes know no store. Where one of them dies in several scenes, these take turns: each
# point is visited on both stores, and each scene of all such points together, too.
WITHOUT_A_STORE = ("child", "host", "parent", "supervisor")


def stores_of(at: int, point: str, number: int) -> tuple[str, ...]:
    if point in SQLITE_ALONE:
        return STORES[:1]
    if point.partition(".")[0] in WITHOUT_A_STORE and len(POINTS[point]) > 1:
        return (STORES[(at + number) % 2],)
    return STORES


VISITS = [
    pytest.param(store, point, scene, id=f"{store}-{point}-{number}")
    for at, (point, found) in enumerate(POINTS.items())
    for number, scene in enumerate(found, 1)
    for store in stores_of(at, point, number)
]


@pytest.fixture
def stage(tmp_path: Path, request: pytest.FixtureRequest, store: str) -> Iterator[Stage]:
    url = None if store == "sqlite" else request.getfixturevalue("postgres_url")
    made = Stage(tmp_path, store_url=url)
    yield made
    made.close()


@pytest.mark.req("E21", "E24", "D25")
@pytest.mark.parametrize(("store", "point", "scene"), VISITS)
def test_a_death_at_any_point_loses_and_repeats_nothing(  # fault A1, A2, A3, A9
    stage: Stage, point: str, scene: Scene
) -> None:
    scene(stage, point)
