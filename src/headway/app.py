"""`headway.App`: Python functions as durable jobs.

    app = headway.App()

    @app.task(retries=3)
    def build(target: str) -> dict: ...

    handle = build.submit("docs")
    handle.result(timeout=60)

An app finds its store when it first needs it, so importing a module that has one touches nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from headway.core.model import Job, JobId, JobSpec, shown
from headway.core.states import TERMINAL, Status
from headway.errors import HeadwayError, InvalidInputError, TimedOutError
from headway.hosted import is_imported_by_headway
from headway.store.seam_adding import Alike
from headway.submission import function_spec, params_of_call, with_arguments
from headway.tasks import (
    Call,
    Task,
    code_of,
    linked,
    name_of,
    refuse_no_function,
    request_for,
    told_elsewhere,
)
from headway.units import Duration, read_duration

if TYPE_CHECKING:
    from typing import Unpack

    from headway.client import Client
    from headway.clock import Clock
    from headway.store.seam_adding import Model
    from headway.taskoptions import Options

P = ParamSpec("P")
R = TypeVar("R")


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
    kind: type[TaskFailedError], told: str, known: dict[str, Any]
) -> TaskFailedError:
    error = kind.__new__(kind, told)
    vars(error).update(known)
    return error


class App:
    """A set of tasks and the store that their jobs are kept in.

    Without `url` the store of the nearest `.headway/` is used, as on the command line.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        home: str | None = None,
        actor: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        if url is not None and not url:
            raise InvalidInputError("the URL of the store is empty; without one it is .headway/")
        self.tasks: dict[str, Task[Any, Any]] = {}
        self._where = {"store_url": url, "home": home, "actor": actor, "clock": clock}
        self._opening = threading.Lock()
        self._client: Client | None = None
        self._pid = 0

    # -- declaring -----------------------------------------------------------------------------

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(
        self, /, *, task_name: str | None = None, **options: Unpack[Options]
    ) -> Callable[[Callable[P, R]], Task[P, R]]: ...
    def task(
        self,
        function: Callable[P, R] | None = None,
        /,
        *,
        task_name: str | None = None,
        **options: Any,
    ) -> Task[P, R] | Callable[[Callable[P, R]], Task[P, R]]:
        """Make a function a task, by itself or with options: retries, locks, timeout and so on."""
        if not isinstance(self, App):
            raise InvalidInputError("task is of an app; make one with app = headway.App()")

        def declare(function: Callable[P, R]) -> Task[P, R]:
            refuse_no_function(function)
            name = task_name or name_of(function)
            known = self.tasks.get(name)
            if known is not None and code_of(known.function) is not code_of(function):
                raise InvalidInputError(f"there are two tasks {name}; give one a task_name")
            self.tasks[name] = task = Task(self, function, name, options)
            return task

        return declare if function is None else declare(function)

    # -- submitting ----------------------------------------------------------------------------

    def submit(self, call: Call) -> Handle[Any]:
        """Submit one call; durable when this returns."""
        client = self._client
        if client is None or self._pid != os.getpid():
            client = self.client
        model = self._model(call, client) if isinstance(call, Call) else None
        if model is not None:
            params = params_of_call(model.job.params, call.arguments)
            job_id = client.store.add_alike([Alike(model, {0: params})])
            if job_id is not None:
                client.wake(only_calls=True)
                return Handle(self, job_id)
        return self.submit_many([call])[0]

    def submit_many(self, calls: Iterable[Call]) -> list[Handle[Any]]:
        """Submit all calls, or none, in one transaction.

        They may be a graph: `after` of one may name others of them, as in
        `[a := fetch.call(1), use.options(after=[a]).call(2)]`.
        """
        if isinstance(calls, Call):
            raise InvalidInputError("submit_many takes a list of calls; for one there is submit")
        client, calls = self.client, list(calls)
        kinds = self._kinds(calls, client)
        first = self._submit_alike(kinds, client) if kinds else None
        if first is not None:
            return [Handle(self, job_id) for job_id in range(first, first + len(calls))]
        submitted = client.submit_specs(self._specs(calls, client))
        return [Handle(self, each.job_id) for each in submitted]

    def submit_on(self, connection: Any, *calls: Call) -> list[Handle[Any]]:
        """Submit within the caller's own transaction on a psycopg connection to the same store.

        The jobs become visible, and may start, with its commit.
        """
        client = self.client
        submitted = client.submit_on(connection, self._specs(calls, client))
        return [Handle(self, each.job_id) for each in submitted]

    def _submit_alike(self, kinds: Sequence[Alike], client: Client) -> JobId | None:
        """Submit calls that are plain, as most are, and say the first id; None: they must be
        submitted in the way that is there for all."""
        first = client.store.add_alike(kinds)
        if first is not None:
            client.wake(only_calls=True)
        return first

    def _kinds(self, calls: Sequence[Call], client: Client) -> list[Alike]:
        """The calls of each task, when they also share their options, if all of them are plain."""
        from headway.adding import worth_it

        kinds: dict[tuple[int, int], Alike] = {}
        for place, call in enumerate(calls):
            if not isinstance(call, Call):
                return []
            kind = id(call.task), id(call.options)
            if kind not in kinds:
                model = self._model(call, client)
                if model is None:
                    return []
                kinds[kind] = Alike(model, {})
            model, params = kinds[kind]
            params[place] = params_of_call(model.job.params, call.arguments)
        levels = {each.model.job.priority for each in kinds.values()}
        if len(levels) != 1 or not worth_it(len(kinds), len(calls)):
            return []
        return list(kinds.values())

    def _model(self, call: Call, client: Client) -> Model | None:
        """What it has in common with others of its kind, kept with a task for its next call."""
        task, known = call.task, call.task.model
        declared = task.declares(call.options)
        if declared and known is not None and known[0] is client:
            return known[1]
        if call.options.get("after") is not None:
            return None
        from headway.adding import model_of

        _refuse_by_import(task)
        spec = function_spec(request_for(call, client.clock.now()), task.name, {})
        model = model_of(spec, client.origin())
        if declared and model is not None:
            task.model = client, model
        return model

    def _specs(self, calls: Sequence[Call], client: Client) -> list[JobSpec]:
        """Checked specifications. What calls of one task have in common, when they also share
        their options, is checked once."""
        now = client.clock.now()
        common: dict[tuple[int, int], JobSpec] = {}
        specs = []
        for call in calls:
            if not isinstance(call, Call):
                already = ", but a job already" if isinstance(call, Handle) else ""
                raise InvalidInputError(
                    f"{call!r} is not a call{already}; make one with task.call(...)"
                )
            kind = id(call.task), id(call.options)
            if kind not in common:
                _refuse_by_import(call.task)
                self._refuse_elsewhere(call.options.get("after"), client)
                common[kind] = function_spec(request_for(call, now), call.task.name, {})
            specs.append(with_arguments(common[kind], call.arguments))
        if any(call.options.get("after") is not None for call in calls):
            return linked(calls, specs, client.graph_limit)
        return specs

    def _refuse_elsewhere(self, after: Any, client: Client) -> None:
        """A job of another store may have the id of one that is here."""
        for each in after if isinstance(after, list | tuple | set | frozenset) else ():
            if isinstance(each, Handle) and each._app is not self:
                theirs, ours = each._app.client.home, client.home
                if (theirs.store_url or theirs.database) != (ours.store_url or ours.database):
                    raise InvalidInputError(f"after: {each.id} is a job of another store")

    # -- looking -------------------------------------------------------------------------------

    def handle(self, job: JobId | str) -> Handle[Any]:
        """A handle of a job by its id, for a process that did not submit it."""
        from headway.submission import parse_job_id

        if not isinstance(job, str | int) or isinstance(job, bool):
            raise InvalidInputError(f"{job!r} is not the id of a job; give 'job-24' or 24")
        job_id = parse_job_id(str(job))
        self.client.job(job_id)
        return Handle(self, job_id)

    @property
    def client(self) -> Client:
        """All the other verbs; opened when first needed, and anew after a fork."""
        with self._opening:
            if self._client is None or self._pid != os.getpid():
                from headway.client import connect

                self._client = connect(create=True, **self._where)  # type: ignore[arg-type]
                self._pid = os.getpid()
            return self._client

    def close(self) -> None:
        with self._opening:
            if self._client is not None and self._pid == os.getpid():
                self._client.close()
            self._client = None

    def __enter__(self) -> App:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _refuse_by_import(task: Task[Any, Any]) -> None:
    if is_imported_by_headway():
        raise InvalidInputError(
            f"{task.name} is submitted when its module is imported, and a worker imports it, too; "
            'put that below `if __name__ == "__main__":`'
        )


