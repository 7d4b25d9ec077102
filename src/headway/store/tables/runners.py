"""Runners of coding agents that are parked."""

from __future__ import annotations

from headway.core.agents import ParkedRunner
from headway.store.access import Table


class RunnersReader(Table):
    """Parked runners as a read transaction shows them."""

    def parked(self) -> dict[str, ParkedRunner]:
        """All, by their names; also those whose time is over."""
        rows = self._db.all("parked_runners")
        return {row[0]: ParkedRunner._make((*row[:5], bool(row[5]))) for row in rows}


class RunnersTable(RunnersReader):
    """Parked runners as a write transaction changes them."""

    def park(self, parked: ParkedRunner) -> None:
        self._db.send(
            "park_runner",
            runner=parked.runner,
            until=parked.until,
            reason=parked.reason,
            parked_at=parked.at,
            job_id=parked.job_id,
            guessed=int(parked.guessed),
        )

    def resume(self, runner: str) -> bool:
        """False if it was not parked."""
        return self._db.change("resume_runner", runner=runner) == 1
