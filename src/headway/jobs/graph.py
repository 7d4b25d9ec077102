"""Specifications that refer to each other by local names, submitted as one graph.

All of it is checked before anything is stored, and all mistakes that can be seen are reported
together. A name becomes the place of its job in the submission (`core.graph.place`), which
becomes its id when the ids are taken.
"""

from collections.abc import Callable, Iterable, Sequence

from headway.base.errors import ConflictError, InvalidInputError, NotFoundError
from headway.core.graph import find_cycle, index_of, only_backwards, place, show_cycle
from headway.core.model import JobId, JobSpec
from headway.jobs.references import JOB_ID, RUN_ID
from headway.jobs.request import Request
from headway.jobs.specification import check_local

MOST_PROBLEMS = 20


class GraphError(InvalidInputError):
    """All that is wrong with a graph: `problems` are the first of `count`."""

    def __init__(self, problems: Sequence[str], count: int) -> None:
        more = f"; and {count - len(problems)} more" if count > len(problems) else ""
        super().__init__("; ".join(problems) + more)
        self.problems = tuple(problems)
        self.count = count


class Drafts:
    """A graph that is being put together, and what is wrong with it so far."""

    def __init__(
        self,
        check: Callable[[Request], JobSpec],
        *,
        limit: int,
        find: Callable[[str], JobId] | None = None,
    ) -> None:
        """`find` gives the job outside of the graph that has a slug, if there is a store."""
        self._check = check
        self._find = find
        self._limit = limit
        self._specs: list[JobSpec] = []
        self._after: dict[int, tuple[JobId | str, ...]] = {}
        self._count = 0
        self._problems: list[str] = []
        self._found = 0
        self.places: dict[str, int] = {}  # by local name

    def add(self, request: Request, where: str = "") -> None:
        """Take in one more job; `where` is how it is called if something is wrong with it."""
        called = where or _called(request, self._count)
        try:
            if request.local is not None:
                check_local(request.local)
                self.name(request.local, called)
            spec = self._check(request)
        except InvalidInputError as error:
            self.refuse(f"{called}: {error}")
            self._count += 1
            return
        if request.after:
            self._after[self._count] = request.after
        self._specs.append(spec)
        self._count += 1
        self.keep_to_the_limit(self._count)

    def skip(self, local: str | None, where: str, after: tuple[str, ...] = ()) -> None:
        """Count a job that cannot be taken in, so that references to it are not wrong as well."""
        if local is not None:
            self.name(local, where)
        if after:
            self._after[self._count] = after
        self._count += 1

    def name(self, local: str, where: str) -> None:
        if local in self.places:
            self.refuse(f"{where}: another job is called {local!r} already")
        else:
            self.places[local] = self._count

    def refuse(self, problem: str) -> None:
        self._found += 1
        if len(self._problems) < MOST_PROBLEMS:
            self._problems.append(problem)

    def refuse_empty(self) -> None:
        """Nothing came; if that was said already, why is known."""
        if not self._found:
            self.refuse("there is no job in it")

    def keep_to_the_limit(self, count: int) -> None:
        refuse_larger(count, self._limit)

    def linked(self) -> list[JobSpec]:
        """The specifications with every name resolved. Raises with all that is wrong."""
        names = {index: name for name, index in self.places.items()} if self._after else {}
        resolved = {
            index: tuple(dict.fromkeys(self._resolved(index, names, references)))
            for index, references in self._after.items()
        }
        self._refuse_cycle(names, resolved)
        if self._found:
            raise GraphError(self._problems, self._found)
        for index, after in resolved.items():
            self._specs[index] = self._specs[index]._replace(after=after)
        return self._specs

    def _resolved(
        self, index: int, names: dict[int, str], references: Iterable[JobId | str]
    ) -> Iterable[JobId]:
        for each in references:
            if not isinstance(each, str):
                yield each
            elif each in self.places:
                yield place(self.places[each])
            elif match := JOB_ID.fullmatch(each):
                yield int(match[1])
            elif RUN_ID.fullmatch(each):
                continue  # its specification says so
            else:
                yield from self._outside(index, names, each)

    def _outside(self, index: int, names: dict[int, str], slug: str) -> Iterable[JobId]:
        """The job of the store that has this slug, else a problem."""
        called = f"job {names[index]!r}" if index in names else f"job number {index + 1}"
        try:
            if self._find is not None:
                yield self._find(slug)
                return
        except NotFoundError:
            pass
        except ConflictError as error:
            self.refuse(f"{called}: after {slug!r}: {error}")
            return
        self.refuse(
            f"{called}: after {slug!r} names no job of this graph; "
            "one that exists already is written like job-24"
        )

    def _refuse_cycle(self, names: dict[int, str], resolved: dict[int, tuple[JobId, ...]]) -> None:
        cycle = cycle_among(resolved.get(index, ()) for index in range(self._count))
        if cycle is not None:
            shown = show_cycle([names.get(each, f"number {each + 1}") for each in cycle])
            self.refuse(f"a cycle: {shown}; each waits for the next, so take one `after` out")


def cycle_among(afters: Iterable[Sequence[JobId]]) -> list[int] | None:
    """The places of jobs of one submission that wait for each other in a circle by `after`."""
    inside = [
        [index for each in after if (index := index_of(each)) is not None] for after in afters
    ]
    return None if only_backwards(inside) else find_cycle(inside)


def refuse_larger(count: int, limit: int) -> None:
    if count > limit:
        raise InvalidInputError(
            f"the graph has more than {limit:,} jobs; submit it in parts, "
            "or raise scheduler.graph_limit"
        )


def _called(request: Request, index: int) -> str:
    return f"job {request.local!r}" if request.local is not None else f"job number {index + 1}"
