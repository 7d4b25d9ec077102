"""Start what may start. One call is one planning step inside the caller's write transaction.

The step looks only at woken jobs and, while slots are free, at the head of the queue at the door.
Starting, blocking and re-filing jobs wakes others, so it goes on in rounds until nothing is left to
look at or its bound is reached. A claim's files are made before the claim commits.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from headway.consequences import end_unstarted, give_up_locks, pass_on_shared
from headway.core.admission import closed, free_slots
from headway.core.facts import Door
from headway.core.model import Block, Claim, Job, JobId, Stage, Wait, WaitKind
from headway.core.plan import Hold, Planned, Start, decide, move_for, plan
from headway.core.settle import HOST_ERRNOS, Ending, Outcome
from headway.core.states import after
from headway.engine.settling import Settler, Verdict
from headway.errors import DataError
from headway.gather import door as open_door
from headway.gather import gather
from headway.host import Host
from headway.store.base import Event, Filing, WriteTx
from headway.supervise.evidence import Evidence

ROUND_JOBS = 200
STEP_JOBS = 1000
SWEEP_JOBS = 100

Specify = Callable[[Job, Claim], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Step:
    """What one planning step did: claims to launch after the commit, and whether work is left."""

    started: tuple[Claim, ...]
    more: bool


class Planner:
    def __init__(
        self,
        host: Host,
        worker_id: str,
        settler: Settler,
        *,
        specify: Specify,
        folder_of: Callable[[JobId], str],
        log_budget: int,
    ) -> None:
        self._host = host
        self._worker_id = worker_id
        self._settler = settler
        self._specify = specify
        self._folder_of = folder_of
        self._log_budget = log_budget
        self.prepared: list[Claim] = []  # claims whose files exist; without a commit they go

    def step(self, tx: WriteTx, *, limit: int | None = None) -> Step:
        """Plan until nothing is left to look at, starting at most `limit` jobs."""
        tx.wake_due(tx.now(), STEP_JOBS)
        door = self._door(tx)
        if door.lenders:
            tx.wake_chains(list(door.lenders))
        started: list[Claim] = []
        looked_at = 0
        while looked_at < STEP_JOBS:
            remaining = None if limit is None else limit - len(started)
            candidates = self._candidates(tx, door, remaining)
            if tx.unreadable():
                self._fail_unreadable(tx)
                continue
            if not candidates:
                break
            looked_at += len(candidates)
            facts = gather(tx, candidates, door)
            planned = plan(candidates, facts, limit=remaining)
            if not planned:
                break
            started += self._apply(tx, planned, door)
            door = self._door(tx)
        if started:
            tx.set_mark("last_dispatch_at", tx.now())
            tx.set_mark("last_dispatch_count", len(started))
        return Step(tuple(started), more=looked_at >= STEP_JOBS)

    def sweep(self, tx: WriteTx, before: int) -> list[Job]:
        """Look again at the longest waiting jobs; those that may start were missed by a wake-up."""
        waiting = tx.stale_waiters(before, SWEEP_JOBS)
        if tx.unreadable():
            self._fail_unreadable(tx)
        door = self._door(tx)
        facts = gather(tx, waiting, door)
        missed = []
        for job in waiting:
            decision = decide(job, facts)
            if not isinstance(decision, Hold) or decision.at_door:
                missed.append(job)
        tx.touch_checked([job.id for job in waiting])
        tx.wake_jobs([job.id for job in missed])
        tx.add_events((Event("missed_wake_up", job.id) for job in missed), actor=self._worker_id)
        return missed

    def _door(self, tx: WriteTx) -> Door:
        return open_door(tx, self._host.id, log_budget=self._log_budget)

    def _candidates(self, tx: WriteTx, door: Door, remaining: int | None) -> list[Job]:
        """Woken jobs, and the head of the queue as far as it may pass the door.

        Whether the door is shut is known before any job is looked for.
        """
        woken = tx.woken(ROUND_JOBS)
        free = free_slots(door)
        room = min(each for each in (free, remaining, ROUND_JOBS) if each is not None)
        if closed(door, tx.now()) is not None or room <= 0:
            return woken
        ready = tx.ready(room)
        if len(woken) == ROUND_JOBS:
            ready = [job for job in ready if job.order < woken[-1].order]
        return sorted([*woken, *ready], key=lambda job: job.order)

    def _fail_unreadable(self, tx: WriteTx) -> None:
        broken = dict(tx.unreadable())
        tx.fail_unreadable(list(broken), worker_id=self._worker_id)
        tx.add_events(
            (Event("failed", job_id, {"reason": error}) for job_id, error in broken.items()),
            actor=self._worker_id,
        )

    def _apply(self, tx: WriteTx, planned: Sequence[Planned], door: Door) -> list[Claim]:
        starts: list[tuple[Job, Claim]] = []
        filings: list[Filing] = []
        used = set(tx.slots().used)
        for each in planned:
            match each.decision:
                case Start(borrows):
                    claim = self._claim(tx, each.job, used, borrows, probe=door.trouble is not None)
                    prepared = self._prepare(tx, each.job, claim)
                    if prepared is None:
                        self._start(tx, starts)
                        return [claim for _, claim in starts]
                    if prepared:
                        starts.append((each.job, claim))
                case Hold():
                    filings.append(_filing(each.job, each.decision))
                case Block():
                    self._block(tx, each.job, each.decision)
                case _:
                    assert_never(each.decision)
        self._start(tx, starts)
        self._file(tx, filings, lending=bool(door.lenders))
        return [claim for _, claim in starts]

    def _claim(
        self, tx: WriteTx, job: Job, used: set[int], borrows: JobId | None, *, probe: bool
    ) -> Claim:
        slot = next(number for number in range(1, len(used) + 2) if number not in used)
        used.add(slot)
        return Claim(
            job_id=job.id,
            token=os.urandom(16).hex(),
            slot=slot,
            worker_id=self._worker_id,
            host_id=self._host.id,
            home=self._host.home,
            boot_id=self._host.boot_id,
            folder=self._folder_of(job.id),
            claimed_at=tx.now(),
            borrowed_from=borrows,
            probe=probe,
        )

    def _prepare(self, tx: WriteTx, job: Job, claim: Claim) -> bool | None:
        """Make the claim's files. False: the job cannot be started. None: the host cannot."""
        try:
            Evidence(claim.folder, claim.token).prepare(self._specify(job, claim))
        except DataError as error:
            self._fail_at_once(
                tx, job, claim, Outcome(Ending.DATA_ERROR, tx.now(), error=str(error))
            )
            return False
        except OSError as error:
            cause = f"cannot prepare {claim.folder}: {error.strerror or error}"
            if error.errno in HOST_ERRNOS:
                self._settler.host_failed(tx, HOST_ERRNOS[error.errno], cause)
                return None
            outcome = Outcome(Ending.SPAWN_ERROR, tx.now(), errno=error.errno, error=cause)
            self._fail_at_once(tx, job, claim, outcome)
            return False
        self.prepared.append(claim)
        return True

    def _fail_at_once(self, tx: WriteTx, job: Job, claim: Claim, outcome: Outcome) -> None:
        self._start(tx, [(job, claim)])
        self._settler.apply(tx, [(claim, Verdict(outcome, tree_gone=True))])

    def _start(self, tx: WriteTx, starts: Sequence[tuple[Job, Claim]]) -> None:
        tx.claim(starts)
        tx.add_events(
            (Event("running", job.id, {"slot": claim.slot}) for job, claim in starts),
            actor=self._worker_id,
        )
        for job, _ in starts:
            if job.locks:
                pass_on_shared(tx, job)

    def _file(self, tx: WriteTx, filings: Sequence[Filing], *, lending: bool) -> None:
        changed = [filing for filing in filings if not _stands_already(filing)]
        tx.file(changed)
        tx.add_events(
            (
                Event(
                    filing.status.value,
                    filing.job.id,
                    {"wait": filing.wait.kind.value, "detail": filing.wait.detail},
                )
                for filing in changed
                if _says_something_new(filing)
            ),
            actor=self._worker_id,
        )
        for filing in changed:
            if filing.job.locks and _lets_others_look(filing, lending=lending):
                give_up_locks(tx, filing.job)

    def _block(self, tx: WriteTx, job: Job, block: Block) -> None:
        wait = Wait(block.kind, block.detail)
        end_unstarted(tx, job, block.status, block.detail, wait=wait, actor=self._worker_id)


def _filing(job: Job, hold: Hold) -> Filing:
    return Filing(
        job=job,
        status=after(job.status, move_for(hold.shown)),
        stage=Stage.READY if hold.at_door else Stage.FILED,
        wait=hold.shown,
        topics=hold.topics(job),
        reserves=hold.reserves,
        wake_at=hold.until if not hold.at_door else None,
    )


def _stands_already(filing: Filing) -> bool:
    """A job pulled from the head of the queue that goes back to where it stood."""
    job = filing.job
    return (
        job.stage is filing.stage is Stage.READY
        and job.status is filing.status
        and not filing.topics
    )


def _says_something_new(filing: Filing) -> bool:
    before = filing.job.wait
    return before is None or (before.kind, before.detail) != (
        filing.wait.kind,
        filing.wait.detail,
    )


def _lets_others_look(filing: Filing, *, lending: bool) -> bool:
    """Whether the next waiter for its locks should look: it objects elsewhere.

    At the door it still means to take them; but a lent slot may admit a later waiter although this
    one finds none.
    """
    if filing.wait.kind is WaitKind.LOCKS:
        return False
    return filing.stage is Stage.FILED or lending