class Handle(Generic[R]):
    """A submitted job. It holds nothing but the id, so it may be kept, or made again elsewhere."""

    def __init__(self, app: App, job_id: JobId) -> None:
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
        from headway.waiting import Waiter

        if timeout is not None and not isinstance(timeout, int | float):
            timeout = read_duration(timeout, "timeout") / 1e6
        waiter = Waiter(self._app.client, self.job_id, inside=present())
        try:
            job = waiter.until_ended(timeout=timeout, wonder=self._warn_if_unknown)
        except TimedOutError as error:
            from headway.views import why_not

            cause = why_not(self._app.client, waiter.job.id)
            raise TimedOutError(f"{error}: {cause}" if cause else str(error)) from None
        if job.status not in (Status.SUCCEEDED, Status.SKIPPED):
            raise self._failure(job)
        with self._app.client.store.read() as tx:
            result: R = tx.results([job.id]).get(job.id)  # type: ignore[assignment]
        return result

    def _failure(self, job: Job) -> TaskFailedError:
        error = TaskFailedError(job)
        folder = self._app.client.home.job(job.id)
        if any(
            os.path.exists(os.path.join(folder, f"{each}.log")) for each in ("stdout", "stderr")
        ):
            error.add_note(f"`headway jobs tail {shown(job.id)}` shows what it wrote")
        return error

    def _warn_if_unknown(self, job: Job) -> None:
        """Who waits without an end for what nobody can run likes to know that."""
        from headway.views import not_importable

        cause = not_importable(self._app.client, job.id)
        if cause:
            import logging

            logging.getLogger("headway").warning("%s is not run: %s", shown(job.id), cause)

    def cancel(self) -> None:
        self._app.client.cancel([self.job_id])

    def document(self) -> dict[str, Any]:
        """All that is known, as `headway jobs show --json` prints it."""
        return self._app.client.document(self.job_id)

    def _last(self) -> Job:
        return self._app.client.last_of_chain(self.job_id)

    if not TYPE_CHECKING:  # for who checks types there is no attribute but the declared ones

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(told_elsewhere("a handle", name, _ELSEWHERE), name=name, obj=self)

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
