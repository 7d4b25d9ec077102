"""Plain calls in the store: a handful of statements for all of them together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from headway.core.model import FUNCTIONS, JobId, chain_topic
from headway.core.plaincalls import OCCUPIES, PlainCall, PlainEnd
from headway.store.changing import Changing
from headway.store.reading import SqlReadTx
from headway.store.rows import dump, task_of
from headway.store.seam_calls import Claimant, TakenCall
from headway.store.state import Taken, load_state

ENOUGH_TO_PUSH = 10  # ends, that a server is busy with while the next calls are claimed
_OCCUPIES = " ".join(OCCUPIES)
_TAKEN = ("job_id", "token", "slot")
_ENDED = ("job_id", "token", "at", "attempt")
_START = ("start_calls", "claim_calls", "add_runs", "tell_calls_started")
_RETURNED = ("job_id", "token", "value")
# The claims last: until then they are the fence for what else is written.
_FINISH = ("finish_runs_of_calls", "finish_calls", "tell_calls_succeeded", "end_claims_of_calls")


@lru_cache(maxsize=100)
def _together(*statements: str) -> str:
    return ";\n".join(statements)


class CallReadTx(SqlReadTx):
    def plain_calls(self, limit: int) -> tuple[list[PlainCall], bool]:
        if self._whereabouts is not None and FUNCTIONS not in self._whereabouts.ready:
            return [], True
        calls: list[PlainCall] = []
        asked, rows = self._ahead
        rows = rows[:limit] if limit <= asked else self._all("plain_calls", limit=limit)
        for job_id, attempt, chain, params, plain in rows:
            task = task_of(params) if plain and "\n" not in params else None
            if task is None:
                return calls, False
            calls.append(PlainCall(job_id, attempt, chain, task, params))
        return calls, True

    def look_at_calls(self, limit: int) -> None:
        if self._state is not None or limit <= 0:
            return
        state, calls = self._ask({"present_state": {}, "plain_calls": {"limit": limit}})
        self._state, self._whereabouts = load_state(state)
        self._ahead = limit, calls

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
        given = self._given(_TAKEN, [(each.call.job_id, each.token, each.slot) for each in taken])
        given |= {"at": self._now, "actor": claimant.worker_id, "occupies": _OCCUPIES}
        given |= claimant._asdict() | {"started_at": self._now}
        queries = ("start_calls_at_once",) if self._named.at_once else _START
        self._tell_given(queries, given, len(taken))
        self._ahead = 0, []
        self._seen_to(self._looked, [each.call.job_id for each in taken])
        if self._state is not None:
            self._state.took(
                {each.call.job_id: Taken(each.slot, None, False, OCCUPIES) for each in taken}
            )

    def finish_calls(self, ends: Sequence[PlainEnd], *, actor: str, awaited: bool) -> bool:
        returned = [each for each in ends if each.result is not None]
        if returned:
            rows = [(each.job_id, each.token, dump(each.result)) for each in returned]
            kept = self._given(_RETURNED, rows)
            self._tell_given(("keep_results_of_calls",), kept, len(rows))
        given = self._given(
            _ENDED, [(each.job_id, each.token, each.finished_at, each.attempt) for each in ends]
        )
        given |= {"at": self._now, "actor": actor}
        queries = ("finish_calls_at_once",) if self._named.at_once else _FINISH
        self._tell_given(queries, given, len(ends))
        if len(ends) >= ENOUGH_TO_PUSH:
            self._database.push()
        if self._state is not None:
            self._state.ended([each.job_id for each in ends])
            if self._state.lendings:
                self._tell_given(("end_lendings_of_calls",), given, len(ends))
        return awaited and self._satisfy([each.chain for each in ends])

    def _given(self, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        """Rows of calls as parameters: their ids and tokens, and all of them as a table. Of a
        single one each value by itself, where that is quicker."""
        if len(rows) == 1 and self._named.has_ones:
            (row,) = rows
            values = {f"given_{name}": value for name, value in zip(names, row, strict=True)}
            return {"ids": row[0], "tokens": row[1], **values}
        return {
            "ids": self._database.json([row[0] for row in rows]),
            "tokens": self._database.json([row[1] for row in rows]),
            **self._listed(names, rows),
        }

    def _tell_given(self, queries: Sequence[str], given: Mapping[str, Any], number: int) -> None:
        """All in one go, with the same parameters."""
        named = [self._named.of_one(each) if number == 1 else self._named[each] for each in queries]
        for each in named:
            self._forget(each)
        self._database.tell(_together(*(each.sql for each in named)), given)

    def _satisfy(self, chains: Sequence[JobId]) -> bool:
        rows = self._all("satisfy_chains_of_calls", chains=self._database.json(chains))
        self._many(
            "wake_topic", ({"topic": chain_topic(each)} for each in {row[0] for row in rows})
        )
        return bool(rows)
