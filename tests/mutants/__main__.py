"""`make mutants`: exit code 1 if any survives. `make mutants ARGS="core -k lock"` runs some."""

import argparse
import os
import sys

from mutants import ALL, ROOMS
from mutants.mutant import MovedOnError
from mutants.run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"of {', '.join(ROOMS)}")
    parser.add_argument("-k", dest="word", default="", help="only those with this text in them")
    parser.add_argument("--slots", type=int, default=os.cpu_count() or 1, help="how many at once")
    parser.add_argument("--no-baseline", action="store_true", help="skip the run without any")
    parser.add_argument("--list", action="store_true", help="only show them")
    asked = parser.parse_args()
    unknown = sorted(set(asked.rooms) - set(ROOMS))
    if unknown:
        parser.error(f"no room {unknown[0]!r}; there are {', '.join(ROOMS)}")
    chosen = [
        each
        for each in ALL
        if (not asked.rooms or each.room in asked.rooms) and asked.word in "\n".join(each)
    ]
    if not chosen:
        parser.error("no mutant is like that")
    if asked.list:
        print("\n".join(map(str, chosen)))
        return 0
    try:
        green = run(chosen, slots=max(1, asked.slots), baseline=not asked.no_baseline)
    except MovedOnError as error:
        print(f"{error}; mend the list in tests/mutants", file=sys.stderr)
        return 2
    return 0 if green else 1


if __name__ == "__main__":
    sys.exit(main())
