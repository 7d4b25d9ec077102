"""One frame: header, panes, status and keys; or details, a log, the help, a question. Pure.

A frame is lines of spans, each with the name of a style. No line is wider than the terminal, and
there are never more of them than it has. Text of strangers is made harmless first.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from headway.base.text import cells, drawable, ending, fitted, shortened
from headway.base.units import show_duration
from headway.cli.panes.model import (
    Document,
    Pane,
    PaneRow,
    RowKind,
    ScreenQuestion,
    Shows,
    Size,
    ViewState,
    approval_of,
    folded,
    in_order,
    may,
    question_lines,
    question_room,
    rows_of,
    seen_to_the_end,
    selected_row,
)
from headway.cli.render import brief, counted, how_far, instant, span
from headway.core.states import ACTIVE, Status
from headway.jobs.approvals import what_it_runs

SECOND = 1_000_000
MINUTE = 60 * SECOND
LEAST = Size(40, 10)
LEAST_BODY = 6  # lines below the header
GAP = "  "
HELP = (
    ("up down k j", "select; page up and down, home and end; tab: the next pane"),
    ("enter", "details of what is selected: why it waits or failed, its command, its output"),
    ("a", "approve, after showing the whole command"),
    ("x", "reject, the same way"),
    ("r", "retry, after showing what runs again; of a webhook: send again what failed"),
    ("c", "cancel a job, or stop a workflow's run; it asks first"),
    ("f", "follow the log"),
    ("p", "pause: nothing more starts; once more: resume"),
    ("/", "show only what has a text in it; escape: everything again"),
    ("? q", "this help; leave"),
)
_KEYS = {"a": "approve", "x": "reject", "r": "retry", "c": "cancel", "f": "log"}
_STATES = {
    Status.QUEUED: ("queued", ""),
    Status.WAITING_ON_DEPS: ("deps", "warn"),
    Status.WAITING_ON_LOCKS: ("locks", "warn"),
    Status.WAITING_ON_APPROVAL: ("approval", "warn"),
    Status.RUNNING: ("running", "run"),
}
_ENDS = {
    Status.SUCCEEDED: ("succeeded", "good"),
    Status.FAILED: ("failed", "bad"),
    Status.SKIPPED: ("skipped", "dim"),
    Status.CANCELLED: ("cancelled", "dim"),
    Status.BLOCKED_BY_DEPENDENCY: ("blocked", "bad"),
    Status.BLOCKED_BY_APPROVAL: ("rejected", "dim"),
}
# As far as there is room for them.
_LAST_DAY = (
    *(Status.FAILED, Status.BLOCKED_BY_DEPENDENCY, Status.SUCCEEDED, Status.CANCELLED),
    *(Status.SKIPPED, Status.BLOCKED_BY_APPROVAL),
)


class Span(NamedTuple):
    text: str
    style: str = ""


Line = tuple[Span, ...]


class Beside(NamedTuple):
    """What is read only while it is shown: of a job or a run, and the end of its output."""

    about: str = ""
    document: Document | None = None
    why: Document | None = None
    run: Document | None = None
    log: Sequence[tuple[str, Sequence[str]]] = ()  # the stream last written to at the end
    trouble: str = ""


NOTHING_BESIDE = Beside()


def frame(
    document: Document,
    state: ViewState,
    size: Size,
    now: int,
    *,
    beside: Beside = NOTHING_BESIDE,
    trouble: str = "",
) -> list[Line]:
    """All lines of a terminal of this size."""
    if size.columns < LEAST.columns or size.lines < LEAST.lines:
        text = f"{LEAST.columns} columns and {LEAST.lines} lines are needed"
        return [(Span(text[: size.columns]),), *[()] * (size.lines - 1)]
    if state.question is not None:
        return _question(state, state.question, size)
    rows = rows_of(document, state.filter)
    head = header(document, size.columns, now)[: size.lines - LEAST_BODY]
    foot = _foot(document, state, rows, size.columns, trouble)
    room = size.lines - len(head) - len(foot)
    match state.shows:
        case Shows.HELP:
            body = _window(_help(size.columns), state.top, room)
        case Shows.DETAILS:
            body = _window(_details(state, beside, size.columns, room, now), state.top, room)
        case Shows.LOG:
            body = _log_frame(state, beside, size.columns, room)
        case Shows.PANES:
            body = _panes(document, rows, state, size.columns, room, now)
    body += [()] * (room - len(body))
    return [*head, *body[:room], *foot]


def as_text(document: Document, columns: int, now: int, *, most: int) -> list[str]:
    """One frame without a terminal: `most` rows of each pane."""
    rows = rows_of(document)
    lines = header(document, columns, now)
    for pane in Pane:
        found = rows[pane]
        if found or pane in _ALWAYS:
            lines += [(), _title(document, pane, rows, columns, min(most, len(found)))]
            lines += _rows(document, found[:most], None, columns, now)
    return ["".join(each.text for each in line).rstrip() for line in lines]


# -- the header ------------------------------------------------------------------------------------


def header(document: Document, columns: int, now: int) -> list[Line]:
    """Where this is and how it stands; a line more for each thing that keeps it from starting."""
    status = document["scheduler"]
    cap = "any" if status["mode"] == "direct" else str(status["max_active"])
    facts = [
        Span("worker up", "good")
        if document["worker"]
        else Span("no worker", "bad" if status["queued_total"] else "dim"),
        Span(f"slots {status['active']}/{cap}"),
        Span(f"{document['ended_per_minute']} ended/min"),
    ]
    right = sum(cells(each.text) for each in facts) + 2 * len(facts)
    place = ending(drawable(document["store"] or document["home"]), max(8, columns - right - 8))
    first = [Span("headway", "bold"), Span(f" {place}")]
    used = sum(cells(each.text) for each in first)
    first.append(Span(" " * max(1, columns - used - right + 1)))
    for fact in facts:
        first += [Span(" "), fact, Span(" ")] if fact is not facts[-1] else [Span(" "), fact]
    lines = [_cut(first, columns), _counts(document, columns)]
    lines += [_line(text, columns, style) for text, style in _warnings(document, now)]
    return lines


def _counts(document: Document, columns: int) -> Line:
    """Each state that some job is in, and what the last day's came to."""
    spans: list[Span] = []
    for status, (word, style) in _STATES.items():
        count = document["states"].get(status, 0)
        if count:
            spans += [Span(f"{count:,} {word}", style), Span(GAP)]
    if not spans:
        spans.append(Span(f"nothing to do{GAP}", "dim"))
    left = columns - sum(cells(each.text) for each in spans)
    last = [Span("last day:", "dim")]
    for status in _LAST_DAY:
        word, style = _ENDS[status]
        count = document["last_day"].get(status, 0)
        text = f" {count:,} {word}"
        if count and sum(len(each.text) for each in last) + len(text) <= left:
            last.append(Span(text, style))
    if len(last) == 1:
        last = [Span("nothing ended in a day", "dim")]
    gap = left - sum(len(each.text) for each in last)
    return _cut([*spans, Span(" " * max(0, gap)), *last], columns)


