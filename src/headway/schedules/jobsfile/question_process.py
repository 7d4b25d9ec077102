"""The process that a round asks: `python -m headway.schedules.jobsfile.question_process`.

It gets a request as JSON on its standard input. It imports the user's modules, says whether
functions are there and conditions hold, and fetches the poll.

It writes a line when it begins with a question and one when it has the answer, so that who waits
knows what hangs. Each question has a key: `import:MODULE`, `run:RUN`, `known:NAME` (is there such a
condition?), `condition:GROUP:NAME`, `poll`. An answer is None, or the reason why not. What is known
already is not asked again.

What the user's code prints goes to the standard error, where `MARK` comes before what is printed
during each question: if one ends the process, its last words say why.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

from headway.base.errors import HeadwayError
from headway.schedules.jobsfile.model import LARGEST_POLL, MARK, OPEN_PRS, REMOTE, SECONDS
from headway.schedules.jobsfile.modules import (
    find_function,
    is_path,
    last_words,
    try_import,
    use_folder,
)
from headway.schedules.jobsfile.registry import (
    REGISTRY,
    JobContext,
    as_json,
    call_with,
)

AT_LATEST = 5  # later than that, the kernel ends it, if nobody else has

Send = Callable[[Mapping[str, Any]], None]


class Answering:
    def __init__(self, request: Mapping[str, Any], send: Send) -> None:
        self._modules: list[str] = request["modules"]
        self._known: dict[str, str | None] = dict(request["known"])
        self._data: Any = request["data"]
        self._send = send
        self._asked: list[str] = []  # the questions that are being answered

    def entry(self, questions: list[str], wants_poll: bool) -> None:
        """Ask until one answer is no; then nobody needs the rest."""
        if all(self._holds(key) for key in questions) and wants_poll:
            self._holds("poll")

    def _holds(self, key: str) -> bool:
        if key not in self._known:
            if not key.startswith("import:"):
                self._import(key)
            self._known[key] = self._answer(key)
        return self._known[key] is None

    def _import(self, key: str) -> None:
        """All modules may register something; `module:function` needs no other."""
        if not (key.startswith("run:") and is_path(key.removeprefix("run:"))):
            for module in self._modules:
                self._holds(f"import:{module}")

    def _answer(self, key: str) -> str | None:
        self._asked.append(key)
        self._begin(key)
        try:
            answer = self._look(key)
        except HeadwayError as error:
            answer = str(error)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            what, _, name = key.partition(":")
            subject = name.partition(":")[2] if what == "condition" else name
            answer = f"{what} {subject}".strip() + f" raised {last_words(error)}"
        self._asked.pop()
        polled = key == "poll" and answer is None
        data = {"data": self._data, "polled": REGISTRY.fetch is not None} if polled else {}
        self._send({"key": key, "reason": answer, **data})
        if self._asked:  # it was asked for the sake of another
            self._begin(self._asked[-1])
        return answer

    def _begin(self, key: str) -> None:
        signal.alarm(SECONDS + AT_LATEST)
        os.write(2, MARK)
        self._send({"begin": key})

    def _look(self, key: str) -> str | None:
        what, _, name = key.partition(":")
        match what:
            case "import":
                return try_import(name)
            case "run":
                return self._function(name)
            case "known":
                return self._known_condition(name)
            case "condition":
                group, _, condition = name.partition(":")
                return self._condition(condition, group)
            case _:
                return self._poll()

    def _function(self, run: str) -> str | None:
        try:
            find_function(run)
        except HeadwayError as error:
            return "; ".join([str(error), *([] if is_path(run) else self._troubles())])
        return None

    def _troubles(self) -> list[str]:
        answers = (self._known.get(f"import:{module}") for module in self._modules)
        return [each for each in answers if each is not None]

    def _condition(self, name: str, group: str) -> str | None:
        context = self._context(group)
        if name == OPEN_PRS:
            return self._open_prs(context, group)
        missing = self._known_condition(name)
        if missing is not None:
            return missing
        try:
            holds = bool(call_with(REGISTRY.conditions[name], context))
        finally:
            context.close()
        return None if holds else f"condition {name} does not hold"

    def _known_condition(self, name: str) -> str | None:
        if name in REGISTRY.conditions:
            return None
        missing = f'no condition {name!r} is known; write @headway.condition("{name}")'
        return "; ".join([missing, *self._troubles()])

    def _context(self, group: str) -> JobContext:
        from headway.client import connect

        return JobContext(open_client=connect, fetch=self._poll_data if group == REMOTE else None)

    def _open_prs(self, context: JobContext, group: str) -> str | None:
        if group != REMOTE:
            return f"{OPEN_PRS} needs the data of the poll, which an entry of group {group} lacks"
        data = context.poll_data
        if data is None:
            why = self._known.get("poll") or ("there is no @headway.poll")
            return f"{OPEN_PRS} has no data of the poll: {why}"
        return None if open_prs(data) > 0 else f"condition {OPEN_PRS} does not hold"

    def _poll_data(self) -> Any:
        return self._data if self._holds("poll") else None

    def _poll(self) -> str | None:
        if REGISTRY.fetch is None:
            self._data = None
            return None
        context = self._context("")
        try:
            data = call_with(REGISTRY.fetch, context)
        finally:
            context.close()
        self._data = json.loads(as_json(data, "what the poll returned", LARGEST_POLL))
        return None


def open_prs(data: Any) -> int:
    """How many the poll data has: a count or a list, or tasks that wait for their review."""
    if not isinstance(data, Mapping):
        return 0
    counts = data.get("queue_counts")
    found = [data.get("open_prs"), counts.get("provisional") if isinstance(counts, dict) else 0]
    return sum(len(each) if isinstance(each, list) else _count(each) for each in found)


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _names_module(entry: Mapping[str, Any]) -> bool:
    return any(key.startswith("run:") and is_path(key[4:]) for key in entry["questions"])


def main() -> None:
    request = json.load(sys.stdin)
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the user's code prints is no answer
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]

    def send(answer: Mapping[str, Any]) -> None:
        lines.write(json.dumps(answer) + "\n")
        lines.flush()

    use_folder(request["home"])
    answering = Answering(request, send)
    # A module that only `module:function` names may register as well, which must not count: last.
    for entry in sorted(request["entries"], key=_names_module):
        answering.entry(entry["questions"], entry["wants_poll"])
    send({"done": True})
    os._exit(0)  # threads that the user's code has left behind do not keep it


if __name__ == "__main__":
    main()
