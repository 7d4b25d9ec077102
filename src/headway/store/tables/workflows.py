"""Runs of workflows, and their nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway.core.agents import calls_agent
from headway.core.facts import NodeEnd
from headway.core.model import Job, JobId
from headway.core.routes import InstanceEnd, LoopCount, LoopRule, NodeOutcome
from headway.core.states import Status
from headway.store.access import Table
from headway.store.records import BodyNode, LoopRecord, NewNode, NodeRecord, RunRecord
from headway.store.rows import dump, load, load_workflow_run


class WorkflowsReader(Table):
    """Runs as a read transaction shows them."""

    def by_id(self, ids: Sequence[int]) -> dict[int, RunRecord]:
        rows = self._db.all("workflow_runs_by_id", ids=self._db.json(ids))
        return {row[0]: load_workflow_run(row) for row in rows}

    def by_key(self, key: str) -> RunRecord | None:
        row = self._db.one("workflow_run_by_key", run_key=key)
        return load_workflow_run(row) if row else None

    def since(self, since: int, limit: int) -> list[RunRecord]:
        """The newest of those that have not ended, or did so since; the newest first."""
        rows = self._db.all("workflow_runs_since", since=since, limit=limit)
        return [load_workflow_run(row) for row in rows]

    def manifest(self, run: int) -> dict[str, Any]:
        row = self._db.one("workflow_run_manifest", id=run)
        found: dict[str, Any] = load(row[0], f"the manifest of wf-{run}") if row else {}
        return found

    def node_ends(self, run: int, nodes: Iterable[str]) -> list[NodeEnd]:
        """How the instances of these nodes stand."""
        asked = self._db.json(sorted(set(nodes)))
        rows = self._db.all("node_ends", run=run, keys=asked)
        return [
            NodeEnd(node, job_id, chain, Status(status), _outcome(outcome), bool(fan))
            for node, job_id, chain, status, outcome, fan in rows
        ]

    def last_end(self, run: int, nodes: Iterable[str]) -> int | None:
        """When the last instance of these nodes ended."""
        asked = self._db.json(sorted(set(nodes)))
        row = self._db.one("last_end_of_nodes", run=run, keys=asked)
        return row[0] if row else None

    def instances(self, run: int, nodes: Iterable[str]) -> dict[str, list[str]]:
        """The names of all instances that these nodes ever had, by node."""
        found: dict[str, list[str]] = {}
        asked = self._db.json(sorted(set(nodes)))
        for node, instance in self._db.all("instances_of_nodes", run=run, keys=asked):
            found.setdefault(node, []).append(instance)
        return found

    def nodes(self, run: int) -> list[NodeRecord]:
        """All instances of all nodes, in the order of the file."""
        return [
            NodeRecord._make(
                (*row[:4], Status(row[4]), _outcome(row[5]), *row[6:-1], bool(row[-1]))
            )
            for row in self._db.all("nodes_of_run", run=run)
        ]

    def outcomes(self, run: int) -> list[tuple[str, InstanceEnd]]:
        """The outcome of each instance, under the name of its node."""
        rows = self._db.all("outcomes_of_run", run=run)
        return [(node, InstanceEnd(_outcome(outcome), bool(fan))) for node, outcome, fan in rows]

    def at_rest(self, ids: Sequence[int]) -> list[RunRecord]:
        """Of these, the runs whose end is to be written: nothing of them is active any more, and no
        loop has to be looked at."""
        rows = self._db.all("runs_at_rest", ids=self._db.json(ids))
        return [load_workflow_run(row) for row in rows]

    def loops(self, run: int) -> list[LoopRecord]:
        """All loops of a run."""
        return [_loop(row) for row in self._db.all("loops_of_run", run=run)]

    def body_nodes(self, run: int) -> list[BodyNode]:
        """The instances of nodes that have loops around them."""
        return [_body_node(row) for row in self._db.all("body_nodes", run=run)]

    def unsettled(self) -> list[RunRecord]:
        """The runs whose loops a step has to look at."""
        return [load_workflow_run(row) for row in self._db.all("unsettled_runs")]

    def open_chains(self, chains: Sequence[JobId]) -> dict[JobId, int]:
        """Of these, the chains whose end does not count yet, each with its run."""
        return dict(self._db.all("open_chains", chains=self._db.json(chains)))

    def made_by_fans(self, chains: Sequence[JobId]) -> list[JobId]:
        """The chains of all instances whose fan is one of these."""
        return [row[0] for row in self._db.all("fans_of", chains=self._db.json(chains))]

    def fans_behind(self, chains: Sequence[JobId]) -> list[JobId]:
        """The chains of the fans that have made these instances."""
        return [row[0] for row in self._db.all("fans_behind", chains=self._db.json(chains))]

    def outcomes_of(self, ids: Sequence[JobId]) -> dict[JobId, str | None]:
        """The outcomes of the nodes whose last jobs are among these; None while one is active."""
        return dict(self._db.all("outcomes_of_jobs", ids=self._db.json(ids)))

    def next_deadline(self) -> int | None:
        row = self._db.one("next_deadline")
        return row[0] if row else None

    def past_deadline(self) -> list[RunRecord]:
        """Runs that are to be stopped, because their time is over."""
        rows = self._db.all("runs_past_deadline", now=self._db.now)
        return [load_workflow_run(row) for row in rows]

    def fans_to_expand(self, run: int) -> list[Job]:
        """The fans that have succeeded and not made their instances yet."""
        return self._readable(self._db.all("fans_to_expand", run=run))

    def active(self, run: int) -> list[Job]:
        """Its jobs that have not ended."""
        return self._readable(self._db.all("active_of_run", run=run))

    def running_agents(self, run: int) -> list[Job]:
        """Its jobs that run now and that an agent works for, the first that started first."""
        running = self._readable(self._db.all("running_agents", run=run))
        return [job for job in running if calls_agent(job)]


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
            usd_budget=run.usd_budget,
            token_budget=run.token_budget,
            subject=run.subject,
            target=run.target,
        )
        self._add_nodes(run.id, nodes, first=0)

    def add_instances(self, run: int, nodes: Sequence[NewNode]) -> None:
        """A fan has made these."""
        self._add_nodes(run, nodes, first=int(self._db.all("next_node_order", run=run)[0][0]))

    def _add_nodes(self, run: int, nodes: Sequence[NewNode], *, first: int) -> None:
        rows = (
            {
                "run": run,
                "ord": first + at,
                "node": each.node,
                "written": each.written,
                "chain": each.chain,
                "pass": each.passes,
                "within": dump(list(each.within)) if each.within else None,
                "open": int(bool(each.within)),
                "fan": int(each.fan),
            }
            for at, each in enumerate(nodes)
        )
        self._db.many("add_workflow_nodes", rows)

    def add_loops(self, run: int, loops: Sequence[LoopRecord]) -> None:
        rows = (
            {
                "run": run,
                "source": each.rule.source,
                "head": each.rule.head,
                "takes": dump(sorted(each.rule.on)),
                "tolerates": dump(sorted(each.tolerates)),
                "times": each.rule.times,
                "delay": each.rule.delay,
            }
            for each in loops
        )
        self._db.many("add_workflow_loops", rows)

    def set_count(self, run: int, source: str, count: LoopCount) -> None:
        self._db.send(
            "set_loop_count",
            run=run,
            source=source,
            used=count.used,
            called=int(count.called),
            ended=count.ended,
        )

    def set_unsettled(self, run: int, unsettled: bool) -> None:
        self._db.send("set_unsettled", id=run, unsettled=int(unsettled))

    def stop_loops(self, run: int) -> None:
        """No loop that is called is taken any more."""
        self._db.send("stop_loops", run=run)

    def reopen_loops(self, run: int, sources: Sequence[str]) -> None:
        self._db.send("reopen_loops", run=run, keys=self._db.json(sources))

    def close_bodies(self, chains: Sequence[JobId]) -> None:
        """The loops around these are over: their ends count."""
        self._db.send("close_bodies", chains=self._db.json(chains))

    def dismiss(self, chains: Sequence[JobId]) -> None:
        """Their fans run again, and make others."""
        self._db.send("dismiss_nodes", chains=self._db.json(chains))

    def set_outcomes(self, outcomes: Mapping[JobId, NodeOutcome]) -> None:
        """What the nodes of these chains came to."""
        for outcome in dict.fromkeys(outcomes.values()):
            chains = self._db.json([chain for chain, each in outcomes.items() if each is outcome])
            self._db.send("set_node_outcomes", outcome=outcome.value, chains=chains)

    def reopen(self, chains: Sequence[JobId]) -> dict[int, int | None]:
        """Nodes are to run again, and so their runs go on; each with the deadline that it had."""
        asked = self._db.json(chains)
        self._db.send("reopen_nodes", chains=asked)
        return dict(self._db.all("reopen_workflow_runs", chains=asked))

    def set_deadline(self, run: int, deadline: int | None) -> None:
        self._db.send("set_run_deadline", id=run, deadline=deadline)

    def spend(self, run: int, *, usd: int, tokens: int) -> None:
        """An agent has used so much; money in millionths of a dollar."""
        self._db.send("spend_of_run", id=run, usd=usd, used=tokens)

    def set_budget(self, run: int, *, usd: int | None, tokens: int | None) -> None:
        """None leaves that one as it is."""
        if usd is not None:
            self._db.send("set_run_budget", id=run, usd=usd)
        if tokens is not None:
            self._db.send("set_run_tokens", id=run, most=tokens)

    def end(self, run: int, state: str) -> bool:
        """False if its end was written already."""
        return self._db.change("end_workflow_run", id=run, at=self._db.now, state=state) == 1

    def stop(self, run: int, by: str) -> bool:
        return self._db.change("stop_workflow_run", id=run, at=self._db.now, by=by) == 1


def _outcome(word: str | None) -> NodeOutcome | None:
    return None if word is None else NodeOutcome(word)


def _loop(row: Sequence[Any]) -> LoopRecord:
    source, head, takes, tolerates, times, delay, used, called, ended = row
    what = f"the loop of {source}"
    on, tolerated = (frozenset(map(NodeOutcome, load(each, what))) for each in (takes, tolerates))
    rule = LoopRule(source, head, on, times, delay)
    return LoopRecord(rule, LoopCount(used, bool(called), ended), tolerated)


def _body_node(row: Sequence[Any]) -> BodyNode:
    written, chain, job_id, status, outcome, within, is_open, fan = row
    heads = tuple(load(within, f"the loops around {written}"))
    return BodyNode(
        written, chain, job_id, Status(status), _outcome(outcome), heads, bool(is_open), bool(fan)
    )
