"""Couriers that are killed again and again: `python -m torture.deliveries`.

A receiver in this process writes down the id and a digest of each body that it takes. Now and then
it takes one and answers nothing, or fails. Jobs are submitted in waves, and one or two couriers at
a time make deliveries of that and send them; they are killed with -9 at random moments. At the end
a courier whose clock is ahead, so that leases and pauses are over, sends what is left.

Nothing may be lost, and what comes more than once must have the same id and the same bytes. The
check goes by the jobs that were acknowledged, by what the receiver saw, and by the rows.
"""

import argparse
import asyncio
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from headway.base.clock import SECOND, Clock, SystemClock
from headway.base.home import Home
from headway.base.new_home import make_home
from headway.base.trust import record
from headway.client import Client
from headway.jobs.context import Context
from headway.jobs.request import Request
from headway.jobs.settings import Config
from headway.store import open_store
from headway.webhooks.courier import Courier
from torture import processes
from torture.stores import store_url

TESTS = str(Path(__file__).parents[1])
ALLOW = {"webhooks.allow": ("127.0.0.1",)}
WAVE = 500
WITHIN = 900.0
TELL_SECONDS = 10.0
STEP_AHEAD = 130.0  # beyond each lease and each pause of the quick schedule


class Ahead:
    """The time of day, and so many seconds more."""

    def __init__(self) -> None:
        self._real = SystemClock()
        self.seconds = 0.0

    def now(self) -> int:
        return self._real.now() + int(self.seconds * SECOND)

    def monotonic(self) -> float:
        return self._real.monotonic() + self.seconds

    def since_boot(self) -> float:
        return self._real.since_boot() + self.seconds

    def sleep(self, seconds: float) -> None:
        self._real.sleep(seconds)


class Counting:
    """The receiver, in a thread of its own. `bodies` has the digests of each id."""

    def __init__(self, seed: int) -> None:
        self.bodies: dict[str, set[bytes]] = {}
        self.taken = 0
        self.refused = 0
        self._chance = random.Random(f"receiver {seed}")
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.port = 0

    def __enter__(self) -> "Counting":
        self._thread.start()
        self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    def _run(self) -> None:
        server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=512)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = (line.partition(": ") for line in head.split("\r\n")[1:])
            headers = {name.lower(): value for name, _, value in lines}
            body = await reader.readexactly(int(headers["content-length"]))
            lot = self._chance.random()
            if lot < 0.002:
                self.refused += 1
                writer.write(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
            else:
                self.taken += 1
                digest = hashlib.sha256(body).digest()
                self.bodies.setdefault(headers["webhook-id"], set()).add(digest)
                if lot > 0.004:  # else it hangs up, and was taken all the same
                    writer.write(b"HTTP/1.1 204 Taken\r\nConnection: close\r\n\r\n")
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # its courier was killed
        finally:
            writer.close()


class Tortured(NamedTuple):
    deliveries: int
    kills: int
    taken: int
    refused: int
    seconds: float

    @property
    def repeats(self) -> int:
        return self.taken - self.deliveries


class Arena:
    def __init__(self, folder: Path, port: int, store_url: str | None) -> None:
        folder.mkdir(exist_ok=True)
        self.mark = str(folder)
        self.home = Home(str(folder / ".headway"))
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "PYTHONPATH": os.pathsep.join(dict.fromkeys([TESTS, *filter(None, sys.path)])),
            processes.MARK: self.mark,
        }
        make_home(self.home, self.env)
        record(self.home.path, self.env)
        Path(self.home.config).write_text('webhooks.allow = ["127.0.0.1"]\n')
        self.url = store_url or f"sqlite://{self.home.database}"
        if store_url:
            self.env["HEADWAY_STORE"] = store_url
        self.client = Client(self.context(SystemClock(), create=True))
        self.client.pause("only webhooks are tortured")
        url = f"http://127.0.0.1:{port}/"
        self.client.webhooks.add("torture", url, types=["job.submitted"], schedule="quick")
        self._couriers: list[subprocess.Popen[bytes]] = []

    def context(self, clock: Clock, *, create: bool = False) -> Context:
        store = open_store(self.url, clock, create=create)
        config = Config({"worker.autostart": False, **ALLOW})
        return Context(self.home, config, store, clock, environ=self.env, actor="torturer")

    def submit(self, count: int) -> None:
        self.client.submit_many([Request(argv=("true",))] * count)

    def start(self, points: str = "") -> None:
        self._couriers.append(
            subprocess.Popen(
                [sys.executable, "-m", "headway.webhooks.courier", self.home.path],
                env={**self.env, "HEADWAY_POINTS": points},
                stdin=subprocess.PIPE,
                start_new_session=True,
            )
        )

    def kill(self) -> int:
        """All of them; how many were killed, by us or at a point."""
        for each in self._couriers:
            each.kill()
            each.communicate()
        killed = sum(each.returncode < 0 for each in self._couriers)
        self._couriers.clear()
        return killed

    def finish(self) -> None:
        """Send what is left: with a clock that is ahead, again and again."""
        clock = Ahead()
        context = self.context(clock)
        try:
            courier = Courier(context)
            give_up_at = time.monotonic() + WITHIN
            while self.pending() and time.monotonic() < give_up_at:
                clock.seconds += STEP_AHEAD
                courier.turn()
                while courier.is_busy or courier.is_behind:
                    time.sleep(0.02)
                    courier.turn()
            courier.leave()
        finally:
            context.close()

    def pending(self) -> bool:
        with self.client.context.store.read() as tx:
            behind = tx.webhooks.cursor() < tx.events.last()
            return behind or bool(tx.webhooks.receivers())

    def rows(self) -> list[tuple[str, str]]:
        """Each delivery with its state."""
        database = self.client.context.store.database
        database.begin_read()
        try:
            found = database.execute("select id, state from deliveries", {})
        finally:
            database.rollback()
        return [(row[0], row[1]) for row in found]

    def close(self) -> None:
        self.kill()
        self.client.close()
        processes.end_all(self.mark)


