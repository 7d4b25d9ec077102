"""The picture: well-formed, nothing over anything else, edges from left to right."""

import xml.etree.ElementTree as ET
from itertools import combinations

from drawn import HOSTILE, missing, node, schedule
from hypothesis import given
from hypothesis import strategies as st

from headway.core.states import Status
from headway.jobs.views.graph.formats import COLOURS
from headway.jobs.views.graph.layout import BOX_HEIGHT, BOX_WIDTH, lay_out
from headway.jobs.views.graph.model import GraphSchedule
from headway.jobs.views.graph.svg import svg

SVG = "{http://www.w3.org/2000/svg}"
PAIRS = st.lists(st.tuples(st.integers(1, 25), st.integers(1, 25)), max_size=60)


def picture(drawn: GraphSchedule) -> ET.Element:
    return ET.fromstring("\n".join(svg(drawn)))


def texts(root: ET.Element, kind: str) -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}text") if each.get("class") == kind]


def test_each_job_is_a_box_in_the_colour_of_its_state() -> None:
    root = picture(
        schedule(*(node(n, state) for n, state in enumerate(Status, 1)), everything=True)
    )
    boxes = [each.get("class") for each in root.iter(f"{SVG}rect") if each.get("rx")]
    assert boxes == [
        *("job queued", "job waiting", "job waiting", "job waiting", "job running"),
        *("job succeeded", "job failed", "job ended", "job ended", "job blocked", "job blocked"),
    ]
    fills = {each.get("class"): each.get("fill") for each in root.iter(f"{SVG}rect")}
    assert all(fills[each] == COLOURS[(each or "").split()[1]][0] for each in boxes)


def test_a_page_may_style_it_and_finds_the_job_of_each_box() -> None:
    """Attributes give way to any rule of a style sheet; an inline style would not, and is refused
    where pages may have none."""
    root = picture(schedule(node(1, slug="build"), node(24, needs=(missing("custom:a:b", 1),))))
    everything = list(root.iter())
    assert {each.tag for each in everything}.isdisjoint({f"{SVG}style", f"{SVG}script"})
    assert not any(each.get("style") for each in everything)
    boxes = [each for each in root.iter(f"{SVG}g") if each.find(f"{SVG}rect") is not None]
    assert [each.get("data-job") for each in boxes] == ["job-1", "job-24"]
    coloured = [each for each in everything if each.get("class") not in (None, "boxes", "edges")]
    assert coloured and all(looks_of(root, each).keys() >= {"fill"} for each in coloured)


def looks_of(root: ET.Element, wanted: ET.Element) -> dict[str, str]:
    """The attributes of an element, with those of the groups that it stands in."""
    parents = {child: parent for parent in root.iter() for child in parent}
    found: dict[str, str] = dict(wanted.attrib)
    while wanted in parents:
        wanted = parents[wanted]
        found = {**wanted.attrib, **found}
    return found


def test_artifacts_are_written_on_their_edges() -> None:
    root = picture(schedule(node(1), node(2, needs=(missing("custom:a:b", 1), missing("file:/x")))))
    assert texts(root, "caption") == ["custom:a:b [missing]"]
    assert "nobody produces 1 of its needs" in texts(root, "id")
    assert [path.get("class") for path in root.iter(f"{SVG}path")] == ["head", "edge artifact"]


def test_a_hostile_name_is_text_and_fits_its_box() -> None:  # fault H9
    root = picture(schedule(node(1, name=HOSTILE * 5, slug="漢字" * 20, wait=HOSTILE)))
    assert {each.tag.removeprefix(SVG) for each in root.iter()} == {
        *("svg", "defs", "marker", "path", "rect", "text", "g", "title"),
    }
    (name,) = texts(root, "name")
    assert len(name) <= 25 and name.endswith("...")
    assert HOSTILE[:20] in next(root.iter(f"{SVG}title")).text  # type: ignore[operator]


def test_an_empty_schedule_is_a_picture_too() -> None:
    assert texts(picture(schedule()), "title") == ["Schedule: 0 jobs"]


def test_the_focused_job_is_marked() -> None:
    root = picture(schedule(node(1), node(2), focus=2))
    assert [each.get("class") for each in root.iter(f"{SVG}rect") if each.get("rx")] == [
        "job queued",
        "job queued focus",
    ]


@given(PAIRS)
def test_no_box_lies_over_another_and_edges_go_right(pairs: list[tuple[int, int]]) -> None:
    pairs = [(min(pair), max(pair)) for pair in pairs]
    layout = lay_out(range(1, 26), pairs)
    assert set(layout.boxes) == set(range(1, 26))
    for one, other in combinations(layout.boxes.values(), 2):
        apart = abs(one.x - other.x) >= BOX_WIDTH or abs(one.y - other.y) >= BOX_HEIGHT
        assert apart, (one, other)
    for source, target in pairs:
        assert source == target or layout.boxes[source].x < layout.boxes[target].x
    for place in layout.boxes.values():
        assert place.x >= 0 and place.x + BOX_WIDTH <= layout.width
        assert place.y >= 0 and place.y + BOX_HEIGHT <= layout.height


@given(PAIRS)
def test_lines_go_around_boxes(pairs: list[tuple[int, int]]) -> None:
    pairs = [(min(pair), max(pair)) for pair in pairs]
    layout = lay_out(range(1, 26), pairs)
    for bends in layout.bends.values():
        for bend in bends:
            for box in layout.boxes.values():
                inside = box.x <= bend.x <= box.x + BOX_WIDTH
                assert not (inside and box.y <= bend.y <= box.y + BOX_HEIGHT)


def test_the_same_schedule_gives_the_same_picture() -> None:
    def drawn() -> str:
        nodes = [node(n, after=tuple(range(max(1, n - 3), n))) for n in range(1, 60)]
        return "\n".join(svg(schedule(*nodes)))

    assert drawn() == drawn()


def test_a_large_graph_is_drawn() -> None:
    """A fan of a thousand, and edges over so many layers that they are drawn straight."""
    nodes = [node(1), *(node(n, after=(1,)) for n in range(2, 1002))]
    nodes.append(node(1002, after=tuple(range(2, 1002))))
    assert len(list(picture(schedule(*nodes)).iter(f"{SVG}path"))) == 2001
    long = [node(n, after=(n - 1, 1) if n > 2 else ()) for n in range(1, 400)]
    assert len(list(picture(schedule(*long)).iter(f"{SVG}path"))) > 700
