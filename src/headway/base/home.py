"""Where things live: the `.headway/` folder of a checkout, made and found by one rule.

`--home` or `HEADWAY_HOME`, else the nearest `.headway/` upwards from the working directory, else
one is made at the repository's root, else in the working directory. The folder is ours alone
(0700) and keeps its runtime parts out of git by itself.
"""

import os
import re
import stat
import zlib
from collections.abc import Mapping
from typing import Any, Protocol

from headway.base.errors import (
    InvalidInputError,
    NotFoundError,
    StoreError,
)

_KEPT_FILES = (".gitignore", "config.toml", "jobs.yaml")
_KEPT_FOLDERS = ("workflows", "prompts", "runners", "plans", "tasks")
_HEADER = (
    "# What Headway writes at run time; only the files you wrote yourself are worth committing.\n"
)
IGNORED = (
    _HEADER
    + "*\n"
    + "".join(f"!{name}\n" for name in _KEPT_FILES)
    + "".join(f"!{name}/\n!{name}/**\n" for name in _KEPT_FOLDERS)
)
# What nobody but Headway makes; a folder with one of them is a home, whatever else lies there.
_PROOFS = ("headway.db", "host-id")
WRITTEN = ("headway.db", "run", "env", "jobs", "stores", "worktrees", "saved", "web")
# What nobody else names so, with what commands that were killed have left of it.
_BESIDE = ("headway.db", "host-id", "trust-mark", "config.toml.")
_MOST_NAMED = 3


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
            shown = without_password(store_url)
            raise InvalidInputError(
                f"store.url is {shown!r}; use sqlite:///absolute/path or postgresql://host/database"
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
    def web(self) -> str:
        """Secrets that no store and no backup has: of webhooks, and of whoever may use the API."""
        return self._in("web")

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
    def worker_trouble(self) -> str:
        """Exists while the worker cannot do its work."""
        return os.path.join(self.run, "worker.trouble")

    @property
    def worker_left(self) -> str:
        """Exists while the store does not know of workers that left in good order."""
        return os.path.join(self.run, "worker.left")

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


def inner_repository(home: str, working_directory: str) -> str | None:
    """The root of a git repository between this folder and the home that was found above it.
    Inside of the home there are only the worktrees of its own jobs."""
    outside, above = os.path.dirname(home), _upwards(working_directory)
    if home in above:
        return None
    for folder in above:
        if folder == outside:
            return None
        if os.path.exists(os.path.join(folder, ".git")):
            return folder
    return None


def _upwards(folder: str) -> list[str]:
    folders = [folder]
    while os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
        folders.append(folder)
    return folders


def is_home(path: str) -> bool:
    """Whether this folder is one of ours, complete or not: one that holds what Headway makes, or
    that part of a home which is worth committing, and nothing else."""
    if any(os.path.lexists(os.path.join(path, name)) for name in _PROOFS):
        return True
    try:
        return bool(os.listdir(path)) and not _strangers(path)
    except OSError:
        return False


def refuse_no_home(path: str) -> None:
    """Refuse a folder that is none of ours, such as the root of a project."""
    if is_home(path):
        return
    found = _strangers(path)
    if not found:
        raise NotFoundError(f"{path} is no home: it is empty; `headway init` makes one there")
    inside = os.path.join(path, ".headway")
    meant = f"; did you mean {inside}?" if os.path.isdir(inside) else "; name a folder of its own"
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    raise NotFoundError(
        f"{path} is no home: it holds {', '.join(found[:_MOST_NAMED])}{more}{meant}"
    )


def refuse_root(path: str) -> None:
    """Refuse to make a home in `/` that nobody named: a service or a script has merely forgotten
    to change its folder, and every folder below would use that home from then on."""
    if path == "/.headway":
        raise InvalidInputError(
            "no home is made in /; change to the folder of your project, or name one with --home "
            "or HEADWAY_HOME"
        )


def _strangers(path: str) -> list[str]:
    """What lies in a folder that no home holds. What we make ourselves counts as ours only in a
    folder of our name or beside our own `.gitignore`: others, too, have folders of these names."""
    known = {*_KEPT_FILES, *_KEPT_FOLDERS}
    if os.path.basename(path) == ".headway" or _has_our_gitignore(path):
        known |= {*WRITTEN, "jobs.schema.json"}  # the latter as the documentation says
    return sorted(
        name for name in os.listdir(path) if name not in known and not name.startswith(_BESIDE)
    )


def _has_our_gitignore(path: str) -> bool:
    try:
        with open(os.path.join(path, ".gitignore"), "rb") as file:
            return file.read(len(_HEADER)) == _HEADER.encode()
    except OSError:
        return False


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
