"""Things that must all be done, whatever is wrong with one of them."""

from collections.abc import Callable, Iterable


def do_all(works: Iterable[Callable[[], object]]) -> None:
    """Each of these; the first error is raised when all have had their turn."""
    first: Exception | None = None
    for work in works:
        try:
            work()
        except Exception as error:  # it is raised at the end
            first = first or error
    if first is not None:
        raise first
