"""docs/dashboard.md has every page of the server, and its keys."""

import re
from pathlib import Path

import pytest

from headway.web.pages.page import LIVE, PLACES
from headway.web.routes import API_ROUTES, PAGES, ROUTES

TEXT = (Path(__file__).parents[2] / "docs" / "dashboard.md").read_text(encoding="utf-8")
SHOWN = sorted({each.path for each in PAGES if each.method == "GET" and not each.right.public})


@pytest.mark.parametrize("path", SHOWN)
def test_every_page_is_there(path: str) -> None:
    where = "What is live" if path == LIVE else "The pages"
    section = TEXT.split(f"\n## {where}\n")[1].partition("\n## ")[0]
    assert f"`{path}`" in section


def test_every_route_is_of_the_api_or_of_a_page() -> None:
    """docs/http.md has those of the API."""
    assert {each.path for each in (*API_ROUTES, *PAGES)} == {each.path for each in ROUTES}


def test_no_page_is_there_that_does_not_exist() -> None:
    assert set(re.findall(r"`(/ui/[^`?]*)`", TEXT)) == set(SHOWN)


@pytest.mark.parametrize(("word", "path", "key"), PLACES)
def test_every_key_of_a_page_is_there(word: str, path: str, key: str) -> None:
    section = TEXT.split("\n## Keys\n")[1].partition("\n## ")[0]
    assert f"`{key}` {word}" in section, path
