"""A workflow run in memory, by the rules of `core.routes` alone: nodes start, end, are skipped,
blocked and put back as the store will do it, one act at a time. The order of acts and every outcome
are for the caller to choose."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from headway.core.routes import (
    Arrival,
    Go,
    LoopCount,
    LoopRule,
    NodeId,
    NodeOutcome,
    NodeRule,
    PassedBy,
    Pending,
    RunState,
    Unreachable,
    bodies,
    calls,
    final_outcome,
    judge,
    left_by,
    next_loop,
    run_state,
    together,
)

Instance = tuple[NodeId, int]


@dataclass
class Standing:
    """How one instance of a node stands: waiting, running, or ended with an outcome."""

    running: bool = False
    outcome: NodeOutcome | None = None
    by_a_person: bool = False
    passes: int = 1
    starts: int = 0

    @property
    def active(self) -> bool:
        return self.outcome is None


@dataclass
class RunModel:
    rules: Mapping[NodeId, NodeRule]
    loops: Sequence[LoopRule] = ()
    instances: Mapping[NodeId, int] = field(default_factory=dict)
    stopped: bool = False

    def __post_init__(self) -> None:
        self.standing = {
            (node, number): Standing()
            for node in self.rules
            for number in range(self.instances.get(node, 1))
        }
        self.counts = {loop.source: LoopCount() for loop in self.loops}
        self.loop_of = {loop.source: loop for loop in self.loops}
        self.bodies = bodies(self.rules, self.loops)
        self.settle()

    # -- what can be asked ---------------------------------------------------------------------

    def raw(self, node: NodeId) -> NodeOutcome | None:
        """By its instances, without its loop; None while one is active."""
        found = [each.outcome for (name, _), each in self.standing.items() if name == node]
        ended = [each for each in found if each is not None]
        return together(ended, self.rules[node].tolerates) if len(ended) == len(found) else None

    def outcome(self, node: NodeId) -> NodeOutcome | None:
        raw = self.raw(node)
        if raw is None:
            return None
        loop = self.loop_of.get(node)
        count = self.counts.get(node, LoopCount())
        return final_outcome(loop, count, raw, stopped=self.stopped)

    def called(self) -> set[NodeId]:
        return {self.loop_of[source].head for source, count in self.counts.items() if count.called}

    def is_over(self, head: NodeId) -> bool:
        return head not in self.called() and all(
            self.raw(node) is not None for node in self.bodies[head]
        )

    def arrivals(self, node: NodeId) -> list[Arrival]:
        return [
            Arrival(edge, self.outcome(edge.source) if self._decided(edge.source, node) else None)
            for edge in self.rules[node].edges
        ]

    def _decided(self, source: NodeId, target: NodeId) -> bool:
        if source in self.counts and self.counts[source].called:
            return False
        left = left_by(source, target, self.bodies, self.loops)
        return all(self.is_over(head) for head in left)

    def startable(self) -> list[Instance]:
        held = {node for head in self.called() for node in self.bodies[head]}
        return [
            (node, number)
            for (node, number), each in self.standing.items()
            if each.active
            and not each.running
            and node not in held
            and isinstance(judge(self.arrivals(node), self.rules[node].join), Go)
        ]

    def running(self) -> list[Instance]:
        return [instance for instance, each in self.standing.items() if each.running]

    def state(self) -> RunState:
        outcomes = {node: self.outcome(node) for node in self.rules}
        called = bool(self.called())
        return run_state(outcomes, self.rules, stopped=self.stopped, called=called)

    # -- what happens --------------------------------------------------------------------------

    def start(self, instance: Instance) -> None:
        self.standing[instance].running = True
        self.standing[instance].starts += 1

    def end(self, instance: Instance, outcome: NodeOutcome, *, by_a_person: bool = False) -> None:
        self._set(instance, outcome, by_a_person=by_a_person)
        self.settle()

    def stop(self) -> None:
        """Cancel all but `finally`: what waits ends now, what runs is asked to."""
        self.stopped = True
        self.counts = {source: each._replace(called=False) for source, each in self.counts.items()}
        for (node, number), each in self.standing.items():
            if each.active and not self.rules[node].at_the_end and not each.running:
                self._set((node, number), NodeOutcome.CANCELLED)
        self.settle()

    def _set(self, instance: Instance, outcome: NodeOutcome, *, by_a_person: bool = False) -> None:
        each = self.standing[instance]
        each.running, each.outcome, each.by_a_person = False, outcome, by_a_person
        node = instance[0]
        raw = self.raw(node)
        loop = self.loop_of.get(node)
        if loop is None or raw is None or self.stopped or raw not in loop.on:
            return
        if self._cancelled_in(loop.head):
            self._end_loop(node, "cancelled")
        elif calls(loop, self.counts[node], raw):
            self.counts[node] = self.counts[node]._replace(called=True)

    def _cancelled_in(self, head: NodeId) -> bool:
        return any(
            each.by_a_person
            for (node, _), each in self.standing.items()
            if node in self.bodies[head]
        )

    def _end_loop(self, source: NodeId, why: str) -> None:
        self.counts[source] = self.counts[source]._replace(called=False, ended=why)

    def settle(self) -> None:
        """All that follows by itself: loops are taken, nodes skipped and blocked, until nothing
        changes."""
        changed = True
        while changed:
            changed = self._take_loop() or self._decide_waiting()

    def _take_loop(self) -> bool:
        running = {node for node, _ in self.running()}
        head = next_loop(self.called(), running, self.bodies)
        if head is None:
            return False
        calling = [s for s, loop in self.loop_of.items() if loop.head == head]
        calling = [source for source in calling if self.counts[source].called]
        if self._cancelled_in(head):
            for source in calling:
                self._end_loop(source, "cancelled")
            return True
        for source in calling:
            self.counts[source] = self.counts[source]._replace(used=self.counts[source].used + 1)
        for (node, _), each in self.standing.items():
            if node in self.bodies[head]:
                each.running, each.outcome, each.by_a_person = False, None, False
                each.passes += 1
        for source in self.counts:
            if source in self.bodies[head]:
                self.counts[source] = self.counts[source]._replace(called=False)
        return True

    def _decide_waiting(self) -> bool:
        held = {node for head in self.called() for node in self.bodies[head]}
        for (node, number), each in self.standing.items():
            if not each.active or each.running or node in held:
                continue
            match judge(self.arrivals(node), self.rules[node].join):
                case Unreachable():
                    self._set((node, number), NodeOutcome.UNREACHED)
                    return True
                case PassedBy():
                    self._set((node, number), NodeOutcome.SKIPPED)
                    return True
                case Go() | Pending():
                    pass
        return False


def play(
    run: RunModel,
    choose: Callable[[int], int],
    outcome: Callable[[NodeId], NodeOutcome],
    *,
    most: int,
) -> None:
    """Let it run to its end, one start or end at a time. A choice may itself change the run, and so
    what there is to choose from."""
    for _ in range(most):
        count = len(run.startable()) + len(run.running())
        if not count:
            return
        at = choose(count)
        acts = [*run.startable(), *run.running()]
        if not acts:
            continue
        instance = acts[at % len(acts)]
        if instance in run.running():
            run.end(instance, outcome(instance[0]))
        else:
            run.start(instance)
    raise AssertionError(f"it still goes on after {most} acts")


def refuse_wrong_end(run: RunModel, stopped: bool) -> None:
    """Every node stands as the last outcomes of its sources require."""
    for (node, _), each in run.standing.items():
        assert each.outcome is not None, f"{node} waits for ever"
        bound = 1 + sum(loop.times for loop in run.loops if node in run.bodies[loop.head])
        assert each.passes <= bound, f"{node} has {each.passes} passes of {bound}"
        assert each.starts <= each.passes
        judged = judge(run.arrivals(node), run.rules[node].join)
        assert not isinstance(judged, Pending), f"{node}: {judged}"
        if each.by_a_person or (stopped and not run.rules[node].at_the_end):
            continue
        if each.outcome is NodeOutcome.UNREACHED:
            assert isinstance(judged, Unreachable), f"{node}: {judged}"
        elif isinstance(judged, PassedBy):
            assert each.outcome is NodeOutcome.SKIPPED, f"{node} is {each.outcome}"
        elif each.outcome is not NodeOutcome.SKIPPED:
            assert isinstance(judged, Go), f"{node} ran, and {judged}"
    for count in run.counts.values():
        assert not count.called
