"""The starters draft, approve and merge, one after the other, with a small program as the agent."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
import three_stages
from fake_agents import install
from scratch import IDENTITY, Scratch
from started import Started

from harness import Bench
from headway.workflows.new_file import starter_text


class SteppedStage:
    """A stage whose worker the test steps."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.scratch = Scratch(bench.folder)

    def start(self, starter: str, **params: str) -> Started:
        return Started(self._bench, starter_text(starter), three_stages.SLUG, **params)

    def until(self, condition: Callable[[], Any], what: str) -> None:
        self._bench.until(condition, what)

    def approve(self, job: int) -> None:
        self._bench.client.jobs.approve(job)

    def chain(self, job: int) -> list[dict[str, Any]]:
        return self._bench.client.jobs.chain(job)


@pytest.mark.req("V21", "V22", "V24")
def test_from_a_specification_to_a_merged_branch(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(bench.folder)
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    agent = f'printf %s "$PROMPT" | {sys.executable} {three_stages.__file__}'
    install(bench, agent, name="claude")
    ended = three_stages.play(SteppedStage(bench))
    assert [each["spent"]["usd"] for each in ended] == [0.1, 0.2, 0.1]
