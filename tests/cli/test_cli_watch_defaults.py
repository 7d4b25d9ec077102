"""What `jobs schedule --watch` takes where nothing is said, and the least that may be said."""

from typing import Any

import pytest
from click.testing import CliRunner

import headway.cli.jobs.watch
from headway.cli.jobs import schedule as module
from headway.client import Client


class Connected:
    """A command line that needs no store: nobody looks into it here."""

    def connect(self) -> Client | None:
        return None


@pytest.mark.req("V92", "V95")
@pytest.mark.parametrize(
    ("argv", "top", "seconds"),
    [
        ([], 10, 0.5),
        (["--top", "1"], 1, 0.5),
        (["--interval-ms", "100"], 10, 0.1),
        (["--top", "25", "--interval-ms", "2000"], 25, 2.0),
    ],
)
def test_the_watch_shows_ten_rows_and_looks_twice_a_second_unless_told(
    monkeypatch: pytest.MonkeyPatch, argv: list[str], top: int, seconds: float
) -> None:
    taken: dict[str, Any] = {}

    def watching(client: Client, **given: Any) -> int:
        taken.update(given)
        return 0

    monkeypatch.setattr(headway.cli.jobs.watch, "watch_schedule", watching)
    monkeypatch.setattr(module, "_refuse_to_watch", lambda chosen: None)  # there is no terminal
    done = CliRunner().invoke(module.schedule, ["--watch", *argv], obj=Connected())
    assert done.exception is None, done.output
    assert (taken["top"], taken["interval"]) == (top, seconds)
