"""`make bench`: everything three times over, interleaved; medians, a table, a file and a chart.

BENCH=quick makes all sizes ten times smaller. Arguments say how the names of benchmarks begin, to
run only those: `run.py flat chain`, or `run.py web` for the server and webhooks. Exits 0 also when
goals are missed: a benchmark tells, it does not judge a build.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from chart import draw
from commands import chain, flat
from flow_goals import FLOW_GOALS
from flows import flows
from fullness import function_full
from function_goals import FUNCTION_GOALS
from functions import (
    function_dependent,
    function_depth,
    function_drain,
    function_graphs,
    function_latency,
)
from goals import GOALS, Answer, answer
from graph_goals import GRAPH_GOALS
from graphs import graph
from latency import bare_command, end_to_dependent, submit_to_start
from limit_goals import LIMIT_GOALS
from limits import limited
from measure import HERE, Figures, Lab, medians, versions
from move_goals import MOVE_GOALS
from moves import moves
from planning import planning
from resting import idle, memory
from schedule_goals import SCHEDULE_GOALS
from schedules import schedules
from server import server
from startup import startup
from submits import on_postgres, on_sqlite
from web import web
from web_goals import WEB_GOALS
from webhook_goals import WEBHOOK_GOALS
from webhooks import webhooks

ROUNDS = 3
ALL_GOALS = (
    *(*GOALS, *FUNCTION_GOALS, *GRAPH_GOALS, *MOVE_GOALS, *LIMIT_GOALS),
    *(*SCHEDULE_GOALS, *FLOW_GOALS, *WEB_GOALS, *WEBHOOK_GOALS),
)
BENCHMARKS: tuple[Callable[[Lab], Figures], ...] = (
    on_sqlite,
    on_postgres,
    flat,
    chain,
    submit_to_start,
    end_to_dependent,
    bare_command,
    function_drain,
    function_latency,
    function_dependent,
    function_graphs,
    function_depth,
    function_full,
    startup,
    memory,
    planning,
    moves,
    limited,
    graph,
    flows,
    schedules,
    web,
    webhooks,
    idle,
)


def main() -> int:
    quick = os.environ.get("BENCH") == "quick"
    words = tuple(sys.argv[1:])
    chosen = [each for each in BENCHMARKS if not words or each.__name__.startswith(words)]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="headway-bench-", ignore_cleanup_errors=True) as folder:
        lab = Lab(Path(folder), quick=quick)
        with server(lab, lab.fresh("postgres")) as postgres:
            used = {**versions(), "postgresql": postgres}
            for name, version in used.items():
                print(f"  {name:14s} {version}")
            rounds = [_round(lab, chosen, number) for number in range(1, ROUNDS + 1)]
    figures = medians(rounds)
    every = [answer(goal, figures) for goal in ALL_GOALS]
    answers = [each for each in every if _asked(each, chosen)]
    size = "quick" if quick else "full"
    print("\n" + table(answers))
    for peer, why in lab.missing.items():
        print(f"not measured: {peer}: {why}")
    print(f"{size}, {time.monotonic() - begin:.0f} s; a gap under 25 % says nothing")
    _keep(answers, figures, rounds, used, size=size, missing=lab.missing)
    return 0


def _round(lab: Lab, chosen: Sequence[Callable[[Lab], Figures]], number: int) -> Figures:
    print(f"round {number} of {ROUNDS}: load average {os.getloadavg()[0]:.1f}", flush=True)
    figures: Figures = {"machine.load": os.getloadavg()[0]}
    for benchmark in chosen:
        begin = time.monotonic()
        figures |= benchmark(lab)
        taken = time.monotonic() - begin
        print(f"round {number} of {ROUNDS}: {benchmark.__name__:18s} {taken:6.1f} s", flush=True)
    return figures


def _asked(answer: Answer, chosen: Sequence[Callable[[Lab], Figures]]) -> bool:
    """With only some benchmarks chosen, leave out what was not to be measured."""
    return answer.value is not None or len(chosen) == len(BENCHMARKS)


def table(answers: Sequence[Answer]) -> str:
    """The same Markdown as in docs/benchmarks.md."""
    lines = ["| | Headway | beside | measured | goal | |", "|---|---|---|---|---|---|"]
    for each in answers:
        goal = each.goal
        value = "-" if each.value is None else f"{each.value:.2f} {goal.unit}"
        bound = f"{goal.sense} {goal.bound:g} {goal.unit}"
        verdict = each.verdict if each.met else f"**{each.verdict}**"
        cells = (goal.title, each.ours, each.theirs, value, bound, verdict)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _keep(
    answers: Sequence[Answer],
    figures: Figures,
    rounds: Sequence[Figures],
    used: dict[str, str],
    *,
    size: str,
    missing: dict[str, str],
) -> None:
    out = HERE / "out"
    out.mkdir(exist_ok=True)
    document = {
        "size": size,
        "versions": used,
        "missing": missing,
        "goals": [
            {
                "title": each.goal.title,
                "measured": each.value,
                "unit": each.goal.unit,
                "goal": f"{each.goal.sense} {each.goal.bound:g}",
                "verdict": each.verdict,
            }
            for each in answers
        ],
        "medians": figures,
        "rounds": rounds,
    }
    (out / "results.json").write_text(json.dumps(document, indent=2) + "\n")
    sizes = "quick (a tenth of the sizes)" if size == "quick" else size
    subtitle = f"{sizes} run, medians of {ROUNDS}, {used['cores']} cores; bars to the right are met"
    (out / "chart.svg").write_text(draw(answers, subtitle))
    print(f"wrote {out / 'results.json'} and {out / 'chart.svg'}")


if __name__ == "__main__":
    sys.exit(main())
