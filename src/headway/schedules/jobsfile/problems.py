"""All that is wrong with a jobs file, reported together, each with its line and its key. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from headway.base.errors import InvalidInputError

MOST_PROBLEMS = 100
LONGEST_SHOWN = 60  # of a text that the file has


class Problem(NamedTuple):
    """One thing to correct. `key` is as `jobs.NAME.KEY`, or empty for the file as a whole."""

    line: int
    key: str
    text: str

    def __str__(self) -> str:
        return ": ".join(part for part in (f"line {self.line}", self.key, self.text) if part)

    def document(self) -> dict[str, object]:
        return dict(self._asdict())


class JobsFileError(InvalidInputError):
    """The file was refused as a whole."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("; ".join(map(str, self.problems)))


class Problems:
    """Those found so far. A file in which hardly anything is right is given up early."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    def add(self, line: int, key: str, text: str) -> None:
        self._found.append(Problem(line, key, text))
        if len(self._found) >= MOST_PROBLEMS:
            raise self.error(and_more=True)

    def error(self, *, and_more: bool = False) -> JobsFileError:
        found = sorted(self._found, key=lambda problem: problem.line)
        if and_more:
            found.append(Problem(found[-1].line, "", "too much is wrong; correct these first"))
        return JobsFileError(found)

    def refuse(self) -> None:
        """Raise what was found, if anything was."""
        if self._found:
            raise self.error()


def shown(value: object) -> str:
    """A value of the file as its messages quote it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return f'"{brief(value)}"' if isinstance(value, str) else brief(str(value))


def brief(text: str, room: int = LONGEST_SHOWN) -> str:
    """On one line, and not too much of it."""
    line = text if text.isprintable() else " ".join(text[: 2 * room].split())
    return line if len(line) <= room else line[: room - 3] + "..."
