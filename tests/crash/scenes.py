"""The scenes of the visiting test: who does what, who dies where, and what must then be true.

Most play the same small piece: `a` holds a lock that `l` waits for; `b` fails after `a`, and `c`
waits for `b`. So one crash shows at once in a run, a lock, a dependent that starts and one that is
blocked.
"""

import os
import signal
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from leftovers import Leftovers
from stage import Part, Stage, work

from harness import wait_for
from headway.base.clock import SECOND
from headway.base.environment import keep_environment, present_umask
from headway.base.errors import StoreFullError
from headway.base.home import Home
from headway.core.states import Status
from headway.jobs.request import Request
from headway.jobs.wait import await_step
from headway.worker.janitor import KEEP_ENVIRONMENTS, Janitor
from headway.worker.process import WorkerMode
from postgres import fresh_schema

Scene = Callable[[Stage, str], None]


class Fate(NamedTuple):
    """What became of `a`: how it ended, and how often its command began."""

    status: Status
    begun: tuple[int, ...]
    error: str | None = None


RAN = Fate(Status.SUCCEEDED, (1,))
UNKNOWN = "Scheduler crash recovery: outcome_unknown"
LOST_BEFORE_GO = Fate(Status.FAILED, (0,), UNKNOWN)
LOST_AT_GO = Fate(Status.FAILED, (0, 1), UNKNOWN)
LOST_AFTER = Fate(Status.FAILED, (1,), UNKNOWN)


def submit_piece(stage: Stage, script: str = "", **options: Any) -> None:
    a = stage.job("a", script, locks=("key",), **options)
    stage.job("l", locks=("key",))
    b = stage.job("b", code=7, after=(a,))
    stage.job("c", after=(b,))


def check_piece(stage: Stage, fate: Fate = RAN) -> None:
    stage.check_settled()
    a, b, c, last = (stage.number(name) for name in "abcl")
    written = stage.written()
    assert stage.status(a) is fate.status
    assert written.count(("start", "a")) in fate.begun
    if fate.status is Status.SUCCEEDED:
        assert _run(stage, a)["exit_code"] == 0
        assert (stage.status(b), _run(stage, b)["exit_code"]) == (Status.FAILED, 7)
    else:
        assert _run(stage, a)["error"] == fate.error
        assert stage.status(b) is Status.BLOCKED_BY_DEPENDENCY
    assert stage.status(c) is Status.BLOCKED_BY_DEPENDENCY
    assert stage.status(last) is Status.SUCCEEDED
    holders = [name for _, name in written if name in "al"]
    order = list(dict.fromkeys(holders))
    assert holders == sorted(holders, key=order.index), "the lock had one holder at a time"


def _run(stage: Stage, job: int) -> dict[str, Any]:
    run: dict[str, Any] = stage.client.document(job)["run"]
    return run


# -- the worker dies ---------------------------------------------------------------------------


def worker_dies(visit: int = 1) -> Scene:
    """It is killed at its n-th visit; the next worker does the rest."""

    def scene(stage: Stage, point: str) -> None:
        submit_piece(stage)
        stage.dies_at(point, work, visit=visit)
        stage.finish()
        check_piece(stage)

    return scene


def worker_dies_leaving(stage: Stage, point: str) -> None:
    """A signal tells it to go while `a` runs."""
    submit_piece(stage, stage.gate("a"))
    worker = stage.actor(work, points=f"{point}=kill")
    stage.started(stage.number("a"))
    os.kill(worker.pid or 0, signal.SIGTERM)
    stage.died(worker, point)
    stage.open_gate("a")
    stage.finish()
    check_piece(stage)


def worker_dies_idle(stage: Stage, point: str) -> None:
    """It has nothing to do and gives up its place; a submit comes just then."""
    stage.settings["worker.idle"] = "0s"
    stage.dies_at(point, work, WorkerMode.BACKGROUND)
    submit_piece(stage)
    stage.finish()
    check_piece(stage)


def worker_dies_settled(stage: Stage, point: str) -> None:
    """It has lived long enough not to count as one that died young."""
    stage.patches["headway.worker.process.SETTLED_AFTER"] = 0.0
    worker_dies()(stage, point)


