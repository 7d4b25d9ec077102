"""Whether what Headway wrote into a folder was written here: a store and the files around it.

Jobs, schedules and targets of a store are programs, and files of a worker or a job that came with
a clone may be links to anywhere. So what a folder holds of these counts only if a Headway on this
machine made it in this very folder, which its host id tells, or in one that this user trusts and
that this one is a copy of, or if the folder is trusted.
"""

import os
from collections.abc import Mapping

from headway.base.errors import InvalidInputError
from headway.base.home import WRITTEN, Home
from headway.base.trust import NEXT_STEP, is_copy, is_trusted


def came_with(home: Home, environ: Mapping[str, str] | None = None) -> list[str]:
    """What a folder holds that Headway writes, if it was not made here; else nothing. A clone
    cannot know which inode it will get, nor the mark of a folder that its user trusts."""
    there = _written(home)
    if not there:
        return []
    from headway.base.host import was_made_here

    links = [name for name in there if os.path.islink(os.path.join(home.path, name))]
    return links if was_made_here(home) or is_copy(home.path, environ) else there


def refuse_untrusted_store(home: Home, environ: Mapping[str, str]) -> None:
    """A home from before there was trust is known by its host id. What is there is looked at before
    the record, which is written first by whoever has just made the folder."""
    if not _written(home) or is_trusted(home.path, environ):
        return
    there = came_with(home, environ)
    if there:
        raise InvalidInputError(
            f"{home.path} is not trusted, and {', '.join(there)} came with it: there may be jobs "
            f"that would run; {NEXT_STEP}"
        )


def _written(home: Home) -> list[str]:
    return [name for name in WRITTEN if os.path.lexists(os.path.join(home.path, name))]
