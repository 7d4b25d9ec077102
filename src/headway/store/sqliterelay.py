"""Calls one after another on SQLite: what is known before the last one returns is made ready, and
then written with nothing around it.

That includes the beginning of the transaction. While the function runs it only reads, which is in
nobody's way; with its first statement it becomes a writer, and SQLite refuses that if anyone else
has written since, or does so just now. So when the function has returned, six statements, a look at
the file and the commit are all that is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.errors import StoreBusyError
from headway.store.rows import dump

if TYPE_CHECKING:
    from typing import Any

    from headway.clock import Clock
    from headway.core.model import Json
    from headway.core.plaincalls import PlainCall
    from headway.store.seam_calls import Claimant, TakenCall
    from headway.store.sqlite import SqliteDatabase
    from headway.store.sqlitestore import SqliteStore

# The claim first: it is the fence, and what would be written without one is undone.
_PASS_ON = (
    "pass_claim_on",
    "end_run_of_call",
    "end_call",
    "start_next_call",
    "add_run_of_next_call",
    "tell_passed_on",
)
_ROWS = 7  # one for each, and two are told


class SqliteRelay:
    def __init__(
        self, store: SqliteStore, file: SqliteDatabase, clock: Clock, claimant: Claimant
    ) -> None:
        self._store = store
        self._file = file
        self._clock = clock
        self._worker_id = claimant.worker_id
        self._pass_on = ";\n".join(store.queries[name].sql for name in _PASS_ON)
        self._with_result = f"{self._pass_on};\n{store.queries['keep_result_of_call'].sql}"
        self._given: dict[str, Any] = {}
        self._in_turn = False

    def prepare(self, last: TakenCall, call: PlainCall, token: str) -> bool:
        self._given = {
            "worker_id": self._worker_id,
            "job_id": last.call.job_id,
            "token": last.token,
            "ended": f'{{"attempt":{last.call.attempt},"exit_code":0}}',
            "next_id": call.job_id,
            "next_token": token,
            "started": f'{{"slot":{last.slot}}}',
        }
        self._store.take_turn()
        self._in_turn = True
        self._file.begin()
        return not self._file.others_wrote()

    def pass_on(self, finished_at: int, result: Json) -> int | None:
        now = self._clock.now()
        self._given |= {"at": now, "finished_at": finished_at}
        sql, rows = self._pass_on, _ROWS
        if result is not None:
            self._given["result"] = dump(result)
            sql, rows = self._with_result, _ROWS + 1
        self._store.writes += 1
        try:
            changed = self._file.change(sql, self._given)
        except StoreBusyError:
            return None
        if changed != rows:
            return None
        self._file.check()
        self._file.commit()
        self._leave()
        return now

    def drop(self) -> None:
        if self._in_turn:
            self._file.rollback()
            self._leave()

    def _leave(self) -> None:
        self._in_turn = False
        self._store.end_turn()