def worker_dies_answering(stage: Stage, point: str) -> None:
    """`headway scheduler run` asked it for a step."""
    submit_piece(stage, stage.gate("a"))
    worker = stage.actor(work, points=f"{point}=kill")
    stage.started(stage.number("a"))
    assert await_step(stage.client.context)
    stage.died(worker, point)
    stage.open_gate("a")
    stage.finish()
    check_piece(stage)


def refuse(*_: Any, **__: Any) -> None:
    raise StoreFullError("no room for a claim")


def worker_dies_undoing_its_step(stage: Stage, point: str) -> None:
    """The store refused the claim, so the files that were made for it go."""
    submit_piece(stage)
    stage.patches["headway.worker.planner.pass_on_shared"] = refuse
    stage.dies_at(point, work)
    del stage.patches["headway.worker.planner.pass_on_shared"]
    stage.finish()
    check_piece(stage)


def worker_dies_replacing_its_parent(stage: Stage, point: str) -> None:
    submit_piece(stage, stage.gate("a"))
    worker = stage.actor(work, points=f"{point}=kill")
    stage.started(stage.number("a"))
    (parent,) = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
    os.kill(int(parent), signal.SIGKILL)
    stage.died(worker, point)
    stage.open_gate("a")
    stage.finish()
    check_piece(stage)


def worker_dies_proving(stage: Stage, point: str) -> None:
    """Without control groups it takes two looks until a lost tree's locks are free."""
    stage.settings["processes.cgroup"] = "off"
    submit_piece(stage, stage.gate("a"))
    stage.kill(_with_a_started(stage))
    os.kill(stage.started(stage.number("a")).supervisor_pid, signal.SIGKILL)
    stage.dies_at(point, work)
    stage.finish()
    check_piece(stage, LOST_AFTER)


def worker_dies_forcing(stage: Stage, point: str) -> None:
    """`a` was cancelled, its supervisor is stopped and does not hear; the worker ends it."""
    submit_piece(stage, stage.gate("a"), grace=0)
    worker = _with_a_started(stage)
    stage.kill(worker)
    a = stage.number("a")
    os.kill(stage.started(a).supervisor_pid, signal.SIGSTOP)
    stage.client.cancel([a])
    stage.dies_at(point, work)
    stage.finish()
    check_cancelled(stage)


def worker_dies_recovering(stage: Stage, point: str) -> None:
    """It finds claims of every sort and dies over them."""
    left = Leftovers(stage)
    stage.dies_at(point, work)
    left.finish()


def _with_a_started(stage: Stage, **options: Any) -> BaseProcess:
    worker = stage.actor(work, **options)
    stage.started(stage.number("a"))
    wait_for(lambda: ("start", "a") in stage.written())
    return worker


# -- the parent, a supervisor or a command's first process dies ----------------------------------


def child_dies(fate: Fate = RAN) -> Scene:
    """It is killed beside a worker that goes on and brings everything to its end."""

    def scene(stage: Stage, point: str) -> None:
        submit_piece(stage)
        worker = stage.actor(work, children=f"{point}=kill")
        assert stage.killed_at() == point
        stage.until_ended(*stage.names)
        stage.leave(worker)
        check_piece(stage, fate)

    return scene


def child_dies_with_worker(fate: Fate = RAN) -> Scene:
    """The worker is killed, too, and there are no control groups; the next one recovers."""

    def scene(stage: Stage, point: str) -> None:
        stage.settings["processes.cgroup"] = "off"
        submit_piece(stage)
        worker = stage.actor(work, children=f"{point}=kill")
        assert stage.killed_at() == point
        stage.kill(worker)
        stage.finish()
        check_piece(stage, fate)

    return scene


def child_sleeps(stage: Stage, point: str) -> None:
    """It does not die but stops, while its worker dies and the next one judges; then it goes on.
    What was given back meanwhile it may not start any more."""
    submit_piece(stage)
    worker = stage.actor(work, children=f"{point}=stop")
    pid = stage.stopped_at(point)
    stage.kill(worker)
    worker = stage.actor(work)
    judged = {"unclaimed", "readopted", "succeeded"}
    wait_for(lambda: judged & set(stage.kinds(stage.number("a"))), what="recovery")
    os.kill(pid, signal.SIGCONT)
    stage.until_ended(*stage.names)
    stage.leave(worker)
    check_piece(stage)


