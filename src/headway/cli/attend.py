"""Follow a job to its end: stream its output, over its retries, and give its exit code.

The job does not depend on this process: Ctrl-C, a closed terminal or kill -9 leave it running.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from headway.base.units import show_duration
from headway.cli.follow import STREAMS, Output, ProgressLine
from headway.cli.render import how_it_ended, instant, not_made, say
from headway.client import Client
from headway.core.model import AGENT, FUNCTION, Job, JobId, shown
from headway.core.states import Status
from headway.jobs.wait import Waiter, exit_code_of, lending

DETACHED = 130
PATIENCE = 2.0  # seconds in the queue after which one likes to know why


def follow_to_the_end(
    client: Client, job_id: JobId, *, on_interrupt: str, raw: bool = False
) -> int:
    """Stream the output of a job and its retries; `raw` leaves the stream of an agent as it is."""
    waiter = Waiter(client.context, job_id)
    with interrupts() as wishes, lending(client.context, waiter.job) as renew:
        # From the job that was submitted on: retries may have come before the first look.
        chain = ChainOutput(client, open_output(client, client.job(job_id), raw=raw), raw=raw)
        wonder_at = client.clock.monotonic() + PATIENCE
        while not waiter.ended:
            renew()
            if wishes.pop_interrupt() and not _goes_on(client, waiter.job, on_interrupt):
                return DETACHED
            if wonder_at and client.clock.monotonic() >= wonder_at:
                wonder_at = 0.0
                say_why(client, waiter.job)
            waiter.pause()
            chain.pump(waiter.job)
        chain.end(waiter.job)
    say_if_elsewhere(client, waiter.job)
    return report(client, waiter.job)


def say_if_elsewhere(client: Client, job: Job) -> bool:
    """Output stays on the host that ran the job; an empty one here would mislead."""
    there = client.jobs.ran_elsewhere(job.id) if job.started_at is not None else None
    if there is not None:
        say(f"{shown(job.id)} runs on {there.host}; its output is there, in {there.folder}")
    return there is not None


def is_elsewhere(client: Client, job: Job) -> bool:
    return job.started_at is not None and client.jobs.ran_elsewhere(job.id) is not None


def open_output(
    client: Client, job: Job, streams: tuple[str, ...] = STREAMS, *, raw: bool
) -> Output:
    """The output of a job; of an agent's its transcript, unless the stream itself is wanted."""
    transcript = None
    if job.type == AGENT and not raw:
        from headway.cli.agent_output import transcript_of

        transcript = transcript_of(client, job)
    return Output(client.home, job.id, streams, transcript)


class ChainOutput:
    """The output of a chain: each job's is copied whole before the next one's begins."""

    def __init__(
        self,
        client: Client,
        output: Output,
        streams: tuple[str, ...] = STREAMS,
        *,
        raw: bool = False,
    ) -> None:
        self._client = client
        self._raw = raw
        self._output = output
        self._streams = streams
        self._progress = ProgressLine()
        output.before_write = self._progress.hide

    def pump(self, last: Job) -> None:
        while self._output.job_id != last.id:
            self._next()
        if last.started_at is not None:
            self._output.pump()
        if last.status is Status.RUNNING and last.type == FUNCTION and self._progress.wanted:
            details = self._client.jobs.progress(last.id)
            if details is not None:
                self._progress.show(
                    f"{shown(last.id)} {details.fraction:.0%} {details.text}".rstrip()
                )

    def end(self, last: Job) -> None:
        self.pump(last)
        self._progress.hide()
        self._output.end()

    def _next(self) -> None:
        self._progress.hide()
        self._output.end()
        before = self._output.job_id
        documents = self._client.jobs.chain(before)
        ids = [document["id"] for document in documents]
        at = ids.index(shown(before)) + 1
        ended, following = documents[at - 1], documents[at]
        wait = (instant(following["not_before"]) or 0) - self._client.context.now()
        soon = f", in {show_duration(wait // 100_000 * 100_000)}" if wait > 100_000 else ""
        say(
            f"{ended['id']} {how_it_ended(ended['state'], ended['reason'])}; "
            f"attempt {following['attempt']} is {following['id']}{soon}"
        )
        job = self._client.job(int(following["id"].removeprefix("job-")))
        self._output = open_output(self._client, job, self._streams, raw=self._raw)
        self._output.before_write = self._progress.hide


def report(client: Client, job: Job) -> int:
    """Say how it ended where its exit code alone does not, and return the code to exit with."""
    document = client.document(job.id)
    run = document["run"] or {}
    code = exit_code_of(job, run.get("exit_code"), run.get("signal"))
    own_word = job.status is Status.FAILED and job.reason == f"exit code {code}"
    if job.status is not Status.SUCCEEDED and not own_word:
        say(f"{shown(job.id)} {how_it_ended(job.status, job.reason)}")
    if job.status is Status.BLOCKED_BY_DEPENDENCY:
        remedy = client.jobs.why(job.id)["remedy"]
        if remedy:
            say(f"{shown(job.id)}: {remedy}")
    missing = not_made(document)
    if missing is not None:
        say(missing)
    return code


def say_why(client: Client, job: Job) -> None:
    if job.status is Status.RUNNING or job.started_at is not None:
        return

    details = client.jobs.why(job.id)
    if details["objections"]:
        first = details["objections"][0]
        say(f"{details['id']} waits: {first['detail']}" + _hint(first["remedy"]))
    if (
        not details["worker"] and not client.context.wake()
    ):  # one that died after our submit is replaced
        say("no worker is there; `headway work` is one")


def _hint(remedy: str | None) -> str:
    return f" ({remedy})" if remedy else ""


def _goes_on(client: Client, job: Job, on_interrupt: str) -> bool:
    """After Ctrl-C: cancel and wait for the end (True), or leave the job to itself (False)."""
    if on_interrupt == "ask":
        on_interrupt = _ask(job)
    if on_interrupt == "cancel":
        from headway.base.errors import ConflictError

        try:
            client.cancel([job.id])
        except ConflictError:
            return True  # it has just ended
        say(f"cancelling {shown(job.id)}")
        return True
    name = shown(job.id)
    say(
        f"{name} goes on; `headway jobs tail -f {name}` follows it, "
        f"`headway jobs cancel {name}` ends it"
    )
    return False


def _ask(job: Job) -> str:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return "detach"
    try:
        sys.stderr.write(f"\nheadway: (d)etach from {shown(job.id)}, or (c)ancel it? [d] ")
        sys.stderr.flush()
        answer = sys.stdin.readline().strip().lower()
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return "detach"
    return "cancel" if answer in ("c", "cancel") else "detach"


class Wishes:
    """Ctrl-C is a wish that is looked at between two reads; a second one does not wait."""

    def __init__(self) -> None:
        self._interrupted = False
        self._handling = False

    def on_signal(self, number: int, frame: object) -> None:
        if self._interrupted or self._handling:
            raise KeyboardInterrupt
        self._interrupted = True

    def pop_interrupt(self) -> bool:
        interrupted, self._interrupted = self._interrupted, False
        self._handling = self._handling or interrupted
        return interrupted


@contextmanager
def interrupts() -> Iterator[Wishes]:
    """Collect Ctrl-C instead of dying in the middle of a transaction."""
    wishes = Wishes()
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, wishes.on_signal)
    try:
        yield wishes
    finally:
        signal.signal(signal.SIGINT, before)
