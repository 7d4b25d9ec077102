from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Site


@pytest.fixture
def make_site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    made: list[Site] = []

    def make(**options: Any) -> Site:
        made.append(Site(tmp_path, **options))
        return made[-1]

    yield make
    for site in made:
        site.close()


@pytest.fixture
def site(make_site: Callable[..., Site]) -> Site:
    """No worker starts by itself: the test decides who lives."""
    return make_site(config="[worker]\nautostart = false\ncrash_loop = 0\n")
