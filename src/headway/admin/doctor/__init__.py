"""What `headway doctor` looks at: the host, the home, the store and what lies around it.

Each check is a function that yields findings, and stands in a list of its module; the next list is
begun only if what it needs is there. Nothing is made, changed or migrated, no worker is started,
and whatever is broken is a finding, not an error.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TypeVar

from headway.admin.doctor.contents import CONTENT_CHECKS, SCHEMA_CHECKS, STORE_CHECKS
from headway.admin.doctor.finding import (
    GREEN,
    RED,
    RESTORE,
    YELLOW,
    CheckedHome,
    Finding,
    OpenedHome,
    job_ids,
)
from headway.admin.doctor.surroundings import HOME_CHECKS, HOST_CHECKS, home_finding
from headway.admin.doctor.trust import trust_finding
from headway.base.clock import SystemClock
from headway.base.errors import HeadwayError, StoreCorruptError, StoreError
from headway.base.home import Home, find_home, refuse_no_home
from headway.base.store_trust import refuse_untrusted_store
from headway.jobs.settings import choose_store, load_config
from headway.store import queries
from headway.store.inspect import inspect

__all__ = ["GREEN", "RED", "YELLOW", "Finding", "examine"]

Where = TypeVar("Where", CheckedHome, OpenedHome)


def examine(
    home: str | None, store_url: str | None, environ: Mapping[str, str], working_directory: str
) -> Iterator[Finding]:
    """All findings, those that others rest on first. Raises for a folder that is no home."""
    found, exists = find_home(home, environ, working_directory)
    if exists:
        refuse_no_home(found.path)
    for look in HOST_CHECKS:
        yield from look()
    if not exists:
        yield Finding("home", YELLOW, f"there is no {found.path}", "headway init")
        return
    yield from home_finding(found)
    try:
        config = load_config(found, environ)
    except HeadwayError as error:
        yield Finding("config", RED, str(error), "correct the file")
        return
    there = os.path.exists(found.config)
    sound = "config.toml is sound" if there else "no config.toml; every setting has its default"
    yield Finding("config", GREEN, sound)
    yield from trust_finding(found, config, environ)
    try:
        url = choose_store(config, store_url, environ)
        whole = Home(found.path, url)
        refuse_untrusted_store(whole, environ)
    except HeadwayError as error:
        yield Finding("store", RED, str(error), "headway trust")
        return
    place = CheckedHome(whole, config, url or f"sqlite://{whole.database}", SystemClock())
    for check in HOME_CHECKS:
        yield from _guarded(check, place)
    yield from _examine_store(place)


def _examine_store(place: CheckedHome) -> Iterator[Finding]:
    try:
        _refuse_missing(place)
        store = inspect(place.url, place.clock)
    except HeadwayError as error:
        yield Finding("store", RED, str(error), _about_opening(place))
        return
    except ImportError as error:
        yield Finding("store", RED, str(error), "pip install 'headway[postgres]'")
        return
    with suppress(HeadwayError):  # what ails it is found below
        place.home.recognise(store.name())
    opened = OpenedHome(place.home, place.url, place.path, place.clock, store)
    try:
        for check in STORE_CHECKS:
            found = list(_guarded(check, opened))
            yield from found
            if any(each.level == RED for each in found):
                return
        for check in SCHEMA_CHECKS:
            yield from _guarded(check, opened)
        if store.schema() == queries.schema_version():
            for check in CONTENT_CHECKS:
                yield from _guarded(check, opened)
    finally:
        store.close()


def _guarded(check: Callable[[Where], Iterable[Finding]], place: Where) -> Iterator[Finding]:
    """What a check cannot read is what it has found."""
    try:
        yield from check(place)
    except (HeadwayError, OSError, ValueError) as error:
        name = check.__name__.strip("_").replace("_", " ")
        yield Finding(
            name, RED, str(error), RESTORE if isinstance(place, OpenedHome) else "see the message"
        )


def _refuse_missing(place: CheckedHome) -> None:
    """As the store itself refuses them, without making one."""
    if place.path is None:
        return
    if not os.path.exists(place.path):
        raise StoreError(f"there is no store at {place.path}")
    if os.path.getsize(place.path) == 0:
        raise StoreCorruptError(f"{place.path} is empty, which no Headway store ever is")


def _about_opening(place: CheckedHome) -> str:
    if place.path is None:
        return "start the server, or correct the URL"
    if os.path.exists(place.path) or any(job_ids(place.home)):
        return RESTORE
    return "headway init"
