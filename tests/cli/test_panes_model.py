"""Selection and keys of `headway top`, by tables."""

from typing import Any

import pytest
from panes_documents import approval, delivery, document, job, run

from headway.cli.panes.live import press_all
from headway.cli.panes.model import (
    Action,
    Approve,
    CancelNow,
    Leave,
    Pane,
    PreviewOfRetry,
    Reject,
    Selected,
    SendAgain,
    SetPaused,
    Shows,
    Size,
    ViewState,
    folded,
    in_order,
    press,
    retrying,
    rows_of,
    settled,
)

SIZE = Size(80, 24)
FULL = document(
    approvals=[approval(1), approval(4, now=False)],
    failed=[job(2, "failed")],
    webhooks=[{"endpoint": "ci", "deliveries": [delivery(1), delivery(2)]}],
    running=[job(3, "running", name="build")],
    runs=[run()],
    queue=[job(1, "waiting_on_approval"), job(4, "waiting_on_deps"), job(5, "queued")],
    ended=[job(6, "succeeded"), job(2, "failed")],
)
PLACES = [(row.pane, row.about) for row in in_order(rows_of(FULL))]


def at(pane: Pane, about: str, **more: Any) -> ViewState:
    return ViewState(Selected(pane, about, PLACES.index((pane, about))), **more)


def pressed(state: ViewState, *keys: str) -> tuple[ViewState, Action | None]:
    action = None
    for key in keys:
        state, action = press(state, key, FULL, SIZE)
    return state, action


def test_rows_stand_in_the_order_of_the_panes() -> None:
    assert PLACES == [
        (Pane.NEEDS_YOU, "job-1"),
        (Pane.NEEDS_YOU, "job-2"),
        (Pane.NEEDS_YOU, "ci"),
        (Pane.RUNNING, "job-3"),
        (Pane.WORKFLOWS, "wf-7"),
        (Pane.QUEUE, "job-1"),
        (Pane.QUEUE, "job-4"),
        (Pane.QUEUE, "job-5"),
        (Pane.ENDED, "job-6"),
        (Pane.ENDED, "job-2"),
    ]


@pytest.mark.parametrize(
    ("begin", "keys", "place"),
    [
        (0, ["down"], 1),
        (0, ["j", "j", "k"], 1),
        (0, ["up"], 0),
        (2, ["end"], 9),
        (9, ["down"], 9),
        (9, ["home"], 0),
        (0, ["page down"], 9),
        (9, ["page up"], 0),
        (0, ["tab"], 3),
        (3, ["tab", "tab"], 5),
        (8, ["tab"], 0),
    ],
)
def test_keys_move(begin: int, keys: list[str], place: int) -> None:
    state, action = pressed(at(*PLACES[begin]), *keys)
    assert state.selected is not None and action is None
    assert state.selected[:2] == PLACES[place]


@pytest.mark.parametrize(
    ("was", "present", "found"),
    [
        # what runs now is followed from the queue
        ((Pane.QUEUE, "job-5", 0), {"running": [job(5, "running")]}, (Pane.RUNNING, "job-5")),
        # who decides goes on with the next that needs a decision
        (
            (Pane.NEEDS_YOU, "job-1", 0),
            {"approvals": [approval(8)], "running": [job(1, "running")]},
            (Pane.NEEDS_YOU, "job-8"),
        ),
        ((Pane.ENDED, "job-9", 7), {"queue": [job(1), job(2)]}, (Pane.QUEUE, "job-2")),
        ((Pane.ENDED, "job-9", 7), {}, None),
    ],
)
def test_the_selection_stays_on_what_is_there(was: Any, present: Any, found: Any) -> None:
    state = settled(ViewState(Selected(*was)), rows_of(document(**present)))
    assert (state.selected and state.selected[:2]) == found


NEEDS, QUEUE, RUNNING, ENDED = Pane.NEEDS_YOU, Pane.QUEUE, Pane.RUNNING, Pane.ENDED


