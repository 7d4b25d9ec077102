"""The queue in the small model: limits, rates, what is lent of them, places and ageing."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from group_model import GroupModel
from small_model import SECOND, Job

SLOT = "slot"
Order = tuple[int, int, int, int]  # as the store has it


class QueueModel(GroupModel):
    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.limits: dict[str, int] = {}  # by "kind:word"
        self.often: dict[str, str] = {}  # rates that the settings say, like "2/10s"
        self.begun: list[tuple[str, int, int]] = []  # which rate, when, which job
        self.ageing = 0
        self.moves = 0  # how often anybody was put elsewhere

    # -- limits --------------------------------------------------------------------------------

    def takes(self, job: Job) -> set[str]:
        """What it holds while it runs."""
        words = {f"resource:{each}" for each in job.resources}
        target = {f"target:{job.target}"} if job.target else set()
        return {SLOT, f"type:{job.kind}"} | words | target

    def holders(self) -> dict[int, tuple[set[str], int | None]]:
        """Who holds what now, and whose place each of them has: that of one who lends."""
        lending = {each for each, _, _ in self.loans.values()}
        return {
            job.id: (self.takes(job), job.lender if job.lender in lending else None)
            for job in self.having("running")
        }

    def twice(self) -> set[str]:
        """What a lender has taken back by going on, while who borrowed it runs on, too."""
        lending = {each for each, _, _ in self.loans.values()}
        both = self.holders().keys() - lending
        return {
            key for job in self.having("running") if job.lender in both for key in self.takes(job)
        }

    def gives(self, lender: int | None) -> set[str]:
        """What this one can lend: what it holds, and what is lent to it."""
        holders, given = self.holders(), set[str]()
        while lender in holders:
            held, lender = holders.pop(lender)
            given |= held
        return given

    def used(self, key: str) -> int:
        """Who is in another's place counts only for what that one does not hold."""
        held = self.holders().values()
        return sum(key in keys and key not in self.gives(lender) for keys, lender in held)

    def occupied(self) -> int:
        return self.used(SLOT)

    def caps(self) -> dict[str, int]:
        return self.limits | ({SLOT: self.max_active} if self.max_active > 0 else {})

    def full(self, job: Job) -> set[str]:
        """Of what it needs, that of which nothing is left."""
        caps = self.caps()
        return {key for key in self.takes(job) if key in caps and self.used(key) >= caps[key]}

    def too_often(self, job: Job) -> bool:
        """One more start would be more than a rate allows."""
        for rate in job.rates:
            word, _, own = rate.partition("=")
            for text in (own, self.often.get(word, "")):
                most, _, seconds = text.removesuffix("s").partition("/")
                if text and len(self.starts_since(word, int(seconds))) >= int(most):
                    return True
        return False

    def starts_since(self, word: str, seconds: int) -> list[int]:
        since = self.now - seconds * SECOND
        return [at for key, at, _ in self.begun if key == word and at > since]

    def slots_for(self, job: Job) -> set[int | None]:
        if self.is_shut() or self.too_often(job):
            return set()
        lacking, caps = self.full(job), self.caps()
        if not lacking:
            return {None}
        if any(self.used(key) > caps[key] for key in lacking & self.twice()):
            return set()  # until one of those two has ended
        return {each for each in self.lenders(job) if lacking <= self.gives(each)}

    def reasons(self, job: Job) -> dict[str, set[str]]:
        """All that holds it back now, each with the words of which one must be said."""
        found: dict[str, set[str]] = {}
        if not self.is_due(job):
            found["launch" if job.strikes else "time"] = {""}
        if self.misses(job):
            found["dependencies"] = {""}
        if self.ahead(job):
            found["group"] = {f"in group-{job.group}, after job-{each}" for each in self.ahead(job)}
        if job.pin is not None and job.pin != self.head:
            found["pinned_head"] = {""}
        if job.approval == "pending":
            found["approval"] = {""}
        if self.lacks(job, self._before(job)) or self._keeps(job):
            found["locks"] = {""}
        if self.paused:
            found["paused"] = {"because"}
        elif self.is_shut():
            found["pressure"] = {""}
        elif self.full(job):
            found["capacity"] = {key.replace(":", " ") for key in self.full(job)}
        if self.too_often(job):
            found["rate"] = {each.partition("=")[0] for each in job.rates}
        return found

    def _before(self, job: Job) -> list[Job]:
        """Those who go before it: they have locks promised, or take them when they are let in."""
        before = [each for each in self.having("waiting") if each.order < job.order]
        return [each for each in before if not self.holds_back_inside(each)]

    def _start(self, job: Job, lender: int | None) -> None:
        super()._start(job, lender)
        self.begun += [(rate.partition("=")[0], self.now, job.id) for rate in job.rates]

    def undo(self, job: Job) -> None:
        """Its start counts for no rate."""
        self.begun = [each for each in self.begun if each[2] != job.id]
        super().undo(job)

    def set_limit(self, key: str, value: int | str | None) -> None:
        kind, _, word = key.partition(":")
        limits: dict[str, Any] = self.often if kind == "rate" else self.limits
        name = word if kind == "rate" else key
        limits.pop(name, None)
        if value is not None:
            limits[name] = value

    # -- places --------------------------------------------------------------------------------

    def level_of(self, priority: int, born: int) -> int:
        return priority - born // self.ageing if self.ageing else priority

    def set_ageing(self, ageing: int) -> None:
        """Those that come to one level keep the order that they had."""
        self.ageing = ageing
        self.moves += 1
        active = sorted(
            [*self.having("waiting"), *self.having("running")], key=lambda job: job.order
        )
        for place, job in enumerate(active):
            job.level = self.level_of(job.priority, self.jobs[job.chain].created)
            job.place = Fraction(place)

    def line(self, level: int) -> list[int]:
        """Who waits in a level, in order."""
        return [job.id for job in self.having("waiting") if job.level == level]

    def move(self, job: Job, side: str, number: int) -> bool:
        """Put it there among those that wait in its level; False if it stands there already."""
        before = self.line(job.level)
        line = [each for each in before if each != job.id]
        match side:
            case "front":
                place = 0
            case "back":
                place = len(line)
            case "position":
                place = min(number - 1, len(line))
            case _:
                place = line.index(number) + (side == "after")
        line.insert(place, job.id)
        self._stand(line, [job.id])
        return line != before

    def reorder(self, ids: list[int]) -> None:
        """These among the places that they have."""
        again = iter(ids)
        line = self.line(self.jobs[ids[0]].level)
        self._stand([next(again) if each in ids else each for each in line], ids)

    def _stand(self, line: list[int], moved: list[int]) -> None:
        """Find places for those that were moved, so that the line is this."""
        self._untie(self.jobs[line[0]].level)
        before: Fraction | None = None
        for index, number in enumerate(line):
            job = self.jobs[number]
            if number in moved:
                after = [self.jobs[each].place for each in line[index:] if each not in moved]
                low = before if before is not None else min(after, default=job.place) - 2
                job.place = (low + min(after, default=low + 2)) / 2
            before = job.place
        assert self.line(self.jobs[line[0]].level) == line

    def _untie(self, level: int) -> None:
        """Jobs may have the same place: one that was rewound has that of the one before it, which
        others may have come to. Nobody finds room between them, so they are put apart."""
        waiting = [self.jobs[each] for each in self.line(level)]
        places = sorted({each.place for each in waiting})
        for place, following in zip(places, [*places[1:], places[-1] + 1], strict=True):
            tied = [each for each in waiting if each.place == place]
            for number, job in enumerate(tied):
                job.place = place + (following - place) * number / len(tied)

    def place(self, ids: Iterable[int], orders: Mapping[int, Order]) -> None:
        """Let these stand where the store has put them. That it is the right place among those that
        wait is known by then; beside those that run any place is right, also the same."""
        self.moves += 1
        left = sorted(ids, key=lambda each: orders[each])
        while left:
            job = self.jobs[left.pop(0)]
            mine = [self.jobs[each] for each in orders if each not in (*left, job.id)]
            mine = [each for each in mine if each.level == job.level]
            same = [each.place for each in mine if orders[each.id][1] == orders[job.id][1]]
            if same:
                job.place = same[0]
                continue
            low, high = self._between(job, [j for j in mine if j.state == "waiting"], orders)
            running = [j for j in mine if j.state == "running" and low < j.place < high]
            for each in sorted(running, key=lambda each: each.order):
                if orders[each.id] < orders[job.id]:
                    low = max(low, each.place)
                else:
                    high = min(high, each.place)
            job.place = (low + high) / 2

    def _between(
        self, job: Job, others: list[Job], orders: Mapping[int, Order]
    ) -> tuple[Fraction, Fraction]:
        everyone = [each.place for each in self.jobs.values()]
        before = [each.place for each in others if orders[each.id] < orders[job.id]]
        behind = [each.place for each in others if orders[each.id] > orders[job.id]]
        return (
            max(before, default=min(everyone) - 1),
            min(behind, default=max(everyone) + 1),
        )

    def picture(self) -> dict[str, Any]:
        return {
            **super().picture(),
            "limits": dict(self.limits),
            "in use": {key: self.used(key) for key in self.limits},
            "starts": sorted(at for _, at, _ in self.begun),
        }
