"""`headway work` says when it has processes that can never all be busy."""

from typing import Any

import pytest

from headway.cli.work import unused_places
from headway.jobs.settings import Config


@pytest.mark.parametrize(
    ("settings", "cap", "told"),
    [
        ({"app.processes": 4, "app.threads": 2}, 1, "there are 8 places for functions, but"),
        ({"app.processes": 4}, 3, "headway config set scheduler.max_active 4 lets"),
        ({"app.processes": 4}, 4, None),
        ({"app.processes": 4}, -1, None),
        ({}, 1, None),
        ({"app.processes": 4, "app.modules": ()}, 1, None),
    ],
)
def test_places_without_slots(settings: dict[str, Any], cap: int, told: str | None) -> None:
    advice = unused_places(Config({"app.modules": ("shop",), **settings}), cap)
    assert advice is None if told is None else told in (advice or "")
