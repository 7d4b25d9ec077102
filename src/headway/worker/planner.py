"""Start what may start. One call is one planning step inside the caller's write transaction.

It plans only woken jobs and, while slots are free, the head of the queue of ready ones. Starting,
blocking and parking jobs wakes others, so it goes on in rounds until none is left to plan or its
bound is reached. A claim's files are made before the claim commits.
"""

import errno
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple, assert_never

from headway.base.clock import SECOND
from headway.base.errors import DataError, HeadwayError, StoreError
from headway.base.home import Home
from headway.base.host import Host
from headway.core.capacity import (
    closed,
    free_slots,
    left_by_direct,
    limited_keys,
    room,
    with_taken,
)
from headway.core.dispatch import DispatchPlan
from headway.core.facts import Capacity, Facts, TaskView
from headway.core.gates.routes import OF_NODE
from headway.core.model import (
    EARLIER_LIVES,
    FUNCTION,
    FUNCTIONS,
    Block,
    Claim,
    Job,
    JobId,
    OrderKey,
    Question,
    Stage,
    Wait,
    WaitKind,
    shown_run,
)
from headway.core.plan import Batch, Decision, Hold, Planned, Start, decide, plan
from headway.core.policies import BUILT_IN, ENTRY, SLOT, ConcurrencyPolicy, keys_of, place_of
from headway.core.settle import HOST_ERRNOS, Ending, Judgement, Outcome, StillRuns, Verdict
from headway.core.states import Status
from headway.core.wait_words import LOOKING_AGAIN
from headway.functions.pool.calls import HostPool
from headway.jobs.dry_run import Probe, plan_pass
from headway.jobs.facts import Waiters, count_capacity, gather, tasks_elsewhere, waiters
from headway.jobs.lifecycle import end_unstarted, member_ended
from headway.jobs.locks import parked, pass_on_shared
from headway.jobs.waits import parking_of, says_something_new, stands_already, wait_event
from headway.store.new_jobs import Event
from headway.store.records import ROUND_JOBS
from headway.store.transaction import ReadTx, WriteTx
from headway.supervise.earlier import Earlier, earlier_start
from headway.supervise.evidence import Evidence
from headway.worker.probes import Probes
from headway.worker.settler import Settler
from headway.worker.tokens import tokens
from headway.workflows.roots import NodeValueError, owned_tree
from headway.workflows.values import filled

STEP_JOBS = 1000
SWEEP_JOBS = 100
NEAR, FAR = 1000, 10_000_000  # how deep among functions of other hosts our own are searched for
FAR_LOOK_EVERY = SECOND
LEAST_LOOKED_AT = 4  # at the head of the queue, where some may lack something else than a slot
_UNUSABLE = (
    *(DataError, AttributeError, LookupError, TypeError, ValueError),
    *(ArithmeticError, RecursionError),
)

Specify = Callable[[Job, Claim], dict[str, Any]]
# Starts jobs before the plan is made; how many, and whether any is left to plan.
StartFirst = Callable[[WriteTx, Capacity, int | None], tuple[int, bool]]
Strain = Callable[[Mapping[str, Any]], Wait | None]  # whether the host has enough to do already


