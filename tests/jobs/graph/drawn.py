"""Small schedules for the tests of what is drawn from them."""

from typing import Any

from headway.core.model import JobId
from headway.core.states import Status
from headway.jobs.views.graph.model import Graph, GraphSchedule, Need, Node, arrange

SECOND = 1_000_000
HOSTILE = '</text><script>alert("x")</script> "];\\ #quot; `--> end\x1b[2J\n{}<b>&amp;'


def node(job_id: JobId, status: Status = Status.QUEUED, **fields: Any) -> Node:
    defaults: dict[str, Any] = {
        "name": f"name-{job_id}",
        "created_at": job_id * SECOND,
        "chain": job_id,
    }
    return Node(id=job_id, status=status, **(defaults | fields))


def graph(*nodes: Node, ends: dict[JobId, JobId] | None = None) -> Graph:
    found = {each.id: each for each in nodes}
    return Graph(found, {each: each for each in found} | (ends or {}))


def schedule(*nodes: Node, **options: Any) -> GraphSchedule:
    return arrange(graph(*nodes), **options)


def ids(drawn: GraphSchedule) -> list[JobId]:
    return [row.id for row in drawn.rows]


def missing(artifact: str, *producers: JobId) -> Need:
    return Need(artifact, producers)


def present(artifact: str, *producers: JobId) -> Need:
    return Need(artifact, producers, present=True)
