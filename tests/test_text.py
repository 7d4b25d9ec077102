"""Text of strangers: harmless, measured, cut to fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.text import cells, plain, shortened


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
