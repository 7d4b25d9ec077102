"""The parts of a step: their order, what is undone, and that the fast lane is one of them."""

import ast
from pathlib import Path

import pytest

import headway
from harness import Bench
from headway.jobs.part import Part
from headway.store.transaction import WriteTx
from headway.webhooks.part import WebhooksPart
from headway.worker.dispatch import DispatchPart
from headway.worker.fastlane.lane import FastLanePart
from headway.worker.shortcut import ShortcutPart
from headway.worker.step import PARTS

SOURCE = Path(headway.__file__).parent


class Recorded(Part):
    def __init__(self, name: str, calls: list[str], fails: str = "", wants: float = 9.0) -> None:
        self._name = name
        self._calls = calls
        self._fails = fails
        self._wants = wants

    def _called(self, verb: str) -> None:
        self._calls.append(f"{verb} {self._name}")
        if verb == self._fails:
            raise OSError(verb)

    def take_in(self) -> None:
        self._called("take_in")

    def step(self, tx: WriteTx) -> None:
        self._called("step")

    def undo(self) -> None:
        self._called("undo")

    def committed(self) -> None:
        self._called("committed")

    def delay(self) -> float | None:
        return self._wants


def recorded(bench: Bench, **options: str) -> list[str]:
    """The engine has three parts; `b` fails as the options say."""
    calls: list[str] = []
    bench.engine.parts = (
        Recorded("a", calls, wants=7.0),
        Recorded("b", calls, **options),
        Recorded("c", calls),
    )
    return calls


@pytest.mark.req("G5")
def test_parts_decide_in_their_order_and_act_in_the_opposite_one(bench: Bench) -> None:
    calls = recorded(bench)
    assert bench.engine.step() == 7.0, "the soonest that one of them asks for"
    assert calls == [
        *(f"{verb} {part}" for verb in ("take_in", "step") for part in "abc"),
        *(f"committed {part}" for part in "cba"),
    ]


@pytest.mark.req("V80")
@pytest.mark.parametrize(
    ("fails", "undone"),
    [("take_in", ["undo b", "undo a"]), ("step", ["undo c", "undo b", "undo a"])],
)
def test_a_step_that_fails_undoes_the_parts_that_it_entered(
    bench: Bench, fails: str, undone: list[str]
) -> None:
    calls = recorded(bench, fails=fails)
    with pytest.raises(OSError, match=fails):
        bench.engine.step()
    assert [each for each in calls if each.startswith("undo")] == undone
    assert not any(each.startswith("committed") for each in calls)


def test_after_the_commit_every_part_has_its_turn(bench: Bench) -> None:
    calls = recorded(bench, fails="committed")
    with pytest.raises(OSError, match="committed"):
        bench.engine.step()
    assert calls[-3:] == ["committed c", "committed b", "committed a"]


def test_dispatch_decides_last_and_the_fast_lane_sees_what_is_left() -> None:
    """What only looks at the events of a step comes after both that decide."""
    deciding = [each for each in PARTS if each not in (FastLanePart, WebhooksPart)]
    assert deciding[-1] is DispatchPart
    assert PARTS.index(WebhooksPart) > PARTS.index(DispatchPart)
    assert FastLanePart not in PARTS or PARTS[-1] is FastLanePart


def test_only_the_tuple_of_parts_knows_the_fast_lane() -> None:
    """And only it, the store and the core know plain calls."""
    found = {}
    guarded = ("worker.fastlane", "core.plaincalls")
    for file in SOURCE.rglob("*.py"):
        text = file.read_text()
        if not any(each in text for each in guarded):
            continue
        imported = {
            each
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.ImportFrom)
            for each in guarded
            if (node.module or "").startswith(f"headway.{each}")
        }
        name = file.relative_to(SOURCE).as_posix()
        if imported and not name.startswith(("worker/fastlane/", "store/", "core/")):
            found[name] = imported
    assert found == {"worker/step.py": {"worker.fastlane"}}


def test_without_the_fast_lane_a_shortcut_takes_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "headway.worker.step.PARTS", tuple(each for each in PARTS if each is not FastLanePart)
    )
    engine = bench.crash()
    assert type(engine.tools.shortcut) is ShortcutPart
    assert engine.tools.shortcut.fast_step() is None
    job = bench.submit("true")
    bench.until_ended(job)
