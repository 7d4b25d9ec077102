"""`make demo`: a small graph of real commands, run in a temporary folder, watched and checked.

Everything goes through the client and a background worker, as it does for a user. What is expected
stands in `PLAN`; what happened is read from the store; the exit code says whether the two agree.
"""

import argparse
import json
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from headway.base.clock import SECOND
from headway.base.errors import ConflictError, HeadwayError
from headway.base.units import parse_instant
from headway.base.worker_lock import COMING, STAYS, WorkerLock, wake
from headway.client import Client, connect
from headway.core.model import JobId
from headway.core.states import TERMINAL, Status
from headway.jobs.request import Request
from headway.jobs.wait import Waiter

SLOTS = 3
DEADLINE = 30.0
PATIENCE = 5.0  # seconds for a worker to come up, for jobs and worker to end
LOOK_EVERY = 0.2
NEVER = "never"  # sorts after every time, and times sort as their texts do
CANCEL_AFTER = 700_000  # µs of running, so that there is something to see
COLOURS = {"succeeded": 32, "failed": 31, "cancelled": 33, "running": 36}


@dataclass(frozen=True, slots=True)
class DemoStep:
    """One job of the plan and how its chain must end."""

    name: str
    shell: str
    expected: str
    after: tuple[str, ...] = ()
    beside: str | None = None
    retries: int = 0
    cancelled: bool = False
    attempts: int = 1


UPLOAD = 'sleep 0.4; [ "$HEADWAY_ATTEMPT" -gt 1 ] || { echo no connection >&2; exit 7; }'
PACKAGE = "sleep 0.5; cat lint.txt test.txt > package.txt"
PLAN = (
    DemoStep("lint", "sleep 1.3; echo clean > lint.txt", "succeeds, beside test", beside="test"),
    DemoStep("test", "sleep 1.8; echo passed > test.txt", "succeeds, beside lint", beside="lint"),
    DemoStep("package", PACKAGE, "succeeds, after lint and test", after=("lint", "test")),
    DemoStep("upload", UPLOAD, "fails, is retried, succeeds", retries=2, attempts=2),
    DemoStep("preview", "sleep 600 & sleep 600", "is cancelled, with its child", cancelled=True),
)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="headway.admin.demo", description="Run a small graph of jobs."
    )
    parser.add_argument("--keep", action="store_true", help="keep the folder and say where it is")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="headway-demo-")
    try:
        with client_of(folder) as client:
            say(f"Five jobs, {SLOTS} slots, one temporary folder. A worker starts by itself.\n")
            ids = submit(client, folder)
            watch(client, ids)
            wrong = over_http(client)
            ended = {name: client.jobs.chain(each)[-1] for name, each in ids.items()}
            with client.context.store.read() as tx:
                alive = [*tx.claims.live(), *tx.claims.unproven()]
        left = [f"job-{claim.job_id} may have processes left" for claim in alive]
        return report(ended, [*wrong, *left])
    except KeyboardInterrupt:
        return 130
    except HeadwayError as error:
        sys.exit(f"demo: {error}")
    finally:
        if options.keep:
            say(f"Kept: {folder} (cd there, then: headway jobs list)")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def client_of(folder: str) -> Iterator[Client]:
    """A client with a home of its own; on the way out nothing of it is left running."""
    environ = {name: text for name, text in os.environ.items() if not name.startswith("HEADWAY_")}
    environ["XDG_STATE_HOME"] = f"{folder}/state"  # the record of trust goes with the folder
    client = connect(home=f"{folder}/.headway", create=True, environ=environ, actor="demo")
    try:
        client.set_setting("scheduler.max_active", SLOTS)
        yield client
    finally:
        end_jobs(client)
        end_worker(client)
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
        )
        ids[step.name] = client.submit(request).job_id
    return ids


