"""The supervisor: one small process per running command, which outlives the worker.

It takes the claim's lock, starts the command at most once, watches it, and does not end without a
durable outcome, unless the claim was void before it started anything. docs/protocols.md, sections 2
and 3, gives the order of its steps; each of them is named by a crash point.
"""

from __future__ import annotations

import os
import resource
import signal
import time

from headway.base import proc
from headway.base import worker_lock as workerlock
from headway.base.crashpoints import reach
from headway.supervise import cgroup, child
from headway.supervise.evidence import LONGEST_ERROR, Evidence
from headway.supervise.helper import Helper
from headway.supervise.records import OutcomeRecord, Started
from headway.supervise.tree import Tree, has_children, kill_below
from headway.supervise.watch import STREAMS, Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

TIMED_OUT_EXIT = 124
CANCELLED_EXIT = 143
RETRY_SECONDS = 1.0
GIVE_UP_SECONDS = 10.0
# Only KILL ends a supervisor. These are blocked and not ignored, so that one which comes before the
# child has its own dispositions is kept for it.
BLOCKED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
CAUGHT_SIGNALS = (signal.SIGCHLD, signal.SIGUSR1)


class ParentFacts:
    """The facts that all supervisors of one parent share, read once."""

    __slots__ = ("boot_id", "cgroup_base")

    def __init__(self) -> None:
        self.boot_id = proc.boot_id()
        self.cgroup_base = cgroup.find_base()


def prepare_signals() -> None:
    """Take the dispositions of a supervisor; in the parent, so that none is ever without them."""
    proc.heed_ignored_signals()
    signal.pthread_sigmask(signal.SIG_SETMASK, BLOCKED)
    for sig in CAUGHT_SIGNALS:
        signal.signal(sig, _note_signal)


def supervise(folder: str, token: str, *, host: ParentFacts) -> None:
    """Run the claim, if it may still run. For a fresh process that exits when this returns."""
    wake_fd = _stand_alone()
    try:
        evidence = Evidence.kept_open(folder, token)
        lock = evidence.try_lock()
    except OSError:  # the claim was discarded, folder and all; or the host has no room to open it
        return
    if lock is None:
        return
    reach("supervisor.locked")
    if not evidence.may_start():
        return
    spec = evidence.read_spec()
    _limit_descriptors(spec.get("descriptors"))
    outcome = _Run(spec, evidence, host=host, lock=lock, wake_fd=wake_fd).outcome()
    if _write_outcome(evidence, outcome, lock=lock):
        _wake_worker(spec["worker"], token)


def _limit_descriptors(usual: int | None) -> None:
    """The worker allows itself many; its jobs get what is usual."""
    if usual is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(usual, hard), hard))


