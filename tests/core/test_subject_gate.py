"""What holds a slung job back because of its subject, and how targets are chosen and filled in."""

from typing import Any

import pytest
from given import facts, job

from headway.core.facts import Answer
from headway.core.model import Block, ProbeKind, Question, Wait, WaitKind
from headway.core.plan import Hold, Start, decide
from headway.core.states import Status
from headway.core.subjects import (
    Item,
    ItemState,
    seen_text,
    subject_question,
    subject_ready,
)
from headway.core.targets import Target, filled, fits, placeholders, target_for

PLACE = "/srv/.beads/issues.jsonl"
QUESTION = Question(ProbeKind.SUBJECT, f"beads:{PLACE}", "gt-1")


def slung(**fields: Any) -> Any:
    params = {"argv": ["true"], "sling": {"source": "beads", "place": PLACE}}
    return job(1, **({"subject": "gt-1", "params": params} | fields))


def seen(**fields: Any) -> Answer:
    return Answer(seen_text(Item("gt-1", **fields)))


def test_a_subject_of_a_plain_submit_is_only_a_reference() -> None:
    plain = job(1, subject="gt-1")
    assert subject_question(plain) is None
    assert subject_ready(plain, facts()) is None
    assert isinstance(decide(plain, facts()), Start)


@pytest.mark.req("G27")
@pytest.mark.parametrize(
    ("node_pass", "edges", "asks"), [(1, [], True), (1, [{"source": "a"}], False), (2, [], False)]
)
def test_only_the_beginning_of_a_slung_run_waits_for_it(
    node_pass: int, edges: list[Any], asks: bool
) -> None:
    params = {"sling": {"source": "beads", "place": PLACE}, "workflow": {"edges": edges}}
    node = slung(params=params, workflow_run=1, node="b", node_pass=node_pass)
    assert subject_question(node) == (QUESTION if asks else None)
    assert (subject_ready(node, facts()) is not None) == asks


@pytest.mark.req("G27")
@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (None, "looking at gt-1"),
        (Answer(trouble="no such file"), "gt-1 cannot be looked at: no such file"),
        (Answer(), f"gt-1 is not in {PLACE} any more"),
        (seen(blockers=("gt-2", "gt-3")), "blocked by gt-2, gt-3"),
        (
            seen(blockers=tuple(f"gt-{n}" for n in range(2, 9))),
            "blocked by gt-2, gt-3, gt-4, gt-5, gt-6 and 2 more",
        ),
        (seen(hold="gt-1 is deferred"), "gt-1 is deferred"),
        (seen(state=ItemState.IN_PROGRESS, blockers=("gt-2",)), "blocked by gt-2"),
    ],
)
def test_it_waits_and_says_for_what(answer: Answer | None, detail: str) -> None:
    found = facts(answers={QUESTION: answer} if answer else {})
    objection = subject_ready(slung(), found)
    assert isinstance(objection, Wait) and objection.remedy
    assert (objection.kind, objection.detail) == (WaitKind.SUBJECT, detail)
    assert objection.asks == (QUESTION,) and objection.topics == (QUESTION.topic,)


@pytest.mark.parametrize("state", [ItemState.OPEN, ItemState.IN_PROGRESS])
def test_one_that_nothing_blocks_may_be_worked_on(state: ItemState) -> None:
    found = facts(answers={QUESTION: seen(state=state)})
    assert isinstance(decide(slung(), found), Start)


def test_one_that_was_closed_meanwhile_ends_the_job() -> None:
    objection = subject_ready(slung(), facts(answers={QUESTION: seen(state=ItemState.CLOSED)}))
    assert isinstance(objection, Block)
    assert (objection.status, objection.detail) == (Status.CANCELLED, "subject gt-1 is closed")
    assert objection.asks == (QUESTION,), "it is looked at once more before that is final"


def test_nothing_is_started_on_an_old_look() -> None:
    old = seen()._replace(fresh=False)
    decision = decide(slung(), facts(answers={QUESTION: old}))
    assert isinstance(decision, Hold) and decision.expected
    assert decision.asks == (QUESTION,)


GAS = Target("gas", ("make",), prefix="gt-")
GAS_API = Target("gas-api", ("make",), prefix="gt-api-")
ANY = Target("any", ("make",))


@pytest.mark.parametrize(
    ("subject", "expected"),
    [("gt-1", "gas"), ("gt-api-1", "gas-api"), ("hq-1", None), ("g", None)],
)
def test_the_longest_prefix_decides(subject: str, expected: str | None) -> None:
    found = target_for(subject, [GAS, GAS_API, ANY])
    assert (found.name if found else None) == expected


@pytest.mark.req("G16")
def test_a_target_with_a_prefix_takes_only_its_own() -> None:
    targets = [GAS, GAS_API, ANY]
    assert fits("gt-1", GAS, targets) and not fits("hq-1", GAS, targets)
    assert not fits("gt-api-1", GAS, targets) and fits("gt-api-1", GAS_API, targets)
    assert fits("hq-1", ANY, targets)


def test_placeholders_are_filled_in_word_by_word_and_once() -> None:
    words = ("run", "{subject}", "--say={title}!", "{{subject}}", "{print $1}", "{X}", "a{args}b")
    assert placeholders(words) == {"subject", "title", "args"}
    values = {"subject": "gt-1", "title": "$(rm) {args} x", "args": ""}
    assert filled(words, values) == (
        "run",
        "gt-1",
        "--say=$(rm) {args} x!",
        "{subject}",
        "{print $1}",
        "{X}",
        "ab",
    )
