"""The goals, each a figure of Headway's, alone or against a peer's of the same run, and its bound.

Those of function jobs are in function_goals.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from measure import Figures

Formula = Callable[[Figures], float]


class Sense(StrEnum):
    AT_LEAST = "at least"
    AT_MOST = "at most"


@dataclass(frozen=True)
class Goal:
    """`value` is held against `bound`; `ours` and `theirs` are what a reader wants to see."""

    title: str
    sense: Sense
    bound: float
    unit: str
    value: Formula
    ours: str
    theirs: str = ""
    needs: str = ""  # the peer without which there is no answer


@dataclass(frozen=True)
class Answer:
    goal: Goal
    value: float | None  # None: a peer is missing
    ours: str
    theirs: str

    @property
    def met(self) -> bool | None:
        if self.value is None:
            return None
        if self.goal.sense is Sense.AT_LEAST:
            return self.value >= self.goal.bound
        return self.value <= self.goal.bound

    @property
    def score(self) -> float | None:
        """How far from the goal: 1 is the goal itself, more is better, whatever its sense."""
        if self.value is None:
            return None
        if self.goal.sense is Sense.AT_LEAST:
            return self.value / self.goal.bound
        return self.goal.bound / max(self.value, 1e-9)

    @property
    def verdict(self) -> str:
        return {True: "met", False: "MISSED", None: "not measured"}[self.met]


def over(ours: str, theirs: str) -> Formula:
    return lambda figures: figures[ours] / figures[theirs]


def plain(name: str) -> Formula:
    return lambda figures: figures[name]


def overhead(figures: Figures) -> float:
    """What a job costs one at a time beyond what make takes for the same command, in ms."""
    return 1e3 / figures["commands.1.headway"] - 1e3 / figures["commands.1.make"]


def chain_over_flat(figures: Figures) -> float:
    return figures["commands.1.headway"] / figures["commands.chain.headway"]


GOALS = (
    Goal(
        "submit commands one by one, SQLite, x Huey",
        Sense.AT_LEAST,
        1.0,
        "x",
        over("submit.sqlite.one.headway", "submit.sqlite.one.huey"),
        "{submit.sqlite.one.headway:,.0f}/s",
        "Huey {submit.sqlite.one.huey:,.0f}/s",
        "huey",
    ),
    Goal(
        "submit 10,000 commands in one call, SQLite, x Huey's enqueue",
        Sense.AT_LEAST,
        12.0,
        "x",
        over("submit.sqlite.bulk.headway", "submit.sqlite.one.huey"),
        "{submit.sqlite.bulk.headway:,.0f}/s",
        "Huey {submit.sqlite.one.huey:,.0f}/s",
        "huey",
    ),
    Goal(
        "submit commands one by one, PostgreSQL, x pgqueuer",
        Sense.AT_LEAST,
        1.0,
        "x",
        over("submit.postgres.one.headway", "submit.postgres.one.pgqueuer"),
        "{submit.postgres.one.headway:,.0f}/s",
        "pgqueuer {submit.postgres.one.pgqueuer:,.0f}/s, "
        "Procrastinate {submit.postgres.one.procrastinate:,.0f}/s",
        "pgqueuer",
    ),
    Goal(
        "submit 10,000 commands in one call, PostgreSQL, x pgqueuer's bulk",
        Sense.AT_LEAST,
        1.0,
        "x",
        over("submit.postgres.bulk.headway", "submit.postgres.bulk.pgqueuer"),
        "{submit.postgres.bulk.headway:,.0f}/s",
        "pgqueuer {submit.postgres.bulk.pgqueuer:,.0f}/s, "
        "Procrastinate {submit.postgres.bulk.procrastinate:,.0f}/s",
        "pgqueuer",
    ),
    Goal(
        "2,000 x `true`, max_active 8, x task-spooler",
        Sense.AT_LEAST,
        0.35,
        "x",
        over("commands.8.headway", "commands.8.tsp"),
        "{commands.8.headway:,.0f}/s",
        "task-spooler {commands.8.tsp:,.0f}/s, make -j8 {commands.8.make:,.0f}/s",
        "task-spooler",
    ),
    Goal(
        "2,000 x `true`, max_active 1, overhead over make -j1",
        Sense.AT_MOST,
        8.0,
        "ms",
        overhead,
        "{commands.1.headway:,.0f}/s",
        "make -j1 {commands.1.make:,.0f}/s",
    ),
    Goal(
        "chain of 2,000, time per job, x flat",
        Sense.AT_MOST,
        3.0,
        "x",
        chain_over_flat,
        "{commands.chain.headway:,.0f}/s",
        "flat {commands.1.headway:,.0f}/s",
    ),
    Goal(
        "submit to start, idle system, p50",
        Sense.AT_MOST,
        15.0,
        "ms",
        plain("latency.submit.p50"),
        "p50 {latency.submit.p50:.1f} ms, p99 {latency.submit.p99:.1f} ms",
        "bare `date` {latency.bare.p50:.1f} ms",
    ),
    Goal(
        "end of a job to start of its dependent, p50",
        Sense.AT_MOST,
        10.0,
        "ms",
        plain("latency.dependent.p50"),
        "p50 {latency.dependent.p50:.1f} ms, p99 {latency.dependent.p99:.1f} ms; "
        "by run rows {latency.dependent.rows.p50:.1f} and {latency.dependent.rows.p99:.1f} ms",
        "bare `date` {latency.bare.p50:.1f} ms",
    ),
    Goal(
        "`headway submit -- true`, x `python -c pass`",
        Sense.AT_MOST,
        8.0,
        "x",
        over("startup.headway", "startup.python"),
        "{startup.headway:.0f} ms",
        "python {startup.python:.0f} ms, with its two imports {startup.imports:.0f} ms",
    ),
    Goal(
        "idle worker and parent, CPU",
        Sense.AT_MOST,
        0.1,
        "%",
        plain("idle.cpu_percent"),
        "{idle.cpu_percent:.3f} %",
    ),
    Goal(
        "idle worker and parent, wake-ups a second",
        Sense.AT_MOST,
        2.0,
        "/s",
        plain("idle.wake_ups"),
        "{idle.wake_ups:.2f}/s",
    ),
    Goal(
        "supervisor memory with 20 running, PSS",
        Sense.AT_MOST,
        2.0,
        "MB",
        plain("memory.supervisor_mb"),
        "{memory.supervisor_mb:.2f} MB; parent {memory.parent_mb:.1f} MB, "
        "worker {memory.worker_mb:.1f} MB",
    ),
    Goal(
        "planning step, next of the queue, SQLite, large store x small",
        Sense.AT_MOST,
        1.5,
        "x",
        over("planning.sqlite.queue.large", "planning.sqlite.queue.small"),
        "{planning.sqlite.queue.large:.2f} ms",
        "small {planning.sqlite.queue.small:.2f} ms",
    ),
    Goal(
        "planning step, hand on a lock, SQLite, large store x small",
        Sense.AT_MOST,
        1.5,
        "x",
        over("planning.sqlite.lock.large", "planning.sqlite.lock.small"),
        "{planning.sqlite.lock.large:.2f} ms",
        "small {planning.sqlite.lock.small:.2f} ms",
    ),
    Goal(
        "planning step, next of the queue, PostgreSQL, large store x small",
        Sense.AT_MOST,
        1.5,
        "x",
        over("planning.postgres.queue.large", "planning.postgres.queue.small"),
        "{planning.postgres.queue.large:.2f} ms",
        "small {planning.postgres.queue.small:.2f} ms",
        "PostgreSQL",
    ),
    Goal(
        "planning step, hand on a lock, PostgreSQL, large store x small",
        Sense.AT_MOST,
        1.5,
        "x",
        over("planning.postgres.lock.large", "planning.postgres.lock.small"),
        "{planning.postgres.lock.large:.2f} ms",
        "small {planning.postgres.lock.small:.2f} ms",
        "PostgreSQL",
    ),
)


def answer(goal: Goal, figures: Figures) -> Answer:
    try:
        value: float | None = goal.value(figures)
    except KeyError:
        value = None
    return Answer(goal, value, _filled(goal.ours, figures), _filled(goal.theirs, figures))


def _filled(text: str, figures: Figures) -> str:
    """The text with figures for their names; of a missing one only a dash."""
    pieces = text.split("{")
    filled = pieces[0]
    for piece in pieces[1:]:
        slot, _, rest = piece.partition("}")
        name, _, form = slot.partition(":")
        filled += (format(figures[name], form) if name in figures else "-") + rest
    return filled
