"""The frame of the stories about a store: one store, its model, and what holds after every act.

The verbs, the planner, the settler and the recovery are the real ones, and so are the files of a
claim; a process is a claim that the story ends.
"""

import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from group_model import Group
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
)
from sling_model import SlingModel
from small_model import ENDED, SECOND, Job
from stocked import BUDGET, START

from headway.base.home import Home
from headway.base.host import Host
from headway.base.new_home import make_home
from headway.client import Client
from headway.core.facts import Answer, Capacity, Facts
from headway.core.groups import status_of
from headway.core.model import Claim, ProbeKind, Question, Wait
from headway.core.model import Job as Row
from headway.core.states import TERMINAL, WAITING
from headway.integrations.probes import answers_to
from headway.jobs.context import Context
from headway.jobs.facts import count_capacity
from headway.jobs.quotas import parse_limit
from headway.jobs.request import Request
from headway.jobs.settings import Config
from headway.jobs.views.present import present_wait
from headway.store.new_jobs import Event
from headway.store.store import Store
from headway.store.transaction import ReadTx
from headway.testing.clock import FakeClock
from headway.worker.planner import Planner
from headway.worker.probes import LONGEST_AGAIN, Probes
from headway.worker.recovery import Recovery
from headway.worker.settler import Settler

KEYS = ("a", "b")
ARTIFACTS = ("custom:t:1", "custom:t:2")
SUBJECTS = ("gt-1", "gt-2")
REPO = "/somewhere"
A_NUMBER = st.integers(0, 1 << 16)
BRANCH = Question(ProbeKind.BRANCH, REPO, "main")


class Act(NamedTuple):
    tell: Callable[..., None]
    often: int
    when: Callable[[Any], Any]
    arguments: dict[str, st.SearchStrategy[Any]]


ACTS: list[Act] = []


def always(story: object) -> bool:
    return True


