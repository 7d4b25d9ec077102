"""The goals of moves in the queue, the same on both stores."""

from goals import Goal, Sense, over

NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
NEEDS = {"sqlite": "", "postgres": "PostgreSQL"}


def _goal(store: str, side: str) -> Goal:
    long, short = (f"moves.{store}.{side}.{size}" for size in ("long", "short"))
    return Goal(
        f"move {side}, {NAMES[store]}, in a queue of 100,000 x of 100",
        Sense.AT_MOST,
        1.5,
        "x",
        over(long, short),
        f"{{{long}:.2f}} ms",
        f"short queue {{{short}:.2f}} ms",
        NEEDS[store],
    )


MOVE_GOALS = tuple(_goal(store, side) for store in NAMES for side in ("front", "before", "after"))
