"""The sources of subjects: work items, tracked groups and trees of them. Read, never written.

A source is asked about subjects by their ids and answers with the items that it has. Two are built
in; a package adds one by the entry point group `headway.sources`: a callable that takes the
project's folder and returns an object with `look`. Such a one runs in a process of its own.
"""

import os
from collections.abc import Callable, Mapping

from headway.integrations.trackers.model import GROUP, Seen, Source, SourcePlace

__all__ = ["GROUP", "Seen", "Source", "SourcePlace", "open_source", "places"]


def open_source(place: SourcePlace) -> Source:
    if place.source in _BUILT_IN:
        return _BUILT_IN[place.source](place.path)
    from headway.integrations.trackers.plugins import Plugin

    return Plugin(place.source, place.path)


def places(project: str, *, beads: str, tasks: str) -> list[SourcePlace]:
    """The sources that there are in a project, in the order in which they are asked."""
    from importlib.metadata import entry_points

    built_in = [
        SourcePlace("beads", os.path.join(project, beads)),
        SourcePlace("tasks", os.path.join(project, tasks)),
    ]
    registered = sorted({each.name for each in entry_points(group=GROUP)} - _BUILT_IN.keys())
    return [
        *(each for each in built_in if os.path.lexists(each.path)),
        *(SourcePlace(name, project) for name in registered),
    ]


def _beads(path: str) -> Source:
    from headway.integrations.trackers.beads import Beads

    return Beads(path)


def _tasks(path: str) -> Source:
    from headway.integrations.trackers.taskfiles import TaskFiles

    return TaskFiles(path)


_BUILT_IN: Mapping[str, Callable[[str], Source]] = {"beads": _beads, "tasks": _tasks}