def act(
    often: int = 1, *, when: Callable[[Any], Any] = always, **arguments: st.SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """One of the things that may happen. Not a rule each: hypothesis leaves some rules out of each
    example, and a story in which nobody submits, or nothing ends, tells little."""

    def add(tell: Callable[..., None]) -> Callable[..., None]:
        ACTS.append(Act(tell, often, when, arguments))
        return tell

    return add


class MovedClock(FakeClock):
    def move(self, seconds: int) -> None:
        self._now += seconds * SECOND

    def let_looks_grow_old(self) -> None:
        """Time passes that no wall clock shows."""
        self._monotonic += LONGEST_AGAIN + 1


class Caller(Context):
    def wake(self, word: bytes | None = None) -> bool:
        return False


class Told(RuleBasedStateMachine):
    """A store and its model; `stories.Stories` adds what may happen to them."""

    def __init__(self, open_fresh: Callable[[Path, FakeClock], Store]) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="headway-story-"))
        self.clock = MovedClock(START)
        self.home = Home(str(self.folder / ".headway"))
        make_home(self.home)
        self.model = SlingModel(START)
        self.boot = 1
        self.keys: dict[str, tuple[int, Request]] = {}
        self.started: set[str] = set()  # tokens with a start record
        self.live: list[Claim] = []
        self.over: list[Claim] = []  # claims that are no longer live
        self.final: dict[int, Row] = {}
        self.past: list[Event] = []
        self.loans = 0
        self.plans = 0
        self.resting = 0  # for how many acts the worker does not look
        self._open_store = lambda: open_fresh(self.folder, self.clock)
        self._open()

    def _open(self) -> None:
        """As a process that comes up: it knows nothing but the store and the files."""
        self.store = self._open_store()
        self.client = Client(
            Caller(
                self.home,
                Config({"worker.autostart": False}),
                self.store,
                self.clock,
                environ={"PATH": "/bin"},
                actor="ann",
            )
        )
        host = Host("host", f"boot-{self.boot}", "/home")
        self.client.context.host = host
        self.settler = Settler(host, "worker", chance=lambda: 0.0)
        self.recovery = Recovery(host, "worker", self.clock)
        self.probes = Probes(self._look, self.clock, in_thread=False)
        self.planner = Planner(
            host,
            "worker",
            self.settler,
            specify=lambda job, claim: {},
            log_budget=BUDGET,
            home=self.home,
            probes=self.probes,
            queues=self.client.context.queues,
        )

    def _look(self, questions: Collection[Question]) -> dict[Question, Answer]:
        """The outside is one branch, which is where the model says, and the files of work items."""
        items = [each for each in questions if each.kind is ProbeKind.SUBJECT]
        return dict.fromkeys(questions, Answer(self.model.head)) | answers_to(items, {})

    def teardown(self) -> None:
        with self.store.read() as tx:
            events = tx.events.since(0, 100_000)
        assert events[: len(self.past)] == self.past, "the past was changed"
        self.store.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    @rule(data=st.data())
    def something_happens(self, data: st.DataObject) -> None:
        possible = [each for each in ACTS if each.when(self) for _ in range(each.often)]
        chosen = data.draw(st.sampled_from(possible))
        chosen.tell(self, **data.draw(st.fixed_dictionaries(chosen.arguments)))

    @contextmanager
    def inside(self, claim: Claim) -> Iterator[None]:
        """The client is in a process of this job."""
        outside = self.client.context.environ
        self.client.context.environ = {
            "HEADWAY_JOB_ID": str(claim.job_id),
            "HEADWAY_CLAIM": claim.token,
            "HEADWAY_HOME": self.home.path,
        }
        yield
        self.client.context.environ = outside

    # -- picking -------------------------------------------------------------------------------

    def waiting(self) -> list[Job]:
        return self.model.having("waiting")

    def launching(self) -> list[Claim]:
        """Live claims of which nothing is known to have started."""
        return [claim for claim in self.live if claim.token not in self.started]

    def _job(self, which: int) -> Job:
        ids = sorted(self.model.jobs)
        return self.model.jobs[ids[which % len(ids)]]

    def _group(self, which: int) -> Group | None:
        ids = sorted(self.model.groups)
        return self.model.groups[ids[which % len(ids)]] if ids else None

    # -- planning ------------------------------------------------------------------------------

    def _plan(self) -> list[Claim]:
        """Every third time one by one, which shows in what order they start."""
        self.plans += 1
        one_by_one = self.plans % 3 == 0
        claims = self._step(limit=1) if one_by_one else self._step()
        started = [claim.job_id for claim in claims]
        note(f"started {started}")
        with self.store.read() as tx:
            rows = tx.jobs.by_id([job.id for job in self.waiting() if job.subject])
        self.model.noticed = {each for each in rows if rows[each].status == "cancelled"}
        expected = self.model.plan({claim.job_id: claim.borrowed_from for claim in claims})
        if one_by_one:
            assert started == expected
        assert sorted(started) == sorted(expected)
        return claims

    def _step(self, limit: int | None = None) -> list[Claim]:
        claims: list[Claim] = []
        self.clock.let_looks_grow_old()
        # So that no job has to wait for its first look.
        tasks = f"tasks:{self.home.path}/tasks"
        items = {job.subject for job in self.waiting()} - {None}
        self.probes.want(
            [BRANCH, *(Question(ProbeKind.SUBJECT, tasks, str(each)) for each in items)]
        )
        while True:
            self.probes.go()
            with self.store.write() as tx:
                tx.waits.wake_topics(self.probes.take_in())
                if self.model.loans:
                    tx.claims.end_expired_lendings(tx.now())
                step = self.planner.step(tx, limit=limit)
            claims += step.started
            if not self.probes.due() and (limit is None or not step.started):
                return claims

    # -- what always holds ---------------------------------------------------------------------

    @invariant()
    def model_and_store_agree(self) -> None:
        claims: list[Claim] | None = None
        self.resting = max(0, self.resting - 1)
        if not self.resting and self.model.jobs:
            claims = self._plan()
        with self.store.read() as tx:
            rows = {row.id: row for row in (*tx.jobs.active(), *tx.jobs.finished(0, 10_000))}
            self.live = sorted(tx.claims.live(), key=lambda claim: claim.job_id)
            capacity = count_capacity(tx, "host", log_budget=BUDGET)
            facts = Facts(now=tx.now(), capacity=capacity)
            shown = picture(rows, self.live, tx, capacity)
            self.past += tx.events.since(self.past[-1].seq if self.past else 0, 100_000)
        known = self.model.picture()
        assert shown.keys() == known.keys()
        for part in known:
            assert (part, shown[part]) == (part, known[part])
        self._check_ends(rows)
        self._check_events(rows)
        if claims is not None:
            self._check_promises(rows, claims, shown)
            self._check_shown_waits(rows, facts)

    def _check_promises(
        self, rows: dict[int, Row], claims: list[Claim], shown: dict[str, Any]
    ) -> None:
        """Once more without the model: dependencies, the caps, locks."""
        for claim in claims:
            for each in rows[claim.job_id].after:
                if each not in rows:
                    assert self.model.gone[each]
                    continue
                last = max(row.id for row in rows.values() if row.chain == rows[each].chain)
                assert rows[last].status == "succeeded"
        lenders = {lender for lender, _, _ in shown["loans"]}
        own = [lender for lender in shown["slots"].values() if lender not in lenders]
        own += [job for _, has, job, _, _ in shown["calls"] if has and job not in shown["slots"]]
        if any(claim.borrowed_from is None for claim in claims) and shown["max_active"] > 0:
            assert len(own) <= shown["max_active"]
        self._check_limits(rows, claims, lenders, shown["calls"])
        for key in KEYS:
            modes = [mode for held, _, mode in shown["locks"] if held == key]
            assert len(modes) <= 1 or "exclusive" not in modes

    def _check_limits(
        self, rows: dict[int, Row], claims: list[Claim], lenders: set[int], calls: list[Any]
    ) -> None:
        """Whoever has just started, but for what was lent to it, did so within every limit."""
        held = {claim.job_id: {*claim.occupies} for claim in self.live}
        held |= {-call: keys for call, granted, _, keys, _ in calls if granted}
        lent_by = {claim.job_id: claim.borrowed_from for claim in self.live}
        lent_by = {each: lender if lender in lenders else None for each, lender in lent_by.items()}
        lent_by |= {-call: inside for call, granted, inside, _, _ in calls if granted}

        def lent(holder: int) -> set[str]:
            lender = lent_by[holder]
            return held[lender] | lent(lender) if lender in held else set()

        for key, limit in self.model.limits.items():
            own = [each for each in held if key in held[each] - lent(each)]
            if {claim.job_id for claim in claims} & {*own}:
                assert len(own) <= limit, f"{own} hold {key}"
        for claim in claims:
            for rate in rows[claim.job_id].rates:
                text = self.model.often.get(rate.key)
                bounds = [rate[1:] if rate.most else None, parse_limit(text) if text else None]
                for most, period in (each for each in bounds if each):
                    since = self.clock.now() - period
                    began = [key for key, at, _ in self.model.begun if at > since]
                    assert began.count(rate.key) <= most

    def _check_shown_waits(self, rows: dict[int, Row], facts: Facts) -> None:
        """What is shown is what holds it back, for all that must have been looked at."""
        for job in self.model.having("waiting"):
            status = rows[job.id].status
            row = rows[job.id]
            self._check_reason(job, present_wait(row, facts))
            held_back = self.model.holds_back(job) is not None
            if status in ("waiting_on_deps", "waiting_on_approval"):
                assert held_back
            elif self.model.is_due(job):
                assert not self.model.holds_back_inside(job) and job.approval != "pending"
            if status == "waiting_on_approval":
                assert job.approval == "pending"
            if job.id in self.model.promised:
                assert status == "waiting_on_locks"

    def _check_reason(self, job: Job, wait: Wait | None) -> None:
        """Every job that waits says why, and the model knows that reason too."""
        reasons = self.model.reasons(job)
        assert wait is not None and wait.kind in reasons, (job, wait, reasons)
        said = [word for word in reasons[wait.kind] if word in wait.detail]
        assert said and wait.detail, (job, wait, reasons)

    def _check_ends(self, rows: dict[int, Row]) -> None:
        """A job that ended never changes."""
        for job_id, row in self.final.items():
            assert rows[job_id] == row
        self.final |= {row.id: row for row in rows.values() if row.status in TERMINAL}

    def _check_events(self, rows: dict[int, Row]) -> None:
        """Every change of a status has its event: told again, they lead to the present one."""
        told = {job_id: [e.kind for e in self.past if e.job_id == job_id] for job_id in rows}
        for job_id, kinds in told.items():
            job = self.model.jobs[job_id]
            assert kinds[0] == "submitted" and kinds.count("submitted") == 1
            assert kinds.count("running") == job.starts
            assert kinds.count("unclaimed") == job.undone
            assert [kind for kind in kinds if kind in ENDED] == [job.state] * (job.state in ENDED)
            words = {"submitted": "queued", "unclaimed": "queued", "rewound": "queued"}
            states = [words.get(kind, kind) for kind in kinds]
            said = [s for s in states if s in (*ENDED, *WAITING, "running")]
            assert said[-1] == rows[job_id].status


