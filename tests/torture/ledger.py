"""The ledger: one file to which every job appends a line per event, and the script that does it.

A line is one write of a few bytes at the end of the file, so the order of the lines is the order of
what happened, in all processes and without any clock. A process that was killed within its write
may leave a torn line; a line counts only if it is whole.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple

# A shell, because it is up within a millisecond. `stray` is a grandchild in a session of its own
# that outlives its job if nobody ends it; `gate` goes on until the file LEDGER.open is there.
SCRIPT = r"""#!/bin/sh
# job.sh LEDGER MODE BEATS PAUSE EXIT-CODE-OF-EACH-ATTEMPT...
say() { echo "@$1 $HEADWAY_JOB_ID $HEADWAY_CLAIM $$ $2;" >> "$ledger"; }
ledger=$1 mode=$2 beats=$3 pause=$4
shift 4
if [ "$HEADWAY_ATTEMPT" -lt $# ]; then shift $((HEADWAY_ATTEMPT - 1)); else shift $(($# - 1)); fi
word=beat
case $mode in
  stray) word=stray ;;
  deaf) say start "$1"; trap '' TERM HUP ;;
  family)
    say start "$1"
    setsid sh "$0" "$ledger" stray 600 0.05 0 &
    (sleep 30 &) ;;
  *) say start "$1" ;;
esac
while [ "$beats" -gt 0 ] && ! { [ "$mode" = gate ] && [ -e "$ledger.open" ]; }; do
  say $word "$beats"
  sleep "$pause"
  beats=$((beats - 1))
done
[ "$mode" = stray ] || say end "$1"
exit "$1"
"""

_LINE = re.compile(rb"@(start|beat|stray|end) job-(\d+) ([0-9a-f]{32}) (\d+) (\d+);\n")


class Line(NamedTuple):
    """One event; `at` is where the line begins in the ledger, which is its place in time."""

    at: int
    word: str
    job: int
    token: str
    pid: int
    number: int

    def __str__(self) -> str:
        who = f"job-{self.job} {self.token[:8]} pid {self.pid}"
        return f"ledger {self.at}: {self.word} {self.number} {who}"


class Ledger(NamedTuple):
    lines: list[Line]
    torn: int  # bytes that belong to no whole line


def read(path: Path) -> Ledger:
    content = path.read_bytes() if path.exists() else b""
    lines = [
        Line(
            found.start(),
            found[1].decode(),
            int(found[2]),
            found[3].decode(),
            int(found[4]),
            int(found[5]),
        )
        for found in _LINE.finditer(content)
    ]
    whole = sum(len(found[0]) for found in _LINE.finditer(content))
    return Ledger(lines, len(content) - whole)


def size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