class PlannedStep(NamedTuple):
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
        log_budget: int,
        home: Home,
        probes: Probes,
        queues: Sequence[str] = ("",),
        lease: int | None = None,
        pool: HostPool | None = None,
        start_first: StartFirst = lambda tx, capacity, limit: (0, True),
        policies: Sequence[ConcurrencyPolicy] = BUILT_IN,
        strain: Strain = lambda settings: None,
    ) -> None:
        """`queues` are those that this host serves; `lease` is for a store of several hosts: how
        long a claim stands without renewal. `policies` say what jobs take of the limits."""
        self._host = host
        self._worker_id = worker_id
        self._settler = settler
        self._specify = specify
        self._log_budget = log_budget
        self._home = home
        self._probes = probes
        self._lease = lease
        self._pool = pool
        self._start_first = start_first
        self.chosen: list[Claim] = []  # claims that hosts hold places for; without a commit, none
        self.queues = queues
        self.served: set[str] = set()  # targets that work was started for
        self._policies = policies
        self._strain = strain
        self._stood: set[JobId] = set()  # planned in this step, and left where they are parked
        self.look_again_at: int | None = None  # a rate that is used up has room then
        self.leaves_some = False  # ready functions that only other hosts know
        self._far_look_at = 0
        self.strained = False  # the host had enough to do when it was last measured
        self.blocked: list[JobId] = []  # by the last step
        self.prepared: list[Claim] = []  # claims whose files exist; without a commit they go
        self.restored: list[Claim] = []  # started before, and lost by the store; to be judged

    def begin(self) -> None:
        """A step begins; nothing of the last one is left to be undone."""
        self.prepared.clear()
        self.blocked.clear()
        self.chosen.clear()
        self.restored.clear()
        self.served.clear()

    def undo(self) -> None:
        """Its transaction was rolled back."""
        if self._pool is not None:
            self._pool.unchoose(self.chosen)
        for claim in self.prepared:
            with suppress(OSError):
                Evidence(claim.folder, claim.token).discard()

    def step(self, tx: WriteTx, *, limit: int | Batch | None = None) -> PlannedStep:
        """Plan until no job is left to plan, starting at most `limit` jobs. In a batch also
        those are decided that come after the last of these."""
        batch = limit if isinstance(limit, Batch) else None
        most = limit.left if isinstance(limit, Batch) else limit
        tx.waits.wake_due(tx.now(), STEP_JOBS)
        capacity = self.capacity(tx)
        if capacity.lenders:
            tx.waits.wake_chains(list(capacity.lenders))
        self._stood.clear()
        self.leaves_some = False
        started: list[Claim] = []
        calls, left = self._start_first(tx, capacity, most)
        if calls:
            capacity = self.capacity(tx)
        expected = self._probes.expected()
        looked_at = 0
        while left and looked_at < STEP_JOBS:
            kept = self._probes.expected() - expected
            remaining = None if most is None else max(0, most - calls - len(started) - kept)
            candidates, are_all = self._candidates(tx, capacity, remaining, looked_at)
            if tx.unreadable():
                self._fail_unreadable(tx)
                continue
            if not candidates:
                break
            looked_at += len(candidates)
            facts = self._gather(tx, candidates, capacity)
            if batch is None or remaining is None:
                planned = plan(candidates, facts, limit=remaining)
            else:
                planned = plan(candidates, facts, batch=batch._replace(left=remaining))
            if not planned:
                break
            begun = self._apply(tx, planned, facts.capacity)
            started += begun
            if are_all and len(begun) == len(planned) and _wake_nobody(tx, planned):
                break
            capacity = self.capacity(tx)
        times = [each.until for each in capacity.rates.values() if each.until is not None]
        self.look_again_at = min(times, default=None)
        if started or calls:
            tx.settings.note_dispatch(tx.now(), len(started) + calls)
        return PlannedStep(tuple(started), more=looked_at >= STEP_JOBS)

    def sweep(self, tx: WriteTx, before: int) -> list[Job]:
        """Look again at the longest waiting jobs; those that may start were missed by a wake-up."""
        waiting = tx.waits.stale(before, SWEEP_JOBS, self._served())
        if tx.unreadable():
            self._fail_unreadable(tx)
        capacity = self.capacity(tx)
        facts = self._gather(tx, waiting, capacity)
        again, missed = [], []
        for job in waiting:
            if self._probes.expects(job.id):
                continue  # what is kept for it is in use by that; it goes on with the answer
            decision = decide(job, facts)
            kinds = []
            if isinstance(decision, Hold):
                kinds = [wait.kind for wait in decision.waits]
                self._probes.take_over(decision.asks)
                if any(each not in facts.answers for each in decision.asks):
                    continue  # it has passed that gate before; only a probe could tell
            if job.wait is None or job.wait.kind not in kinds:
                again.append(job.id)
                if not _need_not_have_been_woken(job, decision):
                    missed.append(job)
        tx.waits.touch_checked([job.id for job in waiting])
        tx.waits.wake(again)
        tx.events.add((Event("missed_wake_up", job.id) for job in missed), actor=self._worker_id)
        return missed

    def capacity(self, tx: ReadTx) -> Capacity:
        capacity = count_capacity(
            tx,
            self._host.id,
            log_budget=self._log_budget,
            policies=self._policies,
            strain=self._strain(tx.settings.all()),
        )
        self.strained = capacity.strain is not None
        if self._probes.expected():
            kept = self._probes.kept_keys()
            slots = self._probes.expected() - kept.count(ENTRY)
            usage = with_taken(kept, capacity.usage)
            capacity = capacity._replace(running=capacity.running + slots, usage=usage)
        return capacity if self._pool is None else capacity._replace(places=self._pool.places())

    def _served(self) -> Sequence[str]:
        """The queues to plan now: that of functions, once it is known which there are."""
        known = self._pool is not None and self._pool.is_known
        return (*self.queues, FUNCTIONS) if known else self.queues

    def _gather(self, tx: ReadTx, jobs: Sequence[Job], capacity: Capacity) -> Facts:
        tasks = self._pool.view() if self._pool is not None else None
        if tasks is not None and self._lease is not None and _any_unknown(jobs, tasks):
            tasks = tasks_elsewhere(tx, self._host.id, tasks)
        return gather(
            tx,
            jobs,
            capacity,
            (*self.queues, FUNCTIONS),
            tasks,
            home=self._home,
            answers=self._probes.answers(),
        )

    def preview(self, tx: ReadTx, probing: Probe, *, batch: int) -> DispatchPlan:
        """What a pass would start now; changes nothing."""
        capacity, served = self.capacity(tx), self._served()
        return plan_pass(tx, capacity, served, home=self._home, probe=probing, batch=batch)

    def free_places(self, tx: ReadTx) -> int | None:
        """How many may start now by the caps, of slots and of places for entries of the jobs file;
        None: any number, or some in lent slots."""
        capacity = self.capacity(tx)
        if capacity.lenders:
            return None
        left = left_by_direct(capacity)
        if left is None:
            return 0
        slots = free_slots(left)
        return None if slots is None else slots + (room(ENTRY, left) or 0)

    def _candidates(
        self, tx: ReadTx, capacity: Capacity, remaining: int | None, looked_at: int
    ) -> tuple[list[Job], bool]:
        """The jobs to decide on, and whether no other could start now unless one of these wakes it.

        They are the woken jobs, the head of the queue as far as there is capacity, and of the jobs
        that wait for a limit as many as it has room for. Where no slot is free, entries of the jobs
        file may still start. Whether nothing may start is known before any job is read. The more
        jobs were read in vain, the more are read together: each is parked once under what it lacks.
        """
        woken = tx.waits.woken(ROUND_JOBS, self._served())
        left = left_by_direct(capacity)
        if left is None or closed(capacity, tx.now()) is not None:
            return woken, len(woken) < ROUND_JOBS
        capacity = left
        slots = _least(free_slots(capacity), remaining, ROUND_JOBS)
        most = max(slots, LEAST_LOOKED_AT, min(looked_at, ROUND_JOBS)) if slots > 0 else 0
        ready = tx.waits.ready(most, self.queues) if most else []
        woken_end = woken[-1].order if len(woken) == ROUND_JOBS else None
        ready_end = ready[-1].order if ready and len(ready) == most else None
        are_all = woken_end is None and ready_end is None
        if FUNCTIONS in self._served() and capacity.places and most:
            ready += self._ready_calls(tx, min(slots, capacity.places))
        if woken_end is not None:
            ready = [job for job in ready if job.order < woken_end]
        if tx.limits.waited_for():
            entries = _least(room(ENTRY, capacity), remaining, ROUND_JOBS)
            asked = {SLOT: slots, ENTRY: entries}
            waiting = waiters(tx, capacity, self._served(), asked, besides=self._stood)
            ready = _in_order([*woken, *ready], waiting, capacity, woken_end, ready_end)
            return ready, are_all and not waiting.known_to
        return sorted([*woken, *ready], key=lambda job: job.order), are_all

    def _ready_calls(self, tx: ReadTx, limit: int) -> list[Job]:
        """Functions that lack only capacity. Those that only other hosts know stay in the queue.
        Those behind them are found: near the head always, and further back once in a while, for
        the others commit often."""
        ready = tx.waits.ready(limit, (FUNCTIONS,))
        own = self._pool.view() if self._pool is not None else None
        if own is None or self._lease is None or not _any_unknown(ready, own):
            return ready
        others = set(tasks_elsewhere(tx, self._host.id, own).elsewhere) - set(own.names)
        if not others:
            return ready
        self.leaves_some = True
        far = tx.now() >= self._far_look_at
        if far:
            self._far_look_at = tx.now() + FAR_LOOK_EVERY
        return tx.calls.ready_besides(limit, others, FAR if far else NEAR)

    def _fail_unreadable(self, tx: WriteTx) -> None:
        broken = dict(tx.unreadable())
        tx.jobs.fail_unreadable(list(broken), worker_id=self._worker_id)
        tx.events.add(
            (Event("failed", job_id, {"reason": error}) for job_id, error in broken.items()),
            actor=self._worker_id,
        )
        for job in tx.jobs.running(list(broken)).values():  # what is certain about each
            if job.group_id is not None:
                member_ended(tx, job, Status.FAILED, actor=self._worker_id)

    def _apply(self, tx: WriteTx, planned: Sequence[Planned], capacity: Capacity) -> list[Claim]:
        """Write the decisions of one round: starts, then waits, then ends.

        In this order, because an end wakes the jobs that wait for it: they must be parked by then.
        """
        starts: list[tuple[Job, Claim]] = []
        holds: list[tuple[Job, Hold]] = []
        blocks: list[tuple[Job, Block]] = []
        broken: list[tuple[Job, Claim, Judgement]] = []
        used = tx.claims.slots().used
        free = {  # below zero are the numbers of places that are no slots
            SLOT: (number for number in count(1) if number not in used),
            ENTRY: (number for number in count(-1, -1) if number not in used),
        }
        for each in planned:
            match each.decision:
                case Start(borrows):
                    probe, slot = capacity.trouble is not None, next(free[place_of(each.job)])
                    if each.job.type == FUNCTION and self._pool is not None:
                        host = self._pool.choose()
                        claim = self._claim(tx, each.job, slot, borrows, probe, host.folder)
                        params = self._call_params(tx, each.job, claim)
                        if isinstance(params, Outcome):
                            broken.append((each.job, claim, Verdict(params, tree_gone=True)))
                            continue
                        claim = host.take(claim, each.job, params)
                        self.chosen.append(claim)
                        starts.append((each.job, claim))
                        continue
                    folder = self._home.job(each.job.id)
                    claim = self._claim(tx, each.job, slot, borrows, probe, folder)
                    earlier = _earlier(claim)
                    if earlier is not None and earlier.lives:
                        broken.append((each.job, claim, _still_runs(earlier)))
                        continue
                    if earlier is not None and earlier.created_at == each.job.created_at:
                        self._restore(tx, each.job, _as_started(claim, earlier))
                        continue
                    outcome = self._prepare(tx, each.job, claim, [job for job, _ in starts])
                    if outcome is None:
                        starts.append((each.job, claim))
                    elif outcome.errno in HOST_ERRNOS:
                        self._settler.host_failed(
                            tx, HOST_ERRNOS[outcome.errno], outcome.error or ""
                        )
                        break  # the rest is planned again, with nothing allowed to start
                    else:
                        broken.append((each.job, claim, Verdict(outcome, tree_gone=True)))
                case Hold():
                    self._probes.give_hope(each.job.id)
                    holds.append((each.job, each.decision))
                case Block():
                    doubtful = self._probes.doubt(each.job.id, each.decision.asks)
                    if doubtful:
                        holds.append((each.job, _look_again(each.job, each.decision, doubtful)))
                    else:
                        blocks.append((each.job, each.decision))
                case _:
                    assert_never(each.decision)
        self._start(tx, starts)
        self._park(tx, holds, capacity)
        for job, claim, judgement in broken:
            self._start(tx, [(job, claim)])
            self._settler.apply(tx, [(claim, judgement)])
        for job, block in blocks:
            self._block(tx, job, block)
        return [claim for _, claim in starts]

    def _claim(
        self,
        tx: WriteTx,
        job: Job,
        slot: int,
        borrows: JobId | None,
        probe: bool,
        folder: str,
    ) -> Claim:
        now = tx.now()
        return Claim(
            job_id=job.id,
            token=tokens(now, 1)[0],
            slot=slot,
            worker_id=self._worker_id,
            host_id=self._host.id,
            home=self._host.home,
            boot_id=self._host.boot_id,
            folder=folder,
            claimed_at=now,
            borrowed_from=borrows,
            probe=probe,
            occupies=keys_of(job, self._policies),
            lease_until=now + self._lease if self._lease is not None else None,
        )

    def _prepare(
        self, tx: WriteTx, job: Job, claim: Claim, beside: Sequence[Job]
    ) -> Outcome | None:
        """Make the claim's files; an outcome says why it cannot be started. Whatever is wrong with
        one job, and with the files that it names, ends no step; what ails the store does."""
        try:
            if job.workflow_run is not None:
                job = filled(tx, job, self._home, beside)
                tree = owned_tree(job, self._home)
                if tree is not None:  # before anything of it exists
                    tx.graph.own_worktrees([tree])
            # By number and birth of the job it is known whose start this was.
            spec = {**self._specify(job, claim), "created_at": job.created_at}
            Evidence(claim.folder, claim.token).prepare(spec)
        except NodeValueError as error:
            return Outcome(Ending.DATA_ERROR, claim.claimed_at, error=str(error))
        except _UNUSABLE as error:
            cause = f"the record of job-{job.id} cannot be used: {error}"
            return Outcome(Ending.DATA_ERROR, claim.claimed_at, error=cause)
        except StoreError:
            raise
        except HeadwayError as error:
            return Outcome(
                Ending.SPAWN_ERROR, claim.claimed_at, errno=errno.ENOENT, error=str(error)
            )
        except OSError as error:
            cause = f"cannot prepare {claim.folder}: {error.strerror or error}"
            return Outcome(
                Ending.SPAWN_ERROR, claim.claimed_at, errno=error.errno or 0, error=cause
            )
        self.prepared.append(claim)
        return None

    def _call_params(self, tx: ReadTx, job: Job, claim: Claim) -> Mapping[str, Any] | Outcome:
        """What a host is given of a call; an outcome says why it cannot be made."""
        params = job.params if job.workflow_run is None else self._filled_params(tx, job, claim)
        if job.retry_of is None or isinstance(params, Outcome):
            return params
        steps = tx.steps.of(job.chain, job.node_pass)
        return {**params, "steps": steps} if steps else params

    def _filled_params(self, tx: ReadTx, job: Job, claim: Claim) -> Mapping[str, Any] | Outcome:
        try:
            params = dict(filled(tx, job, self._home).params)
        except NodeValueError as error:
            return Outcome(Ending.DATA_ERROR, claim.claimed_at, error=str(error))
        except StoreError:
            raise
        except (HeadwayError, *_UNUSABLE) as error:
            cause = f"the record of job-{job.id} cannot be used: {error}"
            return Outcome(Ending.DATA_ERROR, claim.claimed_at, error=cause)
        del params[OF_NODE]
        return {**params, "node": [shown_run(job.workflow_run or 0), job.node, job.node_pass]}

    def _restore(self, tx: WriteTx, job: Job, claim: Claim) -> None:
        """It ran already, under a claim that the store has lost: what became of that is what became
        of the job. It is not run again."""
        tx.claims.begin([(job, claim)])
        data = {"slot": claim.slot, "token": claim.token[:8]}
        tx.events.add([Event("claim_restored", job.id, data)], actor=self._worker_id)
        self.restored.append(claim)

    def _start(self, tx: WriteTx, starts: Sequence[tuple[Job, Claim]]) -> None:
        tx.claims.begin(starts)
        tx.events.add(
            (Event("running", job.id, {"slot": claim.slot}) for job, claim in starts),
            actor=self._worker_id,
        )
        rated = [(job, claim) for job, claim in starts if job.rates]
        if rated:
            tx.limits.note_starts(rated)
        for job, _ in starts:
            if job.locks:
                pass_on_shared(tx, job)
            if job.target is not None:
                self.served.add(job.target)

    def _park(self, tx: WriteTx, holds: Sequence[tuple[Job, Hold]], capacity: Capacity) -> None:
        self._stood |= {job.id for job, hold in holds if _waits_on(job, hold)}
        holds = [(job, hold) for job, hold in holds if job.id not in self._stood]
        changed = [
            (parking, hold)
            for parking, hold in ((parking_of(job, hold), hold) for job, hold in holds)
            if not stands_already(parking)
        ]
        for job, hold in holds:
            if hold.expected:
                self._probes.expect(job.id, hold.asks, limited_keys(job, capacity))
            else:
                self._probes.want(hold.asks)
        tx.waits.park([parking for parking, _ in changed])
        tx.events.add(
            (
                wait_event(parking)
                for parking, hold in changed
                if says_something_new(parking) and not hold.expected
            ),
            actor=self._worker_id,
        )
        for parking, hold in changed:
            if parking.job.locks:
                parked(tx, parking.job, hold, parking.stage, lent=bool(capacity.lenders))

    def _block(self, tx: WriteTx, job: Job, block: Block) -> None:
        self.blocked.append(job.id)
        wait = Wait(block.kind, block.detail)
        end_unstarted(
            tx,
            job,
            block.status,
            block.detail,
            wait=wait,
            unreached=block.unreached,
            actor=self._worker_id,
        )


