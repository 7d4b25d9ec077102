"""Whether what a `.headway/` folder names may run: a record of folders, kept outside of them.

A cloned repository brings its `.headway/`, too: a jobs file, modules to import, a store to send
data to. Nothing in such a folder can vouch for itself. So the user's state folder has a record
of those that this user trusts, and a folder without an entry is not trusted. A command that makes
a `.headway/` records it, `headway trust` records others.

An entry is of one folder and one user: its path, its inode, and a random mark that lies in the
folder itself. A file system gives the inode of a removed folder to the next one that is made, so
without the mark a repository that is cloned again could take over the trust of the one before.
The device is no part of it, because its number may be another one after a reboot.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from headway.base.errors import InvalidInputError, StoreError

VARIABLE = "HEADWAY_TRUST"  # for services and containers: `1` trusts every folder
STATE = "XDG_STATE_HOME"
RECORD = "trust"
MARK = "trust-mark"
NEXT_STEP = "`headway trust` shows what it would allow"
LARGEST_RECORD = 1 << 20
LONGEST_MARK = 64
MANY = 100  # entries; beyond it those of folders that are gone are forgotten
LOCK_SECONDS = 5.0
_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class TrustedFolder(NamedTuple):
    """One folder that one user trusts."""

    path: str
    user: int
    inode: int
    mark: str
    at: str = ""


def is_trusted(home: str, environ: Mapping[str, str] | None = None) -> bool:
    """Whether what stands in this `.headway/` folder may count."""
    return why_not(home, environ) is None


def why_not(home: str, environ: Mapping[str, str] | None = None) -> str | None:
    """Why this folder is not trusted; None if it is. Whatever cannot be read is no reason to."""
    environ = os.environ if environ is None else environ
    try:
        status = _own_folder(home)
        if environ.get(VARIABLE) == "1":
            return None
        known = entries(environ)
    except (InvalidInputError, StoreError) as error:
        return str(error)
    path = canonical(home)
    for entry in known:
        if entry.path != path or entry.user != os.geteuid():
            continue
        if entry.inode == status.st_ino and entry.mark == _read_mark(home):
            return None
        return f"another folder than the one that was trusted is at {path} now"
    return f"{path} has no record of trust"


def entries(environ: Mapping[str, str] | None = None) -> list[TrustedFolder]:
    """All that the record holds. Raises StoreError if others may have written it."""
    environ = os.environ if environ is None else environ
    path = record_path(environ)
    try:
        _refuse_unsafe_folder(os.path.dirname(path))
        content = _content(path)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None
    try:
        return [_entry(each) for each in json.loads(content)["folders"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise StoreError(f"{path} is damaged; move it away, then trust anew") from None


def record(home: str, environ: Mapping[str, str] | None = None) -> bool:
    """Trust this folder from now on; False if it was trusted already."""
    environ = os.environ if environ is None else environ
    status = _own_folder(home)
    path = canonical(home)
    with _changing(environ) as folder:
        known = entries(environ)
        others = [each for each in known if (each.path, each.user) != (path, os.geteuid())]
        mark = _read_mark(home)
        if mark and any(
            (each.inode, each.mark) == (status.st_ino, mark) for each in known if each not in others
        ):
            return False
        mark = os.urandom(16).hex()
        _put(os.path.join(home, MARK), mark)
        if len(others) >= MANY:
            others = [each for each in others if os.path.isdir(each.path)]
        made = TrustedFolder(path, os.geteuid(), status.st_ino, mark, _now())
        _write(folder, [*others, made])
    return True


def revoke(home: str, environ: Mapping[str, str] | None = None) -> bool:
    """Trust this folder no more; False if it was not trusted."""
    environ = os.environ if environ is None else environ
    path = canonical(home)
    if not any(each.path == path for each in entries(environ)):
        return False
    with _changing(environ) as folder:
        known = entries(environ)
        kept = [each for each in known if each.path != path]
        _write(folder, kept)
    return len(kept) < len(known)


def is_copy(home: str, environ: Mapping[str, str] | None = None) -> bool:
    """Whether this folder is a copy of one that this user trusts. Only a copy has its mark, which
    is random and nobody else's to read."""
    mark = _read_mark(home)
    if mark is None:
        return False
    with suppress(InvalidInputError, StoreError):
        _own_folder(home)
        return any(each.mark == mark and each.user == os.geteuid() for each in entries(environ))
    return False


def record_path(environ: Mapping[str, str] | None = None) -> str:
    environ = os.environ if environ is None else environ
    return os.path.join(_state_folder(environ), "headway", RECORD)


def passed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """What a process of ours without the user's environment needs to decide as this one does."""
    kept = {name: environ[name] for name in (VARIABLE, STATE) if environ.get(name)}
    with suppress(StoreError):
        if STATE not in kept and _state_folder(environ) != _state_folder({}):
            kept[STATE] = _state_folder(environ)
    return kept


