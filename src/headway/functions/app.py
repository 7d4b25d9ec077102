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
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from headway.base.errors import InvalidInputError
from headway.base.worker_lock import CALLS_CAME
from headway.core.model import JobId, JobSpec
from headway.functions.handle import Handle
from headway.functions.import_guard import is_imported_by_headway
from headway.functions.tasks import (
    Call,
    Task,
    code_of,
    linked,
    name_of,
    refuse_no_function,
    request_for,
)
from headway.jobs.specification import function_spec, params_of_call, with_arguments
from headway.store.new_jobs import Alike

if TYPE_CHECKING:
    from typing import Unpack

    from headway.base.clock import Clock
    from headway.base.units import Duration
    from headway.client import Client
    from headway.functions.app_workflow import AppWorkflow
    from headway.functions.run_handle import RunHandle
    from headway.functions.tasks import Options
    from headway.jobs.context import Context
    from headway.store.new_jobs import Model

P = ParamSpec("P")
R = TypeVar("R")


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
        self._context: Context | None = None
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

    def workflow(
        self,
        name: str,
        *,
        version: str | None = None,
        description: str | None = None,
        inputs: Sequence[str] | None = None,
        params: Mapping[str, Any] | None = None,
        artifacts: Mapping[str, Any] | None = None,
        budget: Mapping[str, float] | None = None,
        timeout: Duration | None = None,
        finally_: Sequence[str | Task[..., Any]] | None = None,
        defaults: Mapping[str, Any] | None = None,
        imports: Mapping[str, Any] | None = None,
    ) -> AppWorkflow:
        """A workflow whose nodes are declared here, with the keys that a file has at its top."""
        from headway.functions.app_workflow import AppWorkflow

        keys = {word: value for word, value in locals().items() if word in _OF_WORKFLOWS}
        return AppWorkflow(self, self.task, name, keys)

    def run(self, name: str, *words: Any, **given: Any) -> RunHandle:
        """Start a run of a workflow's file, by its name or path, with these parameters; durable
        when this returns. Words that are no parameters of it are options: `key`, `after`,
        `priority`, `require_approval`, `subject`."""
        from headway.functions.app_workflow import START_OPTIONS, start_options
        from headway.functions.run_handle import RunHandle
        from headway.workflows.nouns import Workflows

        _refuse_run_by_import(name)
        workflows = Workflows(self.context)
        options = {word: given[word] for word in START_OPTIONS if word in given}
        if options:
            declared = {each["name"] for each in workflows.show(name)["params"]}
            options = {word: value for word, value in options.items() if word not in declared}
        params = {word: value for word, value in given.items() if word not in options}
        run = workflows.start(name, *words, params=params, **start_options(self.context, options))
        return RunHandle(self, run)

    # -- submitting ----------------------------------------------------------------------------

    def submit(self, call: Call) -> Handle[Any]:
        """Submit one call; durable when this returns."""
        context = self._context
        if context is None or self._pid != os.getpid():
            context = self.context
        model = self._model(call, context) if isinstance(call, Call) else None
        if model is not None:
            params = params_of_call(model.job.params, call.arguments)
            job_id = context.store.add_alike([Alike(model, {0: params})])
            if job_id is not None:
                context.wake(CALLS_CAME)
                return Handle(self, job_id)
        return self.submit_many([call])[0]

    def submit_many(self, calls: Iterable[Call]) -> list[Handle[Any]]:
        """Submit all calls, or none, in one transaction.

        They may be a graph: `after` of one may name others of them, as in
        `[a := fetch.call(1), use.options(after=[a]).call(2)]`.
        """
        if isinstance(calls, Call):
            raise InvalidInputError("submit_many takes a list of calls; for one there is submit")
        context, calls = self.context, list(calls)
        kinds = self._kinds(calls, context)
        first = self._submit_alike(kinds, context) if kinds else None
        if first is not None:
            return [Handle(self, job_id) for job_id in range(first, first + len(calls))]
        from headway.jobs.submit import submit_calls

        submitted = submit_calls(context, self._specs(calls, context))
        return [Handle(self, each.job_id) for each in submitted]

    def submit_on(self, connection: Any, *calls: Call) -> list[Handle[Any]]:
        """Submit within the caller's own transaction on a psycopg connection to the same store.

        The jobs become visible, and may start, with its commit.
        """
        from headway.jobs.submit import submit_on

        context = self.context
        submitted = submit_on(context, connection, self._specs(calls, context))
        return [Handle(self, each.job_id) for each in submitted]

    def _submit_alike(self, kinds: Sequence[Alike], context: Context) -> JobId | None:
        """Submit calls that are plain, as most are, and say the first id; None: they must be
        submitted in the way that is there for all."""
        first = context.store.add_alike(kinds)
        if first is not None:
            context.wake(CALLS_CAME)
        return first

    def _kinds(self, calls: Sequence[Call], context: Context) -> list[Alike]:
        """The calls of each task, when they also share their options, if all of them are plain."""
        from headway.jobs.insert import worth_it

        kinds: dict[tuple[int, int], Alike] = {}
        for place, call in enumerate(calls):
            if not isinstance(call, Call):
                return []
            kind = id(call.task), id(call.options)
            if kind not in kinds:
                model = self._model(call, context)
                if model is None:
                    return []
                kinds[kind] = Alike(model, {})
            model, params = kinds[kind]
            params[place] = params_of_call(model.job.params, call.arguments)
        levels = {each.model.job.priority for each in kinds.values()}
        if len(levels) != 1 or not worth_it(len(kinds), len(calls)):
            return []
        return list(kinds.values())

    def _model(self, call: Call, context: Context) -> Model | None:
        """What it has in common with others of its kind, kept with a task for its next call."""
        task, known = call.task, call.task.model
        declared = task.declares(call.options)
        if declared and known is not None and known[0] is context:
            return known[1]
        if call.options.get("after") is not None:
            return None
        from headway.jobs.insert import model_of
        from headway.jobs.submit import origin_of

        _refuse_by_import(task)
        spec = function_spec(request_for(call, context.clock.now()), task.name, {})
        model = model_of(spec, origin_of(context))
        if declared and model is not None:
            task.model = context, model
        return model

    def _specs(self, calls: Sequence[Call], context: Context) -> list[JobSpec]:
        """Checked specifications. What calls of one task have in common, when they also share
        their options, is checked once."""
        now = context.clock.now()
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
                self._refuse_elsewhere(call.options.get("after"), context)
                common[kind] = function_spec(request_for(call, now), call.task.name, {})
            specs.append(with_arguments(common[kind], call.arguments))
        if any(call.options.get("after") is not None for call in calls):
            from headway.jobs.lookup import find_id
            from headway.jobs.submit import graph_limit

            find = partial(find_id, context)
            return linked(calls, specs, limit=partial(graph_limit, context), find=find)
        return specs

    def _refuse_elsewhere(self, after: Any, context: Context) -> None:
        """A job of another store may have the id of one that is here."""
        for each in after if isinstance(after, list | tuple | set | frozenset) else ():
            if isinstance(each, Handle) and each._app is not self:
                theirs, ours = each._app.context.home, context.home
                if (theirs.store_url or theirs.database) != (ours.store_url or ours.database):
                    raise InvalidInputError(f"after: {each.id} is a job of another store")

    # -- looking -------------------------------------------------------------------------------

    def handle(self, job: JobId | str) -> Handle[Any]:
        """A handle of a job by its id or its slug, for a process that did not submit it."""
        from headway.jobs.lookup import find_id, find_job

        if not isinstance(job, str | int) or isinstance(job, bool):
            raise InvalidInputError(f"{job!r} is not the id of a job; give 'job-24' or 24")
        job_id = find_id(self.context, str(job))
        find_job(self.context, job_id)
        return Handle(self, job_id)

    @property
    def context(self) -> Context:
        """Whose store the jobs are kept in; opened when first needed, and anew after a fork."""
        with self._opening:
            if self._context is None or self._pid != os.getpid():
                from headway.jobs.context import open_context

                self._context = open_context(create=True, **self._where)  # type: ignore[arg-type]
                self._pid = os.getpid()
            return self._context

    @property
    def client(self) -> Client:
        """All the other verbs, on the same store."""
        from headway.client import Client

        context = self.context
        if self._client is None or self._client.context is not context:
            self._client = Client(context)
        return self._client

    def close(self) -> None:
        with self._opening:
            if self._context is not None and self._pid == os.getpid():
                self._context.close()
            self._context = self._client = None

    def __enter__(self) -> App:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_OF_WORKFLOWS = (
    *("version", "description", "inputs", "params", "artifacts", "budget", "timeout", "finally_"),
    *("defaults", "imports"),
)


def _refuse_run_by_import(name: str) -> None:
    if is_imported_by_headway():
        raise InvalidInputError(
            f"{name} is started when a module is imported, and a worker imports it, too; put that "
            'below `if __name__ == "__main__":`'
        )


def _refuse_by_import(task: Task[Any, Any]) -> None:
    if is_imported_by_headway():
        raise InvalidInputError(
            f"{task.name} is submitted when its module is imported, and a worker imports it, too; "
            'put that below `if __name__ == "__main__":`'
        )