class _Run:
    """One claim under its lock, from the fork of the child to the outcome."""

    __slots__ = (
        "_evidence",
        "_host",
        "_lock",
        "_may_have_escaped",
        "_spec",
        "_started_at",
        "_tree",
        "_wake_fd",
    )

    def __init__(
        self,
        spec: dict[str, Any],
        evidence: Evidence,
        *,
        host: ParentFacts,
        lock: int,
        wake_fd: int,
    ) -> None:
        self._spec = spec
        self._evidence = evidence
        self._host = host
        self._lock = lock
        self._wake_fd = wake_fd
        self._may_have_escaped = False
        self._started_at = time.time_ns() // 1000
        base = host.cgroup_base if spec["cgroup"] == "auto" else None
        self._tree = Tree(None if base is None else cgroup.path_for(base, evidence.token))
        reach("supervisor.tree_made")

    def outcome(self) -> OutcomeRecord:
        try:
            command = child.Command(self._spec)
            main, pipes = self._fork(command)
        except child.SpawnError as failure:
            return self._not_started(failure)
        except OSError as error:
            return self._not_started(child.SpawnError(error.errno or 0, "fork"))
        try:
            self._record_start(main)
        except OSError as error:
            os.close(pipes.go_write)  # end of file: the child exits
            os.waitpid(main, 0)
            return self._not_started(child.SpawnError(error.errno or 0, "start record"))
        watch = Watch(
            self._spec,
            self._evidence,
            tree=self._tree,
            main=main,
            pipes=pipes,
            wake_fd=self._wake_fd,
            poked=self._start_wanted_worker,
        )
        _let_go(pipes)
        tree = watch.run(self._spec["leftovers"])
        if self._may_have_escaped and tree != "left":
            for pid, start in proc.processes_with_claim(self._evidence.token):
                proc.signal_process(pid, start, sig=signal.SIGKILL)
        reach("supervisor.child_ended")
        outcome = self._ended(watch, tree)
        asked = self._spec.get("verdict")  # of a success only where it is asked for always
        if asked and outcome.reason == "exited" and (outcome.exit_code or asked == "always"):
            outcome.verdict = self._evidence.read_verdict()
        if "products" in self._spec and outcome.reason == "exited" and outcome.exit_code == 0:
            products: list[str] = self._spec["products"]
            outcome.unmade = [each for each in products if not os.path.lexists(each)] or None
        if self._spec.get("outputs") and outcome.reason == "exited":
            outcome.outputs = self._evidence.seal_outputs()
        if "finish" in self._spec and outcome.reason != "spawn_error":
            outcome.patch = self._finish(self._spec["finish"], command.env)
            if tree == "gone":
                _end_all_below()
        return outcome

    def _finish(self, wanted: dict[str, Any], env: dict[bytes, bytes]) -> dict[str, Any]:
        """Have the patch of the command's worktree saved. The helper runs outside of the command's
        cgroup, so that a late check of the tree does not meet it. Its outcome does not change how
        the job ended."""
        try:
            self._evidence.make_sure_of_its_place()
            running = Helper(wanted, env, close=(self._lock,))
            reach("supervisor.finishing")
            ended = running.wait()
            if ended.code != 0:
                return {"saved": False, "error": ended.words()[:LONGEST_ERROR]}
            size = os.stat(f"{self._evidence.folder}/{wanted['file']}").st_size
        except OSError as error:
            return {"saved": False, "error": f"{error.strerror} ({wanted['file']})"}
        return {"saved": True, "bytes": size}

    def _start_wanted_worker(self) -> None:
        """A command inside the job found no worker. One that it started itself would be part of
        the job and end with it, so it is started from here, as a child of pid 1.

        While this process is no subreaper an orphan of the job may get away; where there is no
        cgroup it is found at the end by its environment.
        """
        try:
            wanted = self._evidence.take_worker_request()
        except OSError:
            return
        if wanted is None:
            return
        self._may_have_escaped = True
        proc.unset_child_subreaper()
        try:
            workerlock.autostart(wanted["lock"], wanted["argv"], wanted["environ"])
        except (OSError, KeyError, TypeError):
            return  # the next command asks again
        finally:
            proc.set_child_subreaper()

    def _fork(self, command: child.Command) -> tuple[int, child.Pipes]:
        pipes = child.Pipes()
        own = os.getpid()
        main = self._tree.fork()
        if main == 0:
            child.become_command(command, pipes, self._evidence, supervisor=own, lock=self._lock)
        pipes.close_child_ends()
        reach("supervisor.forked")
        return main, pipes

    def _record_start(self, main: int) -> None:
        own = os.getpid()
        self._evidence.write_started(
            Started(
                boot_id=self._host.boot_id,
                supervisor_pid=own,
                supervisor_start=proc.start_time(own) or 0,
                child_pid=main,
                child_start=proc.start_time(main) or 0,
                cgroup=self._tree.cgroup,
                started_at=self._started_at,
            )
        )

    def _not_started(self, failure: child.SpawnError) -> OutcomeRecord:
        _clear(self._tree)
        return OutcomeRecord(
            token=self._evidence.token,
            job=self._spec["job"],
            reason="spawn_error",
            errno=failure.code,
            error=failure.text,
            started_at=self._started_at,
            finished_at=time.time_ns() // 1000,
            usage={"user_seconds": 0.0, "system_seconds": 0.0, "max_rss_kb": 0},
            logs={name: {"bytes": 0, "dropped": 0} for name in STREAMS},
            tree="gone",
        )

    def _ended(self, watch: Watch, tree: str) -> OutcomeRecord:
        status = watch.wait_status or 0
        failure = watch.failure()
        died_of = _signal_name(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else None
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        if failure is not None:
            reason, code = "spawn_error", None
        elif watch.stopped_for is not None:
            reason = watch.stopped_for
            code = {"timed_out": TIMED_OUT_EXIT, "cancelled": CANCELLED_EXIT}.get(reason)
            died_of = {"cancelled": "SIGTERM", "log_full": "SIGKILL"}.get(reason, died_of)
        else:
            reason = "exited" if died_of is None else "signalled"
        return OutcomeRecord(
            token=self._evidence.token,
            job=self._spec["job"],
            reason=reason,
            exit_code=code,
            signal=died_of,
            wait_status=status,
            errno=failure[0] or None if failure is not None else None,
            error=(watch.silence() or watch.culprit()) if failure is None else failure[1],
            started_at=self._started_at,
            finished_at=watch.finished_at,
            usage=watch.usage,
            logs=watch.logs(),
            tree=tree,
            core_dumped=os.WCOREDUMP(status),
            changed=True if failure is not None and not failure[0] else None,
        )


def _stand_alone() -> int:
    """Become a process of its own; the descriptor to poll for signals."""
    # 0 to 2 are /dev/null in the parent, and it has few others.
    os.closerange(3, 64)
    wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    os.setsid()
    proc.set_child_subreaper()
    os.umask(0o077)
    return wake_read


def _clear(tree: Tree) -> None:
    """Nothing was started, so nothing is to be left. A child that was waited for may be in its
    cgroup for a moment longer."""
    give_up_at = time.monotonic() + GIVE_UP_SECONDS
    while not tree.is_gone() and time.monotonic() < give_up_at:
        tree.kill()
        if not has_children() or os.waitpid(-1, os.WNOHANG)[0] == 0:
            time.sleep(0.01)


def _end_all_below() -> None:
    """The command's own processes are gone: those left here were started to save its patch."""
    give_up_at = time.monotonic() + GIVE_UP_SECONDS
    while has_children() and time.monotonic() < give_up_at:
        kill_below(os.getpid())
        pid, _ = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            time.sleep(0.01)


def _note_signal(_signum: int, _frame: FrameType | None) -> None:
    """Nothing to do: the wakeup descriptor has already reported it."""


def _let_go(pipes: child.Pipes) -> None:
    try:
        os.write(pipes.go_write, b"!")
        reach("supervisor.go")
    except BrokenPipeError:  # the child has already reported why it cannot start
        return
    finally:
        os.close(pipes.go_write)


def _write_outcome(evidence: Evidence, outcome: OutcomeRecord, *, lock: int) -> bool:
    """Write it, for as long as it takes; False if the whole folder was deleted meanwhile."""
    while True:
        try:
            evidence.write_outcome(outcome)
        except OSError:
            if os.fstat(lock).st_nlink == 0:
                return False
            time.sleep(RETRY_SECONDS)
        else:
            return True


def _wake_worker(worker: dict[str, Any], token: str) -> None:
    """Send a hint that the claim ended; where that is wanted, start a worker if none receives
    it."""
    if worker["argv"] and not os.path.lexists(worker["stopped"]):
        _start_worker(worker)
    workerlock.wake(worker["socket"], b"ended " + token.encode())
    reach("supervisor.told")


def _start_worker(worker: dict[str, Any]) -> None:
    try:
        if workerlock.worker_is_there(worker["lock"]):
            return
        # The armed points are for this process, not for the worker after it.
        environ = {n: v for n, v in worker["environ"].items() if n != "HEADWAY_POINTS"}
        workerlock.autostart(worker["lock"], worker["argv"], environ)
    except OSError:  # the next command starts one
        return


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