@pytest.mark.parametrize(
    ("place", "key", "action"),
    [
        ((NEEDS, "job-1"), "a", Approve("job-1", "e-1")),
        ((NEEDS, "job-1"), "x", Reject("job-1", "e-1")),
        ((QUEUE, "job-1"), "a", Approve("job-1", "e-1")),
        ((QUEUE, "job-4"), "a", Approve("job-4", "e-4")),  # before its turn
        ((QUEUE, "job-4"), "c", CancelNow("job-4")),
        ((NEEDS, "job-1"), "c", CancelNow("job-1")),
        ((RUNNING, "job-3"), "c", CancelNow("job-3")),
        ((Pane.WORKFLOWS, "wf-7"), "c", CancelNow("wf-7")),
        ((NEEDS, "ci"), "r", SendAgain("ci", ("d-1", "d-2"))),
    ],
)
def test_what_changes_something_is_asked_first(
    place: tuple[Pane, str], key: str, action: Action
) -> None:
    state, done = pressed(at(*place), key)
    assert state.question is not None and done is None
    assert pressed(state, "y") == (at(*place), action)
    for no in ("n", "escape", "enter", "q", "a", " "):
        left, done = pressed(state, no)
        assert (left.question, done, left.message) == (None, None, "nothing was changed")


@pytest.mark.parametrize(
    ("place", "key", "action"),
    [
        ((NEEDS, "job-2"), "r", PreviewOfRetry("job-2")),
        ((Pane.WORKFLOWS, "wf-7"), "r", PreviewOfRetry("wf-7")),
        ((QUEUE, "job-5"), "p", SetPaused(True)),
        ((QUEUE, "job-5"), "q", Leave()),
    ],
)
def test_what_changes_nothing_yet_is_done_at_once(
    place: tuple[Pane, str], key: str, action: Action
) -> None:
    assert pressed(at(*place), key) == (at(*place), action)


@pytest.mark.parametrize(
    ("place", "key", "told"),
    [
        ((QUEUE, "job-5"), "a", "job-5 asks for no approval"),
        ((RUNNING, "job-3"), "x", "job-3 asks for no approval"),
        ((ENDED, "job-6"), "c", "job-6 has already ended (succeeded)"),
        ((NEEDS, "ci"), "c", "a delivery that failed cannot be cancelled"),
        ((NEEDS, "ci"), "f", "ci has no log of its own"),
        ((Pane.WORKFLOWS, "wf-7"), "f", "wf-7 has no log of its own"),
    ],
)
def test_what_cannot_be_done_is_told(place: tuple[Pane, str], key: str, told: str) -> None:
    state, action = pressed(at(*place), key)
    assert (state.message, state.question, action) == (told, None, None)
    assert pressed(state, "down")[0].message == ""


def test_a_paused_home_is_resumed() -> None:
    paused = document(paused=True)
    assert press(ViewState(), "p", paused, SIZE).action == SetPaused(False)


@pytest.mark.parametrize("key", ["a", "x", "c", "r", "f", "enter"])
def test_where_nothing_is_there_is_nothing_to_do(key: str) -> None:
    state, action = press(ViewState(), key, document(), SIZE)
    assert (state.message, action) == ("nothing is selected", None)
    assert press(ViewState(), "down", document(), SIZE) == (ViewState(), None)


def test_the_question_has_the_whole_command_and_who_asked() -> None:
    lines = [*(f"step {number}" for number in range(50)), "rm -rf build"]
    asked = approval(1, runs="\n".join(lines), needed=2, approved_by=["eve"], workflow_run="wf-3")
    state = settled(ViewState(), rows_of(document(approvals=[asked])))
    question = press(state, "a", document(approvals=[asked]), SIZE).state.question
    assert question is not None
    text = "\n".join(question.text)
    assert all(f"\n  {line}\n" in text for line in lines)
    assert "asked by bob, of wf-3" in text and "1 of 2 have agreed" in text and "in /srv" in text


