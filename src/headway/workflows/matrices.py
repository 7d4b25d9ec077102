"""The instances of a node with a matrix: every combination of its values, but for what is
excluded. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from headway.core.conditions import as_text

MOST_COMBINATIONS = 1000
NUMBER = "0.instance.0"  # in the name of an artifact: which instance of its node makes it


def count_combinations(matrix: Mapping[str, Sequence[Any]]) -> int:
    return prod(len(values) for values in matrix.values()) if matrix else 0


def combinations(matrix: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """In the order of the file: the last key changes fastest."""
    for values in product(*matrix.values()):
        yield dict(zip(matrix, values, strict=True))


def fits_some(part: Mapping[str, Any], matrix: Mapping[str, Sequence[Any]]) -> bool:
    """Whether there is a combination that has all that a partial one says."""
    return bool(matrix) and all(value in matrix.get(key, ()) for key, value in part.items())


def fits(part: Mapping[str, Any], combination: Mapping[str, Any]) -> bool:
    """Whether a combination has all that a partial one says."""
    return all(key in combination and combination[key] == value for key, value in part.items())


def instances(
    matrix: Mapping[str, Sequence[Any]], exclude: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The combinations that run; one without values for a node without a matrix."""
    if not matrix:
        yield {}
        return
    for each in combinations(matrix):
        if not any(fits(part, each) for part in exclude):
            yield each


def instance_id(node: str, values: Mapping[str, Any]) -> str:
    """`test[python=3.11,store=sqlite]`."""
    if not values:
        return node
    return f"{node}[{show_values(values)}]"


def show_values(values: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={as_text(value)}" for key, value in values.items())


def written_node(instance: str) -> str:
    """The node as it is written, of a node or one instance of it."""
    return instance.partition("[")[0]
