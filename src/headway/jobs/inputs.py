"""What a job reads as its standard input, where the submitter gave the content and not a file.

The content is a file, `stdin`, in the folder of the first job of the chain. Its retries read the
same file, and gc removes it with the folder. It is synced before the commit of the job. A submitter
that dies between the two leaves a folder without a job, which the next job gets, or a temporary
file, which the janitor removes.
"""

import errno
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from headway.base.crashpoints import reach
from headway.base.errors import HeadwayError, InvalidInputError, StoreError, StoreFullError
from headway.base.home import Home
from headway.core.model import JobId, JobSpec
from headway.jobs.request import Request
from headway.supervise.folder import Folder, make_folder, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from headway.jobs.insert import Submitted
    from headway.store.store import Store

MOST_INPUT = 64 << 20
NAME = "stdin"
TEMPORARY = "stdin."
ABANDONED_AFTER = 3600.0  # seconds; to write one takes less


def described(request: Request) -> dict[str, Any] | None:
    """The content as a job's parameters name it; None if there is none, or nothing in it."""
    content = request.input
    if not content:
        return None
    if request.stdin is not None:
        raise InvalidInputError("give a file to read or its content, not both")
    if request.any_host:
        raise InvalidInputError(
            "the content of stdin is kept on this host, so --any-host cannot have it; "
            "use --stdin FILE, with a file that all hosts have"
        )
    refuse_too_large(len(content))
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def refuse_too_large(size: int) -> None:
    if size > MOST_INPUT:
        raise InvalidInputError(
            "stdin is larger than 64 MiB, which is the most that is kept; "
            "write it to a file and use --stdin FILE"
        )


def kept_input(home: Home, params: Mapping[str, Any], chain: JobId) -> str | None:
    """The file that a job of this chain reads; None if no content was given."""
    return os.path.join(home.job(chain), NAME) if "input" in params else None


@contextmanager
def kept_inputs(
    store: "Store", home: Home, contents: Sequence[bytes | None]
) -> "Iterator[Callable[[Sequence[Submitted]], None]]":
    """Write the contents, one for each job or None, and give the verb that places them.

    Call the verb as the last act of the transaction that adds the jobs. It may be called again,
    with other jobs, when the transaction begins anew. What was placed for a job that was not added
    is taken back.
    """
    files = _NewInputs(home, contents)
    try:
        files.write()
        yield files.place
    except BaseException:
        files.take_back(store)
        raise
    finally:
        files.close()


def contents_of(specs: Sequence[JobSpec], requests: Sequence[Request]) -> list[bytes | None]:
    """For each specification the content to keep."""
    found = {_sha256(each.input): each.input for each in requests if each.input}
    return [found.get(each.params.get("input", {}).get("sha256")) for each in specs]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def remove_abandoned(home: Home, now_seconds: float) -> None:
    """Remove temporary files of submitters that died over them."""
    with os.scandir(home.run) as entries:
        for entry in entries:
            if not (entry.name.startswith(TEMPORARY) and entry.name.endswith(".tmp")):
                continue
            with suppress(FileNotFoundError):
                if entry.stat(follow_symlinks=False).st_mtime < now_seconds - ABANDONED_AFTER:
                    os.unlink(entry.path)


class _NewInputs:
    """The files of one submission: temporary ones, and those that have their place."""

    def __init__(self, home: Home, contents: Sequence[bytes | None]) -> None:
        self._home = home
        self._contents = contents
        self._written: dict[int, str] = {}
        self._placed: list[JobId] = []

    def write(self) -> None:
        """Before the transaction: to sync 64 MiB takes long, and nobody else could write."""
        for at, content in enumerate(self._contents):
            if content is not None and at not in self._written:
                self._written[at] = self._write(content)

    def place(self, submitted: "Sequence[Submitted]") -> None:
        self.write()  # once more, if an earlier transaction was undone
        for at, each in enumerate(submitted):
            if at in self._written and each.created:
                self._place(self._written.pop(at), each.job_id)

    def take_back(self, store: "Store") -> None:
        """Remove what was placed for jobs that are not there. Only a writer places files, and this
        one keeps others out meanwhile; where that fails, the next job of the number gets the
        folder."""
        if not self._placed:
            return
        with suppress(HeadwayError), store.write() as tx:
            known = tx.jobs.by_id(self._placed)
            for job_id in self._placed:
                if job_id not in known:
                    with suppress(OSError):
                        os.unlink(os.path.join(self._home.job(job_id), NAME))
                        os.rmdir(self._home.job(job_id))

    def close(self) -> None:
        for path in self._written.values():
            with suppress(FileNotFoundError):
                os.unlink(path)

    def _write(self, content: bytes) -> str:
        path = os.path.join(self._home.run, f"{TEMPORARY}{os.urandom(8).hex()}.tmp")
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(path, flags, 0o600)
            try:
                write_all(fd, content)
                os.fsync(fd)
                reach("inputs.written")
            finally:
                os.close(fd)
        except OSError as error:
            with suppress(FileNotFoundError):
                os.unlink(path)
            raise _trouble(path, error) from error
        return path

    def _place(self, path: str, job_id: JobId) -> None:
        folder = self._home.job(job_id)
        self._placed.append(job_id)
        try:
            made = make_folder(folder)
            with Folder(folder) as opened:
                os.rename(path, NAME, dst_dir_fd=opened.fd)
                reach("inputs.placed")
                os.fsync(opened.fd)
            if made:
                with Folder(self._home.jobs) as above:
                    os.fsync(above.fd)
            reach("inputs.synced")
        except OSError as error:
            raise _trouble(os.path.join(folder, NAME), error) from error


def _trouble(path: str, error: OSError) -> StoreError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    kind = StoreFullError if full else StoreError
    return kind(f"cannot keep stdin in {path}: {error.strerror}; nothing was submitted")
