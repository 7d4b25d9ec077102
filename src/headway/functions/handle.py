"""A submitted call, as its submitter holds it: its state, its result, its end."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from headway.base.errors import HeadwayError, TimedOutError
from headway.base.units import Duration, read_duration
from headway.core.model import Job, JobId, shown
from headway.core.states import TERMINAL, Status
from headway.jobs.lookup import last_of_chain

if TYPE_CHECKING:
    from headway.jobs.context import Context

R = TypeVar("R")


class OpenedApp(Protocol):
    """An app, as far as a handle knows it."""

    @property
    def context(self) -> Context: ...


class TaskFailedError(HeadwayError):
    """The job whose result was asked for did not succeed."""

    def __init__(self, job: Job) -> None:
        super().__init__(f"{shown(job.id)} ({job.name}) {job.status}: {job.reason or 'no reason'}")
        self.job_id = job.id
        self.status = job.status.value

    def __reduce__(self) -> tuple[Any, ...]:
        """As one that another process raised, of a pool, it comes without the job."""
        return _failed_elsewhere, (type(self), str(self), vars(self))


def _failed_elsewhere(
    kind: type[TaskFailedError], message: str, known: dict[str, Any]
) -> TaskFailedError:
    error = kind.__new__(kind, message)
    vars(error).update(known)
    return error


class Handle(Generic[R]):
    """A submitted job. It holds nothing but the id, so it may be kept, or made again elsewhere."""

    def __init__(self, app: OpenedApp, job_id: JobId) -> None:
        self._app = app
        self.job_id = job_id

    @property
    def id(self) -> str:
        return shown(self.job_id)

    @property
    def state(self) -> str:
        """The state of the chain's last job: a retry counts, not what it repairs."""
        return self._last().status.value

    def done(self) -> bool:
        return self._last().status in TERMINAL

    def result(self, timeout: Duration | None = None) -> R:
        """What the function returned, waiting for it and its retries.

        Raises TaskFailedError with the reason if it did not succeed, TimedOutError after `timeout`
        (seconds, or as `"5m"`), with what is in the way. A skipped job gives None. Inside a task it
        lends what that one holds meanwhile.
        """
        from headway.functions.current import present
        from headway.jobs.wait import Waiter

        if timeout is not None and not isinstance(timeout, int | float):
            timeout = read_duration(timeout, "timeout") / 1e6
        waiter = Waiter(self._app.context, self.job_id, inside=present())
        try:
            job = waiter.until_ended(timeout=timeout, wonder=self._warn_if_unknown)
        except TimedOutError as error:
            from headway.jobs.views.why import why_not

            cause = why_not(self._app.context, waiter.job.id)
            raise TimedOutError(f"{error}: {cause}" if cause else str(error)) from None
        if job.status not in (Status.SUCCEEDED, Status.SKIPPED):
            raise self._failure(job)
        with self._app.context.store.read() as tx:
            result: R = tx.jobs.results([job.id]).get(job.id)  # type: ignore[assignment]
        return result

    def _failure(self, job: Job) -> TaskFailedError:
        error = TaskFailedError(job)
        folder = self._app.context.home.job(job.id)
        if any(
            os.path.exists(os.path.join(folder, f"{each}.log")) for each in ("stdout", "stderr")
        ):
            error.add_note(f"`headway jobs tail {shown(job.id)}` shows what it wrote")
        return error

    def _warn_if_unknown(self, job: Job) -> None:
        """Warn if no worker knows the function and the caller waits without a limit."""
        from headway.jobs.views.why import not_importable

        cause = not_importable(self._app.context, job.id)
        if cause:
            import logging

            logging.getLogger("headway").warning("%s is not run: %s", shown(job.id), cause)

    def cancel(self) -> None:
        from headway.jobs.cancel import cancel

        cancel(self._app.context, [self.job_id])

    def document(self) -> dict[str, Any]:
        """All that is known, as `headway jobs show --json` prints it."""
        from headway.jobs.views.details import document

        return document(self._app.context, self.job_id)

    def _last(self) -> Job:
        return last_of_chain(self._app.context, self.job_id)

    if not TYPE_CHECKING:  # type checkers know only the declared attributes

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(no_attribute("a handle", name, _ELSEWHERE), name=name, obj=self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Handle):
            return NotImplemented
        return self.job_id == other.job_id and self._app is other._app

    def __hash__(self) -> int:
        return hash(self.job_id)

    def __repr__(self) -> str:
        return f"<{self.id}>"


# Verbs of others, docs/coming-from.md.
_ELSEWHERE = {
    **dict.fromkeys(("get", "return_value", "wait"), "use result(...)"),
    **dict.fromkeys(("is_finished", "ready"), "use done()"),
    **dict.fromkeys(("abort", "revoke"), "use cancel()"),
    "status": "use state",
}


def no_attribute(what: str, name: str, words: Mapping[str, str]) -> str:
    """What to say to a caller of an attribute that is not there, but perhaps in other libraries."""
    return f"{what} has no attribute {name!r}" + (f"; {words[name]}" if name in words else "")
