"""Which gate speaks first: for each gate what makes it object, alone and together with others."""

from itertools import combinations
from typing import Any

import pytest
from given import NOW, SECOND, exclusive, facts, held, job

from headway.core.agents import ParkedRunner
from headway.core.facts import (
    Answer,
    ArtifactView,
    Capacity,
    Facts,
    NodeEnd,
    Predecessor,
    Producer,
    RunView,
)
from headway.core.gates import GATES
from headway.core.model import (
    Approval,
    ApprovalState,
    Job,
    LockMode,
    PinnedHead,
    ProbeKind,
    Question,
    WaitKind,
)
from headway.core.plan import Hold, Start, decide, explain
from headway.core.states import Status

REPO = "/srv/repo"
REPORT = "custom:report:june"
OID, OTHER = "a" * 40, "b" * 40
HEAD = Question(ProbeKind.HEAD, REPO)
CLEAN = Question(ProbeKind.CLEAN, REPO)
SLUNG = {"source": "beads", "place": "/srv/repo/.beads/issues.jsonl"}
ITEM = Question(ProbeKind.SUBJECT, "beads:/srv/repo/.beads/issues.jsonl", "gt-1")
RUNNING = Producer(9, Status.RUNNING)
EDGE = {"source": "build", "accepts": ["succeeded"], "required": True, "tolerates": []}
NODE = {"edges": [EDGE], "join": "all", "when": []}

# For each gate what makes it object: fields of the job, fields of the facts, and what it then says.
UNMET: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[WaitKind, str]]] = {
    "due": (
        {"not_before": NOW + SECOND},
        {},
        (WaitKind.TIME, "waiting for its time"),
    ),
    "after_met": (
        {"after": (4,)},
        {"predecessors": {1: (Predecessor(4, 4, Status.RUNNING),)}},
        (WaitKind.DEPENDENCIES, "waiting on job job-4"),
    ),
    "routed": (
        {"workflow_run": 7, "params": {"workflow": NODE}},
        {"runs": {1: RunView((NodeEnd("build", 5, 5, Status.RUNNING, None),))}},
        (WaitKind.DEPENDENCIES, "waiting on job job-5"),
    ),
    "artifacts_present": (
        {"needs": (REPORT,)},
        {"artifacts": {REPORT: ArtifactView(producers=(RUNNING,))}},
        (WaitKind.DEPENDENCIES, f"waiting on {REPORT}"),
    ),
    "turn_in_group": (
        {"group_id": 3, "sequence_number": 2},
        {"turns": {1: 7}},
        (WaitKind.GROUP, "waiting for its turn in group-3, after job-7"),
    ),
    "subject_ready": (
        {"subject": "gt-1", "params": {"argv": ["true"], "sling": SLUNG}},
        {"answers": {ITEM: Answer("open\n\ngt-0")}},
        (WaitKind.SUBJECT, "blocked by gt-0"),
    ),
    "head_pinned": (
        {"pinned_head": PinnedHead("main", OID, head=True)},
        {"answers": {HEAD: Answer(OTHER)}},
        (WaitKind.PINNED_HEAD, "pinned head mismatch on main"),
    ),
    "preconditions_hold": (
        {"preconditions": ("clean_worktree",)},
        {"answers": {CLEAN: Answer("a.txt")}},
        (WaitKind.PRECONDITIONS, "worktree is not clean"),
    ),
    "approved": (
        {"approval": Approval(ApprovalState.PENDING, NOW, "ann")},
        {},
        (WaitKind.APPROVAL, "awaiting human approval"),
    ),
    "allowed": (
        {"params": {"agent": {"runner": "claude"}}},
        {"parked": {"claude": ParkedRunner("claude", None, "bad key", NOW, 8)}},
        (WaitKind.RATE, "claude is parked: bad key"),
    ),
    "locks_free": (
        {"locks": (exclusive("k"),)},
        {"locks": held("k", LockMode.EXCLUSIVE, 9)},
        (WaitKind.LOCKS, "waiting on locks"),
    ),
    "slot_free": (
        {},
        {"capacity": Capacity(max_active=1, running=1)},
        (WaitKind.CAPACITY, "the one slot is in use"),
    ),
}
# The order is written down here once more: it is a contract, and not whatever the code has.
NAMES = [
    "due",
    "after_met",
    "routed",
    "artifacts_present",
    "turn_in_group",
    "subject_ready",
    "head_pinned",
    "preconditions_hold",
    "approved",
    "allowed",
    "locks_free",
    "slot_free",
]
CONTRACT = [
    (WaitKind.DEPENDENCIES, "waiting on job job-4"),
    (WaitKind.DEPENDENCIES, f"waiting on {REPORT}"),
    (WaitKind.PINNED_HEAD, "pinned head mismatch on main"),
    (WaitKind.PRECONDITIONS, "worktree is not clean"),
    (WaitKind.APPROVAL, "awaiting human approval"),
    (WaitKind.LOCKS, "waiting on locks"),
]


def held_up_by(*names: str) -> tuple[Job, Facts]:
    fields: dict[str, Any] = {"repo": REPO}
    world: dict[str, Any] = {}
    answers: dict[Question, Answer] = {}
    for name in names:
        of_job, of_facts, _ = UNMET[name]
        params = {**fields.get("params", {}), **of_job.get("params", {})}
        fields |= {**of_job, **({"params": params} if params else {})}
        answers |= of_facts.get("answers", {})
        world |= of_facts
    return job(1, **fields), facts(**{**world, "answers": answers})


@pytest.mark.req("V45")
def test_while_one_gate_after_another_is_met_the_next_one_speaks() -> None:
    """after, artifacts, pinned head, preconditions, approval, locks; then it starts."""
    unmet = [name for name in NAMES if UNMET[name][2] in CONTRACT]
    said = []
    while unmet:
        decision = decide(*held_up_by(*unmet))
        assert isinstance(decision, Hold)
        said.append((decision.shown.kind, decision.shown.detail))
        unmet.pop(0)
    assert said == CONTRACT
    assert isinstance(decide(*held_up_by()), Start)


# A node that edges lead to does not look at its subject.
APART = ("routed", "subject_ready")
TOGETHER = (
    *((name,) for name in NAMES),
    *(pair for pair in combinations(NAMES, 2) if pair != APART),
    *(tuple(name for name in NAMES if name != other) for other in APART),
)


@pytest.mark.req("V45", "V72")
@pytest.mark.parametrize("names", TOGETHER)
def test_the_first_unmet_gate_is_the_wait_reason(names: tuple[str, ...]) -> None:
    decision = decide(*held_up_by(*names))
    assert isinstance(decision, Hold)
    assert (decision.shown.kind, decision.shown.detail) == UNMET[names[0]][2]
    objections = explain(*held_up_by(*names))
    assert [(each.kind, each.detail) for each in objections] == [UNMET[each][2] for each in names]


def test_a_job_that_no_gate_objects_to_starts() -> None:
    waits = [gate.name for gate in GATES if gate.woken_by]
    assert waits == NAMES == list(UNMET), "a new gate needs a row"
    assert isinstance(decide(*held_up_by()), Start)


@pytest.mark.parametrize(
    "gate", ["artifacts_present", "subject_ready", "head_pinned", "preconditions_hold"]
)
def test_a_job_asks_only_for_what_the_gate_that_holds_it_needs(gate: str) -> None:
    """A later gate's look would be made for nothing."""
    waiting, world = held_up_by("after_met", gate)
    decision = decide(waiting, world._replace(answers={}))
    assert isinstance(decision, Hold) and decision.asks == ()
    assert decision.topics(waiting) == ("chain:4",)
