"""A workflow with its parameters becomes a manifest: instances, values, roots and its hash."""

from pathlib import Path

import pytest
from written import FILE, checked, compiled, node_of, nodes

from headway.core.routes import NodeOutcome
from headway.workflows.compiler import in_order, policy_hash, routes_of, sinks_of
from headway.workflows.documents import audit_document
from headway.workflows.references import OPEN

RUN = 'argv = ["x"]'
TREE = 'uses = "cap.env.builtin.worktree.prepare"\nargs = { slug = "s" }'
CLEAN = 'uses = "cap.env.builtin.worktree.cleanup"'
ROOTED = f'{CLEAN}\nroot = "t"'
EXAMPLES = {
    path.stem: path.read_text()
    for path in sorted((Path(__file__).parent / "examples").glob("*.toml"))
}


# -- the examples of the reference -------------------------------------------------------------


def test_the_example_of_a_change_goes_from_a_plan_to_a_merge() -> None:
    manifest = compiled(EXAMPLES["change"], slug="fix-login", spec="Fix it.")
    assert [each.id for each in manifest.nodes] == [
        *("tree", "ask_plan", "plan", "keep_plan", "agree", "code.prompt", "code", "commit", "ci"),
        *("merge", "resolve", "done", "give_up", "tidy"),
    ]
    assert [(each.source, each.head, each.times) for each in manifest.routes.loops] == [
        ("ci", "code.prompt", 3),
        ("resolve", "ci", 2),
    ]
    assert manifest.routes.bodies["code.prompt"] == {"code.prompt", "code", "commit", "ci"}
    roots = {each.id: each.root for each in manifest.nodes}
    assert roots["ci"] == roots["commit"] == roots["tidy"] == "tree"
    assert roots["give_up"] is None
    assert node_of(manifest, "merge").args == {"slug": "fix-login", "target": "main"}
    assert node_of(manifest, "keep_plan").produces == {
        "succeeded": ("plan_branch:fix-login", "plan_doc:fix-login")
    }
    assert manifest.notes == (
        "node 'give_up': works in the repository itself: a worktree is passed on along "
        'on.succeeded only; say root = "tree"',
    )


def test_the_example_of_a_release_has_an_instance_for_each_combination() -> None:
    manifest = compiled(EXAMPLES["release"], version="1.2.0")
    instances = [each.id for each in manifest.nodes if each.node == "test"]
    assert instances == [
        "test[python=3.11,store=sqlite]",
        "test[python=3.12,store=sqlite]",
        "test[python=3.12,store=postgres]",
        "test[python=3.13,store=sqlite]",
        "test[python=3.13,store=postgres]",
    ]
    assert node_of(manifest, instances[2]).argv == ("tox", "-e", "py3.12-postgres")
    assert manifest.params == {"version": "1.2.0", "publish": False}
    assert node_of(manifest, "build").job == {"timeout": "20m"}
    assert node_of(manifest, "slow").each == ("${{ nodes.shards.outputs.shards }}", 50)


def test_the_example_of_a_night_ends_with_its_report() -> None:
    manifest = compiled(EXAMPLES["nightly"])
    assert manifest.workflow.at_the_end == ("report",)
    sources = {edge.source for edge in manifest.routes.rules["report"].edges}
    assert sources == {"look", "prune", "backup"}
    (edge,) = manifest.routes.rules["backup"].edges
    assert edge.accepts == {NodeOutcome.SUCCEEDED, NodeOutcome.SKIPPED}
    assert node_of(manifest, "prune").job["env"] == {"KEEP": "14"}


# -- values ------------------------------------------------------------------------------------