def _warnings(document: Document, now: int) -> Iterable[tuple[str, str]]:
    status = document["scheduler"]
    if status["paused"]:
        since = span(max(0, now - (instant(status["paused_at"]) or now)))
        reason = f": {status['paused_reason']}" if status["paused_reason"] else ""
        yield f"PAUSED by {status['paused_by']}, {since} ago{reason} (p resumes)", "alarm"
    for each in status["paused_hosts"]:
        yield f"paused on {each['host'] or each['host_id']} by {each['paused_by']}", "warn"
    if not document["worker"] and status["queued_total"]:
        yield "no worker is there, so nothing starts: headway work", "alarm"
    if document["worker"] and status["worker_trouble"] is not None:
        trouble = status["worker_trouble"]
        yield f"the worker cannot {trouble['what']}: {trouble['error']}", "bad"
    if status["pressure"]:
        yield f"nothing starts: {status['pressure']}", "warn"
    for breaker in status["breakers"]:
        yield (
            f"{breaker['kind']} on {breaker['host'] or breaker['host_id']}: {breaker['cause']}",
            "bad",
        )


# -- panes -----------------------------------------------------------------------------------------

_ALWAYS = (Pane.RUNNING, Pane.QUEUE)
_LAST = Pane.ENDED
LEAST_CHOSEN = 3


