"""Where things live: the `.headway/` folder of a checkout, made and found by one rule.

`--home` or `HEADWAY_HOME`, else the nearest `.headway/` upwards from the working directory, else
one is made at the repository's root, else in the working directory. The folder is ours alone
(0700) and keeps its runtime parts out of git by itself.
"""

import os
import re
import stat
import sys
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from headway.errors import InvalidInputError, NotFoundError, StoreError, StoreReadOnlyError

_IGNORED = """\
# What Headway writes at run time; only the files you wrote yourself are worth committing.
*
!.gitignore
!config.toml
!jobs.yaml
!workflows/
!workflows/**
!runners/
!runners/**
!plans/
!plans/**
!tasks/
!tasks/**
"""


class HasName(Protocol):
    """A store, as far as its folder is concerned."""

    @property
    def name(self) -> str | None: ...
    def read(self) -> Any: ...


class Home:
    """The paths inside one `.headway/` folder.

    A store that is not the folder's own (`store_url`) has its own job folders and its own worker:
    the ids of two stores must not meet. They are in a folder that is named after the store, so that
    it is the same one however its URL is spelled; under the name of a spelling there is a link.
    """

    def __init__(
        self, path: str, store_url: str | None = None, store_name: str | None = None
    ) -> None:
        if store_url and not is_store_url(store_url):
            told = without_password(store_url)
            raise InvalidInputError(
                f"store.url is {told!r}; use sqlite:///absolute/path or postgresql://host/database"
            )
        self.path = path
        self.store_url = None if _is_own(store_url, path) else store_url or None
        self.store_name = store_name  # once it is known

    def __repr__(self) -> str:
        return f"Home({self.path!r}, {self.store_url!r})"

    def _in(self, *parts: str) -> str:
        return os.path.join(self.path, *parts)

    def _of_store(self, *parts: str) -> str:
        if self.store_url is None:
            return self._in(*parts)
        return os.path.join(self.stores, self.store_name or self.spelling, *parts)

    @property
    def stores(self) -> str:
        return self._in("stores")

    @property
    def spelling(self) -> str:
        """The name that the text of the URL gives the store's folder."""
        return f"{zlib.crc32(os.fsencode(self.store_url or '')):08x}"

    def recognise(self, name: str | None) -> None:
        """Use the folder of the store with this name, if there is one; makes nothing."""
        if name is not None and os.path.exists(os.path.join(self.stores, name)):
            self.store_name = name

    def settle_in(self, store: HasName) -> None:
        """Use the folder of this very store; mostly it is known under this spelling."""
        if self.store_url is None or self.store_name is not None:
            return
        name = store.name or _name_of_file(self.store_url)
        if name != self.spelling:
            try:
                known = os.readlink(os.path.join(self.stores, self.spelling))
            except OSError:
                known = None
            if known != name:
                from headway.storefolders import settle_in

                settle_in(self, name, store)
        self.store_name = name

    @property
    def database(self) -> str:
        return self._in("headway.db")

    @property
    def config(self) -> str:
        return self._in("config.toml")

    @property
    def environments(self) -> str:
        return self._in("env")

    @property
    def run(self) -> str:
        return self._of_store("run")

    @property
    def worker_lock(self) -> str:
        return os.path.join(self.run, "worker.lock")

    @property
    def worker_socket(self) -> str:
        return os.path.join(self.run, "worker.sock")

    @property
    def worker_stopped(self) -> str:
        """Exists while the last worker left on a signal, so that nobody starts one unasked."""
        return os.path.join(self.run, "worker.stopped")

    @property
    def worker_log(self) -> str:
        return os.path.join(self.run, "worker.log")

    @property
    def host_id(self) -> str:
        return self._in("host-id")

    @property
    def hosts(self) -> str:
        """Where function hosts have their folders."""
        return os.path.join(self.run, "hosts")

    def host(self, token: str) -> str:
        return os.path.join(self.hosts, token)

    @property
    def jobs(self) -> str:
        return self._of_store("jobs")

    @property
    def worktrees(self) -> str:
        """Where jobs have worktrees of their own."""
        return self._of_store("worktrees")

    @property
    def saved(self) -> str:
        """Where the patches of worktrees are kept whose jobs are gone."""
        return self._of_store("saved")

    def serves_several_stores(self) -> bool:
        others = self.stores
        count = 0
        if os.path.isdir(others):  # the links in it are other names for the same
            with os.scandir(others) as entries:
                count = sum(each.is_dir(follow_symlinks=False) for each in entries)
        return count + os.path.exists(self.database) > 1

    def job(self, job_id: int) -> str:
        return os.path.join(self.jobs, str(job_id))