def parent_wakes_late(stage: Stage, point: str) -> None:
    """As above, but the one who gave the claim back died before it removed the claim's files: the
    mark that it left under the lock is all that keeps the late supervisor from starting `a`."""
    submit_piece(stage)
    worker = stage.actor(work, children=f"{point}=stop")
    parent = stage.stopped_at(point)
    stage.kill(worker)
    stage.mark.unlink()
    stage.dies_at("engine.recovered", work)
    os.kill(parent, signal.SIGCONT)
    wait_for(lambda: not stage.processes(), what="the late ones to leave")
    assert stage.written() == []
    stage.finish()
    check_piece(stage)


def child_dies_reporting(stage: Stage, point: str) -> None:
    """The program of `a` is not there when it is first tried."""
    program = stage.folder / "program"
    a = stage.called("a", stage.submit(str(program), check=False))
    worker = stage.actor(work, children=f"{point}=kill")
    assert stage.killed_at() == point
    stage.kill(worker)
    program.write_text(f"#!/bin/sh\n{stage.entry('start', 'a')}\n{stage.entry('end', 'a')}\n")
    program.chmod(0o755)
    stage.finish()
    stage.check_settled()
    assert stage.status(a) is Status.SUCCEEDED


def no_specification(*_: Any, **__: Any) -> dict[str, Any]:
    return {}


def supervisor_dies_of_itself(stage: Stage, point: str) -> None:
    """It is handed what it cannot digest, says so, and dies."""
    submit_piece(stage)
    stage.patches["headway.worker.tools.specification"] = no_specification
    worker = stage.actor(work, children=f"{point}=kill")
    assert stage.killed_at() == point
    stage.kill(worker)
    del stage.patches["headway.worker.tools.specification"]
    stage.finish()
    check_piece(stage)


# -- a command dies ----------------------------------------------------------------------------


def submit(part: Part, script: str) -> None:
    part.client().submit(Request(shell=script))


def submit_reader(part: Part, script: str) -> None:
    part.client().submit(Request(shell=script, input=b"of the dead one"))


def cancel(part: Part, job: int) -> None:
    part.client().cancel([job])


def _late(stage: Stage) -> str:
    """The script of one more job, which came late."""
    return f"{stage.entry('start', 'late')}; {stage.entry('end', 'late')}"


def submitter_dies(stage: Stage, point: str) -> None:
    """After its commit; a worker lives, and the job is run like any other."""
    submit_piece(stage, stage.gate("a"))
    worker = _with_a_started(stage)
    stage.dies_at(point, submit, _late(stage))
    stage.called("late", len(stage.names) + 1)
    stage.open_gate("a")
    stage.until_ended(*stage.names)
    stage.leave(worker)
    check_piece(stage)
    assert stage.status(stage.number("late")) is Status.SUCCEEDED


def reader_dies(stage: Stage, point: str) -> None:
    """Its submitter dies over what the job is to read, before the commit. So there is no job; the
    next ones, which get its number and its folder, read their own or nothing."""
    stage.patches["headway.jobs.inputs.ABANDONED_AFTER"] = -1.0
    submit_piece(stage)
    before = stage.rows("select count(*) from jobs")
    stage.dies_at(point, submit_reader, "exit 1")
    assert stage.rows("select count(*) from jobs") == before
    stage.job("none", 'test -z "$(cat)" || exit 1')
    own = stage.job("own", 'test "$(cat)" = "its own" || exit 1', input=b"its own")
    stage.finish()
    check_piece(stage)
    assert stage.status(stage.number("none")) is Status.SUCCEEDED
    assert stage.status(own) is Status.SUCCEEDED
    assert not [name for name in os.listdir(stage.home.run) if name.startswith("stdin.")]


def canceller_dies(stage: Stage, point: str) -> None:
    """After its commit, or after it left word: `a` is ended though nobody pokes it."""
    submit_piece(stage, stage.gate("a"), grace=0)
    worker = _with_a_started(stage)
    stage.dies_at(point, cancel, stage.number("a"))
    stage.until_ended(*stage.names)
    stage.leave(worker)
    check_cancelled(stage)


def check_cancelled(stage: Stage) -> None:
    stage.check_settled()
    statuses = [stage.status(stage.number(name)) for name in "albc"]
    blocked = Status.BLOCKED_BY_DEPENDENCY
    assert statuses == [Status.CANCELLED, Status.SUCCEEDED, blocked, blocked]
    assert ("end", "a") not in stage.written()


