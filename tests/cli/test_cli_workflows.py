"""`headway workflows`: what is wrong with files, what is in them, pictures, and files to begin."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from commandline import CommandLine, Run

from harness import Site
from headway.base.text import cells
from headway.workflows.new_file import STARTERS
from headway.workflows.schema import schema_document

GOOD = """\
description = "Build it, and say so"
inputs = ["version"]
[params]
version = { type = "text", help = "what is built" }
level = { type = "int", default = 3, choices = [1, 2, 3] }
[nodes.build]
argv = ["make", "V=${{ params.version }}"]
produces = ["file:dist/app.tar"]
loop = { to = "build", times = 2 }
[nodes.test]
argv = ["tox"]
after = ["build"]
needs = ["file:dist/other.tar"]
matrix = { python = ["3.12", "3.13"] }
[nodes.alarm]
argv = ["notify"]
after = [{ node = "test", on = ["failed", "blocked"] }]
"""
WRONG = GOOD.replace('after = ["build"]', 'after = ["biuld"]').replace("times = 2", "times = 0")
NOTE = "node 'test': needs file:dist/other.tar, which no node here produces"


def put(site: Site, text: str, name: str = "ship") -> None:
    folder = Path(site.home.path, "workflows")
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.toml").write_text(text)


# -- list and check ----------------------------------------------------------------------------


def test_list_shows_each_workflow_and_which_are_broken(said: Run, file_site: Site) -> None:
    assert said("workflows", "list").err == (
        "headway: no workflows; `headway workflows init NAME` writes one to begin with\n"
    )
    put(file_site, GOOD)
    put(file_site, WRONG, "worse")
    done = said("workflows", "list")
    assert done.out.splitlines() == [
        "Workflow  Nodes  Description",
        "ship      3      Build it, and say so",
        "worse     -      broken: 2 mistakes",
    ]
    assert done.err == "headway: `headway workflows check` says what is wrong\n"
    document = json.loads(said("workflows", "list", "--json").out)
    assert document["workflows"][0] == {
        "name": "ship",
        "path": ".headway/workflows/ship.toml",
        "description": "Build it, and say so",
        "nodes": 3,
        "mistakes": 0,
    }


@pytest.mark.req("V100")
def test_check_says_every_mistake_with_its_place_and_exits_5(said: Run, file_site: Site) -> None:
    put(file_site, WRONG)
    done = said("workflows", "check", "ship")
    path = ".headway/workflows/ship.toml"
    assert done.err.splitlines() == [
        f"headway: {path}: node 'build': loop.times is 0; give a whole number from 1 to 100 "
        "(line 9, column 1)",
        f"headway: {path}: node 'test': after 'biuld' names no node; did you mean "
        "'build'? (line 12, column 1)",
    ]
    assert (done.code, done.out) == (5, "")
    document = json.loads(said("workflows", "check", "--json").out)
    (found,) = document["workflows"]
    assert (document["valid"], found["valid"], found["notes"]) == (False, False, [])
    assert found["mistakes"][1] == {
        "text": "node 'test': after 'biuld' names no node; did you mean 'build'?",
        "line": 12,
        "column": 1,
    }


NAMES_FILES = """\
[nodes.code]
prompt_file = "prompts/code.md"
args = { runner = "claud" }

[nodes.plan]
uses = "cap.env.builtin.prompt.resolve"
args = { prompt_file = "../plan.md" }
produces = ["custom:prompt_text:plan"]

