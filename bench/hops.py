"""How many hops a reader follows: `hops.py [--json]` counts calls, modules and switches of rooms.

Five actions: `submit`, a claim, a settle, a schedule that fires (and starts its job), and `why`.
Each is counted in a process of its own, on a home of its own with a SQLite store.

- calls: Headway's functions that were entered. A generator counts each time it is resumed;
  comprehensions do not count, nor does what is called while a module is loaded: the bodies of
  modules and classes, and the rows of their tables.
- modules: those that such a function is in.
- rooms: how often a call or a return leads into another room. A room is the first name under
  `headway.`; the modules of the package root are one room.
- steps between modules: the same for modules, so that moving a module changes nothing.

Each is counted twice: `first` is the first time in its process, as a command or a young worker does
it, loading what is loaded late; `warm` is the third time, when everything is loaded.

The same file runs on older and newer trees: give another interpreter, `OTHER/.venv/bin/python
bench/hops.py`. All names that differ between them are in `make_engine` and `launches_of`.
"""

import argparse
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from types import FrameType
from typing import Any

ROUNDS = 3
DEADLINE = 30.0
QUIET = 0.2  # seconds in which a worker hears nothing more

Figures = dict[str, int]
Act = Callable[[], object]


class Hops:
    """Records each call of a Headway function and each return from one, in this thread."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec("headway")
        assert spec is not None and spec.origin is not None
        self._root = os.path.dirname(spec.origin) + os.sep
        self._path: list[str] = []  # the module that runs, after each call and each return
        self._stack: list[str] = []
        self._calls = 0
        self._loading = 0  # modules of Headway whose bodies are under way

    def count(self, act: Act) -> Figures:
        sys.setprofile(self._see)
        try:
            act()
        finally:
            sys.setprofile(None)
        called = [each for each in self._path if each]
        return {
            "calls": self._calls,
            "modules": len(set(called)),
            "rooms": _switches([_room(each) for each in called]),
            "steps between modules": _switches(called),
        }

    def _see(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(self._root):
            return
        if code.co_name == "<module>":
            self._loading += 1 if event == "call" else -1
            return
        if self._loading or (code.co_name.startswith("<") and code.co_name != "<lambda>"):
            return
        if event == "call":
            self._calls += 1
            self._stack.append(code.co_filename[len(self._root) :])
        else:
            del self._stack[-1:]
        self._path.append(self._stack[-1] if self._stack else "")


def _room(module: str) -> str:
    first, _, rest = module.partition(os.sep)
    return first if rest else ""


def _switches(places: list[str]) -> int:
    return sum(one != other for one, other in pairwise(places))


# -- what is counted ---------------------------------------------------------------------------


def count_submit(home: str) -> Iterator[Act]:
    """`headway submit -- true`, no worker there."""
    for _ in range(ROUNDS):
        yield lambda: command(home, "submit", "--", "true")


def count_why(home: str) -> Iterator[Act]:
    """`headway why` of a job that waits for another, which waits for its time."""
    in_process(home, "submit", "--delay", "1h", "--", "true")
    in_process(home, "submit", "--after", "job-1", "--", "true")
    for _ in range(ROUNDS):
        yield lambda: command(home, "why", "job-2")


def count_claim(home: str) -> Iterator[Act]:
    """The worker's step that starts one job, while nothing else is there."""
    with engine_of(home) as engine:
        for _ in range(ROUNDS):
            in_process(home, "submit", "--", "true")
            yield engine.step
            assert engine.started
            until_ended(engine)


def count_settle(home: str) -> Iterator[Act]:
    """The worker's step that settles one job, while nothing else is there."""
    with engine_of(home) as engine:
        for number in range(ROUNDS):
            fifo = os.path.join(os.path.dirname(home), f"fifo-{number}")
            os.mkfifo(fifo)
            in_process(home, "submit", "--", "cat", fifo)
            engine.step()
            writer = os.open(fifo, os.O_WRONLY)
            while happened(engine, QUIET):
                engine.step()
            os.close(writer)
            while not happened(engine, DEADLINE):
                pass
            yield engine.step
            assert not launches_of(engine).claims, (
                "the end came in more than one piece; count again"
            )


def count_fire(home: str) -> Iterator[Act]:
    """The worker's step in which a schedule fires and its job starts."""
    with engine_of(home) as engine:
        for _ in range(ROUNDS):
            in_process(home, "schedules", "add", "--at", "+1s", "--", "true")
            engine.step()
            time.sleep(1.2)
            yield engine.step
            assert engine.started
            until_ended(engine)


