"""The scripts that draw the pictures of the docs still load, and their pictures are up to date."""

import html
import re
from importlib import import_module
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(autouse=True)
def scripts_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))


def written(picture: str) -> str:
    """The text of an SVG of a terminal."""
    drawn = (DOCS / picture).read_text(encoding="utf-8")
    return html.unescape(re.sub(r"<[^>]+>", "", drawn)).replace("\xa0", " ")


def test_the_night_shows_every_command_of_its_script() -> None:
    night = import_module("night")
    drawn = written("night.svg")
    for words in (*night.EVENING, night.NIGHT, *night.MORNING):
        assert words in drawn, f"{words}: draw it anew, `make pictures`"


def test_the_pictures_ask_no_other_site_for_anything() -> None:
    import_module("pictures")
    for picture in DOCS.glob("*.svg"):
        source = picture.read_text(encoding="utf-8")
        assert "@font-face" not in source and "<image" not in source, picture
