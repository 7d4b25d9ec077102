"""Plain calls in the store: a handful of statements for all of them together."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headway.core.model import FUNCTIONS, JobId, chain_topic
from headway.core.plaincalls import OCCUPIES, PlainCall, PlainEnd
from headway.store.changing import Changing
from headway.store.reading import SqlReadTx
from headway.store.rows import dump, task_of
from headway.store.seam_calls import Claimant, TakenCall
from headway.store.state import Taken

_OCCUPIES = " ".join(OCCUPIES)


class CallReadTx(SqlReadTx):
    def plain_calls(self, limit: int) -> tuple[list[PlainCall], bool]:
        if self._whereabouts is not None and FUNCTIONS not in self._whereabouts.ready:
            return [], True
        calls: list[PlainCall] = []
        for job_id, attempt, chain, params, plain in self._all("plain_calls", limit=limit):
            task = task_of(params) if plain else None
            if task is None:
                return calls, False
            calls.append(PlainCall(job_id, attempt, chain, task, params))
        return calls, True

    def only_calls_wait(self, queues: Collection[str]) -> bool:
        self._present()
        known = self._whereabouts
        if known is None or known.woken or known.cancelling or known.unproven:
            return False
        return known.ready.isdisjoint(queues) and not self._in_line()

    def _in_line(self) -> bool:
        """Whether anyone waits for a limit, or has something to do with slots beside the queue."""
        state = self._present()
        return bool(state.limits or state.lendings) or state.reservations != []

    def anyone_awaits(self) -> bool:
        self._present()
        return self._whereabouts is None or self._whereabouts.awaited


class CallWriteTx(CallReadTx, Changing):
    def others_wrote(self) -> bool:
        return self._database.others_wrote()

    def claim_calls(self, claimant: Claimant, taken: Sequence[TakenCall]) -> None:
        now = self._now
        ids = self._database.json([each.call.job_id for each in taken])
        rows = dump([(each.call.job_id, each.token, each.slot) for each in taken])
        self._tell("start_calls", ids=ids, at=now)
        self._tell("claim_calls", rows=rows, at=now, occupies=_OCCUPIES, **claimant._asdict())
        self._tell("add_runs", ids=ids, started_at=now, worker_id=claimant.worker_id)
        self._tell("tell_calls_started", rows=rows, at=now, actor=claimant.worker_id)
        if self._state is not None:
            self._state.took(
                {each.call.job_id: Taken(each.slot, None, False, OCCUPIES) for each in taken}
            )

    def finish_calls(self, ends: Sequence[PlainEnd], *, actor: str, awaited: bool) -> bool:
        job_ids = [each.job_id for each in ends]
        ids = self._database.json(job_ids)
        rows = dump([(each.job_id, each.token, each.finished_at, each.attempt) for each in ends])
        self._tell("finish_runs_of_calls", ids=ids, rows=rows)
        self._tell("finish_calls", ids=ids)
        self._tell("tell_calls_succeeded", rows=rows, at=self._now, actor=actor)
        tokens = self._database.json([each.token for each in ends])
        self._tell("end_claims_of_calls", ids=ids, tokens=tokens)
        self._many(
            "keep_results",
            (
                {"job_id": each.job_id, "value": dump(each.result)}
                for each in ends
                if each.result is not None
            ),
        )
        if self._state is not None:
            self._state.ended(job_ids)
            if self._state.lendings:
                self._tell("end_lendings_of_jobs", ids=ids)
        return awaited and self._satisfy([each.chain for each in ends])

    def _satisfy(self, chains: Sequence[JobId]) -> bool:
        rows = self._all("satisfy_chains_of_calls", chains=self._database.json(chains))
        self._many(
            "wake_topic", ({"topic": chain_topic(each)} for each in {row[0] for row in rows})
        )
        return bool(rows)
