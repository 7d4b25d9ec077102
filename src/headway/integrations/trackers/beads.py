"""The export of a beads tracker: `.beads/issues.jsonl`, one item per line.

Of two lines about one item the later counts. A line that cannot be read concerns its own item and
nobody else. An item is blocked by what it depends on (`blocks` and the like) as long as that is not
closed, also if it is not in the export, and by what blocks its parents.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from headway.base.errors import SourceError
from headway.core.subjects import SUBJECT, Item, ItemKind, ItemState
from headway.integrations.trackers.bounded_files import one_line, read_bounded
from headway.integrations.trackers.model import Seen

MOST_BYTES = 64 << 20
MOST_LINES = 200_000
MOST_TROUBLES = 10
DEEPEST = 50

_STATES = {
    "open": ItemState.OPEN,
    "blocked": ItemState.OPEN,
    "deferred": ItemState.OPEN,
    "pinned": ItemState.OPEN,
    "in_progress": ItemState.IN_PROGRESS,
    "hooked": ItemState.IN_PROGRESS,
    "closed": ItemState.CLOSED,
}
_HELD = ("blocked", "deferred", "pinned")
_DELETED = "tombstone"
_KINDS = {"epic": ItemKind.TREE, "molecule": ItemKind.TREE, "convoy": ItemKind.GROUP}
_BLOCKING = ("blocks", "conditional-blocks", "waits-for")

Record = Mapping[str, Any]


class Beads:
    def __init__(self, path: str) -> None:
        self._path = path
        self._records: dict[str, Record] | None = None
        self._children: dict[str, list[str]] = {}
        self._troubles: list[str] = []

    def look(self, subjects: Collection[str]) -> Seen:
        if self._records is None:
            self._records = self._read()
        records = self._records
        known = [each for each in dict.fromkeys(subjects) if each in records]
        there = [each for each in known if records[each].get("status") != _DELETED]
        items = {each: self._item(records[each], records) for each in there}
        return Seen(items, tuple(self._troubles))

    def _read(self) -> dict[str, Record]:
        lines = read_bounded(self._path, MOST_BYTES).split(b"\n")
        if len(lines) > MOST_LINES:
            raise SourceError(f"{self._path} has more than {MOST_LINES} lines")
        records: dict[str, Record] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                if record.get("_type", "issue") == "issue":
                    records[_checked_id(record["id"])] = record
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                self._trouble(f"line {number} of {self._path} cannot be read: {_words_of(error)}")
        for name, record in records.items():
            for parent in _edges(record, ("parent-child",)):
                self._children.setdefault(parent, []).append(name)
        return records

    def _trouble(self, text: str) -> None:
        if len(self._troubles) < MOST_TROUBLES:
            self._troubles.append(text)

    def _item(self, record: Record, records: Mapping[str, Record]) -> Item:
        name, status = str(record["id"]), record.get("status", "open")
        title = record.get("title")
        known = isinstance(status, str) and status in _STATES
        if not known or not isinstance(title or "", str):
            what = "title" if known else "status"
            return Item(name, trouble=f"its {what} {record.get(what)!r} is not understood")
        kind = _KINDS.get(str(record.get("issue_type")), ItemKind.TASK)
        children = self._children.get(name, [])
        if kind is ItemKind.GROUP:
            children = [*_edges(record, ("tracks",)), *children]
        return Item(
            id=name,
            title=one_line(title or ""),
            state=_STATES[status],
            kind=kind,
            blockers=tuple(dict.fromkeys(_blockers(record, records))),
            children=tuple(dict.fromkeys(children)),
            hold=f"{name} is {status}" if status in _HELD else None,
        )


def _blockers(record: Record, records: Mapping[str, Record]) -> Iterator[str]:
    """The open items that it depends on, and that its parents depend on."""
    ahead, seen = [record], {str(record["id"])}
    for _ in range(DEEPEST):
        parents = []
        for each in ahead:
            yield from (other for other in _edges(each, _BLOCKING) if _is_open(other, records))
            parents += [
                records[other]
                for other in _edges(each, ("parent-child",))
                if other in records and other not in seen
            ]
        seen |= {str(each["id"]) for each in parents}
        ahead = parents


def _is_open(name: str, records: Mapping[str, Record]) -> bool:
    return name not in records or records[name].get("status") not in ("closed", _DELETED)


def _edges(record: Record, types: Collection[str]) -> Iterator[str]:
    """The other ends of its edges of these types; what is no edge is passed over."""
    listed = record.get("dependencies")
    for edge in listed if isinstance(listed, list) else ():
        if isinstance(edge, dict) and edge.get("type", edge.get("dep_type")) in types:
            other = edge.get("depends_on_id")
            if isinstance(other, str) and SUBJECT.fullmatch(other):
                yield other


def _checked_id(name: object) -> str:
    if not isinstance(name, str) or not SUBJECT.fullmatch(name):
        raise ValueError(f"{str(name)[:40]!r} is not an id")
    return name


def _words_of(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it has no {error}"
    return str(error) if str(error).endswith("is not an id") else "it is no JSON object"
