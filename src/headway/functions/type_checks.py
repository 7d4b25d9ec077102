"""Type hints as checks of JSON values, compiled once per function.

A value must be one that JSON can carry and gives back unchanged. A hint that says more narrows it:
the built-in types, their generics, unions, literals, enumerations of strings. A hint that this
module does not know checks nothing: it is the function's own affair.
"""

import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

# What is wrong with a value, as "[2].name is a str, not an int"; None if nothing is.
Check = Callable[[Any, str], str | None]

DEEPEST = 100
LONGEST_INT = 13_288  # bits: what Python reads back without being asked to
_SMALL = 1 << 63
_PLAIN: dict[Any, str] = {str: "a str", bool: "a bool", int: "an int", float: "a float"}
_LISTS = (list, Sequence)
_MAPPINGS = (dict, Mapping)


def check_for(hint: Any) -> Check:
    """The check that a hint stands for."""
    if hint is Any or hint is object:
        return json_value
    if hint is None or hint is type(None):
        return lambda value, at: None if value is None else _not(value, "None", at)
    if isinstance(hint, type) and hint in _PLAIN:
        return _plain(hint)
    origin = get_origin(hint) or hint
    arguments = get_args(hint)
    if origin is Union or origin is types.UnionType:
        return _union([check_for(each) for each in arguments], _named(hint))
    if origin is Literal:
        return _one_of(arguments)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _one_of([each.value for each in hint])
    if isinstance(origin, type) and origin in _LISTS:
        return _list(check_for(arguments[0]) if arguments else json_value)
    if isinstance(origin, type) and origin in _MAPPINGS:
        return _mapping(check_for(arguments[1]) if len(arguments) == 2 else json_value)
    return json_value


def json_value(value: Any, at: str, depth: int = 0) -> str | None:
    """Whether JSON carries the value and gives it back as it was."""
    if type(value) is int and -_SMALL < value < _SMALL:
        return None
    match value:
        case None | str() | bool():
            return None
        case int():
            small = value.bit_length() <= LONGEST_INT
            return None if small else f"{_place(at)}is an int of more than 4000 digits"
        case float():
            finite = value == value and value not in (float("inf"), float("-inf"))
            return None if finite else f"{_place(at)}is {value}, which JSON does not have"
        case list() | dict() if depth >= DEEPEST:
            return f"{_place(at)}is nested more than {DEEPEST} deep"
        case list():
            found = (json_value(each, f"{at}[{n}]", depth + 1) for n, each in enumerate(value))
            return next(filter(None, found), None)
        case dict():
            for key, each in value.items():
                if not isinstance(key, str):
                    return f"{_place(at)}has the key {key!r}, which is not a str"
                problem = json_value(each, f"{at}[{key!r}]", depth + 1)
                if problem:
                    return problem
            return None
    return f"{_place(at)}is {_kind(value)}, which JSON cannot carry{_instead(value)}"


def _plain(hint: type) -> Check:
    if hint is int:
        return _int
    name = _PLAIN[hint]
    allowed = (int, float) if hint is float else (hint,)
    always_good = hint if hint in (str, bool) else None

    def check(value: Any, at: str) -> str | None:
        if type(value) is always_good:
            return None
        if (isinstance(value, bool) and hint is not bool) or not isinstance(value, allowed):
            return _not(value, name, at)
        return json_value(value, at)

    return check


def _int(value: Any, at: str) -> str | None:
    """By far the most of them are small."""
    if type(value) is int and -_SMALL < value < _SMALL:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        return _not(value, "an int", at)
    return json_value(value, at)


def _union(checks: Sequence[Check], name: str) -> Check:
    def check(value: Any, at: str) -> str | None:
        if any(each(value, at) is None for each in checks):
            return None
        return json_value(value, at) or _not(value, name, at)

    return check


def _one_of(allowed: Sequence[Any]) -> Check:
    shown = ", ".join(repr(each) for each in allowed)

    def check(value: Any, at: str) -> str | None:
        given = value
        if isinstance(value, Enum):
            if not isinstance(value, str | int):
                return json_value(value, at)
            given = value.value  # which JSON makes of it
        if any(given == each and type(given) is type(each) for each in allowed):
            return None
        return f"{_place(at)}is {value!r}, not one of {shown}"

    return check


def _list(inner: Check) -> Check:
    def check(value: Any, at: str) -> str | None:
        if not isinstance(value, list):
            return _not(value, "a list", at)
        found = (inner(each, f"{at}[{number}]") for number, each in enumerate(value))
        return next(filter(None, found), None)

    return check


def _mapping(inner: Check) -> Check:
    def check(value: Any, at: str) -> str | None:
        if not isinstance(value, dict):
            return _not(value, "a dict", at)
        for key, each in value.items():
            if not isinstance(key, str):
                return f"{_place(at)}has the key {key!r}, which is not a str"
            problem = inner(each, f"{at}[{key!r}]")
            if problem:
                return problem
        return None

    return check


# What to give instead of an object, by its class or one it is made from. By name: code with
# such an object has imported its module, and no other code needs it.
_INSTEAD = {
    "builtins.tuple": "make it a list",
    "builtins.set": "make it a list",
    "builtins.frozenset": "make it a list",
    "builtins.bytes": "make it a str, or write a file and name it",
    "builtins.generator": "make it a list",
    "datetime.date": "make it a str with isoformat()",
    "datetime.time": "make it a str with isoformat()",
    "datetime.timedelta": "make it a number with total_seconds()",
    "decimal.Decimal": "make it a str",
    "enum.Enum": "use its value",
    "headway.functions.handle.Handle": "use its result(), or its id",
    "headway.base.current.Retry": "raise it",
    "headway.base.current.Skip": "raise it",
    "headway.functions.tasks.Call": "submit it, and use the id of its handle",
    "headway.functions.tasks.Task": "use its name",
    "pathlib.PurePath": "make it a str",
    "pydantic.main.BaseModel": 'make it a dict with model_dump(mode="json")',
    "uuid.UUID": "make it a str",
}


def _instead(value: Any) -> str:
    classes = [f"{each.__module__}.{each.__qualname__}" for each in type(value).__mro__]
    if hasattr(type(value), "__dataclass_fields__"):
        return "; make it a dict: dataclasses.asdict()"
    return next((f"; {_INSTEAD[each]}" for each in classes if each in _INSTEAD), "")


def _not(value: Any, wanted: str, at: str) -> str:
    ours = _instead(value) if type(value).__module__.startswith("headway.") else ""
    return f"{_place(at)}is {_kind(value)}, not {wanted}{ours}"


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _place(at: str) -> str:
    return f"{at} " if at else ""


def _named(hint: Any) -> str:
    return str(hint).replace("typing.", "")
