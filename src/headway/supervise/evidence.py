"""The files that say what became of one claim (docs/protocols.md, sections 1, 2 and 5).

Every name carries the claim's token, and a file of another token is never evidence. The lock alone
says whether a supervisor lives; the holder of the lock judges the files.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import zlib

from headway.base.crashpoints import reach
from headway.supervise.folder import Folder, UnsafeFolder, make_folder, write_all
from headway.supervise.records import OutcomeRecord, Started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["Evidence", "OutcomeRecord", "Started", "UnsafeFolder"]

# Larger than any outcome, so that a disk which the job filled still has room for it.
RESERVED_BYTES = 16 * 1024
LARGEST_VERDICT = 64 * 1024
LARGEST_OUTPUTS = 1 << 20
LONGEST_ERROR = 1000  # the outcome must fit into what is reserved for it


class Evidence:
    """The evidence of one claim: `folder` is the job's folder, `token` the claim's."""

    def __init__(self, folder: str, token: str) -> None:
        self.folder = folder
        self.token = token
        self._kept: Folder | None = None
        self._path = folder

    @classmethod
    def kept_open(cls, folder: str, token: str) -> Evidence:
        """For a process that lives with this one claim: the folder is opened once, and stays the
        same one when the home is moved."""
        kept = Folder(folder, kept=True)
        evidence = cls(f"/proc/self/fd/{kept.fd}/.", token)
        evidence._kept = kept
        evidence._path = folder
        return evidence

    def make_sure_of_its_place(self) -> None:
        """Make sure that the folder's path leads to this very folder, and to no other."""
        with Folder(self._path) as found, self._open() as own:
            if not os.path.sameopenfile(found.fd, own.fd):
                raise UnsafeFolder(errno.EPERM, "another folder is in its place", self._path)

    def _open(self) -> Folder:
        return self._kept or Folder(self.folder)

    @property
    def claim(self) -> str:
        return f"{self.folder}/claim.{self.token}"

    @property
    def lock(self) -> str:
        return f"{self.folder}/lock.{self.token}"

    @property
    def void(self) -> str:
        return f"{self.folder}/void.{self.token}"

    @property
    def started(self) -> str:
        return f"{self.folder}/started.{self.token}"

    @property
    def cancel(self) -> str:
        return f"{self.folder}/cancel.{self.token}"

    @property
    def outcome(self) -> str:
        return f"{self.folder}/outcome.{self.token}.json"

    @property
    def outcome_tmp(self) -> str:
        return f"{self.folder}/outcome.{self.token}.tmp"

    def prepare(self, spec: dict[str, Any]) -> None:
        """Make the claim's files before it commits; on failure nothing of this token stays."""
        made = make_folder(self.folder)
        try:
            with self._open() as folder:
                folder.create(f"claim.{self.token}", json.dumps(spec).encode())
                reach("evidence.claim_made")
                tmp = folder.open(f"outcome.{self.token}.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                try:
                    os.posix_fallocate(tmp, 0, RESERVED_BYTES)
                finally:
                    os.close(tmp)
        except (FileExistsError, UnsafeFolder):  # not ours to remove
            raise
        except OSError:
            self._remove_files()
            if made:
                _remove_if_empty(self.folder)
            raise
        reach("evidence.prepared")

    def discard(self) -> None:
        """Remove the files of a claim that did not commit."""
        self._remove_files()
        _remove_if_empty(self.folder)
        reach("evidence.discarded")

    def shed(self) -> None:
        """After an undoing: keep what forbids a late start, drop what only a start needs."""
        with self._open() as folder:
            folder.remove(f"claim.{self.token}")
            folder.remove(f"outcome.{self.token}.tmp")
        reach("evidence.shed")

    def exists(self) -> bool:
        return self._has(f"claim.{self.token}")

    def read_spec(self) -> dict[str, Any]:
        with self._open() as folder:
            spec: dict[str, Any] = json.loads(folder.read(f"claim.{self.token}"))
        return spec

    def may_start(self) -> bool:
        """Under the lock: nobody undid, cancelled, started or ended this claim."""
        token = self.token
        with self._open() as folder:
            names = (
                f"void.{token}",
                f"cancel.{token}",
                f"started.{token}",
                f"outcome.{token}.json",
            )
            return not any(folder.has(name) for name in names)

    def read_started(self) -> Started | None:
        content = self._read(f"started.{self.token}")
        return None if content is None else Started.from_json(content)

    def write_started(self, started: Started) -> None:
        """Record the start. Not synced: kill -9 keeps the page cache, boot ids reveal a reboot."""
        with self._open() as folder:
            tmp = folder.open(f"started.{self.token}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try:
                write_all(tmp, started.to_json())
            finally:
                os.close(tmp)
            folder.rename(f"started.{self.token}.tmp", f"started.{self.token}")
        reach("supervisor.started")

    def mark_prepared(self) -> None:
        """By the child: what has to be done before the command has been done."""
        with self._open() as folder:
            folder.touch(f"prepared.{self.token}")
        reach("child.prepared")

    def has_begun(self) -> bool:
        """Whether the host could start it, with all that had to be done first."""
        if self.read_started() is None:
            return False
        return not self._wants("prepare", "check") or self._has(f"prepared.{self.token}")

    def is_checking(self) -> bool:
        """Whether it is still to be checked that it may start."""
        return self._wants("check") and not self._has(f"prepared.{self.token}")

    def _wants(self, *steps: str) -> bool:
        """Whether one of these comes before the command. If the file is damaged, only the mark that
        all of them are done shows it."""
        try:
            spec = json.loads(self._read(f"claim.{self.token}") or b"{}")
            return any(step in spec for step in steps)
        except (ValueError, TypeError, RecursionError):
            return True

    def read_outcome(self) -> OutcomeRecord | None:
        """The claim's outcome; torn, damaged or foreign is none."""
        content = self._read(f"outcome.{self.token}.json")
        return None if content is None else OutcomeRecord.from_json(content, token=self.token)

    def write_outcome(self, outcome: OutcomeRecord) -> None:
        """Make the outcome durable: into the reserved blocks, fsync, rename, fsync the folder."""
        content = outcome.to_json()
        with self._open() as folder:
            # Without O_TRUNC, which would give the reserved blocks back to a full disk.
            tmp = folder.open(f"outcome.{self.token}.tmp", os.O_WRONLY | os.O_CREAT)
            try:
                write_all(tmp, content)
                os.ftruncate(tmp, len(content))
                os.fsync(tmp)
            finally:
                os.close(tmp)
            reach("supervisor.outcome_written")
            folder.rename(f"outcome.{self.token}.tmp", f"outcome.{self.token}.json")
            reach("supervisor.outcome_renamed")
            os.fsync(folder.fd)
        reach("supervisor.outcome_synced")

    def link_outcome(self) -> None:
        """Make `outcome.json` stand for this claim's outcome, unless one is already there."""
        with self._open() as folder:
            try:
                os.link(
                    f"outcome.{self.token}.json",
                    "outcome.json",
                    src_dir_fd=folder.fd,
                    dst_dir_fd=folder.fd,
                    follow_symlinks=False,
                )
            except FileExistsError:
                return
        reach("evidence.outcome_linked")

    def is_void(self) -> bool:
        return self._has(f"void.{self.token}")

    def make_void(self) -> None:
        """Say that this claim never ran and never will; only under its lock."""
        with self._open() as folder:
            folder.touch(f"void.{self.token}")
        reach("evidence.voided")

    def is_cancelled(self) -> bool:
        return self._has(f"cancel.{self.token}")

    def request_cancel(self) -> None:
        with self._open() as folder:
            folder.touch(f"cancel.{self.token}")
        reach("evidence.cancel_requested")

    def read_crash(self) -> str | None:
        """The last words of a supervisor that failed itself."""
        content = self._read(f"crash.{self.token}")
        lines = (content or b"").decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else None

    def ask_for_worker(self, request: Mapping[str, Any]) -> None:
        """From inside the job: have its supervisor start a worker that is no part of the job."""
        with self._open() as folder:
            name = f"wanted.{self.token}"
            folder.create(f"{name}.{os.getpid()}.tmp", json.dumps(dict(request)).encode())
            folder.rename(f"{name}.{os.getpid()}.tmp", name)
        reach("evidence.worker_wanted")

    def take_worker_request(self) -> dict[str, Any] | None:
        """The request that the job left since the last call, if any."""
        content = self._read(f"wanted.{self.token}")
        if content is None:
            return None
        with self._open() as folder:
            folder.remove(f"wanted.{self.token}")
        reach("supervisor.request_taken")
        try:
            request = json.loads(content)
        except ValueError:
            return None
        return request if isinstance(request, dict) else None

    def read_verdict(self) -> dict[str, Any] | None:
        """Why the main process failed, in its own words, if it left any: `error` and `classes`."""
        try:
            with self._open() as folder:
                verdict = json.loads(folder.read(f"verdict.{self.token}", most=LARGEST_VERDICT))
            error, classes = verdict["error"], verdict["classes"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        if not isinstance(error, str) or not isinstance(classes, list):
            return None
        words = [str(each)[:64] for each in classes[:8]]
        return {"error": error[:LONGEST_ERROR], "classes": words, **_parks(verdict)}

    @property
    def outputs(self) -> str:
        """Where a node of a workflow writes what it sets."""
        return f"{self.folder}/outputs.{self.token}"

    def seal_outputs(self) -> dict[str, int] | None:
        """Make the outputs durable before the outcome that counts on them. Their size and checksum;
        None if there are none. Whatever is in their place, it fails nobody but the node."""
        try:
            fd = self._open_outputs()
        except FileNotFoundError:
            return None
        except OSError:
            return dict(_UNREADABLE)
        try:
            os.fsync(fd)
            reach("node.outputs")
            content = _read_some(fd, LARGEST_OUTPUTS + 1)
        except OSError:
            return dict(_UNREADABLE)
        finally:
            os.close(fd)
        return {"bytes": len(content), "crc": zlib.crc32(content)}

    def read_outputs(self, sealed: Mapping[str, int]) -> bytes | None:
        """What was sealed so; None if it is gone, or is not that any more. There is one byte more
        than there may be where they are too large."""
        try:
            fd = self._open_outputs()
        except OSError:
            return None
        try:
            content = _read_some(fd, LARGEST_OUTPUTS + 1)
        except OSError:
            return None
        finally:
            os.close(fd)
        same = len(content) == sealed.get("bytes") and zlib.crc32(content) == sealed.get("crc")
        return content if same else None

    def _open_outputs(self) -> int:
        with self._open() as folder:
            return folder.open(f"outputs.{self.token}", os.O_RDONLY)

    def try_lock(self) -> int | None:
        """The lock as a descriptor, or None if busy; it is free when the descriptor is closed."""
        with self._open() as folder:
            fd = folder.open(f"lock.{self.token}", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _has(self, name: str) -> bool:
        try:
            with self._open() as folder:
                return folder.has(name)
        except FileNotFoundError:
            return False

    def _read(self, name: str) -> bytes | None:
        try:
            with self._open() as folder:
                return folder.read(name)
        except FileNotFoundError:
            return None

    def _remove_files(self) -> None:
        token = self.token
        try:
            with self._open() as folder:
                for name in (
                    *("claim", "lock", "void", "started", "prepared"),
                    *("cancel", "wanted", "crash", "verdict", "outputs"),
                ):
                    folder.remove(f"{name}.{token}")
                for name in (f"started.{token}.tmp", f"outcome.{token}.tmp"):
                    folder.remove(name)
                folder.remove(f"outcome.{token}.json")
        except FileNotFoundError:
            return


def _parks(verdict: dict[str, Any]) -> dict[str, Any]:
    """What an agent says that holds for all of its runner, if it does."""
    why, again_at, session = (verdict.get(key) for key in ("parks", "again_at", "session_id"))
    if why not in ("limit", "auth"):
        return {}
    return {
        "parks": why,
        "again_at": again_at if isinstance(again_at, int) else None,
        "session_id": session[:200] if isinstance(session, str) else None,
    }


_UNREADABLE = {"bytes": -1, "crc": 0}


def _read_some(fd: int, most: int) -> bytes:
    content = b""
    while len(content) < most and (more := os.read(fd, most - len(content))):
        content += more
    return content


def _remove_if_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        return
