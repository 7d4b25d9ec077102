"""Probes at the world: when they are made, how long an answer counts, who is woken by it."""

import select
import threading
from collections.abc import Callable, Collection, Mapping

import pytest

from harness import DEADLINE, wait_for
from headway.core.facts import Answer
from headway.core.model import ProbeKind, Question
from headway.testing.clock import FakeClock
from headway.worker.probes import FIRST_AGAIN, FRESH_SECONDS, LONGEST_AGAIN, Probes

HEAD = Question(ProbeKind.HEAD, "/srv/repo")
MAIN = Question(ProbeKind.BRANCH, "/srv/repo", "main")


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
def probes(world: World, clock: FakeClock) -> Probes:
    return Probes(world.look, clock, in_thread=False)


def test_what_nobody_wants_to_know_is_not_looked_up(probes: Probes, world: World) -> None:
    probes.go()
    assert (world.asked, probes.answers(), probes.next_in()) == ([], {}, None)
    assert not probes.unsure() and probes.take_in() == []


def test_all_that_is_wanted_is_one_look_and_wakes_who_asked(probes: Probes, world: World) -> None:
    world.now = {HEAD: Answer("a")}
    probes.want([HEAD, MAIN])
    probes.want([HEAD])
    assert probes.next_in() == 0 and probes.unsure()
    probes.go()
    assert world.asked == [[HEAD, MAIN]]
    assert probes.answers() == {}, "what was seen counts when it is taken in"
    assert probes.next_in() == 0.0 and probes.unsure()
    assert probes.take_in() == [HEAD.topic, MAIN.topic]
    assert probes.answers() == {HEAD: Answer("a"), MAIN: Answer()}
    assert not probes.unsure()


def test_an_answer_counts_for_a_moment_only(probes: Probes, clock: FakeClock) -> None:
    probes.want([HEAD])
    probes.go()
    probes.take_in()
    clock.advance(FRESH_SECONDS)
    assert probes.answers() == {HEAD: Answer()}
    clock.advance(0.001)
    assert probes.answers() == {HEAD: Answer(fresh=False)}


def test_one_who_needs_a_fresh_answer_gets_it_though_it_is_the_same(
    probes: Probes, world: World, clock: FakeClock
) -> None:
    probes.want([HEAD])
    probes.go()
    probes.take_in()
    probes.want([HEAD])
    assert probes.due() == [], "there is a fresh answer"
    clock.advance(FRESH_SECONDS + 1)
    probes.go()
    assert probes.take_in() == [], "the same answer wakes nobody who could do with the old one"
    clock.advance(FRESH_SECONDS + 0.01)
    probes.want([HEAD])
    assert probes.due() == [HEAD] and probes.unsure()
    probes.go()
    assert probes.take_in() == [HEAD.topic], "it was filed without an answer"


def test_looks_are_made_ever_more_rarely_until_something_changes(
    probes: Probes, world: World, clock: FakeClock
) -> None:
    probes.want([HEAD])
    probes.go()
    probes.take_in()
    delays = []
    for _ in range(8):
        delay = probes.next_in()
        assert delay is not None
        delays.append(delay)
        clock.advance(delay - 0.001)
        assert probes.due() == []
        clock.advance(0.002)
        probes.go()
        assert probes.take_in() == []
    expected = [min(FIRST_AGAIN * 2**nth, LONGEST_AGAIN) for nth in range(8)]
    assert delays == pytest.approx(expected)
    assert len(world.asked) == 9
    world.now = {HEAD: Answer("moved")}
    clock.advance(LONGEST_AGAIN)
    probes.go()
    assert probes.take_in() == [HEAD.topic]
    assert probes.next_in() == pytest.approx(FIRST_AGAIN)


def test_what_nobody_waits_for_is_let_go(probes: Probes, world: World) -> None:
    probes.want([HEAD, MAIN])
    probes.drop([HEAD])
    probes.go()
    assert world.asked == [[MAIN]]
    probes.drop([MAIN])
    assert probes.take_in() == [], "the look was under way"
    assert probes.next_in() is None


def test_a_look_that_fails_unforeseen_is_an_answer_with_its_trouble(clock: FakeClock) -> None:
    def broken(questions: Collection[Question]) -> Mapping[Question, Answer]:
        raise RuntimeError("no idea")

    probes = Probes(broken, clock, in_thread=False)
    probes.want([HEAD])
    probes.go()
    assert probes.take_in() == [HEAD.topic]
    assert probes.answers() == {HEAD: Answer(trouble="unexpected RuntimeError: no idea")}
    assert probes.next_in() == pytest.approx(FIRST_AGAIN), "it is tried again"


@pytest.fixture
def slow(clock: FakeClock) -> Callable[[], tuple[Probes, threading.Event, World]]:
    def make() -> tuple[Probes, threading.Event, World]:
        gate, world = threading.Event(), World()

        def look(questions: Collection[Question]) -> Mapping[Question, Answer]:
            assert gate.wait(DEADLINE)
            return world.look(questions)

        return Probes(look, clock, in_thread=True), gate, world

    return make


def test_a_worker_does_not_wait_for_a_slow_look_and_is_woken_when_it_is_made(
    slow: Callable[[], tuple[Probes, threading.Event, World]], clock: FakeClock
) -> None:
    probes, gate, world = slow()
    wake_up = probes.wake_up.fileno()
    try:
        probes.want([HEAD])
        probes.go()
        assert select.select([wake_up], [], [], 0)[0] == []
        assert probes.take_in() == [] and probes.unsure()
        assert probes.next_in() is None, "it is under way: the wake_up says when"
        clock.advance(60)
        probes.go()
        probes.want([HEAD])
        probes.go()
        gate.set()
        assert select.select([wake_up], [], [], DEADLINE)[0] == [wake_up]
        probes.wake_up.clear()
        assert select.select([wake_up], [], [], 0)[0] == []
        assert probes.take_in() == [HEAD.topic]
        assert world.asked == [[HEAD]], "one look at a time for one question"
        assert probes.answers() == {HEAD: Answer()}, "fresh when it is made, however long it took"
    finally:
        probes.close()