[nodes.other]
prompt = "Do it."
args = { runner = "codex", budget_usd = 1 }
"""


@pytest.mark.req("V100")
def test_check_looks_for_the_runners_and_prompts_that_a_file_names(
    said: Run, file_site: Site
) -> None:
    put(file_site, NAMES_FILES, "names")
    where = "headway: .headway/workflows/names.toml: node"
    read = "cannot be read: No such file or directory"
    there = "there are claude, codex, command, gemini; .headway/runners/NAME.toml adds one"
    done = said("workflows", "check", "names")
    assert done.code == 5 and done.err.splitlines() == [
        f"{where} 'code': the prompt prompts/code.md {read} (line 2, column 1)",
        f"{where} 'code': there is no runner 'claud'; {there} (line 3, column 1)",
        f"{where} 'plan': ../plan.md is outside of the repository (line 7, column 1)",
        f"{where} 'other': runner codex cannot keep to budget_usd; leave it out, or use another "
        "(line 12, column 1)",
    ]


def test_check_without_a_name_checks_all_of_the_home(said: Run, file_site: Site) -> None:
    assert said("workflows", "check").code == 0
    put(file_site, GOOD)
    put(file_site, "x = ", "broken")
    put(file_site, "x = " + "[" * 20, "deep")
    done = said("workflows", "check")
    assert done.code == 5
    assert done.err.splitlines() == [
        "headway: .headway/workflows/broken.toml: line 1, column 5: Invalid value",
        "headway: .headway/workflows/deep.toml: line 1: its values nest too deeply; "
        "16 levels are allowed",
        f"headway: .headway/workflows/ship.toml: {NOTE}",
        "headway: .headway/workflows/ship.toml: 3 nodes, nothing is wrong",
    ]
    assert said("workflows", "check", "ship").code == 0


def test_check_takes_a_path_and_needs_no_home(bare: CommandLine) -> None:
    (bare.folder / "mine.toml").write_text(GOOD)
    assert bare("workflows", "check", "mine.toml").stderr.endswith(
        "headway: mine.toml: 3 nodes, nothing is wrong\n"
    )
    assert "there is no file other.toml" in bare("workflows", "check", "other.toml", code=3).stderr
    assert "there is no workflow 'x'" in bare("workflows", "check", "x", code=3).stderr
    assert not bare.home.exists()


def test_check_of_a_folder_that_is_not_trusted_says_that_nothing_runs(bare: CommandLine) -> None:
    folder = bare.home / "workflows"
    folder.mkdir(parents=True)
    (folder / "ship.toml").write_text(GOOD)
    (bare.home / "config.toml").write_text("")
    done = bare("workflows", "check")
    assert "3 nodes, nothing is wrong" in done.stderr
    assert "is not trusted, and nothing of its workflows runs; `headway trust`" in done.stderr
    assert not (bare.home / "headway.db").exists()


# -- show, graph, audit ------------------------------------------------------------------------


def test_show_tells_what_it_takes_and_what_its_nodes_do(said: Run, file_site: Site) -> None:
    put(file_site, GOOD)
    done = said("workflows", "show", "ship")
    assert done.out.splitlines() == [
        "ship",
        "  about    Build it, and say so",
        "  file     .headway/workflows/ship.toml",
        "  version  1",
        "  inputs   version",
        "",
        "Parameter  Type       Default        Meaning",
        "version    text       must be given  what is built",
        "level      1 | 2 | 3  3",
        "",
        "Node   Does         Jobs  After",
        "build  command.run  1",
        "test   command.run  2     build",
        "alarm  command.run  1     test (failed, blocked)",
    ]
    assert done.err == f"headway: {NOTE}\n"
    document = json.loads(said("workflows", "show", "ship", "--json").out)["workflow"]
    assert "manifest" not in document
    assert document["params"][0]["required"] and document["sinks"] == ["test", "alarm"]
    loop = {"to": "build", "on": ["failed"], "times": 2, "delay": 0}
    assert document["nodes"][0]["loop"] == loop


@pytest.mark.req("V10")
def test_show_has_the_manifest_of_given_values(said: Run, file_site: Site) -> None:
    put(file_site, GOOD)
    words = ("workflows", "show", "ship", "--json")
    manifest = json.loads(said(*words, "--set", "version=1.0").out)["workflow"]["manifest"]
    assert manifest["params"] == {"version": "1.0", "level": 3}
    assert [each["id"] for each in manifest["nodes"]] == [
        *("build", "test[python=3.12]", "test[python=3.13]", "alarm")
    ]
    assert manifest["nodes"][0]["argv"] == ["make", "V=1.0"]
    refused = said(*words, "--set", "level=7")
    assert refused.code == 5
    assert "parameter 'version' has no value; give --set version=VALUE" in refused.err
    assert "parameter 'level' is \"7\"; give 1, 2 or 3" in refused.err
    assert said(*words, "--set", "level").code == 2
    assert said(*words, "--set", "level=1", "--set", "level=2").code == 2


def test_a_broken_workflow_is_not_shown_but_what_is_wrong_is(said: Run, file_site: Site) -> None:
    put(file_site, WRONG)
    for verb in ("show", "graph", "audit"):
        done = said("workflows", verb, "ship")
        assert (done.code, done.out) == (5, "")
        assert "ship.toml: node 'test': after 'biuld' names no node" in done.err


def test_graph_draws_in_each_format(said: Run, file_site: Site) -> None:
    put(file_site, GOOD)
    assert said("workflows", "graph", "ship").out.splitlines() == [
        "build     command.run  back x2 to build on failed",
        "test x2   command.run",
        "`- alarm  command.run  on failed, blocked",
    ]
    words = ("workflows", "graph", "ship", "--format")
    ElementTree.fromstring(said(*words, "svg").out)
    assert said(*words, "mermaid").out.startswith("flowchart TD\n")
    assert said(*words, "dot").out.startswith("digraph workflow {\n")
    assert said(*words, "png").code == 2


@pytest.mark.req("V100", "V101")
def test_audit_tells_artifacts_needs_loops_locks_and_roots(said: Run, file_site: Site) -> None:
    put(file_site, GOOD)
    done = said("workflows", "audit", "ship")
    assert done.code == 0 and done.err == f"headway: {NOTE}\n"
    assert done.out.splitlines() == [
        "Artifacts",
        "Artifact           On         Made by",
        "file:dist/app.tar  succeeded  build",
        "",
        "Needs that no node here meets",
        "Artifact             Needed by",
        "file:dist/other.tar  test",
        "",
        "Loops",
        "Back to  From                Repeats",
        "build    build on failed x2  build",
        "",
        "Where nodes work, and what they lock",
        "Node   Root  Locks",
        "build  .     checkout:REPO:shared",
        "test   .     checkout:REPO:shared",
        "alarm  .     checkout:REPO:shared",
        "",
    ]
    assert said("workflows", "audit", "ship", "--strict").code == 10
    document = json.loads(said("workflows", "audit", "ship", "--json").out)["audit"]
    assert document["untethered"] == [{"node": "test", "artifact": "file:dist/other.tar"}]
    assert document["roots"][0] == {"node": "build", "root": None}
    put(file_site, GOOD.replace('needs = ["file:dist/other.tar"]\n', ""))
    assert said("workflows", "audit", "ship", "--strict").code == 0


@pytest.mark.parametrize("width", ["60", "80"])
@pytest.mark.parametrize("name", STARTERS)
def test_no_line_is_wider_than_the_terminal(
    said: Run, monkeypatch: pytest.MonkeyPatch, name: str, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert said("workflows", "init", name, "--from", name).code == 0
    for verb in ("show", "graph", "audit", "list"):
        done = said("workflows", verb, *([name] if verb != "list" else []))
        assert done.code == 0 and done.out
        assert [line for line in done.out.splitlines() if cells(line) > int(width)] == []


# -- schema and init ---------------------------------------------------------------------------


def test_the_schema_is_one_document(said: Run) -> None:
    assert json.loads(said("workflows", "schema").out) == schema_document()


@pytest.mark.parametrize("name", STARTERS)
def test_init_writes_a_file_that_passes_the_check(said: Run, file_site: Site, name: str) -> None:
    done = said("workflows", "init", "mine", "--from", name)
    assert done.out == ".headway/workflows/mine.toml\n"
    assert done.err.endswith(f"of the starter {name}; next: headway workflows check mine\n")
    assert said("workflows", "check", "mine").code == 0
    text = Path(file_site.home.path, "workflows", "mine.toml").read_text()
    again = said("workflows", "init", "mine")
    assert again.code == 4 and said("workflows", "init", name).code == 0
    of_name = Path(file_site.home.path, "workflows", f"{name}.toml").read_text()
    assert of_name == text, "without --from the one of that name"
    assert (
        again.err == "headway: .headway/workflows/mine.toml is there already; take another name\n"
    )
    assert Path(file_site.home.path, "workflows", "mine.toml").read_text() == text


# -- imports -----------------------------------------------------------------------------------


def test_a_workflow_may_import_others_of_the_home(said: Run, file_site: Site) -> None:
    put(file_site, GOOD)
    put(file_site, '[imports.first]\nworkflow = "ship"\nparams.version = "1"\n', "both")
    assert said("workflows", "graph", "both").out.startswith("first.build     command.run")
    assert said("workflows", "check", "both").code == 0
    put(file_site, '[imports.first]\nworkflow = "sheep"\n', "both")
    done = said("workflows", "check", "both")
    assert done.code == 5
    assert "both.toml: imports first: there is no workflow 'sheep' (line 1, column 2)" in done.err
