"""One mistake: where it is made, and how the text reads before and after."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

SOURCE = "src/headway"


class MovedOnError(Exception):
    """The code is no longer as the list says."""


class Mutant(NamedTuple):
    """`place` is `core/backoff.py:retry_delay`, `worker/step.py:Step.run` or, of a file of queries,
    `store/sql/claims.sql:release`. `tests` are the ids of the tests that must turn red, the fewest
    that do, divided by spaces."""

    place: str
    old: str
    new: str
    tests: str

    @property
    def file(self) -> str:
        return f"{SOURCE}/{self.place.partition(':')[0]}"

    @property
    def name(self) -> str:
        """The function, the constant or the query."""
        return self.place.partition(":")[2]

    @property
    def room(self) -> str:
        return self.place.partition("/")[0]

    @property
    def ids(self) -> list[str]:
        return self.tests.split()

    def __str__(self) -> str:
        """One line: the place and the changed text, as far as there is room."""
        old, new = (" ".join(text.split()) for text in (self.old, self.new))
        return f"{self.place}  {_cut(old)} -> {_cut(new) or 'nothing'}"


def patched(mutant: Mutant, project: Path) -> str:
    """The text of the whole file with the mistake made."""
    try:
        text = (project / mutant.file).read_text()
    except FileNotFoundError:
        raise MovedOnError(f"{mutant}: there is no {mutant.file}") from None
    begin, end = _part(mutant, text)
    times = text.count(mutant.old, begin, end)
    if times != 1:
        raise MovedOnError(f"{mutant}: the old text is there {times} times, not once")
    at = text.index(mutant.old, begin, end)
    changed = text[:at] + mutant.new + text[at + len(mutant.old) :]
    if mutant.file.endswith(".py"):
        _require_another_program(mutant, text, changed)
    return changed


def _part(mutant: Mutant, text: str) -> tuple[int, int]:
    """Where the named function, constant or query begins and ends."""
    if mutant.file.endswith(".sql"):
        return _query(mutant, text)
    body: list[ast.stmt] = _parsed(text).body
    node: ast.stmt | None = None
    for name in mutant.name.split("."):
        node = next((each for each in body if name in _names(each)), None)
        if node is None:
            raise MovedOnError(f"{mutant}: there is no {mutant.name} in {mutant.file}")
        body = getattr(node, "body", [])
    assert node is not None and node.end_lineno is not None
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(each.lineno for each in decorators)])
    return starts[first - 1], starts[node.end_lineno]


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [each.id for each in targets if isinstance(each, ast.Name)]


def _query(mutant: Mutant, text: str) -> tuple[int, int]:
    match = re.search(rf"^-- name: {mutant.name}\b[^\n]*\n", text, re.MULTILINE)
    if match is None:
        raise MovedOnError(f"{mutant}: there is no query {mutant.name} in {mutant.file}")
    following = text.find("\n-- name: ", match.end())
    return match.start(), len(text) if following < 0 else following


def _require_another_program(mutant: Mutant, before: str, after: str) -> None:
    """A mistake that no longer compiles proves nothing, nor does one that only moves spaces."""
    try:
        tree = ast.parse(after)
    except SyntaxError as error:
        raise MovedOnError(f"{mutant}: the new text is no Python: {error}") from None
    only_spaces = mutant.old.split() == mutant.new.split()
    if only_spaces and ast.dump(tree) == ast.dump(_parsed(before)):
        raise MovedOnError(f"{mutant}: the program is the same with it")


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _cut(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
