"""What the parts of a worker's step work with, each made once."""

from collections.abc import Callable
from typing import Any

from headway.base.clock import SECOND, Clock
from headway.base.home import Home
from headway.base.host import Host, queues_of
from headway.base.watchlist import Watchlist
from headway.core.pressure import Measured
from headway.functions.pool.calls import HostPool
from headway.functions.pool.host import AppSettings, News
from headway.functions.pool.processes import HostProcesses
from headway.integrations.probes import answers_to
from headway.jobs.facts import strain_of
from headway.jobs.log_limits import log_limits
from headway.jobs.part import Say, StepContext
from headway.jobs.policies import all_policies
from headway.jobs.settings import Config
from headway.store.store import Store
from headway.supervise.launcher import Launcher
from headway.worker.ends import ClaimEnds, Report
from headway.worker.launch import specification
from headway.worker.launch.command import how_to_reach_a_worker
from headway.worker.launch.function import host_specification
from headway.worker.launches import Launches
from headway.worker.planner import Planner
from headway.worker.probes import Probes
from headway.worker.recovery import Recovery
from headway.worker.settler import Settler
from headway.worker.shortcut import ShortcutPart
from headway.worker.store_time import StoreTime

LEASE = 20 * SECOND


class Tools(StepContext):
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
        report: Report,
        say: Say,
        descriptors: int | None,
        in_thread: bool,
        measure: Callable[[], Measured],
    ) -> None:
        super().__init__(
            store,
            home,
            config,
            host,
            clock,
            worker_id=worker_id,
            watchlist=Watchlist(),
            say=say,
            in_thread=in_thread,
        )
        self.times = StoreTime(store, clock)
        self.lease = LEASE if store.shared else None
        self.settler = Settler(host, worker_id, times=self.times, home=home)
        self.recovery = Recovery(
            host,
            worker_id,
            clock,
            left=lambda claim: self.ends.groups.note(claim.folder, claim.token),
        )
        processes = self._host_processes(launcher)
        self.pool = HostPool(processes, home, clock, host.boot_id)
        self.launches = Launches(launcher, self.recovery, self.watchlist, processes)
        self.probes = Probes(
            lambda questions: answers_to(questions, config.conditions), clock, in_thread=in_thread
        )
        if in_thread:
            self.probes.wake_up.watch(self.watchlist)
        self.ends = ClaimEnds(self, self.settler, self.recovery, self.launches, self.probes, report)
        self.shortcut = ShortcutPart(self)
        self.news = News([], [])  # what became of calls, in this step
        worker = how_to_reach_a_worker(home, config)
        self.planner = Planner(
            host,
            worker_id,
            self.settler,
            specify=lambda job, claim: {
                **specification(job, claim, home, config, worker),
                "descriptors": descriptors,
            },
            log_budget=config.bytes("logs.budget"),
            home=home,
            probes=self.probes,
            queues=queues_of(store.shared, host),
            lease=self.lease,
            pool=self.pool,
            start_first=lambda tx, capacity, limit: self.shortcut.start(tx, capacity, limit),
            policies=all_policies(say),
            strain=lambda settings: strain_of(settings, measure),
        )

    def _host_processes(self, launcher: Launcher) -> HostProcesses:
        home, config = self.home, self.config
        worker = how_to_reach_a_worker(home, config)

        def specify(token: str, folder: str, argv: list[str]) -> dict[str, Any]:
            return host_specification(token, folder, argv, home, config, worker)

        return HostProcesses(
            home,
            AppSettings(config["app.modules"], config["app.processes"], config["app.threads"]),
            launcher,
            self.watchlist,
            specify=specify,
            clock=self.clock,
            logs=log_limits(config, full="drop"),
            say=self.say,
        )

    def is_busy(self) -> bool:
        """Whether something runs here."""
        return bool(self.launches.claims or self.pool.running())
