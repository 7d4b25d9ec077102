"""What is made of YAML: values that know where they stand. Pure."""

from typing import Any, NamedTuple

LARGEST_FILE = 1 << 20  # bytes


class Node(NamedTuple):
    """A text, whole number, boolean, None, list of nodes, or mapping of texts to pairs."""

    value: Any
    line: int  # from 1
    column: int  # from 1


class Pair(NamedTuple):
    """A value of a mapping, and where its key stands."""

    node: Node
    line: int
    column: int
