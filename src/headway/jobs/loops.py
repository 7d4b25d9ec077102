"""Loops of workflow runs: when one is called, when it goes back, and when it is over.

`core.routes` has the rules. A node whose outcome its loop takes calls it. From then on the gates
hold the whole body. When none of the body runs, the loop is taken: one transaction puts the body
back and counts. Until a loop is over, the ends of its body count for nobody outside of it.

The worker's step does this after it has taken in all ends, and before it plans: so several nodes
that end together are all known, and nothing starts in between.
"""

from collections.abc import Callable, Iterable

from headway.base.crashpoints import reach
from headway.core.model import chain_topic, shown, shown_run
from headway.core.routes import LoopCount, NodeOutcome, calls, next_loop
from headway.core.states import TERMINAL, Status
from headway.jobs.lifecycle import write_group_end
from headway.jobs.loop_state import RunLoops
from headway.jobs.repeat import repeat_jobs
from headway.jobs.routes import BODIES_RUN, ENDS_CAME, UNSETTLED_RUNS, end_runs
from headway.store.new_jobs import Event
from headway.store.records import LoopRecord, RunRecord
from headway.store.transaction import WriteTx


def settle_runs(
    tx: WriteTx, *, actor: str, expand: Callable[[RunRecord], None] = lambda record: None
) -> None:
    """Nodes with loops around them, or fans, have ended, here or in other transactions. `expand`
    makes the instances of fans. A run stays among these as long as a loop of it is called: a retry
    may end without an end."""
    wait = set()
    for record in tx.workflows.unsettled():
        expand(record)
        turn_loops(tx, record, actor=actor)
        if RunLoops(tx, record.id).called() or tx.workflows.fans_to_expand(record.id):
            wait.add(record.id)
        else:
            tx.workflows.set_unsettled(record.id, False)
            end_runs(tx, [record.id], actor=actor)
            for group in tx.groups.of_run(record.id):
                write_group_end(tx, group, actor=actor)
    left = {record.id for record in tx.workflows.unsettled()}
    mark = ENDS_CAME if left - wait else BODIES_RUN if left else 0
    tx.settings.set_mark(UNSETTLED_RUNS, mark)


def turn_loops(tx: WriteTx, record: RunRecord, *, actor: str) -> None:
    """The loops of a run are called, taken, ended and over. A stopped run takes none."""
    if record.stopped_at is None:
        _call(tx, RunLoops(tx, record.id))
        found = RunLoops(tx, record.id)
        while (head := next_loop(found.called(), found.running(), found.bodies)) is not None:
            _take(tx, found, head, actor=actor)
            found = RunLoops(tx, record.id)
    _close(tx, RunLoops(tx, record.id))


def _call(tx: WriteTx, found: RunLoops) -> None:
    """Every source whose outcome its loop takes calls it, or is blocked if it may go back no
    more."""
    for source, loop in found.loops.items():
        outcome = found.outcome(source)
        if outcome is None or outcome not in loop.rule.on or loop.so_far.called:
            continue
        if found.cancelled(loop.rule.head) is None and calls(loop.rule, loop.so_far, outcome):
            tx.workflows.set_count(found.run, source, loop.so_far._replace(called=True))
        else:
            _end_loop(tx, found, loop)


def _end_loop(tx: WriteTx, found: RunLoops, loop: LoopRecord) -> None:
    """It goes back no more, so what it would have repeated is blocked."""
    rule, count = loop.rule, loop.so_far
    cancelled = found.cancelled(rule.head)
    why = f"its loop is used up, {count.used} of {rule.times}"
    if cancelled is not None:
        why = (
            f"its loop ends, because {cancelled.written} ({shown(cancelled.job_id)}) was cancelled"
        )
    tx.workflows.set_count(found.run, rule.source, LoopCount(count.used, ended=count.ended or why))
    ran = [each for each in found.instances(rule.source) if each.outcome is not NodeOutcome.SKIPPED]
    tx.workflows.set_outcomes({each.chain: NodeOutcome.BLOCKED for each in ran})


def _take(tx: WriteTx, found: RunLoops, head: str, *, actor: str) -> None:
    """Go back to `head`: the whole body begins another pass."""
    calling = [
        each for each in found.loops.values() if each.rule.head == head and each.so_far.called
    ]
    if found.cancelled(head) is not None:
        for loop in calling:
            _end_loop(tx, found, loop)
        return
    for source, loop in found.loops.items():
        if source in found.bodies[head]:
            used = loop.so_far.used + (loop in calling)
            tx.workflows.set_count(found.run, source, loop.so_far._replace(used=used, called=False))
    body = [each for each in found.nodes if head in each.within]
    jobs = tx.jobs.by_id([each.job_id for each in body]).values()
    again = [job for job in jobs if job.status in TERMINAL]
    reset = [job for job in jobs if job.status not in TERMINAL]
    until = tx.now() + max(each.rule.delay for each in calling)
    held = {each.chain: until for each in body if each.written == head and until > tx.now()}
    sources = [each.rule.source for each in calling]
    data = {"reason": f"the loop of {', '.join(sources)}", "run": shown_run(found.run)}
    _note(tx, found, calling, actor=actor)
    tx.workflows.reopen([each.chain for each in body])
    repeat_jobs(tx, again, reset, actor=actor, data=data, not_before=held)
    reach("route.loop")


def _note(tx: WriteTx, found: RunLoops, calling: Iterable[LoopRecord], *, actor: str) -> None:
    for loop in calling:
        data = {
            "run": shown_run(found.run),
            "node": loop.rule.source,
            "to": loop.rule.head,
            "used": loop.so_far.used + 1,
            "of": loop.rule.times,
        }
        job = found.instances(loop.rule.source)[-1].job_id
        tx.events.add([Event("looped", job, data)], actor=actor)


def _close(tx: WriteTx, found: RunLoops) -> None:
    """What waits outside of loops that are over is decided now."""
    over = {head for head in found.bodies if found.is_over(head)}
    closed = [
        each for each in found.nodes if each.open and over.issuperset(found.left_by(each.written))
    ]
    if not closed:
        return
    tx.workflows.close_bodies([each.chain for each in closed])
    good = [each.chain for each in closed if each.status is Status.SUCCEEDED]
    tx.waits.chains_succeeded(good)
    bad = [each.chain for each in closed if each.status is not Status.SUCCEEDED]
    tx.waits.chains_failed(bad)
    tx.waits.wake_topics(chain_topic(each.chain) for each in closed)
