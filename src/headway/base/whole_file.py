"""Write a file whole or not at all: a reader finds what was there before, or all that is new."""

import os
from contextlib import suppress

PRIVATE = 0o600
_MAKING = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def write_whole(path: str, content: str, *, mode: int = PRIVATE) -> None:
    """Put a file with this content into the place of the one that is there, once the content is on
    the disk. A private one has its mode whatever the umask is. Raises OSError, and leaves nothing
    behind then."""
    fresh = f"{path}.{os.urandom(4).hex()}.tmp"
    try:
        with open(os.open(fresh, _MAKING, mode), "w", encoding="utf-8") as file:
            if mode == PRIVATE:
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(fresh, path)
    except OSError:
        with suppress(OSError):
            os.unlink(fresh)
        raise
