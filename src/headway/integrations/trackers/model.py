"""What a source of work items is, and what it answers."""

from collections.abc import Collection, Mapping
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


class SourcePlace(NamedTuple):
    """A source of a project: its name, and the file or folder that it reads."""

    source: str
    path: str

    @property
    def shown(self) -> str:
        return f"{self.source} ({self.path})"
