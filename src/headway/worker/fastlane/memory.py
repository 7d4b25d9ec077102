"""The state that the last full step has read from a server, for the next one.

It holds as long as nobody else has written: no other process, which the server knows, and nothing
else in this one. So a step that only settles calls, and starts the jobs that waited for them, reads
nothing. It begins in one round trip with its changes. If someone else has written after all, it is
rolled back and repeated with fresh state.
"""

from contextlib import AbstractContextManager

from headway.store.records import Remembered
from headway.store.store import Store
from headway.store.transaction import WriteTx
from headway.worker.probes import Probes

CAREFUL_STEPS = 8  # after others were found to have written


class Memory:
    def __init__(self, store: Store, probes: Probes) -> None:
        self._store = store
        self._probes = probes  # their answers are taken in only once
        self._kept: Remembered | None = None
        self._writes = 0
        self._careful = 0
        self._in_use = False

    def write(self, *, usable: bool) -> AbstractContextManager[WriteTx]:
        """A transaction, by what is remembered if that is `usable` at all."""
        self._careful -= self._careful > 0
        self._in_use = bool(
            usable
            and self._kept is not None
            and not self._careful
            and self._store.writes == self._writes
            and self._probes.next_in() is None
        )
        return self._store.write_soon(optimistic=self._in_use)

    def recall(self, tx: WriteTx) -> None:
        """At the beginning of that transaction."""
        if self._in_use and self._kept is not None:
            tx.recall(self._kept)
        self._kept = None

    def keep(self, tx: WriteTx) -> None:
        """At its end. Reading a store in a file costs no more than remembering it."""
        if self._store.shared:
            tx.others_wrote()  # from now on
            self._kept, self._writes = tx.remember(), self._store.writes

    def forget(self) -> None:
        """That transaction was undone."""
        self._kept = None

    def was_wrong(self) -> None:
        self._careful = CAREFUL_STEPS
