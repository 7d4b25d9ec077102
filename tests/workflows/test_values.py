"""References, conditions, matrices and places: the small parts that the compiler is made of."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.conditions import NotComparableError, holds
from headway.workflows.conditions import parse_condition
from headway.workflows.matrices import (
    combinations,
    count_combinations,
    fits_some,
    instance_id,
    instances,
)
from headway.workflows.places import TextPlaces
from headway.workflows.references import (
    UNKNOWN,
    MalformedError,
    Reference,
    fill,
    fill_texts,
    parse_reference,
    references_in,
)

# -- references --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("params.x", Reference("params", "x")),
        ("  params.a.b-c ", Reference("params", "a.b-c")),
        ("matrix.python", Reference("matrix", "python")),
        ("args.slug", Reference("args", "slug")),
        ("item", Reference("item")),
        ("run.state", Reference("run", "state")),
        ("nodes.n.outcome", Reference("nodes", "n", "outcome")),
        ("nodes.x.n.outputs.o", Reference("nodes", "x.n", "outputs.o", "o")),
        ("last.ci.tail", Reference("last", "ci", "tail")),
        ("last.ci.exit_code", Reference("last", "ci", "exit_code")),
        ("last.ci.outputs.o", Reference("last", "ci", "outputs.o", "o")),
        ("file:docs/a b.md", Reference("file", "docs/a b.md")),
    ],
)
def test_a_reference_is_one_of_the_known_forms(text: str, found: Reference) -> None:
    assert parse_reference(text) == found
    assert parse_reference(found.text) == found


@pytest.mark.parametrize(
    "text",
    [
        *("", "params", "params.", "run.secret", "nodes.n", "nodes.n.outputs.", "last.n.x"),
        *("item.x", "file:", "1 + 1", "params.x | sh", "env.HOME", "nodes..outcome", "a" * 100),
    ],
)
def test_all_else_is_unknown(text: str) -> None:
    with pytest.raises(MalformedError, match=": unknown"):
        parse_reference(text)


ODD_WORDS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        (
            "params.x.__class__",
            "item.real",
            "().__class__",
            "7*7",
            "params['x']",
            "run.id|sh",
            "env",
        )
    ),
    st.lists(
        st.sampled_from(("params", "nodes", "last", "run", "item", "outputs", ".", "x", "(", " ")),
        max_size=8,
    ).map("".join),
)


AROUND = st.text("a{} \n'", max_size=5)


@given(name=ODD_WORDS, around=st.tuples(AROUND, AROUND))
def test_a_name_is_looked_up_or_refused_and_never_evaluated(
    name: str, around: tuple[str, str]
) -> None:  # fault H6
    """Whatever stands in a reference is asked for once, as it is written, or is no reference."""
    asked: list[Reference] = []

    def look_up_and_note(each: Reference) -> Any:
        asked.append(each)
        return "${{ run.id }}"

    text = f"{around[0]}${{{{{name}}}}}{around[1]}"
    try:
        found = fill_texts(text, look_up_and_note)
    except MalformedError:
        return
    assert "".join(asked[0].text.split()) == "".join(name.partition("}}")[0].split())
    assert found.startswith(f"{around[0]}${{{{ run.id }}}}")


@pytest.mark.parametrize("text", ["${{", "a ${{ params.x", "${{ params.x }} ${{", "${{ params.x }"])
def test_a_reference_that_is_not_closed_is_refused(text: str) -> None:
    with pytest.raises(MalformedError, match="is not closed"):
        list(references_in([text]))


def test_references_are_found_however_deep() -> None:
    value = {"a": [{"b": "x ${{ params.p }} ${{ item }}"}], "${{ item }}": 1}
    assert [each.text for each in references_in(value)] == ["params.p", "item"]


VALUES = {"params.n": 3, "params.t": "text", "params.l": [1], "params.o": {"a": None}}


def look_up(each: Reference) -> Any:
    return VALUES.get(each.text, UNKNOWN)


@pytest.mark.parametrize(
    ("value", "filled", "as_texts"),
    [
        ("${{ params.n }}", 3, "3"),
        ("<${{ params.n }}>", "<3>", "<3>"),
        ("${{params.t}}${{ params.t }}", "texttext", "texttext"),
        ("${{ params.l }}", [1], "[1]"),
        ("${{ params.o }}", {"a": None}, '{"a": null}'),
        (["${{ params.n }}", 5], [3, 5], ["3", 5]),
        ("${{ item }}", "${{ item }}", "${{ item }}"),
        ("${{item}} ${{ params.n }}", "${{ item }} 3", "${{ item }} 3"),
        ("$ {{ params.n }}", "$ {{ params.n }}", "$ {{ params.n }}"),
        (True, True, True),
    ],
)
def test_references_are_replaced_once(value: Any, filled: Any, as_texts: Any) -> None:
    assert fill(value, look_up) == filled
    assert fill_texts(value, look_up) == as_texts


def test_a_value_is_not_looked_through_for_references() -> None:
    assert fill("${{ params.x }}!", lambda _: "${{ params.x }}") == "${{ params.x }}!"


# -- conditions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("${{ params.x }} == true", ("${{ params.x }}", "==", True)),
        ("a != b", ("a", "!=", "b")),
        ("1<=2", (1, "<=", 2)),
        ("3.5 >= -1", (3.5, ">=", -1)),
        ('"a == b" == x', ("a == b", "==", "x")),
        ('x in ["a", "b"]', ("x", "in", ["a", "b"])),
        ('"in" in "main"', ("in", "in", "main")),
        ('"" == ${{ item }}', ("", "==", "${{ item }}")),
        ("null == ${{ nodes.a.outputs.x }}", (None, "==", "${{ nodes.a.outputs.x }}")),
    ],
)
def test_a_condition_compares_two_sides(text: str, parts: tuple[Any, str, Any]) -> None:
    assert parse_condition(text) == parts


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "== 1", "1 ==", "a b == 1", "${{ a }}x == 1", "${{ a }} ${{ b }} == 1"),
        *("x = 1", "x is 1", "not x == 1", "[1 == 1", "x" * 5000 + " == 1"),
        "[" * 3000 + " == 1",
    ],
)
def test_other_texts_are_no_condition(text: str) -> None:
    assert parse_condition(text) is None


@pytest.mark.parametrize(
    ("left", "operator", "right", "answer"),
    [
        ("3.11", "==", 3.11, True),
        (True, "==", "true", True),
        (1, "==", 1.0, True),
        (None, "==", None, True),
        (None, "==", "null", True),
        ("a", "!=", "b", True),
        (2, "<", 10, True),
        (2, ">=", 2.0, True),
        ("b", "in", ["a", "b"], True),
        (1, "in", ["1"], True),
        ("ai", "in", "main", True),
        ("x", "in", {"x": 1}, True),
        ("x", "in", 5, False),
        ("x", "in", None, False),
    ],
)
def test_values_are_compared(left: Any, operator: str, right: Any, answer: bool) -> None:
    assert holds(operator, left, right) is answer


@pytest.mark.parametrize(("left", "right"), [("1", 2), (None, 1), (True, 0), ([1], 2)])
def test_an_order_wants_numbers(left: Any, right: Any) -> None:
    with pytest.raises(NotComparableError, match="compares no numbers"):
        holds("<", left, right)


# -- matrices ----------------------------------------------------------------------------------

MATRIX = {"a": (1, 2), "b": ("x", "y")}


def test_the_last_key_changes_fastest() -> None:
    assert [tuple(each.values()) for each in combinations(MATRIX)] == [
        *((1, "x"), (1, "y"), (2, "x"), (2, "y"))
    ]
    assert count_combinations(MATRIX) == 4 and count_combinations({}) == 0


def test_what_is_excluded_is_no_instance() -> None:
    left = list(instances(MATRIX, [{"a": 1}, {"a": 2, "b": "x"}]))
    assert left == [{"a": 2, "b": "y"}]
    assert list(instances({}, [])) == [{}]


def test_a_partial_combination_fits_if_each_of_its_values_is_there() -> None:
    assert fits_some({"a": 1, "b": "y"}, MATRIX) and fits_some({}, MATRIX)
    assert not fits_some({"a": 3}, MATRIX) and not fits_some({"c": 1}, MATRIX)
    assert not fits_some({}, {})


def test_an_instance_is_named_by_its_values() -> None:
    assert instance_id("t", {}) == "t"
    assert instance_id("t", {"a": "3.11", "b": True, "c": [1]}) == "t[a=3.11,b=true,c=[1]]"


# -- places ------------------------------------------------------------------------------------

TEXT = """\
# [not.a.header]
top = 1
dotted.key = 2

[nodes."a b"]  # a header
  argv = [
    "x = 1",  # not a key
    "[nodes.c]",
  ]
  on.failed = ["x"]
text = \"\"\"
[nodes.no]
key = 1
\"\"\"
last = { inner = 1, other = [2] }
[[nodes.list]]
x = 1
"""


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        (("top",), 2, 1),
        (("dotted",), 3, 1),
        (("dotted", "key"), 3, 1),
        (("nodes", "a b"), 5, 2),
        (("nodes", "a b", "argv"), 6, 3),
        (("nodes", "a b", "on", "failed"), 10, 3),
        (("nodes", "a b", "text"), 11, 1),
        (("nodes", "a b", "last", "inner"), 15, 1),
        (("nodes", "a b", "nowhere"), 5, 2),
        (("nodes", "list", "x"), 17, 1),
    ],
)
def test_a_key_has_its_line_and_column(path: tuple[str, ...], line: int, column: int) -> None:
    assert TextPlaces(TEXT).of(path) == (line, column)


def test_what_is_not_there_has_no_place() -> None:
    places = TextPlaces(TEXT)
    assert places.of(("key",)) is None and places.of(("nodes", "no")) == (5, 2)
