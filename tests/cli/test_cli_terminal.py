"""What a log may do to a terminal: show text, break lines, and colour. Nothing else."""

import os
import pty
import re
import subprocess

import pytest
from commandline import CommandLine
from hypothesis import given
from hypothesis import strategies as st

from headway.cli.terminal import LineCap, Sanitiser

CORPUS = {
    "text": (b"plain \t text\r\nand more", b"plain \t text\r\nand more"),
    "utf-8": ("grün ✓ 漢字".encode(), "grün ✓ 漢字".encode()),
    "colour": (b"\x1b[1;31mred\x1b[0m", b"\x1b[1;31mred\x1b[0m"),
    "256 colours": (b"\x1b[38:5:1mx\x1b[m", b"\x1b[38:5:1mx\x1b[m"),
    "colour left on": (b"\x1b[31mred", b"\x1b[31mred\x1b[0m"),
    "clipboard": (b"a\x1b]52;c;aGk=\x07b", b"ab"),
    "clipboard, ST": (b"a\x1b]52;c;aGk=\x1b\\b", b"ab"),
    "link": (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", b"link"),
    "title": (b"\x1b]0;title\x07x", b"x"),
    "DCS": (b"a\x1bP$q\"p\x1b\\b", b"ab"),
    "APC": (b"a\x1b_Gx\x1b\\b", b"ab"),
    "PM": (b"a\x1b^x\x1b\\b", b"ab"),
    "SOS": (b"a\x1bXx\x1b\\b", b"ab"),
    "clear": (b"a\x1b[2J\x1b[Hb", b"ab"),
    "answerback": (b"a\x1b[6n\x1b[c\x05b", b"ab"),
    "private m": (b"a\x1b[>4;1mb\x1b[?4mc", b"abc"),
    "not quite SGR": (b"a\x1b[1 mb", b"ab"),
    "reset": (b"a\x1bcb", b"ab"),
    "charset": (b"a\x1b(0b", b"ab"),
    "C1 CSI": ("a\x9b2Jb".encode(), b"ab"),
    "C1 OSC": ("a\x9d52;c;x\x9cb".encode(), b"ab"),
    "C1 colour": ("a\x9b31mb\x9b0m".encode(), b"a\x1b[31mb\x1b[0m"),
    "raw C1": (b"a\x9b2Jb", "a\ufffd2Jb".encode()),
    "backspace and bell": (b"a\x08\x07\x00\x0e\x0f\x7fb", b"ab"),
    "unended string ends with its line": (b"a\x1b]52;c;x\nb", b"a\nb"),
    "unended CSI ends with its line": (b"a\x1b[12\nb", b"a\nb"),
    "escape in a string": (b"a\x1b]0;x\x1b[2Jb", b"ab"),
    "escape before newline": (b"a\x1b\nb", b"a\nb"),
}  # fmt: skip
# What may be left: text, and escape sequences only as SGR.
HARMLESS = re.compile(r"(?:[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\x1b\[[0-9;:]*m)*")


def cleaned(*chunks: bytes) -> bytes:
    sanitiser = Sanitiser()
    return b"".join([*map(sanitiser.feed, chunks), sanitiser.end()])


@pytest.mark.parametrize("case", CORPUS)
def test_corpus(case: str) -> None:  # fault H9
    raw, clean = CORPUS[case]
    assert cleaned(raw) == clean


@pytest.mark.parametrize("case", CORPUS)
def test_corpus_byte_by_byte(case: str) -> None:  # fault H9
    raw, clean = CORPUS[case]
    assert cleaned(*(raw[at : at + 1] for at in range(len(raw)))) == clean


@given(st.lists(st.one_of(st.binary(), st.sampled_from([raw for raw, _ in CORPUS.values()]))))
def test_nothing_harmful_is_ever_left(chunks: list[bytes]) -> None:  # fault H9
    shown = cleaned(*chunks)
    assert HARMLESS.fullmatch(shown.decode())
    assert cleaned(b"".join(chunks)) == shown


def test_long_lines_are_cut_and_say_so() -> None:
    cap = LineCap(longest=4)
    assert cap.feed(b"abc") + cap.feed(b"defg\nhij\n") == b"abcd [3 more bytes in this line]\nhij\n"
    assert cap.feed(b"klmnop") + cap.end() == b"klmn [2 more bytes in this line]"


def test_tail_on_a_terminal_is_clean(headway: CommandLine) -> None:  # fault H9
    headway("exec", "--", "printf", r"\033]52;c;aGk=\007\033[31mred\033[2J\n")
    shown = on_a_terminal(headway, "jobs", "tail", "1")
    assert shown == b"\x1b[31mred\r\n\x1b[0m"


def test_lists_are_coloured_only_on_a_terminal_that_wants_it(headway: CommandLine) -> None:
    headway("exec", "--", "true")
    assert "\x1b" not in headway("jobs", "list").stdout
    assert b"\x1b[32msucceeded" in on_a_terminal(headway, "jobs", "list")
    assert b"\x1b" not in on_a_terminal(headway, "jobs", "list", NO_COLOR="1")


def on_a_terminal(headway: CommandLine, *argv: str, **env: str) -> bytes:
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        headway.argv(*argv),
        cwd=headway.folder,
        env={**headway.env, "TERM": "xterm", **env},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:  # the other side is closed
            break
    assert running.wait(60) == 0
    os.close(ours)
    return shown
