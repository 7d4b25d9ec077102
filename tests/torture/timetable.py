"""Two workers, one store, many schedules of one second, and kills: `python -m torture.timetable`.

Each worker has a home of its own, as on two hosts. Whoever is struck is killed with -9 and comes
back a moment later. Then the schedules are disabled, what they made may end, and slots.py looks.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from headway.base.clock import SystemClock
from headway.base.home import Home
from headway.base.new_home import make_home
from headway.client import Client
from headway.jobs.context import Context
from headway.jobs.settings import Config
from headway.store import open_store
from torture import database, processes, slots

RUNNING_AT_MOST = 8
QUIET_WITHIN = 180.0
CAUGHT_UP_WITHIN = 30.0
TELL_SECONDS = 10.0
TESTS = str(Path(__file__).parents[1])
# Most skip a slot while the job of an earlier one is active; a few take the harder ways.
KINDS = (
    *([{"overlap": "skip", "catch_up": "latest"}] * 16),
    {"overlap": "skip", "catch_up": "none"},
    {"overlap": "queue", "catch_up": "latest"},
    {"overlap": "queue", "catch_up": "all"},
    {"overlap": "replace", "catch_up": "latest"},
)


class Tortured(NamedTuple):
    kills: int
    seconds: float
    caught_up: bool
    came_to_rest: bool


class Host:
    """A home with its worker, which is killed and started."""

    def __init__(self, folder: Path, url: str, mark: str) -> None:
        folder.mkdir()
        self.folder = folder
        self.home = Home(str(folder / ".headway"), url)
        make_home(self.home, {"XDG_STATE_HOME": str(folder / "state")})
        Path(self.home.config).write_text("[worker]\ncrash_loop = 0\nautostart = false\n")
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "PYTHONPATH": os.pathsep.join(dict.fromkeys([TESTS, *filter(None, sys.path)])),
            "HEADWAY_STORE": url,
            processes.MARK: mark,
        }
        self.client = Client(
            Context(
                self.home,
                Config({"worker.autostart": False}),
                open_store(url, SystemClock(), create=True),
                SystemClock(),
                environ=self.env,
                actor="torturer",
            )
        )
        self._worker: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with open(self.folder / "worker.log", "ab") as log:
            self._worker = subprocess.Popen(
                [sys.executable, "-m", "headway", "--home", self.home.path, "work", "--wait"],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        assert self._worker is not None
        self._worker.kill()
        self._worker.wait()

    def stop(self) -> None:
        if self._worker is not None:
            self._worker.send_signal(signal.SIGTERM)
            self._worker.wait(60)

    def close(self) -> None:
        if self._worker is not None and self._worker.poll() is None:
            self.kill()
        self.client.close()


class Arena:
    def __init__(self, folder: Path, url: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.url = url
        self.mark = str(folder)
        self.ledger = folder / "ledger"
        self.hosts = [Host(folder / name, url, self.mark) for name in ("first", "second")]
        self.hosts[0].client.set_setting("scheduler.max_active", RUNNING_AT_MOST)
        self._names: list[str] = []

    def add_schedules(self, count: int, chance: random.Random) -> None:
        """Half of each host; some may run on either."""
        script = 'echo "$HEADWAY_JOB_ID" >>"$1"; [ "$2" = 0 ] || exec sleep "$2"'
        for number in range(count):
            kind = KINDS[number % len(KINDS)]
            pause = chance.choice(("0", "0", "0", "0.3", "1.5"))
            if kind["overlap"] == "queue":  # they would queue for long
                pause = "0"
            name = f"every-{number}"
            self.hosts[number % 2].client.schedules.add(
                name=name,
                every="1s",
                argv=["/bin/sh", "-c", script, "sh", str(self.ledger), pause],
                any_host=chance.random() < 0.3,
                **kind,
            )
            self._names.append(name)

    def disable_schedules(self) -> None:
        for name in self._names:
            self.hosts[0].client.schedules.disable(name)

    def close(self) -> None:
        for host in self.hosts:
            host.close()
        processes.end_all(self.mark)


def torture(
    arena: Arena, *, schedules: int, seconds: float, seed: int
) -> tuple[Tortured, slots.Seen]:
    chance = random.Random(f"timetable {seed}")
    for host in arena.hosts:
        host.start()
    arena.add_schedules(schedules, chance)
    began, since = time.monotonic(), _now()
    kills = _strike(arena, began + seconds, chance)
    until = _now()
    with database.opened(arena.url) as select:
        caught_up = _until(lambda: _looked_at(select) >= until, CAUGHT_UP_WITHIN)
        arena.disable_schedules()
        rested = _until(
            lambda: not database.active(select) and not database.unsettled(select), QUIET_WITHIN
        )
        for host in arena.hosts:
            host.stop()
        seen = slots.gather(select, arena.ledger, (since, until))
    return Tortured(kills, time.monotonic() - began, caught_up, rested), seen


def _strike(arena: Arena, end: float, chance: random.Random) -> int:
    """Mostly the same one; now and then the other, or both."""
    kills, told = 0, time.monotonic()
    while (now := time.monotonic()) < end:
        time.sleep(min(chance.uniform(0.3, 2.5), max(0.0, end - now)))
        struck = chance.choice((arena.hosts[:1], arena.hosts[:1], arena.hosts[1:], arena.hosts))
        for host in struck:
            host.kill()
        kills += len(struck)
        time.sleep(chance.choice((0, 0, 0.2, 1.2)))
        for host in struck:
            host.start()
        if now - told >= TELL_SECONDS:
            told = now
            print(f"  {kills} kills, {end - now:.0f} s to go", flush=True)
    return kills


def _looked_at(select: database.Select) -> int:
    """All slots up to here are on the books."""
    return int(select("select min(next_slot) from schedules")[0][0])


def _until(condition: Callable[[], bool], within: float) -> bool:
    give_up_at = time.monotonic() + within
    while not condition():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.1)
    return True


def _now() -> int:
    return time.time_ns() // 1000


def main() -> int:
    parser = argparse.ArgumentParser(prog="make torture SCHEDULES=200")
    parser.add_argument("--schedules", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    asked = parser.parse_args()
    seed = random.randrange(1_000_000) if asked.seed is None else asked.seed
    folder = Path(tempfile.mkdtemp(prefix="headway-timetable-"))
    title = f"{asked.schedules} schedules of one second, two workers, seed {seed}"
    print(f"{title}: {asked.seconds:g} s in {folder}", flush=True)
    with _store() as url:
        arena = Arena(folder, url)
        try:
            tortured, seen = torture(
                arena, schedules=asked.schedules, seconds=asked.seconds, seed=seed
            )
        finally:
            arena.close()
    return _report(folder, tortured, seen)


def _report(folder: Path, tortured: Tortured, seen: slots.Seen) -> int:
    found, counted = slots.violations(seen), slots.counted(seen)
    ended = len([each for each in seen.jobs if each.status == "succeeded"])
    print(f"  kills    {tortured.kills} in {tortured.seconds:.0f} s")
    print(f"  slots    {counted.slots}: {counted.fired} fired, {counted.skipped} skipped")
    print(f"  latest   {counted.worst_delay:.1f} s after its slot")
    print(f"  jobs     {len(seen.jobs)}: {ended} succeeded; {len(seen.ledger)} lines of theirs")
    print(f"  violations {len(found)}")
    for text in found[:20]:
        print(f"    {text}")
    if not tortured.caught_up:
        print("  not all slots were looked at in time")
    if not tortured.came_to_rest:
        print("  it did not come to rest in time")
    if found or not (tortured.caught_up and tortured.came_to_rest):
        print(f"everything is kept in {folder}", flush=True)
        return 1
    shutil.rmtree(folder)
    return 0


@contextmanager
def _store() -> Iterator[str]:
    from postgres import fresh_schema, server

    with server() as url, fresh_schema(url) as schema:
        yield schema


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; its folder is kept")
