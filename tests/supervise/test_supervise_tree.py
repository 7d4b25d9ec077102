"""A child is in its claim's cgroup from its first instant, and a whole tree hears of its end."""

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from supervised import wait_for

from headway.base import kernel, proc
from headway.supervise import cgroup
from headway.supervise.tree import Tree
from headway.supervise.watch import Watch


@pytest.fixture
def path() -> Iterator[str]:
    base = cgroup.find_base()
    assert base is not None, "this test needs a writable cgroup v2"
    made = cgroup.path_for(base, f"test-{os.getpid()}")
    yield made
    cgroup.kill(made)
    wait_for(lambda: cgroup.remove(made))


def without_other_children(claim: Callable[[], bool]) -> bool:
    """Whether it holds, within a minute, in a process that has no children of other tests."""
    pid = os.fork()
    if pid == 0:
        held = False
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        try:
            held = claim()
        finally:
            os._exit(0 if held else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def own_cgroup() -> bytes:
    return Path("/proc/self/cgroup").read_bytes()


def child_of(tree: Tree) -> tuple[int, int, bytes]:
    """Fork, and hear from the child where it found itself once it was let go."""
    go_read, go_write = os.pipe()
    read, write = os.pipe()
    pid = tree.fork()
    if pid == 0:
        try:
            os.read(go_read, 1)
            os.write(write, own_cgroup())
        finally:
            os._exit(7)
    os.write(go_write, b"!")
    found = os.read(read, 4096)
    _, status = os.waitpid(pid, 0)
    for fd in (go_read, go_write, read, write):
        os.close(fd)
    return pid, os.waitstatus_to_exitcode(status), found


@pytest.mark.root
@pytest.mark.parametrize("kernel_is", ["new", "old"])
def test_a_child_is_in_the_cgroup(
    path: str, kernel_is: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def claim() -> bool:
        if kernel_is == "old":
            monkeypatch.setattr(kernel, "_CLONE3", 9999)  # as before Linux 5.3: no such call
        else:
            monkeypatch.setattr(os, "fork", None)  # it is not needed
        tree = Tree(path)
        _, exit_code, found = child_of(tree)
        assert exit_code == 7 and os.path.basename(path).encode() in found
        return tree.cgroup == path and tree.is_gone() and not os.path.exists(path)

    assert without_other_children(claim)


def test_without_a_cgroup_it_is_a_plain_fork() -> None:
    _, exit_code, found = child_of(Tree(None))
    assert exit_code == 7 and found == own_cgroup()


def test_what_is_no_cgroup_makes_no_child(tmp_path: Path) -> None:
    def claim() -> bool:
        with pytest.raises(OSError, match=r"Bad file descriptor|Invalid"):
            kernel.fork_into(str(tmp_path))
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        return os.getpid() == int(Path("/proc/self/stat").read_text().split()[0])

    assert without_other_children(claim)


def test_a_prctl_that_the_kernel_refuses_is_an_error() -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        kernel.prctl(1, 9999)  # no such signal


def forest(tree: Tree, size: int) -> list[int]:
    """Children of this process that do nothing until they are signalled."""
    made = []
    for _ in range(size):
        pid = tree.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            while True:
                signal.pause()
        made.append(pid)
    return made


def died_of(pids: list[int]) -> set[int]:
    return {os.WTERMSIG(os.waitpid(pid, 0)[1]) for pid in pids}


def leave_descriptors(free: int) -> None:
    """Let this process open so many more, wherever gaps are among those that it has."""
    lowest = os.dup(0)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 50, hard))
    taken = [lowest]
    with suppress(OSError):
        while True:
            taken.append(os.dup(0))
    for fd in taken[-free:]:
        os.close(fd)


@pytest.mark.root
@pytest.mark.parametrize("at_once", [500, 7])
def test_a_whole_tree_is_asked_with_a_few_looks_at_its_list(  # fault B2
    path: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One look for each process took 20 s for two thousand of them."""

    def claim() -> bool:
        tree = Tree(path)
        pids = forest(tree, 30)
        os.kill(pids[3], signal.SIGSTOP)
        looks, pids_of = [], cgroup._pids
        monkeypatch.setattr(cgroup, "AT_ONCE", at_once)
        monkeypatch.setattr(cgroup, "_pids", lambda path: looks.append(path) or pids_of(path))  # type: ignore[func-returns-value]
        tree.terminate()
        assert died_of(pids) == {signal.SIGTERM}, "the stopped one, too"
        return len(looks) == 1 + -(-30 // at_once)

    assert without_other_children(claim)


@pytest.mark.root
@pytest.mark.parametrize("free", [2, 3, 4, 5, 11, 12, 13])
def test_a_whole_tree_is_asked_with_few_descriptors(path: str, free: int) -> None:
    def claim() -> bool:
        tree = Tree(path)
        pids = forest(tree, 12)
        leave_descriptors(free)
        before = os.listdir("/proc/self/fd")
        tree.terminate()
        assert os.listdir("/proc/self/fd") == before, "none is kept"
        return died_of(pids) == {signal.SIGTERM}

    assert without_other_children(claim)


@pytest.mark.root
def test_a_number_that_became_a_strangers_is_not_signalled(  # fault B9
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def claim() -> bool:
        mine, stranger = forest(Tree(path), 1)[0], forest(Tree(None), 1)[0]
        pids_of = cgroup._pids
        lists = iter([[mine, stranger]])  # as it was read before the number was given away
        monkeypatch.setattr(cgroup, "_pids", lambda path: next(lists, None) or pids_of(path))
        cgroup.signal_all(path, signal.SIGTERM)
        assert died_of([mine]) == {signal.SIGTERM}
        assert proc.start_time(stranger) is not None
        os.kill(stranger, signal.SIGKILL)
        return died_of([stranger]) == {signal.SIGKILL}

    assert without_other_children(claim)


def test_without_a_cgroup_a_whole_tree_is_asked_and_then_killed() -> None:
    def claim() -> bool:
        tree = Tree(None)
        proc.set_child_subreaper()
        pids = forest(tree, 20)
        os.kill(pids[3], signal.SIGSTOP)
        tree.terminate()
        assert died_of(pids) == {signal.SIGTERM}
        pids = forest(tree, 20)
        tree.kill()
        return died_of(pids) == {signal.SIGKILL} and tree.is_gone()

    assert without_other_children(claim)


def test_processes_that_fork_all_the_time_are_killed() -> None:  # fault B2
    def claim() -> bool:
        tree = Tree(None)
        proc.set_child_subreaper()
        for _ in range(4):
            if os.fork() == 0:
                while True:  # each is gone as soon as it has a child of its own
                    if os.fork() != 0:
                        os._exit(0)

        def gone() -> bool:
            tree.kill()
            while not tree.is_gone():
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    return False
            return True

        wait_for(gone)
        return True

    assert without_other_children(claim)


def test_the_grace_begins_when_the_first_is_asked() -> None:
    """To ask thousands takes its time, which is not added to what they were promised."""

    class Slow:
        def terminate(self) -> None:
            known.append(watch._kill_at)

    known: list[float] = []
    watch = object.__new__(Watch)
    watch._settled, watch._kill_at, watch.wait_status = False, float("inf"), None
    watch._main, watch._grace_seconds = -1, 5.0
    watch._tree = Slow()  # type: ignore[assignment]
    before = time.monotonic()
    watch._stop("cancelled")
    assert before + 5.0 <= known[0] <= time.monotonic() + 5.0
    assert watch._kill_at == known[0]
