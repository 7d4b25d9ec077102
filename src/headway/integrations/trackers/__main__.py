"""Ask one registered source: `python -m headway.integrations.trackers NAME PROJECT`.

Ids go in, items come out.
"""

import json
import sys
from importlib.metadata import entry_points

from headway.integrations.trackers.model import GROUP


def main(name: str, project: str) -> None:
    [entry] = entry_points(group=GROUP, name=name)
    answer, sys.stdout = sys.stdout, sys.stderr  # what it prints must not mix with the answer
    seen = entry.load()(project).look(json.load(sys.stdin))
    items = [each._asdict() for each in seen.items.values()]
    json.dump({"items": items, "troubles": list(seen.troubles)}, answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
