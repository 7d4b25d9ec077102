"""Make a home: its folder and the parts of it, and the record that it was made here."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress

from headway.base.errors import (
    HeadwayError,
    InvalidInputError,
    StoreError,
    StoreReadOnlyError,
)
from headway.base.home import IGNORED, Home, refuse_no_home, refuse_unsafe


def make_home(home: Home, environ: Mapping[str, str] | None = None) -> None:
    """Make the folder and its parts; harmless when they exist. Its maker trusts the folder."""
    if not sys.platform.startswith("linux"):
        raise InvalidInputError("Headway runs on Linux 5.4 or newer; this is " + sys.platform)
    try:
        made = _make_folder(home.path)
        if not made and os.listdir(home.path):
            refuse_no_home(home.path)
        ignore = os.path.join(home.path, ".gitignore")
        if not os.path.lexists(ignore):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            with open(os.open(ignore, flags, 0o600), "w", encoding="utf-8") as file:
                file.write(IGNORED)
        if made or not os.path.lexists(home.database):
            _vouch(home, environ, made=made)
        _make_folder(home.environments)
        if home.store_url is not None:
            _make_folder(home.stores)
            with suppress(FileNotFoundError, HeadwayError):  # it may get its name in this moment
                _make_folders_of_store(home)
        _make_folders_of_store(home)
    except PermissionError as error:
        raise StoreReadOnlyError(
            f"cannot make {error.filename}: {error.strerror}; use --home elsewhere"
        ) from error
    except OSError as error:
        raise StoreError(f"cannot make {home.path}: {error.strerror}") from error


def _vouch(home: Home, environ: Mapping[str, str] | None, *, made: bool) -> None:
    """Before there is a store, leave the id by which it is known to be made here; and record that
    this user made the folder, before anything is in it. Where nothing can be recorded, as for a
    user without a home folder, the home works; what needs trust does not."""
    from headway.base.host import this_host
    from headway.base.trust import record

    this_host(home)
    if made:
        with suppress(HeadwayError):
            record(home.path, environ)


def _make_folders_of_store(home: Home) -> None:
    if home.store_url is not None:
        _make_folder(os.path.realpath(os.path.dirname(home.run)))  # there may be a link of ours
    for folder in (home.run, home.jobs):
        _make_folder(folder)


def _make_folder(path: str) -> bool:
    """Whether it was made now."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        refuse_unsafe(path)
        return False
    return True
