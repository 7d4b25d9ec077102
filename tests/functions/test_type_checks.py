"""Arguments are checked where they are submitted, with the name of the one that is wrong."""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, Optional, TypedDict

import pytest

from headway import App, Retry
from headway.base.errors import InvalidInputError
from headway.functions.app import Handle
from headway.functions.type_checks import check_for, json_value

if TYPE_CHECKING:
    from nowhere import Unknown  # type: ignore[import-not-found]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Word(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Size(enum.StrEnum):
    LARGE = "large"


class Level(enum.IntEnum):
    HIGH = 3


@dataclass
class Point:
    x: int


class Shape(TypedDict):
    sides: int


RIGHT: list[tuple[Any, Any]] = [
    (Any, {"a": [1, 2.5, None, True, "x"]}),
    (object, "x"),
    (None, None),
    (str, ""),
    (int, 2**200),
    (float, 1),
    (float, -0.0),
    (bool, False),
    (list, [1, "a"]),
    (list[int], []),
    (Sequence[str], ["a"]),
    (dict[str, list[int]], {"a": [1]}),
    (Mapping[str, float], {"a": 1}),
    (dict, {}),
    (int | None, None),
    (Optional[str], "x"),  # noqa: UP045
    (Literal["a", 1], 1),
    (Colour, "red"),
    (Word, Word.RED),  # which is a str, as JSON makes it
    (Level, Level.HIGH),
    (Level, 3),
    (Shape, {"sides": 3}),
    (set[int], [1]),
    ([], 1),
    ("not resolved", 1),
    (Callable[[], int], 1),
]


@pytest.mark.parametrize(("hint", "value"), RIGHT, ids=range(len(RIGHT)))
def test_what_fits_the_hint_passes(hint: Any, value: Any) -> None:
    assert check_for(hint)(value, "") is None


NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
HANDLE: Handle[int] = Handle(App(), 1)
WRONG: list[tuple[Any, Any, str]] = [
    (Any, object(), "is an object, which JSON cannot carry"),
    (Any, (1, 2), "is a tuple, which JSON cannot carry; make it a list"),
    (Any, b"x", "is a bytes, which JSON cannot carry; make it a str, or write a file and name it"),
    (Any, {"a": [0, {1}]}, "['a'][1] is a set, which JSON cannot carry; make it a list"),
    (Any, {1: 2}, "has the key 1, which is not a str"),
    (Any, [float("inf")], "[0] is inf, which JSON does not have"),
    (Any, 10**4299, "is an int of more than 4000 digits"),
    (None, 0, "is an int, not None"),
    (str, 1, "is an int, not a str"),
    (int, True, "is a bool, not an int"),
    (int, 1.0, "is a float, not an int"),
    (float, float("nan"), "is nan, which JSON does not have"),
    (bool, 1, "is an int, not a bool"),
    (list[int], [1, "2"], "[1] is a str, not an int"),
    (list, {}, "is a dict, not a list"),
    (dict[str, int], {"a": None}, "['a'] is None, not an int"),
    (dict[str, int], {1: 1}, "has the key 1, which is not a str"),
    (dict[str, int], [], "is a list, not a dict"),
    (int | str, [], "is a list, not int | str"),
    (int | list[int], [object()], "[0] is an object, which JSON cannot carry"),
    (Literal["a", 1], True, "is True, not one of 'a', 1"),
    (Colour, "green", "is 'green', not one of 'red', 'blue'"),
    (Colour, Colour.RED, "is a Colour, which JSON cannot carry; use its value"),
    (Word, Size.LARGE, "is <Size.LARGE: 'large'>, not one of 'red', 'blue'"),
    (
        Any,
        Point(1),
        "is a Point, which JSON cannot carry; make it a dict: dataclasses.asdict()",
    ),
    (Any, PurePath("a"), "is a PurePosixPath, which JSON cannot carry; make it a str"),
    (Any, NEW_YEAR, "is a datetime, which JSON cannot carry; make it a str with isoformat()"),
    (Any, Retry(after="5m"), "is a Retry, which JSON cannot carry; raise it"),
    (Any, Decimal(1), "is a Decimal, which JSON cannot carry; make it a str"),
    (
        int,
        HANDLE,
        "is a Handle, not an int; use its result(), or its id",
    ),
    (set[int], {1}, "is a set, which JSON cannot carry; make it a list"),
]


@pytest.mark.parametrize(("hint", "value", "problem"), WRONG, ids=range(len(WRONG)))
def test_what_does_not_fit_is_named(hint: Any, value: Any, problem: str) -> None:
    assert check_for(hint)(value, "") == problem


def test_what_holds_itself_is_too_deep() -> None:
    value: list[Any] = []
    value.append(value)
    assert "is nested more than 100 deep" in (json_value(value, "") or "")


def task(function: Callable[..., Any]) -> Any:
    return App().task(function)


def test_an_argument_is_bound_and_checked_where_it_is_submitted() -> None:
    @task
    def build(target: str, jobs: list[int], *, fast: bool = False, **extra: int) -> None: ...

    call = build.call("docs", jobs=[1], x=3)
    assert dict(call.arguments) == {"target": "docs", "jobs": [1], "x": 3}
    name = build.name
    for arguments, problem in [
        ({"target": 1, "jobs": []}, f"{name}: argument target is an int, not a str"),
        ({"target": "", "jobs": [1, None]}, f"{name}: argument jobs[1] is None, not an int"),
        ({"target": "", "jobs": [], "y": "z"}, f"{name}: argument extra['y'] is a str, not an int"),
        ({"target": ""}, "missing a required argument: 'jobs'"),
    ]:
        with pytest.raises(InvalidInputError) as caught:
            build.call(**arguments)
        assert problem in str(caught.value)
    with pytest.raises(InvalidInputError, match="too many positional arguments"):
        build.call("a", [], True)


def test_a_signature_that_cannot_be_stored_is_refused_at_once() -> None:
    def positional(x: int, /) -> None: ...
    def several(*xs: int) -> None: ...

    with pytest.raises(InvalidInputError, match="parameter x is positional-only"):
        task(positional)
    with pytest.raises(InvalidInputError, match=r"\*xs cannot be stored by name; take a list"):
        task(several)


def test_a_hint_that_only_type_checkers_know_checks_nothing() -> None:
    def known(thing: "Unknown") -> None: ...

    assert dict(task(known).call(thing=[1]).arguments) == {"thing": [1]}

    def partly(count: int, thing: "Unknown") -> "Unknown": ...

    with pytest.raises(InvalidInputError, match="argument count is a str, not an int"):
        task(partly).call("1", 2)


def test_two_tasks_of_one_name_are_refused() -> None:
    app = App()

    def declare() -> Callable[[], None]:
        def twin() -> None: ...

        return twin

    app.task(declare())
    app.task(declare())  # the same function, declared again

    with pytest.raises(InvalidInputError, match="there are two tasks"):
        app.task(task_name=next(iter(app.tasks)))(lambda: None)
