"""The nouns of the seam that every submit needs; `base` has them too, with all others."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from headway.core.model import NOTHING, JobId


class Event(NamedTuple):
    """One line of the append-only record: a transition or an operator's action."""

    kind: str
    job_id: JobId | None = None
    data: Mapping[str, Any] = NOTHING
    actor: str = ""
    at: int = 0
    seq: int = 0


class Places(NamedTuple):
    """What new jobs get: the first of their ids, the next position of a level, and the ageing that
    is set, by which others may have other levels."""

    first_id: JobId
    position: int
    ageing: str | None
