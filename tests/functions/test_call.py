"""What functions return and raise, however nasty: each call ends with a reason, and no other."""

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from headway.base.current import Retry, Skip
from headway.base.errors import InvalidInputError
from headway.base.units import LONGEST
from headway.functions.current import Current
from headway.functions.host.call import LONGEST_ERROR, Caller, Outcome
from headway.functions.host.process import load


def called(function: Callable[[], Any]) -> tuple[Outcome, str]:
    """The outcome, and what was shown."""
    shown: list[str] = []
    caller = Caller({"f": function}, shown.append)
    return caller.call("f", {}, Current(1, 1, "t" * 32, lambda lines: None)), "".join(shown)


def raising(error: BaseException) -> Callable[[], Any]:
    def function() -> Any:
        raise error

    return function


class SilentSkip(Skip):
    def __str__(self) -> str:
        raise ValueError("nobody may ask")


class SilentCode:
    def __repr__(self) -> str:
        raise ValueError("nobody may ask")


class HalfCode:
    def __repr__(self) -> str:
        return "a\udc80b\0"


class SilentDict(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("nobody may look")


def unshowable() -> SyntaxError:
    error = SyntaxError("x")
    error.text, error.lineno, error.offset = 7, "a", "q"  # type: ignore[assignment]
    return error


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (SilentSkip("x"), 1, "SilentSkip, which cannot be shown"),
        (SystemExit(SilentCode()), 1, "SystemExit, which cannot be shown"),
        (unshowable(), 1, "SyntaxError, which cannot be shown"),
        (SystemExit(HalfCode()), 1, "sys.exit(a\\udc80b\\x00)"),
    ],
)
def test_an_exception_that_cannot_be_shown_ends_only_its_call(  # fault B14
    error: BaseException, code: int, said: str
) -> None:
    outcome, _ = called(raising(error))
    assert outcome[0] == code
    assert outcome[2] == said


@pytest.mark.parametrize("kind", [Skip, Retry, SystemExit, ValueError])
def test_what_is_kept_of_a_reason_is_bounded(kind: type[BaseException]) -> None:
    outcome, _ = called(raising(kind("x" * 1_000_000)))
    assert outcome[2] is not None and len(outcome[2]) == LONGEST_ERROR


def test_a_result_that_will_not_be_looked_at_ends_only_its_call() -> None:
    outcome, shown = called(lambda: SilentDict(a=1))
    assert outcome[:3] == (1, None, "RuntimeError: nobody may look")
    assert shown.startswith("Traceback")
    outcome, _ = called(lambda: {"k" * 1_000_000: object()})
    assert outcome[2] is not None and len(outcome[2]) == LONGEST_ERROR


@pytest.mark.parametrize("after", [1e14, 1e300, 10**30, "200000d", -1, None, "soon", "-5s"])
def test_no_function_may_ask_for_a_time_that_is_none_or_that_no_store_can_keep(after: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"after|duration"):
        Retry("later", after=after)
    assert Retry("later", after=timedelta(days=36_000)).after == 36_000 * 86_400 * 10**6


@pytest.mark.parametrize(("after", "wait"), [(-5, 0), (10**30, LONGEST), (1.5, 1)])
def test_what_a_class_of_the_users_own_asks_for_is_bounded(after: Any, wait: int) -> None:
    class Own(Retry):
        def __init__(self) -> None:  # and does not ask its parent
            self.after = after

    assert called(raising(Own()))[0] == (1, None, "it asked to be tried again", wait)


def test_a_class_of_the_users_own_need_not_say_when() -> None:
    class Bare(Retry):
        def __init__(self) -> None:
            pass

    assert called(raising(Bare()))[0][3] == 0


def test_the_tasks_of_an_app_are_found_in_a_module_that_only_declares_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`@core.app.task`, and the module does not name the app itself."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "found_core.py").write_text("import headway\napp = headway.App()\n")
    declared = "import found_core\n@found_core.app.task\ndef bake(): pass\n"
    (tmp_path / "found_bakery.py").write_text(declared)
    assert list(load(["found_bakery"], [str(tmp_path)])) == ["found_bakery.bake"]


@pytest.mark.parametrize("fraction", ["0.5", None, 1.5, -1, float("nan")])
def test_progress_is_a_number_from_0_to_1(fraction: Any) -> None:
    with pytest.raises(InvalidInputError, match="is not a number from 0 to 1"):
        Current(1, 1, "t" * 32, lambda lines: None).progress(fraction)