@pytest.mark.parametrize("key", ["a", "x"])
def test_a_yes_counts_only_when_all_of_it_was_seen(key: str) -> None:
    hidden = "echo harmless" + " " * 3000 + "; rm -rf /srv"
    shown = document(approvals=[approval(1, runs=hidden)])
    state = settled(ViewState(), rows_of(shown))
    state = press(state, key, shown, SIZE).state
    refused, action = press(state, "y", shown, SIZE)
    assert action is None and refused.question is not None and "look at all" in refused.message
    state = press(state, "page down", shown, SIZE).state
    assert press(state, "y", shown, SIZE).action is None
    state = press(state, "end", shown, SIZE).state
    assert press(state, "y", shown, SIZE).action is not None


def test_what_was_asked_does_not_change_when_the_job_does() -> None:
    state = settled(ViewState(), rows_of(FULL))
    state = press(state, "a", FULL, SIZE).state
    edited = document(approvals=[approval(1, runs="rm -rf /", revision="e-99")])
    state = settled(state, rows_of(edited))
    assert press(state, "y", edited, SIZE).action == Approve("job-1", "e-1")


@pytest.mark.parametrize(
    ("keys", "asked", "action"),
    [
        (["a", "y"], True, None),
        (["a", "n", "y"], True, None),
        (["j", "r", "y"], False, PreviewOfRetry("job-2")),
        (["p", "p"], False, SetPaused(True)),
        (["q", "a"], False, Leave()),
    ],
)
def test_a_key_in_one_burst_with_the_key_before_it_is_no_answer(
    keys: list[str], asked: bool, action: Action | None
) -> None:
    state, done = press_all(at(Pane.NEEDS_YOU, "job-1"), keys, FULL, SIZE)
    assert (state.question is not None, done) == (asked, action)


def test_details_log_and_help_are_left_again() -> None:
    begin = at(RUNNING, "job-3")
    for key, shows in (("enter", Shows.DETAILS), ("f", Shows.LOG), ("?", Shows.HELP)):
        state, _ = pressed(begin, key)
        assert state.shows is shows
        assert pressed(state, "escape")[0] == begin
    state, _ = pressed(begin, "enter", "down", "down", "up")
    assert (state.shows, state.top, state.selected) == (Shows.DETAILS, 1, begin.selected)
    assert pressed(state, "c")[0].question is not None, "keys act on what is shown"
    assert pressed(begin, "f", "f")[0] == begin and pressed(begin, "?", "?")[0] == begin


def test_a_filter_leaves_what_has_it_in_a_text() -> None:
    typed, action = pressed(at(NEEDS, "job-1"), "/", "B", "U", "x", "backspace", "q", "backspace")
    assert (typed.typed, typed.filter, action) == ("BU", "", None), "q is a letter here"
    state, _ = pressed(typed, "enter")
    assert [row.about for row in in_order(rows_of(FULL, state.filter))] == ["job-3"]
    assert pressed(typed, "escape")[0].filter == ""
    assert pressed(state, "escape")[0].filter == ""
    assert [row.about for row in in_order(rows_of(FULL, "exit CODE"))] == ["job-2", "job-2"]
    assert [row.about for row in in_order(rows_of(FULL, "release"))] == ["wf-7"]
    long, _ = pressed(at(NEEDS, "job-1"), "/", *("a" * 100))
    assert long.typed == "a" * 60


def test_a_node_of_a_workflow_is_found_by_its_run() -> None:
    node = {"run_id": "wf-9", "node_id": "code"}
    found = rows_of(document(queue=[job(1, workflow=node), job(2)]), "wf-9")
    assert [row.about for row in in_order(found)] == ["job-1"]


def test_the_question_of_a_retry_names_all_of_it() -> None:
    again = [f"job-{number}" for number in range(60)]
    question = retrying("job-1", "build", again, ["It is blocked again."])
    assert ", ".join(again) in "\n".join(question.text)
    assert question.text[-1] == "It is blocked again."


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("abcdef", 3, ["abc", "def"]),
        ("", 3, [""]),
        ("漢字漢", 4, ["漢字", "漢"]),
        ("a   b", 2, ["a ", "  ", "b"]),
    ],
)
def test_folding_keeps_each_character(text: str, room: int, lines: list[str]) -> None:
    assert folded(text, room) == lines
