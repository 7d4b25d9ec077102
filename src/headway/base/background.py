"""Work that would hold up a step, done in the background: a thread for each kind of work."""

import threading
from collections.abc import Callable
from typing import Any

from headway.base.wake_up import WakeUp


class Background:
    """`in_thread` is for workers; others do the work at once and wait."""

    def __init__(self, *, in_thread: bool) -> None:
        self._in_thread = in_thread
        self._under_way: set[str] = set()
        self._done: dict[str, Any] = {}
        self.wake_up = WakeUp()  # sent when something is done

    def busy(self, kind: str) -> bool:
        """Whether it is being done, or done and not yet dropped."""
        return kind in self._under_way

    def start(self, kind: str, work: Callable[[], Any]) -> None:
        self._under_way.add(kind)
        if self._in_thread:
            threading.Thread(target=self._do, args=(kind, work), daemon=True).start()
        else:
            self._do(kind, work)

    def give(self, kind: str, done: Any) -> None:
        """What needs no work at all."""
        self._under_way.add(kind)
        self._do(kind, lambda: done)

    def _do(self, kind: str, work: Callable[[], Any]) -> None:
        try:
            done = work()
        except Exception as error:  # the step that takes it in must see it
            done = error
        self._done[kind] = done
        self.wake_up.wake()

    def ready(self, kind: str) -> bool:
        return kind in self._done

    def see(self, kind: str) -> Any:
        """What came of it; it stays until it is dropped."""
        return self._done[kind]

    def drop(self, kind: str) -> None:
        self._done.pop(kind, None)
        self._under_way.discard(kind)
