from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Bench


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(**options: Any) -> Bench:
        made.append(Bench(tmp_path, **options))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()
