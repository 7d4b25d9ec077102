"""What is submitted: waves of small jobs with everything that Headway has rules about, by chance.

All chance comes from the seed, so the same seed plans the same jobs; when each of them runs, and
what a kill meets, is the machine's.
"""

import random
from typing import NamedTuple

PAUSE = "0.04"
KEYS = ("red", "green", "blue", "grey")


class Wish(NamedTuple):
    """A job to submit. `after` counts back: 1 is the one submitted just before."""

    mode: str
    beats: int
    codes: tuple[int, ...]
    after: tuple[int, ...] = ()
    locks: tuple[tuple[str, str], ...] = ()
    retries: int = 0
    timeout: float | None = None
    grace: float = 0.2
    cancel_after: float | None = None

    def argv(self, script: str, ledger: str) -> tuple[str, ...]:
        codes = [str(code) for code in self.codes]
        return ("sh", script, ledger, self.mode, str(self.beats), PAUSE, *codes)


class Workload:
    def __init__(self, seed: int) -> None:
        self._chance = random.Random(f"workload {seed}")

    def wave(self, submitted: int) -> list[Wish]:
        return [self._wish(submitted + n) for n in range(self._chance.randint(6, 14))]

    def _wish(self, before: int) -> Wish:
        chance = self._chance
        wish = Wish("plain", chance.randint(0, 5), (0,))
        draw = chance.random()
        if draw < 0.06:  # its deadline ends it, at the first signal or only by force
            mode = chance.choice(("plain", "deaf"))
            wish = wish._replace(mode=mode, beats=600, timeout=chance.choice((0.15, 0.4)))
        elif draw < 0.16:
            wish = wish._replace(mode="family")
        elif draw < 0.30:
            failures = chance.randint(1, 3)
            codes = tuple(chance.randint(1, 99) for _ in range(failures))
            wish = wish._replace(codes=(*codes, chance.choice((0, 0, 7))))
        elif draw < 0.38:
            wish = wish._replace(codes=(chance.randint(1, 255),))
        if chance.random() < 0.4:
            wish = wish._replace(retries=chance.randint(1, 3))
        if chance.random() < 0.3:
            wish = wish._replace(after=self._some_before(before))
        if chance.random() < 0.35:
            wish = wish._replace(locks=self._locks())
        if chance.random() < 0.08:
            wish = wish._replace(cancel_after=chance.random() * 0.6)
        if wish.timeout is None and chance.random() < 0.1:
            wish = wish._replace(timeout=300.0)  # one that never comes
        return wish

    def _some_before(self, before: int) -> tuple[int, ...]:
        reach = min(before, 8)
        return tuple(sorted(self._chance.sample(range(1, reach + 1), min(reach, 2))))

    def _locks(self) -> tuple[tuple[str, str], ...]:
        keys = self._chance.sample(KEYS, self._chance.randint(1, 2))
        return tuple((key, self._chance.choice(("exclusive", "shared"))) for key in sorted(keys))
