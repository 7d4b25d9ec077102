"""Two trees in turns: `turns.py OTHER [--rounds 5] [NAME ...]` measures this tree beside another.

OTHER is a checkout with its own `bench/.venv`. Each round runs every chosen benchmark once in each
tree; the tree that begins changes from round to round. Both use one PostgreSQL. Peers are measured
where the environment of a tree has them: leave them out of OTHER's, they are the same.

The table shows the median of each figure, how this tree compares with the other (above 1 is better,
whichever way the figure counts), and at the end which goals are met.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = ("huey", "pgqueuer", "procrastinate", "dbos", "make", "tsp", "python", "disk", "machine")
RATES = ("submit.", "commands.", "functions.drain.", "functions.full.")  # more is better

Rounds = dict[str, list[float]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=HERE / "out" / "turns.json")
    asked = parser.parse_intermixed_args()
    trees = [HERE.parent, asked.other.resolve()]
    found: dict[Path, Rounds] = {tree: defaultdict(list) for tree in trees}
    asked.out.parent.mkdir(exist_ok=True)
    for number in range(asked.rounds):
        for name in asked.names or names_of(trees[0]):
            for tree in trees if number % 2 == 0 else trees[::-1]:
                begin = time.monotonic()
                for key, value in measure(tree, name).items():
                    found[tree][key].append(value)
                taken = time.monotonic() - begin
                load = os.getloadavg()[0]
                print(
                    f"{number + 1}: {name} {tree.name} {taken:.0f} s, load {load:.1f}", flush=True
                )
        asked.out.write_text(json.dumps({str(each): found[each] for each in trees}, indent=1))
    show(*(found[tree] for tree in trees))
    show_goals(found[trees[0]])
    return 0


def names_of(tree: Path) -> list[str]:
    sys.path.insert(0, str(tree / "bench"))
    return [each.__name__ for each in importlib.import_module("run").BENCHMARKS]


def measure(tree: Path, name: str) -> dict[str, float]:
    """One benchmark, once, in a process of that tree; nothing if that tree cannot run it."""
    python = tree / "bench" / ".venv" / "bin" / "python"
    done = subprocess.run(
        [python, "-c", ONE, tree / "bench", name],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        print(f"   {tree.name} {name}: {done.stderr.strip().splitlines()[-1:]}", flush=True)
        return {}
    figures: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


# Runs with the modules of either tree, so it uses only what both have.
ONE = """
import json, os, sys, tempfile
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from measure import Lab
from server import server
import run
with tempfile.TemporaryDirectory(prefix="headway-turns-", ignore_cleanup_errors=True) as folder:
    lab = Lab(Path(folder), quick=os.environ.get("BENCH") == "quick")
    with server(lab, lab.fresh("postgres")):
        (chosen,) = [each for each in run.BENCHMARKS if each.__name__ == sys.argv[2]]
        print(json.dumps(chosen(lab)))
"""


def show(ours: Rounds, theirs: Rounds) -> None:
    print("\n| figure | now | before | now is |\n|---|---|---|---|")
    for key in ours:
        if key in theirs and not any(peer in key for peer in PEERS):
            now, before = statistics.median(ours[key]), statistics.median(theirs[key])
            if now and before:
                better = now / before if is_rate(key) else before / now
                print(f"| {key} | {now:,.4g} | {before:,.4g} | {better:.2f} x |")


def is_rate(key: str) -> bool:
    depth = key.startswith("functions.depth.") and key.endswith((".first", ".last"))
    return depth or key.startswith(RATES)


def show_goals(figures: Rounds) -> None:
    run = importlib.import_module("run")
    medians = {key: statistics.median(values) for key, values in figures.items()}
    answers = [run.answer(goal, medians) for goal in run.ALL_GOALS]
    print("\n" + run.table([each for each in answers if each.value is not None]))


if __name__ == "__main__":
    sys.exit(main())
