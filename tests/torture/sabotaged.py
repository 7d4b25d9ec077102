"""The real program with one safeguard taken out: `python -m torture.sabotaged NAME work`.

Nothing in the program can be switched off, so this replaces the one function that is the safeguard
before it runs the command line; and once more in the preloaded parent, from which the supervisors
and the children come. `nothing` takes nothing out. Either way two more points can be armed, so that
the very same sequence can be played with the safeguard and without.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headway.base import proc
from headway.base.crashpoints import reach
from headway.base.source import SOURCE
from headway.supervise import child, launcher
from headway.supervise.evidence import Evidence, OutcomeRecord, Started

TESTS = str(Path(__file__).parents[1])


def main() -> None:
    name = sys.argv.pop(1)
    _stop_before_lock()
    IN_WORKER[name]()
    begin = f"import sys; sys.path[:0] = {[SOURCE, TESTS]!r}; "
    launcher._MAIN = (
        f"{begin}from torture.sabotaged import in_parent; in_parent({name!r}); {launcher._MAIN}"
    )
    from headway.cli.main import main as command_line

    command_line()


def in_parent(name: str) -> None:
    _stop_before_pdeathsig()
    IN_PARENT[name]()


def _stop_before_lock() -> None:
    take = Evidence.try_lock

    def try_lock(self: Evidence) -> int | None:
        reach("torture.before_lock")
        return take(self)

    Evidence.try_lock = try_lock  # type: ignore[method-assign]


def _stop_before_pdeathsig() -> None:
    really = proc.set_pdeathsig

    def set_pdeathsig(sig: int) -> None:
        reach("torture.before_pdeathsig")
        really(sig)

    proc.set_pdeathsig = set_pdeathsig


def nothing() -> None:
    """All safeguards stay."""


def finish_by_job() -> None:
    """Every write about a claim goes to whatever claim its job has now."""
    from headway.store.tables.claims import ClaimsTable

    finish, undo = ClaimsTable.finish, ClaimsTable._undo

    def current(claims: ClaimsTable, each: Any) -> Any:
        claim = claims.of_job(each.job_id)
        return each if claim is None else each._replace(token=claim.token)

    def finish_all(claims: ClaimsTable, finishes: Any) -> Any:
        return finish(claims, [current(claims, each) for each in finishes])

    ClaimsTable.finish = finish_all  # type: ignore[method-assign]
    ClaimsTable._undo = lambda claims, each: undo(claims, current(claims, each))  # type: ignore


def no_start_record() -> None:
    """The supervisor lets the command go without having written started.T."""

    def write_started(self: Evidence, started: Started) -> None:
        """Nothing."""

    Evidence.write_started = write_started  # type: ignore[method-assign]


class _ReadBefore(Evidence):
    """Evidence whose outcome was read before the lock was taken."""

    def __init__(self, folder: str, token: str) -> None:
        super().__init__(folder, token)
        self._outcome = super().read_outcome()

    def read_outcome(self) -> OutcomeRecord | None:
        return self._outcome


def evidence_before_lock() -> None:
    """The recovery reads what there is first, and takes the lock afterwards."""
    from headway.worker import recovery

    recovery.Evidence = _ReadBefore  # type: ignore


class _Anyone:
    """Equal to every pid."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


def no_getppid_check() -> None:
    """The child does not look whether its supervisor still lives."""
    really: Any = child._stand_alone

    def stand_alone(supervisor: int, *, lock: int, pipes: child.Pipes) -> None:
        really(_Anyone(), lock=lock, pipes=pipes)

    child._stand_alone = stand_alone


def no_sync() -> None:
    """The store does not wait for the disk."""
    from headway.store.sqlite import database as sqlite

    connect = sqlite._connect

    def unsynced(path: str, flags: int) -> Any:
        connection = connect(path, flags)
        connection.execute("pragma synchronous = off")
        return connection

    sqlite._connect = unsynced


# Which process has the safeguard.
IN_WORKER: dict[str, Callable[[], None]] = {
    "nothing": nothing,
    "claim token": finish_by_job,
    "start record": nothing,
    "lock before evidence": evidence_before_lock,
    "getppid check": nothing,
    "full sync": no_sync,
}
IN_PARENT: dict[str, Callable[[], None]] = {
    **dict.fromkeys(IN_WORKER, nothing),
    "start record": no_start_record,
    "getppid check": no_getppid_check,
}


if __name__ == "__main__":
    main()
