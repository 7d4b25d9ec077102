"""One frame of the watch: header, counts, table, the pane of the job that runs, what failed.

Everything fits the terminal: columns are cut, never wrapped, and rows give way to the pane.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rich import box
from rich.console import ConsoleDimensions, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from headway.base.text import drawable
from headway.base.units import show_duration, show_instant
from headway.cli.jobs.last_line import LastLine
from headway.cli.render import LEAST_STATE, USUAL_WIDTH, brief
from headway.core.model import Job, shown
from headway.core.states import WAITING, Status
from headway.jobs.views.graph.formats import kind_of
from headway.jobs.views.graph.model import BUCKETS, GraphSchedule, Node

NOTHING_THERE = "Outcome: No scheduled jobs"
NARROW = 100  # columns
AROUND_ROWS = 10  # lines that are not rows: header, counts, gaps, table head, pane
SECOND = 1_000_000

_STYLES = {
    "queued": "",
    "waiting": "yellow",
    "running": "bold blue",
    "blocked": "red",
    "succeeded": "green",
    "failed": "red",
    "ended": "dim",
    "terminal": "dim",
}


class Running(NamedTuple):
    """What the pane tells of a job: its last line, or the host that has its output."""

    line: LastLine | None = None
    host: str | None = None
    started_at: int | None = None


class Frame(NamedTuple):
    now: int
    interval: float
    counts: Mapping[str, int]
    schedule: GraphSchedule
    running: Callable[[Node], Running]
    worker: bool
    trouble: str | None = None
    failures: Sequence[Job] = ()  # the newest first, but causes before what they block


def draw(frame: Frame, size: ConsoleDimensions) -> RenderableType:
    fitting = max(1, size.height - AROUND_ROWS - bool(frame.failures))
    rows = frame.schedule.rows[:fitting]
    hidden = len(frame.schedule.rows) - len(rows) + frame.schedule.hidden
    parts: list[RenderableType] = [_header(frame, size.width), _counts(frame.counts), Text()]
    if rows:
        parts.append(_table(rows, size.width))
    else:
        parts += [Text(NOTHING_THERE), Text()]
    if hidden:
        parts.append(_line("more jobs are not shown: --top N, or a higher terminal", "dim"))
    parts.append(_pane(frame, rows))
    if frame.failures:
        parts.append(_line(named_failures(frame.failures), "red"))
    if frame.trouble or _needs_worker(frame):
        document = frame.trouble or "no worker is there, so nothing starts; `headway work` is one"
        parts.append(_line(document, "yellow"))
    return Group(*parts)


def named_failures(failures: Sequence[Job]) -> str:
    """`failed: job-7 build (exit 2), job-9 deploy (blocked by job-7)`."""
    return "failed: " + ", ".join(
        f"{shown(job.id)} {job.name} ({_reason(job)})" for job in failures
    )


def _reason(job: Job) -> str:
    """Why it ended without success, in as few words as a line of many has room for."""
    reason = brief(job.reason or job.status.value)
    return reason.replace("exit code", "exit", 1) if reason.startswith("exit code") else reason


def _needs_worker(frame: Frame) -> bool:
    return not frame.worker and any(row.status in WAITING for row in frame.schedule.rows)


def _line(text: str, style: str = "") -> Text:
    return Text(drawable(text), style=style, no_wrap=True, overflow="ellipsis")


def _header(frame: Frame, width: int) -> Text:
    time = (show_instant(frame.now) or "")[:19].replace("T", " ") + "Z"
    every = f"every {show_duration(round(frame.interval * SECOND))}"
    left = Text.assemble(("Schedule", "bold"), f"  {time}  ", (every, "dim"))
    leaves = "q leaves"
    left.append(leaves.rjust(max(len(leaves) + 2, width - left.cell_len)), "dim")
    left.no_wrap, left.overflow = True, "ellipsis"
    return left


def _counts(counts: Mapping[str, int]) -> Text:
    document = Text(no_wrap=True, overflow="ellipsis")
    for bucket in BUCKETS:
        style = _STYLES[bucket] if counts[bucket] else "dim"
        document.append(f"{bucket} {counts[bucket]}", style)
        document.append("   ")
    return document


def _table(rows: Sequence[Node], width: int) -> Table:
    """At 80 columns the name and the wait share what the rest leaves."""
    narrow = width < NARROW
    table = Table(
        box=box.SIMPLE_HEAD, expand=True, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False
    )
    options = {"no_wrap": True, "overflow": "ellipsis"}
    table.add_column("#", justify="right", no_wrap=True, width=len(str(len(rows))))
    table.add_column("Slug", max_width=8 if narrow else 20, **options)  # type: ignore[arg-type]
    table.add_column("Name", ratio=2, **options)  # type: ignore[arg-type]
    widest = max(len(row.status) for row in rows)
    if width < USUAL_WIDTH:
        widest = min(widest, LEAST_STATE)
    table.add_column("Status", width=max(6, widest), **options)  # type: ignore[arg-type]
    table.add_column("Wait", ratio=3, **options)  # type: ignore[arg-type]
    table.add_column("Job", no_wrap=True, width=max(len(shown(row.id)) for row in rows))
    for number, row in enumerate(rows, 1):
        style = _STYLES[kind_of(row.status)]
        table.add_row(
            Text(str(number), "dim"),
            _line(row.slug or "-"),
            _line(row.name),
            Text(row.status.value, style),
            _line(row.wait or "-", "" if row.wait else "dim"),
            Text(shown(row.id)),
        )
    return table


def _pane(frame: Frame, rows: Sequence[Node]) -> RenderableType:
    node = selected(rows, frame.schedule.focus)
    if node is None:
        return Panel(Text("nothing is running", "dim"), box=box.ROUNDED, border_style="dim")
    running = frame.running(node)
    title = Text.assemble((shown(node.id), "bold"), "  ", drawable(node.name))
    title.no_wrap, title.overflow = True, "ellipsis"
    if running.started_at is not None:
        passed = max(0, frame.now - running.started_at) // SECOND * SECOND
        title.append(f"  for {show_duration(passed) if passed else '0s'}", "dim")
    return Panel(_output(running), title=title, title_align="left", border_style="blue")


def _output(running: Running) -> Text:
    if running.host is not None:
        return _line(f"it runs on {running.host}; its output is there", "dim")
    if running.line is None:
        return _line("no output yet", "dim")
    document = Text.assemble((f"[{running.line.stream}] ", "cyan"), drawable(running.line.text))
    document.no_wrap, document.overflow = True, "ellipsis"
    return document


def selected(rows: Sequence[Node], focus: int | None) -> Node | None:
    """The focused job if it runs, else the first visible one that does."""
    running = [row for row in rows if row.status is Status.RUNNING]
    return next((row for row in running if row.id == focus), running[0] if running else None)
