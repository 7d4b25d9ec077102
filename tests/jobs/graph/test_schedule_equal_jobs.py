"""Equal jobs of a large schedule in one box."""

from collections.abc import Iterator

from drawn import ids, node, present, schedule
from hypothesis import given
from hypothesis import strategies as st

from headway.core.states import Status
from headway.jobs.views.graph.equal_jobs import folded
from headway.jobs.views.graph.formats import row_edges
from headway.jobs.views.graph.model import GraphSchedule, Node
from headway.jobs.views.graph.svg import svg


def names(drawn: GraphSchedule) -> list[str]:
    return [row.name for row in drawn.rows]


def pairs(drawn: GraphSchedule) -> list[tuple[int, int | None]]:
    return [(edge.source, edge.end) for edge in row_edges(drawn)]


def test_equal_chains_become_one() -> None:
    rows = [node(n, after=(n - 3,) if n > 3 else ()) for n in range(1, 10)]
    drawn = folded(schedule(*rows, node(10, Status.RUNNING)))
    assert names(drawn) == ["3 × name-1", "3 × name-4", "3 × name-7", "name-10"]
    assert pairs(drawn) == [(4, 1), (7, 4)]


def test_jobs_that_differ_stay_apart() -> None:
    """By their state, by what follows, by what they need; and the focus is alone."""
    rows = [
        *(node(1), node(2), node(3, Status.WAITING_ON_LOCKS), node(4, after=(1,))),
        *(node(5, needs=(present("custom:a:b"),)), node(6), node(7)),
    ]
    assert ids(folded(schedule(*rows, focus=6))) == [1, 2, 3, 4, 5, 6]


def test_what_has_ended_and_is_waited_for_is_folded_as_well() -> None:
    ended = [node(n, Status.SUCCEEDED) for n in range(1, 6)]
    drawn = folded(schedule(*ended, node(9, Status.WAITING_ON_DEPS, after=(1, 2, 3, 4, 5))))
    assert sorted(names(drawn)) == ["5 × name-1", "name-9"]


def test_a_circle_does_no_harm() -> None:
    rows = [node(1, after=(2,)), node(2, after=(1,)), node(3, after=(3,)), node(4)]
    assert len(list(svg(folded(schedule(*rows))))) > 4


@st.composite
def graphs(draw: st.DrawFn) -> list[Node]:
    def made() -> Iterator[Node]:
        for number in range(1, draw(st.integers(1, 25)) + 1):
            before = st.lists(st.integers(1, number - 1), unique=True, max_size=3)
            after = tuple(draw(before)) if number > 1 else ()
            yield node(number, draw(st.sampled_from([Status.QUEUED, Status.RUNNING])), after=after)

    return list(made())


@given(graphs())
def test_nothing_is_lost_and_no_arrow_is_new(rows: list[Node]) -> None:
    whole = schedule(*rows)
    drawn = folded(whole)
    counted = [int(name.split(" × ")[0]) if " × " in name else 1 for name in names(drawn)]
    assert sum(counted) == len(whole.rows)
    known = set(ids(drawn))
    assert all(source in known and end in known for source, end in pairs(drawn))
    assert bool(pairs(drawn)) == bool(pairs(whole))
