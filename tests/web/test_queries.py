"""Words of a query, as they are read."""

from typing import Any

import pytest

from headway.base.shapes import TEXTS, WrongRequestError, one_of, whole
from headway.web.shapes import read_query

SHAPES = {
    "state": {"type": "array", "items": one_of("queued", "running")},
    "group": TEXTS,
    "limit": whole(1, 1000, 50),
}


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ([], {"limit": 50}),
        ([("limit", "7")], {"limit": 7}),
        ([("state", "queued,running")], {"limit": 50, "state": ["queued", "running"]}),
        (
            [("state", "queued"), ("state", "running")],  # as generated clients send a list
            {"limit": 50, "state": ["queued", "running"]},
        ),
        ([("group", "a"), ("group", "b,c")], {"limit": 50, "group": ["a", "b", "c"]}),
    ],
)
def test_a_list_comes_whole_or_in_parts(given: list[tuple[str, str]], read: Any) -> None:
    assert read_query(given, SHAPES) == read


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([("state", "")], "'' is not one of queued, running"),
        ([("group", "")], "it is empty"),
        ([("group", "a,,b")], "it is empty"),
        ([("state", "queued"), ("state", "gone")], "'gone' is not one of"),
        ([("limit", "1"), ("limit", "2")], "it is given twice"),
        ([("limit", "0")], "too small"),
        ([("Limit", "1")], "unknown query word; did you mean 'limit'?"),
    ],
)
def test_what_is_wrong_is_said(given: list[tuple[str, str]], why: str) -> None:
    """An empty entry most often is a variable that a script did not set."""
    with pytest.raises(WrongRequestError, match=r".*") as found:
        read_query(given, SHAPES)
    assert why in str(found.value)
