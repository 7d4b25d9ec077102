"""One job: why it does not run, what it wrote, its chain, what it comes after and what follows."""

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

from markupsafe import Markup

from headway.base.errors import HeadwayError, NotFoundError
from headway.base.units import show_instant
from headway.core.model import JobId, shown
from headway.core.states import ACTIVE, TERMINAL, Status
from headway.web.calls import WebCall
from headway.web.handlers.jobs import read_logs
from headway.web.pages.escapes import ansi
from headway.web.pages.formats import between
from headway.web.pages.page import WebPage
from headway.web.streams import STREAMS, LogPlace, decoded

MOST_NEAR = 20  # jobs that are named beside it
SHOWN_LINES = 400
SHOWN_BYTES = 256 << 10
FOUND_BYTES = 4 << 20


class JobPage(WebPage):
    template = "job.html"
    place = "/ui/jobs"

    def __init__(self, call: WebCall) -> None:
        super().__init__(call)
        self.id: JobId = call.client.jobs.find(call.path["job"])
        self.revision = call.client.jobs.revision(self.id)  # before the document: never newer
        self.job: dict[str, Any] = call.client.document(self.id)

    @property
    def title(self) -> str:  # type: ignore[override]
        return f"{self.job['id']} {self.job['name']}"

    @property
    def topics(self) -> str:
        """What its regions look out for: itself, and what it waits for."""
        near = [*self.job["after"], *(each["id"] for each in self.chain)]
        return " ".join(dict.fromkeys([self.job["id"], *near]))

    @property
    def is_active(self) -> bool:
        return Status(self.job["state"]) in ACTIVE

    @property
    def is_waiting(self) -> bool:
        return self.is_active and self.job["state"] != "running"

    @property
    def may_retry(self) -> bool:
        return self.job["state"] not in ("succeeded", "skipped") and not self.is_active

    @cached_property
    def approval(self) -> dict[str, Any] | None:
        """What the inbox has of it, if it waits for a decision."""
        return next(
            (each for each in self.client.jobs.approvals() if each["id"] == self.job["id"]), None
        )

    @cached_property
    def why(self) -> dict[str, Any]:
        return self.client.jobs.why(self.id)

    @cached_property
    def chain(self) -> Sequence[dict[str, Any]]:
        return self.client.jobs.tries(self.id)

    @cached_property
    def history(self) -> Sequence[Any]:
        return self.client.jobs.history(self.id)

    @cached_property
    def follows(self) -> Sequence[dict[str, Any]]:
        """The first of the jobs that come directly after this one."""
        found = []
        for each in self._following[:MOST_NEAR]:
            with suppress(HeadwayError):
                found.append(self.client.document(each))
        return found

    @property
    def more_follow(self) -> int:
        """How many others do."""
        return len(self._following[MOST_NEAR:])

    @cached_property
    def _following(self) -> Sequence[JobId]:
        graph = self.client.jobs.graph(focus=self.id, depth=1, everything=True)
        mine = {each["id"] for each in self.chain}
        return [row.id for row in graph.rows if mine & set(map(shown, row.after))]

    # -- what it wrote -------------------------------------------------------------------------

    @cached_property
    def elsewhere(self) -> Any:
        """The host that has its output, if that is not here."""
        return self.client.jobs.ran_elsewhere(self.id)

    @property
    def stream(self) -> str | None:
        """The one that its reader wants to see alone."""
        return self.call.query.get("stream")

    @property
    def find(self) -> str:
        return str(self.call.query.get("find") or "")

    @cached_property
    def log(self) -> "ShownLog":
        streams = STREAMS if self.stream is None else (self.stream,)
        return shown_log(self.client, self.id, streams, self.find)

    @property
    def steps(self) -> Sequence[tuple[str, str, str | None]]:
        """What became of it so far: a word, for how long, and since when."""
        job = self.job
        begun, ended = job["started_at"], job["finished_at"]
        found = [("submitted", "", job["created_at"])]
        held = ", ".join(each.replace("_", " ") for each in job["waited_on"])
        waited = f"waited ({held})" if held else "waited"
        if begun:
            found.append((waited, between(job["created_at"], begun), None))
            found.append(("ran" if ended else "runs", between(begun, ended), begun))
        elif not ended:
            found.append((waited.replace("waited", "waits", 1), "", None))
        if ended:
            found.append((job["state"].replace("_", " "), "", ended))
        return found

    @property
    def result(self) -> str:
        return json.dumps(self.job["run"]["result"], indent=2, ensure_ascii=False)

    @staticmethod
    def instant(micros: int) -> str | None:
        return show_instant(micros)

    @property
    def params(self) -> Sequence[tuple[str, Any]]:
        """What it was submitted with; of its environment the names alone."""
        said = dict(self.job["params"])
        environment = said.pop("env", None)
        if environment:
            said["env"] = ", ".join(sorted(environment))
        return [(name, value) for name, value in said.items() if value not in (None, [], {}, "")]


