"""A small JSON file that only its owner may read: secrets that must be in no store and no backup.

Its folder has mode 0700, the file 0600. With any other mode or owner nothing is read or written: it
may be known to others by now. A writer reads it again under a lock and renames a new file into its
place, so readers find it whole.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from headway.base.errors import StoreError
from headway.base.whole_file import PRIVATE, write_whole

LARGEST = 1 << 20


class PrivateFile:
    """One such file. Each read gives the whole document, an empty one while there is no file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._folder = os.path.dirname(path)

    def read(self) -> dict[str, Any]:
        try:
            self._check(os.lstat(self._folder), self._folder, 0o700)
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}") from None
        with open(fd, "rb") as file:
            self._check(os.fstat(fd), self.path, PRIVATE)
            content = file.read(LARGEST + 1)
        try:
            document = json.loads(content)
        except ValueError:
            document = None
        if not isinstance(document, dict) or len(content) > LARGEST:
            raise StoreError(f"{self.path} is damaged; move it away, and make its contents anew")
        return document

    def stamp(self) -> tuple[int, ...]:
        """Another one whenever the file was changed."""
        try:
            found = os.lstat(self.path)
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    @contextmanager
    def changing(self) -> Iterator[dict[str, Any]]:
        """The document, while nobody else changes it; what it is by the end is written, unless an
        error ends the block."""
        try:
            with suppress(FileExistsError):
                os.mkdir(self._folder, 0o700)
            lock = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise StoreError(f"{self._folder} cannot be made: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            document = self.read()
            before = json.dumps(document)
            yield document
            if json.dumps(document) != before:
                self._write(document)
                os.fsync(lock)  # of the folder: a revocation must outlive a loss of power
        finally:
            os.close(lock)

    def _write(self, document: dict[str, Any]) -> None:
        try:
            write_whole(self.path, json.dumps(document, indent=1) + "\n")
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}") from None

    @staticmethod
    def _check(found: os.stat_result, path: str, mode: int) -> None:
        if found.st_uid != os.geteuid():
            raise StoreError(f"{path} belongs to user {found.st_uid}, not to you; move it away")
        if stat.S_IMODE(found.st_mode) != mode:
            raise StoreError(
                f"{path} has mode {stat.S_IMODE(found.st_mode):04o}, so others may know it; make "
                f"its contents anew, then chmod {mode:04o} {path}"
            )
