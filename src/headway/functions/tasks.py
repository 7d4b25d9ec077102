"""Python functions as jobs: what a task is, and the call of one that can be stored.

A task is a function with a name and options. Its arguments travel as JSON, so they are bound to the
signature and checked when they are submitted, where the mistake was made, and not when it runs.
"""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, Protocol, TypeVar, overload

from headway.base.errors import InvalidInputError
from headway.core.graph import place, show_cycle
from headway.core.model import NOTHING, JobId, JobSpec
from headway.functions.handle import no_attribute
from headway.functions.task_options import OPTIONS, in_words, meant_option, refuse_unknown
from headway.functions.type_checks import Check, check_for, json_value
from headway.jobs.references import RUN_ID, runs_among
from headway.jobs.request import Request
from headway.jobs.request_values import several
from headway.jobs.specification import function_spec

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import TypedDict, Unpack

    from headway.base.units import Duration, Instant
    from headway.functions.handle import Handle
    from headway.jobs.context import Context
    from headway.store.new_jobs import Model

    class Options(TypedDict, total=False):
        """For type checkers and editors."""

        name: str | None
        slug: str | None
        labels: Mapping[str, str] | None
        priority: int | None
        position: int | None
        after: Collection[Handle[Any] | Call | str | int] | None
        locks: Collection[str] | None
        needs: Collection[str] | None
        produces: Collection[str] | None
        resources: Collection[str] | None
        rates: Collection[str] | None
        webhooks: Collection[str] | None
        group: str | int | None
        last: bool | None
        target: str | None
        subject: str | None
        require_approval: bool | None
        delay: Duration | None
        at: Instant | None
        timeout: Duration | None
        grace: Duration | None
        retries: int | None
        retry_base: Duration | None
        retry_cap: Duration | None
        retry_jitter: float | None
        retry_on: Collection[str | int | type[BaseException]] | None
        key: str | None
        on_finish: Collection[str] | None


P = ParamSpec("P")
R = TypeVar("R")

T = TypeVar("T")


class Submitter(Protocol):
    """An app, as far as a task knows it."""

    def submit(self, call: Call) -> Handle[Any]: ...


class Call(NamedTuple):
    """A task with its arguments, by name and ready for JSON, and the options of this one job."""

    task: Task[Any, Any]
    arguments: Mapping[str, Any]
    options: Mapping[str, Any] = NOTHING


