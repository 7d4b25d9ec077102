"""The pages about workflows: their tables have every key and label, their example does what it
says."""

import re
from pathlib import Path

import pytest
from test_tour import commands
from test_tutorial import BLOCK

from headway.base.home import Home
from headway.base.new_home import make_home
from headway.cli.main import run
from headway.workflows.checks import OUTPUTS
from headway.workflows.labels import ENDS, LABELS, Label, RunsCommand
from headway.workflows.matrices import MOST_COMBINATIONS
from headway.workflows.reader import (
    JOB_KEYS,
    LARGEST_FILE,
    MOST_AT_THE_END,
    MOST_ELEMENTS,
    MOST_TIMES,
    NODE_KEYS,
    PARAM_KEYS,
    TOP_KEYS,
)

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "workflows.md").read_text(encoding="utf-8")
OPERATIONS = (DOCS / "operations.md").read_text(encoding="utf-8")


def rows(page: str, title: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    part = page.split(f"\n## {title}\n")[1].split("\n## ")[0].split("\n### ")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in part.splitlines()
        if line.startswith("| `")
    ]


def test_the_table_of_a_file_has_every_key() -> None:
    found = rows(PAGE, "The keys of a file")
    assert [row[:2] for row in found] == [[f"`{key}`", form.says] for key, form in TOP_KEYS.items()]


def test_the_table_of_a_node_has_every_key() -> None:
    found = rows(PAGE, "The keys of a node")
    own = {key: form for key, form in NODE_KEYS.items() if key not in JOB_KEYS}
    assert [row[:2] for row in found] == [
        [f"`{key}`", form.says.replace('"', '"')] for key, form in own.items()
    ]
    of_jobs = PAGE.split("### Keys of jobs")[1].split("\n## ")[0].partition("code:\n")[2]
    assert tuple(re.findall(r"`(\w+)`", of_jobs)) == JOB_KEYS


def test_the_table_of_parameters_has_every_key() -> None:
    assert [row[0] for row in rows(PAGE, "Parameters")] == [f"`{key}`" for key in PARAM_KEYS]


def test_the_limits_of_the_page_are_those_of_the_reader() -> None:
    assert LARGEST_FILE == 1 << 20 and "may have 1 MiB" in PAGE
    assert f"at most {MOST_AT_THE_END}" in PAGE and f"(1 to {MOST_TIMES})" in PAGE
    assert f"at most {MOST_COMBINATIONS}" in PAGE and f"up to {MOST_ELEMENTS:,}" in PAGE


def words_of(label: Label) -> list[str]:
    arguments = [f"`{each}`" for each in label.arguments]
    if label.free:
        arguments.append("and any that its text names")
    command = {
        RunsCommand.NEVER: "no",
        RunsCommand.MAY: "may have",
        RunsCommand.MUST: "must have",
    }[label.command]
    return [
        f"`{label.name}`",
        label.about,
        ", ".join(arguments) or "none",
        " or ".join(f"`{each}`" for each in label.one_of) or "nothing",
        command,
    ]


@pytest.mark.req("V21", "V22")
def test_there_is_a_row_for_every_label() -> None:
    assert rows(OPERATIONS, "Labels") == [words_of(each) for each in LABELS.values()]


def test_there_is_a_row_for_the_outputs_of_every_operation() -> None:
    assert rows(OPERATIONS, "Outputs") == [
        [f"`{name}`", ", ".join(f"`{each}`" for each in outputs)]
        for name, outputs in OUTPUTS.items()
    ]
    assert set(OUTPUTS) <= {each.operation for each in LABELS.values()}


def test_there_is_a_row_for_the_ends_of_every_operation() -> None:
    assert rows(OPERATIONS, "Ends") == [[f"`{name}`", *end] for name, end in ENDS.items()]
    assert {each.operation for each in LABELS.values() if not each.is_control} <= set(ENDS)


def test_the_commands_of_the_page_show_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("HEADWAY_HOME", raising=False)
    make_home(Home(str(tmp_path / ".headway")))
    files = [
        (options.strip().removeprefix("file="), text)
        for kind, options, text in BLOCK.findall(PAGE)
        if kind == "toml" and options.strip()
    ]
    for name, text in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    shown = commands(PAGE)
    assert len(shown) == 2
    for command, told in shown:
        assert run(command.split()[1:]) == 0
        said = capsys.readouterr()
        assert said.err + said.out == told
