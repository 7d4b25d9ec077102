"""`make demo`: a small graph of real commands, run in a temporary folder, watched and checked.

Everything goes through the client and a background worker, as it does for a user. What is expected
stands in `PLAN`; what happened is read from the store; the exit code says whether the two agree.
"""

import argparse
import os
import select
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from headway.client import Client, connect
from headway.clock import SECOND
from headway.core.model import JobId
from headway.core.states import ACTIVE, TERMINAL, Status
from headway.errors import HeadwayError
from headway.submission import Request
from headway.supervise.workerlock import WorkerLock, wake
from headway.units import parse_instant

SLOTS = 3
DEADLINE = 30.0
REDRAW_EVERY = 0.2
CANCEL_AFTER = 700_000  # µs of running, so that there is something to see
ENDS_WITHIN = 5.0
COLOURS = {"succeeded": 32, "failed": 31, "cancelled": 33, "running": 36}


@dataclass(frozen=True, slots=True)
class Step:
    """One job of the plan and how its chain must end."""

    name: str
    shell: str
    expected: str
    state: Status = Status.SUCCEEDED
    attempts: int = 1
    exit_code: int = 0
    after: tuple[str, ...] = ()
    beside: str | None = None
    retries: int = 0
    cancelled: bool = False


PLAN = (
    Step("lint", "sleep 1.3; echo clean > lint.txt", "succeeds, beside test", beside="test"),
    Step("test", "sleep 1.8; echo passed > test.txt", "succeeds, beside lint", beside="lint"),
    Step(
        "package",
        "sleep 0.5; cat lint.txt test.txt > package.txt",
        "succeeds, after lint and test",
        after=("lint", "test"),
    ),
    Step(
        "upload",
        'sleep 0.4; [ "$HEADWAY_ATTEMPT" -gt 1 ] || { echo no connection >&2; exit 7; }',
        "fails, is retried, succeeds",
        attempts=2,
        retries=2,
    ),
    Step(
        "preview",
        "sleep 600 & sleep 600",
        "is cancelled, with its child",
        state=Status.CANCELLED,
        exit_code=143,
        cancelled=True,
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="headway.demo", description="Run a small graph of jobs.")
    parser.add_argument("--keep", action="store_true", help="keep the folder and say where it is")
    options = parser.parse_args(argv)
    folder = tempfile.mkdtemp(prefix="headway-demo-")
    try:
        with _client(folder) as client:
            say(f"Five jobs, {SLOTS} slots, one temporary folder. A worker starts by itself.\n")
            ids = submit(client, folder)
            watch(client, ids)
            ended = {step.name: client.document(_last(client, ids[step.name])) for step in PLAN}
        return report(ended)
    except KeyboardInterrupt:
        return 130
    except HeadwayError as error:
        sys.stderr.write(f"demo: {error}\n")
        return 1
    finally:
        if options.keep:
            say(f"Kept: {folder} (cd there, then: headway jobs list)")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def _client(folder: str) -> Iterator[Client]:
    """A client of a home of its own; on the way out nothing of it is left running."""
    environ = {name: text for name, text in os.environ.items() if not name.startswith("HEADWAY_")}
    home = os.path.join(folder, ".headway")
    client = connect(home=home, create=True, environ=environ, actor="demo")
    try:
        client.set_setting("scheduler.max_active", SLOTS)
        yield client
    finally:
        _end_jobs(client)
        _end_worker(client)
        client.close()


def submit(client: Client, folder: str) -> dict[str, JobId]:
    ids: dict[str, JobId] = {}
    for step in PLAN:
        request = Request(
            shell=step.shell,
            name=step.name,
            cwd=folder,
            after=tuple(ids[name] for name in step.after),
            retries=step.retries,
            retry_base=SECOND // 2,
            grace=2 * SECOND,
        )
        ids[step.name] = client.submit(request).job_id
    return ids


def watch(client: Client, ids: dict[str, JobId]) -> None:
    """Show the schedule until every chain has ended, and cancel what is to be cancelled."""
    screen = Table(client) if sys.stdout.isatty() else Lines(client)
    to_cancel = [ids[step.name] for step in PLAN if step.cancelled]
    give_up_at = client.clock.monotonic() + DEADLINE
    while True:
        screen.show()
        to_cancel = [each for each in to_cancel if not _cancelled(client, each)]
        if all(client.last_of_chain(each).status in TERMINAL for each in ids.values()):
            break
        if client.clock.monotonic() > give_up_at:
            say(f"Not over after {DEADLINE:g} s; what is left is cancelled.")
            break
        client.clock.sleep(REDRAW_EVERY)
    screen.show()
    say("")


def _cancelled(client: Client, job_id: JobId) -> bool:
    """Cancel the job once it has run for a moment; whether that is done."""
    job = client.job(job_id)
    if job.status is Status.RUNNING and client.clock.now() - (job.started_at or 0) > CANCEL_AFTER:
        client.cancel([job_id])
        return True
    return job.status in TERMINAL


class Lines:
    """Without a terminal: one line for each change of state, from the store's own record."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seen = 0
        self._began = client.clock.now()

    def show(self) -> None:
        with self._client.store.read() as tx:
            events = tx.events_since(self._seen, 1000)
            jobs = tx.jobs([event.job_id for event in events if event.job_id is not None])
        for event in events:
            self._seen = event.seq
            state = "queued" if event.kind == "submitted" else event.kind
            if event.job_id is None or state not in set(Status):
                continue
            detail = event.data.get("detail") or event.data.get("reason") or ""
            if event.data.get("retry_of"):
                detail = f"attempt {event.data['attempt']}, retries {event.data['retry_of']}"
            at = max(0, event.at - self._began) / SECOND
            job = jobs[event.job_id]
            say(f"{at:6.2f} s  job-{job.id:<3} {job.name:<9} {state:<16} {detail}".rstrip())


class Table:
    """On a terminal: the whole schedule, redrawn in place."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._drawn = 0

    def show(self) -> None:
        width = shutil.get_terminal_size().columns - 1
        now = self._client.clock.now()
        lines = [f"{'job':<7} {'name':<9} {'state':<16} {'for':>6}  why"]
        for document in self._client.listing(everything=True):
            state = document["state"]
            why = (document["wait"] or {}).get("detail") or document["reason"] or ""
            age = f"{_age(document, now):.1f} s" if document["started_at"] else ""
            line = f"{document['id']:<7} {document['name']:<9} {state:<16} {age:>6}  {why}"
            lines.append(painted(line.rstrip()[:width], state))
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        sys.stdout.write(up + "".join(f"\r\x1b[2K{line}\n" for line in lines))
        sys.stdout.flush()
        self._drawn = len(lines)


def _age(document: dict[str, Any], now: int) -> float:
    ended = _instant(document["finished_at"]) if document["finished_at"] else now
    return max(0, ended - _instant(document["started_at"])) / SECOND


def _instant(text: str) -> int:
    return parse_instant(text, 0)


def painted(line: str, state: str) -> str:
    if os.environ.get("NO_COLOR") or state not in COLOURS or not sys.stdout.isatty():
        return line
    return line.replace(state, f"\x1b[{COLOURS[state]}m{state}\x1b[0m", 1)


def report(ended: dict[str, dict[str, Any]]) -> int:
    """The outcome as a table, and what differs from the plan; 0 if nothing does."""
    say(f"{'job':<7} {'name':<9} {'state':<11} {'attempts':>8} {'exit':>5}  expected")
    wrong: list[str] = []
    for step in PLAN:
        document = ended[step.name]
        code = (document["run"] or {}).get("exit_code")
        found = differences(step, ended)
        wrong += found
        line = (
            f"{document['id']:<7} {step.name:<9} {document['state']:<11} "
            f"{document['attempt']:>8} {'-' if code is None else code:>5}  {step.expected}"
        )
        say(painted(line, document["state"]) + ("  <- differs" if found else ""))
    say("")
    for each in wrong:
        say(f"differs: {each}")
    if wrong:
        return 1
    say("Every job ended as expected; nothing is left running.")
    say("Next: `headway exec -- echo hello`, then the tour in README.md.")
    return 0


def differences(step: Step, ended: dict[str, dict[str, Any]]) -> list[str]:
    """How the store's record of one job differs from what was expected."""
    document = ended[step.name]
    pairs = (
        ("state", document["state"], step.state.value),
        ("attempts", document["attempt"], step.attempts),
        ("exit", (document["run"] or {}).get("exit_code"), step.exit_code),
    )
    found = [f"{step.name}: {what} is {got}, not {due}" for what, got, due in pairs if got != due]
    starts, ends = _span(document)
    if step.beside is not None:
        other_starts, other_ends = _span(ended[step.beside])
        if not (starts < other_ends and other_starts < ends):
            found.append(f"{step.name}: did not run beside {step.beside}")
    for name in step.after:
        if starts < _span(ended[name])[1]:
            found.append(f"{step.name}: started before {name} had ended")
    return found


def _span(document: dict[str, Any]) -> tuple[str, str]:
    """From when to when it ran; these texts sort as the instants do."""
    return document["started_at"] or "", document["finished_at"] or ""


def _last(client: Client, job_id: JobId) -> JobId:
    return client.last_of_chain(job_id).id


def _end_jobs(client: Client) -> None:
    """Cancel what an interrupt or a failure left, and wait until it is gone."""
    give_up_at = client.clock.monotonic() + ENDS_WITHIN
    while client.clock.monotonic() < give_up_at:
        with client.store.read() as tx:
            left = [job.id for job in tx.active_jobs() if job.status in ACTIVE]
        if not left:
            return
        for job_id in left:
            with suppress(HeadwayError):  # it has just ended by itself
                client.cancel([job_id])
        client.clock.sleep(REDRAW_EVERY)


def _end_worker(client: Client) -> None:
    """Ask the background worker to leave, as `headway work` does, and wait for its end."""
    pid = WorkerLock(client.home.worker_lock).read_pid()
    if pid is None or not client.worker_is_there():
        return
    with suppress(ProcessLookupError):
        pidfd = os.pidfd_open(pid)
        try:
            wake(client.home.worker_socket, b"handover")
            if not select.select([pidfd], [], [], ENDS_WITHIN)[0]:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)


if __name__ == "__main__":
    sys.exit(main())
