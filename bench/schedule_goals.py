"""The goals of schedules."""

from goals import Goal, Sense

SCHEDULE_GOALS = (
    Goal(
        "CPU of a worker with 10,000 idle schedules, above one with none",
        Sense.AT_MOST,
        0.2,
        "%",
        lambda figures: max(
            0.0, figures["schedules.idle_percent"] - figures["schedules.none_percent"]
        ),
        "{schedules.idle_percent:.2f} %",
        "none {schedules.none_percent:.2f} %",
    ),
    Goal(
        "1,000 schedules due at once, the job of each stored",
        Sense.AT_MOST,
        2.0,
        "ms each",
        lambda figures: figures["schedules.fire_ms_each"],
        "{schedules.fire_ms_each:.2f} ms",
    ),
)
