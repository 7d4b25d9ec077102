"""What a frame of `headway top` has on it, by tables."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from panes_documents import NOW, ago, approval, delivery, document, job, run

from headway.base.text import cells
from headway.cli.panes.frame import (
    Beside,
    as_text,
    frame,
    share,
    text_of,
    wrapped,
)
from headway.cli.panes.model import Pane, Shows, Size, ViewState, press, rows_of, settled

SIZES = [Size(40, 10), Size(60, 15), Size(80, 24), Size(120, 40), Size(200, 12)]
HOSTILE = "evil \x1b[2J\x1b]0;title\x07 \u202e \x9b31m 漢字 🚀 ❤️ " + "n" * 200


def drawn(shown: dict[str, Any], size: Size = SIZES[2], **more: Any) -> list[str]:
    state = settled(more.pop("state", ViewState()), rows_of(shown))
    lines = frame(shown, state, size, NOW, **more)
    assert len(lines) == size.lines
    texts = ["".join(each.text for each in line) for line in lines]
    assert all(cells(text) <= size.columns for text in texts)
    assert all(text.isprintable() for text in texts)
    return [text.rstrip() for text in texts]


def crowded() -> dict[str, Any]:
    return document(
        approvals=[approval(n, name=HOSTILE, runs=HOSTILE) for n in range(1, 40)],
        failed=[job(n, "failed", name=HOSTILE, reason=HOSTILE) for n in range(50, 90)],
        webhooks=[{"endpoint": HOSTILE, "deliveries": [delivery(1)]}],
        running=[
            job(n, "running", name=HOSTILE, last_line={"stream": "stdout", "text": HOSTILE})
            for n in range(100, 140)
        ],
        runs=[run(workflow=HOSTILE, reason=HOSTILE)],
        queue=[
            job(n, name=HOSTILE, wait={"kind": "locks", "detail": HOSTILE}) for n in range(200, 300)
        ],
        ended=[job(n, "failed", name=HOSTILE, reason=HOSTILE) for n in range(400, 450)],
        paused=True,
        paused_by=HOSTILE,
        paused_at=ago(5),
        paused_reason=HOSTILE,
        worker=False,
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shows", [*Shows])
def test_every_frame_fits_and_is_harmless(size: Size, shows: Shows) -> None:
    shown = crowded()
    state = settled(ViewState(shows=shows, message=HOSTILE), rows_of(shown))
    about = state.selected.about if state.selected else ""
    beside = Beside(
        about,
        document=job(1, "failed", name=HOSTILE, reason=HOSTILE, params={"shell": HOSTILE}),
        why={"objections": [{"detail": HOSTILE, "remedy": HOSTILE}], "remedy": HOSTILE},
        log=[("stderr", [HOSTILE] * 50), ("stdout", [HOSTILE] * 50)],
    )
    drawn(shown, size, state=state, beside=beside)
    drawn(shown, size, state=state, trouble=HOSTILE)
    drawn(shown, size, state=press(state, "a", shown, size).state)
    drawn(shown, size, state=state._replace(typed=HOSTILE))


@given(some.integers(1, 130), some.integers(1, 45))
def test_any_size_of_the_terminal_can_be_drawn(columns: int, lines: int) -> None:
    drawn(crowded(), Size(columns, lines))
    drawn(document(), Size(columns, lines))


def test_the_header_says_how_things_stand() -> None:
    shown = document(running=[job(1, "running")], queue=[job(2), job(3)], failed=[job(4, "failed")])
    first, second, *_ = drawn(shown)
    assert (
        first == "headway /home/ada/project/.headway             worker up  slots 1/4  3 ended/min"
    )
    assert second.split() == ["2", "queued", "1", "running", "last", "day:", "1", "failed"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            {"worker": False, "queue": [job(1)]},
            "no worker is there, so nothing starts: headway work",
        ),
        (
            {"paused": True, "paused_by": "ada", "paused_at": ago(180), "paused_reason": "backup"},
            "PAUSED by ada, 3m ago: backup (p resumes)",
        ),
        (
            {"worker_trouble": {"what": "write", "error": "disk full"}},
            "the worker cannot write: disk full",
        ),
        ({"pressure": "load 9 of 4"}, "nothing starts: load 9 of 4"),
        (
            {"breakers": [{"kind": "git", "host": "box", "host_id": "h", "cause": "no git"}]},
            "git on box: no git",
        ),
        (
            {"paused_hosts": [{"host": "box", "host_id": "h", "paused_by": "ada"}]},
            "paused on box by ada",
        ),
    ],
)
def test_what_keeps_jobs_from_starting_has_a_line(more: Any, told: str) -> None:
    assert drawn(document(**more))[2] == told
    assert told not in drawn(document())


@pytest.mark.parametrize(
    ("pane", "more", "words"),
    [
        (Pane.NEEDS_YOU, {"approvals": [approval(1)]}, "job-1 name 1 approve? 30s ago make deploy"),
        (Pane.NEEDS_YOU, {"approvals": [approval(1, question="Go?")]}, "approve? 30s ago Go?"),
        (Pane.NEEDS_YOU, {"approvals": [approval(1, workflow_run="wf-3")]}, "job-1 wf-3 name 1"),
        (Pane.NEEDS_YOU, {"failed": [job(2, "failed")]}, "job-2 name 2 failed 5s ago exit code 2"),
        (
            Pane.NEEDS_YOU,
            {"webhooks": [{"endpoint": "ci", "deliveries": [delivery(1), delivery(2)]}]},
            "webhook ci 9s ago 2 requests failed: HTTP 500",
        ),
        (
            Pane.RUNNING,
            {
                "running": [
                    job(
                        *(3, "running"),
                        usual_seconds=90.0,
                        attempt=2,
                        run={"host": None, "progress": {"fraction": 0.4, "text": "reading"}},
                        last_line={"stream": "stderr", "text": "page 7"},
                    )
                ]
            },
            "job-3 name 3 1m ~1m 30s 40% reading | attempt 2 | page 7",
        ),
        (Pane.RUNNING, {"running": [job(3, "running")]}, "job-3 name 3 1m no output yet"),
        (
            Pane.RUNNING,
            {"running": [job(3, "running", cancel_requested_at=ago(1))]},
            "job-3 name 3 1m being cancelled",
        ),
        (
            Pane.RUNNING,
            {"running": [job(3, "running", run={"host": "box", "progress": None})]},
            "job-3 name 3 1m on box",
        ),
        (
            Pane.RUNNING,
            {"running": [job(3, "running", workflow={"run_id": "wf-2", "node_id": "code"})]},
            "job-3 wf-2 code 1m no output yet",
        ),
        (Pane.WORKFLOWS, {"runs": [run()]}, "wf-7 release 1m ago 1 running, 2 succeeded"),
        (
            Pane.QUEUE,
            {"queue": [job(4, wait={"kind": "locks", "detail": "waiting on locks"})]},
            "4 job-4 name 4 waiting on locks",
        ),
        (
            Pane.QUEUE,
            {"queue": [job(4, estimated_wait_seconds=300.0)]},
            "4 job-4 name 4 in ~5m starts next",
        ),
        (Pane.QUEUE, {"queue": [job(4)], "worker": False}, "4 job-4 name 4 waits for a worker"),
        (
            Pane.ENDED,
            {"ended": [job(5, "failed"), job(6, "succeeded")]},
            "job-5 name 5 failed 55s 5s ago exit code 2",
        ),
    ],
)
def test_a_row_says_what_matters(pane: Pane, more: Any, words: str) -> None:
    lines = drawn(document(**more))
    title = next(at for at, line in enumerate(lines) if line.startswith(f"{pane.value}  "))
    assert words in " ".join(lines[title + 1].split())


@pytest.mark.parametrize(
    ("wanted", "room", "chosen", "given"),
    [
        ({"NEEDS YOU": 2, "RUNNING": 2, "QUEUE": 9, "ENDED": 9}, 30, None, [2, 2, 9, 9]),
        ({"NEEDS YOU": 9, "RUNNING": 9, "QUEUE": 9, "ENDED": 9}, 10, None, [3, 3, 3, 1]),
        ({"NEEDS YOU": 1, "RUNNING": 1, "QUEUE": 3000, "ENDED": 50}, 20, None, [1, 1, 17, 1]),
        ({"NEEDS YOU": 9, "RUNNING": 9, "QUEUE": 9, "ENDED": 9}, 6, None, [2, 2, 2, 0]),
        ({"NEEDS YOU": 9, "RUNNING": 9, "QUEUE": 9, "ENDED": 9}, 6, "ENDED", [1, 1, 1, 3]),
        ({"NEEDS YOU": 9, "RUNNING": 9, "QUEUE": 9, "ENDED": 9}, 2, "QUEUE", [0, 0, 2, 0]),
        ({"RUNNING": 0, "QUEUE": 0}, 10, None, [0, 0]),
        ({"RUNNING": 3, "QUEUE": 3}, -2, "QUEUE", [0, 0]),
    ],
)
def test_panes_share_the_lines(
    wanted: dict[str, int], room: int, chosen: str | None, given: list[int]
) -> None:
    asked = {Pane(name): count for name, count in wanted.items()}
    shares = share(asked, room, Pane(chosen) if chosen else None)
    assert list(shares.values()) == given


@pytest.mark.parametrize("size", SIZES[1:])
def test_what_is_selected_can_always_be_seen(size: Size) -> None:
    shown = document(
        approvals=[approval(n) for n in range(1, 9)],
        running=[job(n, "running") for n in range(10, 19)],
        queue=[job(n) for n in range(20, 90)],
        ended=[job(n, "succeeded") for n in range(90, 99)],
    )
    state = settled(ViewState(), rows_of(shown))
    for _ in range(100):
        lines = frame(shown, state, size, NOW)
        marked = [line for line in lines if any(each.style == "selected" for each in line)]
        assert state.selected is not None and len(marked) == 1
        assert f" {state.selected.about} " in f" {marked[0][0].text}"
        state = press(state, "down", shown, size).state


def test_of_many_only_the_first_are_shown_and_that_is_said() -> None:
    shown = document(queue=[job(n) for n in range(1, 101)])
    shown["totals"] = {"QUEUE": 3000}
    assert any(line.startswith("QUEUE  ") and "of 3,000" in line for line in drawn(shown))


def test_the_foot_has_the_keys_that_do_something_here() -> None:
    shown = document(approvals=[approval(1)], queue=[job(2)], ended=[job(3, "succeeded")])
    state = settled(ViewState(), rows_of(shown))
    keys = [drawn(shown, state=state)[-1]]
    for _ in range(2):
        state = press(state, "down", shown, SIZES[2]).state
        keys.append(drawn(shown, state=state)[-1])
    assert "a approve  x reject  c cancel" in keys[0]
    assert "approve" not in keys[1] and "c cancel" in keys[1]
    assert "r retry" in keys[2] and "cancel" not in keys[2]
    assert all(each.endswith("? help  q quit") for each in keys)


def test_a_question_takes_the_screen_and_says_when_there_is_more() -> None:
    size = SIZES[1]
    shown = document(approvals=[approval(1, runs="\n".join(f"step {n}" for n in range(40)))])
    state = press(settled(ViewState(), rows_of(shown)), "a", shown, size).state
    lines = drawn(shown, size, state=state)
    assert lines[0] == "approve job-1?" and "y yes" not in lines[-1]
    assert any("more below (page down)" in line for line in lines)
    lines = drawn(shown, size, state=press(state, "end", shown, size).state)
    assert lines[-1] == "y yes  n no" and "   step 39" in lines


def test_a_log_is_shown_from_its_end_and_back() -> None:
    shown = document(running=[job(1, "running")])
    beside = Beside(
        "job-1", document=job(1, "running"), log=[("stdout", [f"line {n}" for n in range(100)])]
    )
    lines = drawn(shown, state=ViewState(shows=Shows.LOG), beside=beside)
    assert lines[-3] == "line 99" and "[stdout]" in lines
    lines = drawn(shown, state=ViewState(shows=Shows.LOG, top=50), beside=beside)
    assert lines[-3] == "line 49"
    elsewhere = Beside("job-1", document=job(1, "running"), trouble="its output is on box")
    assert "its output is on box" in drawn(
        shown, state=ViewState(shows=Shows.LOG), beside=elsewhere
    )


def test_details_say_why_and_what_next() -> None:
    shown = document(failed=[job(1, "failed")])
    beside = Beside(
        "job-1",
        document=job(1, "failed", after=["job-9"]),
        why={"objections": [], "remedy": "headway jobs retry job-1"},
        log=[("stderr", ["no space left"])],
    )
    text = "\n".join(drawn(shown, state=ViewState(shows=Shows.DETAILS), beside=beside))
    for words in ("exit code 2", "headway jobs retry job-1", "make all", "job-9", "no space left"):
        assert words in text
    waiting = Beside("job-1", document=job(1, "failed"), trouble="it is on box")
    text = "\n".join(drawn(shown, state=ViewState(shows=Shows.DETAILS), beside=waiting))
    assert "exit code 2" in text and "it is on box" in text


def test_details_of_a_run_have_its_nodes() -> None:
    nodes = [
        {
            "id": "code",
            "job": "job-4",
            "state": "failed",
            "outcome": "failed",
            "reason": "exit code 3",
            "wait": None,
        }
    ]
    whole = {**run(), "nodes": nodes, "created_by": "ada"}
    shown = document(runs=[run()])
    lines = drawn(shown, state=ViewState(shows=Shows.DETAILS), beside=Beside("wf-7", run=whole))
    assert "job-4  code  failed  exit code 3" in lines


def test_without_a_terminal_it_is_text() -> None:
    lines = as_text(document(queue=[job(n) for n in range(1, 30)]), 80, NOW, most=5)
    assert lines[0].startswith("headway ") and "QUEUE  5 of 29" in lines
    assert sum(line.startswith(("1 ", "2 ", "3 ", "4 ", "5 ", "6 ")) for line in lines) == 5
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ["one two", "three"]),
        ("", [""]),
        ("abcdefghijkl xy", ["abcdefgh", "ijkl xy"]),
    ],
)
def test_prose_is_cut_between_words(text: str, lines: list[str]) -> None:
    assert wrapped(text, 8) == lines


def test_a_span_of_each_line_has_a_known_style() -> None:
    from headway.cli.panes.live import STYLES

    shown = crowded()
    for shows in Shows:
        for line in frame(shown, settled(ViewState(shows=shows), rows_of(shown)), SIZES[3], NOW):
            assert {each.style for each in line} <= STYLES.keys()
    assert text_of([()]) == [""]
