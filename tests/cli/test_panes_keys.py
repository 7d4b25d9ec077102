"""What a terminal sends, as names of keys."""

import pytest

from headway.cli.panes.keys import KeyReader


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        (b"jk", ["j", "k"]),
        (b"\x1b[A\x1b[B\x1bOA\x1bOB", ["up", "down", "up", "down"]),
        (b"\x1b[5~\x1b[6~\x1b[H\x1b[4~", ["page up", "page down", "home", "end"]),
        (b"\r\n\t\x7f", ["enter", "enter", "tab", "backspace"]),
        ("ä漢".encode(), ["ä", "漢"]),
        (b"\x1b[24~\x1b[1;5Cq", ["q"]),  # a key that means nothing here
        (b"\x00\x01\x02", []),
        (b"\xff", ["\ufffd"]),
    ],
)
def test_keys_have_names(sent: bytes, keys: list[str]) -> None:
    assert KeyReader().feed(sent) == keys


def test_a_sequence_may_come_in_pieces() -> None:
    reader = KeyReader()
    assert reader.feed(b"\x1b") == [] and reader.waits
    assert reader.feed(b"[") == [] and reader.waits
    assert reader.feed(b"Aq") == ["up", "q"] and not reader.waits
    half = "漢".encode()
    assert reader.feed(half[:1]) == [] and reader.feed(half[1:]) == ["漢"]


def test_an_escape_after_which_nothing_comes_is_a_key() -> None:
    reader = KeyReader()
    assert reader.feed(b"\x1b") == []
    assert reader.feed(b"") == ["escape"] and not reader.waits
    assert reader.feed(b"\x1bq") == ["escape", "q"]
    assert reader.feed(b"\x1b[") == [] and reader.feed(b"") == ["escape"]