def _panes(
    document: Document,
    rows: Mapping[Pane, Sequence[PaneRow]],
    state: ViewState,
    columns: int,
    room: int,
    now: int,
) -> list[Line]:
    shown = [pane for pane in Pane if rows[pane] or pane in _ALWAYS]
    chosen = state.selected.pane if state.selected is not None else None
    shares = share({pane: len(rows[pane]) for pane in shown}, room - len(shown), chosen)
    lines: list[Line] = []
    for pane in shown:
        found, fits = rows[pane], shares[pane]
        if pane is _LAST and not fits:
            continue
        begin = _begin(found, state, fits)
        lines.append(_title(document, pane, rows, columns, fits))
        lines += _rows(document, found[begin : begin + fits], state, columns, now)
    return lines


def share(wanted: Mapping[Pane, int], room: int, chosen: Pane | None = None) -> dict[Pane, int]:
    """How many rows each pane gets. Rows are dealt one by one to every pane that wants more. The
    pane of ended jobs gets what nobody else wants, but one row where there is room. The pane with
    the selection gets a few rows before all others."""
    given = dict.fromkeys(wanted, 0)
    if chosen is not None and chosen in wanted:
        given[chosen] = max(0, min(wanted[chosen], LEAST_CHOSEN, room))
    if room > 2 * len(wanted) and wanted.get(_LAST):
        given[_LAST] = max(1, given[_LAST])
    room -= sum(given.values())
    for panes in ([pane for pane in wanted if pane is not _LAST], [_LAST] * (_LAST in wanted)):
        while room > 0:
            willing = [pane for pane in panes if given[pane] < wanted[pane]]
            if not willing:
                break
            least = min(given[pane] for pane in willing)
            behind = [pane for pane in willing if given[pane] == least][:room]
            for pane in behind:
                given[pane] += 1
            room -= len(behind)
    return given


