"""Looks at the world: when they are made, how long an answer counts, who is woken by it."""

import select
import threading
from collections.abc import Callable, Collection, Mapping

import pytest

from harness import DEADLINE, wait_for
from headway.core.facts import Answer
from headway.core.model import Question, Sight
from headway.engine.looks import FIRST_AGAIN, FRESH_SECONDS, LONGEST_AGAIN, Looks
from headway.testing import FakeClock

HEAD = Question(Sight.HEAD, "/srv/repo")
MAIN = Question(Sight.BRANCH, "/srv/repo", "main")


class World:
    """What a look finds, and what was asked, look by look."""

    def __init__(self) -> None:
        self.now: dict[Question, Answer] = {}
        self.asked: list[list[Question]] = []

    def look(self, questions: Collection[Question]) -> Mapping[Question, Answer]:
        self.asked.append(list(questions))
        return {each: self.now.get(each, Answer()) for each in questions}


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def looks(world: World, clock: FakeClock) -> Looks:
    return Looks(world.look, clock, in_thread=False)


def test_what_nobody_wants_to_know_is_not_looked_up(looks: Looks, world: World) -> None:
    looks.go()
    assert (world.asked, looks.answers(), looks.next_in()) == ([], {}, None)
    assert not looks.unsure() and looks.take_in() == []


def test_all_that_is_wanted_is_one_look_and_wakes_who_asked(looks: Looks, world: World) -> None:
    world.now = {HEAD: Answer("a")}
    looks.want([HEAD, MAIN])
    looks.want([HEAD])
    assert looks.next_in() == 0 and looks.unsure()
    looks.go()
    assert world.asked == [[HEAD, MAIN]]
    assert looks.answers() == {}, "what was seen counts when it is taken in"
    assert looks.next_in() == 0.0 and looks.unsure()
    assert looks.take_in() == [HEAD.topic, MAIN.topic]
    assert looks.answers() == {HEAD: Answer("a"), MAIN: Answer()}
    assert not looks.unsure()


def test_an_answer_counts_for_a_moment_only(looks: Looks, clock: FakeClock) -> None:
    looks.want([HEAD])
    looks.go()
    looks.take_in()
    clock.advance(FRESH_SECONDS)
    assert looks.answers() == {HEAD: Answer()}
    clock.advance(0.001)
    assert looks.answers() == {HEAD: Answer(fresh=False)}


def test_one_who_needs_a_fresh_answer_gets_it_though_it_is_the_same(
    looks: Looks, world: World, clock: FakeClock
) -> None:
    looks.want([HEAD])
    looks.go()
    looks.take_in()
    looks.want([HEAD])
    assert looks.due() == [], "there is a fresh answer"
    clock.advance(FRESH_SECONDS + 1)
    looks.go()
    assert looks.take_in() == [], "the same answer wakes nobody who could do with the old one"
    clock.advance(FRESH_SECONDS + 0.01)
    looks.want([HEAD])
    assert looks.due() == [HEAD] and looks.unsure()
    looks.go()
    assert looks.take_in() == [HEAD.topic], "it was filed without an answer"


def test_looks_are_made_ever_more_rarely_until_something_changes(
    looks: Looks, world: World, clock: FakeClock
) -> None:
    looks.want([HEAD])
    looks.go()
    looks.take_in()
    delays = []
    for _ in range(8):
        delay = looks.next_in()
        assert delay is not None
        delays.append(delay)
        clock.advance(delay - 0.001)
        assert looks.due() == []
        clock.advance(0.002)
        looks.go()
        assert looks.take_in() == []
    expected = [min(FIRST_AGAIN * 2**nth, LONGEST_AGAIN) for nth in range(8)]
    assert delays == pytest.approx(expected)
    assert len(world.asked) == 9
    world.now = {HEAD: Answer("moved")}
    clock.advance(LONGEST_AGAIN)
    looks.go()
    assert looks.take_in() == [HEAD.topic]
    assert looks.next_in() == pytest.approx(FIRST_AGAIN)


def test_what_nobody_waits_for_is_let_go(looks: Looks, world: World) -> None:
    looks.want([HEAD, MAIN])
    looks.drop([HEAD])
    looks.go()
    assert world.asked == [[MAIN]]
    looks.drop([MAIN])
    assert looks.take_in() == [], "the look was under way"
    assert looks.next_in() is None


def test_a_look_that_fails_unforeseen_is_an_answer_with_its_trouble(clock: FakeClock) -> None:
    def broken(questions: Collection[Question]) -> Mapping[Question, Answer]:
        raise RuntimeError("no idea")

    looks = Looks(broken, clock, in_thread=False)
    looks.want([HEAD])
    looks.go()
    assert looks.take_in() == [HEAD.topic]
    assert looks.answers() == {HEAD: Answer(trouble="unexpected RuntimeError: no idea")}
    assert looks.next_in() == pytest.approx(FIRST_AGAIN), "it is tried again"


@pytest.fixture
def slow(clock: FakeClock) -> Callable[[], tuple[Looks, threading.Event, World]]:
    def make() -> tuple[Looks, threading.Event, World]:
        gate, world = threading.Event(), World()

        def look(questions: Collection[Question]) -> Mapping[Question, Answer]:
            assert gate.wait(DEADLINE)
            return world.look(questions)

        return Looks(look, clock, in_thread=True), gate, world

    return make