def torture(
    arena: Arena,
    receiver: Counting,
    *,
    deliveries: int,
    kills: int,
    seed: int,
    longest_life: float = 5.0,
) -> Tortured:
    chance = random.Random(f"deliveries {seed}")
    began = told = time.monotonic()
    left, struck = deliveries, 0
    wave = max(1, min(WAVE, deliveries // max(1, kills) * 2))
    while left or struck < kills:
        if left:
            count = min(wave, left)
            arena.submit(count)
            left -= count
        for _ in range(chance.choice((1, 1, 2))):
            points = chance.choice(("", "", f"*=kill@{chance.randint(1, 40)}"))
            arena.start(points)
        time.sleep(chance.uniform(0.4, longest_life))
        struck += arena.kill()
        if time.monotonic() - told >= TELL_SECONDS:
            told = time.monotonic()
            print(f"  {struck} kills, {receiver.taken} taken, {left} to submit", flush=True)
    arena.finish()
    return Tortured(deliveries, struck, receiver.taken, receiver.refused, time.monotonic() - began)


def violations(arena: Arena, receiver: Counting, deliveries: int) -> list[str]:
    """Each with its name; none, if all is well."""
    rows = dict(arena.rows())
    found = [f"{each} has two bodies" for each, all_ in receiver.bodies.items() if len(all_) > 1]
    found += [f"{each} is {state}" for each, state in rows.items() if state != "delivered"]
    found += [f"{each} was never taken" for each in rows.keys() - receiver.bodies.keys()]
    found += [f"{each} is of no row" for each in receiver.bodies.keys() - rows.keys()]
    if len(rows) != deliveries:
        found.append(f"{deliveries} jobs were submitted, and there are {len(rows)} deliveries")
    return found


@contextmanager
def arena_in(folder: Path, port: int, store_url: str | None = None) -> Iterator[Arena]:
    arena = Arena(folder, port, store_url)
    try:
        yield arena
    finally:
        arena.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="torture.deliveries", description=__doc__)
    parser.add_argument("--deliveries", type=int, default=50_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--store", choices=("sqlite", "postgres", "both"), default="both")
    asked = parser.parse_args()
    stores = ("sqlite", "postgres") if asked.store == "both" else (asked.store,)
    return max(run(each, asked.deliveries, asked.kills, asked.seed) for each in stores)


def run(store: str, deliveries: int, kills: int, seed: int) -> int:
    """Torture couriers of one store and print what was found; the folder stays if something was."""
    print(f"{store}: {deliveries} deliveries, {kills} kills, seed {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="headway-torture-"))
    with (
        store_url(store) as url,
        Counting(seed) as receiver,
        arena_in(folder / "arena", receiver.port, url) as arena,
    ):
        done = torture(arena, receiver, deliveries=deliveries, kills=kills, seed=seed)
        wrong = violations(arena, receiver, deliveries)
    print(
        f"{done.deliveries} deliveries, {done.kills} couriers killed, {done.taken} requests taken, "
        f"{done.repeats} of them repeats, {done.refused} refused, {done.seconds:.0f} s"
    )
    for each in wrong[:20]:
        print(f"VIOLATED: {each}")
    if wrong:
        print(f"{len(wrong)} violations; {folder} is kept")
        return 1
    print("none lost; every repeat had the same id and the same bytes")
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