def watch(client: Client, ids: dict[str, JobId]) -> None:
    """Show the schedule until every chain has ended, and cancel what is to be cancelled."""
    show = table if sys.stdout.isatty() else partial(changes, began=client.now())
    shown = 0
    to_cancel = {ids[step.name] for step in PLAN if step.cancelled}
    began = client.clock.monotonic()
    while not all(client.jobs.last_of_chain(each).status in TERMINAL for each in ids.values()):
        shown = show(client, shown)
        to_cancel -= {each for each in to_cancel if cancelled(client, each)}
        waited = client.clock.monotonic() - began
        if waited > DEADLINE or (waited > PATIENCE and not client.context.worker_is_there()):
            with open(client.home.worker_log, encoding="utf-8") as log:
                last_words = log.read().strip().rpartition("\n")[2]
            raise HeadwayError(f"not over after {waited:.0f} s; the worker says: {last_words}")
        client.clock.sleep(LOOK_EVERY)
    show(client, shown)


def cancelled(client: Client, job_id: JobId) -> bool:
    """Cancel the job once it has run for a moment; whether that is done."""
    job = client.job(job_id)
    if job.started_at is None or client.now() < job.started_at + CANCEL_AFTER:
        return False
    with suppress(ConflictError):  # it has ended by itself, and the report will say so
        client.cancel([job_id])
    return True


def changes(client: Client, since: int, *, began: int) -> int:
    """Without a terminal: one line for each change of state, from the store's own record."""
    with client.context.store.read() as tx:
        events = tx.events.since(since, 1000)
        jobs = tx.jobs.by_id([event.job_id for event in events if event.job_id is not None])
    for event in events:
        state = "queued" if event.kind == "submitted" else event.kind
        if event.job_id is None or state not in list(Status):
            continue
        detail = event.data.get("detail") or event.data.get("reason") or ""
        at, job = max(0, event.at - began) / SECOND, jobs[event.job_id]
        say(f"{at:6.2f} s  job-{job.id}  {job.name:<8} {state:<16} {detail}".rstrip())
    return events[-1].seq if events else since


def table(client: Client, drawn: int) -> int:
    """On a terminal: the whole schedule, drawn over the last one, which had so many lines."""
    width = shutil.get_terminal_size().columns - 1
    lines = [f"{'job':<6} {'name':<8} {'state':<16} {'for':>6}  why"]
    for document in client.listing(everything=True):
        state, started, ended = (document[name] for name in ("state", "started_at", "finished_at"))
        why = (document["wait"] or {}).get("detail") or document["reason"] or ""
        until = parse_instant(ended, 0) if ended else client.now()
        age = f"{(until - parse_instant(started, 0)) / SECOND:.1f} s" if started else ""
        line = f"{document['id']:<6} {document['name']:<8} {state:<16} {age:>6}  {why}"
        lines.append(painted(line.rstrip()[:width], state))
    say(f"\x1b[{drawn}A" * bool(drawn) + "\n".join(f"\r\x1b[2K{line}" for line in lines))
    return len(lines)


def painted(line: str, state: str) -> str:
    if state in COLOURS and sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        return line.replace(state, f"\x1b[{COLOURS[state]}m{state}\x1b[0m", 1)
    return line


def over_http(client: Client) -> list[str]:
    """Submit one more job as a program elsewhere would; what went wrong."""
    curl = shutil.which("curl")
    if curl is None or find_spec("uvicorn") is None:
        missing = "curl" if curl is None else "the extra `web` (pip install 'headway[web]')"
        say(f"\nOver HTTP: left out, because {missing} is not here.")
        return []
    with served(client) as url:
        words = ["-s", f"{url}/api/v1/jobs", "-H", "Prefer: wait=20"]
        words += ["-H", "Content-Type: application/json", "-d", '{"argv": ["echo", "hello"]}']
        said = shlex.join(words)
        say(f'\nOver HTTP, by `headway serve`:\ncurl {said} -H "Authorization: Bearer $TOKEN"')
        token = client.tokens.add("demo", role="submit")
        done = subprocess.run(
            [curl, *words, "-H", "@-"],  # others can see what is said on a command line
            input=f"Authorization: Bearer {token}\n",
            capture_output=True,
            text=True,
            check=False,
        )
    try:
        job = json.loads(done.stdout)["job"]
    except (ValueError, KeyError):
        return [f"over HTTP: {done.stdout or done.stderr or done.returncode}"]
    say(f"{job['id']} {job['state']}")
    return [] if job["state"] == Status.SUCCEEDED else [f"over HTTP: it is {job['state']}"]


