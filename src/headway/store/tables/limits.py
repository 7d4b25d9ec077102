"""Limits and rates: who waits for them, and the starts that rates count."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

from headway.core.model import Claim, Job
from headway.store.access import Table


class LimitsReader(Table):
    """Limits as a read transaction shows them."""

    def waited_for(self) -> Collection[str]:
        """The topics of limits that jobs may be parked under; under others there is none."""
        return frozenset(self._present().limits)

    def parked_under(self, topic: str, limit: int) -> list[Job]:
        """The first in dispatch order of those that are parked under this."""
        found = self._readable(self._db.all("parked_under", topic=topic, limit=limit))
        return sorted(found, key=lambda job: job.order)

    def count_parked(self) -> dict[str, int]:
        """How many are parked under each limit."""
        return dict(self._db.all("count_parked"))

    def count_limited(self) -> int:
        """How many are parked under any limit."""
        return int(self._db.all("count_limited")[0][0])

    def newest_starts(self, key: str, since: int, most: int) -> list[int]:
        """Asked for once in a transaction, until it adds to them itself."""
        known = self._known_starts.setdefault(key, {})
        if (since, most) not in known:
            rows = self._db.all("newest_starts", key=key, since=since, most=most)
            known[since, most] = [row[0] for row in rows]
        return list(known[since, most])

    @cached_property
    def _known_starts(self) -> dict[str, dict[tuple[int, int], list[int]]]:
        return {}


class LimitsTable(LimitsReader):
    """Limits as a write transaction changes them."""

    def note_starts(self, started: Sequence[tuple[Job, Claim]]) -> None:
        """These jobs start: it counts for their rates."""
        self._ask_again(job for job, _ in started)
        self._db.many(
            "add_starts",
            (
                {"key": rate.key, "at": claim.claimed_at, "job_id": job.id}
                for job, claim in started
                for rate in job.rates
            ),
        )

    def forget_starts(self, job: Job, claim: Claim) -> None:
        """This claim came to nothing: it does not count."""
        self._ask_again([job])
        self._db.many(
            "forget_start",
            ({"key": rate.key, "at": claim.claimed_at, "job_id": job.id} for rate in job.rates),
        )

    def forget_old_starts(self, before: int, most: int) -> int:
        """Forget the starts that no rate can count any more: those before an instant, and of each
        key all but the newest."""
        self._known_starts.clear()
        keys = [row[0] for row in self._db.all("started_keys")]
        return sum(
            self._db.change("forget_old_starts", key=key, before=before, most=most - 1)
            for key in keys
        )

    def _ask_again(self, jobs: Iterable[Job]) -> None:
        for key in {rate.key for job in jobs for rate in job.rates}:
            self._known_starts.pop(key, None)
