"""What happens to a world from outside: people who submit, cancel and decide, and repositories,
files and conditions that change under the jobs."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from headway.base.errors import ConflictError
from headway.client import Client
from headway.core.facts import Answer
from headway.core.model import (
    Job,
    JobId,
    JobSpec,
    Lock,
    LockMode,
    PinnedHead,
    ProbeKind,
    Question,
    RetryPolicy,
    shown,
)
from headway.jobs import approvals as approving
from headway.jobs import artifacts as publishing
from headway.jobs import retry as rewinding
from headway.jobs.context import Context
from headway.jobs.settings import Config
from headway.store.store import Store
from simulation.machines import Fate, Process
from simulation.queueing import Queueing

if TYPE_CHECKING:
    from simulation.world import World

MS = 1000
SECOND = 1_000_000
REPOS = ("/sim/one", "/sim/two")
BRANCHES = ("main", "topic")
COMMITS = tuple(letter * 40 for letter in "abc")
CONDITIONS = ("open", "green")
CLEAN, DIRTY = Answer(), Answer("a.txt")
MODES = tuple(LockMode)


@dataclass(frozen=True, slots=True)
class Profile:
    """What sort of world it is."""

    max_active: int
    batch: int  # the most that is submitted at once
    keys: int  # how many locks there are
    memory: int  # jobs that people still remember
    linked: float  # how many jobs come after others
    needy: float  # or need what others make
    gated: float  # or look at the outside, or ask a person
    locked: float
    fails: float
    crashes: float  # at each point that a worker passes
    lost_hints: float
    failing_looks: float
    seconds: float  # that most processes take at most
    beat: int  # microseconds; processes end at whole multiples of it
    latency: float  # seconds until a worker that was woken steps
    share: int  # one in how many of the jobs there are; those that go one by one take long
    missing_producer: str
    limited: float  # how many jobs need something that is limited, or are about a work item
    units: int  # how many jobs may have one of these at a time

    @classmethod
    def drawn(cls, rng: Random) -> "Profile":
        rough = rng.random() < 0.5
        fine = rng.random() < 0.1
        return cls(
            max_active=rng.choice((1, 3, 20) if fine else (100, 1000)),
            batch=rng.choice((3, 30) if fine else (200, 600)),
            keys=4 if fine else 100,
            memory=60 if fine else 600,
            linked=rng.choice((0.1, 0.4, 0.8)),
            needy=rng.choice((0.0, 0.1, 0.3)),
            gated=rng.choice((0.0, 0.03, 0.2)),
            locked=rng.choice((0.0, 0.1, 0.4)),
            fails=rng.choice((0.0, 0.05, 0.2)),
            crashes=rng.choice((0.002, 0.01)) if rough else 0.0,
            lost_hints=rng.choice((0.0, 0.2, 1.0)) if rough else 0.0,
            failing_looks=rng.choice((0.0, 0.1)) if rough else 0.0,
            seconds=rng.choice((0.05, 1.0, 5.0)),
            beat=rng.choice((1 * MS, 50 * MS)) if fine else 500 * MS,
            latency=rng.choice((0.0, 0.01)) if fine else 0.02,
            share=5 if fine else 1,
            missing_producer=rng.choice(("block", "wait")),
            limited=rng.choice((0.0, 0.2, 0.6)),
            units=rng.choice((1, 2) if fine else (30, 200)),
        )

    def fate(self, rng: Random, *, noise: bool) -> Fate:
        fate = Fate(seconds=rng.randrange(1, 11) * self.seconds / 10)
        if rng.random() < self.fails:
            fate.code = rng.choice((1, 2))
            fate.signal = rng.choice((None, None, "SIGSEGV"))
        if noise and self.crashes and rng.random() < 0.03:
            sort = rng.randrange(4)
            fate.killed = sort == 0
            fate.spawn_errno = rng.choice((2, 13, 12)) if sort == 1 else None
            fate.tree_stays = rng.choice((0.5, 3.0)) if sort >= 2 else 0.0
            fate.deaf = rng.choice((0.0, 5.0))
        return fate


class People:
    def __init__(self, world: "World", store: Store, jobs: int) -> None:
        self._world = world
        self._rng = world.rng
        self._left = jobs
        self._recent: list[JobId] = []
        self.submitted = 0
        self.gone = False
        self._callers = [self._caller(worker, store) for worker in world.workers]
        self._acts: list[tuple[int, Callable[[], None]]] = [
            (12, self._submit),
            (4, self._change_the_outside),
            (3, self._decide),
            (2, self._cancel),
            (2, self._retry),
            (1, self._set_max_active),
            (1, self._pause),
        ]
        self._queueing = Queueing(world, self._callers[0], self._recent)
        self._acts += self._queueing.acts

    def _caller(self, worker: Any, store: Store) -> Client:
        """One whose wake-ups may be lost, as the world has it."""

        def wake(word: bytes | None) -> bool:
            self._world.hint()
            return True

        return Client(
            Context(
                worker.home,
                Config({"worker.autostart": False}),
                store,
                self._world.clock,
                environ={},
                actor="ann",
                host=worker.host,
                wake=wake,
            )
        )

    def begin(self) -> None:
        profile = self._world.profile
        first = self._callers[0]
        first.set_setting("scheduler.missing_producer", profile.missing_producer)
        self._to_max_active(profile.max_active)
        self._queueing.begin()
        for repo in REPOS:
            self._world.becomes(Question(ProbeKind.CLEAN, repo), CLEAN)
            for branch in BRANCHES:
                self._world.becomes(Question(ProbeKind.BRANCH, repo, branch), Answer(COMMITS[0]))
        self._world.later(0.0, self._act)

    def _act(self) -> None:
        weights = [weight for weight, _ in self._acts]
        [(_, act)] = self._rng.choices(self._acts, weights)
        act()
        self._world.watch.look()
        if self._left > 0:
            self._world.later(self._rng.choice((0.0, 0.01, 0.2, 1.5)), self._act)
        else:
            self.gone = True

    # -- submitting ----------------------------------------------------------------------------

    def _submit(self) -> None:
        count = min(self._left, self._rng.randrange(1, self._world.profile.batch + 1))
        self._left -= count
        caller = self._rng.choice(self._callers)
        with caller.context.store.read() as tx:
            first = tx.settings.marks()["next_job_id"]
        specs = [self._spec(first + number) for number in range(count)]
        for submitted in self._queueing.submit(caller, specs):
            self._recent.append(submitted.job_id)
            self.submitted += 1
        del self._recent[: -self._world.profile.memory]

    def _spec(self, job_id: JobId) -> JobSpec:
        """Of a job that will have this id."""
        rng, profile = self._rng, self._world.profile
        fields: dict[str, Any] = {}
        if self._recent and rng.random() < profile.linked:
            most = min(len(self._recent), rng.choice((1, 1, 2, 5)))
            fields["after"] = tuple(sorted(rng.sample(self._recent, most)))
        if rng.random() < profile.locked:
            keys = rng.sample(range(profile.keys), rng.choice((1, 1, 2, 3)))
            fields["locks"] = tuple(Lock(f"k{key}", rng.choice(MODES)) for key in sorted(keys))
        if rng.random() < profile.needy:
            fields |= self._artifacts(job_id)
        if rng.random() < profile.gated:
            fields |= self._gate()
        if rng.random() < 0.1:
            fields["priority"] = rng.randrange(-2, 3)
        if rng.random() < 0.1:
            fields["delay"] = rng.choice((10 * MS, SECOND, 20 * SECOND))
        if rng.random() < 0.2:
            fields["retry"] = RetryPolicy(rng.randrange(1, 3), base=SECOND // 2, cap=5 * SECOND)
        if rng.random() < 0.02:
            fields["on_finish"] = ("true",)
        params: dict[str, Any] = {"argv": ["true"]}
        if rng.random() < 0.5:
            params["any_host"] = True
        if rng.random() < profile.limited:
            fields |= self._queueing.takes(job_id, params)
        return JobSpec(**{"params": params, "name": "n", **fields})

    def _artifacts(self, job_id: JobId) -> dict[str, Any]:
        """It makes something of its own, and needs what one of the last has made, or nobody."""
        rng = self._rng
        made = rng.choice((f"custom:t:{job_id}", f"file:/sim/{job_id}", f"target_branch:b{job_id}"))
        fields: dict[str, Any] = {"produces": (made,), "repo": REPOS[0]}
        makers = [each for each in self._recent[-20:] if self._world.watch.jobs[each].produces]
        if makers and rng.random() < 0.8:
            maker = rng.choice(makers)
            fields["needs"] = self._world.watch.jobs[maker].produces
        elif self._recent and rng.random() < 0.3:
            fields["needs"] = (f"command_patch:{shown(rng.choice(self._recent))}",)
        elif rng.random() < 0.1:
            fields["needs"] = ("custom:no:body",)
        return fields

    def _gate(self) -> dict[str, Any]:
        rng, repo = self._rng, self._rng.choice(REPOS)
        branch = rng.choice(BRANCHES)
        present = self._world.is_now(Question(ProbeKind.BRANCH, repo, branch)).found
        match rng.randrange(4):
            case 0 if present:
                return {"repo": repo, "pinned_head": PinnedHead(branch, present)}
            case 1:
                return {"repo": repo, "preconditions": ("clean_worktree",)}
            case 2:
                condition = f"custom:{rng.choice(CONDITIONS)}"
                return {"repo": repo, "preconditions": (condition,)}
            case _:
                return {"require_approval": True}

    # -- what jobs do --------------------------------------------------------------------------

    def job_runs(self, process: Process) -> None:
        """In the middle of its run it makes what it said it would, and may say so itself."""
        job = self._world.watch.jobs[process.job_id]
        if job.produces and self._rng.random() < 0.9:
            self._world.later(process.fate.seconds / 2, lambda: self._make(job, process))

    def _make(self, job: Job, process: Process) -> None:
        if not process.supervised:
            return
        for text in job.produces:
            kind, _, name = text.partition(":")
            if kind == "file":
                self._world.becomes(Question(ProbeKind.FILE, name=name), Answer(name))
            elif kind == "target_branch":
                question = Question(ProbeKind.BRANCH, job.repo or "", name)
                self._world.becomes(question, Answer(COMMITS[0]))
            elif self._rng.random() < 0.5:
                self._publish(name, process)

    def _publish(self, name: str, process: Process) -> None:
        type_, _, key = name.partition(":")
        for caller in self._callers:
            if process.folder.startswith(f"{caller.home.path}/"):
                caller.context.environ = {
                    "HEADWAY_JOB_ID": str(process.job_id),
                    "HEADWAY_CLAIM": process.token,
                    "HEADWAY_HOME": caller.home.path,
                }
                try:
                    publishing.publish(caller.context, type_, key, {"by": process.job_id})
                except ConflictError:
                    pass  # its claim was given up while it still ran
                finally:
                    caller.context.environ = {}
        self._world.watch.look()

    # -- the outside ---------------------------------------------------------------------------

    def _change_the_outside(self) -> None:
        rng, world = self._rng, self._world
        if not world.profile.gated:
            return
        repo = rng.choice(REPOS)
        match rng.randrange(3):
            case 0:
                branch = Question(ProbeKind.BRANCH, repo, rng.choice(BRANCHES))
                world.becomes(branch, rng.choice((*map(Answer, COMMITS), Answer())))
            case 1:
                world.becomes(Question(ProbeKind.CLEAN, repo), rng.choice((CLEAN, DIRTY)))
            case _:
                name = rng.choice(CONDITIONS)
                question = Question(ProbeKind.CONDITION, repo, name)
                world.becomes(question, rng.choice((Answer(), Answer(name))))

    # -- steering ------------------------------------------------------------------------------

    def _one(self, ids: list[JobId]) -> JobId | None:
        return self._rng.choice(ids) if ids else None

    def _decide(self) -> None:
        pending = self._one(list(self._world.watch.pending))
        if pending is None:
            return
        with suppress(ConflictError):  # it came to its end, or had been decided, before this
            if self._rng.random() < 0.8:
                approving.approve(self._callers[0].context, pending)
            else:
                approving.reject(self._callers[0].context, pending, "no")

    def _cancel(self) -> None:
        chosen = self._one(self._recent)
        if chosen is None or self._rng.random() < 0.5:
            return
        with suppress(ConflictError):  # it had ended
            if self._rng.random() < 0.1:
                self._callers[0].jobs.cancel_downstream([chosen])
            else:
                self._callers[0].cancel([chosen])

    def _retry(self) -> None:
        chosen = self._one(self._recent)
        if chosen is None or self._rng.random() < 0.5:
            return
        with suppress(ConflictError):  # it runs, or has succeeded
            rewinding.rewind(self._callers[0].context, chosen)

    def _set_max_active(self) -> None:
        if self._rng.random() < 0.3:
            self._to_max_active(self._rng.choice((1, self._world.profile.max_active)))

    def _to_max_active(self, value: int) -> None:
        self._callers[0].set_setting("scheduler.max_active", value)
        self._world.max_active = value

    def _pause(self) -> None:
        caller = self._callers[0]
        if self._rng.random() < 0.7:
            caller.resume()
        elif self._rng.random() < 0.2:
            caller.pause(None)

    # -- the end -------------------------------------------------------------------------------

    def see_all_end(self) -> None:
        """No more trouble: everything that waits for the outside or a person gets an answer."""
        world = self._world
        world.come_to_rest()
        world.noise = False
        self._queueing.unblock(all_of_them=True)
        self._callers[0].resume()
        self._callers[0].scheduler.reset()
        for repo in REPOS:
            world.becomes(Question(ProbeKind.CLEAN, repo), CLEAN)
            for name in CONDITIONS:
                world.becomes(Question(ProbeKind.CONDITION, repo, name), Answer(name))
        for commit in COMMITS:
            for repo in REPOS:
                for branch in BRANCHES:
                    world.becomes(Question(ProbeKind.BRANCH, repo, branch), Answer(commit))
            self._decide_all()
            self._until_it_waits()
        for commit in reversed(COMMITS):
            for repo in REPOS:
                for branch in BRANCHES:
                    world.becomes(Question(ProbeKind.BRANCH, repo, branch), Answer(commit))
            self._until_it_waits()
        world.come_to_rest()
        self._give_up()
        self._until_it_waits()
        world.come_to_rest()

    def _decide_all(self) -> None:
        for each in list(self._world.watch.pending):
            with suppress(ConflictError):  # it had ended
                approving.approve(self._callers[0].context, each)
        self._world.watch.look()

    def _until_it_waits(self) -> None:
        """As long as anything happens within the time of the rarest look and longest backoff."""
        before = -1
        while before != self._world.watch.seq:
            before = self._world.watch.seq
            self._world.pass_time(31.0)
            self._decide_all()

    def _give_up(self) -> None:
        """What waits for something that nobody will ever make is cancelled."""
        watch = self._world.watch
        for each in list(watch.active):
            if each in watch.active:
                with suppress(ConflictError):  # it ended with one before it
                    self._callers[0].cancel([each])
                watch.look()
