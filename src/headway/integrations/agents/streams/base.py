"""The record of an agent's work, gathered from its stream line by line. Pure."""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST_TEXT = 128 << 10  # a plan, or what else others are to go on with
LONGEST_REASON = 500
MOST_DENIALS = 50
LONGEST_SAID = 4096  # of a line on standard error, as far as it is read
LARGEST_NUMBER = 1 << 53  # what every reader of JSON can hold
UNREADABLE = (
    *(ValueError, TypeError, AttributeError, LookupError),
    *(ArithmeticError, RecursionError),
)

_STATUS = re.compile(r"(?:status|code|error)\D{0,12}\b([45]\d\d)\b", re.I)
_WORDS = (
    (
        "auth",
        re.compile(
            r"unauthori[sz]ed|unauthenticated|authenticat|not logged in|please run /login|"
            r"invalid api key|api key not valid|invalid x-api-key|auth method|no credentials|"
            r"missing environment variable.*(?:key|token)",
            re.I,
        ),
    ),
    (
        "limit",
        re.compile(r"usage limit|quota exceeded|insufficient_quota|credit balance", re.I),
    ),
    (
        "transient",
        re.compile(
            r"overloaded|rate.?limit|too many requests|temporarily|unavailable|timed? ?out|"
            r"econn|enotfound|eai_again|network|connection (?:error|refused|reset|closed)|"
            r"stream disconnected|internal server error|bad gateway|fetch failed",
            re.I,
        ),
    ),
)


class Tail:
    """The end of a text that comes in pieces. It is cut only now and then, so that many short
    pieces cost no more than one long one."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0

    def add(self, piece: str) -> None:
        if not piece:
            return
        self._pieces.append(piece)
        self._length += len(piece)
        if self._length > 2 * LONGEST_TEXT:
            self.begin_with(self.text())

    def begin_with(self, text: str) -> None:
        """Forget the rest."""
        self._pieces, self._length = [text], len(text)

    def text(self) -> str:
        return "".join(self._pieces)[-LONGEST_TEXT:]


class AgentReport:
    """The record of one stream. Subclasses say what a line of theirs means."""

    needs_a_result = True  # whether a stream that ends without its last line is a failure

    def __init__(self) -> None:
        self.session_id: str | None = None
        self.model: str | None = None
        self.version: str | None = None
        self.turns: int | None = None
        self.usage: dict[str, int] | None = None
        self.tokens: int | None = None  # all of them together
        self.cost_usd: float | None = None
        self.denials: list[dict[str, Any]] = []
        self._answer = Tail()
        self.error: tuple[str, str] | None = None  # its class, and what was said
        self._failure: tuple[str, str] | None = None  # the one that nothing takes back
        self.results = 0  # some programs write several
        self.finished = False
        self.last_said = ""  # on standard error
        self.unreadable = 0

    @property
    def final_text(self) -> str:
        return self._answer.text()

    def read(self, line: str) -> None:
        """One line of standard output."""
        text = line.strip()
        if not text:
            return
        try:
            document = json.loads(text) if text.startswith("{") else None
        except UNREADABLE:
            document = None
        if not isinstance(document, dict):
            self.plain(line)
            return
        before = self.finished, self.results
        try:
            self.line(document)
        except UNREADABLE:
            self.unreadable += 1
            if (
                self.finished and (self.finished, self.results) != before
            ):  # nobody knows what else it was to say
                self.fail("its result cannot be read", "task")

    def line(self, document: dict[str, Any]) -> None:
        """One document of the stream."""

    def plain(self, line: str) -> None:
        """A line that is no document."""
        self.unreadable += 1

    def said(self, line: str) -> None:
        """One line of standard error."""
        if words := line[:LONGEST_SAID].strip():
            self.last_said = words[:LONGEST_REASON]

    def exit_class(self, code: int) -> str | None:
        """What an exit code of this program means."""
        return None

    # -- for subclasses ------------------------------------------------------------------------

    def end(self) -> None:
        """A result was read. An error before it is over, unless that was a failure."""
        self.results += 1
        self.finished = True
        self.error = self._failure

    def fail(self, text: object, error_class: str | None = None) -> None:
        """The work has failed; no later line makes it a success."""
        self._failure = None
        self.stumble(text, error_class)
        self._failure = self.error

    def stumble(self, text: object, error_class: str | None = None) -> None:
        """An error that a result may follow: without one, the work has failed."""
        words = one_line(text) or "it told of an error without a word"
        self.error = self._failure or (error_class or class_of(words), words)

    def deny(self, tool: object, detail: object = None) -> None:
        if len(self.denials) < MOST_DENIALS:
            report = {"tool": one_line(tool)[:200] or "a tool"}
            if detail:
                report["detail"] = one_line(detail)[:200]
            self.denials.append(report)

    def turn(self) -> None:
        self.turns = (self.turns or 0) + 1

    def spent(
        self,
        *,
        given: object,
        cached: object = 0,
        written: object,
        reasoning: object = 0,
        besides: object = 0,
    ) -> None:
        """All that it used so far; `besides` are tokens that `given` does not include."""
        self.tokens = whole(given) + whole(besides) + whole(written)
        self.usage = {
            "input": whole(given),
            "cached": whole(cached),
            "output": whole(written),
            "reasoning": whole(reasoning),
        }

    def answer(self, text: object) -> None:
        if isinstance(text, str):
            self._answer.begin_with(text[-LONGEST_TEXT:])


def class_of(words: str, status: object = None) -> str:
    """Why something failed, by an HTTP status or by what was said of it."""
    code = status if isinstance(status, int) else None
    if code is None:
        found = _STATUS.search(words)
        code = int(found[1]) if found else None
    if code in (401, 403):
        return "auth"
    if code is not None and (code in (408, 409, 429) or 500 <= code <= 599):
        return "transient"
    return next((name for name, pattern in _WORDS if pattern.search(words)), "task")


def one_line(text: object) -> str:
    """The text of anything, on one line, without what a terminal would act on."""
    if text is None:
        return ""
    try:
        words = text if isinstance(text, str) else json.dumps(text, default=str)
    except (RecursionError, ValueError):
        words = "something that cannot be shown"
    cleaned = "".join(char if char.isprintable() else " " for char in words[: 4 * LONGEST_REASON])
    return " ".join(cleaned.split())[:LONGEST_REASON]


def whole(value: object) -> int:
    """A count; 0 for whatever is none."""
    return count_or_none(value) or 0


def count_or_none(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < LARGEST_NUMBER else 0


def sum_or_none(value: object) -> float | None:
    """An amount of money; None for whatever cannot be one, such as NaN."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 <= value < LARGEST_NUMBER else None


def text_or_none(value: object) -> str | None:
    return one_line(value)[:200] or None if isinstance(value, str) else None


def within(document: dict[str, Any], key: str) -> dict[str, Any]:
    """The object under that key, empty if there is none."""
    value = document.get(key)
    return value if isinstance(value, dict) else {}
