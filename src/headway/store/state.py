"""The small state of the scheduler, as one query tells it: what the door asks for in every step."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from headway.core.model import HostTrouble, JobId, Pause, WaitKind
from headway.store.base import Lending, Slots
from headway.store.rows import load


class State(NamedTuple):
    settings: Mapping[str, Any]
    pause: Pause | None
    breakers: Mapping[str, HostTrouble]
    marks: Mapping[str, int]
    slots: Slots
    lendings: tuple[Lending, ...]


def load_state(rows: Iterable[tuple[Any, ...]]) -> State:
    settings: dict[str, Any] = {}
    pause = None
    breakers: dict[str, HostTrouble] = {}
    marks: dict[str, int] = {}
    used: set[int] = set()
    running: dict[JobId, JobId | None] = {}
    probing = False
    lendings: list[Lending] = []
    for what, a, b, c, d in rows:
        if what == "slot":
            used.add(int(a))
            running[int(b)] = None if c is None else int(c)
            probing = probing or d != "0"
        elif what == "mark":
            marks[a] = int(b)
        elif what == "setting":
            settings[a] = load(b, f"setting {a}")
        elif what == "lending":
            lendings.append(Lending(int(a), int(b), int(c)))
        elif what == "pause":
            pause = Pause(a, b, int(c))
        else:
            failures, probe_at = d.split()
            breakers[a] = HostTrouble(WaitKind(b), c, int(failures), int(probe_at))
    slots = Slots(frozenset(used), running, probing)
    return State(settings, pause, breakers, marks, slots, tuple(lendings))
