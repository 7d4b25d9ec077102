"""The arena: a home with the real program, real workers, and a seed's worth of jobs and kills.

Jobs are submitted and cancelled through the client that the commands use. A worker that was killed
comes back as it would in life: a supervisor that ends finds none and starts one, or the next submit
does, or someone types `headway work`.
"""

import heapq
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from headway.base.clock import SystemClock
from headway.base.errors import ConflictError
from headway.base.home import Home
from headway.base.new_home import make_home
from headway.client import Client
from headway.core.model import Lock, LockMode
from headway.jobs.context import Context
from headway.jobs.request import Request
from headway.jobs.settings import Config
from headway.store import open_store
from torture import database, ledger, processes
from torture.records import Cancel, Files, Gone, Planned
from torture.workload import Wish, Workload

CONFIG = "[worker]\ncrash_loop = 0\nautostart = {autostart}\n"
ACTIVE_AT_LEAST = 16
RUNNING_AT_MOST = 8
SAMPLE_SECONDS = 1.0
RECENT_SECONDS = 120
STARTS_WITHIN = 2.0
FEED_SECONDS = 0.05
WITHOUT_SECONDS = 0.5  # the longest that nobody starts a worker by hand
QUIET_WITHIN = 120.0
STOPPED_WITHIN = 30.0
TESTS = str(Path(__file__).parents[1])


class Tortured(NamedTuple):
    strikes: int
    seconds: float
    came_to_rest: bool


