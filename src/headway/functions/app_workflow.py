"""A workflow that is declared in Python: `release = app.workflow("release")`.

It makes the document that a TOML file of the same workflow is read as. Reader, checks and compiler
are those of files; nothing of them is done here a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from headway.base.errors import InvalidInputError
from headway.base.units import exact_duration, read_duration
from headway.functions.import_guard import is_imported_by_headway
from headway.functions.run_handle import RunHandle
from headway.functions.tasks import Task, refuse_no_function
from headway.functions.type_checks import json_value
from headway.jobs.lookup import find_id
from headway.workflows.nouns import Workflows

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import TypedDict, Unpack

    from headway.base.units import Duration
    from headway.functions.handle import OpenedApp
    from headway.jobs.context import Context

    Named = str | Task[..., Any]  # a node by its name, or the task that it calls

    class NodeKeys(TypedDict, total=False):
        """For type checkers and editors: the keys of a node, as in a file."""

        after: Sequence[Named | Mapping[str, Any]]
        on: Mapping[str, Sequence[Named]]
        join: str
        loop: Mapping[str, Any]
        tolerate: Sequence[str]
        when: Sequence[str]
        matrix: Mapping[str, Sequence[Any]]
        exclude: Sequence[Mapping[str, Any]]
        each: Mapping[str, Any]
        needs: Sequence[str]
        produces: Sequence[str] | Mapping[str, Sequence[str]]
        outputs: Sequence[str]
        root: str
        approval: bool
        env: Mapping[str, str]
        labels: Mapping[str, str]
        locks: Sequence[str]
        resources: Sequence[str]
        rates: Sequence[str]
        priority: int
        timeout: Duration
        idle_timeout: Duration
        grace: Duration
        retries: int
        retry_base: Duration
        retry_cap: Duration
        retry_jitter: float
        retry_on: Collection[str | int | type[BaseException]]
        skip_exit_codes: Sequence[int]
        require: Sequence[str]
        pin_head: bool
        target: str
        any_host: bool
        cwd: str


P = ParamSpec("P")
R = TypeVar("R")

DURATIONS = ("timeout", "idle_timeout", "grace", "retry_base", "retry_cap", "delay")
_WITH_DURATIONS = ("defaults", "loop")
START_OPTIONS = ("after", "key", "priority", "require_approval", "subject")
_REFERENCE = "${{"


class AppWorkflow:
    """The nodes of a workflow, in the order in which they are declared."""

    def __init__(
        self, app: OpenedApp, task: Callable[..., Any], name: str, keys: Mapping[str, Any]
    ) -> None:
        """`task` makes a function a task of the app."""
        if not isinstance(name, str) or not name or not name.isprintable() or len(name) > 64:
            raise InvalidInputError(f"{name!r} is no name of a workflow; give a short text")
        self.name = name
        self._app = app
        self._declare = task
        self._nodes: dict[str, dict[str, Any]] = {}
        self._of_tasks: dict[str, str] = {}  # the node that calls a task
        self._keys = keys

    # -- declaring -----------------------------------------------------------------------------

    def command(
        self,
        name: str,
        argv: Sequence[str] | None = None,
        *,
        shell: str | None = None,
        **keys: Unpack[NodeKeys],
    ) -> str:
        """A node that runs a command, or a line for the shell; its name."""
        return self.add(name, argv=argv, shell=shell, **keys)

    @overload
    def node(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def node(
        self,
        /,
        *,
        name: str | None = None,
        task_name: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        **keys: Unpack[NodeKeys],
    ) -> Callable[[Callable[P, R]], Task[P, R]]: ...
    def node(
        self,
        function: Callable[P, R] | None = None,
        /,
        *,
        name: str | None = None,
        task_name: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        **keys: Any,
    ) -> Task[P, R] | Callable[[Callable[P, R]], Task[P, R]]:
        """Make a function a task of the app, and a node that calls it with these arguments. They
        may have references, as in a file."""

        def declare(function: Callable[P, R]) -> Task[P, R]:
            task = self._task(function, task_name)
            given = self._plain("arguments", arguments or {}, name or task.__name__)
            try:
                task.refuse_wrong_arguments(given, besides=_has_reference)
            except InvalidInputError as error:
                raise InvalidInputError(f"{error}; give arguments={{...}}") from None
            node = self.add(
                name or task.__name__, task=task.name, args={"arguments": given}, **keys
            )
            self._of_tasks.setdefault(task.name, node)
            return task

        return declare if function is None else declare(function)

    def _task(self, function: Callable[P, R], task_name: str | None) -> Task[P, R]:
        if isinstance(function, Task) and task_name is None:
            return function
        refuse_no_function(function)
        task: Task[P, R] = self._declare(task_name=task_name)(function)
        return task

    def add(self, name: str, **keys: Any) -> str:
        """A node with the keys that it has in a file: `uses` and `args`, or another that says what
        it does; its name."""
        if not isinstance(name, str):
            raise InvalidInputError(f"{name!r} is no name of a node; give a text")
        if name in self._nodes:
            raise InvalidInputError(f"{self.name}: there are two nodes '{name}'; rename one")
        self._nodes[name] = {
            key: self._plain(key, value, name) for key, value in keys.items() if value is not None
        }
        return name

    # -- the document --------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """What a TOML file of this workflow is read as."""
        top = {
            key.removesuffix("_"): self._plain(key, value)
            for key, value in self._keys.items()
            if value is not None
        }
        nodes = {name: dict(keys) for name, keys in self._nodes.items()}
        return {**self._named(top), "nodes": {name: self._named(nodes[name]) for name in nodes}}

    def _named(self, keys: dict[str, Any]) -> dict[str, Any]:
        """With names of nodes in place of tasks; their nodes may be declared later."""
        found: dict[str, Any] = _each(keys, self._name_of)
        return found

    def _name_of(self, value: Any) -> Any:
        if not isinstance(value, Task):
            return value
        if value.name not in self._of_tasks:
            raise InvalidInputError(
                f"{self.name}: {value.name} is no node of it; put @{self.name}.node above it"
            )
        return self._of_tasks[value.name]

    def _plain(self, key: str, value: Any, node: str | None = None) -> Any:
        """The value as the reader of files gets it: lists, tables, texts, numbers."""
        where = f"{self.name}: " if node is None else f"{self.name}: node '{node}': "
        plain = _as_read(key, value, where)
        names = _each(plain, lambda each: each.name if isinstance(each, Task) else each)
        problem = json_value(names, "")
        if problem:
            raise InvalidInputError(f"{where}{key} {problem}")
        return plain

    # -- runs ----------------------------------------------------------------------------------

    def start(self, *words: Any, **given: Any) -> RunHandle:
        """Start a run with these parameters; durable when this returns. Words that are no
        parameters of it are options: `key`, `after`, `priority`, `require_approval`, `subject`."""
        if is_imported_by_headway():
            raise InvalidInputError(
                f"{self.name} is started when its module is imported, and a worker imports it, "
                'too; put that below `if __name__ == "__main__":`'
            )
        document = self.document()
        params = {
            word: value
            for word, value in given.items()
            if word not in START_OPTIONS or word in document.get("params", {})
        }
        options = {word: value for word, value in given.items() if word not in params}
        context = self._app.context
        run = Workflows(context).start_document(
            document, *words, name=self.name, params=params, **start_options(context, options)
        )
        return RunHandle(self._app, run)

    def __repr__(self) -> str:
        return f"<workflow {self.name}>"


def start_options(context: Context, options: Mapping[str, Any]) -> dict[str, Any]:
    """How a run is asked for: what it is after as the numbers of jobs."""
    found = {name: value for name, value in options.items() if value is not None}
    after = found.pop("after", None)
    if after is None:
        return found
    if isinstance(after, str) or not hasattr(after, "__iter__"):
        after = [after]
    jobs = [getattr(each, "job_id", None) or find_id(context, str(each)) for each in after]
    return {**found, "after": jobs}


def _has_reference(value: Any) -> bool:
    return isinstance(value, str) and _REFERENCE in value


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same value with every part changed that is neither list nor table."""
    if isinstance(value, dict):
        return {key: _each(each, change) for key, each in value.items()}
    if isinstance(value, list):
        return [_each(each, change) for each in value]
    return change(value)


def _as_read(key: str, value: Any, where: str) -> Any:
    """Python's words for what a file says in others. `key` is "" where it means something else."""
    if key in DURATIONS and not isinstance(value, str):
        return exact_duration(read_duration(value, f"{where}{key}"))
    match value:
        case Mapping():
            inner = key in _WITH_DURATIONS
            return {
                name: _as_read(str(name) if inner else "", each, where)
                for name, each in value.items()
            }
        case list() | tuple() | set() | frozenset():
            several = sorted(value, key=str) if isinstance(value, set | frozenset) else value
            return [_as_read("", each, where) for each in several]
        case PathLike():
            return str(fspath(value))
        case type() if issubclass(value, BaseException):
            return f"{value.__module__}.{value.__qualname__}"
    return value
