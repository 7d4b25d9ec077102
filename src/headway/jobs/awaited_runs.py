"""Jobs that wait for a whole workflow run: `--after wf-7`.

Such a job has ordinary `after` edges to the sinks of the run, so that views, rewinds and `jobs gc`
see them. How these are judged is another matter: by the outcomes of the sinks, as they are now,
where a skip and what the node tolerates count as good. docs/decisions/033 says why.
"""

from collections.abc import Iterable, Mapping, Sequence

from headway.base.errors import InvalidInputError, NotFoundError
from headway.core.facts import NodeEnd, Predecessor
from headway.core.model import Job, JobId, JobSpec, shown_run
from headway.core.routes import NodeOutcome
from headway.jobs.loop_state import RunLoops
from headway.jobs.references import RUN_ID
from headway.store.records import RunRecord
from headway.store.transaction import ReadTx

GOOD = frozenset({NodeOutcome.SUCCEEDED, NodeOutcome.SKIPPED})


def with_sinks(tx: ReadTx, spec: JobSpec) -> JobSpec:
    """The same, with an edge to each sink of the runs that it is after."""
    after = list(spec.after)
    for run in spec.after_runs:
        sinks = _sinks(tx, run)
        if not sinks:
            raise unknown_run(shown_run(run))
        after += [each.chain for each in sinks]
    return spec._replace(after=tuple(dict.fromkeys(after)))


def require_run(tx: ReadTx, text: str) -> RunRecord:
    """The run that is called so, like `wf-7`."""
    match = RUN_ID.fullmatch(text.strip())
    if match is None:
        raise InvalidInputError(f"{text[:40]!r} is no run; write one like wf-7")
    found = tx.workflows.by_id([int(match[1])]).get(int(match[1]))
    if found is None:
        raise unknown_run(text.strip())
    return found


def unknown_run(name: str) -> NotFoundError:
    return NotFoundError(f"there is no {name}; `headway workflows runs` lists them")


def _sinks(tx: ReadTx, run: int) -> list[NodeEnd]:
    """All present instances of the nodes whose success ends the run."""
    manifest = tx.workflows.manifest(run)
    return tx.workflows.node_ends(run, manifest["sinks"]) if manifest else []


def judged_by_outcome(
    tx: ReadTx, jobs: Iterable[Job], found: Mapping[JobId, tuple[Predecessor, ...]]
) -> Mapping[JobId, tuple[Predecessor, ...]]:
    """The predecessors of these jobs; of those that wait for runs the sinks with their outcomes in
    place of the edges to them."""
    waiting = [job for job in jobs if job.after_runs]
    if not waiting:
        return found
    return {**found, **{job.id: _predecessors(tx, job) for job in waiting}}


def _predecessors(tx: ReadTx, job: Job) -> tuple[Predecessor, ...]:
    sinks: list[Predecessor] = []
    for run in job.after_runs:
        ends = _sinks(tx, run)
        tolerated = tx.workflows.manifest(run)["tolerates"] if ends else {}
        # The instance that was made last most often ends last, so it is the one to wait for.
        for end in reversed(ends):
            accepts = GOOD.union(map(NodeOutcome, tolerated.get(end.node, ())))
            sinks.append(
                Predecessor(end.job_id, end.chain, end.status, outcome=end.outcome, accepts=accepts)
            )
    judged = {each.chain for each in sinks}
    others = (each for each in tx.waits.every_unmet(job) if each.chain not in judged)
    return (*others, *sinks)


def chains_behind(tx: ReadTx, nodes: Sequence[Job]) -> set[JobId]:
    """The chains outside of their runs that wait for these nodes without an edge to them: through
    the fan that has made them, or through another node whose end counts when a loop around them is
    over."""
    runs: dict[int, set[JobId]] = {}
    for job in nodes:
        runs.setdefault(job.workflow_run or 0, set()).add(job.chain)
    found: set[JobId] = set()
    for run, chains in runs.items():
        near = {*tx.workflows.fans_behind(sorted(chains))}
        loops = RunLoops(tx, run)
        heads = {head for each in loops.nodes if each.chain in chains for head in each.within}
        near |= {
            each.chain for each in loops.nodes if heads.intersection(loops.left_by(each.written))
        }
        waiting = tx.graph.dependents_of(sorted(near - chains)) if near - chains else ()
        outside = (job for job in tx.jobs.by_id(sorted(waiting)).values() if waiting)
        found |= {job.chain for job in outside if job.workflow_run != run}
    return found
