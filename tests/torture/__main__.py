"""`python -m torture --kills 10000 --seed 1 --store both`: exit code 1 on any violation."""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from torture import report
from torture.arena import Arena, torture
from torture.checker import check, gather, red
from torture.sabotaged import IN_WORKER
from torture.stores import store_url

TELL_SECONDS = 5.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="make torture")
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--store", choices=("sqlite", "postgres", "both"), default="both")
    parser.add_argument("--without", choices=IN_WORKER, help="a safeguard to take out")
    asked = parser.parse_args()
    seed = random.randrange(1_000_000) if asked.seed is None else asked.seed
    stores = ("sqlite", "postgres") if asked.store == "both" else (asked.store,)
    green = [run(each, kills=asked.kills, seed=seed, without=asked.without) for each in stores]
    return 0 if all(green) else 1


def run(store: str, *, kills: int, seed: int, without: str | None) -> bool:
    """Torture one store and print what was found; the folder stays if something was."""
    folder = Path(tempfile.mkdtemp(prefix=f"headway-torture-{store}-"))
    title = f"{store}, seed {seed}" + (f", without the {without}" if without else "")
    print(f"{title}: {kills} kills in {folder}", flush=True)
    with store_url(store) as url:
        arena = Arena(folder, store_url=url, without=without)
        try:
            tortured = torture(arena, kills=kills, seed=seed, tell=_progress(kills))
            given = gather(folder, arena.url)
        finally:
            arena.close()
    results = check(given)
    for line in report.lines(title, given, results, tortured):
        print(line)
    green = not red(results) and tortured.came_to_rest
    if green:
        shutil.rmtree(folder)
    else:
        print("\n".join(report.evidence(results)))
        print(f"everything is kept in {folder}")
    sys.stdout.flush()
    return green


def _progress(kills: int) -> Callable[[int], None]:
    """A line every few seconds for a person, every tenth of the way for a log."""
    began = time.monotonic()
    last_at, last_part = began, 0

    def tell(strikes: int) -> None:
        nonlocal last_at, last_part
        now, part = time.monotonic(), 10 * strikes // max(1, kills)
        due = now - last_at >= TELL_SECONDS if sys.stdout.isatty() else part > last_part
        if due:
            last_at, last_part = now, part
            print(f"  {strikes} of {kills} kills, {now - began:.0f} s", flush=True)

    return tell


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; its folder is kept")
