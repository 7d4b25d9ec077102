"""How a worker hears what its descriptors say, whatever that does to those who take it in.

A descriptor rings until what it says was read. So one whose owner fails, or whose owner reads it
only in a step while no step can be made, is left alone for a while: it would ring all the time.
"""

from collections.abc import Callable, Iterable

from headway.engine.effort import Effort
from headway.engine.watchlist import Watching


class Hearing:
    def __init__(self, effort: Callable[[], Effort]) -> None:
        self._effort = effort
        self._failing: dict[Watching, Effort] = {}
        self._heard: list[Watching] = []  # that rest until a step is made

    @property
    def efforts(self) -> Iterable[Effort]:
        """Those that failed."""
        return self._failing.values()

    def hear(self, watching: Watching, *, only_once: bool) -> object:
        """What it says; `only_once`: nothing more until `stepped`."""
        said: object = None  # whatever it was, somebody should look

        def take_in() -> None:
            nonlocal said
            said = watching()

        effort = self._failing.pop(watching, None) or self._effort()
        if not effort.make(take_in):
            self._failing[watching] = effort
            watching.rest()
        elif only_once:
            watching.rest()
            self._heard.append(watching)
        return said

    def stepped(self) -> None:
        """What waited for a step has been read."""
        while self._heard:
            self._heard.pop().go_on()

    def next_at(self) -> float | None:
        """When one that failed is to be heard again."""
        for each in [each for each in self._failing if each.is_over]:
            del self._failing[each]
        return min((effort.again_at for effort in self._failing.values()), default=None)

    def try_again(self, now: float) -> None:
        for watching, effort in self._failing.items():
            if effort.may_be_made(now):
                watching.go_on()
