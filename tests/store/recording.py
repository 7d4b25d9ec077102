"""A store that remembers which of its verbs were called, so that none stays untested."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headway.store.base import ReadTx, Store, WriteTx

TESTED: dict[str, list[str]] = {}


def declared_verbs() -> set[str]:
    """Every verb of the seam."""
    return {
        name
        for protocol in (ReadTx, WriteTx, Store)
        for part in protocol.__mro__
        if part.__module__.startswith("headway.")
        for name, value in vars(part).items()
        if callable(value) and not name.startswith("_")
    }


class _Tx:
    def __init__(self, tx: Any, called: set[str]) -> None:
        self._tx = tx
        self._called = called

    def __getattr__(self, name: str) -> Any:
        self._called.add(name)
        return getattr(self._tx, name)


class RecordingStore:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.called: set[str] = set()

    @contextmanager
    def read(self) -> Iterator[Any]:
        self.called.add("read")
        with self._store.read() as tx:
            yield _Tx(tx, self.called)

    @contextmanager
    def write(self) -> Iterator[Any]:
        self.called.add("write")
        with self._store.write() as tx:
            yield _Tx(tx, self.called)

    def __getattr__(self, name: str) -> Any:
        self.called.add(name)
        return getattr(self._store, name)


def verbs(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare which verbs a test is about; it fails if it does not call them."""

    def declare(test: Callable[..., None]) -> Callable[..., None]:
        for name in names:
            TESTED.setdefault(name, []).append(test.__name__)

        @functools.wraps(test)
        def recorded(*, store: Store, **fixtures: Any) -> None:
            recording = RecordingStore(store)
            test(store=recording, **fixtures)
            assert set(names) <= recording.called, "the test does not call what it declares"

        return recorded

    return declare
