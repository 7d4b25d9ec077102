"""Read the descriptors that wake a worker, even if the owner of one fails.

A descriptor wakes the worker until it was read. Some owners fail, and some read only in a step
while no step can be made. Their descriptors are left alone for a while: else they would wake the
worker all the time.
"""

from collections.abc import Callable, Iterable

from headway.base.watchlist import Watching
from headway.worker.effort import Effort


class Listener:
    def __init__(self, effort: Callable[[], Effort]) -> None:
        self._effort = effort
        self._failing: dict[Watching, Effort] = {}
        self._resting: list[Watching] = []  # until a step is made

    @property
    def efforts(self) -> Iterable[Effort]:
        """Those that failed."""
        return self._failing.values()

    def receive(self, watching: Watching, *, only_once: bool) -> object:
        """Have its owner read it. `only_once`: it rests until `stepped`."""
        said: object = None  # if the owner fails, a step is made

        def take_in() -> None:
            nonlocal said
            said = watching()

        effort = self._failing.pop(watching, None) or self._effort()
        if not effort.make(take_in):
            self._failing[watching] = effort
            watching.rest()
        elif only_once:
            watching.rest()
            self._resting.append(watching)
        return said

    def stepped(self) -> None:
        """A step was made: those that rested for it go on."""
        while self._resting:
            self._resting.pop().go_on()

    def next_at(self) -> float | None:
        """When one that failed is to be read again."""
        for each in [each for each in self._failing if each.is_over]:
            del self._failing[each]
        return min((effort.again_at for effort in self._failing.values()), default=None)

    def try_again(self, now: float) -> None:
        for watching, effort in self._failing.items():
            if effort.may_be_made(now):
                watching.go_on()
