"""Text of strangers: harmless, measured, cut to fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.base.text import cells, ending, fitted, plain, shortened


@pytest.mark.parametrize(
    ("text", "width"),
    [("abc", 3), ("漢字", 4), ("🚀", 2), ("e\u0301", 1), ("❤\ufe0f", 1), ("ｗ", 2), ("", 0)],
)
def test_text_has_the_width_that_a_terminal_gives_it(text: str, width: int) -> None:
    assert cells(text) == width


@given(st.text(), st.integers(3, 40))
def test_what_is_cut_fits_and_says_so(text: str, room: int) -> None:
    cut = shortened(plain(text), room)
    assert cells(cut) <= room
    assert cut == plain(text) or cut.endswith("...")


@given(st.text())
def test_what_is_shown_is_printable(text: str) -> None:
    assert plain(text).isprintable()


@given(st.text(), st.integers(3, 40))
def test_what_is_cut_in_front_fits_and_keeps_its_end(text: str, room: int) -> None:
    cut = ending(plain(text), room)
    assert cells(cut) <= room
    assert cut == plain(text) or plain(text).endswith(cut.removeprefix("..."))


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("/srv/project/file", "...ect/file"),
        ("~/project/of/me", "...ct/of/me"),
        ("/bin/echo a long line", "/bin/ech..."),
        ("waiting for its time", "waiting..."),
        ("/srv/漢字/file", "...字/file"),
        ("/srv", "/srv"),
    ],
)
def test_a_path_is_cut_in_front_and_a_text_at_its_end(text: str, cut: str) -> None:
    assert fitted(text, 11) == cut
