"""Which ended jobs may go: the rule by age and number, and what holds against it. Pure."""

from enum import StrEnum
from typing import NamedTuple

from headway.core.model import JobId

DAY = 86_400_000_000
_EVER = 1 << 62


class EndPlace(NamedTuple):
    """Where a job stands among the ended ones: by its end, then by its id."""

    at: int
    job_id: JobId


class RetentionRule(NamedTuple):
    """Which jobs are removed: those that ended more than so many days ago, and those not among the
    newest so many. None is no bound. The second removes only jobs older than `spare`, in
    microseconds."""

    days: int | None
    jobs: int | None
    spare: int = 0


class RetentionLimits(NamedTuple):
    """A rule at one instant: all that ended before `before`, and all before `beyond` in the order
    that ended before `spared_since`."""

    before: int | None = None
    beyond: EndPlace | None = None
    spared_since: int = 0

    @property
    def until(self) -> int | None:
        """No job that ended later is concerned; None if none at all is."""
        bounds = [self.before] if self.before is not None else []
        if self.beyond is not None:
            bounds.append(min(self.beyond.at + 1, self.spared_since))
        return max(bounds, default=None)

    def take(self, place: EndPlace) -> bool:
        """Whether a chain is removed whose last job has this place."""
        if self.before is not None and place.at < self.before:
            return True
        return self.beyond is not None and place < self.beyond and place.at < self.spared_since


class InTheWay(StrEnum):
    """Why a chain stays although its time has come, in the order in which it is said."""

    AFTER = "an active job comes after it"
    ARTIFACT = "an active job needs what it made"
    AWAITED = "a running job waits for it"
    PROCESSES = "its processes are not proven gone"
    LOCKS = "it holds locks"
    GROUP = "its group has not ended"
    RUN = "its workflow run has not ended"
    WEBHOOK = "webhooks have yet to be told of its end"
    WORKTREE = "it has a worktree"


class Obstacle(NamedTuple):
    why: InTheWay
    by: JobId  # the job that refers to the chain, or the member itself


def automatic(days: int, jobs: int) -> RetentionRule:
    """The rule of the settings, where 0 says nothing. Whatever the number, nobody loses the
    results of the last night."""
    return RetentionRule(days or None, jobs or None, spare=DAY)


def limits_of(rule: RetentionRule, *, now: int, nth_newest: EndPlace | None) -> RetentionLimits:
    """`nth_newest` is the last that the number spares, if there are so many."""
    before = None
    if rule.days is not None:
        before = now - rule.days * DAY if rule.days else _EVER
    beyond = nth_newest
    if rule.jobs == 0:
        beyond = EndPlace(_EVER, 0)
    return RetentionLimits(before, beyond, now - rule.spare if rule.spare else _EVER)
