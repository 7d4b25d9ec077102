"""The questions of a round: do these functions exist, do these conditions hold, what does the poll
say? They may take long, so they are asked beside the worker's thread.

Commands and files are checked here. Questions about the user's Python go to one process
(`question_process`), which has `SECONDS` for each. A question that hangs, raises or ends the
process is answered with that, and a new process gets the rest.
"""

from __future__ import annotations

import errno
import json
import os
import select
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from headway.base import tether
from headway.base.clock import SystemClock
from headway.base.environment import MINIMAL_PATH
from headway.base.home import Home
from headway.base.programs import end, ended
from headway.base.text import plain
from headway.base.trust import passed_on
from headway.core.model import NOTHING
from headway.integrations.probes.conditions import ask as ask_condition
from headway.jobs.settings import Config
from headway.schedules.jobsfile.model import LARGEST_POLL, LONGEST_ERROR, MARK, SECONDS

COMMAND, FILE = "command:", "file_exists:"
START_SECONDS = 30.0  # for the interpreter, on a busy machine
LARGEST_LINE = LARGEST_POLL + (64 << 10)
LONGEST_WORDS = 4096  # of what a process prints on its standard error
MOST_READS = 64
MOST_PROCESSES = 50
LONGEST_REASON = 1000
LEAVING = "the worker leaves"


_TOO_LONG = "took longer than"


def took_too_long(reason: str | None) -> bool:
    """Whether an answer was given up; the next time it may take as long."""
    return reason is not None and _TOO_LONG in reason


class EntryQuestions(NamedTuple):
    """The questions to answer before an entry may run."""

    name: str
    group: str
    run: str | None = None
    conditions: tuple[str, ...] = ()
    wants_poll: bool = False


class EntryAnswers(NamedTuple):
    """For each entry that may not run the reason, and what the poll said if it was asked."""

    held: Mapping[str, str] = NOTHING
    polled: bool | None = None  # None: nobody wanted it; False: there is no poll
    poll_trouble: str | None = None
    poll_data: Any = None