def _any_unknown(jobs: Sequence[Job], tasks: TaskView) -> bool:
    calls = (job for job in jobs if job.type == FUNCTION)
    return any(job.params.get("task") not in tasks.names for job in calls)


def _earlier(claim: Claim) -> Earlier | None:
    """A start of the job that the store has lost. Errors of its folder are found on use."""
    try:
        return earlier_start(claim.folder, claim.token)
    except OSError:
        return None


def _still_runs(earlier: Earlier) -> StillRuns:
    pid = earlier.started.supervisor_pid if earlier.started is not None else 0
    who = f"supervisor {pid}, " if pid else ""
    return StillRuns(f"{EARLIER_LIVES} ({who}claim {earlier.evidence.token[:8]})")


def _as_started(claim: Claim, earlier: Earlier) -> Claim:
    claim = claim._replace(token=earlier.evidence.token, probe=False)
    if earlier.started is None:
        return claim
    began = min(claim.claimed_at, earlier.started.started_at or claim.claimed_at)
    return claim._replace(boot_id=earlier.started.boot_id, claimed_at=began)


def _wake_nobody(tx: ReadTx, planned: Sequence[Planned]) -> bool:
    """Plain starts: no lock is taken that others wait for, nothing ends, nothing is parked
    elsewhere."""
    if not all(isinstance(each.decision, Start) for each in planned):
        return False
    return not tx.waits.are_locks_contended() or not any(each.job.locks for each in planned)


