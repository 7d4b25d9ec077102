"""Everything here is proven on both stores."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Site

pytest.register_assert_rewrite("stage", "scenes", "leftovers", "checkouts")


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str | None:
    if request.param == "sqlite":
        return None
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def make_site(tmp_path: Path, store_url: str | None) -> Iterator[Callable[..., Site]]:
    made: list[Site] = []

    def make(**options: Any) -> Site:
        made.append(Site(tmp_path, **{"store_url": store_url, **options}))
        return made[-1]

    yield make
    for site in made:
        site.close()


@pytest.fixture
def site(make_site: Callable[..., Site]) -> Site:
    """No worker starts by itself: the test decides who lives."""
    return make_site(config="[worker]\nautostart = false\ncrash_loop = 0\n")
