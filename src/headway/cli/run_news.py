"""Follow a run of a workflow: a line for each node that starts, ends, asks or goes back."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from headway.cli.render import say
from headway.cli.run_view import how_run_ended, next_step, took
from headway.cli.wait_lines import pause_words
from headway.client import Client
from headway.core.model import shown_run
from headway.workflows.feed import NodeNews
from headway.workflows.runs import exit_code

MANY = 8  # instances of a node whose good ends are told together
PATIENCE = 3.0  # seconds in which nothing runs, after which one likes to know why
DETACHED = 130


def follow_run(client: Client, run: int, *, since: int, timeout: float | None = None) -> int:
    """Tell all that happens after the event `since` until the run ends; its exit code. The run
    does not depend on this process: Ctrl-C leaves it running."""
    follower = Follower(client, run, since)
    try:
        ended = client.workflows.wait(run, timeout=timeout, meanwhile=follower.look)
    except KeyboardInterrupt:
        name = f"wf-{run}"
        say(
            f"{name} goes on; `headway workflows wait {name} --follow` follows it, "
            f"`headway workflows stop {name}` ends it"
        )
        return DETACHED
    follower.look(ended)
    say(how_run_ended(ended, client.now()))
    following = next_step(client, ended)
    if following is not None:
        say(f"next: {following}")
    return exit_code(ended)


class Follower:
    """Says what is new of a run."""

    def __init__(self, client: Client, run: int, since: int) -> None:
        self._client = client
        self._feed = client.workflows.feed(run, since=since)
        self._run = run
        self._shown: dict[str, Any] | None = None
        self._idle_run = IdleRun(client, self._say_why)
        self._ended: Counter[tuple[str, str]] = Counter()

    def look(self, document: dict[str, Any]) -> None:
        if document is not self._shown:
            self._shown = document
            instances = Counter(each["node"] for each in document["nodes"])
            for news in self._feed.news():
                self._say(news, instances[news.written])
        self._idle_run.look(document)

    def _say(self, news: NodeNews, instances: int) -> None:
        if instances <= MANY:
            say(line_of(news))
            return
        went_well = news.outcome in ("succeeded", "skipped")
        if news.kind == "ended" and news.next_job is None:
            self._count(news, instances)
        if news.kind in ("asks", "looped") or (news.kind == "ended" and not went_well):
            say(line_of(news))

    def _count(self, news: NodeNews, instances: int) -> None:
        """For a node with many instances, one line at the last end counts all of this pass."""
        self._ended[news.written, str(news.outcome)] += 1
        counts = {outcome: n for (node, outcome), n in self._ended.items() if node == news.written}
        if sum(counts.values()) < instances:
            return
        for outcome in counts:
            del self._ended[news.written, outcome]
        words = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        say(f"{news.written} x{instances} ended: {words}")

    def _say_why(self) -> None:
        why = self._client.workflows.why(self._run)
        if why["detail"] is not None:
            hint = f" ({why['remedy']})" if why["remedy"] else ""
            say(f"{why['id']} waits: {why['detail']}{hint}")


class IdleRun:
    """Calls `wonder`, once, where nothing of a run runs for a while."""

    def __init__(self, client: Client, wonder: Callable[[], None]) -> None:
        self._clock = client.clock
        self._wonder = wonder
        self._wonder_at: float | None = None

    def look(self, document: dict[str, Any]) -> None:
        now = self._clock.monotonic()
        if document["ended_at"] is not None or "running" in document["counts"]:
            self._wonder_at = None
        elif self._wonder_at is None:
            self._wonder_at = now + PATIENCE
        elif now >= self._wonder_at:
            self._wonder_at = float("inf")
            self._wonder()


def say_if_paused(client: Client, run: int) -> None:
    """While nothing is started, waiting may never end."""
    pause = pause_words(client)
    if pause is not None:
        say(f"{shown_run(run)} waits: {pause}")


def line_of(news: NodeNews) -> str:
    """`ci (job-31) failed: exit code 1; back to code, 1 of 3 (after 12s)`"""
    name = f"{news.node} ({news.job})" if news.job is not None else news.node
    if news.kind == "started":
        return f"{name} started" + (f", pass {news.passes}" if news.passes > 1 else "")
    if news.kind == "asks":
        question = f": {news.reason}" if news.reason else ""
        return f"{name} waits for approval{question} (headway approve {news.job})"
    back = f"back to {news.back_to}, {news.used} of {news.of}" if news.back_to else None
    if news.kind == "looped":
        return f"{name}: {back}"
    again = f"attempt again as {news.next_job}" if news.next_job else None
    time = None if news.took is None else took(news.took)
    if news.outcome == "succeeded" and back is None:
        return f"{name} succeeded" + (f" in {time}" if time is not None else "")
    reason = (news.reason or "").removeprefix(f"{news.outcome}: ")
    words = "; ".join(filter(None, (reason, again, back)))
    line = f"{name} {news.outcome}" + (f": {words}" if words else "")
    return line + (f" (after {time})" if time is not None else "")
