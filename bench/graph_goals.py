"""The goals of whole graphs, the same on both stores."""

from goals import Goal, Sense, over, plain

NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
NEEDS = {"sqlite": "", "postgres": "PostgreSQL"}


def _goals(store: str) -> tuple[Goal, ...]:
    accept, planning = f"graph.accept.{store}", f"graph.planning.{store}"
    name, needs = NAMES[store], NEEDS[store]
    return (
        Goal(
            f"graph of 100,000 accepted, {name}",
            Sense.AT_MOST,
            10.0,
            "s",
            plain(f"{accept}.seconds"),
            f"{{{accept}.seconds:.1f}} s",
            "",
            needs,
        ),
        Goal(
            f"memory of its submit, {name}, peak",
            Sense.AT_MOST,
            500.0,
            "MB",
            plain(f"{accept}.peak_mb"),
            f"{{{accept}.peak_mb:.0f}} MB",
            "",
            needs,
        ),
        Goal(
            f"planning a job of it, {name}, last tenth x first",
            Sense.AT_MOST,
            1.5,
            "x",
            over(f"{planning}.last", f"{planning}.first"),
            f"{{{planning}.last:.2f}} ms; a job in a chain of 2,000 takes "
            f"{{graph.chain.{store}:.2f}} ms, in a fan of 10,000 {{graph.fan.{store}:.2f}} ms",
            f"first tenth {{{planning}.first:.2f}} ms",
            needs,
        ),
    )


GRAPH_GOALS = tuple(goal for store in NAMES for goal in _goals(store))