class Asking:
    def __init__(self, home: Home, config: Config) -> None:
        self.modules: Sequence[str] = config["app.modules"]
        self._home = home
        self._config = config
        self._folder = os.path.dirname(home.path)
        self._processes: list[subprocess.Popen[bytes]] = []  # those that may live
        self._lock = threading.Lock()
        self._stopped = False

    def ask(self, entries: Sequence[EntryQuestions]) -> EntryAnswers:
        """Everything at once, as one round needs it."""
        answers: dict[str, str | None] = {}
        for entry in entries:
            for condition in filter(self._is_outside, entry.conditions):
                if self._stopped:
                    return EntryAnswers({each.name: LEAVING for each in entries})
                if condition not in answers:
                    answers[condition] = self._outside(condition)
                if answers[condition] is not None:
                    break
        standing = [
            each for each in entries if not any(answers.get(one) for one in each.conditions)
        ]
        inside = Conversation(
            self._start, [self._to_answer(each) for each in standing], self.modules
        )
        if inside.needed and not self._stopped:
            inside.ask()
        held = {each.name: why for each in entries if (why := self._why(each, answers, inside))}
        return EntryAnswers(held, inside.polled, inside.known.get("poll"), inside.data)

    def look_for(self, questions: Sequence[str]) -> dict[str, str | None]:
        """For each question whether the thing is there: None, or the reason why not."""
        inside = Conversation(
            self._start,
            [{"questions": [each], "wants_poll": False} for each in questions],
            self.modules,
        )
        inside.ask()
        return {each: inside.reason(each) for each in questions}

    def stop(self) -> None:
        """The worker leaves: nobody will read the answers."""
        with self._lock:
            self._stopped = True
            left = self._processes
        for process in left:
            end(process)

    # -- what is asked here --------------------------------------------------------------------

    def _is_outside(self, condition: str) -> bool:
        return condition.startswith((COMMAND, FILE)) or condition in self._config.conditions

    def _outside(self, condition: str) -> str | None:
        """Why it does not hold, if so."""
        commands: Mapping[str, Sequence[str]] = self._config.conditions
        if condition.startswith(FILE):
            return self._file(condition.removeprefix(FILE))
        if condition.startswith(COMMAND):
            try:
                commands = {condition: shlex.split(condition.removeprefix(COMMAND))}
            except ValueError as error:
                return f"condition {condition}: {error}"
            if not commands[condition]:
                return f"condition {condition} names no command"
        answer = ask_condition(condition, self._folder, commands)
        if answer.trouble is not None:
            return answer.trouble
        return None if answer.found is not None else f"condition {condition} does not hold"

    def _file(self, path: str) -> str | None:
        project = os.path.realpath(self._folder)
        try:
            found = os.path.realpath(os.path.join(project, path))
            if os.path.commonpath([project, found]) != project:
                return f"condition {FILE}{path} is about a place outside of {project}"
            there = os.path.lexists(found)
        except (OSError, ValueError) as error:
            return f"condition {FILE}{path} cannot be looked at: {error}"
        return None if there else f"file {path} does not exist"

    # -- what is asked of a process ------------------------------------------------------------

    def _to_answer(self, entry: EntryQuestions) -> dict[str, Any]:
        return {"questions": list(self._questions(entry)), "wants_poll": entry.wants_poll}

    def _questions(self, entry: EntryQuestions) -> Iterator[str]:
        if entry.run is not None:
            yield f"run:{entry.run}"
        for condition in entry.conditions:
            if not self._is_outside(condition):
                yield f"condition:{entry.group}:{condition}"

    def _why(
        self, entry: EntryQuestions, answers: Mapping[str, str | None], inside: Conversation
    ) -> str | None:
        reasons = [answers.get(condition) for condition in entry.conditions]
        if not any(reasons):
            reasons = [inside.reason(key) for key in self._questions(entry)]
        return next((each for each in reasons if each is not None), None)

    def _start(self, request: Mapping[str, Any]) -> subprocess.Popen[bytes]:
        store = {"HEADWAY_STORE": self._home.store_url} if self._home.store_url else {}
        own = {"HEADWAY_HOME": self._home.path, **store}
        given = os.memfd_create("headway")
        try:
            with os.fdopen(os.dup(given), "w", encoding="utf-8") as file:
                json.dump({**request, "home": self._home.path}, file)
            os.lseek(given, 0, os.SEEK_SET)
            with self._lock:
                if self._stopped:
                    raise OSError(errno.ESHUTDOWN, LEAVING)
                process = tether.start(
                    [sys.executable, "-P", "-m", "headway.schedules.jobsfile.question_process"],
                    given=given,
                    cwd=self._folder,
                    env={"PATH": MINIMAL_PATH, **self._config.env, **own, **passed_on(os.environ)},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
                alive = [each for each in self._processes if each.returncode is None]
                self._processes = [*alive, process]
        finally:
            os.close(given)
        return process


class Conversation:
    """One conversation with as many processes as it takes."""

    def __init__(self, start: Any, entries: Sequence[Mapping[str, Any]], modules: Any) -> None:
        self._start = start
        self._entries = [each for each in entries if each["questions"] or each["wants_poll"]]
        self._modules = list(modules)
        self.known: dict[str, str | None] = {}
        self.data: Any = None
        self.polled: bool | None = None
        self._trouble: str | None = None

    @property
    def needed(self) -> bool:
        return bool(self._entries)

    def reason(self, key: str) -> str | None:
        """Why not; a question that nobody came to ask is no better than one answered with no."""
        if key in self.known:
            return self.known[key]
        return self._trouble

    def ask(self) -> None:
        for _ in range(MOST_PROCESSES):
            done = {  # a new process has imported nothing yet
                key: reason
                for key, reason in self.known.items()
                if reason is not None or not key.startswith("import:")
            }
            request = {
                "modules": self._modules,
                "entries": self._entries,
                "known": done,
                "data": self.data,
            }
            try:
                process = self._start(request)
            except OSError as error:
                self._trouble = f"no process could be started to ask: {error.strerror}"
                return
            try:
                if self._receive(process):
                    return
            finally:
                end(process)
        self._trouble = f"not asked: {MOST_PROCESSES} processes did not come to an end with it"

    def _receive(self, process: subprocess.Popen[bytes]) -> bool:
        """Take in its lines; whether there is nothing more to ask."""
        asked: str | None = None
        hearing = Receiving(process)
        for line in hearing.lines():
            if line is None:
                return self._gave_no_answer(asked, f"{_TOO_LONG} {SECONDS:g} s")
            said = _understood(line)
            if said.get("done"):
                return True
            if "begin" in said:
                asked = said["begin"]
            elif "key" in said:
                self._learn(said)
        how = f"ended the process that asked it ({_how(process)})"
        words = hearing.last_words()
        return self._gave_no_answer(asked, f"{how}: {words}" if words else how)

    def _learn(self, said: Mapping[str, Any]) -> None:
        reason = said["reason"]
        self.known[said["key"]] = reason and plain(reason[:LONGEST_REASON])
        if said["key"] == "poll":
            self.data = said.get("data")
            self.polled = said.get("polled", True)

    def _gave_no_answer(self, asked: str | None, how: str) -> bool:
        """Whether it is of no use to go on."""
        if asked is None or asked in self.known:
            self._trouble = f"the process that asks {how.replace(' that asked it', '')}"
            return True
        what, _, name = asked.partition(":")
        subject = name.partition(":")[2] if what == "condition" else name
        kind = {"import": "module", "run": "looking for", "poll": "the poll"}.get(what, what)
        self.known[asked] = f"{kind} {subject}".strip() + f" {how}"
        self.polled = True if asked == "poll" else self.polled
        return False


class Receiving:
    """The output of a process: its lines, and the end of its standard error."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None and process.stderr is not None  # noqa: S101
        self._out, self._err = process.stdout.fileno(), process.stderr.fileno()
        os.set_blocking(self._err, False)
        self._words = b""

    def lines(self) -> Iterator[bytes | None]:
        """Each line as it comes; None if one takes too long. What is too long ends it."""
        poll = select.poll()
        for fd in (self._out, self._err):
            poll.register(fd, select.POLLIN)
        rest, now = b"", SystemClock().monotonic  # no other one could wait for a process
        give_up_at = now() + START_SECONDS
        while True:
            ready = {fd for fd, _ in poll.poll(max(0.0, give_up_at - now()) * 1000)}
            if not ready:
                yield None
                return
            if self._err in ready and self._take_words() == 0:
                poll.unregister(self._err)
            if self._out not in ready:
                continue
            some = os.read(self._out, 1 << 16)
            if not some or len(rest) > LARGEST_LINE:
                return
            *lines, rest = (rest + some).split(b"\n")
            if lines:
                give_up_at = now() + SECONDS
            yield from lines

    def _take_words(self) -> int | None:
        """How many bytes came; None if there are none yet."""
        try:
            some = os.read(self._err, 1 << 16)
        except BlockingIOError:
            return None
        self._words = (self._words + some)[-LONGEST_WORDS:]
        return len(some)

    def last_words(self) -> str:
        """The last line that was printed during the last question."""
        for _ in range(MOST_READS):  # what a child of it goes on to print is not waited for
            if not self._take_words():
                break
        text = self._words.rpartition(MARK)[2].decode("utf-8", "replace")
        lines = [line for line in map(str.strip, text.splitlines()) if line]
        return plain(lines[-1][:LONGEST_ERROR]) if lines else ""


def _understood(line: bytes) -> Mapping[str, Any]:
    with suppress(ValueError):
        said = json.loads(line)
        if isinstance(said, dict):
            return said
    return {}


def _how(process: subprocess.Popen[bytes]) -> str:
    if not ended(process, 1.0):
        return "it says nothing any more"
    code = process.wait()
    return f"signal {-code}" if code < 0 else f"exit code {code}"
