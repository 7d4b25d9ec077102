"""Whether the store in a folder may be opened: its jobs, schedules and targets are programs."""

import os
from collections.abc import Mapping

from headway.errors import InvalidInputError
from headway.home import Home
from headway.trust import NEXT_STEP, is_trusted


def store_came_with(home: Home) -> bool:
    """Whether the folder's own store was not made in it by a Headway on this machine."""
    from headway.host import was_made_here

    return os.path.lexists(home.database) and (
        os.path.islink(home.database) or not was_made_here(home)
    )


def refuse_untrusted_store(home: Home, environ: Mapping[str, str]) -> None:
    """A store that came with a folder may hold jobs that would run. One that Headway made in this
    very folder is known by the host id beside it, also if it is from before there was trust."""
    if not os.path.lexists(home.database):  # looked at first: it is made after the record
        return
    if not is_trusted(home.path, environ) and store_came_with(home):
        raise InvalidInputError(
            f"{home.database} came with its folder, which is not trusted, and may hold "
            f"jobs that would run; {NEXT_STEP}"
        )
