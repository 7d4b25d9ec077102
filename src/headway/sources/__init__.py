"""Where subjects come from: work items, tracked groups and trees of them. Read, never written.

A source is asked about subjects by their ids and answers with the items that it has. Two are built
in; a package adds one by the entry point group `headway.sources`: a callable that takes the
project's folder and returns an object with `look`. Such a one runs in a process of its own.
"""

import os
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, Protocol

from headway.core.subjects import Item

GROUP = "headway.sources"


class Seen(NamedTuple):
    """The items that were found, and in words what could not be read beside them."""

    items: Mapping[str, Item]
    troubles: tuple[str, ...] = ()


class Source(Protocol):
    def look(self, subjects: Collection[str]) -> Seen:
        """Those of the subjects that there are, as they stand now. Raises SourceError if the whole
        source cannot be read."""


class Place(NamedTuple):
    """A source of a project: its name, and the file or folder that it reads."""

    source: str
    path: str

    @property
    def shown(self) -> str:
        return f"{self.source} ({self.path})"


def open_source(place: Place) -> Source:
    if place.source in _BUILT_IN:
        return _BUILT_IN[place.source](place.path)
    from headway.sources.plugins import Plugin

    return Plugin(place.source, place.path)


def places(project: str, *, beads: str, tasks: str) -> list[Place]:
    """The sources that there are in a project, in the order in which they are asked."""
    from importlib.metadata import entry_points

    built_in = [
        Place("beads", os.path.join(project, beads)),
        Place("tasks", os.path.join(project, tasks)),
    ]
    registered = sorted({each.name for each in entry_points(group=GROUP)} - _BUILT_IN.keys())
    return [
        *(each for each in built_in if os.path.lexists(each.path)),
        *(Place(name, project) for name in registered),
    ]


def _beads(path: str) -> Source:
    from headway.sources.beads import Beads

    return Beads(path)


def _tasks(path: str) -> Source:
    from headway.sources.taskfiles import TaskFiles

    return TaskFiles(path)


_BUILT_IN: Mapping[str, Callable[[str], Source]] = {"beads": _beads, "tasks": _tasks}
