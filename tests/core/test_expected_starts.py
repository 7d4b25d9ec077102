"""A job that only waits for one more look is as good as started: it takes its place in the pass."""

import pytest
from given import exclusive, facts, job, shared

from headway.core.facts import Answer, Door
from headway.core.model import Job, PinnedHead, Question, Sight
from headway.core.plan import Hold, Planned, Start, plan
from headway.core.subjects import SLING

REPO, OID = "/srv/repo", "a" * 40
MAIN = Question(Sight.BRANCH, REPO, "main")
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
    known = facts(Door(max_active=1), answers=answers)
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
    door = Door(max_active=-1, limits={"type:agent": 1})
    jobs = [pinned(1, type="agent"), job(2, type="agent"), job(3)]
    assert said(plan(jobs, facts(door, answers=OLD))) == ["expected", "capacity", "start"]


def test_who_is_expected_borrows_what_is_lent_to_it() -> None:
    door = Door(max_active=1, running=1, lenders={1: (9,), 2: (9,)})
    assert said(plan([pinned(1), job(2)], facts(door, answers=OLD))) == ["expected", "capacity"]


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


FILE = Question(Sight.FILE, name="/srv/in")
ITEM = Question(Sight.SUBJECT, "beads:/srv", "x-1")
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
