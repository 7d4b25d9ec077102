"""One step of a worker: take in what happened, write it, start what may start, act on it.

A step is a tuple of parts around one write transaction. Each part collects what has happened, then
writes and decides in the transaction, in the order of the tuple. Dispatch decides last, so that it
goes by all that was written before it. After the commit the parts act in the opposite order: what
was started is launched first. Nothing that touches processes happens before the commit.
"""

from collections.abc import Callable
from typing import TypeVar

from headway.base.clock import SECOND, Clock
from headway.base.crashpoints import reach
from headway.base.errors import OthersWroteError
from headway.base.home import Home
from headway.base.host import Host
from headway.base.store_folders import settle_in
from headway.core.model import Claim, JobId
from headway.core.plan import Batch
from headway.core.pressure import Measured
from headway.integrations.probes.pressure import measure
from headway.jobs.copied_claims import copied
from headway.jobs.lifecycle import trees_gone
from headway.jobs.part import Part, Say
from headway.jobs.settings import Config
from headway.schedules.jobsfile.part import JobsFilePart
from headway.schedules.part import SchedulesPart
from headway.store.records import HostRecord
from headway.store.store import Store
from headway.supervise.launcher import Launcher
from headway.webhooks.part import WebhooksPart
from headway.worker.answers import AnswersPart
from headway.worker.attempts import do_all
from headway.worker.dispatch import DispatchPart
from headway.worker.ends import Report
from headway.worker.fastlane.lane import FastLanePart
from headway.worker.functions import FunctionsPart
from headway.worker.janitor import put_back_environments
from headway.worker.leases import LeasesPart
from headway.worker.lendings import LendingsPart
from headway.worker.outcomes import RECOVER_EVERY, OutcomesPart
from headway.worker.recovery import JudgedClaim
from headway.worker.reservations import ReservationsPart
from headway.worker.shortcut import ShortcutPart
from headway.worker.tools import Tools
from headway.workflows.part import RunsPart
from headway.workitems.part import TargetHelpersPart

PARTS: tuple[Callable[[Tools], Part], ...] = (
    TargetHelpersPart,
    OutcomesPart,
    FunctionsPart,
    AnswersPart,
    LendingsPart,
    ReservationsPart,
    LeasesPart,
    SchedulesPart,
    JobsFilePart,
    RunsPart,
    DispatchPart,
    WebhooksPart,  # after all that write events
    FastLanePart,  # last: it sees what the next steps may rely on; without it they are slower
)

_P = TypeVar("_P", bound=Part)

LENDING_PERIOD = 5 * SECOND
JUDGED_AT_ONCE = 200  # each holds a lock until its verdict is committed


