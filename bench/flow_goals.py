"""The goals of workflow runs, the same on both stores."""

from goals import Goal, Sense, over, plain

NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


def _goals(store: str) -> tuple[Goal, ...]:
    name, needs = NAMES[store], "PostgreSQL" if store == "postgres" else ""
    run, graph = f"flows.run.{store}", f"flows.graph.{store}"
    return (
        Goal(
            f"workflow of 10,000 nodes compiled, {name}",
            Sense.AT_MOST,
            2.0,
            "s",
            plain(f"flows.compile.{store}"),
            f"{{flows.compile.{store}:.2f}} s, started in {{flows.start.{store}:.2f}} s",
            "",
            needs,
        ),
        Goal(
            f"run of 1,000 commands, {name}, x the same as a graph",
            Sense.AT_MOST,
            1.2,
            "x",
            over(run, graph),
            f"{{{run}:.1f}} s",
            f"graph {{{graph}:.1f}} s",
            needs,
        ),
    )


FLOW_GOALS = (*_goals("sqlite"), *_goals("postgres"))
