"""The folder of a store in a home, named after the store: how the ones of before get their names.

Folders were once named after the text of a URL, so that two spellings of it had two folders, and
two workers. What the rows of claims name stays where it is while one is live. Afterwards the folder
is renamed, under the lock of its worker, and its old name becomes a link.
"""

import errno
import fcntl
import os
import shutil
import zlib
from contextlib import suppress

from headway.base.home import HasName, Home
from headway.base.host import known_host_id
from headway.base.worker_lock import START, WorkerLock, worker_is_there

_PARTS = ("jobs", "worktrees", "saved")


def settle_in(home: Home, store: HasName) -> None:
    """Use the folder of this very store; mostly it is known under this spelling."""
    if home.store_url is None or home.store_name is not None:
        return
    name = store.name or _name_of_file(home.store_url)
    if name != home.spelling:
        try:
            known = os.readlink(os.path.join(home.stores, home.spelling))
        except OSError:
            known = None
        if known != name:
            name_folder(home, name, store)
    home.store_name = name


def name_folder(home: Home, name: str, store: HasName) -> None:
    """Let the folder of this name be the store's, also under the spelling of this home."""
    stores = home.stores
    with suppress(FileExistsError):
        os.mkdir(stores, 0o700)
    naming = os.open(os.path.join(stores, ".naming"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(naming, fcntl.LOCK_EX)  # one at a time: many may come first at once
        while not _is_settled(stores, home, name, store):
            pass  # an older one, which knows nothing of names, has made the folder meanwhile
    finally:
        os.close(naming)
    for part in ("run", "jobs"):
        with suppress(FileExistsError):
            os.mkdir(os.path.join(stores, name, part), 0o700)


def _is_settled(stores: str, home: Home, name: str, store: HasName) -> bool:
    spelled, named = os.path.join(stores, home.spelling), os.path.join(stores, name)
    if os.path.islink(spelled):
        _make_if_missing(named)
        if os.readlink(spelled) != name:  # the URL led to another store before
            _link(name, spelled)
        return True
    if not os.path.exists(spelled):
        _make_if_missing(named)
        try:
            os.symlink(name, spelled)
        except FileExistsError:
            return False
        return True
    with WorkerLockHeld(os.path.join(spelled, "run", "worker.lock")) as lock:
        if lock.taken and not _any_live(home, store):
            _rename(stores, home.spelling, name)
            return os.path.islink(spelled)
        if not os.path.lexists(named):
            with suppress(FileExistsError):
                os.symlink(home.spelling, named)
    return True


class WorkerLockHeld:
    """Nobody starts a process meanwhile, if it could be taken."""

    def __init__(self, path: str) -> None:
        self._lock = WorkerLock(path)
        self.taken = False

    def __enter__(self) -> "WorkerLockHeld":
        folder = os.path.dirname(self._lock.path)
        if not os.path.isdir(folder):
            self.taken = True  # no worker was ever here
        elif not worker_is_there(self._lock.path):
            self.taken = self._lock.take(START) and not worker_is_there(self._lock.path)
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()


def _any_live(home: Home, store: HasName) -> bool:
    """Whether rows name what is in the folder of this spelling."""
    own, within = known_host_id(home), f"/stores/{home.spelling}/"
    if own is None:
        return False
    with store.read() as tx:
        claims = (*tx.claims.live(), *tx.claims.unproven())
    return any(claim.host_id == own and within in claim.folder for claim in claims)


def _rename(stores: str, spelling: str, name: str) -> None:
    spelled, named = os.path.join(stores, spelling), os.path.join(stores, name)
    if os.path.islink(named) and os.readlink(named) == spelling:  # it had this folder until now
        os.unlink(named)
    if os.path.isdir(named):
        _move_into(spelled, named, spelling)
    else:
        os.rename(spelled, named)
    with suppress(FileExistsError):
        os.symlink(name, spelled)


def _move_into(spelled: str, named: str, spelling: str) -> None:
    """Another spelling has its folder already: the jobs of both are of one store."""
    for part in _PARTS:
        source, target = os.path.join(spelled, part), os.path.join(named, part)
        if not os.path.isdir(source):
            continue
        _make_if_missing(target)
        for each in os.listdir(source):
            if not os.path.lexists(os.path.join(target, each)):
                os.rename(os.path.join(source, each), os.path.join(target, each))
    run = os.path.join(spelled, "run")
    if not os.path.isdir(run) or set(os.listdir(run)) <= {"worker.lock"}:
        try:
            shutil.rmtree(spelled)  # no worker has ever lived there
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:  # else another one is just making what it needs
                raise
    else:
        os.rename(spelled, os.path.join(named, f"before-{spelling}"))


def _make_if_missing(path: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)


def _link(name: str, path: str) -> None:
    fresh = f"{path}.{os.urandom(4).hex()}.tmp"
    os.symlink(name, fresh)
    os.rename(fresh, path)


def _name_of_file(url: str) -> str:
    """A file has no name of its own but its path, without links and detours."""
    path = os.path.realpath(url.removeprefix("sqlite://"))
    return f"{zlib.crc32(os.fsencode(f'sqlite://{path}')):08x}"
