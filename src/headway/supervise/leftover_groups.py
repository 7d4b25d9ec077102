"""Control groups that could not be removed with their claims.

Once a claim's row is gone nobody knows of its group any more. So one that someone is still in is
noted in the home, and the next rounds remove it when it is empty. Nobody is ended here: processes
may have been left on purpose.
"""

import os
from contextlib import suppress

from headway.base.home import Home
from headway.supervise import cgroup, rescue
from headway.supervise.evidence import Evidence
from headway.supervise.folder import Folder, make_folder

LARGEST_NOTE = 16384


class GroupsLeft:
    def __init__(self, home: Home) -> None:
        self._folder = os.path.join(home.run, "groups")

    def note(self, folder: str, token: str) -> None:
        """Remove the group of this token, or remember where it is while someone is in it."""
        paths = rescue.groups_left(Evidence(folder, token))
        if paths:
            with suppress(OSError):  # a full disk: one empty group more, until the next boot
                make_folder(self._folder)
                with Folder(self._folder) as notes:
                    notes.remove(token)
                    notes.create(token, b"\n".join(map(os.fsencode, paths)))

    def remove(self) -> None:
        """Remove those that are empty by now, and their notes."""
        with suppress(OSError), Folder(self._folder) as notes:
            for token in os.listdir(notes.fd):
                with suppress(OSError):
                    if all(_is_gone(path, token) for path in _paths(notes, token)):
                        notes.remove(token)


def _paths(notes: Folder, token: str) -> list[str]:
    return [os.fsdecode(line) for line in notes.read(token, most=LARGEST_NOTE).split(b"\n")]


def _is_gone(path: str, token: str) -> bool:
    """Whatever a note says, only a group with the name of its claim is removed."""
    if os.path.basename(path) != f"headway-{token}":
        return True
    return not cgroup.is_populated(path) and cgroup.remove(path)