def picture(
    rows: dict[int, Row], claims: list[Claim], tx: ReadTx, capacity: Capacity
) -> dict[str, Any]:
    """What the store says, through the seam."""
    views = tx.claims.lock_views(KEYS)
    slots = tx.claims.slots()
    assert sorted(slots.used) == sorted(claim.slot for claim in claims), "a slot is used twice"
    trouble = tx.hosts.trouble("host")
    return {
        "jobs": {
            row.id: (
                "waiting" if row.status in WAITING else row.status.value,
                (row.chain, row.retry_of, row.attempt, row.retries_used),
                row.not_before,
                row.cancelling,
                row.launch_failures,
                row.approval.state.value if row.approval else None,
            )
            for row in rows.values()
        },
        "order": [
            (row.id, row.dispatch_level)
            for row in sorted(rows.values(), key=lambda row: row.order)
            if row.status in WAITING
        ],
        "limits": limits_of(tx),
        "in use": {key: capacity.usage.get(key, 0) for key in limits_of(tx)},
        "starts": sorted(tx.limits.newest_starts("r", 0, 1000)),
        "calls": [
            (call.id, not call.waits, call.inside, {*call.occupies}, call.expires_at)
            for call in tx.reservations.all()
        ],
        "groups": {
            group.id: (
                (group.mode.value, group.on_failure, bool(group.closed_at), bool(group.ended_at)),
                status_of(group, tx.groups.tally(group.id)).value,
                [
                    (each.chain, each.job_id, each.sequence_number)
                    for each in tx.groups.members(group.id, 100)
                ],
            )
            for group in tx.groups.since(0, 100)
        },
        "runs": {
            run.job_id: (run.status, run.exit_code) for run in tx.jobs.runs(list(rows)).values()
        },
        "locks": {
            (key, holder.job_id, holder.mode.value)
            for key, view in views.items()
            for holder in view.holders
        },
        "claims": {claim.job_id: (claim.borrowed_from, claim.probe) for claim in claims},
        "slots": dict(slots.running),
        "unproven": {claim.job_id for claim in tx.claims.unproven()},
        "markers": {
            (each.artifact, each.job_id)
            for each in tx.graph.markers(ARTIFACTS)
            if each.withdrawn_at is None
        },
        "loans": sorted(tuple(each) for each in tx.claims.lendings()),
        "paused": tx.settings.pause_in_force() is not None,
        "max_active": tx.settings.all()["scheduler.max_active"],
        "trouble": (trouble.failures, trouble.probe_at) if trouble else None,
    }


def limits_of(tx: ReadTx) -> dict[str, int]:
    """The limits on what runs at once that are set."""
    begin = "scheduler.limits."
    return {
        key.removeprefix(begin).replace(".", ":"): value
        for key, value in tx.settings.all().items()
        if key.startswith(begin) and isinstance(value, int)
    }
