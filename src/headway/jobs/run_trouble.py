"""Trouble of a job that the store has as running. It is shown to people, and nothing is changed.

The supervisor's files may say more than the store: that the job has ended and no worker could
settle it, that its supervisor is stopped, or that this home is a copy.
"""

from headway.base import proc
from headway.base.home import Home
from headway.base.host import Host
from headway.core.model import Claim, HostTrouble, Wait, WaitKind
from headway.jobs.copied_claims import copied
from headway.supervise.evidence import Evidence, OutcomeRecord, Started, UnsafeFolder

SOON = 5_000_000  # within this time an end is taken in


def hindrance(
    claim: Claim, host: Host, home: Home, *, now: int, lack: HostTrouble | None, shared: bool
) -> Wait | None:
    """The reason why this claim of a running job does not end, or why its end is not stored; `lack`
    is what the disk lacks."""
    if not shared and copied([claim], host, home):
        return Wait(
            WaitKind.TARGET,
            f"this home is a copy; it ran, and may still run, in {claim.home}",
            remedy="a worker settles it here as outcome_unknown: headway work",
        )
    if claim.host_id != host.id or claim.boot_id != host.boot_id:
        return None
    evidence = Evidence(claim.folder, claim.function_host or claim.token)
    try:
        outcome = evidence.read_outcome()
        started = evidence.read_started()
    except UnsafeFolder as error:
        return Wait(
            WaitKind.STORAGE,
            f"{error}; how it ends cannot be believed",
            remedy=f"it fails when it ends; set right what was changed in {claim.folder}",
        )
    except OSError:
        return None
    if outcome is not None and claim.function_host is None:
        return _not_taken_in(outcome, now, lack)
    return None if started is None else _of_supervisor(started, claim, lack)


def _not_taken_in(outcome: OutcomeRecord, now: int, lack: HostTrouble | None) -> Wait | None:
    how = outcome.reason if outcome.exit_code is None else f"exit code {outcome.exit_code}"
    detail = f"its command has ended ({how}), and the store does not know it yet"
    if lack is not None:
        return Wait(lack.kind, f"{detail}: {lack.cause}", remedy=lack.remedy)
    if now - outcome.finished_at < SOON:
        return None
    return Wait(
        WaitKind.PRESSURE, detail, remedy="a worker takes it in: headway work, headway doctor"
    )


def _of_supervisor(started: Started, claim: Claim, lack: HostTrouble | None) -> Wait | None:
    pid = started.supervisor_pid
    whose = "its supervisor" if claim.function_host is None else "the supervisor of its host"
    if proc.is_stopped(pid, started.supervisor_start):
        return Wait(
            WaitKind.PRESSURE,
            f"{whose} (pid {pid}) is stopped: nobody sees its output, its deadline or its end",
            remedy=f"let it go on: kill -CONT {pid}; a cancel ends it 10 s after the job's grace",
        )
    if proc.start_time(pid) != started.supervisor_start:
        return Wait(
            WaitKind.PRESSURE,
            f"{whose} (pid {pid}) is gone, and what became of it is not judged yet",
            remedy="a worker judges it: headway work",
        )
    ended = proc.start_time(started.child_pid) != started.child_start
    if ended and lack is not None:
        detail = f"its command has ended, and its outcome may have no room: {lack.cause}"
        return Wait(lack.kind, detail, remedy=lack.remedy)
    return None