class ShownLog:
    """The last lines of a log as HTML, and where it goes on."""

    def __init__(self, text: Markup, place: str, begun: int, ended: bool) -> None:
        self.text = text
        self.place = place  # of the stream of a page
        self.begun = begun  # bytes of both streams that are not shown
        self.ended = ended


def shown_log(
    client: Any, job_id: JobId, streams: Sequence[str] = STREAMS, find: str = ""
) -> ShownLog:
    """stdout, then stderr: what both wrote has no common order once it is written. With a text to
    find, the lines that have it, of more than is shown else."""
    most = FOUND_BYTES if find else SHOWN_BYTES
    begin = {
        stream: max(
            0 if find else client.jobs.log_tail(job_id, stream, SHOWN_LINES),
            _end_of(client, job_id, stream) - most,
        )
        for stream in STREAMS
    }
    place = LogPlace(job_id, begin["stdout"], begin["stderr"])
    texts: dict[str, list[str]] = {each: [] for each in STREAMS}
    ended = client.jobs.get(job_id).status in TERMINAL
    while True:
        found = read_logs(client, place, this=True)
        pieces = list(decoded(found, place))
        for piece in pieces:
            place = piece.place
            texts[piece.stream].append(piece.text)
        if not pieces or sum(len(each) for each in texts["stdout"]) > 2 * most:
            break
    whole = {each: "".join(texts[each]) if each in streams else "" for each in STREAMS}
    if find:
        whole = {each: lines_with(find, text) for each, text in whole.items()}
    out, err = (ansi(whole[each]) for each in STREAMS)
    made = out + (Markup('<span class="err">{}</span>').format(err) if err else Markup(""))
    return ShownLog(made, place.id, sum(begin[each] for each in streams), ended)


def lines_with(find: str, text: str) -> str:
    """The lines that have a text, in capitals or not; the last ones if they are many."""
    wanted = find.casefold()
    found = [each for each in text.splitlines() if wanted in each.casefold()]
    return "".join(f"{each}\n" for each in found[-SHOWN_LINES:])


def _end_of(client: Any, job_id: JobId, stream: str) -> int:
    return int(client.jobs.log_tail(job_id, stream, 0))


class ConfirmPage(JobPage):
    """What a change of one job would do, before it is done. The verb is the last of the path."""

    template = "confirm.html"

    @property
    def verb(self) -> str:
        return self.here.partition("?")[0].rpartition("/")[2]

    @property
    def title(self) -> str:  # type: ignore[override]
        return f"{self.verb.capitalize()} {self.job['id']}?"

    @cached_property
    def preview(self) -> Any:
        """What would run again."""
        again = not self.may_retry
        jobs = self.client.jobs
        return (jobs.preview_repeat if again else jobs.preview_retry)(self.id)

    @cached_property
    def downstream(self) -> Sequence[JobId]:
        """What comes after it, directly or not."""
        reached = self.client.jobs.downstream(self.id)
        if not reached:
            raise NotFoundError(f"{self.job['id']} is gone")
        return [each for each in reached if each != self.id]

    @property
    def first_downstream(self) -> Sequence[dict[str, Any]]:
        return [self.client.document(each) for each in self.downstream[:MOST_NEAR]]
