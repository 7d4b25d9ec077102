"""The files to begin with are right as they stand, for the reader and for the schema."""

import json
import os
import tomllib
from pathlib import Path

import pytest
from started import Started
from written import checked

from harness import Bench
from headway.base.errors import ConflictError, InvalidInputError
from headway.base.home import Home
from headway.workflows.files import read_file, workflow_names
from headway.workflows.new_file import SCHEMA_FILE, STARTERS, init_workflow, starter_text
from headway.workflows.schema import schema_document
from smallschema import Validator


@pytest.mark.parametrize("name", STARTERS)
def test_a_starter_is_right_and_says_what_it_is(name: str) -> None:
    text = starter_text(name)
    assert text.startswith(f"#:schema ../{SCHEMA_FILE}\n")
    workflow = checked(text)
    assert workflow.description and all(each.help for each in workflow.params.values())
    assert Validator(schema_document()).valid(tomllib.loads(text))
    assert all(len(line) <= 110 for line in text.splitlines())


def test_the_stages_of_a_change_have_the_steps_of_the_three() -> None:
    uses = {
        name: [each.label.operation for each in checked(starter_text(name)).nodes.values()]
        for name in STARTERS
    }
    assert uses["draft"][:4] == [
        *("worktree.prepare", "prompt.resolve", "agent.invoke", "plan.persist")
    ]
    assert {"gate.approval", "agent.invoke", "git.stage_commit", "gate.cicd"} <= {*uses["approve"]}
    assert {"git.integrate_plan_branch", "gate.conflict_resolution"} <= {*uses["merge"]}


@pytest.mark.parametrize(("name", "words"), [("build", ["1.2.3"]), ("nightly", [])])
def test_a_starter_of_commands_runs_as_it_is(bench: Bench, name: str, words: list[str]) -> None:
    run = Started(bench, starter_text(name), *words)
    assert run.ended()["state"] == "succeeded"


def test_there_is_a_file_for_each_starter() -> None:
    folder = Path(init_workflow.__code__.co_filename).parent / "starters"
    assert {path.stem for path in folder.glob("*.toml")} == {*STARTERS}


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    home = Home(str(tmp_path / ".headway"))
    os.mkdir(home.path)
    assert init_workflow(home, "ship", "build") == ".headway/workflows/ship.toml"
    assert workflow_names(home) == ["ship"]
    assert read_file(home, "ship", str(tmp_path)).text == starter_text("build")
    schema = Path(home.path, SCHEMA_FILE)
    assert json.loads(schema.read_text()) == schema_document()
    schema.write_text("old")
    with pytest.raises(ConflictError, match=r"\.headway/workflows/ship\.toml is there already"):
        init_workflow(home, "ship", "agent")
    assert read_file(home, "ship", str(tmp_path)).text == starter_text("build")
    init_workflow(home, "other", "agent")
    assert json.loads(schema.read_text()) == schema_document()
    assert sorted(os.listdir(home.path)) == ["workflow.schema.json", "workflows"]


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a b", "x" * 65, "a\n"])
def test_a_bad_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInputError, match="is no name of a workflow"):
        init_workflow(Home(str(tmp_path)), name, "build")
    assert os.listdir(tmp_path) == []


def test_an_unknown_starter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="there is no starter 'x'; there are build, agent"):
        init_workflow(Home(str(tmp_path)), "a", "x")