def starter_dies(stage: Stage, point: str) -> None:
    """A submit that starts a worker dies on the way, or one of the processes that it forks does.
    Whether that worker comes or not, the next one finds the job."""
    stage.settings["worker.autostart"] = True
    actor = stage.actor(submit, _late(stage), points=f"{point}=kill")
    stage.called("late", 1)
    actor.join(30)
    assert stage.killed_at() == point
    assert actor.exitcode in (0, -signal.SIGKILL)
    stage.settings["worker.autostart"] = False
    submit_piece(stage)
    stage.finish()
    check_piece(stage)
    assert stage.status(stage.number("late")) is Status.SUCCEEDED


def asker_dies(stage: Stage, point: str) -> None:
    """A command inside `a` wants a worker, leaves word for the supervisor, and dies."""
    points = f"HEADWAY_POINTS={point}=kill HEADWAY_TEST_MARK={stage.mark}"
    _ask_from_inside(stage, f"env {points}", point=point)
    stage.finish()
    check_piece(stage)


def asked_dies(stage: Stage, point: str) -> None:
    """The supervisor dies over the request."""
    _ask_from_inside(stage, "", point=point, children=f"{point}=kill")
    stage.finish()
    check_piece(stage, LOST_AFTER)


def _ask_from_inside(stage: Stage, env: str, *, point: str, children: str = "") -> None:
    inside = f"{env} {sys.executable} -m headway submit --shell '{_late(stage)}' || true"
    submit_piece(stage, f"{stage.gate('a')}; {inside}")
    stage.kill(_with_a_started(stage, children=children))
    stage.open_gate("a")
    assert stage.killed_at() == point
    stage.called("late", len(stage.names) + 1)


# -- the store and the environments ------------------------------------------------------------


def make_store(part: Part, url: str) -> None:
    part._replace(home=Home(part.home.path, url)).store()


def maker_dies(stage: Stage, point: str) -> None:
    """Whoever makes the store dies before it is done."""
    if stage.home.store_url is None:
        url = f"sqlite://{stage.folder}/new.db"
        _make_and_use(stage, point, url)
        return
    with fresh_schema(stage.home.store_url.partition("?options=")[0]) as url:
        _make_and_use(stage, point, url)


def _make_and_use(stage: Stage, point: str, url: str) -> None:
    stage.dies_at(point, make_store, url)
    folder = stage.folder / "other"
    folder.mkdir()
    other = Stage(folder, store_url=url)
    try:
        submit_piece(other)
        other.finish()
        check_piece(other)
    finally:
        other.close()


class HastyJanitor(Janitor):
    """A submit that needs the environment comes between the look and the deed."""

    hurry: Callable[[], None]

    def _drop(self, name: str, since: int) -> bool:
        self.hurry()
        return super()._drop(name, since)


def tidy(part: Part, script: str) -> None:
    client = part.client()
    janitor = HastyJanitor(
        client.context.store,
        client.context.home,
        client.context.clock,
        host_id=client.context.host.id,
        actor="actor",
    )
    janitor.hurry = lambda: submit(part, script)
    janitor.drop_stale_environments()


def keep(part: Part) -> None:
    """Be a submit that died before its commit."""
    keep_environment(part.home, os.environ, umask=present_umask(), working_directory=os.getcwd())


def janitor_dies(stage: Stage, point: str) -> None:
    """Over an environment that was unused for weeks, and is wanted again at that instant."""
    environment = _take_away(stage, point)
    submit_piece(stage)
    stage.finish()
    check_piece(stage)
    assert stage.status(1) is Status.SUCCEEDED
    assert stage.client.job(1).env_digest == environment


def worker_dies_putting_back(stage: Stage, point: str) -> None:
    """The environment that a janitor died over is returned by one who dies over that."""
    _take_away(stage, "janitor.moved_aside")
    stage.mark.unlink()
    stage.dies_at(point, work)
    stage.finish()
    stage.check_settled()
    assert stage.status(1) is Status.SUCCEEDED


def _take_away(stage: Stage, point: str) -> str:
    stage.actor(keep).join(30)
    (kept,) = Path(stage.home.environments).iterdir()
    long_ago = (stage.client.context.clock.now() - 2 * KEEP_ENVIRONMENTS) / SECOND
    os.utime(kept, (long_ago, long_ago))
    stage.dies_at(point, tidy, _late(stage))
    stage.called("late", 1)
    return kept.name
