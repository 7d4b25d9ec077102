"""Park runners of coding agents that have met a limit, and resume them.

The transaction that settles the job which learned it parks the runner. So no other job of the
runner is started to learn the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headway.base.errors import NotFoundError
from headway.base.units import show_instant
from headway.core.agents import ParkedRunner, park_until, runner_of, runner_topic, with_asked
from headway.core.model import Job, shown
from headway.core.settle import RunnerLimit
from headway.integrations.agents.files import runner_names
from headway.store.new_jobs import Event

if TYPE_CHECKING:
    from headway.jobs.context import Context
    from headway.store.transaction import ReadTx, WriteTx


def park_runner(tx: WriteTx, job: Job, met: RunnerLimit, reason: str, *, actor: str) -> None:
    """The runner of this job has met a limit. A longer wait that is known stays."""
    runner = runner_of(job) or ""
    known = tx.runners.parked().get(runner)
    until: int | None = None
    guessed = False
    if not met.until_resumed:
        until, guessed = park_until(tx.now(), met.after, known)
    if known is not None and known.holds(tx.now()) and not _is_longer(until, known.until):
        return
    tx.runners.park(ParkedRunner(runner, until, reason, tx.now(), job.id, guessed))
    data = {"runner": runner, "until": until, "reason": reason}
    tx.events.add([Event("runner_parked", job.id, data)], actor=actor)


def _is_longer(until: int | None, known: int | None) -> bool:
    return known is not None and (until is None or until > known)


def runner_works(tx: WriteTx, job: Job) -> None:
    """A job of the runner succeeded: the next guess begins anew."""
    runner = runner_of(job) or ""
    known = tx.runners.parked().get(runner)
    if known is not None and not known.holds(tx.now()):
        tx.runners.resume(runner)


def with_session(job: Job, met: RunnerLimit) -> Job:
    """The job as its chain goes on: where its program can, it continues the session."""
    if met.session_id is None:
        return job
    return with_asked(job, {"session_id": met.session_id})


def resume_runner(context: Context, name: str) -> bool:
    """Let jobs of the runner start again; False if it was not parked."""

    def resume(tx: WriteTx) -> bool:
        if not tx.runners.resume(name):
            return False
        tx.events.add([Event("runner_resumed", None, {"runner": name})], actor=context.actor)
        tx.waits.wake_topics([runner_topic(name)])
        return True

    resumed = context.store.transact(resume)
    if resumed:
        context.wake()
    elif name not in (there := runner_names(context.home.path)):
        raise NotFoundError(f"there is no runner {name!r}; there are {', '.join(there)}")
    return resumed


def parked_runners(tx: ReadTx) -> dict[str, dict[str, Any]]:
    """Those that are parked now, as documents show them."""
    return {
        name: {
            "until": show_instant(each.until),
            "reason": each.reason,
            "at": show_instant(each.at),
            "job": shown(each.job_id),
        }
        for name, each in tx.runners.parked().items()
        if each.holds(tx.now())
    }