def _least(*bounds: int | None) -> int:
    return min(each for each in bounds if each is not None)


def _in_order(
    jobs: Sequence[Job],
    waiting: Waiters,
    capacity: Capacity,
    woken_end: OrderKey | None,
    ready_end: OrderKey | None,
) -> list[Job]:
    """The candidates together with the jobs that wait for limits, without any that might pass a job
    that needs the same. There may be more of those behind the last that was read of either. In the
    queue for slots there is no entry of the jobs file, and none of these waits for it."""
    both = {job.id: job for job in (*waiting.jobs, *jobs)}
    ends = {
        False: min((each for each in (woken_end, ready_end) if each is not None), default=None),
        True: woken_end,
    }
    left = []
    for job in both.values():
        end = ends[job.is_entry]
        behind = end is not None and job.order > end and bool(limited_keys(job, capacity))
        if not behind and not waiting.go_before(job, capacity):
            left.append(job)
    return sorted(left, key=lambda job: job.order)


def _waits_on(job: Job, hold: Hold) -> bool:
    """A job that was parked under a limit, and has room there, but others took the last slot: it
    stays where it is, and is found again when there is both."""
    return job.stage is Stage.PARKED and hold.for_capacity and len(hold.waits) == 1


def _look_again(job: Job, block: Block, asks: tuple[Question, ...]) -> Hold:
    """It seems to be without hope; the job that gave it hope may have just ended."""
    known = job.wait is not None and job.wait.kind is block.kind
    detail = job.wait.detail if job.wait is not None and known else LOOKING_AGAIN
    return Hold((Wait(block.kind, detail, topics=tuple(each.topic for each in asks), asks=asks),))


def _need_not_have_been_woken(job: Job, decision: Decision) -> bool:
    """The outside has changed, which is looked at when it is the job's turn; or what it lacked is
    there, but a job before it means to take it and waits for capacity."""
    if not isinstance(decision, Hold):
        return False
    was = job.wait.kind if job.wait is not None else None
    if was in (WaitKind.LOCKS, WaitKind.CAPACITY, WaitKind.RATE) and decision.for_capacity:
        return True
    return bool(decision.asks)
