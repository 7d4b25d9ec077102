"""The news of a run, node by node. They come from stored events, so none is missed, however fast
the run is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.core.approvals import approval_rule
from headway.core.model import JobId, shown
from headway.core.states import TERMINAL, Status
from headway.workflows.matrices import written_node
from headway.workflows.runs import nodes_of, require_run

if TYPE_CHECKING:
    from headway.jobs.context import Context
    from headway.store.new_jobs import Event
    from headway.store.records import NodeRecord
    from headway.store.transaction import ReadTx

AT_ONCE = 1000  # events that are read together
ENDS = frozenset(each.value for each in TERMINAL)
ASKS = Status.WAITING_ON_APPROVAL.value


class NodeNews(NamedTuple):
    """A node has started, ended, asks for a person or goes back; `took` is in microseconds. That a
    node with several instances goes back is said of none of them: there is no job."""

    node: str
    written: str
    job: str | None
    kind: str  # started, ended, asks, looped
    outcome: str | None = None
    reason: str | None = None
    took: int | None = None
    passes: int = 1
    back_to: str | None = None  # the head of the loop that it goes back by
    used: int = 0
    of: int = 0
    next_job: str | None = None  # the automatic retry that follows


class RunFeed:
    """The news of one run since an event, asked for again and again."""

    def __init__(self, context: Context, run: int, *, since: int) -> None:
        self._context = context
        self._run = run
        self._seq = since
        self._nodes: dict[JobId, str | None] = {}  # the name of each job's node; None: of no node
        self._started: dict[JobId, int] = {}
        self._passes: dict[JobId, int] = {}
        self._questions: dict[JobId, str | None] = {}

    def news(self) -> list[NodeNews]:
        """What has happened since this was last asked for."""
        found: list[NodeNews] = []
        while True:
            with self._context.store.read() as tx:
                events = tx.events.since(self._seq, AT_ONCE)
                if events:
                    found += self._read(tx, events)
                    self._seq = events[-1].seq
            if len(events) < AT_ONCE:
                return found

    def _read(self, tx: ReadTx, events: Sequence[Event]) -> Iterator[NodeNews]:
        self._learn(tx, events)
        own = [each for each in events if self._nodes.get(each.job_id or 0) is not None]
        if not own:
            return
        nodes = {each.job_id: each for each in nodes_of(tx, require_run(tx, self._run))}
        names = {each.written for each in nodes.values()}
        looped = {
            each.job_id: _as_written(each.data, names) for each in own if each.kind == "looped"
        }
        retried = {
            each.job_id: str(each.data["by"])
            for each in own
            if each.kind == "retried" and not {"run", "root"} & each.data.keys()
        }
        ended = {each.job_id for each in own if each.kind in ENDS}
        for each in own:
            job_id = each.job_id or 0
            if each.kind == "running":
                self._started[job_id] = each.at
                yield self._about(each, "started")
            elif each.kind == ASKS:
                yield self._about(each, "asks")._replace(reason=self._questions.get(job_id))
            elif each.kind in ENDS:
                end = self._ended(each, nodes.get(job_id))
                back = looped.get(job_id) if end.node == end.written else None
                yield _with_loop(end, back)._replace(next_job=retried.get(job_id))
            elif each.kind == "looped":
                about = self._about(each, "looped")
                if about.node != about.written:
                    about = about._replace(node=about.written, job=None)
                elif job_id in ended:
                    continue
                yield _with_loop(about, looped[job_id])

    def _learn(self, tx: ReadTx, events: Sequence[Event]) -> None:
        """Which of the jobs that these are about are nodes of the run, and in which pass."""
        unknown = sorted({each.job_id for each in events if each.job_id} - self._nodes.keys())
        if not unknown:
            return
        for job in tx.jobs.readable(unknown).values():
            own = job.workflow_run == self._run
            self._nodes[job.id] = job.node if own else None
            self._passes[job.id] = job.node_pass
            self._questions[job.id] = approval_rule(job).question
            if own and job.started_at is not None:
                self._started[job.id] = job.started_at
        for each in unknown:
            self._nodes.setdefault(each, None)

    def _about(self, event: Event, kind: str) -> NodeNews:
        job_id = event.job_id or 0
        node = self._nodes[job_id] or ""
        written = written_node(node)
        return NodeNews(node, written, shown(job_id), kind, passes=self._passes.get(job_id, 1))

    def _ended(self, event: Event, node: NodeRecord | None) -> NodeNews:
        """By the outcome of its node, if that is still of this job: a loop may have taken it."""
        job_id = event.job_id or 0
        outcome, reason = event.kind, event.data.get("reason")
        if node is not None and node.outcome is not None:
            outcome, reason = node.outcome.value, node.reason
        began = self._started.get(job_id)
        return self._about(event, "ended")._replace(
            outcome=outcome, reason=reason, took=None if began is None else event.at - began
        )


def _as_written(data: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """A loop back to an agent leads to the node of its prompt; its file names the agent."""
    agent = str(data["to"]).removesuffix(".prompt")
    return {**data, "to": agent if agent in names else data["to"]}


def _with_loop(news: NodeNews, data: Any) -> NodeNews:
    if not data:
        return news
    return news._replace(back_to=data["to"], used=data["used"], of=data["of"])
