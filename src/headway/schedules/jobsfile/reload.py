"""Notice that the jobs file of a home is another one, and read it in the background."""

import hashlib
import os
from typing import Any, NamedTuple

from headway.base.background import Background
from headway.base.clock import Clock
from headway.base.errors import HeadwayError, NotFoundError
from headway.base.trust import is_trusted
from headway.schedules.jobsfile.model import FILE, Entry

LOOK_EVERY = 1.0
READ = "read"


class Read(NamedTuple):
    """A jobs file with its entries, or with all that is wrong with it. No file has no entries, and
    an empty digest."""

    digest: str = ""
    entries: tuple[Entry, ...] = ()
    problems: tuple[dict[str, Any], ...] = ()


class Noticing:
    """Checks the file's inode once a second, and reads the file only if that has changed. In a
    folder that is not trusted the file does not count."""

    def __init__(self, folder: str, clock: Clock, background: Background) -> None:
        self._folder = folder
        self._path = os.path.join(folder, FILE)
        self._clock = clock
        self._background = background
        self._next = clock.monotonic()
        self._seen: object = self  # equal to no stat of a file

    def look(self) -> bool:
        """Whether another file was read since the last one was taken over."""
        now = self._clock.monotonic()
        if now >= self._next and not self._background.busy(READ):
            self._next = now + LOOK_EVERY
            seen = self._identity()
            if seen != self._seen:
                self._seen = seen
                if seen is None:
                    self._background.give(READ, Read())
                else:
                    self._background.start(READ, lambda: read(self._path))
        return self._background.ready(READ)

    def _identity(self) -> object:
        try:
            status = os.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return error.errno
        if not is_trusted(self._folder):
            return None
        changed = (status.st_mtime_ns, status.st_ctime_ns)  # the latter when it becomes readable
        return (*changed, status.st_size, status.st_ino, status.st_dev)


def read(path: str) -> Read:
    """Read the file as it is; a read error is a problem like any other."""
    from headway.schedules.jobsfile.reader import JobsFileError, file_content, read_jobs_file

    try:
        content = file_content(path)
    except NotFoundError:
        return Read()
    except HeadwayError as error:
        return Read(f"unreadable: {error}"[:200], problems=_problem(str(error)))
    digest = hashlib.sha256(content).hexdigest()
    try:
        return Read(digest, tuple(read_jobs_file(content)))
    except JobsFileError as error:
        return Read(digest, problems=tuple(each.document() for each in error.problems))
    except Exception as error:  # a file that the reader cannot cope with must not stop a worker
        return Read(digest, problems=_problem(f"unexpected {type(error).__name__}: {error}"))


def _problem(text: str) -> tuple[dict[str, Any], ...]:
    return ({"line": 0, "key": "", "text": text},)
