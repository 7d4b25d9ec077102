"""What a job that waits is filed under, until when, and whether others must wait for it."""

import pytest
from given import NOW, exclusive, job, shared

from headway.core.model import ProbeKind, Question, Wait, WaitKind
from headway.core.plan import MOVE_FOR_WAIT, Hold, move_for
from headway.core.states import Move

LOCKS = Wait(WaitKind.LOCKS, "k is held", topics=("lock:k",))
TIME = Wait(WaitKind.TIME, "later", until=NOW + 5)
SOONER = Wait(WaitKind.LAUNCH, "soon", until=NOW + 3)
RATE = Wait(WaitKind.RATE, "used up", until=NOW + 1, for_capacity=True)
SLOT = Wait(WaitKind.CAPACITY, "no slot", for_capacity=True)
HEAD, CLEAN = Question(ProbeKind.HEAD, "/repo"), Question(ProbeKind.CLEAN, "/repo")
LOOK = Wait(WaitKind.PINNED_HEAD, "elsewhere", topics=(HEAD.topic,), asks=(HEAD,))
OTHER_LOOK = Wait(WaitKind.PRECONDITIONS, "dirty", topics=(CLEAN.topic,), asks=(CLEAN,))


@pytest.mark.parametrize(
    ("hold", "reserves"),
    [
        (Hold((LOCKS,)), True),
        (Hold((TIME,)), False),
        (Hold((SLOT,)), False),
        (Hold((LOCKS, SLOT)), False),
        (Hold((LOCKS, LOCKS)), False),
        (Hold((LOOK,)), False),
        (Hold((LOOK,), expected=True), True),
    ],
)
def test_only_who_lacks_nothing_but_locks_or_a_look_makes_others_wait(
    hold: Hold, reserves: bool
) -> None:
    assert hold.reserves is reserves


@pytest.mark.parametrize(
    ("waits", "until"),
    [
        ((LOCKS,), None),
        ((TIME,), NOW + 5),
        ((TIME, SOONER), NOW + 3),
        ((RATE,), None),
        ((RATE, TIME), NOW + 5),
        ((LOCKS, SOONER, RATE), NOW + 3),
    ],
)
def test_the_first_instant_wakes_but_not_that_of_a_rate(
    waits: tuple[Wait, ...], until: int | None
) -> None:
    assert Hold(waits).until == until


@pytest.mark.parametrize(
    ("waits", "for_capacity"),
    [((LOCKS,), False), ((SLOT,), True), ((LOCKS, SLOT), True), ((RATE,), True), ((TIME,), False)],
)
def test_who_lacks_a_slot_waits_for_capacity(waits: tuple[Wait, ...], for_capacity: bool) -> None:
    assert Hold(waits).for_capacity is for_capacity


def test_the_first_objection_is_shown_and_all_questions_are_asked() -> None:
    hold = Hold((LOOK, LOCKS, OTHER_LOOK))
    assert hold.shown == LOOK
    assert hold.asks == (HEAD, CLEAN)


@pytest.mark.parametrize(
    ("hold", "topics"),
    [
        (Hold((LOCKS,)), ("lock:k", "lock:free")),
        (Hold((LOCKS, SLOT)), ("lock:k",)),
        (Hold((LOOK, OTHER_LOOK)), (HEAD.topic, CLEAN.topic)),
        (Hold((LOOK,), expected=True), ("lock:k", "lock:free", HEAD.topic)),
    ],
)
def test_it_is_filed_under_all_that_it_waits_for_and_what_it_reserves(
    hold: Hold, topics: tuple[str, ...]
) -> None:
    assert hold.topics(job(locks=(exclusive("k"), shared("free")))) == topics


@pytest.mark.parametrize("kind", WaitKind)
def test_each_wait_shows_as_its_own_state_or_as_queued(kind: WaitKind) -> None:
    shown = {
        **dict.fromkeys(("dependencies", "pinned_head", "preconditions"), Move.WAIT_ON_DEPS),
        **dict.fromkeys(("group", "subject"), Move.WAIT_ON_DEPS),
        "approval": Move.WAIT_ON_APPROVAL,
        "locks": Move.WAIT_ON_LOCKS,
    }
    assert move_for(Wait(kind, "x")) is shown.get(kind.value, Move.WAIT)
    assert len(MOVE_FOR_WAIT) == len(shown)