# faults H5, H6, J5
HOSTILE = [
    *("'; rm -rf / #", '"$(reboot)"', "`id`", "a\nb", "$HOME", "--flag", "", "\u2028", "%s{}"),
    *("${{ run.id }}", "x ${{ nodes.a.outputs.y }} y", "${{", "}}", "${{ secrets.TOKEN }}"),
]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_value_is_one_argument_and_never_a_script_or_a_reference(value: str) -> None:
    text = 'params.x.type = "text"\n' + nodes(
        a='argv = ["say", "${{ params.x }}", "<${{ params.x }}>"]\nenv = { X = "${{ params.x }}" }',
        b="""shell = 'echo "$X"'\nenv = { X = "${{ params.x }}" }""",
    )
    manifest = compiled(text, x=value)
    one, other = manifest.nodes
    if OPEN in value:  # filled in at the claim, when nothing is looked up in it any more
        written = "${{ params.x }}"
        assert one.argv == ("say", written, f"<{written}>")
        assert one.job["env"] == other.job["env"] == {"X": written}
    else:
        assert one.argv == ("say", value, f"<{value}>")
        assert one.job["env"] == other.job["env"] == {"X": value}
    assert other.shell == 'echo "$X"'
    assert manifest.params == {"x": value}


def test_a_reference_alone_keeps_its_type_where_a_value_may_have_one() -> None:
    text = 'params.files = ["a", "b"]\nparams.n = 3\n' + nodes(
        a='uses = "cap.env.builtin.patch.pipeline_prepare"\nargs.files = "${{ params.files }}"',
        b='argv = ["x", "${{ params.n }}", "${{ params.files }}"]',
    )
    manifest = compiled(text)
    assert node_of(manifest, "a").args == {"files": ["a", "b"]}
    assert node_of(manifest, "b").argv == ("x", "3", '["a", "b"]')


def test_words_of_a_command_line_become_values_of_their_types() -> None:
    text = """
    params.i = 1
    params.f = 1.5
    params.b = false
    params.l = []
    params.t = ""
    params.p.type = "path"
    """
    given = {"i": "7", "f": "2", "b": "true", "l": '["x"]', "t": "7", "p": "7"}
    manifest = compiled(text + nodes(a=RUN), given)
    assert manifest.params == {"i": 7, "f": 2, "b": True, "l": ["x"], "t": "7", "p": "7"}


def test_a_date_is_its_text() -> None:
    manifest = compiled("params.day = 2026-11-18\n" + nodes(a='argv = ["x", "${{ params.day }}"]'))
    assert manifest.nodes[0].argv == ("x", "2026-11-18")


def test_arguments_may_be_used_by_other_keys() -> None:
    text = nodes(a=TREE + '\nlocks = ["plan:${{ args.slug }}"]')
    assert compiled(text).nodes[0].job == {"locks": ["plan:s"]}


def test_what_is_known_only_in_a_run_stays_as_it_is_written() -> None:
    text = nodes(
        a=f'{RUN}\noutputs = ["o"]',
        b='argv = ["${{run.id}}", "${{ nodes.a.outputs.o }}"]\nafter = ["a"]',
    )
    assert node_of(compiled(text), "b").argv == ("${{run.id}}", "${{ nodes.a.outputs.o }}")


# -- prompts -----------------------------------------------------------------------------------


def test_edges_and_loops_to_an_agent_lead_to_its_prompt() -> None:
    text = nodes(
        a=f'{RUN}\non.succeeded = ["b"]',
        b='prompt = "Do it."\nargs = { runner = "claude" }\nwhen = ["1 == 1"]',
        c=f'{RUN}\nafter = ["b"]\nloop = {{ to = "b", times = 2 }}',
    )
    manifest = compiled(text)
    sources = {
        name: [edge.source for edge in rule.edges] for name, rule in manifest.routes.rules.items()
    }
    assert sources == {"a": [], "b.prompt": ["a"], "b": ["b.prompt"], "c": ["b"]}
    assert manifest.routes.loops[0].head == "b.prompt"
    prompt, agent = node_of(manifest, "b.prompt"), node_of(manifest, "b")
    assert prompt.args == {"prompt_text": "Do it."} and prompt.when == ("1 == 1",)
    assert prompt.produces == {"succeeded": agent.needs}
    assert agent.needs == ("custom:prompt_text:b",) and agent.args == {"runner": "claude"}