def _begin(found: Sequence[PaneRow], state: ViewState, fits: int) -> int:
    """The first row of a pane on the screen, so that the one that is selected can be seen."""
    if state.selected is None or not found or state.selected.pane is not found[0].pane:
        return 0
    places = [row.about for row in found]
    at = places.index(state.selected.about) if state.selected.about in places else 0
    return min(max(0, at - fits // 2), max(0, len(found) - fits)) if at >= fits else 0


def _title(
    document: Document,
    pane: Pane,
    rows: Mapping[Pane, Sequence[PaneRow]],
    columns: int,
    fits: int,
) -> Line:
    found = len(rows[pane])
    there = max(found, document["totals"].get(pane, 0)) if not document["filtered"] else found
    if not found:
        count = "nothing"
    elif fits < there:
        count = f"{min(fits, found)} of {there:,}"
    else:
        count = f"{there:,}"
    style = {Pane.NEEDS_YOU: "title alarm", Pane.RUNNING: "title run"}.get(pane, "title")
    text = f"{pane.value}  {count}"
    return (Span(text + " " * max(0, columns - len(text)), style),)


def _rows(
    document: Document,
    rows: Sequence[PaneRow],
    state: ViewState | None,
    columns: int,
    now: int,
) -> list[Line]:
    if not rows:
        return []
    table = [_CELLS[rows[0].pane](row, document, now) for row in rows]
    widths = _widths(table, columns, _NAME_AT[rows[0].pane])
    place = state.selected[:2] if state is not None and state.selected is not None else None
    lines = []
    for row, parts in zip(rows, table, strict=True):
        chosen = row.place == place
        lines.append(_grid(parts, widths, columns, chosen=chosen))
    return lines


Cell = tuple[str, str]  # text, style
_NAME_AT = {pane: 2 if pane is Pane.QUEUE else 1 for pane in Pane}


def _widths(table: Sequence[Sequence[Cell]], columns: int, name_at: int = 1) -> list[int]:
    """The widths of all columns but the last, which has the rest. A column is as wide as its texts;
    names take at most a third, or a quarter of a wide terminal."""
    widths = [max(cells(row[at][0]) for row in table) for at in range(len(table[0]) - 1)]
    most = max(12, columns // (4 if columns >= 100 else 3))
    widths[name_at] = min(widths[name_at], most)
    return widths


def _grid(parts: Sequence[Cell], widths: Sequence[int], columns: int, *, chosen: bool) -> Line:
    spans: list[Span] = []
    for (text, style), width in zip(parts, widths, strict=False):
        if width:
            cut = shortened(text, width)
            spans.append(Span(cut + " " * (width - cells(cut)) + GAP, style))
    used = sum(cells(each.text) for each in spans)
    text, style = parts[-1]
    spans.append(Span(fitted(text, max(0, columns - used)), style))
    if not chosen:
        return _cut(spans, columns)
    whole = "".join(each.text for each in _cut(spans, columns))
    return (Span(whole + " " * (columns - cells(whole)), "selected"),)


def _needs_you(row: PaneRow, document: Document, now: int) -> list[Cell]:
    each = row.document
    if row.kind is RowKind.WEBHOOK:
        count = len(each["deliveries"])
        last = each["deliveries"][0]
        text = f"{counted(count, 'request')} failed: "
        return [
            ("webhook", "bad"),
            (drawable(row.about), ""),
            ("", ""),
            (_ago(last["ended_at"], now), "dim"),
            (text + drawable(last["error"] or str(last["status_code"])), ""),
        ]
    if row.kind is RowKind.APPROVAL:
        text = each["question"] or each["runs"]
        of_run = f"{each['workflow_run']} " if each["workflow_run"] else ""
        return [
            (row.about, "warn"),
            (drawable(of_run + each["name"]), ""),
            ("approve?", "warn"),
            (_ago(each["requested_at"], now), "dim"),
            (drawable(text), ""),
        ]
    blocked = each["state"] == Status.BLOCKED_BY_DEPENDENCY
    return [
        (row.about, "dim" if blocked else "bad"),
        (_name(each), "dim" if blocked else ""),
        ("blocked" if blocked else "failed", "dim" if blocked else "bad"),
        (_ago(each["finished_at"], now), "dim"),
        (drawable(brief(each["reason"] or "")), "dim" if blocked else ""),
    ]


def _running(row: PaneRow, document: Document, now: int) -> list[Cell]:
    each = row.document
    usual = each["usual_seconds"]
    passed = max(0, now - (instant(each["started_at"]) or now))
    slow = usual is not None and passed > 2 * usual * SECOND + MINUTE
    far = how_far(each["run"])
    said = each["last_line"]
    if each["cancel_requested_at"]:
        text = "being cancelled"
    elif each["run"] and each["run"]["host"]:
        text = f"on {each['run']['host']}"
    else:
        text = said["text"] if said else ""
    attempt = f"attempt {each['attempt']}" if each["attempt"] > 1 else ""
    parts = [drawable(part) for part in (far, attempt, text) if part]
    return [
        (row.about, "run"),
        (_name(each), ""),
        (_time(passed), "warn" if slow else ""),
        (f"~{_time(round(usual * SECOND))}" if usual is not None else "", "dim"),
        (" | ".join(parts) or "no output yet", "" if parts else "dim"),
    ]


def _run(row: PaneRow, document: Document, now: int) -> list[Cell]:
    each = row.document
    counts = ", ".join(f"{count} {state}" for state, count in each["counts"].items())
    words = f"{counts}; {each['reason']}" if each["reason"] else counts
    return [
        (row.about, "run"),
        (drawable(each["workflow"]), ""),
        (_ago(each["created_at"], now), "dim"),
        (drawable(words), ""),
    ]


def _queue(row: PaneRow, document: Document, now: int) -> list[Cell]:
    each = row.document
    wait = each["wait"]["detail"] if each["wait"] else ""
    if not wait:
        wait = "starts next" if document["worker"] else "waits for a worker"
    expected = each["estimated_wait_seconds"]
    known = "" if expected is None or expected < 1 else f"in ~{_time(round(expected * SECOND))}"
    style = "" if each["state"] == Status.QUEUED else "warn"
    if approval_of(row, document) is not None and each["state"] != Status.WAITING_ON_APPROVAL:
        wait += "; then it asks for approval"
    return [
        (str(each["place"]), "dim"),
        (row.about, ""),
        (_name(each), ""),
        (known, "dim"),
        (drawable(brief(wait)), style),
    ]


def _ended(row: PaneRow, document: Document, now: int) -> list[Cell]:
    each = row.document
    word, style = _ENDS[Status(each["state"])]
    begun, ended = instant(each["started_at"]), instant(each["finished_at"])
    took = _time(max(0, ended - begun)) if begun is not None and ended is not None else ""
    reason = "" if each["state"] == Status.SUCCEEDED else brief(each["reason"] or "")
    return [
        (row.about, style),
        (_name(each), ""),
        (word, style),
        (took, "dim"),
        (_ago(each["finished_at"], now), "dim"),
        (drawable(reason), ""),
    ]


_CELLS: Mapping[Pane, Callable[[PaneRow, Document, int], list[Cell]]] = {
    Pane.NEEDS_YOU: _needs_you,
    Pane.RUNNING: _running,
    Pane.WORKFLOWS: _run,
    Pane.QUEUE: _queue,
    Pane.ENDED: _ended,
}


def _name(document: Document) -> str:
    node = document["workflow"]
    name = f"{node['run_id']} {node['node_id']}" if node else document["name"]
    return drawable(name)


def _ago(text: str | None, now: int) -> str:
    at = instant(text)
    return "" if at is None else f"{span(max(0, now - at))} ago"


def _time(micros: int) -> str:
    """At most seven cells: `12s`, `3m 5s`, `2h 10m`."""
    return show_duration(micros // SECOND * SECOND) if micros >= SECOND else "0s"


# -- instead of panes ------------------------------------------------------------------------------


def _window(lines: Sequence[Line], top: int, room: int) -> list[Line]:
    begin = max(0, min(top, len(lines) - room))
    return [*lines[begin : begin + room]]


def _help(columns: int) -> list[Line]:
    lines: list[Line] = [_filled("KEYS", columns)]
    for keys, words in HELP:
        lines += _field(keys, words, columns, room=14, style="key")
    lines += [(), _line("A job that a person must approve shows its whole command first.", columns)]
    return lines


def _details(state: ViewState, beside: Beside, columns: int, room: int, now: int) -> list[Line]:
    about = state.selected.about if state.selected else ""
    if beside.about != about:
        return [_filled(about, columns), _line("reading ...", columns, "dim")]
    if beside.run is not None:
        return _run_details(beside.run, columns, now)
    if beside.document is None:
        return [_filled(about, columns), _line(beside.trouble, columns, "warn")]
    if beside.document.get("deliveries") is not None:
        return _webhook_details(beside.document, columns, now)
    lines = _job_details(beside.document, beside.why, columns, now)
    left = max(4, room - len(lines))
    return [*lines, (), *_log_lines(beside, columns, left - 1)]


def _job_details(job: Document, why: Document | None, columns: int, now: int) -> list[Line]:
    lines = [_filled(f"{job['id']}  {drawable(job['name'])}", columns)]
    run = job["run"] or {}
    begun = job["started_at"]
    passed = max(0, (instant(job["finished_at"]) or now) - (instant(begun) or now))
    runs = "for" if job["state"] == Status.RUNNING else "ran for"
    times = f", {runs} {_time(passed)}" if begun else ""
    node = job["workflow"]
    entries: list[tuple[str, str | None, str]] = [
        ("state", f"{job['state']}{times}", _style_of(job["state"])),
        ("reason", job["reason"], "bad" if job["state"] not in ACTIVE else ""),
        *(("why", _objection(each), "warn") for each in (why or {}).get("objections", ())),
        ("next", (why or {}).get("remedy"), "key"),
        ("runs", what_it_runs(job["params"]), ""),
        ("in", job["params"].get("cwd"), ""),
        ("attempt", str(job["attempt"]) if job["attempt"] > 1 else None, ""),
        ("progress", how_far(run or None) if job["state"] == Status.RUNNING else None, ""),
        ("exit code", None if run.get("exit_code") is None else str(run["exit_code"]), ""),
        ("of", f"{node['run_id']} {node['node_id']}" if node else None, ""),
        ("after", ", ".join(job["after"]) or None, ""),
        ("locks", ", ".join(each["key"] for each in job["locks"]) or None, ""),
        ("submitted", _ago(job["created_at"], now), ""),
    ]
    for name, value, style in entries:
        if value:
            lines += _field(name, value, columns, style=style, on_value=True)
    return lines


def _objection(each: Document) -> str:
    remedy = f" -> {each['remedy']}" if each["remedy"] else ""
    return f"{each['detail']}{remedy}"


def _run_details(run: Document, columns: int, now: int) -> list[Line]:
    lines = [_filled(f"{run['id']}  {drawable(run['workflow'])}", columns)]
    for name, value in (("state", run["state"]), ("reason", run["reason"])):
        if value:
            lines += _field(name, value, columns)
    lines += _field("started", f"{_ago(run['created_at'], now)} by {run['created_by']}", columns)
    nodes = run["nodes"]
    if not nodes:
        return lines
    table = []
    for each in nodes:
        state = each["outcome"] or each["state"]
        said = (
            each["wait"]["detail"] if each["wait"] and each["outcome"] is None else each["reason"]
        )
        table.append(
            [
                (drawable(each["job"]), ""),
                (drawable(each["id"]), ""),
                (state, _style_of(each["state"])),
                (drawable(brief(said or "")), ""),
            ]
        )
    widths = _widths(table, columns)
    return [*lines, (), *(_grid(row, widths, columns, chosen=False) for row in table)]


def _webhook_details(group: Document, columns: int, now: int) -> list[Line]:
    lines = [_filled(f"webhook {drawable(group['endpoint'])}", columns)]
    table: list[list[Cell]] = [
        [
            (drawable(each["type"]), ""),
            (drawable(each["job"] or ""), ""),
            (_ago(each["ended_at"], now), "dim"),
            (drawable(each["error"] or str(each["status_code"])), "bad"),
        ]
        for each in group["deliveries"]
    ]
    widths = _widths(table, columns)
    return [*lines, *(_grid(row, widths, columns, chosen=False) for row in table)]


def _log_frame(state: ViewState, beside: Beside, columns: int, room: int) -> list[Line]:
    about = state.selected.about if state.selected else ""
    name = drawable(beside.document["name"]) if beside.document else ""
    status = f"  {beside.document['state']}" if beside.document else ""
    lines = [_filled(f"{about}  {name}{status}", columns)]
    if beside.about != about:
        return lines
    return [*lines, *_log_lines(beside, columns, room - 1, back=state.top)]


def _log_lines(beside: Beside, columns: int, room: int, back: int = 0) -> list[Line]:
    """The ends of its streams; the one that was last written to gets what the other leaves."""
    if beside.trouble:
        return [_line(beside.trouble, columns, "warn")]
    if not beside.log:
        return [_line("no output yet", columns, "dim")]
    lines: list[Line] = []
    streams = list(beside.log)
    rooms = [room - 1]
    if len(streams) > 1:
        other = min(len(streams[0][1]), max(1, room // 3))
        rooms = [other, max(1, room - other - 2)]
    for (stream, texts), fits in zip(streams, rooms, strict=False):
        lines.append((Span(f"[{stream}]", "key"),))
        whole = [part for text in texts for part in folded(drawable(text), columns)]
        end = max(min(fits, len(whole)), len(whole) - back)
        lines += [(Span(text),) for text in whole[max(0, end - fits) : end]]
    return lines


def _question(state: ViewState, question: ScreenQuestion, size: Size) -> list[Line]:
    room = question_room(size)
    texts = question_lines(question, size.columns)
    shown = texts[question.top : question.top + room]
    lines: list[Line] = [_filled(question.title, size.columns, "title alarm")]
    lines += [(Span(f" {text}"),) for text in shown]
    lines += [()] * (size.lines - 3 - len(lines))
    below = len(texts) - question.top - len(shown)
    more = f"{counted(below, 'line')} more below (page down)" if below else ""
    lines.append(_line(state.message or more, size.columns, "warn"))
    lines.append(())
    if seen_to_the_end(question, size):
        lines.append(
            _cut(
                [Span("y", "key"), Span(" yes"), Span(GAP), Span("n", "key"), Span(" no")],
                size.columns,
            )
        )
    else:
        lines.append(
            _cut(
                [
                    Span("page down", "key"),
                    Span(" the rest of it"),
                    Span(GAP),
                    Span("n", "key"),
                    Span(" no"),
                ],
                size.columns,
            )
        )
    return lines


# -- the foot --------------------------------------------------------------------------------------


def _foot(
    document: Document,
    state: ViewState,
    rows: Mapping[Pane, Sequence[PaneRow]],
    columns: int,
    trouble: str,
) -> list[Line]:
    if state.typed is not None:
        typed = ending(drawable(state.typed), columns - 2)
        return [
            _cut([Span("/", "key"), Span(typed), Span(" ", "selected")], columns),
            _cut(
                [
                    Span("enter", "key"),
                    Span(" show only these  "),
                    Span("esc", "key"),
                    Span(" back"),
                ],
                columns,
            ),
        ]
    text = trouble or state.message
    if not text and state.filter:
        text = f"only what has '{state.filter}': {len(in_order(rows)):,} (escape: all)"
    return [_line(text, columns, "warn"), _keys(document, state, rows, columns)]


def _keys(
    document: Document,
    state: ViewState,
    rows: Mapping[Pane, Sequence[PaneRow]],
    columns: int,
) -> Line:
    """What can be pressed now, as far as there is room; the rest is in the help."""
    first = [("enter", "details")] if state.shows is Shows.PANES else [("esc", "back")]
    may_be = [(key, _KEYS[key]) for key in may(selected_row(state, rows), document)]
    if state.shows is Shows.HELP:
        may_be = []
    elif state.shows is Shows.LOG:
        may_be = [each for each in may_be if each[0] != "f"]
    pause = ("p", "resume" if document["scheduler"]["paused"] else "pause")
    last = [pause, ("/", "filter")] if state.shows is Shows.PANES else []
    always = [("?", "help"), ("q", "quit")]
    left = columns - sum(len(f"{key} {word}  ") for key, word in always)
    chosen = []
    for key, word in (*first, *may_be, *last):
        left -= len(f"{key} {word}  ")
        if left < 0:
            break
        chosen.append((key, word))
    spans: list[Span] = []
    for key, word in (*chosen, *always):
        spans += [Span(key, "key"), Span(f" {word}{GAP}")]
    return _cut(spans, columns)


# -- lines -----------------------------------------------------------------------------------------


def _line(text: str, columns: int, style: str = "") -> Line:
    return (Span(fitted(drawable(text), columns), style),)


def _filled(text: str, columns: int, style: str = "title") -> Line:
    cut = shortened(text, columns)
    return (Span(cut + " " * (columns - cells(cut)), style),)


def _field(
    name: str, value: str, columns: int, *, room: int = 10, style: str = "", on_value: bool = False
) -> list[Line]:
    """A name and its value, which goes on below itself; nothing of it is cut off."""
    texts = [part for line in value.split("\n") for part in wrapped(drawable(line), columns - room)]
    lead = Span(name + " " * max(1, room - len(name)), "dim" if on_value else style)
    value_style = style if on_value else ""
    lines: list[Line] = [(lead, Span(texts[0], value_style))]
    return [*lines, *((Span(" " * room), Span(text, value_style)) for text in texts[1:])]


def wrapped(text: str, room: int) -> list[str]:
    """The text in lines that fit, cut between words where that is possible."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if cells(longer) <= room:
            line = longer
            continue
        lines += [line] if line else []
        *whole, line = folded(word, room)
        lines += whole
    return [*lines, line]


def _cut(spans: Sequence[Span], columns: int) -> Line:
    """No wider than the terminal."""
    kept: list[Span] = []
    left = columns
    for each in spans:
        width = cells(each.text)
        if width > left:
            if left > 0:
                kept.append(Span(shortened(each.text, left) if left > 3 else "", each.style))
            break
        kept.append(each)
        left -= width
    return tuple(kept)


def _style_of(state: str) -> str:
    known = _ENDS.get(state) or _STATES.get(state)  # type: ignore[call-overload]
    return known[1] if known else ""


def text_of(lines: Iterable[Line]) -> list[str]:
    return ["".join(each.text for each in line).rstrip() for line in lines]
