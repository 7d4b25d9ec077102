"""Where the worker's time goes: `profiled.py sqlite|postgres [COUNT [MAX_ACTIVE]]`.

Drains so many no-op functions with a worker under cProfile and prints the 25 calls with the most
time of their own. The profile makes calls dearer: it says where to look, not how long it takes.
"""

import cProfile
import os
import pstats
import sys
import tempfile
import time
from pathlib import Path

from measure import Lab

TOP = 25
PROFILE = "HEADWAY_BENCH_PROFILE"


def work() -> None:
    """Be `headway` under the profiler, from the first job to the last."""
    from headway.cli.main import run

    profile = cProfile.Profile()
    code = profile.runcall(run, sys.argv[1:])
    profile.dump_stats(os.environ[PROFILE])
    sys.exit(code)


def main(store: str, count: int, max_active: int) -> None:
    import homes
    from apps import fill, held, site, working
    from server import server

    homes.HEADWAY = (sys.executable, __file__)
    with tempfile.TemporaryDirectory(prefix="headway-bench-", ignore_cleanup_errors=True) as folder:
        lab = Lab(Path(folder), quick=False)
        path = str(Path(folder) / "profile")
        with server(lab, lab.fresh("postgres")), site(lab, store, max_active=max_active) as home:
            home.client.context.environ[PROFILE] = path
            with working(home) as process:
                with held(home, process):
                    fill(home, count)
                    begin = time.perf_counter()
                homes.until_drained(home.client)
                taken = time.perf_counter() - begin
        print(f"{count} functions, {store}, max_active {max_active}: {count / taken:,.0f}/s")
        pstats.Stats(path).sort_stats("tottime").print_stats(TOP)


if __name__ == "__main__":
    if PROFILE in os.environ:
        work()
    else:
        store, count, max_active, *_ = [*sys.argv[1:], *("10000", "100")[len(sys.argv) - 2 :]]
        main(store, int(count), int(max_active))
