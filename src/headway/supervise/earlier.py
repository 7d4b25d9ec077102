"""An earlier start of the same job in its folder, which the store knows nothing of.

A server that took over without the last commits, or a store that was set back, forgets claims whose
commands were started. Before another start the folder is asked. docs/protocols.md, section 2.
"""

from __future__ import annotations

import os

from headway.supervise.evidence import Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from headway.supervise.records import OutcomeRecord, Started


class Earlier:
    """A start under another token, and whether its supervisor still lives."""

    __slots__ = ("created_at", "evidence", "lives", "outcome", "started")

    def __init__(self, evidence: Evidence, *, lives: bool, outcome: OutcomeRecord | None) -> None:
        self.evidence = evidence
        self.lives = lives
        self.outcome = outcome
        self.started: Started | None = evidence.read_started()
        self.created_at: int | None = _created_at(evidence)


def earlier_start(folder: str, token: str) -> Earlier | None:
    """The start that counts beside the one of this token: one that lives, else one that came so far
    that its command ran. Of those that never began, each is forbidden to begin."""
    ended = None
    for other in _others(folder, token):
        evidence = Evidence(folder, other)
        if evidence.is_void():
            continue
        outcome = evidence.read_outcome()
        if outcome is None:
            lock = evidence.try_lock()
            if lock is None:
                return Earlier(evidence, lives=True, outcome=None)
            try:
                outcome = evidence.read_outcome()
                if outcome is None and evidence.read_started() is None:
                    evidence.make_void()
                    continue
            finally:
                os.close(lock)
        if outcome is None or outcome.reason != "spawn_error":
            ended = Earlier(evidence, lives=False, outcome=outcome)
    return ended


def _others(folder: str, token: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    parts = (name.split(".") for name in names)
    found = {each[1] for each in parts if len(each) == 2 and each[0] in ("claim", "started")}
    return sorted(found - {token})


def _created_at(evidence: Evidence) -> int | None:
    """When the job was submitted that it was a start of: another one may have got its number."""
    try:
        spec: dict[str, Any] = evidence.read_spec()
        at = spec.get("created_at")
    except (OSError, ValueError, AttributeError):
        return None
    return at if isinstance(at, int) else None
