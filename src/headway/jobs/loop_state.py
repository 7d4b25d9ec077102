"""How the loops of a workflow run stand: which are called, which are over. `jobs.loops` acts on
that."""

from collections.abc import Sequence

from headway.core.facts import NodeEnd
from headway.core.routes import InstanceEnd, NodeOutcome, left_by, node_outcome
from headway.core.states import TERMINAL, Status
from headway.store.records import BodyNode, LoopRecord
from headway.store.transaction import ReadTx


class RunLoops:
    """The loops of a run and their bodies, as they stand."""

    def __init__(self, tx: ReadTx, run: int) -> None:
        self.run = run
        self.nodes: Sequence[BodyNode] = tx.workflows.body_nodes(run)
        self.loops: dict[str, LoopRecord] = {
            each.rule.source: each for each in tx.workflows.loops(run)
        }
        self.bodies: dict[str, set[str]] = {}
        self._instances: dict[str, list[BodyNode]] = {}
        for node in self.nodes:
            self._instances.setdefault(node.written, []).append(node)
            for head in node.within:
                self.bodies.setdefault(head, set()).add(node.written)

    def outcome(self, node: str) -> NodeOutcome | None:
        """What a node of a body came to in this pass; None while an instance is active."""
        loop = self.loops.get(node)
        ends = [InstanceEnd(each.outcome, each.fan) for each in self._instances.get(node, ())]
        return node_outcome(ends, loop.tolerates if loop is not None else ())

    def instances(self, node: str) -> Sequence[BodyNode]:
        return self._instances.get(node, ())

    def called(self) -> set[str]:
        """The heads of the loops that are to go back."""
        return {each.rule.head for each in self.loops.values() if each.so_far.called}

    def is_over(self, head: str) -> bool:
        """No node of its body is active, and it is not called."""
        return head not in self.called() and all(
            self.outcome(node) is not None for node in self.bodies.get(head, ())
        )

    def left_by(self, node: str) -> list[str]:
        """The heads of the loops that must be over before its end counts outside of the run."""
        rules = [each.rule for each in self.loops.values()]
        return left_by(node, None, self.bodies, rules)

    def running(self) -> set[str]:
        """The nodes with a job that runs, or that has ended without its outcome written yet."""
        busy = {Status.RUNNING, *TERMINAL}
        return {each.written for each in self.nodes if each.outcome is None and each.status in busy}

    def cancelled(self, head: str) -> BodyNode | None:
        """A node of the body that a person has cancelled."""
        body = (each for each in self.nodes if head in each.within)
        return next((each for each in body if each.outcome is NodeOutcome.CANCELLED), None)

    def waited_for(self, head: str) -> NodeEnd:
        """Of a loop that is not over, the job that it waits for."""
        body = [each for each in self.nodes if head in each.within]
        active = [each for each in body if each.outcome is None]
        runs = [each for each in active if each.status is Status.RUNNING]
        node = (runs or active or body)[-1]
        return NodeEnd(node.written, node.job_id, node.chain, node.status, node.outcome)