def test_each_instance_of_an_agent_has_a_prompt_of_its_own() -> None:
    text = nodes(a='prompt = "${{ matrix.x }}"\nmatrix = { x = [1, 2] }')
    manifest = compiled(text)
    assert [each.id for each in manifest.nodes] == [
        *("a.prompt[x=1]", "a.prompt[x=2]", "a[x=1]", "a[x=2]")
    ]
    assert node_of(manifest, "a[x=2]").needs == ("custom:prompt_text:a[x=2]",)
    assert node_of(manifest, "a.prompt[x=2]").produces == {
        "succeeded": ("custom:prompt_text:a[x=2]",)
    }


def test_values_that_fit_in_no_name_leave_a_prompt_its_number() -> None:
    text = nodes(a='prompt = "${{ matrix.x }}"\nmatrix = { x = ["docs and tests", "core"] }')
    manifest = compiled(text)
    for instance, name in (("docs and tests", "0"), ("core", "x=core")):
        needs = (f"custom:prompt_text:a[{name}]",)
        assert node_of(manifest, f"a[x={instance}]").needs == needs
        assert node_of(manifest, f"a.prompt[x={instance}]").produces == {"succeeded": needs}


def test_the_prompt_of_each_element_is_made_for_it() -> None:
    text = nodes(
        l=f'{RUN}\noutputs = ["found"]',
        a='prompt = "${{ item }}"\nafter = ["l"]\nwhen = ["${{ item }} != x"]\n'
        'each = { in = "${{ nodes.l.outputs.found }}", max = 3 }',
    )
    manifest = compiled(text)
    prompt, agent = node_of(manifest, "a.prompt"), node_of(manifest, "a")
    assert prompt.each == agent.each and prompt.when == agent.when
    assert prompt.produces == {"succeeded": agent.needs}
    workflow = checked(text)
    (made,) = audit_document(workflow, routes_of(workflow))["produces"]
    assert made["artifact"] == "custom:prompt_text:a[N]"


def test_an_agent_may_run_at_the_end_with_its_prompt() -> None:
    manifest = compiled('finally = ["b"]\n' + nodes(a=RUN, b='prompt = "Report."'))
    rules = manifest.routes.rules
    assert rules["b.prompt"].at_the_end and rules["b"].at_the_end
    assert {edge.source for edge in rules["b"].edges} == {"a", "b.prompt"}


# -- where a node works ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'finally = ["c"]\n{nodes(t=TREE, c=CLEAN)}', '; say root = "t"'),
        (nodes(t=f'{TREE}\non.failed = ["c"]', c=CLEAN), '; say root = "t"'),
        (nodes(t=TREE, c=CLEAN), ""),
        (f'finally = ["c"]\n{nodes(t=TREE, c=ROOTED)}', None),
        (nodes(t=f'{TREE}\non.succeeded = ["c"]', c=CLEAN), None),
    ],
    ids=["at the end", "by failure", "beside it", "with root", "by success"],
)
def test_a_clean_up_without_a_worktree_is_told_of(text: str, said: str | None) -> None:
    words = (
        "node 'c': works in the repository itself: a worktree is passed on along on.succeeded only"
    )
    assert compiled(text).notes == (() if said is None else (f"{words}{said}",))


@pytest.mark.req("V27")
def test_a_worktree_is_passed_on_along_success_until_it_is_cleaned_up() -> None:
    clean = 'uses = "cap.env.builtin.worktree.cleanup"\nafter = ["b"]'
    text = nodes(
        t=f'{TREE}\non.succeeded = ["b"]\non.failed = ["d"]',
        b=RUN,
        c=clean,
        d=RUN,
        e=f'{RUN}\nafter = ["c"]',
        f=f'{RUN}\nafter = [{{ node = "b", on = ["succeeded", "failed"] }}]',
    )
    manifest = compiled(text)
    roots = {each.id: each.root for each in manifest.nodes}
    assert roots == {"t": None, "b": "t", "c": "t", "d": None, "e": None, "f": "t"}
    assert [note.split(":")[0] for note in manifest.notes] == ["node 'd'"]


