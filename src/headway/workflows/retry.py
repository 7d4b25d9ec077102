"""Run the failed part of a workflow run again, as the run was made: its manifest counts, not the
file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.base.errors import ConflictError, InvalidInputError, NotFoundError
from headway.core.agents import Amount
from headway.core.model import Job, JobId, shown_run
from headway.core.rewind import Rewind, plan_repeat
from headway.jobs.budgets import budget_of, refuse_used_up, set_budget
from headway.jobs.retry import FindRoots, Rewound, preview_from, rewind_from
from headway.store.new_jobs import Event
from headway.workflows.runs import causes, require_run

if TYPE_CHECKING:
    from headway.jobs.context import Context
    from headway.store.records import NodeRecord
    from headway.store.transaction import ReadTx, WriteTx

MOST_NAMED = 12
MOST_USD = 1e9
MOST_TOKENS = 10**15


class RetriedRun(NamedTuple):
    """What a retry of a run did, or would do: the nodes where it begins, and all that run again."""

    run: int
    start: tuple[str, ...]
    nodes: tuple[str, ...]
    rewound: Rewound

    def document(self, restarted: Sequence[str]) -> dict[str, Any]:
        about = self.rewound.document(restarted)
        del about["requested_job"]
        return {
            "run": shown_run(self.run),
            "from": list(self.start),
            "nodes": list(self.nodes),
            **about,
        }


def retry_run(
    context: Context,
    run: int,
    *,
    from_node: str | None = None,
    budget_usd: float | None = None,
    budget_tokens: int | None = None,
    dry_run: bool = False,
) -> RetriedRun:
    """Run every node again that ended badly by itself, and all that follows from these; or with
    `from_node` that node, with all of its instances, and all after it. The budgets are what all
    agents of the run may spend from now on, with what they have spent."""
    if budget_usd is not None and not 0 < budget_usd < MOST_USD:
        raise InvalidInputError(f"--budget-usd is {budget_usd:g}; give an amount above 0")
    if budget_tokens is not None and not 0 < budget_tokens < MOST_TOKENS:
        raise InvalidInputError(f"--budget-tokens is {budget_tokens}; give a number above 0")
    budget = budget_of({"usd": budget_usd, "tokens": budget_tokens})
    find = _finder(run, from_node, budget)

    def record(tx: WriteTx, planned: Rewind) -> None:
        if budget_usd is not None or budget_tokens is not None:
            set_budget(tx, run, usd=budget_usd, tokens=budget_tokens)
        data = {
            "run": shown_run(run),
            "from": sorted({job.node for job in find(tx) if job.node}),
            "jobs": len(planned.members),
        }
        tx.events.add([Event("workflow_retried", None, data)], actor=context.actor)

    with context.store.read() as tx:
        start = tuple(job.node or "" for job in find(tx))
    if dry_run:
        rewound = preview_from(context, find, plan_repeat)
    else:
        rewound = rewind_from(context, find, plan_repeat, record)
    with context.store.read() as tx:
        chains = {*tx.graph.chains_of(rewound.members).values()}
        nodes = tuple(each.node for each in tx.workflows.nodes(run) if each.chain in chains)
    return RetriedRun(run, start, nodes, rewound)


def _finder(run: int, from_node: str | None, budget: Amount) -> FindRoots:
    def find(tx: ReadTx) -> Sequence[Job]:
        record = require_run(tx, run)
        refuse_used_up(record, budget)
        nodes = tx.workflows.nodes(run)
        if from_node is not None:
            asked = _named(run, nodes, from_node)
        else:
            tolerated = tx.workflows.manifest(run)["tolerates"]
            asked = causes(nodes, tolerated)
        if not asked:
            state = record.state if record.ended_at is not None else "has failed nowhere"
            raise ConflictError(
                f"{shown_run(run)} {state}; there is nothing to retry "
                "(--from NODE runs a node and all after it anew)"
            )
        ids: list[JobId] = [each.job_id for each in asked]
        jobs = tx.jobs.by_id(ids)
        return [jobs[each] for each in ids]

    return find


def _named(run: int, nodes: Sequence[NodeRecord], name: str) -> list[NodeRecord]:
    """All instances of a node, or the one that is called so."""
    found = [each for each in nodes if name in (each.written, each.node)]
    prompt = f"{name}.prompt"  # of an agent: what leads to it leads there
    found += [each for each in nodes if found and prompt == each.written]
    if not found:
        from difflib import get_close_matches

        names = list(dict.fromkeys(each.written for each in nodes))
        near = get_close_matches(name, names, 1)
        some = ", ".join(names[:MOST_NAMED]) + (" and more" if len(names) > MOST_NAMED else "")
        hint = f"did you mean '{near[0]}'?" if near else f"there are {some}"
        raise NotFoundError(f"{shown_run(run)} has no node '{name}'; {hint}")
    return found
