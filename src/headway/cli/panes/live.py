"""The loop around the panes: keys, the terminal's size, what changed. It decides nothing.

What changes is drawn four times a second at most, and a frame that is the same not at all; a key is
answered at once.
"""

from collections.abc import Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from headway.cli.keyboard import Keyboard, signals_end_it
from headway.cli.panes.actions import do
from headway.cli.panes.documents import PanesReader
from headway.cli.panes.frame import Line, frame
from headway.cli.panes.keys import KeyReader
from headway.cli.panes.model import (
    Action,
    Document,
    Leave,
    Size,
    ViewState,
    press,
    rows_of,
    settled,
)
from headway.cli.render import colourful
from headway.cli.scope import Scope

ESCAPE_ALONE = 0.05  # seconds after which an escape is a key and not the beginning of one
STYLES = {
    "": "",
    "bold": "bold",
    "dim": "dim",
    "good": "green",
    "bad": "red",
    "warn": "yellow",
    "run": "bold blue",
    "key": "bold cyan",
    "alarm": "bold yellow",
    "selected": "reverse",
    "title": "bold underline",
    "title run": "bold underline blue",
    "title alarm": "bold underline yellow",
}


def show_live(scope: Scope, *, interval: float) -> int:
    """Draw until somebody leaves; the exit code."""
    reader = PanesReader(scope.connect)
    reader.refresh(ViewState())  # what cannot be shown is said before the screen is taken
    console = Console(highlight=False, markup=False, emoji=False, no_color=not colourful())
    with signals_end_it(), Live(console=console, screen=True, auto_refresh=False) as live:
        keyboard = Keyboard(console)
        with keyboard.by_key(), keyboard.by_signal():
            return PanesLoop(scope, reader, live, keyboard, interval).run()


class PanesLoop:
    def __init__(
        self, scope: Scope, reader: PanesReader, live: Live, keyboard: Keyboard, interval: float
    ) -> None:
        self._scope = scope
        self._reader = reader
        self._live = live
        self._keyboard = keyboard
        self._interval = interval
        self._keys = KeyReader()
        self._state = ViewState()
        self._drawn: tuple[list[Line], Size] | None = None

    def run(self) -> int:
        at_once = False
        while True:
            self._reader.refresh(self._state, at_once=at_once)
            rows = rows_of(self._reader.document, self._state.filter)
            self._state = settled(self._state, rows)
            self._draw()
            asked = self._state.question
            wait = ESCAPE_ALONE if self._keys.waits else self._interval
            keys = self._keys.feed(self._keyboard.pressed_within(wait))
            self._state, action = press_all(self._state, keys, self._reader.document, self._size())
            at_once = action is not None
            if isinstance(action, Leave):
                return 0
            if action is not None:
                done = do(self._scope, action)
                self._state = self._state._replace(message=done.message, question=done.question)
            if self._state.question is not None and asked is None:
                self._keyboard.discard()  # what was pressed before it could be read is no answer
                self._draw()

    def _size(self) -> Size:
        size = self._live.console.size
        return Size(size.width, size.height)

    def _draw(self) -> None:
        size = self._size()
        reader = self._reader
        lines = frame(
            reader.document,
            self._state,
            size,
            reader.client.now(),
            beside=reader.beside,
            trouble=reader.trouble,
        )
        if self._drawn != (lines, size) or self._keyboard.was_away():
            self._drawn = lines, size
            self._live.update(as_rich(lines), refresh=True)


def press_all(
    state: ViewState, keys: Sequence[str], document: Document, size: Size
) -> tuple[ViewState, Action | None]:
    """Keys that came together, up to the first action or question: who pressed the others had not
    seen what that led to."""
    for key in keys:
        asked = state.question
        state, action = press(state, key, document, size)
        if action is not None or (state.question is not None and asked is None):
            return state, action
    return state, None


def as_rich(lines: Sequence[Line]) -> Group:
    drawn = []
    for line in lines:
        text = Text(no_wrap=True, overflow="crop")
        for each in line:
            text.append(each.text, STYLES[each.style])
        drawn.append(text)
    return Group(*drawn)
