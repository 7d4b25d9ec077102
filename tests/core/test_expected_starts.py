"""A job that only waits for one more look is as good as started: it takes its place in the pass."""

import pytest
from given import exclusive, facts, job, shared

from headway.core.artifacts import artifact_key
from headway.core.facts import Answer, ArtifactView, Capacity
from headway.core.model import Job, PinnedHead, ProbeKind, Question
from headway.core.plan import Hold, Planned, Start, plan
from headway.core.subjects import SLING

REPO, OID = "/srv/repo", "a" * 40
MAIN = Question(ProbeKind.BRANCH, REPO, "main")
OLD = {MAIN: Answer(OID, fresh=False)}
FRESH = {MAIN: Answer(OID)}


def pinned(job_id: int, **fields: object) -> Job:
    return job(job_id, repo=REPO, pinned_head=PinnedHead("main", OID), **fields)


def said(planned: tuple[Planned, ...]) -> list[str]:
    names = []
    for each in planned:
        match each.decision:
            case Hold(expected=True):
                names.append("expected")
            case Hold():
                names.append(str(each.decision.shown.kind))
            case decision:
                names.append(type(decision).__name__.lower())
    return names


@pytest.mark.parametrize(
    ("answers", "expected"), [(OLD, ["expected", "capacity"]), (FRESH, ["start", "capacity"])]
)
def test_who_is_expected_to_start_takes_the_last_slot(
    answers: dict[Question, Answer], expected: list[str]
) -> None:
    known = facts(Capacity(max_active=1), answers=answers)
    assert said(plan([pinned(1), job(2)], known)) == expected


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (0, []),
        (1, ["expected"]),
        (2, ["expected", "start"]),
        (None, ["expected", "start", "start"]),
    ],
)
def test_who_is_expected_to_start_counts_in_the_pass(
    limit: int | None, expected: list[str]
) -> None:
    jobs = [pinned(1), job(2), job(3)]
    assert said(plan(jobs, facts(answers=OLD), limit=limit)) == expected


def test_who_is_expected_takes_its_room_of_a_limit() -> None:
    capacity = Capacity(max_active=-1, limits={"type:agent": 1})
    jobs = [pinned(1, type="agent"), job(2, type="agent"), job(3)]
    assert said(plan(jobs, facts(capacity, answers=OLD))) == ["expected", "capacity", "start"]


def test_who_is_expected_borrows_what_is_lent_to_it() -> None:
    capacity = Capacity(max_active=1, running=1, lenders={1: (9,), 2: (9,)})
    assert said(plan([pinned(1), job(2)], facts(capacity, answers=OLD))) == ["expected", "capacity"]


def test_who_is_expected_has_not_taken_its_locks() -> None:
    jobs = [pinned(1, locks=(shared("k"),)), job(2, locks=(shared("k"),))]
    planned = plan(jobs, facts(answers=OLD))
    assert said(planned) == ["expected", "start"]
    assert isinstance(planned[1].decision, Start)


def test_the_locks_of_who_is_expected_are_kept_for_it() -> None:
    jobs = [pinned(1, locks=(exclusive("k"),)), job(2, locks=(shared("k"),)), job(3)]
    assert said(plan(jobs, facts(answers=OLD))) == ["expected", "locks", "start"]


@pytest.mark.parametrize(("limit", "many"), [(1, 1), (2, 2), (3, 3), (9, 4)])
def test_a_pass_starts_as_many_as_it_may(limit: int, many: int) -> None:
    jobs = [job(each) for each in (1, 2, 3, 4)]
    assert said(plan(jobs, facts(), limit=limit)) == ["start"] * many


FILE = Question(ProbeKind.FILE, name="/srv/in")
ITEM = Question(ProbeKind.SUBJECT, "beads:/srv", "x-1")
SLUNG = {"argv": ["x"], SLING: {"source": "beads", "place": "/srv"}}


@pytest.mark.parametrize(
    ("waiting", "question", "found"),
    [
        (job(1, needs=("file:/srv/in",)), FILE, "yes"),
        (job(1, subject="x-1", params=SLUNG), ITEM, "open\n\n"),
        (pinned(1), MAIN, OID),
    ],
)
@pytest.mark.parametrize("fresh", [True, False])
def test_nothing_is_started_on_an_old_look(
    waiting: Job, question: Question, found: str, fresh: bool
) -> None:
    known = facts(answers={question: Answer(found, fresh=fresh)})
    assert said(plan([waiting], known)) == ["start" if fresh else "expected"]


CLEAN = Question(ProbeKind.CLEAN, REPO)


@pytest.mark.parametrize(
    ("waiting", "answers", "asked"),
    [
        (pinned(1), {MAIN: False}, [MAIN]),
        (pinned(1, preconditions=("clean_worktree",)), {MAIN: False, CLEAN: False}, [MAIN, CLEAN]),
        (pinned(1, preconditions=("clean_worktree",)), {MAIN: True, CLEAN: False}, [CLEAN]),
        (pinned(1, preconditions=("clean_worktree",)), {MAIN: False, CLEAN: True}, [MAIN]),
    ],
)
def test_all_that_is_old_is_looked_at_once_more(
    waiting: Job, answers: dict[Question, bool], asked: list[Question]
) -> None:
    found = {MAIN: OID, CLEAN: None}
    known = facts(answers={each: Answer(found[each], fresh=answers[each]) for each in answers})
    (planned,) = plan([waiting], known)
    assert isinstance(planned.decision, Hold) and planned.decision.expected
    assert list(planned.decision.asks) == asked
    assert planned.decision.shown.topics == tuple(each.topic for each in asked)
    kinds = {MAIN: "pinned_head", CLEAN: "preconditions"}
    assert planned.decision.shown.kind == kinds[asked[0]]


def test_what_was_published_needs_no_look() -> None:
    there = {artifact_key("file:/srv/in", None): ArtifactView(published=True)}
    known = facts(artifacts=there, answers={FILE: Answer("yes", fresh=False)})
    assert said(plan([job(1, needs=("file:/srv/in",))], known)) == ["start"]
    assert said(plan([job(1, needs=("file:/srv/in",))], facts(artifacts=there))) == ["start"]
