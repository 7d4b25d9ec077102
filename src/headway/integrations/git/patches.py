"""Writes down what a checkout holds against a commit: committed, staged, unstaged and untracked.

The user's index and object store stay as they are: everything happens in a copy of the index and in
a throw-away object folder beside the target. The patch is binary-safe, so `git apply` on the base
gives the same tree. It appears whole or not at all.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress

from headway.base.programs import run_program
from headway.integrations.git import layout
from headway.integrations.git.program import GitError, ask, failed, is_oid, run, start, too_slow

LIMIT_BYTES = 64 * 1024 * 1024
PATCH_SECONDS = 600.0
# Contents that are added are compressed at best so far; more is refused before anything is copied.
_MOST_COMPRESSION = 8
_ADD = (
    *("-c", "core.safecrlf=false"),
    *("-c", "core.splitIndex=false"),
    *("-c", "advice.addEmbeddedRepo=false"),
    *("add", "--all"),
)
_DIFF = (
    *("diff-index", "--cached", "--patch", "--binary", "--full-index", "--no-color"),
    *("--no-ext-diff", "--no-textconv", "--no-renames"),
)


def save_patch(
    root: str,
    base_oid: str,
    to_path: str,
    limit_bytes: int = LIMIT_BYTES,
    *,
    git_dir: str | None = None,
    timeout: float = PATCH_SECONDS,
) -> int:
    """Write the difference between the commit and what is there now; how many bytes it has.

    With `git_dir` the checkout's own `.git` is not needed: it may be broken.
    """
    if not is_oid(base_oid):
        raise GitError(f"{base_oid!r} is not the full name of a commit")
    top = os.path.realpath(root) if git_dir else layout.repository_of(root)
    if top is None:
        raise GitError(f"{root} is not in a git repository: there is no patch to save")
    git_dir = git_dir or layout.git_dir_of(top)
    work = f"{to_path}.making"
    _clear(work)  # of a run that was killed
    try:
        os.mkdir(work, 0o700)
        environ = _apart(top, git_dir, work, base_oid, timeout)
        _check_size(top, environ, limit_bytes, timeout)
        ask(top, *_ADD, environ=environ, timeout=timeout, writes=True)
        size = _write(top, environ, base_oid, os.path.join(work, "patch"), limit_bytes, timeout)
        os.rename(os.path.join(work, "patch"), to_path)
        _sync(os.path.dirname(to_path))
        return size
    except OSError as error:
        raise GitError(
            f"the patch of {root} cannot be saved at {to_path}: {error.strerror}; make room or"
            " correct its rights",
            errno=error.errno,
        ) from None
    finally:
        _clear(work)


def base_of(root: str) -> str:
    """The base of a later patch: the commit that is checked out. In a repository without commits it
    is the empty tree, which every repository knows."""
    top = layout.repository_of(root)
    if top is None:
        raise GitError(f"{root} is not in a git repository: there is no commit to start from")
    head = run(top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if head.code == 0:
        return head.lines[0]
    return ask(top, "hash-object", "-t", "tree", "--stdin", input=b"").lines[0]


def at(git_dir: str, path: str) -> dict[str, str]:
    """Names a checkout to git in so many words, so that nothing is read from its `.git` file."""
    return {"GIT_DIR": git_dir, "GIT_WORK_TREE": path}


def _apart(top: str, git_dir: str, work: str, base: str, timeout: float) -> Mapping[str, str]:
    """The variables that make git write into `work` only, with a copy of the index there."""
    objects = os.path.join(work, "objects")
    index = os.path.join(work, "index")
    os.mkdir(objects, 0o700)
    shared = layout.read_small(os.path.join(git_dir, "commondir"))
    common = os.path.realpath(os.path.join(git_dir, shared.strip())) if shared else git_dir
    environ = {
        **at(git_dir, top),
        "GIT_INDEX_FILE": index,
        "GIT_OBJECT_DIRECTORY": objects,
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(os.path.join(common, "objects")),
    }
    try:
        # With its time, by which git knows which files may have changed since without a trace.
        shutil.copy2(os.path.join(git_dir, "index"), index)
    except FileNotFoundError:
        ask(top, "read-tree", base, environ=environ, timeout=timeout, writes=True)
    return environ


def _quoted(path: str) -> str:
    """As git reads a list of folders, in which a colon separates."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _check_size(top: str, environ: Mapping[str, str], limit: int, timeout: float) -> None:
    answer = ask(
        top, "ls-files", "--others", "--exclude-standard", "-z", environ=environ, timeout=timeout
    )
    total = 0
    for name in answer.out.split(b"\0"):
        with suppress(OSError):
            total += os.lstat(os.path.join(os.fsencode(top), name)).st_size if name else 0
    if total > limit * _MOST_COMPRESSION:
        raise _too_big(top, limit)


def _write(
    top: str, environ: Mapping[str, str], base: str, file: str, limit: int, timeout: float
) -> int:
    import resource

    args = (*_DIFF, base, "--")
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def begin(given: int, out: int, err: int) -> subprocess.Popen[bytes]:
        process = start(top, args, environ=environ, stdin=given, stdout=fd, stderr=err)
        # The kernel ends the writer at one byte more than is allowed.
        with suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit + 1, limit + 1))
        return process

    try:
        result = run_program(begin, timeout, politely=True)
        if result is None:
            raise too_slow(top, args, timeout)
        size = os.fstat(fd).st_size
        if size > limit:
            raise _too_big(top, limit)
        if result.code != 0:
            raise failed(top, args, result.code, result.err.decode(errors="replace"))
        os.fsync(fd)
        return size
    finally:
        os.close(fd)


def _too_big(top: str, limit: int) -> GitError:
    return GitError(
        f"the patch of {top} would be larger than {limit} bytes and was not saved; remove or ignore"
        " large files"
    )


def _clear(work: str) -> None:
    if os.path.islink(work):
        os.unlink(work)
    shutil.rmtree(work, ignore_errors=True)


def _sync(folder: str) -> None:
    fd = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
