"""A workflow that imports others is one workflow: their nodes are its own, under their names."""

from typing import Any

import pytest
from written import LIMIT, node_of, nodes

from headway.core.routes import NodeOutcome
from headway.workflows.compiler import check_text, compile_text
from headway.workflows.mistakes import WorkflowError
from headway.workflows.model import Manifest, WorkflowFile

RUN = 'argv = ["x"]'
CHECKS = """
artifacts.report.version = "1"
finally = ["tidy"]
[params]
level = { type = "int", default = 1 }
who = { type = "text" }
[nodes.lint]
argv = ["lint", "${{ params.level }}"]
outputs = ["count"]
produces = ["custom:report:lint"]
[nodes.judge]
prompt = "Judge ${{ nodes.lint.outputs.count }} for ${{ params.who }}."
after = ["lint"]
when = ["${{ nodes.lint.outputs.count }} > 0"]
loop = { to = "lint", times = 2 }
[nodes.tidy]
argv = ["tidy"]
"""
FILES = {"checks": CHECKS}


def load_from(files: dict[str, str]) -> Any:
    def load(name: str) -> WorkflowFile | None:
        return WorkflowFile(name, f"{name}.toml", files[name]) if name in files else None

    return load


def compiled(text: str, files: dict[str, str] = FILES, **params: Any) -> Manifest:
    return compile_text(text, params, name="w", file="w.toml", limit=LIMIT, load=load_from(files))


def wrong(text: str, files: dict[str, str] = FILES) -> list[str]:
    _, problems = check_text(text, name="w", file="w.toml", limit=LIMIT, load=load_from(files))
    return [each.placed for each in problems.mistakes]


TWICE = """
params.me = "ada"
[imports.a]
workflow = "checks"
params = { level = 2, who = "${{ params.me }}" }
after = ["build"]
[imports.b]
workflow = "checks"
params.who = "<${{ params.me }}>"
after = ["a"]
[nodes.build]
argv = ["make"]
[nodes.done]
argv = ["done", "${{ nodes.b.lint.outputs.count }}"]
after = ["b.judge"]
"""


def test_imported_nodes_have_the_name_of_the_import() -> None:
    manifest = compiled(TWICE)
    assert [each.id for each in manifest.nodes] == [
        *("build", "done", "a.lint", "a.judge.prompt", "a.judge", "a.tidy"),
        *("b.lint", "b.judge.prompt", "b.judge", "b.tidy"),
    ]
    sources = {
        name: [edge.source for edge in rule.edges]
        for name, rule in manifest.routes.rules.items()
        if not rule.at_the_end
    }
    assert sources == {
        "build": [],
        "done": ["b.judge"],
        "a.lint": ["build"],
        "a.judge.prompt": ["a.lint"],
        "a.judge": ["a.judge.prompt"],
        "b.lint": ["a.judge"],
        "b.judge.prompt": ["b.lint"],
        "b.judge": ["b.judge.prompt"],
    }
    assert manifest.workflow.at_the_end == ("a.tidy", "b.tidy")
    assert [(each.source, each.head) for each in manifest.routes.loops] == [
        ("a.judge", "a.lint"),
        ("b.judge", "b.lint"),
    ]


def test_values_refer_to_the_nodes_and_parameters_of_their_import() -> None:
    manifest = compiled(TWICE, me="eve ${{ run.id }}")
    assert node_of(manifest, "a.lint").argv == ("lint", "2")
    assert node_of(manifest, "b.lint").argv == ("lint", "1")
    assert manifest.params["a.who"] == "eve ${{ run.id }}"
    assert manifest.params["b.who"] == "<eve ${{ run.id }}>"
    prompt = node_of(manifest, "a.judge.prompt")
    assert prompt.when == ("${{ nodes.a.lint.outputs.count }} > 0",)
    assert prompt.args["prompt_text"] == (
        "Judge ${{ nodes.a.lint.outputs.count }} for ${{ params.a.who }}."
    )
    assert prompt.produces == {"succeeded": ("custom:prompt_text:a.judge",)}
    assert node_of(manifest, "a.judge").needs == ("custom:prompt_text:a.judge",)
    assert node_of(manifest, "b.lint").produces == {"succeeded": ("custom:report:lint",)}


def test_a_parameter_that_is_not_given_may_be_set() -> None:
    text = '[imports.a]\nworkflow = "checks"\n'
    manifest = compiled(text, **{"a.who": "ada", "a.level": "3"})
    assert manifest.params == {"a.level": 3, "a.who": "ada"}
    with pytest.raises(WorkflowError, match=r"parameter 'a\.who' has no value; give --set a\.who="):
        compiled(text)
    with pytest.raises(
        WorkflowError, match=r"there is no parameter 'a\.who'; there are me, a\.level"
    ):
        compiled(TWICE, **{"a.who": "eve"})


def test_a_bound_parameter_is_checked_by_its_type() -> None:
    text = 'params.n = "x"\n[imports.a]\nworkflow = "checks"\nparams = { who = "w", level = "${{ params.n }}" }\n'
    with pytest.raises(WorkflowError, match=r"parameter 'a\.level' is \"x\"; give a whole number"):
        compiled(text)


def test_imports_may_import() -> None:
    files = {
        "inner": "params.p.type = 'text'\n" + nodes(n='argv = ["${{ params.p }}"]'),
        "middle": 'params.q = "m"\n[imports.i]\nworkflow = "inner"\nparams.p = "${{ params.q }}!"\n',
    }
    text = '[imports.m]\nworkflow = "middle"\nparams.q = "outer"\n'
    manifest = compiled(text, files)
    assert [each.id for each in manifest.nodes] == ["m.i.n"]
    assert manifest.nodes[0].argv == ("outer!",)


