"""Runs of workflows, and their nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway.core.facts import NodeEnd
from headway.core.model import Job, JobId
from headway.core.routes import NodeOutcome
from headway.core.states import Status
from headway.store.access import Table
from headway.store.records import NewNode, NodeRecord, RunRecord
from headway.store.rows import dump, load


class WorkflowsReader(Table):
    """Runs as a read transaction shows them."""

    def by_id(self, ids: Sequence[int]) -> dict[int, RunRecord]:
        rows = self._db.all("workflow_runs_by_id", ids=self._db.json(ids))
        return {row[0]: _run(row) for row in rows}

    def by_key(self, key: str) -> RunRecord | None:
        row = self._db.one("workflow_run_by_key", run_key=key)
        return _run(row) if row else None

    def since(self, since: int, limit: int) -> list[RunRecord]:
        """The newest of those that have not ended, or did so since; the newest first."""
        return [_run(row) for row in self._db.all("workflow_runs_since", since=since, limit=limit)]

    def manifest(self, run: int) -> dict[str, Any]:
        row = self._db.one("workflow_run_manifest", id=run)
        found: dict[str, Any] = load(row[0], f"the manifest of wf-{run}") if row else {}
        return found

    def node_ends(self, run: int, nodes: Iterable[str]) -> list[NodeEnd]:
        """How the instances of these nodes stand."""
        asked = self._db.json(sorted(set(nodes)))
        rows = self._db.all("node_ends", run=run, keys=asked)
        return [
            NodeEnd(node, job_id, chain, Status(status), _outcome(outcome))
            for node, job_id, chain, status, outcome in rows
        ]

    def nodes(self, run: int) -> list[NodeRecord]:
        """All instances of all nodes, in the order of the file."""
        return [
            NodeRecord._make((*row[:4], Status(row[4]), _outcome(row[5]), *row[6:]))
            for row in self._db.all("nodes_of_run", run=run)
        ]

    def outcomes(self, run: int) -> list[tuple[str, NodeOutcome | None]]:
        """The outcome of each instance, under the name of its node."""
        rows = self._db.all("outcomes_of_run", run=run)
        return [(node, _outcome(outcome)) for node, outcome in rows]

    def outcomes_of(self, chains: Sequence[JobId]) -> dict[JobId, str | None]:
        """The outcome of each of these nodes, by its chain; None while it is active."""
        return dict(self._db.all("outcomes_of_chains", chains=self._db.json(chains)))

    def next_deadline(self) -> int | None:
        row = self._db.one("next_deadline")
        return row[0] if row else None

    def past_deadline(self) -> list[RunRecord]:
        """Runs that are to be stopped, because their time is over."""
        return [_run(row) for row in self._db.all("runs_past_deadline", now=self._db.now)]

    def active(self, run: int) -> list[Job]:
        """Its jobs that have not ended."""
        return self._readable(self._db.all("active_of_run", run=run))


class WorkflowsTable(WorkflowsReader):
    """Runs as a write transaction changes them."""

    def take_id(self) -> int:
        return int(self._db.all("take_workflow_run_id")[0][0])

    def add(
        self,
        run: RunRecord,
        *,
        key: str | None,
        manifest: Mapping[str, Any],
        nodes: Sequence[NewNode],
    ) -> None:
        self._db.send(
            "add_workflow_run",
            id=run.id,
            name=run.name,
            version=run.version,
            policy_hash=run.policy_hash,
            manifest=dump(manifest),
            params=dump(run.params),
            run_key=key,
            created_at=run.created_at,
            created_by=run.created_by,
            deadline=run.deadline,
        )
        rows = ({"run": run.id, "ord": at, **each._asdict()} for at, each in enumerate(nodes))
        self._db.many("add_workflow_nodes", rows)

    def set_outcome(self, chain: JobId, outcome: NodeOutcome) -> None:
        self._db.send("set_node_outcome", chain=chain, outcome=outcome.value)

    def reopen(self, chains: Sequence[JobId]) -> list[int]:
        """Nodes are to run again, and so their runs go on: those that have a deadline."""
        asked = self._db.json(chains)
        self._db.send("reopen_nodes", chains=asked)
        rows = self._db.all("reopen_workflow_runs", chains=asked)
        return [run for run, deadline in rows if deadline is not None]

    def set_deadline(self, run: int, deadline: int) -> None:
        self._db.send("set_run_deadline", id=run, deadline=deadline)

    def end(self, run: int, state: str) -> bool:
        """False if its end was written already."""
        return self._db.change("end_workflow_run", id=run, at=self._db.now, state=state) == 1

    def stop(self, run: int, by: str) -> bool:
        return self._db.change("stop_workflow_run", id=run, at=self._db.now, by=by) == 1


def _outcome(word: str | None) -> NodeOutcome | None:
    return None if word is None else NodeOutcome(word)


def _run(row: Sequence[Any]) -> RunRecord:
    params = load(row[4], f"the parameters of wf-{row[0]}")
    return RunRecord._make((*row[:4], params, *row[5:]))
