"""Make a job's output harmless for a terminal that shows it.

A log is data from strangers. Obeyed by a terminal it could set the clipboard, fake links, rename
the window or answer in the user's name. So everything is taken out but text, newline, return, tab
and colour (SGR). A sequence may be split over chunks; its state is kept between them. A newline
ends an unfinished sequence, so that no log can hide what comes after it. Only for terminals: a pipe
gets the bytes as they are.
"""

import codecs
import re

LONGEST_LINE = 64 << 10
_RESET = b"\x1b[0m"
_SPECIAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_SGR = re.compile(r"[0-9;:]*m")
_LONGEST_SEQUENCE = 128

# Strings that run until their terminator: DCS, SOS, OSC, PM, APC, after ESC or as one C1 character.
_STRINGS = "PX]^_"
_C1_STRINGS = "\x90\x98\x9d\x9e\x9f"
_CSI = "\x9b"
_STRING_ENDS = re.compile(r"[\x07\x18\x1a\x1b\x9c\n]")


class Sanitiser:
    """Feed it the bytes of one stream, in order."""

    def __init__(self) -> None:
        # Undecodable bytes, raw C1 controls among them, become the replacement character.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._within = ""  # "", "escape", "csi" or "string"
        self._sequence = ""
        self._coloured = False

    def feed(self, data: bytes) -> bytes:
        return self._clean(self._decoder.decode(data)).encode("utf-8")

    def end(self) -> bytes:
        """What is left, and an end of any colour."""
        rest = self._clean(self._decoder.decode(b"", final=True)).encode("utf-8")
        return rest + (_RESET if self._coloured else b"")

    def _clean(self, text: str) -> str:
        kept: list[str] = []
        at = 0
        while at < len(text):
            match self._within:
                case "escape":
                    at = self._escape(text, at)
                case "csi":
                    at = self._csi(text, at, kept)
                case "string":
                    at = self._string(text, at)
                case _:
                    at = self._text(text, at, kept)
        return "".join(kept)

    def _text(self, text: str, at: int, kept: list[str]) -> int:
        special = _SPECIAL.search(text, at)
        if special is None:
            kept.append(text[at:])
            return len(text)
        kept.append(text[at : special.start()])
        char = special[0]
        if char == "\x1b":
            self._enter("escape")
        elif char == _CSI:
            self._enter("csi")
        elif char in _C1_STRINGS:
            self._enter("string")
        return special.end()

    def _escape(self, text: str, at: int) -> int:
        char = text[at]
        if char == "[":
            self._enter("csi")
        elif char in _STRINGS:
            self._enter("string")
        elif char == "\x1b":
            self._enter("escape")
        elif char in "\n\r\t" or char > "\x7e":
            self._enter("")
            return at
        elif not " " <= char <= "/":  # those stand between ESC and its last character
            self._enter("")
        return at + 1

    def _csi(self, text: str, at: int, kept: list[str]) -> int:
        char = text[at]
        if "@" <= char <= "~":
            sequence = self._sequence + char
            self._enter("")
            if _SGR.fullmatch(sequence):
                kept.append(f"\x1b[{sequence}")
                self._coloured = sequence not in ("m", "0m")
        elif " " <= char <= "?" and len(self._sequence) < _LONGEST_SEQUENCE:
            self._sequence += char
        else:
            self._enter("")
            return at
        return at + 1

    def _string(self, text: str, at: int) -> int:
        end = _STRING_ENDS.search(text, at)
        if end is None:
            return len(text)
        if end[0] == "\x1b":
            self._enter("escape")  # ESC \ is the terminator; any other begins anew
        else:
            self._enter("")
        return end.start() if end[0] == "\n" else end.end()

    def _enter(self, state: str) -> None:
        self._within = state
        self._sequence = ""


class LineCap:
    """Cut lines that are too long to be looked at, and say how much is missing."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._length = 0

    def feed(self, data: bytes) -> bytes:
        kept = bytearray()
        for line in data.splitlines(keepends=True):
            content = line.rstrip(b"\r\n")
            kept += content[: max(0, self._longest - self._length)]
            self._length += len(content)
            if len(content) < len(line):
                kept += self.end() + line[len(content) :]
        return bytes(kept)

    def end(self) -> bytes:
        """Close the present line."""
        missing = max(0, self._length - self._longest)
        self._length = 0
        return b" [%d more bytes in this line]" % missing if missing else b""
