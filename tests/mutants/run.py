"""Run all mutants, or some, as many at a time as there are processors."""

import os
import queue
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from mutants.mutant import Mutant, patched
from mutants.slot import Ran, Slot

PROJECT = Path(__file__).parents[2]
MEMORY = Path("/dev/shm")  # where tests are quickest
SECONDS = 240.0  # for the tests of one mutant: they take one or two, but on a busy machine longer
BASELINE_SECONDS = 600.0


class Verdict(NamedTuple):
    mutant: Mutant
    ran: Ran
    seconds: float

    @property
    def word(self) -> str:
        if self.ran.is_green:
            return "SURVIVED"
        if not self.ran.is_red:
            return "NOT RUN"
        return "hung" if self.ran.hung else "killed"


def run(mutants: Sequence[Mutant], *, slots: int, baseline: bool = True) -> bool:
    """True if every one was killed. The tests must be green without them."""
    for mutant in mutants:
        patched(mutant, PROJECT)
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="m-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
    try:
        with ThreadPoolExecutor(slots) as pool:
            made = list(pool.map(lambda n: Slot(PROJECT, _folder(folder, n)), range(slots)))
            if baseline and not _are_green(mutants, made, pool):
                return False
            verdicts = _try_all(mutants, made, pool)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _report(verdicts, time.monotonic() - begun)


def _folder(folder: Path, number: int) -> Path:
    made = folder / str(number)
    made.mkdir()
    return made


def _are_green(mutants: Sequence[Mutant], slots: list[Slot], pool: ThreadPoolExecutor) -> bool:
    """Whether the named tests pass as the project is. Each slot runs its share of the files."""
    files: dict[str, set[str]] = {}
    for each in mutants:
        for test in each.ids:
            files.setdefault(test.partition("::")[0], set()).add(test)
    shares: list[list[str]] = [[] for _ in slots]
    for file in sorted(files, key=lambda each: -len(files[each])):
        min(shares, key=len).extend(sorted(files[file]))
    asked = [(slot, share) for slot, share in zip(slots, shares, strict=True) if share]
    number = sum(len(share) for _, share in asked)
    print(f"{len(mutants)} mutants; first their {number} tests without any ...", flush=True)
    running = [pool.submit(slot.run, share, BASELINE_SECONDS) for slot, share in asked]
    results = [each.result() for each in running]
    for ran in results:
        if not ran.is_green:
            print(ran.output)
            print("the named tests must pass without a mutant; see above", flush=True)
    return all(ran.is_green for ran in results)


def _try_all(
    mutants: Sequence[Mutant], slots: list[Slot], pool: ThreadPoolExecutor
) -> list[Verdict]:
    free: queue.SimpleQueue[Slot] = queue.SimpleQueue()
    for slot in slots:
        free.put(slot)

    def attempt(mutant: Mutant) -> Verdict:
        slot, begun = free.get(), time.monotonic()
        try:
            with slot.changed(mutant):
                ran = slot.run(mutant.ids, SECONDS)
            return Verdict(mutant, ran, time.monotonic() - begun)
        finally:
            free.put(slot)

    verdicts = []
    for done in as_completed([pool.submit(attempt, each) for each in mutants]):
        verdicts.append(done.result())
        count = f"{len(verdicts)}/{len(mutants)}"
        last = verdicts[-1]
        print(f"{count:>8} {last.word:8} {last.seconds:5.1f} s  {last.mutant}", flush=True)
    return verdicts


def _report(verdicts: list[Verdict], seconds: float) -> bool:
    """The counts of each room and, last, what was not killed."""
    rooms = sorted({each.mutant.room for each in verdicts})
    counts = (f"{room} {sum(v.mutant.room == room for v in verdicts)}" for room in rooms)
    alive = [each for each in verdicts if not each.ran.is_red]
    killed = len(verdicts) - len(alive)
    print(f"{killed} of {len(verdicts)} killed in {seconds:.0f} s: {', '.join(counts)}")
    for each in alive:
        print(f"{each.word}: {each.mutant}\n    {each.mutant.tests}")
        if not each.ran.is_green:
            print(each.ran.output)
    sys.stdout.flush()
    return not alive
