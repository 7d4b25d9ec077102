"""For tests: a clock that moves only when told to, and jobs that run without worker or processes.

    def test_build(tmp_path):
        with headway.testing.using(app, home=tmp_path):
            handle = build.submit("docs")
            headway.testing.drain(app)
            assert handle.result() == {"pages": 12}

docs/functions.md, "Testing". Nothing that a running Headway needs may enter. Users rely on the
names here; the modules below are inside.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headway.testing.clock import FakeClock

__all__ = ["FakeClock", "drain", "make_test_home", "using"]

if TYPE_CHECKING:
    from headway.base.clock import Clock
    from headway.functions.app import App
    from headway.functions.handle import Handle


def drain(app: App, *, limit: int = 1000) -> list[Handle[Any]]:
    """Run all jobs of the app's tasks that may run, here and now, one after the other.

    Planned and settled by the code that a worker runs: dependencies, locks, priorities, pause,
    retries, Skip and Retry count. With a fake clock it also waits for delays, backoffs, rates and
    whatever else only time brings, by moving the clock. Returns a handle of each job that ran, in
    order; stops after `limit` of them. Commands are left waiting: there are no processes.
    """
    from headway.testing.runner import drained

    return drained(app, limit=limit)


@contextmanager
def using(app: App, *, home: str | os.PathLike[str], clock: Clock | None = None) -> Iterator[Any]:
    """Give an app another home, with a store of its own, until the block ends. No worker is
    started there; `drain` runs the jobs, and `result()` those that it needs. Yields the clock: a
    fake one, unless another is given.

    `home` is the folder that `.headway/` is made in.
    """
    from headway.testing.runner import let_waiters_drain

    clock = clock or FakeClock()
    path = make_test_home(home)
    before = app._where
    app.close()
    app._where = {
        "store_url": f"sqlite://{path}/headway.db",  # whatever the environment says
        "home": path,
        "actor": "test",
        "clock": clock,
    }
    try:
        let_waiters_drain(app)
        yield clock
    finally:
        app.close()
        app._where = before


def make_test_home(folder: str | os.PathLike[str]) -> str:
    """A home in which no worker is started; its path. One that people use is refused."""
    from headway.base.errors import InvalidInputError
    from headway.base.home import Home
    from headway.base.new_home import make_home
    from headway.jobs.settings import load_config

    home = Home(os.path.join(os.path.abspath(folder), ".headway"))
    if os.path.exists(home.database) and load_config(home)["worker.autostart"]:
        raise InvalidInputError(
            f"{home.path} is in use, and not by a test; give an empty folder, as pytest's tmp_path"
        )
    os.makedirs(os.path.dirname(home.path), exist_ok=True)
    make_home(home)
    if not os.path.exists(home.config):
        with open(home.config, "w", encoding="utf-8") as file:
            file.write("[worker]\nautostart = false\n")
    return home.path
