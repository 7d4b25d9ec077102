"""Graphs: what can never be done is found, and the cycle named, however long it is."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headway.core.graph import (
    Requirement,
    find_cycle,
    index_of,
    never_done,
    only_backwards,
    place,
    show_cycle,
)

LONG = 100_000


def any_of(requirement: Requirement) -> tuple[int, ...]:
    return (requirement,) if isinstance(requirement, int) else requirement


def brute_force(waits_for: list[list[Requirement]]) -> set[int]:
    """Look at all again and again until nothing more is done."""
    done: set[int] = set()
    while True:
        more = {
            node
            for node, requirements in enumerate(waits_for)
            if all(any(other in done for other in any_of(each)) for each in requirements)
        }
        if more == done:
            return set(range(len(waits_for))) - done
        done = more


@st.composite
def graphs(draw: st.DrawFn) -> list[list[Requirement]]:
    count = draw(st.integers(1, 8))
    node = st.integers(0, count - 1)
    several = st.lists(node, min_size=1, max_size=3).map(tuple)
    return draw(
        st.lists(st.lists(st.one_of(node, several), max_size=3), min_size=count, max_size=count)
    )


@pytest.mark.req("V1")
@given(graphs())
@example([[0]])  # fault H1: it waits for itself
@example([[1], [0]])
@example([[(1, 2)], [0], []])  # one of two makers is free
@example([[0, 0], []])
def test_what_can_never_be_done_is_what_trying_everything_says(
    waits_for: list[list[Requirement]],
) -> None:
    # fault H1
    stuck = brute_force(waits_for)
    assert set(never_done(waits_for)) == stuck
    cycle = find_cycle(waits_for)
    assert (cycle is not None) == bool(stuck)
    if cycle is None:
        return
    assert len(set(cycle)) == len(cycle) and set(cycle) <= stuck
    for node, following in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        assert any(following in any_of(each) for each in waits_for[node])


@given(st.lists(st.lists(st.integers(0, 6), max_size=3), max_size=7))
def test_a_graph_written_down_in_order_has_no_cycle(waits_for: list[list[int]]) -> None:
    inside = [[other for other in others if other < len(waits_for)] for others in waits_for]
    if only_backwards(inside):
        assert find_cycle(inside) is None


def test_a_long_chain_and_a_long_circle_are_walked_without_recursion() -> None:
    # fault H2
    chain: list[list[Requirement]] = [[], *([node] for node in range(LONG - 1))]
    assert find_cycle(chain) is None
    chain[0] = [LONG - 1]
    cycle = find_cycle(chain)
    assert cycle is not None and len(cycle) == LONG
    shown = show_cycle([f"n{node}" for node in cycle])
    assert shown.startswith("n0 -> ") and shown.endswith(" -> n0") and "99980 more" in shown


def test_a_cycle_is_shown_from_its_first_to_its_first() -> None:
    assert show_cycle(["a", "b"]) == "a -> b -> a"
    assert show_cycle(["a"]) == "a -> a"


@given(st.integers(0, 10**9))
def test_a_place_is_never_an_id(index: int) -> None:
    assert place(index) < 0 and index_of(place(index)) == index
    assert index_of(index + 1) is None