TREES = f"{TREE}\nmatrix = {{ x = [1, 2], y = [1, 2] }}\nexclude = [{{ x = 2, y = 2 }}]"


@pytest.mark.req("V23")
def test_an_instance_works_in_the_worktree_of_the_same_combination() -> None:
    alike = "matrix = { y = [1, 2], x = [1, 2] }\nexclude = [{ x = 2, y = 2 }]"
    text = nodes(
        t=TREES,
        b=f'{RUN}\nafter = ["t"]\n{alike}',
        c=f'{RUN}\nafter = ["b"]\nmatrix = {{ x = [2], y = [1] }}',
        said=f'{RUN}\nafter = ["t"]\nroot = "t[x=1,y=2]"',
        then=f'{RUN}\nafter = ["said"]',
        none=f'{RUN}\nafter = ["t"]\nroot = "."',
        end='uses = "control.terminal"\nafter = ["c"]',
    )
    roots = {each.id: each.root for each in compiled(text).nodes if each.node != "t"}
    assert roots == {
        "b[y=1,x=1]": "t[x=1,y=1]",
        "b[y=1,x=2]": "t[x=2,y=1]",
        "b[y=2,x=1]": "t[x=1,y=2]",
        "c[x=2,y=1]": "t[x=2,y=1]",
        "said": "t[x=1,y=2]",
        "then": "t[x=1,y=2]",
        "none": None,
        "end": None,
    }
    assert compiled(text).notes == ()
    workflow = checked(text)
    audit = audit_document(workflow, routes_of(workflow))
    roots = {each["node"]: each["root"] for each in audit["roots"]}
    assert roots["b"] == "t[x=${{ matrix.x }},y=${{ matrix.y }}]" and roots["none"] is None
    locks = {each["node"]: each["locks"] for each in audit["locks"]}
    assert locks["b"] == [f"worktree:wf-N/{roots['b']}"]


def test_a_matrix_of_one_is_one_worktree() -> None:
    text = nodes(t=f"{TREE}\nmatrix = {{ x = [1] }}", b=f'{RUN}\nafter = ["t"]')
    assert node_of(compiled(text), "b").root == "t[x=1]"


@pytest.mark.req("V23", "V27")
def test_of_two_worktrees_root_says_which() -> None:
    text = nodes(t=TREE, u=TREE, b=f'{RUN}\nafter = ["t", "u"]\nroot = "u"')
    assert node_of(compiled(text), "b").root == "u"


MEETS_CONFLICT = """
[nodes.tree]
uses = "cap.env.builtin.worktree.prepare"
args = { slug = "login" }
on.succeeded = ["merge"]
[nodes.merge]
uses = "cap.env.builtin.git.integrate_plan_branch"
args = { slug = "login" }
on.blocked = ["resolve"]
[nodes.resolve]
uses = "control.gate.conflict_resolution"
args = { slug = "login" }
"""


def test_a_conflict_is_resolved_where_its_branch_is() -> None:
    assert node_of(compiled(MEETS_CONFLICT), "resolve").root == "tree"
    other = MEETS_CONFLICT.replace('slug = "login"', 'slug = "other"', 1)
    assert node_of(compiled(other), "resolve").root is None
    said = compiled(f'{MEETS_CONFLICT}root = "."')
    assert node_of(said, "resolve").root is None
    cleaned = MEETS_CONFLICT.replace('["merge"]', '["clean"]') + (
        '[nodes.clean]\nuses = "cap.env.builtin.worktree.cleanup"\non.succeeded = ["merge"]\n'
    )
    assert node_of(compiled(cleaned), "resolve").root is None
    twice = f"{MEETS_CONFLICT}after = ['second']\n" + nodes(
        second=f'{TREE}\nargs.slug = "login"'.replace('args = { slug = "s" }\n', "")
    )
    assert node_of(compiled(twice), "resolve").root == "second", "success leads there"


