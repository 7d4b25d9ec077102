"""Copy a job's output to this process's own, live, from one job of a chain to the next.

Bytes pass as they are, except to a terminal, which is shown only what cannot harm it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from headway.base.home import Home
from headway.base.text import plain, shortened
from headway.cli.render import width
from headway.cli.terminal import LineCap, Sanitiser
from headway.jobs.views.logs import last_lines
from headway.supervise.logs import read_log

if TYPE_CHECKING:
    from headway.integrations.agents.transcript import Transcript

STREAMS = ("stdout", "stderr")
CHUNK = 256 << 10


class Sink:
    """Where one stream goes; with a transcript as that tells it."""

    def __init__(self, stream: str, transcript: Transcript | None = None) -> None:
        self._file = (sys.stdout if stream == "stdout" else sys.stderr).buffer
        self._transcript = transcript
        self._clean = Sanitiser() if self._file.isatty() else None
        self._cap = LineCap()

    def write(self, data: bytes) -> None:
        self._show(data if self._transcript is None else self._transcript.feed(data))

    def _show(self, data: bytes) -> None:
        if self._clean is not None:
            data = self._cap.feed(self._clean.feed(data))
        self._file.write(data)
        self._file.flush()

    def end(self) -> None:
        if self._transcript is not None:
            self._show(self._transcript.end())
        if self._clean is not None:
            self._file.write(self._cap.feed(self._clean.end()) + self._cap.end())
            self._file.flush()


class ProgressLine:
    """How far a function has come, as one line that is written over; only on a terminal."""

    def __init__(self) -> None:
        self.wanted = sys.stderr.isatty()
        self._shown = ""

    def show(self, text: str) -> None:
        room = width() - 1
        text = shortened(plain(text), room)
        if text != self._shown:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
            self._shown = text

    def hide(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = ""


class Output:
    """The output of one job, from some offset on."""

    def __init__(
        self,
        home: Home,
        job_id: int,
        streams: Sequence[str] = STREAMS,
        transcript: Transcript | None = None,
    ) -> None:
        """`transcript` is how its stdout is told, if not as it is."""
        self._folder = home.job(job_id)
        self.job_id = job_id
        self._offsets = dict.fromkeys(streams, 0)
        transcripts = {"stdout": transcript}
        self._sinks = {stream: Sink(stream, transcripts.get(stream)) for stream in streams}
        self._refused = False
        self.before_write: Callable[[], None] = lambda: None

    def skip_to_last(self, lines: int) -> None:
        """Begin with the last `lines` lines of each stream."""
        for stream in self._offsets:
            with suppress(OSError):  # `pump` tells what is wrong with it
                self._offsets[stream] = last_lines(self._folder, stream, lines)

    def pump(self) -> bool:
        """Copy what is there now; False if nothing was."""
        found = False
        for stream, sink in self._sinks.items():
            while True:
                data, after, skipped = self._read(stream)
                if not data:
                    break
                self.before_write()
                if skipped:
                    sys.stderr.write(f"headway: [{skipped} bytes of {stream} were not kept]\n")
                sink.write(data)
                self._offsets[stream] = after
                found = True
        return found

    def _read(self, stream: str) -> tuple[bytes, int, int]:
        """What comes next. A folder that is not as it was made says nothing, and that is said once:
        how the job ends is still to be waited for."""
        offset = self._offsets[stream]
        try:
            return read_log(self._folder, stream, offset, CHUNK)
        except OSError as error:
            if not self._refused:
                self._refused = True
                sys.stderr.write(f"headway: its output cannot be read: {error}\n")
            return b"", offset, 0

    def end(self) -> None:
        self.pump()
        for sink in self._sinks.values():
            sink.end()
