"""What `exec` and `submit --stdin -` read for the job: all of stdin, kept with it.

`exec` reads a pipe or a file, as ssh does, and so a loop over lines loses its input to it unless
`< /dev/null` stands there. `submit` reads nothing unless it is asked to.
"""

import os
import stat
import sys

from headway.cli.options import asks_for_stdin
from headway.cli.render import say
from headway.jobs.request import Request

CHUNK_BYTES = 1 << 20
PATIENCE = 1.0  # seconds of silence; then one likes to know what is waited for
_STDIN = 0


def is_kept(request: Request) -> bool:
    """Whether `exec` reads stdin for this job. Says so where it does not, and something is lost."""
    if request.stdin is not None:
        return asks_for_stdin(request)
    kind = _kind()
    if kind is None:
        return False
    reason = _reason_to_drop(request, kind)
    if reason is None:
        return True
    if _has_content(kind):
        say(f"stdin is dropped: {reason}")
    return False


def read(request: Request) -> Request:
    """The request with all that stdin has; raises InvalidInputError when that is too much."""
    from headway.jobs.inputs import refuse_too_large

    chunks, size = [], 0
    for chunk in iter(_Source().read, b""):
        chunks.append(chunk)
        size += len(chunk)
        refuse_too_large(size)
    return request._replace(stdin=None, input=b"".join(chunks))


def _kind() -> int | None:
    """The file type of stdin; None where there is none, and for terminals and other devices."""
    if sys.stdin is None:  # it was closed, and another file may have its number
        return None
    mode = os.fstat(_STDIN).st_mode
    of_interest = stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
    return stat.S_IFMT(mode) if of_interest else None


def _reason_to_drop(request: Request, kind: int) -> str | None:
    if kind == stat.S_IFSOCK:  # programs that start others often leave one open for ever
        return "it is a socket, and only a pipe or a file is kept; --stdin - reads it"
    if request.agent is not None:
        return "an agent reads its prompt and nothing else"
    if request.any_host:
        return "another host may run the job (--any-host); --stdin FILE names what all have"
    return None


def _has_content(kind: int) -> bool:
    """Whether something is there to be read now."""
    if kind == stat.S_IFREG:
        return os.lseek(_STDIN, 0, os.SEEK_CUR) < os.fstat(_STDIN).st_size
    import array
    import fcntl
    import termios

    count = array.array("i", [0])
    fcntl.ioctl(_STDIN, termios.FIONREAD, count)
    return count[0] > 0


class _Source:
    """Stdin, which may let one wait for long."""

    def __init__(self) -> None:
        import select

        self._poll = select.poll()
        self._is_there = sys.stdin is not None
        if self._is_there:
            self._poll.register(_STDIN, select.POLLIN)
        self._patience: float | None = PATIENCE * 1000

    def read(self) -> bytes:
        """Some of it; nothing at its end."""
        if not self._is_there:
            return b""
        while not self._poll.poll(self._patience):
            say("reading stdin to its end, to keep it with the job; `< /dev/null` gives it none")
            self._patience = None
        return os.read(_STDIN, CHUNK_BYTES)
