"""What the torturer writes down: acknowledged jobs and cancels, kills, trees seen to be gone.

Each is a line of JSON in a file of its own that is only appended to. An acknowledgement is synced
before anything else happens, so that it stands whatever becomes of the torturer.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

LAST_BYTES = 4096  # more than any line has


class Planned(NamedTuple):
    """One submitted job: what it will do, and what may become of it."""

    id: int
    mode: str
    codes: tuple[int, ...]  # of each attempt; the last one holds for all that follow
    after: tuple[int, ...] = ()
    locks: tuple[tuple[str, str], ...] = ()
    retries: int = 0
    timeout: float | None = None

    def code(self, attempt: int) -> int:
        return self.codes[min(attempt, len(self.codes)) - 1]


class Cancel(NamedTuple):
    """A cancel that was acknowledged: of that job of the chain, running or still waiting."""

    asked: int
    job: int
    was_running: bool


class Kill(NamedTuple):
    """One process that was alive, identified while it stood still, and was then killed.

    `offset` is the size of the ledger when its death, and that of a supervisor's command, had been
    seen; `outlived` if that command was still there a second later. `living` are the claims whose
    command and supervisor were alive and were left alone, when a worker or a parent was killed.
    """

    strike: int
    mode: str
    kind: str
    pid: int
    token: str | None
    offset: int
    outlived: bool = False
    living: tuple[str, ...] = ()

    def __str__(self) -> str:
        whose = f" of claim {self.token[:8]}" if self.token else ""
        what = f"{self.kind}{whose} pid {self.pid}"
        return f"strike {self.strike} ({self.mode}): {what}, ledger {self.offset}"


class Gone(NamedTuple):
    """Claims whose trees the store called gone before the ledger had this size."""

    offset: int
    tokens: tuple[str, ...]


class Records(NamedTuple):
    planned: list[Planned]
    cancels: list[Cancel]
    kills: list[Kill]
    gone: list[Gone]


class Files:
    """The torturer's files in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger = folder / "ledger"

    def acknowledged(self, planned: Iterable[Planned]) -> None:
        self._append("acknowledged", planned, sync=True)

    def cancelled(self, cancel: Cancel) -> None:
        self._append("cancels", [cancel], sync=True)

    def killed(self, kills: Iterable[Kill]) -> None:
        self._append("kills", kills)

    def strikes(self) -> int:
        """How many there have been, by the last line of the log."""
        try:
            with open(self.folder / "kills", "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - LAST_BYTES))
                lines = file.read().split(b"\n")[:-1]  # the last may be being written
        except FileNotFoundError:
            return 0
        return int(json.loads(lines[-1])["strike"]) if lines else 0

    def gone(self, gone: Gone) -> None:
        self._append("gone", [gone])

    def read(self) -> Records:
        return Records(
            [_planned(each) for each in self._lines("acknowledged")],
            [Cancel(**each) for each in self._lines("cancels")],
            [Kill(**{**each, "living": tuple(each["living"])}) for each in self._lines("kills")],
            [Gone(each["offset"], tuple(each["tokens"])) for each in self._lines("gone")],
        )

    def _append(self, name: str, entries: Iterable[Any], *, sync: bool = False) -> None:
        text = "".join(json.dumps(entry._asdict()) + "\n" for entry in entries)
        fd = os.open(self.folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(fd, text.encode())
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)

    def _lines(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / name
        if not path.exists():
            return []
        with path.open() as file:
            return [json.loads(line) for line in file]


def _planned(fields: dict[str, Any]) -> Planned:
    return Planned(
        **{
            **fields,
            "codes": tuple(fields["codes"]),
            "after": tuple(fields["after"]),
            "locks": tuple((key, mode) for key, mode in fields["locks"]),
        }
    )