def test_the_nearest_worktree_counts() -> None:
    text = nodes(t=TREE, u=f'{TREE}\nafter = ["t"]', b=f'{RUN}\nafter = ["u"]')
    assert node_of(compiled(text), "b").root == "u"


# -- order, sinks, notes -----------------------------------------------------------------------


@pytest.mark.req("V99")
def test_a_success_sink_has_no_edge_of_success_behind_it() -> None:
    text = 'finally = ["z"]\n' + nodes(
        a=f'{RUN}\non.failed = ["c"]', b=f'{RUN}\nafter = ["a"]', c=RUN, z=RUN
    )
    workflow = checked(text)
    assert sinks_of(workflow, routes_of(workflow)) == ["b", "c"]


def test_nodes_come_after_all_that_leads_to_them() -> None:
    text = nodes(c=f'{RUN}\nafter = ["b"]', b=f'{RUN}\nafter = ["a"]', a=RUN)
    assert in_order(routes_of(checked(text))) == ["a", "b", "c"]


def test_a_need_without_a_producer_is_told_and_no_error() -> None:
    manifest = compiled(nodes(a=f'{RUN}\nneeds = ["file:/x"]\nmatrix = {{ n = [1, 2] }}'))
    assert manifest.notes == ("node 'a': needs file:/x, which no node here produces",)


# -- the hash ----------------------------------------------------------------------------------

PLAIN = 'params.x = 1\n[nodes.a]\nargv = ["x"]\n[nodes.b]\nargv = ["y"]\n'


@pytest.mark.req("V12")
@pytest.mark.parametrize(
    "text",
    [
        "# other words\n" + PLAIN,
        'description = "new"\n' + PLAIN,
        PLAIN.replace('argv = ["x"]', "argv = [ 'x' ]  # the same"),
        PLAIN.replace(
            "params.x = 1", 'params.x = { default = 1, type = "int", help = "how many" }'
        ),
    ],
)
def test_the_hash_is_the_same_for_the_same_runs(text: str) -> None:
    assert policy_hash(checked(text)) == policy_hash(checked(PLAIN))


@pytest.mark.req("V12")
@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace('["x"]', '["z"]'),
        PLAIN.replace("x = 1", "x = 2"),
        PLAIN + 'after = ["a"]\n',
        PLAIN + "approval = true\n",
        PLAIN + 'on.failed = ["a"]\n',
        'timeout = "1h"\n' + PLAIN,
        'version = "2"\n' + PLAIN,
        'params.x = 1\n[nodes.b]\nargv = ["y"]\n[nodes.a]\nargv = ["x"]\n',
    ],
)
def test_the_hash_is_another_when_a_run_would_be(text: str) -> None:
    assert policy_hash(checked(text)) != policy_hash(checked(PLAIN))


def test_the_hash_is_of_the_file_and_not_of_the_values() -> None:
    assert compiled(PLAIN, x=5).policy_hash == compiled(PLAIN).policy_hash
    assert compiled(PLAIN).workflow.file == FILE


def test_nodes_of_finally_share_their_edges_and_each_comes_last() -> None:
    """A copy for each would be as many edges as nodes times nodes of `finally`."""
    many = "".join(f'[nodes.n{at}]\nargv = ["true"]\n' for at in range(50))
    text = f'finally = ["x", "y", "say"]\n{many}' + "".join(
        f"[nodes.{name}]\n{said}\n"
        for name, said in (
            ("x", 'argv = ["true"]'),
            ("y", 'argv = ["true"]'),
            ("say", 'prompt = "?"'),
        )
    )
    routes = compiled(text).routes
    rules = routes.rules
    assert rules["x"].edges is rules["y"].edges is rules["say.prompt"].edges
    assert [edge.source for edge in rules["x"].edges] == [f"n{at}" for at in range(50)]
    assert {edge.source for edge in rules["say"].edges} == {
        *(f"n{at}" for at in range(50)),
        "say.prompt",
    }
    assert in_order(routes)[50:] == ["say.prompt", "x", "y", "say"]
