"""The verbs about limits and rates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

from headway.core.model import Claim, Job
from headway.store.changing import Changing
from headway.store.graphreading import GraphReadTx


class LimitReadTx(GraphReadTx):
    def limits_waited_for(self) -> Collection[str]:
        return frozenset(self._present().limits)

    def filed_under(self, topic: str, limit: int) -> list[Job]:
        found = self._readable(self._all("filed_under", topic=topic, limit=limit))
        return sorted(found, key=lambda job: job.order)

    def count_filed(self) -> dict[str, int]:
        return dict(self._all("count_filed"))

    def count_limited(self) -> int:
        return int(self._all("count_limited")[0][0])

    def newest_starts(self, key: str, since: int, most: int) -> list[int]:
        """Asked for once in a transaction, until it adds to them itself."""
        known = self._known_starts.setdefault(key, {})
        if (since, most) not in known:
            rows = self._all("newest_starts", key=key, since=since, most=most)
            known[since, most] = [row[0] for row in rows]
        return list(known[since, most])

    @cached_property
    def _known_starts(self) -> dict[str, dict[tuple[int, int], list[int]]]:
        return {}


class LimitWriteTx(LimitReadTx, Changing):
    def note_starts(self, started: Sequence[tuple[Job, Claim]]) -> None:
        self._ask_again(job for job, _ in started)
        self._many(
            "add_starts",
            (
                {"key": rate.key, "at": claim.claimed_at, "job_id": job.id}
                for job, claim in started
                for rate in job.rates
            ),
        )

    def forget_starts(self, job: Job, claim: Claim) -> None:
        self._ask_again([job])
        self._many(
            "forget_start",
            ({"key": rate.key, "at": claim.claimed_at, "job_id": job.id} for rate in job.rates),
        )

    def _ask_again(self, jobs: Iterable[Job]) -> None:
        for key in {rate.key for job in jobs for rate in job.rates}:
            self._known_starts.pop(key, None)

    def forget_old_starts(self, before: int, most: int) -> int:
        self._known_starts.clear()
        keys = [row[0] for row in self._all("started_keys")]
        return sum(
            self._run("forget_old_starts", key=key, before=before, most=most - 1) for key in keys
        )
