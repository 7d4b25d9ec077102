"""References `${{ NAME }}` in the values of a workflow: found and looked up, never evaluated. Pure.

A reference that stands alone keeps the type of what it names; among other text it becomes text. So
no value can become a part of a script, a key, or another reference.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from headway.core.conditions import as_text

OPEN, CLOSE = "${{", "}}"
_ONE = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
_OF_NODE = re.compile(r"nodes\.(.+?)\.(outcome|outputs\.([A-Za-z_][A-Za-z0-9_-]*))")
_OF_LAST = re.compile(
    r"last\.(.+?)\.(tail|summary|outcome|exit_code|outputs\.([A-Za-z_][A-Za-z0-9_-]*))"
)
_NAMED = re.compile(r"(params|matrix|args)\.([A-Za-z_][A-Za-z0-9_.-]*)")
OF_RUN = frozenset({"run.id", "run.name", "run.state"})
OF_FILE = "file:"


class Kind:
    """The families of references."""

    PARAMS, MATRIX, ARGS, ITEM, RUN, NODES, LAST, FILE = (
        *("params", "matrix", "args", "item", "run", "nodes", "last", "file"),
    )


# What is known before a job is claimed, and so may stand where gates read.
KNOWN_WHEN_QUEUED = frozenset({Kind.PARAMS, Kind.MATRIX, Kind.ARGS, Kind.ITEM, Kind.RUN})


class Reference(NamedTuple):
    """One reference: its family, the node or name that it is about, and the output if any."""

    kind: str
    name: str = ""
    field: str = ""
    output: str | None = None

    @property
    def text(self) -> str:
        if self.kind == Kind.FILE:
            return OF_FILE + self.name
        parts = [self.kind, self.name, self.field]
        return ".".join(part for part in parts if part)


class MalformedError(ValueError):
    """A reference that is none: `reason` is for people, `name` is what stands between braces."""

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.name = name


def parse_reference(name: str) -> Reference:
    """What stands between the braces; raises if it is none of the known forms."""
    name = name.strip()
    if name == Kind.ITEM:
        return Reference(Kind.ITEM)
    if name in OF_RUN:
        return Reference(Kind.RUN, name.removeprefix("run."))
    if found := _NAMED.fullmatch(name):
        return Reference(found[1], found[2])
    if found := _OF_NODE.fullmatch(name):
        return Reference(Kind.NODES, found[1], found[2], found[3])
    if found := _OF_LAST.fullmatch(name):
        return Reference(Kind.LAST, found[1], found[2], found[3])
    if name.startswith(OF_FILE) and len(name) > len(OF_FILE):
        return Reference(Kind.FILE, name[len(OF_FILE) :])
    raise MalformedError(f"{name[:60]}: unknown", name)


def pieces(text: str) -> Iterator[str | Reference]:
    """The text in order: what stands as it is, and references."""
    at = 0
    for found in _ONE.finditer(text):
        if OPEN in text[at : found.start()]:
            break
        if found.start() > at:
            yield text[at : found.start()]
        yield parse_reference(found[1])
        at = found.end()
    rest = text[at:]
    if OPEN in rest:
        raise MalformedError('"${{" is not closed')
    if rest:
        yield rest


def split_at_references(text: str) -> Iterator[tuple[str, bool]]:
    """The text in order, each piece with whether it stood between braces, however it is named."""
    at = 0
    for found in _ONE.finditer(text):
        if found.start() > at:
            yield text[at : found.start()], False
        yield found[1], True
        at = found.end()
    if text[at:]:
        yield text[at:], False


def read_references(value: Any) -> Iterator[Reference | MalformedError]:
    """All references in a value, however deep, and what is wrong with those that are none."""
    for text in texts_in(value):
        for piece, is_reference in split_at_references(text) if OPEN in text else ():
            try:
                if is_reference:
                    yield parse_reference(piece)
                elif OPEN in piece:
                    yield MalformedError('"${{" is not closed')
            except MalformedError as error:
                yield error


def references_in(value: Any) -> Iterator[Reference]:
    """All references in a value, however deep. Raises MalformedError at the first that is none."""
    for text in texts_in(value):
        if OPEN in text:
            yield from (each for each in pieces(text) if isinstance(each, Reference))


def texts_in(value: Any) -> Iterator[str]:
    """All texts in a value, without the keys of tables."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts_in(each)


LookUp = Callable[[Reference], Any]
UNKNOWN = object()  # what a look-up gives for a reference that stays as it is


def fill(value: Any, look_up: LookUp) -> Any:
    """The value with references replaced; one that is not known yet stays as it was written."""
    if isinstance(value, str):
        return _filled(value, look_up) if OPEN in value else value
    if isinstance(value, Mapping):
        return {key: fill(each, look_up) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [fill(each, look_up) for each in value]
    return value


def fill_texts(value: Any, look_up: LookUp) -> Any:
    """The same where only texts may stand, as in arguments and variables: a number becomes one."""
    if isinstance(value, Mapping):
        return {key: fill_texts(each, look_up) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [fill_texts(each, look_up) for each in value]
    return as_text(fill(value, look_up)) if isinstance(value, str) else value


def _filled(text: str, look_up: LookUp) -> Any:
    found = list(pieces(text))
    if len(found) == 1 and isinstance(found[0], Reference):
        value = look_up(found[0])
        return text if value is UNKNOWN else value
    parts = []
    for each in found:
        if isinstance(each, Reference):
            value = look_up(each)
            parts.append(written(each) if value is UNKNOWN else as_text(value))
        else:
            parts.append(each)
    return "".join(parts)


def written(reference: Reference) -> str:
    """As a file has it."""
    return f"{OPEN} {reference.text} {CLOSE}"
