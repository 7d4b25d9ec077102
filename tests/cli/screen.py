"""A program on a terminal of our own, and what that terminal would show."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from commandline import DEADLINE, CommandLine

_SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b[^\[]")


def _width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


class Screen:
    """Knows what the program uses: home, lines up, erasing, text of any width, the other screen,
    the cursor."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns = columns
        self.cells = [[" "] * columns for _ in range(lines)]
        self.alternate = False
        self.cursor_hidden = False
        self.overflowed = False
        self.frames = 0
        self._row = self._column = 0
        self._rest = ""

    def feed(self, data: str) -> None:
        text = self._rest + data
        cut = text.rfind("\x1b")
        keep = cut >= 0 and not _SEQUENCE.match(text, cut)
        self._rest = text[cut:] if keep else ""
        text = text[:cut] if keep else text
        at = 0
        for match in _SEQUENCE.finditer(text):
            self._write(text[at : match.start()])
            self._obey(match[1], match[2])
            at = match.end()
        self._write(text[at:])

    def _obey(self, arguments: str | None, letter: str | None) -> None:
        match (arguments, letter):
            case ("?1049", "h" | "l"):
                self.alternate = letter == "h"
            case ("?25", "h" | "l"):
                self.cursor_hidden = letter == "l"
            case ("", "H"):
                self._row = self._column = 0
                self.frames += 1
            case (count, "A"):
                self._row = max(0, self._row - int(count or 1))
            case ("", "K" | "J"):
                self._erase(below=letter == "J")
            case (_, "m"):
                pass
            case _:
                pytest.fail(f"unexpected: ESC [ {arguments} {letter}")

    def _erase(self, *, below: bool) -> None:
        """The rest of the line, and all that is below it."""
        rest = self.cells[self._row + 1 :] if below else []
        for row, begin in [(self.cells[self._row], self._column), *((each, 0) for each in rest)]:
            row[begin:] = [" "] * (self.columns - begin)

    def _write(self, text: str) -> None:
        for char in text:
            if char == "\r":
                self._column = 0
            elif char == "\n":
                self._row += 1
            else:
                self._put(char)

    def _put(self, char: str) -> None:
        width = _width(char)
        if self._row >= len(self.cells) or self._column + width > self.columns:
            self.overflowed = True
            return
        if width:
            self.cells[self._row][self._column] = char
            self.cells[self._row][self._column + 1 : self._column + width] = [""] * (width - 1)
        self._column += width

    @property
    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self.cells]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def column_of(self, line: int, word: str) -> int:
        """In which cell of the line the word begins."""
        cells = self.cells[line]
        for column in range(len(cells)):
            if "".join(cells[column:]).startswith(word):
                return column
        return -1


def _set_size(fd: int, columns: int, lines: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


class Terminal:
    def __init__(
        self,
        headway: CommandLine,
        *argv: str,
        columns: int = 80,
        lines: int = 24,
        away: str = "",
        **env: str,
    ) -> None:
        """`away`: which of stdout and stderr goes elsewhere."""
        self.ours, theirs = pty.openpty()
        _set_size(theirs, columns, lines)
        self.before = termios.tcgetattr(theirs)
        self.theirs = theirs
        self.screen = Screen(columns, lines)
        self.raw = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.process = subprocess.Popen(
            headway.argv(*argv),
            cwd=headway.folder,
            env={**headway.env, "TERM": "xterm-256color", **env},
            stdin=theirs,
            stdout=subprocess.DEVNULL if away == "stdout" else theirs,
            stderr=subprocess.DEVNULL if away == "stderr" else theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    def until(self, condition: Callable[[Screen], Any]) -> Screen:
        """Read what comes until the screen is as wanted."""
        give_up_at = time.monotonic() + DEADLINE
        while not condition(self.screen):
            if time.monotonic() > give_up_at:
                pytest.fail(f"not so within {DEADLINE} s:\n{self.screen.text}\n{self.raw[-300:]!r}")
            self._read(0.1)
        return self.screen

    def shows(self, *words: str) -> Screen:
        return self.until(lambda screen: all(word in screen.text for word in words))

    def next_frame(self) -> Screen:
        """The screen when a frame that began after now is complete."""
        seen = self.screen.frames
        return self.until(lambda screen: screen.frames > seen + 1)

    def resize(self, *, columns: int, lines: int) -> None:
        """The kernel tells the program."""
        self.screen = Screen(columns, lines)
        _set_size(self.ours, columns, lines)

    def press(self, keys: bytes) -> None:
        os.write(self.ours, keys)

    def ended(self) -> int:
        """The exit code, after reading all that was left."""
        give_up_at = time.monotonic() + DEADLINE
        while self.process.poll() is None:
            assert time.monotonic() < give_up_at, self.screen.text
            self._read(0.05)
        while self._read(0):
            pass
        return self.process.returncode

    def restored(self) -> bool:
        """Whether the terminal is as it was before the program came."""
        same = termios.tcgetattr(self.theirs) == self.before
        return same and not self.screen.alternate and not self.screen.cursor_hidden

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)

    def _read(self, seconds: float) -> bool:
        if not select.select([self.ours], [], [], seconds)[0]:
            return False
        data = os.read(self.ours, 1 << 16)
        self.raw += data
        self.screen.feed(self._decoder.decode(data))
        return True


Opener = Callable[..., Terminal]
