"""The jobs before a job: whose end has blocked it, and where a retry has to begin."""

from headway.core.artifacts import artifact_key
from headway.core.facts import NodeEnd
from headway.core.gates.routes import OF_NODE
from headway.core.model import Job
from headway.core.states import ACTIVE, TERMINAL, Status
from headway.core.wait_words import failed_dependency, failed_producer
from headway.store.transaction import ReadTx


def root_of_block(tx: ReadTx, job: Job) -> Job | None:
    """The job that has to be retried so that a blocked one can run: the first before it that ended
    without success and was not blocked by another itself. None if no job is in its way now."""
    root, seen = None, {job.chain}
    blocker = _blocker(tx, job)
    while blocker is not None and blocker.chain not in seen:
        root = blocker
        seen.add(blocker.chain)
        blocker = _blocker(tx, blocker)
    return root


def _blocker(tx: ReadTx, job: Job) -> Job | None:
    """The job that a blocked one names in its reason, by the last of its chain; None if that has
    succeeded since, or may still do so."""
    if job.status is not Status.BLOCKED_BY_DEPENDENCY:
        return None
    last = _failed_before(tx, job) or _failed_maker(tx, job)
    return None if last is None or last.status in {*ACTIVE, Status.SUCCEEDED} else last


def _failed_before(tx: ReadTx, job: Job) -> Job | None:
    for before in job.after:
        if any(job.reason == failed_dependency(before, each).detail for each in TERMINAL):
            declared = tx.jobs.readable([before]).get(before)
            return declared and (tx.jobs.last_in_chain(declared.chain) or declared)
    # Of a workflow run the last job of a chain is named, not the one that was declared.
    if job.workflow_run is None:
        return None
    named = {failed_dependency(end.job_id, end.status).detail: end for end in _ends(tx, job)}
    end = named.get(job.reason or "")
    return tx.jobs.readable([end.job_id]).get(end.job_id) if end is not None else None


def _ends(tx: ReadTx, job: Job) -> list[NodeEnd]:
    sources = [each["source"] for each in job.params[OF_NODE]["edges"]]
    return tx.workflows.node_ends(job.workflow_run or 0, sources)


def _failed_maker(tx: ReadTx, job: Job) -> Job | None:
    for text in job.needs:
        key = artifact_key(text, job.repo)
        makers = tx.graph.artifact_views([key])[key].producers
        named = makers[:1] if all(each.status is not Status.SUCCEEDED for each in makers) else ()
        for each in named:
            if job.reason == failed_producer(text, each.job_id, each.status).detail:
                return tx.jobs.readable([each.job_id]).get(each.job_id)
    return None
