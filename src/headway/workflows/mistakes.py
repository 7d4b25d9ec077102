"""What is wrong with a workflow: collected, so that all mistakes are told at once. Pure."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

from headway.base.errors import InvalidInputError
from headway.workflows.places import Path, TextPlace, TextPlaces

MOST_SHOWN = 20
LONGEST_WORDS = 500


class Mistake(NamedTuple):
    """One thing that is wrong. `words` are contract; `place` is where it stands in the file."""

    words: str
    place: TextPlace | None = None

    @property
    def placed(self) -> str:
        """For people who mend a file: with its line and column, if they are known."""
        if self.place is None:
            return self.words
        return f"{self.words} (line {self.place.line}, column {self.place.column})"


class WorkflowError(InvalidInputError):
    """All that is wrong with a workflow: `mistakes` are the first of `count`."""

    def __init__(self, file: str, mistakes: Sequence[Mistake], count: int) -> None:
        more = f"; and {count - len(mistakes)} more" if count > len(mistakes) else ""
        super().__init__("; ".join(f"{file}: {each.words}" for each in mistakes) + more)
        self.file = file
        self.mistakes = tuple(mistakes)
        self.count = count


class Mistakes:
    """The mistakes that were found so far in one file."""

    def __init__(self, file: str, places: TextPlaces) -> None:
        self.file = file
        self._places = places
        self._found: dict[Mistake, None] = {}  # the same of several instances is told once

    def add(self, words: str, path: Path = ()) -> None:
        """`path` leads to the key that is wrong; of a node the words are said after its name."""
        if len(path) > 1 and path[0] == "nodes":
            words = f"node '{path[1]}': {words}"
            if "." in path[1]:
                path = ("imports", path[1].partition(".")[0])
        self.add_of_file(words, path)

    def add_of_file(self, words: str, path: Path = ()) -> None:
        """The same where the words name the nodes themselves."""
        if len(words) > LONGEST_WORDS:
            words = words[: LONGEST_WORDS - 3] + "..."
        self._found[Mistake(words, self._places.of(path) if path else None)] = None

    @property
    def count(self) -> int:
        return len(self._found)

    @property
    def mistakes(self) -> list[Mistake]:
        """In the order of the file, those without a place first."""
        nowhere = TextPlace(0, 0)
        return sorted(self._found, key=lambda each: each.place or nowhere)

    def raise_if_any(self) -> None:
        if self._found:
            raise WorkflowError(self.file, self.mistakes[:MOST_SHOWN], self.count)


def unseen_mistakes() -> Mistakes:
    """For what was checked before, and is asked once more."""
    return Mistakes("", TextPlaces())


def perhaps(word: str, known: Sequence[str]) -> str:
    """`; did you mean 'J'?`, if a known word is near."""
    near = get_close_matches(word[:64], known, 1)
    return f"; did you mean '{near[0]}'?" if near else ""


def short(value: Any) -> str:
    """A value as it stands in a message."""
    import json

    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else text[:37] + "..."


def listed(words: Sequence[str]) -> str:
    """`A, B or C`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
