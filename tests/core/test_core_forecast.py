"""When a waiting job starts, as far as that can be told."""

from given import job

from headway.core.forecast import Expected, Pace, forecast, pace_of
from headway.core.policies import ENTRY

S = 1_000_000


def waiting(*takes: int | None) -> list[Expected]:
    return [Expected(number, each) for number, each in enumerate(takes, 1)]


def test_one_slot_is_handed_on_in_order() -> None:
    assert forecast(waiting(5, 7, 1), {}, 1) == {1: 0, 2: 5, 3: 12}


def test_what_runs_comes_first_and_more_slots_are_shared() -> None:
    assert forecast(waiting(5, 7, 1), {10: 3, 11: 20}, 2) == {1: 3, 2: 8, 3: 15}


def test_more_that_run_than_may_hold_everyone_back() -> None:
    assert forecast(waiting(5), {10: 3, 11: 4, 12: 9}, 2) == {1: 4}


def test_without_a_cap_everyone_starts_at_once() -> None:
    assert forecast(waiting(5, None, 1), {10: 3}, None) == {1: 0, 2: 0, 3: 0}


def test_who_is_behind_one_of_unknown_length_is_not_known() -> None:
    assert forecast(waiting(5, None, 1), {}, 1) == {1: 0, 2: 5}
    assert forecast(waiting(5), {10: None}, 1) == {}


def test_entries_of_the_jobs_file_have_places_of_their_own() -> None:
    jobs = [Expected(1, 5), Expected(2, 6, place=ENTRY), Expected(3, 7, place=ENTRY)]
    assert forecast(jobs, {10: 3}, 1, parallel=1) == {1: 3, 2: 0, 3: 6}
    assert forecast(jobs, {10: 3}, 1, parallel=1, entries={10}) == {1: 0, 2: 3, 3: 9}


def test_who_is_not_due_yet_lets_others_pass() -> None:
    jobs = [Expected(1, 5, due_in=8), Expected(2, 6), Expected(3, 7)]
    assert forecast(jobs, {}, 1) == {2: 0, 3: 6, 1: 13}
    assert forecast([Expected(1, 5, due_in=None), Expected(2, 6)], {}, 1) == {2: 0}


def test_who_comes_after_others_waits_for_all_of_them() -> None:
    jobs = [Expected(1, 5, after=(2, 10)), Expected(2, 6), Expected(3, 1, after=(99,))]
    assert forecast(jobs, {10: 3}, 2) == {2: 0, 3: 3, 1: 6}
    assert forecast([Expected(1, 5, after=(2,)), Expected(2, None)], {}, 3) == {2: 0}


def test_the_pace_is_the_mean_of_a_name_and_unknown_for_another() -> None:
    ended = [
        job(1, name="a", started_at=0, finished_at=2 * S),
        job(2, name="a", started_at=S, finished_at=5 * S),
        job(3, name="b", started_at=0, finished_at=9 * S),
        job(4, name="b", finished_at=9 * S),
    ]
    pace = pace_of(ended)
    assert (pace.of("a"), pace.of("b"), pace.of("c")) == (3 * S, 9 * S, None)
    assert pace_of([]) == Pace({}) and pace_of([]).of("a") is None
