"""The nouns of the seam that every submit needs; `base` has them too, with all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from headway.core.model import NOTHING, Job, JobId
from headway.core.states import Status


class Event(NamedTuple):
    """One line of the append-only record: a transition or an operator's action."""

    kind: str
    job_id: JobId | None = None
    data: Mapping[str, Any] = NOTHING
    actor: str = ""
    at: int = 0
    seq: int = 0


class Places(NamedTuple):
    """What the jobs get that are added next: the first of their ids and its position, after all
    that there are; each further id stands a gap further. And the ageing that is set, by which they
    may have other levels, and of the jobs that they are after those that there are, each with its
    chain and how that stands."""

    first_id: JobId
    position: int
    ageing: str | None
    ends: Mapping[JobId, tuple[JobId, Status]] = NOTHING


class Model:
    """What jobs that are alike have in common: a job whose id, chain, place, instant and parameters
    say nothing. A store keeps with it how it writes that down, for the next time."""

    __slots__ = ("job", "ready", "written")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.written: Mapping[str, Any] | None = None
        self.ready: tuple[Any, Any] | None = None  # a store, and how that one hands it over


class Alike(NamedTuple):
    """Jobs of one model, as the parameters of each by its place among all that are added along."""

    model: Model
    params: dict[int, Mapping[str, Any]]
