"""Steps: what functions have recorded, for the retries of their chains."""

from __future__ import annotations

from collections.abc import Sequence

from headway.core.model import JobId
from headway.store.access import Table
from headway.store.records import RecordedStep
from headway.store.rows import dump


class StepsReader(Table):
    """Steps as a read transaction shows them."""

    def of(self, chain: JobId, node_pass: int) -> dict[str, str]:
        """What a chain recorded in this pass, as JSON, by key."""
        return dict(self._db.all("steps", chain=chain, **{"pass": node_pass}))


class StepsTable(StepsReader):
    """Steps as a write transaction changes them."""

    def keep(self, steps: Sequence[RecordedStep]) -> None:
        """Of several under one key the first counts."""
        rows = (
            {
                "job_id": each.job_id,
                "pass": each.node_pass,
                "key": each.key,
                "value": dump(each.value),
                "at": self._db.now,
            }
            for each in steps
        )
        self._db.many("keep_steps", rows)

    def forget(self, chains: Sequence[JobId]) -> None:
        """These chains begin anew."""
        self._db.send("forget_steps", chains=self._db.json(chains))
