"""The records that every submit needs; `records` has all others."""

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
    """The places of the jobs that are added next: the first id and its position, after all others;
    each further id stands a gap further. Also the ageing in force, which may change their levels,
    and the existing predecessors, each with its chain and the chain's state."""

    first_id: JobId
    position: int
    ageing: str | None
    ends: Mapping[JobId, tuple[JobId, Status]] = NOTHING


class Model:
    """The common part of jobs that are alike: a job whose id, chain, place, instant and parameters
    mean nothing. A store keeps the encoded form with it, for the next time."""

    __slots__ = ("job", "ready", "written")

    def __init__(self, job: Job) -> None:
        self.job = job
        self.written: Mapping[str, Any] | None = None
        self.ready: tuple[Any, Any] | None = None  # a store, and how that one hands it over


class Alike(NamedTuple):
    """Jobs of one model, as the parameters of each by its place among all that are added along."""

    model: Model
    params: dict[int, Mapping[str, Any]]