def test_a_look_that_comes_after_the_end_disturbs_nobody(
    slow: Callable[[], tuple[Probes, threading.Event, World]],
) -> None:
    probes, gate, world = slow()
    probes.wake_up.fileno()
    probes.want([HEAD])
    probes.go()
    probes.close()
    gate.set()
    wait_for(lambda: world.asked, what="the look is made")


def test_a_hopeless_job_is_believed_only_after_a_look_that_began_later(
    probes: Probes, world: World
) -> None:
    probes.want([HEAD])
    probes.go()
    assert probes.take_in() == [HEAD.topic]
    assert probes.doubt(7, [HEAD]) == (HEAD,), "that look may be older than what ended just now"
    assert probes.doubt(7, [HEAD]) == (HEAD,), "asking twice is no look"
    assert probes.unsure() and probes.next_in() == 0
    probes.go()
    assert probes.doubt(7, [HEAD]) == (HEAD,), "it is not taken in yet"
    assert probes.take_in() == [HEAD.topic], "who doubts is woken although nothing has changed"
    assert probes.doubt(8, [HEAD]) == (HEAD,), "each for itself"
    assert probes.doubt(7, [HEAD]) == ()
    assert probes.doubt(7, [HEAD]) == (HEAD,), "later it is another doubt"


def test_a_look_under_way_does_not_settle_a_doubt(world: World, clock: FakeClock) -> None:
    begun, finish = threading.Event(), threading.Event()

    def slow(questions: Collection[Question]) -> Mapping[Question, Answer]:
        begun.set()
        assert finish.wait(DEADLINE)
        return world.look(questions)

    probes = Probes(slow, clock, in_thread=True)
    probes.want([HEAD])
    probes.go()
    assert begun.wait(DEADLINE)
    assert probes.doubt(7, [HEAD]) == (HEAD,)
    finish.set()
    wait_for(probes.take_in)
    assert probes.doubt(7, [HEAD]) == (HEAD,), "it began before the doubt"
    probes.go()
    wait_for(probes.take_in)
    assert probes.doubt(7, [HEAD]) == ()
    assert len(world.asked) == 2


def test_jobs_that_doubt_the_same_need_one_look(probes: Probes, world: World) -> None:
    probes.want([HEAD])
    probes.go()
    probes.take_in()
    jobs = range(100)
    assert all(probes.doubt(each, [HEAD]) for each in jobs)
    probes.go()
    probes.take_in()
    assert not any(probes.doubt(each, [HEAD]) for each in jobs)
    assert len(world.asked) == 2


def test_a_doubt_that_was_left_behind_settles_no_later_one(probes: Probes, world: World) -> None:
    """The job got something to wait for in between: what it lost then was not looked at."""
    assert probes.doubt(7, [HEAD]) == (HEAD,)
    probes.go()
    probes.take_in()
    probes.give_hope(7)
    assert probes.doubt(7, [HEAD]) == (HEAD,)
    probes.go()
    probes.take_in()
    assert probes.doubt(7, [HEAD]) == ()


# -- what held no longer when a job was to start --------------------------------------------------


def seen(probes: Probes) -> Answer | None:
    """Look if it is time to, and what is known then."""
    probes.want([HEAD])
    probes.go()
    probes.take_in()
    return probes.answers().get(HEAD)


def test_a_refuted_answer_is_forgotten_and_looked_at_anew(probes: Probes, world: World) -> None:
    world.now = {HEAD: Answer("a")}
    assert seen(probes) == Answer("a")
    probes.refute([HEAD])
    assert probes.answers() == {}
    world.now = {HEAD: Answer("b")}
    assert seen(probes) == Answer("b"), "at once"


def test_a_look_that_began_before_says_nothing(probes: Probes, world: World) -> None:
    world.now = {HEAD: Answer("a")}
    probes.want([HEAD])
    probes.go()  # it has seen the old head, and is still to be taken in
    probes.refute([HEAD])
    assert probes.take_in() == [] and probes.answers() == {}
    probes.go()
    assert probes.take_in() == [HEAD.topic] and len(world.asked) == 2


def test_who_is_refuted_again_and_again_looks_later_and_later(
    probes: Probes, world: World, clock: FakeClock
) -> None:
    world.now = {HEAD: Answer("a")}
    pauses = []
    for _ in range(8):
        assert seen(probes) == Answer("a")
        probes.refute([HEAD])
        probes.want([HEAD])
        pauses.append(probes.next_in())
        assert seen(probes) == (None if pauses[-1] else Answer("a"))
        clock.advance(pauses[-1] or 0)
    assert pauses == pytest.approx([0, FIRST_AGAIN, 1, 2, 4, 8, LONGEST_AGAIN, LONGEST_AGAIN])


def test_another_answer_in_between_ends_the_pauses(
    probes: Probes, world: World, clock: FakeClock
) -> None:
    for found in ("a", "b", "a", "b"):
        world.now = {HEAD: Answer(found)}
        clock.advance(2 * FRESH_SECONDS)
        assert seen(probes) == Answer(found)
        if found == "a":
            probes.refute([HEAD])
            probes.want([HEAD])
            assert probes.next_in() == 0