def one(lines: str) -> str:
    return f"{nodes(n=RUN)}[imports.a]\n{lines}\n"


CHECKED = 'workflow = "checks"\nparams.who = "w"\n'
RECURSIVE = {
    "a": '[imports.x]\nworkflow = "b"\n',
    "b": '[imports.y]\nworkflow = "a"\n',
    "many": "".join(f'[imports.i{n}]\nworkflow = "one"\n' for n in range(60)),
    "one": nodes(n=RUN),
    "wrong": "nodes.n.argv = []",
    "broken": "x = ",
}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (one('workflow = "z"'), "imports a: there is no workflow 'z' (line 3, column 2)"),
        (one(""), "imports a: say which workflow (line 3, column 2)"),
        (one('workflow = "checks"\nwhat = 1'), "unknown key 'what' (line 5, column 1)"),
        (
            one(f"{CHECKED}params.x = 1"),
            "imports a: there is no parameter 'x'; there are level, who (line 3, column 2)",
        ),
        (
            one(f'{CHECKED}params.level = "x"'),
            "imports a: parameter 'level' is \"x\"; give a whole number (line 3, column 2)",
        ),
        (
            one(f'{CHECKED}params.level = "${{{{ params.z }}}}"'),
            "imports a: params.z: there is no parameter 'z' (line 3, column 2)",
        ),
        (
            one(f'{CHECKED}params.level = "${{{{ run.id }}}}"'),
            "imports a: params: run.id is not known when it is queued (line 3, column 2)",
        ),
        (
            one(f'{CHECKED}after = ["z"]'),
            "imports a: after 'z' names no node (line 3, column 2)",
        ),
        (
            one(CHECKED).replace("nodes.n", "nodes.a"),
            "imports a: a node has this name, too (line 3, column 2)",
        ),
        (
            one('workflow = "wrong"'),
            "imports a: wrong.toml: node 'n': argv is []; give a list of texts, not empty "
            "(line 1, column 1) (line 3, column 2)",
        ),
        (
            one('workflow = "broken"'),
            "imports a: broken.toml: line 1, column 5: Invalid value (line 3, column 2)",
        ),
        (
            one('workflow = "a"'),
            "imports a: a.toml: imports x: b.toml: imports y: a workflow imports itself: "
            "a -> b -> a (line 1, column 2) (line 1, column 2) (line 3, column 2)",
        ),
        (
            '[imports.a]\nworkflow = "many"\n[imports.b]\nworkflow = "many"\n',
            "imports b: many.toml: imports i38: there are more than 100 imports "
            "(line 77, column 2) (line 3, column 2)",
        ),
    ],
)
def test_what_cannot_be_imported_is_refused(text: str, words: str) -> None:
    assert wrong(text, {**FILES, **RECURSIVE}) == [words]


def test_a_mistake_among_imported_nodes_is_told_by_the_import() -> None:
    text = (
        one(CHECKED) + '[nodes.m]\nargv = ["${{ nodes.a.judge.outputs.z }}"]\nafter = ["a.judge"]\n'
    )
    assert wrong(text) == [
        "node 'm': nodes.a.judge.outputs.z: 'a.judge' has no output 'z' (line 8, column 1)"
    ]
    files = {"x": nodes(n=f'{RUN}\nafter = ["zz"]')}
    assert wrong('[imports.a]\nworkflow = "x"\n', files) == [
        "node 'a.n': after 'a.zz' names no node (line 1, column 2)"
    ]


def test_roots_of_an_imported_file_are_its_own() -> None:
    tree = 'uses = "cap.env.builtin.worktree.prepare"\nargs = { slug = "s" }'
    part = nodes(
        t=f"{tree}\nmatrix = {{ x = [1, 2] }}",
        one=f'{RUN}\nafter = ["t"]\nroot = "t[x=2]"',
        none=f'{RUN}\nafter = ["t"]\nroot = "."',
        own=f'{RUN}\nafter = ["t"]\nmatrix = {{ x = [1, 2] }}',
    )
    manifest = compiled('[imports.p]\nworkflow = "part"\n' + nodes(a=RUN), {"part": part})
    roots = {each.id: each.root for each in manifest.nodes if each.node.startswith("p.")}
    assert roots == {
        **dict.fromkeys(("p.t[x=1]", "p.t[x=2]", "p.none")),
        "p.one": "p.t[x=2]",
        "p.own[x=1]": "p.t[x=1]",
        "p.own[x=2]": "p.t[x=2]",
    }


def test_an_import_is_over_also_where_a_part_of_it_was_skipped() -> None:
    """As a run is that another is after: one of two ways through it is always skipped."""
    part = nodes(
        build=f'{RUN}\non.failed = ["mend"]\ntolerate = ["failed"]',
        mend=RUN,
        done=f'{RUN}\nafter = ["build"]',
    )
    text = """
    [imports.first]
    workflow = "part"
    [imports.next]
    workflow = "part"
    after = ["first"]
    [imports.last]
    workflow = "part"
    after = ["first.done"]
    """
    rules = compiled(text, {"part": part}).routes.rules
    both = frozenset({NodeOutcome.SUCCEEDED, NodeOutcome.SKIPPED})
    edges = {edge.source: (edge.accepts, edge.required) for edge in rules["next.build"].edges}
    assert edges == {"first.mend": (both, True), "first.done": (both, True)}
    (named,) = rules["last.build"].edges
    assert named.accepts == {NodeOutcome.SUCCEEDED}
