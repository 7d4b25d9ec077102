"""Values read from YAML, each with its line and column. Pure."""

from typing import Any, NamedTuple

LARGEST_FILE = 1 << 20  # bytes


class YamlNode(NamedTuple):
    """A text, whole number, boolean, None, list of nodes, or mapping of texts to pairs."""

    value: Any
    line: int  # from 1
    column: int  # from 1


class Pair(NamedTuple):
    """A value of a mapping, and where its key stands."""

    node: YamlNode
    line: int
    column: int