def test_a_worker_does_not_wait_for_a_slow_look_and_is_rung_when_it_is_made(
    slow: Callable[[], tuple[Looks, threading.Event, World]], clock: FakeClock
) -> None:
    looks, gate, world = slow()
    bell = looks.bell.fileno()
    try:
        looks.want([HEAD])
        looks.go()
        assert select.select([bell], [], [], 0)[0] == []
        assert looks.take_in() == [] and looks.unsure()
        assert looks.next_in() is None, "it is under way: the bell says when"
        clock.advance(60)
        looks.go()
        looks.want([HEAD])
        looks.go()
        gate.set()
        assert select.select([bell], [], [], DEADLINE)[0] == [bell]
        looks.bell.heard()
        assert select.select([bell], [], [], 0)[0] == []
        assert looks.take_in() == [HEAD.topic]
        assert world.asked == [[HEAD]], "one look at a time for one question"
        assert looks.answers() == {HEAD: Answer()}, "fresh when it is made, however long it took"
    finally:
        looks.close()


def test_a_look_that_comes_after_the_end_disturbs_nobody(
    slow: Callable[[], tuple[Looks, threading.Event, World]],
) -> None:
    looks, gate, world = slow()
    looks.bell.fileno()
    looks.want([HEAD])
    looks.go()
    looks.close()
    gate.set()
    wait_for(lambda: world.asked, what="the look is made")


def test_a_hopeless_job_is_believed_only_after_a_look_that_began_later(
    looks: Looks, world: World
) -> None:
    looks.want([HEAD])
    looks.go()
    assert looks.take_in() == [HEAD.topic]
    assert looks.doubt(7, [HEAD]) == (HEAD,), "that look may be older than what ended just now"
    assert looks.doubt(7, [HEAD]) == (HEAD,), "asking twice is no look"
    assert looks.unsure() and looks.next_in() == 0
    looks.go()
    assert looks.doubt(7, [HEAD]) == (HEAD,), "it is not taken in yet"
    assert looks.take_in() == [HEAD.topic], "who doubts is woken although nothing has changed"
    assert looks.doubt(8, [HEAD]) == (HEAD,), "each for itself"
    assert looks.doubt(7, [HEAD]) == ()
    assert looks.doubt(7, [HEAD]) == (HEAD,), "later it is another doubt"


def test_a_look_under_way_does_not_settle_a_doubt(world: World, clock: FakeClock) -> None:
    begun, finish = threading.Event(), threading.Event()

    def slow(questions: Collection[Question]) -> Mapping[Question, Answer]:
        begun.set()
        assert finish.wait(DEADLINE)
        return world.look(questions)

    looks = Looks(slow, clock, in_thread=True)
    looks.want([HEAD])
    looks.go()
    assert begun.wait(DEADLINE)
    assert looks.doubt(7, [HEAD]) == (HEAD,)
    finish.set()
    wait_for(looks.take_in)
    assert looks.doubt(7, [HEAD]) == (HEAD,), "it began before the doubt"
    looks.go()
    wait_for(looks.take_in)
    assert looks.doubt(7, [HEAD]) == ()
    assert len(world.asked) == 2


def test_jobs_that_doubt_the_same_need_one_look(looks: Looks, world: World) -> None:
    looks.want([HEAD])
    looks.go()
    looks.take_in()
    jobs = range(100)
    assert all(looks.doubt(each, [HEAD]) for each in jobs)
    looks.go()
    looks.take_in()
    assert not any(looks.doubt(each, [HEAD]) for each in jobs)
    assert len(world.asked) == 2


def test_a_doubt_that_was_left_behind_settles_no_later_one(looks: Looks, world: World) -> None:
    """The job got something to wait for in between: what it lost then was not looked at."""
    assert looks.doubt(7, [HEAD]) == (HEAD,)
    looks.go()
    looks.take_in()
    looks.give_hope(7)
    assert looks.doubt(7, [HEAD]) == (HEAD,)
    looks.go()
    looks.take_in()
    assert looks.doubt(7, [HEAD]) == ()


# -- what held no longer when a job was to start --------------------------------------------------


def seen(looks: Looks) -> Answer | None:
    """Look if it is time to, and what is known then."""
    looks.want([HEAD])
    looks.go()
    looks.take_in()
    return looks.answers().get(HEAD)


def test_a_refuted_answer_is_forgotten_and_looked_at_anew(looks: Looks, world: World) -> None:
    world.now = {HEAD: Answer("a")}
    assert seen(looks) == Answer("a")
    looks.refute([HEAD])
    assert looks.answers() == {}
    world.now = {HEAD: Answer("b")}
    assert seen(looks) == Answer("b"), "at once"


def test_a_look_that_began_before_says_nothing(looks: Looks, world: World) -> None:
    world.now = {HEAD: Answer("a")}
    looks.want([HEAD])
    looks.go()  # it has seen the old head, and is still to be taken in
    looks.refute([HEAD])
    assert looks.take_in() == [] and looks.answers() == {}
    looks.go()
    assert looks.take_in() == [HEAD.topic] and len(world.asked) == 2


def test_who_is_refuted_again_and_again_looks_later_and_later(
    looks: Looks, world: World, clock: FakeClock
) -> None:
    world.now = {HEAD: Answer("a")}
    pauses = []
    for _ in range(8):
        assert seen(looks) == Answer("a")
        looks.refute([HEAD])
        looks.want([HEAD])
        pauses.append(looks.next_in())
        assert seen(looks) == (None if pauses[-1] else Answer("a"))
        clock.advance(pauses[-1] or 0)
    assert pauses == pytest.approx([0, FIRST_AGAIN, 1, 2, 4, 8, LONGEST_AGAIN, LONGEST_AGAIN])


def test_another_answer_in_between_ends_the_pauses(
    looks: Looks, world: World, clock: FakeClock
) -> None:
    for found in ("a", "b", "a", "b"):
        world.now = {HEAD: Answer(found)}
        clock.advance(2 * FRESH_SECONDS)
        assert seen(looks) == Answer(found)
        if found == "a":
            looks.refute([HEAD])
            looks.want([HEAD])
            assert looks.next_in() == 0
