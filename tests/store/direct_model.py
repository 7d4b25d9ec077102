"""Direct calls in the small model: who is in line, who holds a slot, and in whose place."""

from dataclasses import dataclass
from typing import Any

from queue_model import SLOT, QueueModel
from small_model import SECOND, Job

EXPIRY = 10 * SECOND


@dataclass
class Call:
    id: int
    keys: set[str]
    until: int
    inside: (
        int | None
    )  # the job that makes it, and when it has its slot, the one whose place it has
    granted: bool = False


class DirectModel(QueueModel):
    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.calls: dict[int, Call] = {}
        self.next_call = 1

    # -- looking -------------------------------------------------------------------------------

    def in_line(self) -> list[Call]:
        return [call for call in self.calls.values() if not call.granted]

    def granted(self) -> list[Call]:
        return [call for call in self.calls.values() if call.granted]

    def holders(self) -> dict[int, tuple[set[str], int | None]]:
        """Calls go by their numbers below zero. One that a job makes has that job's place as long
        as it runs."""
        jobs = super().holders()
        calls = {
            -call.id: (call.keys, call.inside if call.inside in jobs else None)
            for call in self.granted()
        }
        return jobs | calls

    def busy(self) -> set[int | None]:
        """Whose place is taken by another."""
        lent = {lender for _, lender in self.holders().values()}
        return lent | {call.inside for call in self.granted()}

    def lenders(self, job: Job) -> set[int]:
        return {each for each in super().lenders(job) if each not in self.busy()}

    def goes_first(self) -> bool:
        """Whether the first in line has all slots to itself: it lacks one, or nothing at all, or
        there is only one left."""
        if not self.in_line():
            return False
        caps = self.caps()
        left = caps[SLOT] - self.used(SLOT) if SLOT in caps else 2
        return left <= 1 or not self.waits_for(self.in_line()[0])

    def waits_for(self, call: Call) -> set[str]:
        caps = self.caps()
        return {k for k in call.keys - {SLOT} if k in caps and self.used(k) >= caps[k]}

    def full(self, job: Job) -> set[str]:
        """What a call takes that waits only for a limit is kept for it."""
        caps, kept = self.caps(), set[str]()
        if self.in_line() and not self.goes_first():
            first = self.in_line()[0]
            kept = first.keys - self.waits_for(first)
        taken = {key: self.used(key) + (key in kept) for key in self.takes(job)}
        return {key for key, count in taken.items() if key in caps and count >= caps[key]}

    def slots_for(self, job: Job) -> set[int | None]:
        """While a call is first nobody else takes a slot; what is lent is none."""
        slots = super().slots_for(job)
        return set(self.lenders(job)) if self.goes_first() and slots == {None} else slots

    def reasons(self, job: Job) -> dict[str, set[str]]:
        found = super().reasons(job)
        if self.goes_first() and not {"paused", "pressure"} & found.keys():
            first = f"direct-{self.in_line()[0].id} of ann goes first"
            found["capacity"] = {first, *found.get("capacity", set())}
        return found

    def place_of(self, call: Call) -> set[int | None]:
        """Whose place it may have now: None is one of its own; empty, there is none."""
        if self.is_shut():
            return set()
        caps = self.caps()
        lacking = {k for k in call.keys if k in caps and self.used(k) >= caps[k]}
        exceeded = any(self.used(key) > caps[key] for key in lacking & self.twice())
        maker = call.inside if call.inside in super().holders() else None
        alone = maker is not None and maker not in self.busy()
        if alone and not exceeded and lacking <= self.gives(maker):
            return {maker}
        first = self.in_line()[0] is call
        return {None} if first and not lacking else set()

    # -- acting --------------------------------------------------------------------------------

    def call(self, keys: set[str], inside: int | None) -> Call:
        made = Call(self.next_call, keys | {SLOT}, self.now + EXPIRY, inside)
        self.calls[made.id] = made
        self.next_call += 1
        return made

    def release(self, call: Call) -> None:
        del self.calls[call.id]
        self.loans = {token: loan for token, loan in self.loans.items() if loan[0] != -call.id}

    def expire(self) -> None:
        for call in [each for each in self.calls.values() if each.until <= self.now]:
            self.release(call)

    def picture(self) -> dict[str, Any]:
        return {
            **super().picture(),
            "calls": [
                (call.id, call.granted, call.inside, call.keys - {SLOT}, call.until)
                for call in self.calls.values()
            ],
        }
