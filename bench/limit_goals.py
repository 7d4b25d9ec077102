"""The goals of limits and rates, the same on both stores."""

from goals import Goal, Sense, over

NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
NEEDS = {"sqlite": "", "postgres": "PostgreSQL"}


def _goal(store: str) -> Goal:
    every, plain = (f"limits.{store}.{which}" for which in ("all", "plain"))
    return Goal(
        f"planning step, {NAMES[store]}, all policies on x none",
        Sense.AT_MOST,
        1.5,
        "x",
        over(every, plain),
        f"{{{every}:.2f}} ms",
        f"none {{{plain}:.2f}} ms",
        NEEDS[store],
    )


LIMIT_GOALS = tuple(_goal(store) for store in NAMES)
