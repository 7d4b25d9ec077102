"""What the last whole step has seen of a store that is a round trip away, for the next one.

It holds as long as nobody else has written: neither another process, which the server knows, nor
this one elsewhere. While someone waits for the end of another, more who do change nothing of it. So
a step that only settles calls and starts what waited for them asks nothing of the kind, and begins
in one round trip with what it changes. If it errs, all of it is undone, and it is made anew by
looking.
"""

from contextlib import AbstractContextManager

from headway.engine.looks import Looks
from headway.store.base import Store, WriteTx
from headway.store.seam_waking import Remembered

SHY_STEPS = 8  # after others were found to have written


class Memory:
    def __init__(self, store: Store, looks: Looks) -> None:
        self._store = store
        self._looks = looks  # what was seen there is taken in only once
        self._kept: Remembered | None = None
        self._writes = 0
        self._shy = 0
        self._in_use = False

    def write(self, *, usable: bool) -> AbstractContextManager[WriteTx]:
        """A transaction, by what is remembered if that is `usable` at all."""
        self._shy -= self._shy > 0
        self._in_use = bool(
            usable
            and self._kept is not None
            and not self._shy
            and self._store.writes == self._writes
            and self._looks.next_in() is None
        )
        awaited = self._kept is not None and self._kept.awaited  # so it makes no odds if more are
        return self._store.write_soon(blindly=self._in_use, but_waits=awaited)

    def recall(self, tx: WriteTx) -> None:
        """At the beginning of that transaction."""
        if self._in_use and self._kept is not None:
            tx.recall(self._kept)
        self._kept = None

    def keep(self, tx: WriteTx) -> None:
        """At its end. A store in a file is asked as quickly as one remembers."""
        if self._store.shared:
            tx.others_wrote()  # from now on
            self._kept, self._writes = tx.remember(), self._store.writes

    def forget(self) -> None:
        """That transaction was undone."""
        self._kept = None

    def was_wrong(self) -> None:
        self._shy = SHY_STEPS