def _is_own(url: str | None, path: str) -> bool:
    """Whether it means the file of the home itself."""
    own = f"{path}/headway.db"
    if url is None or url == f"sqlite://{own}":
        return True
    return url.startswith("sqlite:///") and os.path.realpath(url[9:]) == os.path.realpath(own)


def _name_of_file(url: str) -> str:
    """A file has no name of its own but its path, without links and detours."""
    path = os.path.realpath(url.removeprefix("sqlite://"))
    return f"{zlib.crc32(os.fsencode(f'sqlite://{path}')):08x}"


def is_store_url(url: str) -> bool:
    return url.startswith(("sqlite:///", "postgresql://", "postgres://"))


def without_password(url: str) -> str:
    """Any URL, also a wrong one, as it may be shown."""
    hidden = re.sub(r"(:/*[^:/@]*:).*@", r"\1***@", url)
    return re.sub(r"(password=)[^&\s]*", r"\1***", hidden)


def find_home(
    explicit: str | None, environ: Mapping[str, str], working_directory: str
) -> tuple[Home, bool]:
    """The home to use, and whether it exists already."""
    named = explicit or environ.get("HEADWAY_HOME")
    if named:
        path = os.path.abspath(os.path.join(working_directory, named))
        return Home(path), os.path.isdir(path)
    for folder in _upwards(working_directory):
        if os.path.isdir(os.path.join(folder, ".headway")):
            return Home(os.path.join(folder, ".headway")), True
    for folder in _upwards(working_directory):
        if os.path.exists(os.path.join(folder, ".git")):
            return Home(os.path.join(folder, ".headway")), False
    return Home(os.path.join(working_directory, ".headway")), False


def _upwards(folder: str) -> list[str]:
    folders = [folder]
    while os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
        folders.append(folder)
    return folders


def make_home(home: Home) -> None:
    """Make the folder and its parts; harmless when they exist."""
    if not sys.platform.startswith("linux"):
        raise InvalidInputError("Headway runs on Linux 5.4 or newer; this is " + sys.platform)
    try:
        _make_folder(home.path)
        _make_folder(home.environments)
        if home.store_url is not None:
            _make_folder(home.stores)
            with suppress(FileNotFoundError):  # it gets its name in this very moment
                _make_folders_of_store(home)
        _make_folders_of_store(home)
        ignore = os.path.join(home.path, ".gitignore")
        if not os.path.exists(ignore):
            with open(ignore, "w", encoding="utf-8") as file:
                file.write(_IGNORED)
    except PermissionError as error:
        raise StoreReadOnlyError(
            f"cannot make {error.filename}: {error.strerror}; use --home elsewhere"
        ) from error
    except OSError as error:
        raise StoreError(f"cannot make {home.path}: {error.strerror}") from error


def _make_folders_of_store(home: Home) -> None:
    if home.store_url is not None:
        _make_folder(os.path.realpath(os.path.dirname(home.run)))  # there may be a link of ours
    for folder in (home.run, home.jobs):
        _make_folder(folder)


def _make_folder(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        refuse_unsafe(path)


def refuse_unsafe(path: str) -> None:
    """Refuse a folder that someone else could plant files in."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        raise NotFoundError(f"there is no {path}; run `headway init`") from None
    if not stat.S_ISDIR(status.st_mode):
        raise StoreError(f"{path} is not a folder (or a link to one); move it away")
    if status.st_uid != os.geteuid():
        raise StoreError(
            f"{path} belongs to user {status.st_uid}, not to you; use --home elsewhere"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StoreError(f"{path} can be written by others; run chmod go-w {path}")
