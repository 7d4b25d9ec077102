"""Whether there is room on the disk, checked without writing.

On a full disk a worker cannot record why nothing starts, so views check for themselves.
"""

import os

from headway.base.home import Home
from headway.core.model import HostTrouble, WaitKind

LEAST_BYTES = 32 << 10  # a claim reserves 16 KiB, and its commit takes a few pages
REMEDY = "free some space there; it goes on by itself"


def lack_of_room(home: Home) -> HostTrouble | None:
    """The reason why a worker cannot write to this home, or to its store, now."""
    for folder in _places(home):
        lack = _lack(folder)
        if lack is not None:
            cause = f"the disk of {folder} {lack}"
            return HostTrouble(WaitKind.STORAGE, cause, 0, 0, probing=True, remedy=REMEDY)
    return None


def _places(home: Home) -> list[str]:
    """The home's disk, and the store's if that is a file elsewhere."""
    url = home.store_url or ""
    file = url.removeprefix("sqlite://")
    return [home.path, os.path.dirname(file)] if file != url else [home.path]


def _lack(folder: str) -> str | None:
    try:
        space = os.statvfs(folder)
    except OSError:
        return None
    if space.f_flag & os.ST_RDONLY:
        return "is read-only"
    blocks = space.f_bfree if os.geteuid() == 0 else space.f_bavail
    if space.f_blocks and blocks * space.f_frsize < LEAST_BYTES:  # without a size, without an end
        return "is full"
    files = space.f_ffree if os.geteuid() == 0 else space.f_favail
    if space.f_files and not files:
        return "has no room for another file"
    return None
