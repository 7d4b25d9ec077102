"""A child is in its claim's cgroup from its first instant, however it gets there."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headway.supervise import cgroup, kernel
from headway.supervise.tree import Tree


@pytest.fixture
def path() -> Iterator[str]:
    base = cgroup.find_base()
    assert base is not None, "this test needs a writable cgroup v2"
    made = cgroup.path_for(base, f"test-{os.getpid()}")
    yield made
    cgroup.remove(made)


def without_other_children(claim: Callable[[], bool]) -> bool:
    """Whether it holds in a process that has no children of other tests."""
    pid = os.fork()
    if pid == 0:
        held = False
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
