"""The pages about workflows: their tables have every key and label, their example does what it
says."""

import re
from pathlib import Path

import pytest
from test_tour import run
from test_tutorial import BLOCK, shell_env, site, write

from harness import Site, wait_for
from headway.client import connect
from headway.core.states import Status
from headway.workflows.checks import OUTPUTS
from headway.workflows.labels import ENDS, LABELS, Label, RunsCommand
from headway.workflows.matrices import MOST_COMBINATIONS
from headway.workflows.new_file import STARTERS
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

__all__ = ["shell_env", "site"]

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


TUTORIAL = PAGE.split("\n## Tutorial")[1].split("\n## ")[0]


def test_the_tutorial_shows_what_happens(site: Site, shell_env: dict[str, str]) -> None:
    assert not list(site.folder.iterdir())
    for kind, options, content in BLOCK.findall(TUTORIAL):
        if kind == "toml":
            write(site, options, content)
            continue
        assert kind == "console", kind
        for entry in re.split(r"^\$ ", content, flags=re.M)[1:]:
            command, _, shown = entry.partition("\n")
            run(site, shell_env, command, shown)
            wait_for(lambda: at_rest(site), what=f"all to end or to wait, after: {command}")


def at_rest(site: Site) -> bool:
    """Whether nothing runs or is about to."""
    with (
        connect(home=site.home.path, reading=True) as client,
        client.context.store.read() as tx,
    ):
        waiting = (Status.WAITING_ON_APPROVAL, Status.WAITING_ON_DEPS)
        rests = all(job.status in waiting for job in tx.jobs.active())
        return rests and not tx.waits.anything_woken()


def test_the_tutorial_has_what_a_newcomer_needs() -> None:
    for word in ("workflows check", "--follow", "workflows retry", "headway approve", "back to"):
        assert word in TUTORIAL, word
    assert {*re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?`) \|", TUTORIAL, re.M)))} == {
        *STARTERS
    }
