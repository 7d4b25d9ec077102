"""`python -m timing.everywhere`: all zones, each change of their clocks, compared with the oracle.

Zones whose clocks make the same change at the same instant show the same minutes around it, so it
is walked once; that each zone makes just the changes that the oracle sees is compared for all.
"""

import os
import sys
import time
from bisect import bisect_right
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from headway.schedules.timing.rules import parse_cron
from headway.schedules.timing.zones import zone_of
from timing.oracle import DAY, MINUTE, Expression, changes, fires, wakeups

FIRST_YEAR, LAST_YEAR = 2020, 2035
MICROSECONDS = 60_000_000
BEFORE, AFTER = DAY + 120, 2 * DAY
# Around the change each of these minutes is a present from which the next slot is asked for.
PROBED, EACH = 240, 7
EXPRESSIONS = (
    *("* * * * *", "*/5 * * * *", "*/7 * * * *", "0 * * * *", "45 * * * *", "0-59 * * * *"),
    *("0-59 0-23 * * *", "0-59/20 0-23 * * *", "* 2 * * *", "*/10 0-4 * * *", "0 */2 * * *"),
    *("30 */3 * * *", "0 0 * * *", "30 0 * * *", "59 0 * * *", "15 1 * * *", "0 2 * * *"),
    *("30 2 * * *", "1 3 * * *", "0,30 1-3 * * *", "45 23 * * *", "10 22-23 * * *"),
    *("5,35 0-4/2 * * *", "0 12 * * *", "0 9 * * 1-5", "30 1 * * SUN", "0 2 * * sat,sun"),
    *("30 2 * * 0L", "0 2 * * SUN#1", "15 3 * mar,apr 7#2", "0 0 1 * *", "30 2 L * *"),
    *("20 1 LW * *", "0 3 1-7 * SUN", "30 0 */2 * SUN", "*/30 * 25-31 10 *", "0 0 29 2 *"),
    *("40 2/3 * 1-11/2 mon-sat", "@daily", "@hourly"),
)
READ = [Expression(each) for each in EXPRESSIONS]


class Window(NamedTuple):
    """The minutes (UTC) around a change of a zone's clock."""

    zone: str
    change: int
    before: int = BEFORE
    after: int = AFTER
    each: int = EACH


def differences(window: Window) -> tuple[int, list[str]]:
    """How many answers were compared around this minute, and what differed."""
    start, end = window.change - window.before, window.change + window.after
    looks = list(wakeups(ZoneInfo(window.zone), start, end))
    compared, found = 0, []
    for text, expression in zip(EXPRESSIONS, READ, strict=True):
        rule = parse_cron(text, window.zone)
        expected = fires(expression, looks)
        answers = rule.seconds_after(start * MINUTE - 1)
        slots = []
        for second in answers:
            if second >= end * MINUTE:
                break
            slots.append(second // MINUTE)
        compared += len(expected) + 1
        if slots != expected:
            odd = sorted(set(slots) ^ set(expected))
            found.append(f"{window.zone} {text!r}: {len(odd)} slots differ, first {odd[:1]}")
        for present in range(window.change - PROBED, window.change + PROBED, window.each):
            compared += 1
            following = bisect_right(expected, present)
            answer = rule.next_after(present * MICROSECONDS)
            if following < len(expected) and answer != expected[following] * MICROSECONDS:
                found.append(f"{window.zone} {text!r}: after {present} comes {answer}")
    return compared, found


def changes_of(name: str) -> tuple[str, list[tuple[int, int, int]], bool]:
    """What the oracle sees in a zone, and whether the product sees the same."""
    seen = changes(ZoneInfo(name), FIRST_YEAR, LAST_YEAR)
    mine, at = [], seconds_of_year(FIRST_YEAR) - 1
    while (change := zone_of(name).next_change(at)).at < seconds_of_year(LAST_YEAR + 1):
        if change.shift:
            mine.append((change.at // MINUTE, change.before // MINUTE, change.after // MINUTE))
        at = change.at
    return name, seen, seen == mine


def seconds_of_year(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


def windows_of(seen: Iterable[tuple[str, list[tuple[int, int, int]]]]) -> list[Window]:
    """One for each change that differs from all others, and one for each offset without any."""
    found: dict[object, Window] = {}
    for name, each in seen:
        for at, before, after in each:
            found.setdefault((at, before, after), Window(name, at))
        if not each:
            quiet = seconds_of_year(2026) // MINUTE
            offset = zone_of(name).offset(quiet * MINUTE)
            found.setdefault(offset, Window(name, quiet))
    return list(found.values())


def main() -> int:
    begun = time.monotonic()
    names = sorted(available_timezones() - {"Factory", "localtime"})
    with ProcessPoolExecutor(int(os.environ.get("JOBS", "0")) or os.cpu_count()) as pool:
        seen = list(pool.map(changes_of, names, chunksize=8))
        wrong = [
            f"{name}: its changes are not those of its clock" for name, _, same in seen if not same
        ]
        windows = windows_of((name, each) for name, each, _ in seen)
        compared = 0
        for number, (count, found) in enumerate(pool.map(differences, windows, chunksize=4), 1):
            compared += count
            wrong += found
            if number % 100 == 0:
                told = f"{number} of {len(windows)} changes, {len(wrong)} differences so far"
                print(told, file=sys.stderr, flush=True)
    total = sum(len(each) for _, each, _ in seen)
    print(
        f"{len(names)} zones, {total:,} changes from {FIRST_YEAR} to {LAST_YEAR} "
        f"({len(windows):,} that differ), {len(EXPRESSIONS)} expressions, {compared:,} answers "
        f"compared in {time.monotonic() - begun:.0f} s, {len(wrong)} differences"
    )
    for line in wrong[:50]:
        print(f"  {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
