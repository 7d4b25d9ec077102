"""What waiting says on stderr: on a terminal how far each job is, and at the end what went wrong.

The lines of a terminal are written over in place. They are never wider than it, and never more than
it has: then the rest is counted.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.base.errors import TimedOutError
from headway.base.text import cells, plain, shortened
from headway.base.units import show_duration
from headway.cli.render import counted, how_it_ended, not_made, say
from headway.client import Client
from headway.core.model import Job, shown
from headway.core.states import ACTIVE, WAITING, Status
from headway.core.wait_words import paused
from headway.jobs.wait import exit_code_of

if TYPE_CHECKING:  # a wait without a terminal does not load what it would show
    from headway.jobs.views.awaited import AwaitedJob, AwaitedJobs

    Read = Callable[[int], AwaitedJobs]

SECOND = 1_000_000
DRAWN_EVERY = 0.2  # seconds
READ_EVERY = 0.5  # seconds, and only when somebody committed
LEAST_FORESEEN = SECOND  # an estimate below this says nothing
USUAL_SIZE = os.terminal_size((80, 24))
LONGEST_NAME = 24
BAR = 20  # cells
_KEPT_SPACE = "\x1f"  # no space for the folding, and in no text that is plain

_WORDS: Mapping[Status, str] = {
    Status.SUCCEEDED: "succeeded",
    Status.FAILED: "failed",
    Status.SKIPPED: "skipped",
    Status.CANCELLED: "cancelled",
    Status.BLOCKED_BY_DEPENDENCY: "blocked",
    Status.BLOCKED_BY_APPROVAL: "blocked",
    Status.RUNNING: "running",
    **dict.fromkeys(sorted(WAITING), "waiting"),
}


class AwaitedEnd(NamedTuple):
    """The document of an awaited job at its end, and the exit code that it stands for."""

    document: Mapping[str, Any]
    code: int


def end_of(client: Client, job_id: int) -> AwaitedEnd:
    document = client.document(job_id)
    run = document["run"] or {}
    code = exit_code_of(client.job(job_id), run.get("exit_code"), run.get("signal"))
    return AwaitedEnd(document, code)


def pause_words(client: Client) -> str | None:
    """Who has paused the scheduler, and what ends that; None: nobody."""
    with client.context.store.read() as tx:
        pause = tx.settings.pause_in_force(client.context.host.id)
    if pause is None:
        return None
    words = paused(pause)
    return f"{words.detail} ({words.remedy})"


def say_what_hinders(client: Client, job: Job, lines: WaitLines) -> None:
    """Nothing is started, or nobody can call its function, so waiting may never end."""
    from headway.jobs.views.why import not_importable

    pause = pause_words(client)
    if pause is not None:
        lines.say_pause(f"{shown(job.id)} waits: {pause}")
    cause = not_importable(client.context, job.id)
    if cause:
        lines.say(f"{shown(job.id)} is not run: {cause}")


class WaitLines:
    """What is said while jobs are awaited. Without a terminal that is nothing."""

    def __init__(self, client: Client, read: Read, *, quiet: bool, bar: bool) -> None:
        """`read` gives the jobs, so many of them with details; `bar` adds a line for all."""
        self._client = client
        self._read = read
        self._quiet = quiet
        self._bar = bar
        self._terminal = None if quiet or not _can_be_redrawn() else RedrawnLines()
        self._awaited: AwaitedJobs | None = None
        self._seen: int | None = None
        self._pause_is_said = False
        self._most = 0
        self._read_at = self._drawn_at = float("-inf")

    def refresh(self) -> None:
        """Draw anew, if it is time; called often."""
        if self._terminal is None:
            return
        now = self._client.clock.monotonic()
        if now < self._drawn_at + DRAWN_EVERY:
            return
        self._drawn_at = now
        size = _size()
        awaited = self._read_anew(now, size.lines)
        worker = self._client.context.worker_is_there()
        shown = waiting_lines(awaited, self._client.now(), size, bar=self._bar, worker=worker)
        self._terminal.draw(shown, size.columns)

    def _read_anew(self, now: float, most: int) -> AwaitedJobs:
        known, seen = self._awaited, self._client.context.changes()
        is_old = seen != self._seen and now >= self._read_at + READ_EVERY
        if known is None or is_old or most != self._most:
            known = self._awaited = self._read(most)
            self._read_at, self._seen, self._most = now, seen, most
        return known

    def say(self, message: str) -> None:
        """A message above the lines. On a terminal it is folded between words if it is wider."""
        if self._quiet:
            return
        self.clear()
        if sys.stderr.isatty():
            _say_folded(message, _size().columns - 1)
        else:
            say(message)

    def say_pause(self, message: str) -> None:
        """Once: it holds for all jobs that are awaited."""
        if not self._pause_is_said:
            self._pause_is_said = True
            self.say(message)

    def clear(self) -> None:
        if self._terminal is not None:
            self._terminal.clear()
            self._drawn_at = float("-inf")

    @contextmanager
    def until_the_end(self) -> Iterator[None]:
        """Whatever ends the block, the lines are gone; what goes on is said."""
        try:
            yield
        except (KeyboardInterrupt, TimedOutError) as error:
            self.clear()
            counts = self._read(0).counts
            if isinstance(error, TimedOutError) and self._bar:
                self.say(summary(counts))
            elif self._terminal is not None:
                self.say(f"waits no longer; the jobs go on ({_in_words(counts)})")
            raise
        finally:
            self.clear()

    def say_ends(self, ends: Sequence[AwaitedEnd]) -> None:
        """A line for each that did not succeed, or did not make what it was to make."""
        for document in {each.document["id"]: each.document for each in ends}.values():
            if document["state"] != Status.SUCCEEDED:
                self.say(end_line(document))
            elif (missing := not_made(document)) is not None:
                self.say(missing)


def end_line(document: Mapping[str, Any]) -> str:
    """How it ended, and where to look."""
    name = document["id"]
    look = f"headway jobs tail {name}" if document["started_at"] else f"headway why {name}"
    return f"{name} {how_it_ended(document['state'], document['reason'])}; {look}"


def summary(counts: Mapping[Status, int]) -> str:
    """`5 jobs: 3 succeeded, 1 failed, 1 blocked`."""
    states = _in_words(counts)
    return counted(sum(counts.values()), "job") + (f": {states}" if states else "")


def waiting_lines(
    awaited: AwaitedJobs, now: int, size: os.terminal_size, *, bar: bool, worker: bool
) -> list[str]:
    """All that is shown, no wider and no higher than the terminal; its last line is left free."""
    room = max(1, size.lines - 1 - bar)
    jobs = awaited.jobs
    total = sum(awaited.counts.values())
    shown = jobs if total <= room else jobs[: max(0, room - 1)]
    lines = _table([_row(each, now, worker=worker) for each in shown], size.columns - 1)
    if len(shown) < total:
        lines.append(f"and {counted(total - len(shown), 'more job')}")
    if bar:
        lines.append(_progress_bar(awaited.counts, min(BAR, size.columns // 6)))
    return [shortened(line, size.columns - 1) for line in lines]


def _row(awaited: AwaitedJob, now: int, *, worker: bool) -> tuple[str, ...]:
    job = awaited.job
    since = job.started_at or (job.created_at if job.finished_at is None else None)
    passed = "" if since is None else _whole_seconds((job.finished_at or now) - since)
    details = _details(awaited, now, worker=worker)
    return shown(job.id), plain(job.name), _WORDS[job.status], passed, plain(details)


def _details(awaited: AwaitedJob, now: int, *, worker: bool) -> str:
    job = awaited.job
    if job.status not in ACTIVE:
        return job.reason or ""
    if job.status is Status.RUNNING:
        attempt = f"attempt {job.attempt}" if job.attempt > 1 else None
        left = _foreseen("about {} left", awaited.ends_at, now)
        return ", ".join(filter(None, [awaited.progress, left, attempt]))
    absent = None if worker else "no worker is there (headway work is one)"
    start = _foreseen("starts in about {}", awaited.starts_at, now)
    return ", ".join(filter(None, [awaited.wait or absent, start]))


def _foreseen(words: str, at: int | None, now: int) -> str | None:
    if at is None or at - now < LEAST_FORESEEN:
        return None
    return words.format(_whole_seconds(at - now))


def _whole_seconds(micros: int) -> str:
    return show_duration(micros // SECOND * SECOND) if micros >= SECOND else "0s"


def _table(rows: Sequence[tuple[str, ...]], columns: int) -> list[str]:
    """Columns of one width; of the names no more than a fifth of the line is shown."""
    longest = max(8, min(LONGEST_NAME, columns // 5))
    cut = [(name, shortened(title, longest), *rest) for name, title, *rest in rows]
    widths = [max(cells(row[at]) for row in cut) for at in range(len(cut[0]) - 1)] if cut else []
    return ["  ".join(_padded(row, [*widths, 0])).rstrip() for row in cut]


def _padded(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [text + " " * (width - cells(text)) for text, width in zip(row, widths, strict=True)]


def _progress_bar(counts: Mapping[Status, int], length: int) -> str:
    total = sum(counts.values())
    done = sum(count for status, count in counts.items() if status not in ACTIVE)
    filled = length * done // total if total else 0
    return f"[{'#' * filled}{'.' * (length - filled)}] {done}/{total}  {_in_words(counts)}".rstrip()


def _in_words(counts: Mapping[Status, int]) -> str:
    words: Counter[str] = Counter()
    for status, word in _WORDS.items():
        words[word] += counts.get(status, 0)
    return ", ".join(f"{count} {word}" for word, count in words.items() if count)


def _say_folded(message: str, columns: int) -> None:
    """A command at the end stays on one line: it is there to be copied."""
    import textwrap

    text = f"headway: {plain(message)}"
    at = text.rfind("; headway ")
    if at >= 0:
        text = text[: at + 2] + text[at + 2 :].replace(" ", _KEPT_SPACE)
    folded = textwrap.fill(text, max(20, columns), subsequent_indent="  ", break_on_hyphens=False)
    _write(folded.replace(_KEPT_SPACE, " ") + "\n")


class RedrawnLines:
    """Lines on the terminal of stderr that are written over in place."""

    def __init__(self) -> None:
        self._shown: Sequence[str] = ()
        self._columns = 0

    def draw(self, lines: Sequence[str], columns: int) -> None:
        if (lines, columns) == (self._shown, self._columns):
            return
        before = self._up(columns)
        self._shown, self._columns = lines, columns
        _write(before + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")

    def clear(self) -> None:
        if self._shown:
            before = self._up(_size().columns)
            self._shown = ()
            _write(f"{before}\x1b[J")

    def _up(self, columns: int) -> str:
        """To the first of the lines. A terminal that became narrower has folded them."""
        taken = sum(max(1, -(-cells(line) // columns)) for line in self._shown)
        return f"\r\x1b[{taken}A" if taken else "\r"


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _size() -> os.terminal_size:
    """Of the terminal behind stderr; one that has no size gets the usual one."""
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except OSError:
        return USUAL_SIZE
    return size if size.columns > 1 and size.lines > 1 else USUAL_SIZE


def _can_be_redrawn() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb", "unknown")