ACTIONS: dict[str, Callable[[str], Iterator[Act]]] = {
    "submit": count_submit,
    "claim": count_claim,
    "settle": count_settle,
    "fire": count_fire,
    "why": count_why,
}


# -- through the public interface ------------------------------------------------------------


def command(home: str, *words: str) -> None:
    """A command in this process, from the first line of the program on."""
    from headway.__main__ import main

    sys.argv = ["headway", "--home", home, *words]
    with suppressed_output():
        try:
            main()
        except SystemExit as left:
            assert not left.code, f"{words}: exit code {left.code}"


def in_process(home: str, *words: str) -> None:
    """A command in a process of its own, which is not counted."""
    argv = [sys.executable, "-m", "headway", "--home", home, *words]
    subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


@contextmanager
def suppressed_output() -> Iterator[None]:
    before = sys.stdout, sys.stderr
    with open(os.devnull, "w") as nothing:
        sys.stdout = sys.stderr = nothing
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before


@contextmanager
def engine_of(home: str) -> Iterator[Any]:
    """The step of a worker that has come up and has not stepped yet."""
    engine = make_engine(home)
    launches_of(engine).open()
    try:
        engine.recover()
        yield engine
    finally:
        launches_of(engine).close()


def make_engine(home: str) -> Any:
    import headway

    client: Any = headway.connect(home=home)
    of = getattr(client, "context", client)  # an earlier client had it all itself
    launcher = first_of(("headway.supervise.launcher", "Launcher"))
    engine = first_of(
        ("headway.engine.engine", "Engine"),
        ("headway.worker.step", "Engine"),
        ("headway.worker.engine", "Engine"),
    )
    return engine(
        of.store,
        of.home,
        of.config,
        of.host,
        of.clock,
        worker_id="worker-hops",
        launcher=launcher(),
    )


def first_of(*names: tuple[str, str]) -> Any:
    """The first of these that this tree has."""
    for module, name in names:
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise SystemExit(f"none of these is there: {names}; bench/hops.py names them")


def launches_of(engine: Any) -> Any:
    """What launches jobs and watches them; older trees call it the finisher."""
    return engine.launches if hasattr(engine, "launches") else engine.finisher


def happened(engine: Any, seconds: float) -> bool:
    """Whether the worker was woken within that time."""
    launches = launches_of(engine)
    watchlist = launches.watchlist if hasattr(launches, "watchlist") else launches.selector
    keys = watchlist.select(seconds)
    for key, _ in keys:
        key.data()
    return bool(keys)


def until_ended(engine: Any) -> None:
    give_up_at = time.monotonic() + DEADLINE
    while launches_of(engine).claims:
        assert time.monotonic() < give_up_at, "the job does not end"
        happened(engine, 1.0)
        engine.step()


# -- a process for each ------------------------------------------------------------------------


def counted(action: str) -> dict[str, Figures]:
    with tempfile.TemporaryDirectory(prefix="headway-hops-", ignore_cleanup_errors=True) as folder:
        home = os.path.join(folder, ".headway")
        kept = {key: value for key, value in os.environ.items() if not key.startswith("HEADWAY_")}
        environ = {**kept, "XDG_STATE_HOME": os.path.join(folder, "state")}
        for words in (["init"], ["config", "set", "worker.autostart", "false"]):
            argv = [sys.executable, "-m", "headway", "--home", home, *words]
            subprocess.run(argv, cwd=folder, env=environ, capture_output=True, check=True)
        told = subprocess.run(
            [sys.executable, os.path.abspath(__file__), "--count", action, home],
            cwd=folder,
            env=environ,
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
    figures: dict[str, Figures] = json.loads(told)
    return figures


def count_here(action: str, home: str) -> dict[str, Figures]:
    rounds = [Hops().count(act) for act in ACTIONS[action](home)]
    return {"first": rounds[0], "warm": rounds[-1]}


def main() -> int:
    parser = argparse.ArgumentParser(description="Count the hops of five actions.")
    parser.add_argument("--json", action="store_true", help="print one document")
    parser.add_argument("--count", nargs=2, metavar=("ACTION", "HOME"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.count:
        print(json.dumps(count_here(*given.count)))
        return 0
    figures = {action: counted(action) for action in ACTIONS}
    if given.json:
        print(json.dumps(figures, indent=2))
        return 0
    print("calls / modules / switches of rooms / steps between modules")
    print(f"{'':8s} {'first':>22s} {'warm':>22s}")
    for action, both in figures.items():
        columns = (" / ".join(str(each) for each in both[kind].values()) for kind in both)
        print(f"{action:8s} " + " ".join(f"{each:>22s}" for each in columns))
    return 0


if __name__ == "__main__":
    sys.exit(main())
