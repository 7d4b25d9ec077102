"""Find jobs by what people know of them, from the newest down.

Ids are given in the order in which jobs are made, so the newest jobs have the greatest. Where an
index knows the few jobs that can match, only these are read. Else rows are walked through. An index
may know many, as that of 100,000 waiting jobs: then the newest rows are most often among them, and
are looked at first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from headway.core.model import JobId
from headway.core.states import TERMINAL, WAITING, Status
from headway.store.access import Table
from headway.store.rows import like, like_label

if TYPE_CHECKING:
    from headway.store.records import Search, Stretch

ALL = 1 << 62  # are below this one
MOST_WALKED = 5_000  # rows at once
FIRST_WALKED = 4  # times what is asked for, before an index that may know many

Index = tuple[str, dict[str, Any]]  # a query for ids, and what it is asked for


class SearchReader(Table):
    """A search for jobs, as a read transaction shows them."""

    def jobs(self, search: Search, *, below: JobId | None = None, size: int) -> Iterator[Stretch]:
        """Those that may match, the newest first, in stretches of about `size`; a pattern is taken
        loosely here."""
        below = ALL if below is None else below
        indexes = self._indexes(search)
        if indexes is None:
            yield from self._walk(search, below, rows=MOST_WALKED, size=size)
            return
        if not _knows_few(search):
            for stretch in self._walk(search, below, rows=FIRST_WALKED * size, size=size):
                yield stretch
                below = stretch.below
                if len(stretch.jobs) < size:
                    break
        yield from self._among(search, indexes, below, size)

    def _walk(self, search: Search, below: JobId, *, rows: int, size: int) -> Iterator[Stretch]:
        """Through all rows, so many at once."""
        from headway.store.records import Stretch

        filters = self._filters(search)
        while (newest := self._db.all("newest_below", below=below)[0][0]) is not None:
            below = newest + 1
            low = max(below - rows, 0)
            found = self._db.all("find_between", low=low, below=below, limit=size, **filters)
            low = found[-1][0] if len(found) == size else low
            yield Stretch(self._readable(found), low, below - low)
            below = low

    def _among(
        self, search: Search, indexes: list[Index], below: JobId, size: int
    ) -> Iterator[Stretch]:
        """Through the rows that the indexes know."""
        from headway.store.records import Stretch

        filters = self._filters(search)
        while True:  # what little of it matches is found in few questions
            asked = (self._db.all(name, below=below, limit=size, **of) for name, of in indexes)
            ids = sorted({row[0] for rows in asked for row in rows}, reverse=True)[:size]
            if not ids:
                return
            found = self._db.all("find_among", ids=self._db.json(ids), **filters)
            below = ids[-1]
            yield Stretch(self._readable(found), below, len(ids))
            size = max(size, min(2 * size, MOST_WALKED))

    def _indexes(self, search: Search) -> list[Index] | None:
        """Those that together know all that can match; None: there are none."""
        if search.chains is not None:
            return [("ids_of_chains", {"chains": self._db.json(search.chains)})]
        if search.groups:
            return [("ids_of_groups", {"groups": self._db.json(search.groups)})]
        if search.subjects:
            return [("ids_about", {"subjects": self._db.json(search.subjects)})]
        active: list[Index] = [("ids_waiting", {})] if search.statuses & WAITING else []
        if Status.RUNNING in search.statuses:
            active.append(("ids_running", {}))
        ended = sorted(search.statuses & TERMINAL)
        since = _since(search)
        if ended and since:
            return [*active, ("ids_ended_since", {"since": since})]
        if Status.SUCCEEDED in ended:
            return None
        return [*active, *(("ids_ended_as", {"status": each.value}) for each in ended)]

    def _filters(self, search: Search) -> dict[str, Any]:
        return {
            "statuses": self._db.json(sorted(search.statuses)),
            "ended_since": search.ended_since,
            "created_since": search.created_since,
            "every_target": int(not search.targets),
            "targets": self._db.json(search.targets),
            "name": like(search.name),
            "label": like_label(search.labels),
        }


def _knows_few(search: Search) -> bool:
    """Whether the indexes know few jobs, or give them in the order of their ids."""
    if search.chains is not None or search.groups or search.subjects:
        return True
    return search.statuses.isdisjoint(WAITING) and not _since(search)


def _since(search: Search) -> int:
    """What has ended before this cannot match; 0: it can."""
    return max(search.ended_since, search.created_since)
