"""The verbs about limits and rates."""

from __future__ import annotations

from collections.abc import Collection, Sequence

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
        return [row[0] for row in self._all("newest_starts", key=key, since=since, most=most)]


class LimitWriteTx(LimitReadTx, Changing):
    def note_starts(self, started: Sequence[tuple[Job, Claim]]) -> None:
        self._many(
            "add_starts",
            (
                {"key": rate.key, "at": claim.claimed_at, "job_id": job.id}
                for job, claim in started
                for rate in job.rates
            ),
        )

    def forget_starts(self, job: Job, claim: Claim) -> None:
        self._many(
            "forget_start",
            ({"key": rate.key, "at": claim.claimed_at, "job_id": job.id} for rate in job.rates),
        )

    def forget_old_starts(self, before: int, most: int) -> int:
        keys = [row[0] for row in self._all("started_keys")]
        return sum(
            self._run("forget_old_starts", key=key, before=before, most=most - 1) for key in keys
        )
