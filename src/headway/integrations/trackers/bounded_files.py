"""Bounded reads of files that others write: plain files only, never more than was agreed."""

import os
import stat

from headway.base.errors import SourceError


def read_bounded(path: str, most: int, *, follow: bool = True) -> bytes:
    """The whole file. Raises SourceError for one that is too large, or no plain file: to open a
    pipe would be to wait for whoever writes it."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SourceError(f"{path} cannot be read: it is no plain file")
    with open(descriptor, "rb") as file:
        try:
            content = file.read(most + 1)
        except OSError as error:
            raise SourceError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > most:
        raise SourceError(f"{path} is larger than {most >> 20} MiB, which is the most that is read")
    return content


def one_line(text: str, most: int = 200) -> str:
    """A title as it may stand in a name, a table and a command line."""
    printable = "".join(char if char.isprintable() else " " for char in text[: most * 4])
    return " ".join(printable.split())[:most].rstrip()
