"""What people do to the queue in a world: groups, limits, places, work items and direct calls."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

from headway.base.errors import HeadwayError
from headway.client import Client
from headway.core.facts import Answer
from headway.core.groups import POLICIES, GroupMode
from headway.core.model import JobId, JobSpec, ProbeKind, Question
from headway.core.order import Place, Side
from headway.core.reservations import Reservation
from headway.core.subjects import SLING
from headway.jobs.groups import Plan, submit_specs_as_group
from headway.jobs.insert import Submitted
from headway.jobs.order import move, reorder
from headway.jobs.reservations import granted, keys_taken, stand_in_line
from headway.jobs.submit import submit_calls

if TYPE_CHECKING:
    from simulation.world import World

RESOURCES = ("gpu", "net", "disk")
PLACE = "/sim/tasks"
READY, BLOCKED = Answer("open\n\n"), Answer("open\n\nanother")
LONGEST_CALL = 4.0  # seconds; nobody renews it


class Queueing:
    """For `People`: each act is one more thing that somebody may do."""

    def __init__(self, world: "World", caller: Client, recent: Sequence[JobId]) -> None:
        self._world = world
        self._rng: Random = world.rng
        self._caller = caller
        self._recent = recent
        self._blocked: list[str] = []
        self.acts: list[tuple[int, Callable[[], None]]] = [
            (2, self._move),
            (2, self._call),
            (1, self._set_limit),
            (2, self.unblock),
        ]

    def begin(self) -> None:
        for word in RESOURCES:
            self._limit(word, self._world.profile.units)

    def _limit(self, word: str, value: int) -> None:
        self._caller.set_setting(f"scheduler.limits.resource.{word}", value)
        self._world.limits[word] = value

    def _set_limit(self) -> None:
        if self._rng.random() < 0.3:
            units = self._rng.choice((1, self._world.profile.units))
            self._limit(self._rng.choice(RESOURCES), units)

    # -- jobs ----------------------------------------------------------------------------------

    def takes(self, job_id: JobId, params: dict[str, Any]) -> dict[str, Any]:
        """What a job that will have this id needs of the limits, and what it is about."""
        rng = self._rng
        fields: dict[str, Any] = {}
        if rng.random() < 0.3:
            fields["resources"] = tuple(rng.sample(RESOURCES, rng.choice((1, 1, 2))))
        if rng.random() < 0.05:
            subject = f"item-{job_id}"
            fields |= {"subject": subject, "target": "east"}
            fields["params"] = {**params, SLING: _record()}
            blocked = rng.random() < 0.5
            self._world.becomes(about(subject), BLOCKED if blocked else READY)
            self._blocked += [subject] * blocked
        return fields

    def submit(self, caller: Client, specs: Sequence[JobSpec]) -> list[Submitted]:
        """Now and then as a group."""
        if self._rng.random() < 0.7:
            return submit_calls(caller.context, specs)
        plan = Plan(self._rng.choice(list(GroupMode)), self._rng.choice(list(POLICIES)))
        size = min(len(specs), self._rng.choice((2, 3, 8)))
        _, members = submit_specs_as_group(caller.context, specs[:size], plan)
        return members + (submit_calls(caller.context, specs[size:]) if specs[size:] else [])

    def unblock(self, *, all_of_them: bool = False) -> None:
        while self._blocked:
            self._world.becomes(about(self._blocked.pop()), READY)
            if not all_of_them:
                return

    # -- places --------------------------------------------------------------------------------

    def _move(self) -> None:
        if len(self._recent) < 4:
            return
        one, other, *more = self._rng.sample(self._recent, 4)
        side = self._rng.choice(list(Side))
        number = self._rng.randrange(1, 9) if side is Side.POSITION else other
        with suppress(HeadwayError):  # it waits no more, or has another priority
            if self._rng.random() < 0.8:
                move(self._caller.context, one, Place(side, number))
            else:
                reorder(self._caller.context, [one, other, *more])

    # -- direct calls --------------------------------------------------------------------------

    def _call(self) -> None:
        words = self._rng.sample(RESOURCES, self._rng.choice((0, 0, 1)))
        with self._caller.context.store.write() as tx:
            made = stand_in_line(self._caller.context, tx, "", keys_taken(None, words, None), None)
        self._look_for_slot(made)

    def _look_for_slot(self, asking: Reservation) -> None:
        """Until it has one, or somebody has removed it because its time was over."""
        with self._caller.context.store.write() as tx:
            if tx.reservations.by_token(asking.token) is None:
                return
            after = granted(self._caller.context, tx, asking)
        self._world.watch.look()
        if after.waits:
            self._world.later(0.5, lambda: self._look_for_slot(asking))
        else:
            seconds = self._rng.random() * LONGEST_CALL
            self._world.later(seconds, lambda: self._hang_up(asking))
        self._world.hint()

    def _hang_up(self, asking: Reservation) -> None:
        with self._caller.context.store.write() as tx:
            if tx.reservations.release(asking):
                self._world.watch.calls.pop(asking.name, None)
        self._world.watch.look()
        self._world.hint()


def _record() -> dict[str, Any]:
    """As a sling writes it."""
    told = dict.fromkeys(("title", "recipe", "args"))
    return {"version": 1, "source": "tasks", "place": PLACE, "vars": {}, **told}


def about(subject: str) -> Question:
    return Question(ProbeKind.SUBJECT, f"tasks:{PLACE}", subject)
