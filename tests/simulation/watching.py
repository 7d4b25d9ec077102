"""What must hold in every world, checked while it goes on and when it has come to rest.

It knows jobs by the events that their transactions left, and the outside by the world's own record,
so it shares no rule with the engine: who may start is worked out here once more.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from headway.core.artifacts import artifact_key
from headway.core.facts import Answer
from headway.core.model import Job, JobId, ProbeKind, Question, shown
from headway.core.plan import Decision, Hold, Start, decide
from headway.core.reservations import Reservation
from headway.core.states import TERMINAL, WAITING, Status
from headway.jobs.facts import count_capacity, gather
from headway.store.new_jobs import Event
from headway.store.store import Store
from headway.store.transaction import ReadTx
from headway.testing.clock import NEW_YEAR
from headway.worker.probes import FRESH_SECONDS
from simulation.queueing import READY, about

if TYPE_CHECKING:
    from simulation.machines import Machine, Process
    from simulation.world import World

ENDED = {status.value for status in TERMINAL}
WAITS = {status.value for status in WAITING}
AT_ONCE = 10_000
BUDGET = 1 << 40


class Violation(AssertionError):  # noqa: N818  not an error of the program's own
    """A rule was broken; the message names the job and the rule."""


class Watch:
    def __init__(self, world: "World", store: Store, aside: Store) -> None:
        """`aside` is the same store, to be read in the middle of a transaction."""
        self._world = world
        self._store = store
        self._aside = aside
        self.seq = 0
        self.jobs: dict[JobId, Job] = {}  # as they were submitted
        self.state: dict[JobId, str] = {}
        self.last: dict[JobId, JobId] = {}  # of each chain
        self.running: set[JobId] = set()
        self.active: dict[JobId, None] = {}  # in the order of their submission
        self.pending: dict[JobId, None] = {}  # those that ask for a person's decision
        self._approved: set[JobId] = set()
        self._markers: dict[str, set[JobId]] = {}
        self._withdrawn: dict[str, set[JobId]] = {}  # artifact: chains
        self._rewinding: dict[JobId, set[JobId]] = {}  # root: chains
        self.physical: dict[JobId, str] = {}  # the token of each job's one execution
        self.calls: dict[str, tuple[str, ...]] = {}  # direct ones that have a slot: what they hold
        self._modes: dict[int, str] = {}  # of groups
        self._members: dict[int, dict[JobId, int]] = {}  # of groups: chains and their turns
        self.ends: dict[str, int] = {}
        self._ended_at: dict[JobId, float] = {}  # chains
        self.digest = 0

    # -- while it goes on ----------------------------------------------------------------------

    def look(self) -> None:
        """Take in what was committed since the last look."""
        with self._store.read() as tx:
            events = tx.events.since(self.seq, AT_ONCE)
            if not events:
                return
            self.seq = events[-1].seq
            new = [each.job_id for each in events if each.kind == "submitted"]
            rows = tx.jobs.by_id([each for each in new if each is not None]) if new else {}
            held = tx.claims.locks_held()
            calls = {each.name: each for each in tx.reservations.all()}
        for event in events:
            self.digest = hash((self.digest, event.seq, _number(event.kind), event.job_id or 0))
            if event.job_id is None:
                self._beside(event, calls)
                continue
            if event.kind == "submitted":
                self._submitted(rows[event.job_id])
            else:
                self._happened(event, self.jobs[event.job_id])
        self._locks_exclude((each.key, each.job_id, each.mode) for each in held)

    def _submitted(self, job: Job) -> None:
        self._demand(job.id not in self.jobs, job.id, "was submitted twice")
        self.jobs[job.id] = job
        self.state[job.id] = "queued"
        self.last[job.chain] = job.id
        self.active[job.id] = None
        if job.group_id is not None:
            members = self._members.setdefault(job.group_id, {})
            members[job.chain] = job.sequence_number or 0
        if job.approval is not None:
            if job.approval.state == "approved":  # by a person, for the attempt before
                self._approved.add(job.id)
            else:
                self.pending[job.id] = None

    def _happened(self, event: Event, job: Job) -> None:
        kind, before = event.kind, self.state[job.id]
        if kind == "running":
            self._demand(before in WAITS, job.id, f"started while it was {before}")
            self._may_start(job)
            self.running.add(job.id)
            self._within_limits(job.id, (f"resource:{each}" for each in job.resources))
        elif kind in ENDED:
            self._demand(before not in ENDED, job.id, f"was {before} and became {kind}")
            self.active.pop(job.id, None)
            self.pending.pop(job.id, None)
            self.ends[kind] = self.ends.get(kind, 0) + 1
            self._ended_at[job.chain] = self._world.clock.monotonic()
            if kind == "blocked_by_dependency":
                self._may_be_blocked(job, str(event.data["reason"]))
            if kind == "succeeded":
                for chains in self._withdrawn.values():
                    chains.discard(job.chain)
        elif kind == "unclaimed":
            self._demand(before == "running", job.id, f"was taken back while it was {before}")
            self._demand(job.id not in self.physical, job.id, "was taken back though it had begun")
            kind = "queued"
        elif kind in WAITS:
            self._demand(before in WAITS, job.id, f"waits though it was {before}")
        else:
            self._told(event, job)
            return
        if kind != "running":
            self.running.discard(job.id)
        self.state[job.id] = kind

    def _told(self, event: Event, job: Job) -> None:
        match event.kind:
            case "approved":
                self._approved.add(job.id)
                self.pending.pop(job.id, None)
            case "rejected":
                self.pending.pop(job.id, None)
            case "published":
                self._markers.setdefault(event.data["artifact"], set()).add(job.id)
            case "retried" if "root" in event.data:
                self._rewind(event, job)
            case "rewound":
                self._rewind(event, job)
                self._approved.discard(job.id)
                self.jobs[job.id] = job._replace(not_before=None)
                if job.approval is not None:
                    self.pending[job.id] = None
                self.state[job.id] = "queued"
            case "withdrawn":
                self._withdraw(event.data["artifact"], self._rewinding[job.id])
            case "missed_wake_up":
                self._demand(False, job.id, "was found by the sweep alone")

    def _rewind(self, event: Event, job: Job) -> None:
        root = int(str(event.data["root"]).removeprefix("job-"))
        self._rewinding.setdefault(root, set()).add(job.chain)

    def _withdraw(self, artifact: str, chains: set[JobId]) -> None:
        markers = self._markers.get(artifact, set())
        markers -= {each for each in markers if self.jobs[each].chain in chains}
        makers = {
            chain
            for chain in chains
            if any(_key(self.jobs[chain], text) == artifact for text in self.jobs[chain].produces)
        }
        self._withdrawn.setdefault(artifact, set()).update(makers)

    def _beside(self, event: Event, calls: Mapping[str, Reservation]) -> None:
        """Of no job: a group is made, a direct call has a slot from now on, or no more."""
        name, group = str(event.data.get("id")), str(event.data.get("group"))
        if event.kind == "group_created":
            self._modes[int(group.removeprefix("group-"))] = event.data["mode"]
        elif event.kind == "granted":
            self.calls[name] = calls[name].occupies
            self._within_limits(0, calls[name].occupies)
        elif event.kind == "expired":
            self.calls.pop(name, None)

    def _within_limits(self, job_id: JobId, keys: Iterable[str]) -> None:
        """Who has started last is not beyond a limit."""
        most = self._world.max_active
        count = len(self.running) + len(self.calls)
        self._demand(most <= 0 or count <= most, job_id, "is one too many")
        for key in keys:
            word = key.removeprefix("resource:")
            own = sum(word in self.jobs[each].resources for each in self.running)
            own += sum(key in held for held in self.calls.values())
            self._demand(own <= self._world.limits[word], job_id, f"is one too many of {word}")

    # -- who may start -------------------------------------------------------------------------

    def _may_start(self, job: Job) -> None:
        world = self._world
        for each in job.after:
            last = self.last[self.jobs[each].chain]
            self._demand(self.state[last] == "succeeded", job.id, f"started before {shown(last)}")
        due = job.not_before is None or job.not_before <= world.clock.now()
        self._demand(due, job.id, "started before its time")
        for text in job.needs:
            self._demand(self._is_there(job, text), job.id, f"started without {text}")
        if job.pinned_head is not None:
            pin = job.pinned_head
            question = Question(ProbeKind.BRANCH, job.repo or "", pin.branch)
            seen = world.recently(question, lambda answer: answer.found == pin.oid)
            self._demand(seen, job.id, "started on another head")
        for text in job.preconditions:
            self._demand(self._held(job, text), job.id, f"started though {text} did not hold")
        if job.subject is not None:
            ready = world.recently(about(job.subject), lambda answer: answer == READY)
            self._demand(ready, job.id, "started though its subject was blocked")
        if job.group_id is not None and self._modes[job.group_id] == "sequential":
            for chain, turn in self._members[job.group_id].items():
                ended = self.state[self.last[chain]] in ENDED
                in_turn = ended or turn >= (job.sequence_number or 0)
                self._demand(in_turn, job.id, f"started before its turn, after {shown(chain)}")
        asked = job.approval is not None
        self._demand(not asked or job.id in self._approved, job.id, "started unapproved")

    def _is_there(self, job: Job, text: str) -> bool:
        key = _key(job, text)
        if text.startswith("custom:"):
            return bool(self._markers.get(key))
        if text.startswith("command_patch:"):
            made_by = int(text.removeprefix("command_patch:job-"))
            return self.state[self.last[self.jobs[made_by].chain]] == "succeeded"
        if self._withdrawn.get(key):
            return False
        kind, _, name = text.partition(":")
        question = _question(job, kind, name)
        return self._world.recently(question, lambda answer: answer.found is not None)

    def _held(self, job: Job, text: str) -> bool:
        repo = job.repo or ""
        if text == "clean_worktree":
            clean = Question(ProbeKind.CLEAN, repo)
            return self._world.recently(clean, lambda answer: answer == Answer())
        question = Question(ProbeKind.CONDITION, repo, text.removeprefix("custom:"))
        return self._world.recently(question, lambda answer: answer.found is not None)

    def _may_be_blocked(self, job: Job, reason: str) -> None:
        """Not for want of something that was there before the last who could make it had ended."""
        text = reason.removeprefix("missing ").removeprefix("dependency failed for ")
        kind, _, name = text.partition(":")
        if kind not in ("file", "target_branch") or self._withdrawn.get(_key(job, text)):
            return
        history = self._world.facts.get(_question(job, kind, name), [(0.0, Answer())])
        there = history[-1][1].found is not None
        makers = {each.chain for each in self.jobs.values() if text in each.produces}
        ends = [self._ended_at[each] for each in makers if each in self._ended_at]
        late = bool(ends) and history[-1][0] < max(ends)
        self._demand(not (there and late), job.id, f"is blocked though {text} is there")

    def process_started(self, machine: "Machine", process: "Process") -> None:
        """The command itself begins, whatever the store says."""
        job_id = process.job_id
        self._demand(job_id not in self.physical, job_id, "ran twice")
        self.physical[job_id] = process.token
        wanted = {lock.key: lock.mode for lock in self._world.locks_of(job_id)}
        for each in self._world.machines:
            for other in each.processes.values():
                if not other.tree_lives or other.token == process.token:
                    continue
                for lock in self._world.locks_of(other.job_id):
                    excludes = lock.key in wanted and lock.conflicts_with(wanted[lock.key])
                    self._demand(not excludes, job_id, f"runs with {lock.key} beside its holder")

    def _locks_exclude(self, held: Iterable[tuple[str, JobId, Any]]) -> None:
        holders: dict[str, list[tuple[JobId, Any]]] = {}
        for key, job_id, mode in held:
            holders.setdefault(key, []).append((job_id, mode))
        for key, those in holders.items():
            alone = len(those) == 1 or all(mode == "shared" for _, mode in those)
            self._demand(alone, those[0][0], f"holds {key} together with {those[1:]}")

    # -- at rest -------------------------------------------------------------------------------

    def at_rest(self) -> None:
        """Nothing has changed for a while: nobody waits who need not, and all say why."""
        self.look()
        with self._store.read() as tx:
            active = tx.jobs.active()
            for job in active:
                self._demand(self.state[job.id] == job.status, job.id, "has no event of its status")
                if job.status is Status.RUNNING:
                    continue
                decision, asked = self._decided(tx, job)
                if not self._world.changed_lately(asked):
                    waits = isinstance(decision, Hold)
                    self._demand(waits, job.id, f"waits though it need not: {decision}, {job}")
                self._demand(job.wait is not None, job.id, f"does not say why it waits: {job}")
                self._demand(bool(job.waited_on), job.id, "has no history of its waits")

    def _decided(self, tx: ReadTx, job: Job) -> tuple[Decision, tuple[Question, ...]]:
        """The decision after a look at all that it depends on, and what was looked at."""
        state = count_capacity(tx, self._world.machines[0].name, log_budget=BUDGET)
        queues = ("", job.queue)
        answers: dict[Question, Answer] = {}
        while True:
            facts = gather(tx, [job], state, queues, home=self._world.home, answers=answers)
            decision = decide(job, facts)
            asks = () if isinstance(decision, Start) else decision.asks
            unseen = [each for each in asks if each not in answers]
            if not unseen:
                return decision, tuple(answers)
            answers |= self._world.look(unseen)

    def finished(self) -> None:
        """Everything has ended, nothing is left over, and what is recorded is what happened."""
        self.look()
        for left in self.active:
            self._demand(False, left, "never ends")
        with self._store.read() as tx:
            for what, rows in (
                ("claims", tx.claims.live()),
                ("locks", tx.claims.locks_held()),
                ("trees", tx.claims.unproven()),
                ("waits", tx.claims.lock_waiters(1)),
                ("direct calls", tx.reservations.all()),
            ):
                self._demand(not rows, 0, f"{what} are left: {rows}")
            ids = list(self.jobs)
            for first in range(0, len(ids), AT_ONCE):
                self._recorded(tx, ids[first : first + AT_ONCE])

    def _recorded(self, tx: ReadTx, ids: list[JobId]) -> None:
        runs = tx.jobs.runs(ids)
        for job_id, job in tx.jobs.by_id(ids).items():
            self._demand(job.status in TERMINAL, job_id, f"is {job.status}")
            self._demand(job.status == self.state[job_id], job_id, "has changed after its end")
            ran = job_id in self.physical
            self._demand(not ran or job_id in runs, job_id, "ran and has no run")
            self._demand(
                job.status is not Status.SUCCEEDED or ran, job_id, "succeeded and never ran"
            )
            blocked = job.status in (Status.BLOCKED_BY_APPROVAL, Status.BLOCKED_BY_DEPENDENCY)
            self._demand(not (blocked and ran), job_id, "is blocked and ran")

    def _demand(self, holds: bool, job_id: JobId, rule: str) -> None:
        if not holds:
            raise Violation(f"{shown(job_id)} {rule}; {self.story_of(job_id)}")

    def story_of(self, job_id: JobId) -> str:
        """All that is on record about a job, for whoever looks for the mistake."""
        with self._aside.read() as tx:
            events = [
                f"{(each.at - NEW_YEAR) / 1e6:.3f} {each.kind} {dict(each.data)}"
                for each in tx.events.of_job(job_id)
            ]
        return f"seed {self._world.seed}; {self.jobs.get(job_id)}; {events}"


def recently(
    history: list[tuple[float, Answer]], now: float, wanted: Callable[[Answer], bool]
) -> bool:
    """Whether the answer was so at any time within which a look counts as fresh."""
    for number in range(len(history) - 1, -1, -1):
        if wanted(history[number][1]):
            return True
        if history[number][0] < now - FRESH_SECONDS - 0.001:
            return False  # what stood before it had ended by then
    return False


def _question(job: Job, kind: str, name: str) -> Question:
    """Where an artifact of the outside is looked for."""
    if kind == "file":
        return Question(ProbeKind.FILE, name=name)
    return Question(ProbeKind.BRANCH, job.repo or "", name)


def _key(job: Job, text: str) -> str:
    return artifact_key(text, job.repo)


def _number(text: str) -> int:
    """Of a word, the same in every process, which `hash` is not."""
    return int.from_bytes(text.encode(), "big")