class Task(Generic[P, R]):
    """A function that can be called as ever, or submitted as a job."""

    def __init__(
        self, app: Submitter, function: Callable[P, R], name: str, options: Mapping[str, Any]
    ) -> None:
        self.app = app
        self.function = function
        self.name = name
        self._options = options
        if options:
            self._refuse_wrong_options()
        self.model: tuple[Context, Model] | None = None  # of its plain calls
        self._signature = Signature(function)
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", name)
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Just run the function, here and now."""
        return self.function(*args, **kwargs)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call:
        """The call as something to submit later, with others."""
        return Call(self, self._signature.bind(self.name, args, kwargs), self._options)

    @overload
    def submit(self: Task[P, Coroutine[Any, Any, T]], *args: Any, **kwargs: Any) -> Handle[T]: ...
    @overload
    def submit(self, *args: Any, **kwargs: Any) -> Handle[R]: ...
    def submit(self, *args: Any, **kwargs: Any) -> Handle[Any]:
        """Submit the call. Words that the function does not know are options of the job."""
        options = self._options
        if kwargs:
            own = {
                word: kwargs.pop(word)
                for word in list(kwargs)
                if word in OPTIONS and word not in self._signature.names
            }
            options = {**options, **own} if own else options
        arguments = self._signature.bind(self.name, args, kwargs)
        return self.app.submit(Call(self, arguments, options))

    def options(self, **options: Unpack[Options]) -> Task[P, R]:
        """The same task with other options, also those whose names its arguments have taken.

        `after` may name calls that are submitted together with this one.
        """
        refuse_unknown(options)
        other = copy(self)  # the signature is read only once
        other._options = {**self._options, **options}
        other.model = None
        return other

    def refuse_wrong_arguments(
        self, arguments: Mapping[str, Any], *, besides: Callable[[Any], bool]
    ) -> None:
        """Raise if it cannot be called so; `besides` says of which values that is known later."""
        self._signature.refuse_wrong(self.name, arguments, besides)

    def declares(self, options: Mapping[str, Any]) -> bool:
        """Whether a call with these options has none of its own."""
        return options is self._options

    def _refuse_wrong_options(self) -> None:
        """Options that every submit would refuse are refused where they are written. Artifacts may
        be files, which are not checked yet."""
        options = {name: self._options[name] for name in self._options if name not in _ARTIFACTS}
        function_spec(request_for(Call(self, {}, options), 0), self.name, {})

    if not TYPE_CHECKING:  # type checkers know only the declared attributes

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(no_attribute("a task", name, _ELSEWHERE), name=name, obj=self)

    def __repr__(self) -> str:
        return f"<task {self.name}>"


_ARTIFACTS = ("needs", "produces")

# Verbs of others, docs/coming-from.md.
_ELSEWHERE = {
    **dict.fromkeys(
        ("apply_async", "defer", "defer_async", "delay", "enqueue", "send"), "use submit(...)"
    ),
    **dict.fromkeys(("s", "si", "signature"), "use call(...)"),
    **dict.fromkeys(("configure", "schedule", "set", "using"), "use options(...).submit(...)"),
}


class Signature:
    """The parameters of a function, each with the check that its hint stands for."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._signature = inspect.signature(function)
        hints = _hints_of(function)
        self.names = frozenset(self._signature.parameters)
        self._checks: dict[str, Check] = {}
        kinds = {each.kind for each in self._signature.parameters.values()}
        self._takes_more = inspect.Parameter.VAR_KEYWORD in kinds
        # With so many arguments, and no names, each has its place; else it is not as simple.
        simple = kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD}
        self._all_by_place = len(self.names) if simple else -1
        for name, parameter in self._signature.parameters.items():
            _refuse_unnameable(parameter, function)
            hint = hints.get(name, Any)
            self._checks[name] = check_for(
                dict[str, hint] if parameter.kind is parameter.VAR_KEYWORD else hint  # type: ignore[valid-type]
            )

    def bind(self, task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments by name, checked. Raises with the name of the one that is wrong."""
        checks = self._checks
        bound: Mapping[str, Any]
        if not kwargs and len(args) == self._all_by_place:
            bound = dict(zip(checks, args))  # noqa: B905  there are as many of both
        else:
            bound = self._bound(task, args, kwargs)
        for name, value in bound.items():
            problem = checks[name](value, "")
            if problem:
                raise InvalidInputError(f"{task}: argument {name}{_joined(problem)}")
        return self._flat(bound) if self._takes_more else bound

    def refuse_wrong(
        self, task: str, arguments: Mapping[str, Any], besides: Callable[[Any], bool]
    ) -> None:
        for name, value in self._bound(task, (), arguments).items():
            problem = None if besides(value) else self._checks[name](value, "")
            if problem:
                raise InvalidInputError(f"{task}: argument {name}{_joined(problem)}")

    def _bound(
        self, task: str, args: Iterable[Any], kwargs: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        try:
            return self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            message = f"{task}{self._signature}: {error}"
            word = next((each for each in kwargs if each not in self.names), None)
            if word is not None and not self._takes_more:
                message += "" if repr(word) in str(error) else f"; {word!r} is unknown"
                message += self._hint_for(word)
            raise InvalidInputError(message) from None

    def _hint_for(self, word: str) -> str:
        """The argument that was probably meant by an unknown name."""
        if word in OPTIONS:
            return f"; it is an option: use options({word}=...).call(...)"
        from difflib import get_close_matches

        close = get_close_matches(word, self.names, 1)
        return f"; did you mean {close[0]}?" if close else meant_option(word)

    def _flat(self, bound: Mapping[str, Any]) -> Mapping[str, Any]:
        flat: dict[str, Any] = {}
        for name, value in bound.items():
            kind = self._signature.parameters[name].kind
            flat.update(value if kind is inspect.Parameter.VAR_KEYWORD else {name: value})
        return flat


def _joined(problem: str) -> str:
    return problem if problem.startswith("[") else f" {problem}"


def _hints_of(function: Callable[..., Any]) -> Mapping[str, Any]:
    """A hint of a name that only type checkers know checks nothing; the others do."""
    try:
        return typing.get_type_hints(function)
    except Exception:
        known: dict[str, Any] = {}
        plain = inspect.unwrap(function)
        for name, hint in getattr(plain, "__annotations__", {}).items():
            alone = SimpleNamespace(__annotations__={name: hint})
            with suppress(Exception):
                known |= typing.get_type_hints(alone, getattr(plain, "__globals__", {}))
        return known


def _refuse_unnameable(parameter: inspect.Parameter, function: Callable[..., Any]) -> None:
    """A stored call has its arguments by name, and nothing else."""
    name, kind = parameter.name, parameter.kind
    called = getattr(function, "__qualname__", repr(function))
    if kind is parameter.POSITIONAL_ONLY:
        problem = f"parameter {name} is positional-only; a stored call names its arguments"
    elif kind is parameter.VAR_POSITIONAL:
        problem = f"*{name} cannot be stored by name; take a list"
        if "<locals>" in called:
            problem += ", or, in a decorator, use functools.wraps"
    elif name == "self":
        problem = "a stored call has no self; take a plain function (headway.current() is the job)"
    else:
        return
    raise InvalidInputError(f"{called}: {problem}")


def refuse_no_function(given: Any) -> None:
    if isinstance(given, Task):
        raise InvalidInputError(f"{given.name} is a task already; @app.task once is enough")
    if isinstance(given, str):
        raise InvalidInputError(
            f"{given!r} is not a function; write @app.task(task_name={given!r})"
        )
    if not callable(given):
        raise InvalidInputError(f"{given!r} is not a function; @app.task stands above a def")


def code_of(function: Callable[..., Any]) -> Any:
    """The code by which two functions of one name are told apart."""
    return getattr(inspect.unwrap(function), "__code__", function)


def name_of(function: Callable[..., Any]) -> str:
    """`module.function`, also for a module that is run as a script."""
    if not hasattr(function, "__qualname__"):
        raise InvalidInputError(f"{function!r} has no name of its own; give it a task_name")
    module = function.__module__
    if module == "__main__":
        main = sys.modules["__main__"]
        spec = getattr(main, "__spec__", None)
        path = getattr(main, "__file__", None)
        if spec is not None and spec.name:
            module = spec.name.removesuffix(".__main__")
        elif path:
            module = path.rpartition("/")[2].removesuffix(".py")
    return f"{module}.{function.__qualname__}"


def request_for(call: Call, now: int) -> Request:
    """The options in the words of a request; but what it is after may be other calls (`linked`)."""
    words = in_words(call.options, now)
    words["name"] = words.get("name") or call.task.name.rpartition(".")[2]
    return Request(**words)


def linked(
    calls: Sequence[Call],
    specs: list[JobSpec],
    *,
    limit: Callable[[], int],
    find: Callable[[str], JobId],
) -> list[JobSpec]:
    """The specifications of these calls with what each is after: jobs, and others of the calls.
    `find` gives the job that an id or a slug names."""
    from headway.jobs.graph import cycle_among, refuse_larger

    places = {id(call): place(index) for index, call in enumerate(calls)}
    for index, call in enumerate(calls):
        if call.options.get("after") is not None:
            specs[index] = specs[index]._replace(
                after=_ids_after(call, places, find), after_runs=_runs_after(call)
            )
    if any(each < 0 for spec in specs for each in spec.after):
        refuse_larger(len(specs), limit())
    cycle = cycle_among(spec.after for spec in specs)
    if cycle is not None:
        shown = show_cycle([f"{specs[each].name} (call {each + 1})" for each in cycle])
        raise InvalidInputError(f"a cycle: {shown}; each waits for the next")
    return specs


def _ids_after(
    call: Call, places: Mapping[int, JobId], find: Callable[[str], JobId]
) -> tuple[JobId, ...]:
    """The jobs that it is to follow; `places` has the calls of its submission by identity, for two
    calls may be equal."""
    given = [each for each in several("after", call.options["after"]) if not _is_run(each)]
    return tuple(dict.fromkeys(_reference(each, places, find) for each in given))


def _runs_after(call: Call) -> tuple[int, ...]:
    """The workflow runs that it is to follow as a whole."""
    return runs_among(each for each in several("after", call.options["after"]) if _is_run(each))


def _is_run(given: Any) -> bool:
    return isinstance(given, str) and RUN_ID.fullmatch(given.strip()) is not None


def _reference(given: Any, places: Mapping[int, JobId], find: Callable[[str], JobId]) -> JobId:
    if isinstance(given, str):
        return find(given)
    if not isinstance(given, Call):
        return _job_id(given)
    if id(given) not in places:
        raise InvalidInputError(
            f"after: the call of {given.task.name} is not submitted along with this one"
        )
    return places[id(given)]


def _job_id(given: Any) -> JobId:
    known = getattr(given, "job_id", given)
    if isinstance(known, int) and not isinstance(known, bool) and known > 0:
        return known
    raise InvalidInputError(
        f"after: {given!r} is not a job; give a handle, an id or 'job-24', or a call that is "
        "submitted with it"
    )


def result_problem(value: Any) -> str | None:
    """Why a function's result cannot be stored."""
    return json_value(value, "")
