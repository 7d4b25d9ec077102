"""The words of the field, and no private metaphors, in the names and comments of the package.

A word that a user reads as a contract (a refusal, a JSON key, an event) is a string, and strings
other than docstrings are not read here. To allow a word, name the file below, and say why.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "headway"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]

# What is not written, and the word of the field for it.
NOT_WRITTEN = {
    r"doors?": "capacity, interface",
    r"wide open": "everything may start",
    r"blindly": "optimistic",
    r"suppos(e|es|ed|ing)": "assume",
    r"governors?": "work items",
    r"crews?": "host pool",
    r"whereabouts": "step cache",
    r"ears?": "read lock",
    r"bells?": "wake-up",
    r"stor(y|ies)": "transaction",
    r"sights?": "probe, answer",
    r"filings?": "parking",
}
# Of these only names are held to it: in a sentence they may be right ("cannot be told apart").
NOT_NAMED = {
    r"tell|tells|told|untold": "write, send",
    r"hear|hears|heard|unheard": "receive, read",
    r"filed": "parked",
    r"lanes?": "only in worker/fastlane",
}
ALLOWED = {
    ("worker/step.py", "lane"),  # imports the part from worker/fastlane
}
# What a user calls a type of jobs; and what random tests do.
ALLOWED_ON_PAGES = {
    ("docs/capacity.md", "story"),
    ("docs/torture.md", "stories"),
    ("CONTRIBUTING.md", "stories"),
}


ANYWHERE = re.compile(rf"\b({'|'.join(NOT_WRITTEN)})\b")
IN_NAMES = re.compile(rf"\b({'|'.join([*NOT_WRITTEN, *NOT_NAMED])})\b")


@cache
def of_a_name(name: str) -> list[str]:
    """What is not to stand in it: `FastLanePart`, `fast_lane_part` -> `fast lane part`."""
    said = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").strip().lower()
    return [each.group() for each in IN_NAMES.finditer(said)]


def docstrings(text: str) -> Iterator[tuple[int, str]]:
    """Each line on its own."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield from enumerate(str(first.value.value).split("\n"), first.lineno)


def found(text: str) -> Iterator[tuple[int, str]]:
    """The lines and the words that are not to stand there."""
    prose = list(docstrings(text))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield from ((token.start[0], each) for each in of_a_name(token.string))
        elif token.type == tokenize.COMMENT:
            prose.append((token.start[0], token.string))
    for line, said in prose:
        yield from ((line, each.group()) for each in ANYWHERE.finditer(said.lower()))


def test_the_package_uses_the_words_of_the_field() -> None:
    breaches = []
    for file in sorted(SOURCE.rglob("*.py")):
        name = file.relative_to(SOURCE).as_posix()
        for line, word in found(file.read_text()):
            fast_lane = name.startswith("worker/fastlane/") and word == "lane"
            if not fast_lane and (name, word) not in ALLOWED:
                breaches.append(f"{name}:{line}: {word}")
    assert breaches == []


def test_the_pages_use_the_words_of_the_field() -> None:
    breaches = []
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix()
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            words = {
                each.group() for each in ANYWHERE.finditer(re.sub(r"`[^`]*`", "", line.lower()))
            }
            breaches += [
                f"{name}:{number}: {each}"
                for each in sorted(words)
                if (name, each) not in ALLOWED_ON_PAGES
            ]
    assert breaches == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("def at_door(): ...", "door"),
        ("class OpenDoor: ...", "door"),
        ("x = 1  # the Bell rings", "bell"),
        ('def f():\n    """One story."""', "story"),
        ("wide_open = True", "wide open"),
        ("self.db.tell(query)", "tell"),
    ],
)
def test_such_a_word_would_be_found(text: str, word: str) -> None:
    assert [each for _, each in found(text)] == [word]


@pytest.mark.parametrize(
    "text", ['say("the door")', "early = 1", "history = ()", "# they cannot be told apart"]
)
def test_other_words_are_left_alone(text: str) -> None:
    assert list(found(text)) == []
