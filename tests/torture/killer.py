"""Kill processes at random, and write down exactly whom. A process of its own, so that nothing that
goes on in the arena keeps it from striking.

A victim is stopped first and identified while it stands still: what it is, and for which claim, is
then a fact and not a guess that has been overtaken. Only then is it killed.
"""

import random
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from torture import ledger, processes
from torture.processes import Held, Process
from torture.records import Files, Kill

MODES = {"one": 65, "lingering": 10, "several": 10, "seam": 10, "all": 5}
KINDS = {"worker": 14, "parent": 14, "supervisor": 24, "child": 28, "fork": 30, "descendant": 6}
UNMET = 5  # times as likely
STRIKES_UNREADY = 0.03
PAUSE_SECONDS = 0.1
SEAM_WITHIN = 0.3
DIES_WITHIN = 5.0
OUTLIVES_AFTER = 1.0


class Killer:
    def __init__(self, files: Files, mark: str, seed: int) -> None:
        self._chance = random.Random(f"killer {seed}")
        self._files = files
        self._mark = mark
        self._met: set[str] = set()
        self._written = 0
        self.strikes = 0

    def pause(self) -> float:
        """How long to wait before the next strike."""
        return min(1.0, self._chance.expovariate(1 / PAUSE_SECONDS))

    def strike(self) -> list[Kill]:
        """Kill one or some or all; none if there is nothing to kill right now.

        Mostly only when a job has written something since the last time: else a worker that comes
        up would be killed again and again, and nothing would ever run.
        """
        written = ledger.size(self._files.ledger)
        if written == self._written and self._chance.random() > STRIKES_UNREADY:
            return []
        self._written = written
        (mode,) = self._chance.choices(list(MODES), list(MODES.values()))
        seen = processes.scan(self._mark)
        if mode == "all":
            return self._kill_all(seen)
        if mode == "seam":
            return self.kill(self._at_a_seam(), mode=mode)
        count = self._chance.randint(2, 5) if mode == "several" else 1
        victims = self._choose(seen, count)
        linger = self._chance.uniform(0.02, 0.3) if mode == "lingering" else 0.0
        return self.kill(victims, mode=mode, linger=linger)

    def kill(
        self, victims: Iterable[Process], *, mode: str = "aimed", linger: float = 0.0
    ) -> list[Kill]:
        """Stop them all, look again, kill them all, and write it down."""
        held = _frozen(victims)
        if linger:
            time.sleep(linger)
        return self._kill_held(held, mode)

    def _kill_all(self, seen: list[Process]) -> list[Kill]:
        held: list[Held] = []
        while fresh := [each for each in seen if each.pid not in {h.process.pid for h in held}]:
            frozen = _frozen(fresh)
            if not frozen:
                break
            held += frozen
            seen = processes.scan(self._mark)
        return self._kill_held(held, "all")

    def _kill_held(self, held: list[Held], mode: str) -> list[Kill]:
        if not held:
            return []
        seen = {each.pid: each for each in processes.scan(self._mark)}
        doomed = {each.process.pid for each in held}
        below = {pid: self._commands(seen[pid], seen) for pid in doomed & seen.keys()}
        living = _living(seen, doomed)
        for each in held:
            each.kill()
        dead = [each for each in held if each.wait(DIES_WITHIN) and each.process.pid in seen]
        outlived = {each.process.pid: _outlives(below[each.process.pid]) for each in dead}
        offset = ledger.size(self._files.ledger)
        self.strikes += bool(dead)
        kills = []
        for each in dead:
            now = seen[each.process.pid]
            left = living if now.kind in ("worker", "parent") else ()
            kills.append(
                Kill(
                    self.strikes,
                    mode,
                    now.kind,
                    now.pid,
                    now.token,
                    offset,
                    outlived[now.pid],
                    left,
                )
            )
        self._files.killed(kills)
        for each in held:
            each.close()
        return kills

    def _commands(self, one: Process, seen: dict[int, Process]) -> list[Process]:
        """The main process of a supervisor's job, which must not outlive it."""
        if one.kind != "supervisor":
            return []
        return [each for each in seen.values() if each.ppid == one.pid and each.kind == "child"]

    def _choose(self, seen: list[Process], count: int) -> list[Process]:
        """By kind first, so that many of one kind do not hide the others."""
        chosen: list[Process] = []
        for _ in range(count):
            rest = [each for each in seen if each not in chosen]
            kinds = sorted({each.kind for each in rest})
            if not kinds:
                break
            (kind,) = self._chance.choices(kinds, [self._weight(each) for each in kinds])
            self._met.add(kind)
            chosen.append(self._chance.choice(sorted(e for e in rest if e.kind == kind)))
        return chosen

    def _at_a_seam(self) -> list[Process]:
        """Wait for one of the short moments about which there are rules: a supervisor without a
        command, which starts or ends a job, or a child that has not exec'd yet."""
        give_up_at = time.monotonic() + SEAM_WITHIN
        while time.monotonic() < give_up_at:
            seen = processes.scan(self._mark)
            busy = {each.ppid for each in seen if each.kind == "child"}
            forks = [each for each in seen if each.kind == "fork"]
            bare = [each for each in seen if each.kind == "supervisor" and each.pid not in busy]
            if forks or bare:
                return [self._chance.choice(forks or bare)]
        return []

    def _weight(self, kind: str) -> int:
        """Also a short run shall meet every kind."""
        return KINDS[kind] * (1 if kind in self._met else UNMET)


def _frozen(victims: Iterable[Process]) -> list[Held]:
    held = []
    for victim in victims:
        with suppress(ProcessLookupError):
            one = Held(victim)
            if one.freeze():
                held.append(one)
            else:
                one.thaw()
                one.close()
    return held


def _living(seen: dict[int, Process], doomed: set[int]) -> tuple[str, ...]:
    """Claims whose command runs under a supervisor, neither of them about to be killed."""
    return tuple(
        each.token
        for each in seen.values()
        if each.kind == "child" and each.token and not doomed & {each.pid, each.ppid}
    )


def _outlives(commands: list[Process]) -> bool:
    give_up_at = time.monotonic() + OUTLIVES_AFTER
    while any(processes.alive(each.pid, each.start) for each in commands):
        if time.monotonic() > give_up_at:
            return True
        time.sleep(0.001)
    return False


def main(folder: str, kills: str, seed: str) -> None:
    killer = Killer(Files(Path(folder)), folder, int(seed))
    while killer.strikes < int(kills):
        killer.strike()
        time.sleep(killer.pause())


if __name__ == "__main__":
    main(*sys.argv[1:])