class Arena:
    def __init__(
        self,
        folder: Path,
        *,
        store_url: str | None = None,
        without: str | None = None,
    ) -> None:
        """`without` names a safeguard to take out; "nothing" only makes its sequence possible.
        Such workers are started by hand alone: what supervisors start is the program as it is."""
        autostart = without is None
        sabotaged = ("torture.sabotaged", without or "nothing")
        self._program = ("headway",) if autostart else sabotaged
        folder.mkdir(parents=True, exist_ok=True)
        self.files = Files(folder)
        self.mark = str(folder)
        self.script = folder / "job.sh"
        self.script.write_text(ledger.SCRIPT)
        self.home = Home(str(folder / ".headway"), store_url)
        make_home(self.home, {"XDG_STATE_HOME": str(folder / "state")})
        Path(self.home.config).write_text(CONFIG.format(autostart=str(autostart).lower()))
        self.url = store_url or f"sqlite://{self.home.database}"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "PYTHONPATH": os.pathsep.join(dict.fromkeys([TESTS, *filter(None, sys.path)])),
            "PYTHONDONTWRITEBYTECODE": "1",
            processes.MARK: self.mark,
            **({"HEADWAY_STORE": store_url} if store_url else {}),
        }
        self.client = Client(
            Context(
                self.home,
                Config({"worker.autostart": autostart}),
                open_store(self.url, SystemClock(), create=True),
                SystemClock(),
                environ=self.env,
                actor="torturer",
            )
        )
        self.client.set_setting("scheduler.max_active", RUNNING_AT_MOST)
        self._workers: list[subprocess.Popen[bytes]] = []
        self._submitted: list[int] = []

    # -- what goes on in it --------------------------------------------------------------------

    def submit(self, wishes: list[Wish]) -> list[int]:
        """Submit them one by one, and note each acknowledgement before the next."""
        ids: list[int] = []
        for wish in wishes:
            earlier = tuple(self._submitted[-back] for back in wish.after)
            job_id = self.client.submit(self._request(wish, earlier)).job_id
            self._submitted.append(job_id)
            ids.append(job_id)
            planned = Planned(
                job_id, wish.mode, wish.codes, earlier, wish.locks, wish.retries, wish.timeout
            )
            self.files.acknowledged([planned])
        return ids

    def _request(self, wish: Wish, after: tuple[int, ...]) -> Request:
        return Request(
            argv=wish.argv(str(self.script), str(self.files.ledger)),
            after=after,
            locks=tuple(Lock(key, LockMode(mode)) for key, mode in wish.locks),
            retries=wish.retries,
            retry_base=100_000,
            timeout=None if wish.timeout is None else int(wish.timeout * 1e6),
            grace=int(wish.grace * 1e6),
        )

    def cancel(self, job_id: int) -> None:
        with suppress(ConflictError):  # it has ended
            for done in self.client.cancel([job_id]):
                self.files.cancelled(Cancel(job_id, done.job_id, done.was_running))

    def start_worker(self, points: str = "") -> subprocess.Popen[bytes]:
        """`headway work`, as a person would type it, with these crash points armed."""
        self._workers = [each for each in self._workers if each.poll() is None]
        with open(self.files.folder / "worker.log", "ab") as log:
            worker = subprocess.Popen(
                [sys.executable, "-m", *self._program, "--home", self.home.path, "work"],
                cwd=self.files.folder,
                env={**self.env, "HEADWAY_POINTS": points},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._workers.append(worker)
        return worker

    def living(self, kind: str) -> list[processes.Process]:
        return [each for each in processes.scan(self.mark) if each.kind == kind]

    # -- coming to rest ------------------------------------------------------------------------

    def rest(self, within: float = QUIET_WITHIN) -> bool:
        """Wait until every job has ended and every tree is gone; False if that takes too long."""
        give_up_at = time.monotonic() + within
        start_at = 0.0
        while not self.quiet():
            now = time.monotonic()
            if now > give_up_at:
                return False
            if now >= start_at:
                start_at = now + 2.0
                if not self.living("worker"):
                    self.start_worker()
            time.sleep(0.05)
        return True

    def quiet(self) -> bool:
        with database.opened(self.url) as select:
            return database.active(select) == 0 and database.unsettled(select) == 0

    def stop(self) -> None:
        """Have the workers leave. What is left afterwards should not be there."""
        give_up_at = time.monotonic() + STOPPED_WITHIN
        while (left := processes.scan(self.mark)) and time.monotonic() < give_up_at:
            for each in left:
                if each.kind == "worker":
                    with suppress(ProcessLookupError):
                        os.kill(each.pid, signal.SIGTERM)
            for worker in self._workers:
                with suppress(subprocess.TimeoutExpired):
                    worker.wait(0.2)
            time.sleep(0.05)

    def close(self) -> None:
        """End what is left, whatever it is; after the checker has looked."""
        processes.end_all(self.mark)
        for worker in self._workers:
            worker.wait()
        self.client.close()


def torture(
    arena: Arena, *, kills: int, seed: int, tell: Callable[[int], None] = lambda strikes: None
) -> Tortured:
    """Jobs and kills until there have been enough kills; then wait until all is at rest."""
    began = time.monotonic()
    killer = subprocess.Popen(
        [sys.executable, "-m", "torture.killer", arena.mark, str(kills), str(seed)],
        env={"PYTHONPATH": arena.env["PYTHONPATH"]},
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for us
    )
    try:
        _feed(arena, seed, while_running=killer, tell=tell)
    finally:
        killer.kill()
        killer.wait()
    rested = arena.rest()
    arena.stop()
    return Tortured(arena.files.strikes(), time.monotonic() - began, rested)


def _feed(
    arena: Arena, seed: int, *, while_running: subprocess.Popen[bytes], tell: Callable[[int], None]
) -> None:
    """Keep the arena busy: jobs, cancels, and a worker if there has been none for a while."""
    chance = random.Random(f"arena {seed}")
    workload = Workload(seed)
    sampler = Sampler(arena)
    cancels: list[tuple[float, int]] = []
    worker_at = 0.0
    submitted = 0
    with database.opened(arena.url) as select:
        while while_running.poll() is None:
            now = time.monotonic()
            if database.active(select) < ACTIVE_AT_LEAST:
                wishes = workload.wave(submitted)
                submitted += len(wishes)
                for wish, job_id in zip(wishes, arena.submit(wishes), strict=True):
                    if wish.cancel_after is not None:
                        heapq.heappush(cancels, (now + wish.cancel_after, job_id))
            while cancels and cancels[0][0] <= now:
                arena.cancel(heapq.heappop(cancels)[1])
            if now >= worker_at:
                worker_at = now + chance.uniform(0.1, WITHOUT_SECONDS)
                if not arena.living("worker"):
                    arena.start_worker()
                    worker_at = now + STARTS_WITHIN
            sampler.sample(select, now)
            tell(arena.files.strikes())
            time.sleep(FEED_SECONDS)
    if while_running.returncode != 0:
        raise RuntimeError(f"the killer ended with {while_running.returncode}")
    for _, job_id in cancels:
        arena.cancel(job_id)


class Sampler:
    """Notes now and then which trees the store calls gone, and how long the ledger then is."""

    def __init__(self, arena: Arena) -> None:
        self._files = arena.files
        self._known: set[str] = set()
        self._next = 0.0

    def sample(self, select: database.Select, now: float) -> None:
        if now < self._next:
            return
        self._next = now + SAMPLE_SECONDS
        since = time.time_ns() // 1000 - RECENT_SECONDS * 1_000_000
        gone = database.gone_tokens(select, since=since)
        fresh, self._known = gone - self._known, gone
        self._files.gone(Gone(ledger.size(self._files.ledger), tuple(sorted(fresh))))
