"""A store that remembers which of its verbs were called, so that none stays untested."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from headway.store.access import Table
from headway.store.store import Store
from headway.store.transaction import Noun, WriteTx

TESTED: dict[str, list[str]] = {}


def declared_verbs() -> set[str]:
    """Every verb of a store, of a transaction and of its nouns."""
    found = {*_verbs_of(Store), *_verbs_of(WriteTx)}
    for noun in nouns():
        found |= {f"{noun}.{verb}" for verb in _verbs_of(_class_of(noun))}
    return found - {"begin_soon", "end"}  # a transaction's own, by which it begins and ends


def nouns() -> list[str]:
    return sorted(name for name, value in vars(WriteTx).items() if isinstance(value, Noun))


def _class_of(noun: str) -> type:
    described: Any = vars(WriteTx)[noun]
    kind: type = described.load()
    return kind


def _verbs_of(kind: type) -> set[str]:
    return {
        name
        for part in kind.__mro__
        if part.__module__.startswith("headway.")
        for name, value in vars(part).items()
        if callable(value) and not name.startswith("_")
    }


class _Tx:
    """A transaction; of a noun, `noun.verb` is what was called."""

    def __init__(self, tx: Any, called: set[str], noun: str = "") -> None:
        self._tx = tx
        self._called = called
        self._noun = noun

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._tx, name)
        if isinstance(found, Table):
            return _Tx(found, self._called, f"{name}.")
        self._called.add(f"{self._noun}{name}")
        return found


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
