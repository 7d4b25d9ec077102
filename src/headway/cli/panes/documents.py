"""Read what the panes show, by the verbs of the client, into one document.

The store is read when somebody committed, and seldom otherwise: for what time alone changes. A
reading that took long makes the next one wait for longer. The ends of logs, the worker and the time
are looked at every second.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headway.base.errors import HeadwayError, StoreBusyError
from headway.base.home import without_password
from headway.base.units import show_instant
from headway.cli.jobs.last_line import last_line
from headway.cli.panes.frame import NOTHING_BESIDE, Beside
from headway.cli.panes.model import Pane, RowKind, Shows, ViewState, rows_of, selected_row
from headway.cli.terminal import Sanitiser
from headway.client import Client
from headway.core.model import AGENT, Job
from headway.core.routes import RunState
from headway.core.states import Status
from headway.jobs.log_tail import log_ends
from headway.jobs.views.search import DAY
from headway.workflows.runs import run_id

MOST_ROWS = 100  # of a pane
MOST_FILTERED = 10_000  # waiting jobs that a filter looks through
MOST_DELIVERIES = 200
LOG_BYTES = 64 << 10  # read of each stream that is shown
LOG_LINES = 500
LOOK_AGAIN = 1.0  # seconds, for what is not in the store
READ_AGAIN = 5.0  # seconds, for what time alone changes in it
EFFORT = 9  # times as long as a reading took nothing is read


def overview_document(client: Client, *, filtered: bool = False) -> dict[str, Any]:
    """How everything stands; with `filtered` rows that a filter may look through."""
    most = MOST_FILTERED if filtered else MOST_ROWS
    recent = client.jobs.recent(limit=most if filtered else None)
    queue = client.jobs.queue(limit=most, most_read=most)
    running = client.jobs.list(states=(Status.RUNNING.value,), limit=most)
    runs = [each for each in client.workflows.runs() if each["state"] == RunState.RUNNING]
    waiting = sum(count for state, count in recent.active.items() if state is not Status.RUNNING)
    store = client.home.store_url
    document = {
        "at": show_instant(client.now()),
        "home": client.home.path,
        "store": None if store is None else without_password(store),
        "scheduler": client.scheduler.status(),
        "states": {state.value: count for state, count in recent.active.items()},
        "last_day": {state.value: count for state, count in recent.last_day.items()},
        "ended_per_minute": recent.last_minute,
        "needs_you": {
            "approvals": list(client.jobs.approvals()),
            "failed": recent.failed,
            "webhooks": _failed_deliveries(client),
        },
        "running": [
            {**each, "usual_seconds": recent.usual.get(each["name"])} for each in running.documents
        ],
        "workflow_runs": runs,
        "queue": queue.documents,
        "ended": recent.ended,
        "filtered": filtered,
        "totals": {  # where there are more than rows
            Pane.RUNNING.value: recent.active.get(Status.RUNNING, 0) if running.more else 0,
            Pane.QUEUE.value: waiting if queue.more else 0,
            Pane.ENDED.value: sum(recent.last_day.values()),
        },
    }
    return with_last_lines(client, document)


def with_last_lines(client: Client, document: Mapping[str, Any]) -> dict[str, Any]:
    """The same with what is not in the store: the worker, and what each job wrote last."""
    running = []
    for each in document["running"]:
        line = None if (each["run"] or {}).get("host") else last_line(_folder(client, each["id"]))
        running.append({**each, "last_line": line and {"stream": line.stream, "text": line.text}})
    return {**document, "worker": client.context.worker_is_there(), "running": running}


def public_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """What `--json` prints."""
    return {name: each for name, each in document.items() if name not in ("filtered", "totals")}


def _failed_deliveries(client: Client) -> list[dict[str, Any]]:
    """Those of the last day, by whom they were for."""
    groups: dict[str, list[dict[str, Any]]] = {}
    since = client.now() - DAY
    for each in client.webhooks.deliveries(state="failed", since=since, limit=MOST_DELIVERIES):
        groups.setdefault(each["endpoint"] or each["origin"] or "a job's own", []).append(each)
    return [{"endpoint": name, "deliveries": found} for name, found in groups.items()]


def _folder(client: Client, job: str) -> str:
    return client.home.job(int(job.removeprefix("job-")))


class PanesReader:
    """What the panes show; read again when it may have changed."""

    def __init__(self, connect: Callable[[], Client]) -> None:
        self._connect = connect
        self._client = connect()
        self._seen: int | None = None
        self._read_at = self._looked_at = self._pause_until = float("-inf")
        self._filtered = False
        self._beside_of: tuple[str, Shows] | None = None
        self.trouble = ""
        self.beside = NOTHING_BESIDE
        self.document: dict[str, Any] = {}

    @property
    def client(self) -> Client:
        return self._client

    def refresh(self, state: ViewState, *, at_once: bool = False) -> bool:
        """Read what may have changed; False if there was nothing to read."""
        clock = self._client.clock
        try:
            read = self._read_if_needed(state, clock.monotonic(), at_once=at_once)
            looked = read or clock.monotonic() >= self._looked_at + LOOK_AGAIN
            if looked and not read:
                self.document = with_last_lines(self._client, self.document)
            if looked:
                self._looked_at = clock.monotonic()
            if looked or self._beside_of != _beside_wanted(state):
                self._read_beside(state)
                looked = True
            return looked
        except StoreBusyError as error:
            if not self.document:
                raise
            changed, self.trouble = self.trouble != str(error), str(error)
            return changed

    def _read_if_needed(self, state: ViewState, now: float, *, at_once: bool) -> bool:
        if self._client.context.was_empty_and_is_not():
            self._client.close()
            self._client, self._seen = self._connect(), None
        filtered = bool(state.filter)
        asked = at_once or filtered != self._filtered or self._seen is None
        if now < self._pause_until and not asked:
            return False
        seen = self._client.context.changes()
        if seen == self._seen and not asked and now < self._read_at + READ_AGAIN:
            return False
        self.document = overview_document(self._client, filtered=filtered)
        self._seen, self._filtered, self.trouble = seen, filtered, ""
        self._read_at = self._client.clock.monotonic()
        self._pause_until = self._read_at + EFFORT * (self._read_at - now)
        return True

    def _read_beside(self, state: ViewState) -> None:
        """Details and the log of what is selected, while these are shown."""
        self._beside_of = _beside_wanted(state)
        if self._beside_of is None:
            self.beside = NOTHING_BESIDE
            return
        row = selected_row(state, rows_of(self.document, state.filter))
        if row is None:
            return
        try:
            self.beside = self._beside(row.kind, row.about, row.document, state.shows)
        except StoreBusyError:
            raise
        except HeadwayError as error:
            self.beside = Beside(row.about, trouble=str(error))

    def _beside(
        self, kind: RowKind, about: str, document: Mapping[str, Any], shows: Shows
    ) -> Beside:
        jobs = self._client.jobs
        if kind is RowKind.WEBHOOK:
            return Beside(about, document=document)
        if kind is RowKind.RUN:
            return Beside(about, run=self._client.workflows.run(run_id(about)))
        there = jobs.ran_elsewhere(about)
        return Beside(
            about,
            document=jobs.show(about),
            why=jobs.why(about) if shows is Shows.DETAILS else None,
            log=() if there else self._log(jobs.get(about)),
            trouble=f"its output is on {there.host}, in {there.folder}" if there else "",
        )

    def _log(self, job: Job) -> list[tuple[str, Sequence[str]]]:
        """The last lines of each stream, the one last written to at the end."""
        folder = self._client.home.job(job.id)
        found: list[tuple[str, Sequence[str]]] = []
        for end in log_ends(folder):
            data = end.read(folder, LOG_BYTES)
            if end.begin or end.size > LOG_BYTES:
                data = data.partition(b"\n")[2] or data
            if job.type == AGENT and end.stream == "stdout":
                data = self._transcribed(job, data)
            clean = Sanitiser()
            text = (clean.feed(data) + clean.end()).decode("utf-8", "replace")
            found.append((end.stream, lines_of(text)[-LOG_LINES:]))
        return found

    def _transcribed(self, job: Job, data: bytes) -> bytes:
        """The stream of an agent as people read it."""
        from headway.cli.agent_output import transcript_of

        transcript = transcript_of(self._client, job)
        return data if transcript is None else transcript.feed(data) + transcript.end()


def lines_of(text: str) -> list[str]:
    """Without colours; of a line that was written over, the last writing."""
    from headway.cli.jobs.last_line import COLOUR

    lines = COLOUR.sub("", text).expandtabs(4).split("\n")
    last = [line.rstrip("\r").rpartition("\r")[2] for line in lines]
    return last[:-1] if last and not last[-1] else last


def _beside_wanted(state: ViewState) -> tuple[str, Shows] | None:
    if state.selected is None or state.shows not in (Shows.DETAILS, Shows.LOG):
        return None
    return state.selected.about, state.shows
