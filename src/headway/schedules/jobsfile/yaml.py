"""Read YAML that may be anything, in bounded time and memory, and keep where each thing stands.

Of PyYAML's safe loader only the scanner and the parser are used: its events become our own nodes,
without recursion, and nothing is ever constructed. What YAML has for programs is refused: tags,
anchors, aliases, merge keys, several documents. A plain word is true, false, null, a whole number,
or a text: `no`, `010`, `12:30`, `.nan` and 2026-01-01 are texts, whatever YAML 1.1 made of them.
"""

import re
from typing import Any

import yaml

from headway.schedules.jobsfile.nodes import LARGEST_FILE, Pair, YamlNode
from headway.schedules.jobsfile.problems import JobsFileError, Problem, Problems, brief

DEEPEST = 32
MOST_NODES = 50_000
LONGEST_COMPLAINT = 160
_BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
_FORBIDDEN = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_WORDS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}


class _Open:
    """A list or a mapping that is not at its end yet."""

    def __init__(self, node: YamlNode, path: str) -> None:
        self.node = node
        self.path = path
        self.key: YamlNode | None = None  # of a mapping: the one whose value comes next
        self.waits_for_value = False


def read_yaml(content: bytes, problems: Problems) -> YamlNode | None:
    """The one document, or None if there is none. Raises what makes the rest unreadable."""
    text = _decoded(content)
    loader = yaml.SafeLoader(text)
    builder = _Builder(problems)
    try:
        while loader.check_event():
            builder.take(loader.get_event())
    except yaml.MarkedYAMLError as error:
        raise _refusal(_line_of(error), _what_is_wrong(error)) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # An escape or a version beyond all numbers: the scanner leaves those to Python.
        raise _refusal(loader.line + 1, f"it is not YAML: {brief(str(error))}") from None
    finally:
        loader.dispose()
    return builder.root


def _decoded(content: bytes) -> str:
    if len(content) > LARGEST_FILE:
        raise _refusal(1, f"it is larger than {LARGEST_FILE >> 20} MiB; a jobs file is a few pages")
    try:
        text = content.decode("utf-8").removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _refusal(line, "it is not UTF-8; save it as UTF-8") from None
    if strange := _FORBIDDEN.search(text):
        line = text.count("\n", 0, strange.start()) + 1
        code = ord(strange[0])
        raise _refusal(line, f"the control character U+{code:04X} stands there; take it out")
    return text


class _Builder:
    """Makes nodes of events, on a stack of its own."""

    def __init__(self, problems: Problems) -> None:
        self.root: YamlNode | None = None
        self._problems = problems
        self._open: list[_Open] = []
        self._nodes = 0
        self._documents = 0

    def take(self, event: Any) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise _refusal(_line(event), "a second document begins; a jobs file is one")
            case yaml.ScalarEvent():
                self._count(event)
                self._put(self._scalar(event))
            case yaml.AliasEvent():
                self._count(event)
                self._problem(event, f"the alias *{brief(event.anchor)} is not allowed")
                self._put(_node(event, None))
            case yaml.SequenceStartEvent():
                self._enter(event, _node(event, []))
            case yaml.MappingStartEvent():
                self._enter(event, _node(event, {}))
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._open.pop()

    def _enter(self, event: Any, node: YamlNode) -> None:
        self._count(event)
        path = self._path()
        self._put(node)
        self._open.append(_Open(node, path))
        if len(self._open) > DEEPEST:
            raise _refusal(node.line, f"it is nested more than {DEEPEST} deep")

    def _count(self, event: Any) -> None:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise _refusal(_line(event), f"it has more than {MOST_NODES:,} values")
        if getattr(event, "tag", None) is not None:
            self._problem(event, f"the tag {brief(event.tag)} is not allowed; take it out")
        if event.anchor is not None and not isinstance(event, yaml.AliasEvent):
            self._problem(event, f"the anchor &{brief(event.anchor)} is not allowed; take it out")

    def _scalar(self, event: Any) -> YamlNode:
        text: str = event.value
        if strange := _FORBIDDEN.search(text):
            self._problem(event, f"the text has the control character U+{ord(strange[0]):04X}")
        if not event.implicit[0]:  # it has quotes, or is a block
            return _node(event, text)
        if self._expects_key():
            if text == "<<":
                self._problem(event, "merge keys are not allowed; write the keys out")
            return _node(event, text)
        if text in _WORDS:
            return _node(event, _WORDS[text])
        return _node(event, int(text) if _WHOLE.fullmatch(text) else text)

    def _expects_key(self) -> bool:
        return bool(
            self._open
            and isinstance(self._open[-1].node.value, dict)
            and not self._open[-1].waits_for_value
        )

    def _put(self, node: YamlNode) -> None:
        """Where the stack says that it belongs."""
        if not self._open:
            self.root = node
            return
        inside = self._open[-1]
        if isinstance(inside.node.value, list):
            inside.node.value.append(node)
        elif not inside.waits_for_value:
            inside.key, inside.waits_for_value = self._key(node, inside.node.value), True
        else:
            if inside.key is not None:
                pair = Pair(node, inside.key.line, inside.key.column)
                inside.node.value[inside.key.value] = pair
            inside.key, inside.waits_for_value = None, False

    def _key(self, node: YamlNode, known: dict[str, Pair]) -> YamlNode | None:
        """None if the value is for nobody, because the key is wrong."""
        if not isinstance(node.value, str):
            self._problems.add(node.line, self._path(), "a key is one text, not a list or mapping")
            return None
        if node.value in known:
            first = known[node.value].line
            path = f"{self._path()}.{brief(node.value)}".lstrip(".")
            self._problems.add(node.line, path, f"it stands twice; the first is in line {first}")
            return None
        return node

    def _path(self) -> str:
        """Of what comes next, as `jobs.NAME.KEY`; what is in a list has the list's."""
        if not self._open:
            return ""
        inside = self._open[-1]
        own = brief(inside.key.value) if inside.key is not None else ""
        return ".".join(part for part in (inside.path, own) if part)

    def _problem(self, event: Any, text: str) -> None:
        self._problems.add(_line(event), self._path(), text)


def _node(event: Any, value: Any) -> YamlNode:
    return YamlNode(value, event.start_mark.line + 1, event.start_mark.column + 1)


def _line(event: Any) -> int:
    line: int = event.start_mark.line
    return line + 1


def _refusal(line: int, text: str) -> JobsFileError:
    return JobsFileError([Problem(line, "", text)])


def _line_of(error: Any) -> int:
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark is not None else 1


def _what_is_wrong(error: Any) -> str:
    """In the scanner's words, with the place where what is not at its end has begun."""
    text = f"it is not YAML: {error.problem or error.context or 'it cannot be read'}"
    if error.problem_mark is None:
        return brief(text, LONGEST_COMPLAINT)
    text = f"{brief(text, LONGEST_COMPLAINT)} (column {error.problem_mark.column + 1})"
    begun = error.context_mark
    if begun is not None and begun.line != error.problem_mark.line:
        text += f", {error.context} of line {begun.line + 1}"
    return text
