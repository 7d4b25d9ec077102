"""Pictures of a workflow: text that fits a terminal, SVG without overlaps, Mermaid, Graphviz."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from written import checked, nodes

from headway.base.text import cells
from headway.workflows.compiler import routes_of
from headway.workflows.drawing.forms import FORMATS, draw
from headway.workflows.drawing.layout import BOX_WIDTH
from headway.workflows.drawing.model import Drawing, drawing_of

EXAMPLES = {
    path.stem: path.read_text()
    for path in sorted((Path(__file__).parent / "examples").glob("*.toml"))
}
RUN = 'argv = ["x"]'
HARD = nodes(
    a=RUN,
    b=f'{RUN}\nafter = ["a"]\non.failed = ["h"]',
    c=f'{RUN}\nafter = ["b"]',
    d=f'{RUN}\nafter = ["c", "a"]\nloop = {{ to = "b", times = 5 }}',
    e=f'{RUN}\nafter = ["a", "d"]\njoin = "any"',
    f=f"""{RUN}
    after = ["b", "e"]
    loop = {{ to = "a", on = ["failed", "succeeded"], times = 100 }}
    """,
    h=f'{RUN}\non.ended = ["i"]',
    i=f'{RUN}\non.skipped = ["f"]',
    alone=RUN,
    itself=f'{RUN}\nloop = {{ to = "itself", times = 2 }}',
    a_long_name_of_a_node_that_goes_on_and_on_to_48=f"""{RUN}
    after = ["a", "b", "c", "d", "e", "f", "h", "i"]
    when = ["{"x" * 100} == 1"]
    """,
)
ALL = {**EXAMPLES, "hard": HARD, "one": nodes(a=RUN)}


def drawn(text: str) -> Drawing:
    workflow = checked(text)
    return drawing_of(workflow, routes_of(workflow))


def lines(text: str, form: str = "text") -> list[str]:
    return list(draw(drawn(text), form))


def test_a_workflow_is_drawn_as_text() -> None:
    assert lines(EXAMPLES["change"]) == [
        "tree           worktree.prepare",
        "ask_plan       prompt.resolve",
        "plan           agent.invoke",
        "keep_plan      plan.persist",
        "agree          gate.approval",
        "code           agent.invoke",
        "commit         git.stage_commit",
        "ci             gate.cicd                  back x3 to code on failed",
        "|- merge       git.integrate_plan_branch",
        "|  |- resolve  gate.conflict_resolution   on blocked  back x2 to ci on succeeded",
        "|  `- done     terminal",
        "`- give_up     command.run                on blocked",
        "",
        "finally",
        "  tidy         worktree.cleanup",
    ]
    assert lines(EXAMPLES["release"]) == [
        "build         command.run",
        "|- lint       command.run  tolerates failed",
        "|- test x5    command.run",
        "`- shards     command.run",
        "   slow each  command.run",
        "",
        "publish       command.run  after test, slow, lint  approval",
        "|    when ${{ params.publish }} == true",
        "`- alarm      command.run  on failed",
    ]


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("name", ALL)
def test_no_line_of_text_is_wider_than_the_terminal(name: str, width: int) -> None:
    said = list(draw(drawn(ALL[name]), "text", width=width))
    assert [line for line in said if cells(line) > width] == []
    assert said


def test_a_long_chain_is_drawn_straight_down() -> None:
    chain = nodes(
        **{f"n{at}": RUN + (f'\nafter = ["n{at - 1}"]' if at else "") for at in range(3000)}
    )
    said = lines(chain)
    assert len(said) == 3000 and all(line.startswith("n") for line in said)
    assert len(lines(chain, "svg")) > 3000


# -- the picture -------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", ALL)
def test_no_boxes_overlap_and_all_are_within_the_picture(name: str) -> None:
    root = ElementTree.fromstring("\n".join(lines(ALL[name], "svg")))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    places = []
    for group in root.iter(f"{SVG}g"):
        box = group.find(f"{SVG}rect")
        if box is None:
            continue
        x, y = map(float, re.findall(r"-?[\d.]+", group.attrib["transform"])[:2])
        places.append((x, y, float(box.attrib["height"])))
    assert len(places) == len(drawn(ALL[name]).nodes)
    for number, (x, y, high) in enumerate(places):
        assert 0 <= x <= width - BOX_WIDTH and 0 <= y <= height - high
        for other_x, other_y, _ in places[number + 1 :]:
            assert abs(x - other_x) >= BOX_WIDTH or abs(y - other_y) >= high


@pytest.mark.parametrize("name", ALL)
def test_a_page_may_style_it_and_finds_the_node_of_each_box(name: str) -> None:
    found = drawn(ALL[name])
    root = ElementTree.fromstring("\n".join(draw(found, "svg")))
    assert not any(each.tag == f"{SVG}style" or each.get("style") for each in root.iter())
    boxes = [each for each in root.iter(f"{SVG}g") if each.find(f"{SVG}rect") is not None]
    assert {each.get("data-node") for each in boxes} == {each.name for each in found.nodes}
    assert not any(each.get("data-job") for each in boxes)
    jobs = {each.name: f"job-{number}" for number, each in enumerate(found.nodes, 1)}
    root = ElementTree.fromstring("\n".join(draw(found._replace(jobs=jobs), "svg")))
    boxes = [each for each in root.iter(f"{SVG}g") if each.find(f"{SVG}rect") is not None]
    assert {each.get("data-node"): each.get("data-job") for each in boxes} == jobs


def test_routes_are_dashed_and_loops_are_marked() -> None:
    root = ElementTree.fromstring("\n".join(lines(EXAMPLES["change"], "svg")))
    paths = [each.attrib.get("class") for each in root.iter(f"{SVG}path")]
    assert paths.count("edge route") == 3  # two routes, and the line above `finally`
    assert paths.count("loop") == 2
    captions = [each.text for each in root.iter(f"{SVG}text") if each.attrib["class"] == "caption"]
    assert captions == ["blocked", "blocked", "back x3", "on failed", "back x2", "on succeeded"]


def test_mermaid_and_graphviz_have_the_same_edges() -> None:
    mermaid = lines(EXAMPLES["release"], "mermaid")
    assert mermaid[0] == "flowchart TD"
    assert '  n2["test x5<br/>command.run"]:::command' in mermaid
    assert any(line.endswith('-. "failed" .-> n6') for line in mermaid)
    assert '  subgraph at_the_end["finally"]' in lines(EXAMPLES["nightly"], "mermaid")
    assert '  n7 == "back x3 on failed" ==> n5' in lines(EXAMPLES["change"], "mermaid")
    graphviz = lines(EXAMPLES["change"], "dot")
    assert graphviz[0] == "digraph workflow {" and graphviz[-1] == "}"
    loop = '  n7 -> n5 [label="back x3 on failed", style=dotted, constraint=false];'
    assert loop in graphviz
    assert any(re.match(r"  n7 -> n\d+ \[style=dashed, label=\"blocked\"\];", x) for x in graphviz)


# fault J5
def test_nothing_of_a_file_becomes_markup() -> None:
    text = nodes(a=f"""{RUN}\nwhen = ['"<script>&" == "]]>"']""")
    found = drawn(text)._replace(name='</text><script>"&\x1b[31m')
    for form in FORMATS:
        said = "\n".join(draw(found, form))
        assert "\x1b" not in said
        if form != "text":
            assert "<script>" not in said
    ElementTree.fromstring("\n".join(draw(found, "svg")))