def files_that_need_trust(home: str) -> list[str]:
    """Those of a folder that name programs or code, by their paths inside of it."""
    found = ["jobs.yaml"] if os.path.lexists(os.path.join(home, "jobs.yaml")) else []
    for folder, ending in (("runners", ".toml"), ("workflows", "")):
        with suppress(OSError):
            inside = sorted(os.listdir(os.path.join(home, folder)))
            found += [f"{folder}/{each}" for each in inside if each.endswith(ending)]
    return found


def canonical(home: str) -> str:
    """The path of a folder that no link on the way to it changes."""
    folder, name = os.path.split(os.path.abspath(home))
    return os.path.join(os.path.realpath(folder), name)


# -- the folder --------------------------------------------------------------------------------


def _own_folder(home: str) -> os.stat_result:
    """Its inode, and all. Refused if someone else could have planted what is in it."""
    try:
        status = os.lstat(home)
    except OSError as error:
        raise InvalidInputError(f"{home} cannot be trusted: {error.strerror}") from None
    if not stat.S_ISDIR(status.st_mode):
        raise InvalidInputError(f"{home} cannot be trusted: it is a link, or no folder")
    if status.st_uid != os.geteuid():
        raise InvalidInputError(f"{home} cannot be trusted: it belongs to user {status.st_uid}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InvalidInputError(f"{home} cannot be trusted: others may write there")
    return status


def _read_mark(home: str) -> str | None:
    try:
        descriptor = os.open(os.path.join(home, MARK), _READING)
    except OSError:
        return None
    try:
        return os.read(descriptor, LONGEST_MARK).decode("ascii", "replace") or None
    except OSError:
        return None
    finally:
        os.close(descriptor)


# -- the record --------------------------------------------------------------------------------


def _state_folder(environ: Mapping[str, str]) -> str:
    given = environ.get(STATE, "")
    return given if os.path.isabs(given) else os.path.join(_home_of(environ), ".local", "state")


def _home_of(environ: Mapping[str, str]) -> str:
    """The user's own, also where a program was started by another one who kept their variables."""
    named = environ.get("HOME", "")
    with suppress(OSError):
        if os.path.isabs(named) and os.stat(named).st_uid == os.geteuid():
            return named
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        raise StoreError(
            f"user {os.geteuid()} has no home folder for the record of trust; set {STATE}"
        ) from None


def _refuse_unsafe_folder(path: str) -> None:
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise StoreError(f"{path} is a link or no folder; the record of trust cannot be there")
    if status.st_uid != os.geteuid():
        raise StoreError(f"{path} belongs to user {status.st_uid}; it says nothing of your trust")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StoreError(f"{path} can be written by others; run chmod go-w {path}")


def _content(path: str) -> bytes:
    """What stands in the record; refused unless this user alone can have written it."""
    descriptor = os.open(path, _READING)
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise StoreError(f"{path} is no plain file of one name; move it away, then trust anew")
        if status.st_uid != os.geteuid():
            raise StoreError(f"{path} belongs to user {status.st_uid}; it says nothing of yours")
        if stat.S_IMODE(status.st_mode) != 0o600:
            raise StoreError(
                f"{path} has mode {stat.S_IMODE(status.st_mode):o}, so it does not count; "
                f"look whether it is yours, then chmod 600 {path}"
            )
        content = file.read(LARGEST_RECORD + 1)
    if len(content) > LARGEST_RECORD:
        raise StoreError(f"{path} is larger than 1 MiB; move it away, then trust anew")
    return content


def _entry(document: Any) -> TrustedFolder:
    made = TrustedFolder(*(document[name] for name in TrustedFolder._fields))
    if not (isinstance(made.path, str) and isinstance(made.mark, str) and made.mark):
        raise ValueError
    if not (type(made.user) is int and type(made.inode) is int):
        raise ValueError
    return made


@contextmanager
def _changing(environ: Mapping[str, str]) -> Iterator[str]:
    """The record's folder, while nobody else changes the record."""
    import fcntl

    from headway.base.clock import SystemClock

    folder = os.path.dirname(record_path(environ))
    clock = SystemClock()
    try:
        os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        _refuse_unsafe_folder(folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        lock = os.open(os.path.join(folder, f"{RECORD}.lock"), flags, 0o600)
    except OSError as error:
        raise StoreError(f"no trust can be recorded in {folder}: {error.strerror}") from None
    try:
        give_up_at = clock.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if clock.monotonic() > give_up_at:
                    raise StoreError(f"{folder}/{RECORD}.lock is held by another") from None
                clock.sleep(0.005)
        yield folder
    finally:
        os.close(lock)


def _write(folder: str, known: list[TrustedFolder]) -> None:
    document = {"version": 1, "folders": [each._asdict() for each in known]}
    _put(os.path.join(folder, RECORD), json.dumps(document, indent=1) + "\n")


def _put(path: str, text: str) -> None:
    from headway.base.whole_file import write_whole

    try:
        write_whole(path, text)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from None


def _now() -> str:
    from headway.base.clock import SystemClock
    from headway.base.units import show_instant

    return show_instant(SystemClock().now()) or ""