@contextmanager
def served(client: Client) -> Iterator[str]:
    """The address of a server, which ends on the way out."""
    command = [sys.executable, "-P", "-m", "headway", "--home", client.home.path, "serve", "--json"]
    with subprocess.Popen(
        command,
        env=dict(client.context.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            assert server.stdout is not None  # noqa: S101
            line = server.stdout.readline()
            if not line:
                raise HeadwayError("the server did not come up; `headway serve` says why")
            yield f"http://127.0.0.1:{urlsplit(json.loads(line)['url']).port}"
        finally:
            server.terminate()


def report(ended: dict[str, Any], wrong: list[str]) -> int:
    """The outcome as a table, and what differs from the plan; 0 if nothing does."""
    say(f"\n{'job':<6} {'name':<8} {'state':<10} {'attempts':>8} {'exit':>5}  expected")
    for step in PLAN:
        document = ended[step.name]
        code = (document["run"] or {}).get("exit_code", "-")
        found = differences(step, ended)
        line = f"{document['id']:<6} {step.name:<8} {document['state']:<10} "
        line += f"{document['attempt']:>8} {code:>5}  {step.expected}"
        say(painted(line + ("  <- differs" if found else ""), document["state"]))
        wrong = [*wrong, *found]
    if wrong:
        say("\nNot as expected:\n" + "\n".join(wrong))
        return 1
    say("\nEvery job ended as expected, and none has left a process behind.")
    say("Next: `pip install .`, `headway exec -- echo hello`, then the tour in README.md.")
    return 0


def differences(step: DemoStep, ended: dict[str, Any]) -> list[str]:
    """How the store's record of one chain differs from what was expected."""
    document = ended[step.name]
    state, code = (Status.CANCELLED, 143) if step.cancelled else (Status.SUCCEEDED, 0)
    finding_detail = {
        "state": (document["state"], state.value),
        "attempts": (document["attempt"], step.attempts),
        "exit": ((document["run"] or {}).get("exit_code"), code),
    }
    found = [
        f"{what} is {got}, not {due}" for what, (got, due) in finding_detail.items() if got != due
    ]
    starts = document["started_at"] or NEVER
    if step.beside and starts >= (ended[step.beside]["finished_at"] or NEVER):
        found.append(f"did not run beside {step.beside}")
    early = [name for name in step.after if starts < (ended[name]["finished_at"] or NEVER)]
    found += [f"started before {name} had ended" for name in early]
    return [f"{step.name}: {each}" for each in found]


def end_jobs(client: Client) -> None:
    """Cancel what an interrupt or a failure left, and wait until it is gone."""
    with client.context.store.read() as tx:
        left = [job.id for job in tx.jobs.active()]
    for job_id in left:
        with suppress(HeadwayError):  # it has just ended by itself
            client.cancel([job_id])
            Waiter(client.context, job_id).until_ended(timeout=PATIENCE)


def end_worker(client: Client) -> None:
    """Ask the background worker to leave, as `headway work` does, and wait for its end."""
    lock = WorkerLock(client.home.worker_lock)
    lock.take_within(COMING, PATIENCE)  # once one that is coming up is there; no other follows
    pid = lock.read_pid()
    if pid is not None and lock.is_held(STAYS):
        with suppress(ProcessLookupError):
            pidfd = os.pidfd_open(pid)
            wake(client.home.worker_socket, b"handover")
            if not select.select([pidfd], [], [], PATIENCE)[0]:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)
    lock.close()


if __name__ == "__main__":
    sys.exit(main())