class Engine:
    def __init__(
        self,
        store: Store,
        home: Home,
        config: Config,
        host: Host,
        clock: Clock,
        *,
        worker_id: str,
        launcher: Launcher,
        report: Report = lambda document: None,
        say: Say = lambda text: None,
        descriptors: int | None = None,
        look_in_thread: bool = False,
        measure: Callable[[], Measured] = measure,
    ) -> None:
        settle_in(home, store)
        self.tools = tools = Tools(
            store,
            home,
            config,
            host,
            clock,
            worker_id=worker_id,
            launcher=launcher,
            report=report,
            say=say,
            descriptors=descriptors,
            in_thread=look_in_thread,
            measure=measure,
        )
        self.parts = tuple(make(tools) for make in PARTS)
        for part in self.parts:
            if isinstance(part, ShortcutPart):
                tools.shortcut = part
        self.store = store
        self.launches, self.pool = tools.launches, tools.pool
        self.planner, self.probes = tools.planner, tools.probes
        self.started: list[JobId] = []  # by the last step
        self.more = False  # whether the last step left jobs that it could have planned
        self._last_step = clock.now()
        self._expected_delay = RECOVER_EVERY
        self.outcomes = self.part(OutcomesPart)
        self.rounds = self.part(JobsFilePart).rounds
        self.helpers = self.part(TargetHelpersPart).helpers

    def part(self, kind: type[_P]) -> _P:
        return next(each for each in self.parts if isinstance(each, kind))

    @property
    def dispatching(self) -> bool:
        """Whether jobs may be started."""
        return self.tools.dispatching

    @dispatching.setter
    def dispatching(self, wanted: bool) -> None:
        self.tools.dispatching = wanted

    def close(self) -> None:
        """Let go of everything; running jobs are left to their supervisors."""
        for part in self.parts:
            part.close()
        self.pool.close()
        self.launches.close()

    # -- the first thing a worker does ---------------------------------------------------------

    def recover(self) -> None:
        """Judge every claim of this host and home; before anything is dispatched."""
        tools = self.tools
        recovery, ends = tools.recovery, tools.ends
        put_back_environments(tools.home)
        ends.groups.remove()
        with self.store.read() as tx:
            live, unproven = tx.claims.live(), self.outcomes.remember(tx)
            self.part(ReservationsPart).remember(tx)
        copies = self._copied(live)
        mine = [*recovery.mine(live), *self._settle_copies(copies, live)]
        self.part(FunctionsPart).adopt([claim for claim in mine if claim.function_host])
        self._judge(
            [each for each in mine if not each.function_host and not self.launches.watches(each)]
        )
        known = {claim.token for claim in copies}
        others = [] if self.store.shared else [each for each in live if each.token not in known]
        lost = recovery.rebooted(others)
        with self.store.write() as tx:
            documents = ends.settle(tx, lost)
            trees_gone(tx, self._copied(unproven), actor=tools.worker_id)  # none of them is here
            tx.hosts.know(HostRecord(tools.host.id, tools.host.name, tools.host.home))
            tx.waits.wake_everything()
        reach("engine.woken")
        ends.settled(lost, documents)
        self.pool.clear_away()

    def _copied(self, claims: list[Claim]) -> list[Claim]:
        """Of these claims those that only the home can own that this one is a copy of."""
        return [] if self.store.shared else copied(claims, self.tools.host, self.tools.home)

    def _settle_copies(self, copies: list[Claim], live: list[Claim]) -> list[Claim]:
        """Settle what came with a copy of a home; returns calls whose host lives here after all."""
        originals = {claim.token: claim.home for claim in live}

        def judge(claim: Claim) -> JudgedClaim | None:
            return self.tools.recovery.judge_copy(claim, originals[claim.token])

        living = [each for each in copies if each.function_host and judge(each) is None]
        self._judge([each for each in copies if each not in living], judge)
        return [each._replace(host_id=self.tools.host.id) for each in living]

    def _judge(
        self, claims: list[Claim], judge: Callable[[Claim], JudgedClaim | None] | None = None
    ) -> None:
        for first in range(0, len(claims), JUDGED_AT_ONCE):
            self.tools.ends.judge(claims[first : first + JUDGED_AT_ONCE], judge)

    # -- a step --------------------------------------------------------------------------------

    def step(self, *, limit: int | Batch | None = None, undisturbed: bool = False) -> float:
        """Do what there is to do now; returns the seconds until time itself brings more. At most
        `limit` jobs are started, and with 0 none is planned. With `undisturbed` nothing is known
        to have happened but that functions may have returned, and new jobs may stand ready."""
        delay = self._fast_step() if undisturbed and self.dispatching else None
        if delay is not None:
            return delay
        try:
            return self._full_step(limit, undisturbed=undisturbed)
        except OthersWroteError:
            self.tools.shortcut.was_wrong()
            return self._full_step(limit)

    def _fast_step(self) -> float | None:
        tools = self.tools
        tools.now = tools.clock.monotonic()
        delay = tools.shortcut.fast_step()
        if delay is not None:
            self._last_step = tools.clock.now()
            self._expected_delay = delay
            self.started = tools.shortcut.started
        return delay

    def _full_step(self, limit: int | Batch | None, *, undisturbed: bool = False) -> float:
        tools, parts = self.tools, self.parts
        entered: list[Part] = []
        self._notice_suspend()
        tools.begin(limit)
        try:
            for part in parts:
                entered.append(part)
                part.take_in()
            with tools.shortcut.write(undisturbed=undisturbed) as tx:
                for part in parts:
                    part.step(tx)
                reach("engine.planned")
        except BaseException:
            for part in entered[::-1]:
                part.undo()
            raise
        reach("engine.claimed")
        self.started, self.more = tools.started, tools.more
        # It is committed: whatever is wrong with one part, the others must follow.
        do_all(part.committed for part in parts[::-1])
        delays = [each for part in parts if (each := part.delay()) is not None]
        delay = max(0.0, min(delays))
        self._expected_delay = 0.0 if self.more else delay
        tools.shortcut.go_on(delay)
        return self._expected_delay

    def _notice_suspend(self) -> None:
        """During a suspend nobody could renew: grant one period before anything expires."""
        now = self.tools.clock.now()
        late = now - self._last_step - int(self._expected_delay * SECOND)
        if late > LENDING_PERIOD:
            self.tools.granted_until = self.store.present() + LENDING_PERIOD
        self._last_step = now
