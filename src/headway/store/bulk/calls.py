"""Plain calls: a handful of statements claims, or settles, all of them together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from headway.core.model import FUNCTIONS, Job, JobId, chain_topic
from headway.core.plaincalls import OCCUPIES, PlainCall, PlainEnd
from headway.store import bulk
from headway.store.access import Table
from headway.store.records import Claimant, TakenCall
from headway.store.rows import dump, task_of
from headway.store.scheduler_state import Taken, load_state

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


class CallsReader(Table):
    """Plain calls as a read transaction shows them."""

    def head(self, limit: int) -> tuple[list[PlainCall], bool]:
        """Those at the head of the queue of functions, up to the first that is not plain, and
        whether there was none such."""
        if not bulk.ENABLED:
            return [], False
        if self._cache.presence is not None and FUNCTIONS not in self._cache.presence.ready:
            return [], True
        calls: list[PlainCall] = []
        asked, rows = self._cache.ahead
        rows = rows[:limit] if limit <= asked else self._db.all("plain_calls", limit=limit)
        for job_id, attempt, chain, params, plain in rows:
            task = task_of(params) if plain and "\n" not in params else None
            if task is None:
                return calls, False
            calls.append(PlainCall(job_id, attempt, chain, task, params))
        return calls, True

    def prefetch(self, limit: int) -> None:
        """Ask for the state and for so many plain calls together, at the beginning: both will be
        needed, and where questions travel they travel once."""
        if self._cache.state is not None or limit <= 0:
            return
        state, calls = self._db.ask({"present_state": {}, "plain_calls": {"limit": limit}})
        self._cache.state, self._cache.presence = load_state(state)
        self._cache.ahead = limit, calls

    def are_alone(self, queues: Collection[str]) -> bool:
        """Whether ready functions are all there is to do: no job of these queues, nor any other, is
        to be checked, settled or cancelled, and none waits for anything but a slot."""
        self._present()
        known = self._cache.presence
        if known is None or known.woken or known.cancelling or known.unproven:
            return False
        return known.ready.isdisjoint(queues) and not self._in_line()

    def anyone_awaits(self) -> bool:
        """Whether some job waits for the end of another at all."""
        self._present()
        return self._cache.presence is None or self._cache.presence.awaited

    def ready_besides(self, limit: int, tasks: Collection[str], window: int) -> list[Job]:
        """The head of the queue of functions without those of these tasks, as far as a step reads
        it."""
        given = self._db.json(sorted(tasks))
        return self._readable(
            self._db.all("ready_calls_besides", limit=limit, keys=given, window=window)
        )

    def _in_line(self) -> bool:
        """Whether anyone waits for a limit, or has something to do with slots beside the queue."""
        state = self._present()
        return bool(state.limits or state.lendings) or state.reservations != []


class Calls(CallsReader):
    """Plain calls as a write transaction claims and settles them."""

    def claim(self, claimant: Claimant, taken: Sequence[TakenCall]) -> None:
        """Claim these, with their runs and events."""
        given = self._given(_TAKEN, [(each.call.job_id, each.token, each.slot) for each in taken])
        given |= {"at": self._db.now, "actor": claimant.worker_id, "occupies": _OCCUPIES}
        given |= claimant._asdict() | {"started_at": self._db.now}
        queries = ("start_calls_at_once",) if self._db.at_once else _START
        self._send_given(queries, given, len(taken))
        self._cache.ahead = 0, []
        self._cache.seen_to(self._cache.woken, [each.call.job_id for each in taken])
        if self._cache.state is not None:
            self._cache.state.took(
                {each.call.job_id: Taken(each.slot, None, False, OCCUPIES) for each in taken}
            )

    def finish(self, ends: Sequence[PlainEnd], *, actor: str, awaited: bool) -> bool:
        """Write the ends of those whose claims are live. If any job may wait for the end of a
        chain, wake those that do. Returns whether there were some."""
        returned = [each for each in ends if each.result is not None]
        if returned:
            rows = [(each.job_id, each.token, dump(each.result)) for each in returned]
            kept = self._given(_RETURNED, rows)
            self._send_given(("keep_results_of_calls",), kept, len(rows))
        given = self._given(
            _ENDED, [(each.job_id, each.token, each.finished_at, each.attempt) for each in ends]
        )
        given |= {"at": self._db.now, "actor": actor}
        queries = ("finish_calls_at_once",) if self._db.at_once else _FINISH
        self._send_given(queries, given, len(ends))
        if len(ends) >= ENOUGH_TO_PUSH:
            self._db.database.push()
        if self._cache.state is not None:
            self._cache.state.ended([each.job_id for each in ends])
            if self._cache.state.lendings:
                self._send_given(("end_lendings_of_calls",), given, len(ends))
        return awaited and self._satisfy([each.chain for each in ends])

    def _given(self, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        """Rows of calls as parameters: their ids and tokens, and all of them as a table. Of a
        single one each value by itself, where that is quicker."""
        if len(rows) == 1 and self._db.queries.has_ones:
            (row,) = rows
            values = {f"given_{name}": value for name, value in zip(names, row, strict=True)}
            return {"ids": row[0], "tokens": row[1], **values}
        return {
            "ids": self._db.json([row[0] for row in rows]),
            "tokens": self._db.json([row[1] for row in rows]),
            **self._db.listed(names, rows),
        }

    def _send_given(self, queries: Sequence[str], given: Mapping[str, Any], number: int) -> None:
        """All in one go, with the same parameters."""
        named = [
            self._db.queries.of_one(each) if number == 1 else self._db.queries[each]
            for each in queries
        ]
        for each in named:
            self._cache.forget(each)
        self._db.database.send(_together(*(each.sql for each in named)), given)

    def _satisfy(self, chains: Sequence[JobId]) -> bool:
        rows = self._db.all("satisfy_chains_of_calls", chains=self._db.json(chains))
        topics = sorted({chain_topic(row[0]) for row in rows})
        if topics:
            self._db.send("wake_topics", keys=self._db.json(topics))
        return bool(rows)
