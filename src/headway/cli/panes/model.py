"""What can be selected, and what a key does. Pure: of a key come the next state and an action.

A key that changes something asks first. What is asked is fixed at that moment: the whole command,
and the revision of the job that was seen. So a job that was edited meanwhile is not approved. A yes
counts only once the end of the question was on the screen, and a key that came in one burst with
the key before it is no answer.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from headway.base.text import cells, drawable
from headway.cli.render import counted
from headway.core.states import ACTIVE, Status
from headway.jobs.approvals import what_it_runs

Document = Mapping[str, Any]


class Pane(StrEnum):
    """In the order of the screen."""

    NEEDS_YOU = "NEEDS YOU"
    RUNNING = "RUNNING"
    WORKFLOWS = "WORKFLOWS"
    QUEUE = "QUEUE"
    ENDED = "ENDED"


class RowKind(StrEnum):
    APPROVAL = "approval"
    JOB = "job"
    RUN = "run"  # of a workflow
    WEBHOOK = "webhook"  # the failed deliveries of one endpoint


class PaneRow(NamedTuple):
    """One line of a pane, and the document that it is about."""

    pane: Pane
    kind: RowKind
    about: str  # job-24, wf-7, the name of an endpoint
    document: Document

    @property
    def place(self) -> tuple[Pane, str]:
        return self.pane, self.about


class Size(NamedTuple):
    columns: int
    lines: int


class Shows(StrEnum):
    PANES = "panes"
    DETAILS = "details"
    LOG = "log"
    HELP = "help"


# -- actions ---------------------------------------------------------------------------------------


class Approve(NamedTuple):
    job: str
    revision: str


class Reject(NamedTuple):
    job: str
    revision: str


class PreviewOfRetry(NamedTuple):
    """Say what a retry would run again; the answer is a question."""

    about: str


class RetryNow(NamedTuple):
    about: str


class CancelNow(NamedTuple):
    about: str


class SendAgain(NamedTuple):
    """Failed deliveries, by their ids."""

    endpoint: str
    deliveries: tuple[str, ...]


class SetPaused(NamedTuple):
    paused: bool


class Leave(NamedTuple):
    pass


Action = Approve | Reject | PreviewOfRetry | RetryNow | CancelNow | SendAgain | SetPaused | Leave


class ScreenQuestion(NamedTuple):
    """What is asked before an action; `y` is a yes, anything but moving a no."""

    title: str
    text: tuple[str, ...]  # lines, of any width
    action: Action
    top: int = 0  # the first folded line on the screen


class Selected(NamedTuple):
    pane: Pane
    about: str
    at: int  # among all rows: where to go when it is gone


class ViewState(NamedTuple):
    """What is shown of a document."""

    selected: Selected | None = None
    shows: Shows = Shows.PANES
    top: int = 0  # the first line on the screen of what is shown instead of the panes
    filter: str = ""
    typed: str | None = None  # the filter while it is typed
    question: ScreenQuestion | None = None
    message: str = ""


class Pressed(NamedTuple):
    state: ViewState
    action: Action | None = None


# -- rows ------------------------------------------------------------------------------------------


def rows_of(document: Document, wanted: str = "") -> dict[Pane, list[PaneRow]]:
    """All rows, by their panes; with a filter those that have it in a text."""
    needs = document["needs_you"]
    jobs = {
        Pane.RUNNING: document["running"],
        Pane.QUEUE: document["queue"],
        Pane.ENDED: document["ended"],
    }
    deciding = [each for each in needs["approvals"] if each["now"]]
    rows = {
        Pane.NEEDS_YOU: [
            *(PaneRow(Pane.NEEDS_YOU, RowKind.APPROVAL, each["id"], each) for each in deciding),
            *(PaneRow(Pane.NEEDS_YOU, RowKind.JOB, each["id"], each) for each in needs["failed"]),
            *(
                PaneRow(Pane.NEEDS_YOU, RowKind.WEBHOOK, each["endpoint"], each)
                for each in needs["webhooks"]
            ),
        ],
        Pane.WORKFLOWS: [
            PaneRow(Pane.WORKFLOWS, RowKind.RUN, each["id"], each)
            for each in document["workflow_runs"]
        ],
    }
    for pane, documents in jobs.items():
        rows[pane] = [PaneRow(pane, RowKind.JOB, each["id"], each) for each in documents]
    if wanted:
        for pane, found in rows.items():
            rows[pane] = [row for row in found if _fits(row, wanted)]
    return {pane: rows[pane] for pane in Pane}


def _fits(row: PaneRow, wanted: str) -> bool:
    """Whether any word of it has the filter, in capitals or not."""
    texts = [row.about, *(row.document.get(each) for each in ("name", "slug", "state", "reason"))]
    texts += [row.document.get(each) for each in ("workflow", "subject", "target")]
    wait = row.document.get("wait")
    texts.append(wait["detail"] if wait else None)
    node = row.document.get("workflow")
    if isinstance(node, Mapping):
        texts += [node["run_id"], node["node_id"]]
    return any(wanted.casefold() in each.casefold() for each in texts if isinstance(each, str))


def in_order(rows: Mapping[Pane, Sequence[PaneRow]]) -> list[PaneRow]:
    return [row for pane in Pane for row in rows[pane]]


def settled(state: ViewState, rows: Mapping[Pane, Sequence[PaneRow]]) -> ViewState:
    """The selection on a row that is there. A job is followed into another pane; but who sees to
    what needs a person goes on with the next of these."""
    found = in_order(rows)
    if not found:
        return state._replace(selected=None)
    was = state.selected
    if was is None:
        return state._replace(selected=_selected(found, 0))
    for at, row in enumerate(found):
        if row.place == (was.pane, was.about):
            return state._replace(selected=_selected(found, at))
    if was.pane is not Pane.NEEDS_YOU:
        for at, row in enumerate(found):
            if row.about == was.about:
                return state._replace(selected=_selected(found, at))
    return state._replace(selected=_selected(found, min(was.at, len(found) - 1)))


def _selected(found: Sequence[PaneRow], at: int) -> Selected:
    return Selected(found[at].pane, found[at].about, at)


def selected_row(state: ViewState, rows: Mapping[Pane, Sequence[PaneRow]]) -> PaneRow | None:
    was = state.selected
    if was is None:
        return None
    return next((row for row in rows[was.pane] if row.about == was.about), None)


# -- keys ------------------------------------------------------------------------------------------

_UP, _DOWN = ("up", "k"), ("down", "j")
_MOVES = {
    **dict.fromkeys(_UP, -1),
    **dict.fromkeys(_DOWN, 1),
    "page up": -10,
    "page down": 10,
    "home": -(1 << 30),
    "end": 1 << 30,
}
_BACK = ("escape", "enter", "left")
LONGEST_FILTER = 60


def press(state: ViewState, key: str, document: Document, size: Size) -> Pressed:
    """What a key does now."""
    if state.question is not None:
        return _answer(state, state.question, key, size)
    if state.typed is not None:
        return Pressed(_type(state, state.typed, key))
    state = state._replace(message="")
    if key == "q":
        return Pressed(state, Leave())
    if key == "?":
        shows = Shows.PANES if state.shows is Shows.HELP else Shows.HELP
        return Pressed(state._replace(shows=shows, top=0))
    rows = rows_of(document, state.filter)
    if state.shows is Shows.PANES:
        return _in_panes(state, key, document, rows)
    if key in _BACK or (key == "f" and state.shows is Shows.LOG):
        return Pressed(state._replace(shows=Shows.PANES, top=0))
    if key in _MOVES:
        return Pressed(state._replace(top=max(0, state.top + _MOVES[key])))
    if key == "f":
        return Pressed(_show(state, Shows.LOG, rows))
    return _act(state, key, document, rows)


def _in_panes(
    state: ViewState, key: str, document: Document, rows: Mapping[Pane, Sequence[PaneRow]]
) -> Pressed:
    if key in _MOVES:
        return Pressed(_move(state, _MOVES[key], rows))
    if key in ("enter", "right"):
        return Pressed(_show(state, Shows.DETAILS, rows))
    if key == "f":
        return Pressed(_show(state, Shows.LOG, rows))
    if key == "/":
        return Pressed(state._replace(typed=state.filter))
    if key == "tab":
        return Pressed(_next_pane(state, rows))
    if key == "escape":
        return Pressed(settled(state._replace(filter=""), rows_of(document)))
    return _act(state, key, document, rows)


def _move(state: ViewState, by: int, rows: Mapping[Pane, Sequence[PaneRow]]) -> ViewState:
    found = in_order(rows)
    if not found:
        return state
    at = settled(state, rows).selected
    index = max(0, min(len(found) - 1, (at.at if at else 0) + by))
    return state._replace(selected=_selected(found, index))


def _next_pane(state: ViewState, rows: Mapping[Pane, Sequence[PaneRow]]) -> ViewState:
    filled = [pane for pane in Pane if rows[pane]]
    if not filled or state.selected is None:
        return state
    at = filled.index(state.selected.pane) if state.selected.pane in filled else -1
    first = rows[filled[(at + 1) % len(filled)]][0]
    return state._replace(selected=_selected(in_order(rows), in_order(rows).index(first)))


def _show(state: ViewState, shows: Shows, rows: Mapping[Pane, Sequence[PaneRow]]) -> ViewState:
    row = selected_row(state, rows)
    if row is None:
        return state._replace(message="nothing is selected")
    if shows is Shows.LOG and row.kind not in (RowKind.JOB, RowKind.APPROVAL):
        return state._replace(message=f"{row.about} has no log of its own")
    return state._replace(shows=shows, top=0)


def _type(state: ViewState, typed: str, key: str) -> ViewState:
    if key == "enter":
        return state._replace(filter=typed.strip(), typed=None)
    if key == "escape":
        return state._replace(typed=None)
    if key == "backspace":
        return state._replace(typed=typed[:-1])
    if len(key) == 1 and len(typed) < LONGEST_FILTER:
        return state._replace(typed=typed + key)
    return state


def _act(
    state: ViewState, key: str, document: Document, rows: Mapping[Pane, Sequence[PaneRow]]
) -> Pressed:
    """The keys that change something, or ask whether to."""
    if key == "p":
        return Pressed(state, SetPaused(not document["scheduler"]["paused"]))
    if key not in ("a", "x", "r", "c"):
        return Pressed(state)
    row = selected_row(state, rows)
    if row is None:
        return Pressed(state._replace(message="nothing is selected"))
    if key in ("a", "x"):
        asked = approval_of(row, document)
        if asked is None:
            return Pressed(state._replace(message=f"{row.about} asks for no approval"))
        return Pressed(state._replace(question=decision(asked, approve=key == "a")))
    if key == "r":
        if row.kind is RowKind.WEBHOOK:
            return Pressed(state._replace(question=_sending_again(row)))
        return Pressed(state, PreviewOfRetry(row.about))
    if row.kind is RowKind.WEBHOOK:
        return Pressed(state._replace(message="a delivery that failed cannot be cancelled"))
    if "c" not in may(row, document):
        ended = f"{row.about} has already ended ({row.document['state']})"
        return Pressed(state._replace(message=ended))
    return Pressed(state._replace(question=_cancelling(row)))


def approval_of(row: PaneRow, document: Document) -> Document | None:
    """What is to be decided about the job of a row, now or before its turn."""
    if row.kind is RowKind.APPROVAL:
        return row.document
    found = document["needs_you"]["approvals"]
    return next((each for each in found if each["id"] == row.about), None)


def may(row: PaneRow | None, document: Document) -> list[str]:
    """The keys that can do something about a row."""
    if row is None:
        return []
    if row.kind is RowKind.WEBHOOK:
        return ["r"]
    keys = ["a", "x"] if approval_of(row, document) is not None else []
    state = row.document["state"]
    active = state in ACTIVE if row.kind is not RowKind.RUN else state == "running"
    keys += ["c"] if active else ["r"]
    return [*keys, *(["f"] if row.kind is not RowKind.RUN else [])]


# -- questions -------------------------------------------------------------------------------------


def decision(asked: Document, *, approve: bool) -> ScreenQuestion:
    """The whole command, whoever asked, and the revision that was seen."""
    verb = "approve" if approve else "reject"
    make = Approve if approve else Reject
    who = asked["requested_by"] or "its submitter"
    lines = [f"{asked['id']}  {drawable(asked['name'])}"]
    if asked["question"]:
        lines += ["", drawable(asked["question"])]
    lines += ["", "It runs:", *whole(asked["runs"]), ""]
    if asked["directory"]:
        lines.append(f"in {drawable(asked['directory'])}")
    of_run = f", of {asked['workflow_run']}" if asked["workflow_run"] else ""
    lines.append(f"asked by {drawable(who)}{of_run}")
    if asked["needed"] > 1:
        lines.append(f"{len(asked['approved_by'])} of {asked['needed']} have agreed")
    if not approve:
        lines.append("it ends, and so does what depends on it")
    return ScreenQuestion(
        f"{verb} {asked['id']}?", tuple(lines), make(asked["id"], asked["revision"])
    )


def whole(command: str) -> list[str]:
    """A command line by line, and nothing of it left out."""
    return [f"  {drawable(line)}" for line in command.split("\n")]


def _cancelling(row: PaneRow) -> ScreenQuestion:
    name = drawable(str(row.document.get("name") or row.document.get("workflow")))
    lines = [f"{row.about}  {name}", ""]
    if row.kind is RowKind.RUN:
        lines.append("All of the run is cancelled but its `finally`; what runs is told to end.")
    else:
        runs = row.document.get("runs") or what_it_runs(row.document.get("params") or {})
        running = row.document["state"] == Status.RUNNING
        lines += ["It runs:" if running else "It would run:", *whole(runs), ""]
        lines.append(
            "All its processes get TERM, and KILL after its grace. It is not tried again."
            if running
            else "It never runs, and what depends on it does not either."
        )
    return ScreenQuestion(f"cancel {row.about}?", tuple(lines), CancelNow(row.about))


def _sending_again(row: PaneRow) -> ScreenQuestion:
    ids = tuple(each["id"] for each in row.document["deliveries"])
    failed = counted(len(ids), "request")
    lines = (f"{drawable(row.about)}: {failed} failed", "", "Each is sent once more.")
    return ScreenQuestion("send again?", lines, SendAgain(row.about, ids))


def retrying(
    about: str, name: str, again: Sequence[str], notes: Sequence[str] = ()
) -> ScreenQuestion:
    """What a dry run has found."""
    lines = [f"{about}  {drawable(name)}", "", "These run again:", f"  {', '.join(again)}"]
    return ScreenQuestion(f"retry {about}?", (*lines, *("", *notes) * bool(notes)), RetryNow(about))


def question_lines(question: ScreenQuestion, columns: int) -> list[str]:
    """Its text as it stands on the screen: folded, and nothing of it cut off."""
    room = max(10, columns - 2)
    return [line for text in question.text for line in folded(text, room)]


def question_room(size: Size) -> int:
    """How many lines of a question fit: its title, its answers and the frame take the rest."""
    return max(1, size.lines - 4)


def folded(text: str, room: int) -> list[str]:
    """The text in lines that fit, each character kept."""
    lines, line, taken = [], "", 0
    for char in text:
        needed = cells(char)
        if taken + needed > room:
            lines.append(line)
            line, taken = "", 0
        line += char
        taken += needed
    return [*lines, line]


def seen_to_the_end(question: ScreenQuestion, size: Size) -> bool:
    left = len(question_lines(question, size.columns)) - question_room(size)
    return question.top >= left


def _answer(state: ViewState, question: ScreenQuestion, key: str, size: Size) -> Pressed:
    if key in _MOVES:
        last = max(0, len(question_lines(question, size.columns)) - question_room(size))
        top = max(0, min(last, question.top + _MOVES[key]))
        return Pressed(state._replace(question=question._replace(top=top), message=""))
    if key != "y":
        return Pressed(state._replace(question=None, message="nothing was changed"))
    if not seen_to_the_end(question, size):
        return Pressed(state._replace(message="there is more of it below: look at all of it first"))
    return Pressed(state._replace(question=None, message=""), question.action)
