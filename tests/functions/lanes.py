"""A shop whose engine is stepped as a worker does when nothing but calls is known to have ended."""

import os
import signal
from collections.abc import Callable
from typing import Any

from shop import Shop

from harness import DEADLINE, Bench, wait_for
from headway.client import Client
from headway.core.model import Claim
from headway.functions.app import Handle
from headway.functions.pool.host import FunctionHost
from headway.jobs.context import Context
from headway.store.store import Store
from ready import open_ready

SOURCE = """
@app.task
def work(word):
    note(word)
    return word
@app.task
def hold(word):
    note(word)
    until("go-" + word)
@app.task
def answers(word):
    until("go-" + word)
    return word
@app.task
def nap(seconds):
    time.sleep(seconds)
@app.task
def fails(word):
    until("go-" + word)
    raise ValueError(word)
@app.task
def skips(word):
    until("go-" + word)
    raise Skip(word)
@app.task
def asks_again(word):
    until("go-" + word)
    raise Retry(word, after="1h")
@app.task
def tells(word):
    until("go-" + word)
    current().progress(0.5, "half")
    note(word)
    until("never")
@app.task(timeout="200ms")
def too_long(word):
    note(word)
    until("never")
@app.task
def prints(word):
    until("go-" + word)
    print(word)
"""


class Lanes(Shop):
    """`asked` are the named queries of write transactions, for as long as a test wants to know."""

    def __init__(self, bench: Bench, asked: list[str]) -> None:
        super().__init__(bench, SOURCE)
        self.asked = asked
        self.quick_steps = 0
        self.delay = 0.0  # seconds until the next step, as the last one said

    # -- stepping ------------------------------------------------------------------------------

    def come_up(self) -> None:
        """Have the hosts say what they can, before anyone wants anything of them."""
        pool = self.bench.engine.pool
        self.bench.until(lambda: self.hosts and all(host.ready for host in self.hosts), "hosts")
        self.bench.until(lambda: not pool.processes.news, "what they can to be known")

    def become_quiet(self) -> None:
        """Step until the last step has seen that there are only calls."""
        for host in self.hosts:
            host.window = 50  # calls may wait inside
        wait_for(lambda: self.bench.step() >= 0 and self.is_quiet, what="quiet")

    @property
    def is_quiet(self) -> bool:
        return self.bench.engine.tools.shortcut.steps._quiet is not None

    def step(self) -> bool:
        """One step, after something may have ended; whether it was a quick one."""
        self.asked.clear()
        engine: Any = self.bench.engine
        whole, wholes = engine._full_step, []
        engine._full_step = lambda *how, **more: wholes.append(how) or whole(*how, **more)
        self.delay = self.bench.step(undisturbed=True)
        del engine._full_step
        quick = not wholes
        self.quick_steps += quick
        return quick

    def hear(self, seconds: float = 0.05) -> None:
        for key, _ in self.bench.engine.launches.watchlist.select(seconds):
            key.data()

    def until_quickly(self, condition: Callable[[], Any]) -> None:
        """Step as often as something happens, and never whole, until the condition holds."""

        def holds() -> bool:
            if condition():
                return True
            self.hear()
            assert self.step(), f"it had to ask {self.asked}"
            return False

        wait_for(holds, what="the condition", deadline=DEADLINE)

    # -- what hosts say ------------------------------------------------------------------------

    @property
    def hosts(self) -> list[FunctionHost]:
        return list(self.bench.engine.pool.processes.hosts.values())

    def claims(self) -> dict[int, Claim]:
        with self.bench.store.read() as tx:
            return {claim.job_id: claim for claim in tx.claims.live()}

    def let_go(self, word: str, handle: Handle[Any], kind: str = "e") -> None:
        """Let this call go on, and have the journal say so, which is read with the next step."""
        claim = self.claims()[handle.job_id]
        self.touch(f"go-{word}")
        self.until_written(kind, claim)

    def until_written(self, kind: str, claim: Claim) -> None:
        entry, journal = f"\n{kind} {claim.token}", os.path.join(claim.folder, "journal")

        def written() -> bool:
            with open(journal) as file:
                return entry in file.read()

        wait_for(written, what=f"{entry} in the journal")
        self.bench.engine.pool.look()

    def kill_host(self) -> None:
        os.kill(self.host_pid(), signal.SIGKILL)

        def gone() -> bool:
            self.hear()
            return bool(self.bench.engine.pool.processes.gone)

        wait_for(gone, what="the host to be gone")

    # -- what is in the store ------------------------------------------------------------------

    def running(self) -> list[int]:
        return sorted(self.claims())

    def settled(self, *handles: Handle[Any]) -> list[str | None]:
        """How each has ended, once."""
        kinds = [self.bench.kinds(each.job_id) for each in handles]
        ends = {"succeeded", "failed", "skipped", "cancelled"}
        found = [[kind for kind in each if kind in ends] for each in kinds]
        assert all(len(each) <= 1 for each in found), kinds
        assert all(each.count("running") <= 1 for each in kinds), kinds
        return [each[0] if each else None for each in found]


def held(lanes: Lanes, *words: str) -> list[Handle[Any]]:
    """Calls of which the first runs, seen by a whole step that saw nothing else."""
    handles = [lanes.hold.submit(word) for word in words]
    lanes.become_quiet()
    assert lanes.running() == [handles[0].job_id]
    return handles


class Elsewhere:
    """Another process with the same store."""

    def __init__(self, bench: Bench) -> None:
        url = bench.home.store_url or f"sqlite://{bench.home.database}"
        self.store: Store = open_ready(url, bench.clock)
        environ = {"PATH": os.environ["PATH"], "HOME": "/"}
        self.client = Client(
            Context(
                bench.home, bench.config, self.store, bench.clock, environ=environ, actor="other"
            )
        )

    def submitting(self, shop: Shop, submit: Callable[[], Handle[Any]]) -> Handle[Any]:
        """Submit as that process."""
        own, shop.module.app._context = shop.module.app._context, self.client.context
        try:
            return submit()
        finally:
            shop.module.app._context = own
