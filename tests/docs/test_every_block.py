"""Every block of code in the documentation is executed by a test, or is in `NOT_EXECUTED` with the
reason. A block that is not executed is at least read: its commands by the real parser of the
program, its Python, TOML and JSON by theirs."""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from test_scenes import ANY_BLOCK, SCENES
from test_tour import run

from harness import Site
from headway.admin.service.plan import cron_line, make_plan
from headway.cli.main import cli

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += sorted((ROOT / "examples").rglob("*.md"))


class Block(NamedTuple):
    page: str
    kind: str
    options: str
    text: str

    @property
    def first(self) -> str:
        return self.text.splitlines()[0] if self.text else ""

    def commands(self) -> list[str]:
        """The lines that a reader would type."""
        lines = self.text.splitlines()
        if self.kind == "sh":
            return [line for line in lines if line.strip() and not line.startswith("#")]
        return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def blocks() -> list[Block]:
    found = []
    for path in PAGES:
        name = path.relative_to(ROOT).as_posix()
        for match in ANY_BLOCK.findall(path.read_text(encoding="utf-8")):
            found.append(Block(name, *match))
    return found


BLOCKS = blocks()

# Executed in another module of this folder: page, kinds of blocks, module.
ELSEWHERE = [
    ("README.md", ("console",), "test_tour.py"),
    ("docs/tutorial.md", ("python", "console"), "test_tutorial.py"),
    ("docs/graphs.md", ("json", "console"), "test_example_pages.py"),
    ("docs/groups.md", ("json", "console"), "test_example_pages.py"),
    ("docs/templates.md", ("console", "python"), "test_example_pages.py"),
    ("docs/retries.md", ("console",), "test_example_pages.py"),
    ("docs/schedules.md", ("console", "python"), "test_example_pages.py"),
    ("docs/agents.md", ("console",), "test_example_pages.py"),
    ("docs/jobs-file.md", ("toml", "python"), "test_example_pages.py"),
    ("docs/jobs-file.md", ("yaml", "console"), "test_jobs_file_page.py"),
    ("docs/workflows.md", ("console",), "test_workflow_pages.py"),
    ("docs/webhooks.md", ("sh", "python", "toml"), "test_webhooks_page.py"),
]

# The same of single blocks: page, how the block begins, module.
ONE_ELSEWHERE = [
    ("README.md", "headway submit --name fix", "test_tour.py"),
    ("README.md", "headway submit --name plan", "test_tour.py"),
    ("README.md", "headway schedules add", "test_tour.py"),
    ("README.md", "inputs = ", "test_tour.py"),
    ("README.md", "headway workflows init", "test_tour.py"),
    ("docs/workflows.md", "description = ", "test_workflow_pages.py"),
]

# Executed here, line by line, in a fresh repository with a home: page, how the block begins.
HERE = [
    ("docs/capacity.md", "headway submit --name first"),
    ("docs/concepts.md", "headway submit --name later"),
    ("docs/events.md", "headway exec -- echo hello"),
    ("docs/files.md", "headway exec -- echo hello"),
    ("docs/gates.md", "headway submit --name ship"),
    ("docs/order.md", "headway submit --name urgent"),
    ("docs/cli.md", "$ echo hi | headway exec -- cat"),
    ("docs/capacity.md", "headway config set scheduler.limits.resource.ollama"),
    ("docs/gates.md", "headway submit --produces custom:report:june"),
    ("docs/groups.md", "headway groups create --name release --mode sequential"),
    ("docs/jobs-file.md", "$ headway jobsfile schema"),
    ("docs/cli.md", "$ headway top --once"),
    ("docs/order.md", "$ headway jobs list --queue"),
    ("docs/order.md", "$ headway config set scheduler.ageing"),
    ("docs/python.md", "from headway import Request, connect"),
    ("docs/groups.md", "from headway import Plan, Request, connect"),
    ("docs/graphs.md", "from headway import Request, connect"),
    ("docs/retries.md", "$ headway config set scheduler.cooldown"),
    ("docs/views.md", "$ headway config set display.lists.jobs.fields"),
    ("docs/views.md", "headway submit --name build"),
    ("docs/direct.md", "headway direct -- echo"),
    ("docs/direct.md", "import headway"),
]

AGENT = "it asks a model; `make test-runners` runs the agent programs"
PART = "a part of a file of the reader's"
CHECKED = "tests/docs/test_workflow_page.py checks it; its commands are not there"
LONG = "it takes minutes; `make` has it as a target of its own"

# Not executed: page, how the block begins, why.
NOT_EXECUTED = [
    ("README.md", "make demo", "tests/docs/test_demo.py runs the demo"),
    ("README.md", "pip install", "it installs Headway; tests/docs/test_dist.py does, elsewhere"),
    ("docs/agents.md", "$ headway submit --runner claude", AGENT),
    ("docs/agents.md", "$ headway exec --runner claude", AGENT),
    ("docs/agents.md", "argv = ", PART),
    ("docs/agents.md", "[prices]", PART),
    ("docs/workflows.md", "[nodes.code]", PART),
    ("docs/backup.md", "headway backup", "it writes to /var; docs/cli.md has it in a scene"),
    ("docs/benchmarks.md", "make bench", LONG),
    ("docs/capacity.md", "[project.entry-points", PART),
    ("docs/capacity.md", "class PerCustomer", PART),
    ("docs/cli.md", "$ headway direct", "it waits for the end of a job that does not end"),
    (
        "docs/cli.md",
        '{"version": 1, "requested_job"',
        "a document; tests/cli/test_cli_jobs.py has it",
    ),
    ("docs/cli.md", "$ headway webhooks test", "it needs a receiver; docs/webhooks.md has one"),
    ("docs/cli.md", "$ headway work", "a worker that stays; tests/cli and tests/worker have them"),
    ("docs/cli.md", "$ headway serve", "a server that stays; scenes start one"),
    ("docs/cli.md", "$ headway mcp", "a server that stays; tests/mcp start one"),
    ("docs/mcp.md", "pip install", "`make test-runners` does it with the agent programs"),
    ("docs/mcp.md", "claude mcp add", "`make test-runners` does it with the agent programs"),
    (
        "docs/mcp.md",
        "$ headway jobs approvals",
        "tests/mcp/test_stdio.py approves what an agent submits",
    ),
    ("docs/cli.md", "$ headway service install", "it would change the host of whoever tests"),
    ("docs/cli.md", '$ eval "$(headway completion', "it is for bash, and blocks are run by sh"),
    (
        "docs/functions.md",
        "headway work --app shop",
        "a worker that stays; tests/cli/test_cli_functions.py has it",
    ),
    ("docs/functions.md", "with psycopg.connect", "it needs a server, and tables of the reader's"),
    ("docs/graphs.md", "a = fetch.call", PART),
    ("docs/dashboard.md", "$ pip install", "a server that stays; scenes start one"),
    ("docs/http.md", "$ pip install", "a server that stays; scenes start one"),
    ("docs/jobs-file.md", "# yaml-language-server", PART),
    ("docs/retries.md", "@app.task", PART),
    ("docs/security.md", "$ git clone", "it clones from another site"),
    ("docs/service.md", "$ headway service install", "it would change the host of whoever tests"),
    ("docs/service.md", "@reboot", "cron runs it; a test below compares the line"),
    ("docs/settings.md", "[", PART),
    ("docs/top.md", "headway ~/shop", "a screen; tests/cli/test_panes_frame.py has its rows"),
    ("docs/torture.md", "make torture", LONG),
    ("docs/workflows.md", "#:schema", PART),
    ("docs/workflows.md", "[imports", PART),
    ("docs/workflows.md", "[nodes.code]", CHECKED),
    ("docs/workflows.md", "[nodes.list]", CHECKED),
    ("docs/workflows.md", "[nodes.report]", PART),
    (
        "docs/workflows.md",
        "headway: code",
        "what a run says; tests/cli/test_cli_run.py has such lines",
    ),
    (
        "examples/agent-change/README.md",
        "",
        "tests/docs/test_agent_change_example.py runs the example",
    ),
    ("examples/release/README.md", "", "tests/docs/test_release_example.py runs the example"),
    ("examples/housekeeping/README.md", "", "tests/docs/test_housekeeping.py runs the example"),
]


def executed_in_a_scene(block: Block) -> bool:
    return any(
        block.page == scene.page and block.text.startswith(begins)
        for scene in SCENES.values()
        for begins in scene.begins()
    )


def executed_elsewhere(block: Block) -> bool:
    if executed_in_a_scene(block):
        return True
    whole = any(block.page == page and block.kind in kinds for page, kinds, _ in ELSEWHERE)
    return whole or any(
        block.page == page and block.first.startswith(begins) for page, begins, _ in ONE_ELSEWHERE
    )


def executed_here(block: Block) -> bool:
    return any(block.page == page and block.first.startswith(begins) for page, begins in HERE)


def excuse(block: Block) -> str | None:
    fitting = [
        (len(begins), why)
        for page, begins, why in NOT_EXECUTED
        if block.page == page and block.first.startswith(begins)
    ]
    return max(fitting)[1] if fitting else None


def test_no_block_is_skipped_in_silence() -> None:
    executed = [each for each in BLOCKS if executed_elsewhere(each) or executed_here(each)]
    rest = [each for each in BLOCKS if each not in executed]
    assert [(each.page, each.first) for each in rest if excuse(each) is None] == []


def test_every_row_of_the_tables_is_about_a_block() -> None:
    for page, kinds, module in ELSEWHERE:
        assert {each.kind for each in BLOCKS if each.page == page} >= set(kinds), page
        source = (Path(__file__).parent / module).read_text(encoding="utf-8")
        assert page.rpartition("/")[2] in source, f"{module} does not read {page}"
    for page, begins in [*HERE, *(row[:2] for row in ONE_ELSEWHERE)]:
        found = [each for each in BLOCKS if each.page == page and each.first.startswith(begins)]
        assert len(found) == 1, (page, begins)
    for page, begins, _ in NOT_EXECUTED:
        left = [
            each
            for each in BLOCKS
            if each.page == page and each.first.startswith(begins) and not executed_here(each)
        ]
        assert left, (page, begins)


# -- executed here -------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path, env={"HEADWAY_ACTOR": "ada"})
    yield site
    site.close()


@pytest.fixture
def shell_env(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A repository with a commit, the program on the PATH, and stand-ins for readers' scripts."""
    folder = tmp_path_factory.mktemp("bin")
    program = folder / "headway"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m headway "$@"\n')
    program.chmod(0o755)
    who = {"NAME": "ada", "EMAIL": "ada@example.org"}
    names = {f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()}
    env = {**site.env, **names, "PATH": f"{folder}{os.pathsep}{site.env['PATH']}"}
    for script in ("write-chapter", "send"):
        (site.folder / script).write_text("#!/bin/sh\n")
        (site.folder / script).chmod(0o755)
    (site.folder / "Makefile").write_text("all test publish report:\n\t@true\n")
    (site.folder / "totals.json").write_text("{}")
    (site.folder / ".gitignore").write_text("*\n!plan.md\n!built\n")
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *words], cwd=site.folder, env=env, check=True)
    return env


@pytest.mark.parametrize(("page", "begins"), HERE)
def test_the_block_runs(site: Site, shell_env: dict[str, str], page: str, begins: str) -> None:
    (block,) = [each for each in BLOCKS if each.page == page and each.first.startswith(begins)]
    if block.kind == "python":
        file = site.folder / "block.py"
        file.write_text(block.text)
        run(site, shell_env, f"{sys.executable} -P block.py", "...")
        return
    if block.kind == "console":
        for entry in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
            command, _, shown = entry.partition("\n")
            run(site, shell_env, command, shown)
        return
    for command in block.commands():
        run(site, shell_env, command, "...")


def test_the_line_of_a_crontab_is_what_install_writes() -> None:
    (block,) = [each for each in BLOCKS if each.first.startswith("@reboot")]
    plan = make_plan(
        "/srv/project/.headway",
        python="/usr/bin/python3",
        log="/srv/project/.headway/run/worker.log",
        store_url=None,
        grace_seconds=0,
        environ={"PATH": "/usr/bin:/bin"},
    )
    shown, written = (text.rpartition("-")[0] for text in (block.first, cron_line(plan)))
    assert shown == written, "but for the hash at its end"


# -- read ------------------------------------------------------------------------------------------


def headway_words(line: str) -> list[str] | None:
    """The arguments of the first `headway` of a line; None if it has none."""
    words = shlex.split(re.sub(r"\$\([^)]*\)", "value", line), comments=True)
    if "headway" not in words:
        return None
    words = words[words.index("headway") + 1 :]
    ends = [words.index(sign) for sign in ("&&", "||", "|", ">", ";") if sign in words]
    return words[: min(ends, default=len(words))]


def parse(command: click.Command, words: list[str], parent: click.Context | None = None) -> None:
    context = command.make_context(command.name, words, parent=parent)
    if isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        _, following, arguments = command.resolve_command(context, rest)
        assert following is not None
        parse(following, list(arguments), context)


LINES = [
    (block.page, line)
    for block in BLOCKS
    if block.kind in ("sh", "console", "")
    for line in block.commands()
    if line.startswith("headway ")
]


@pytest.mark.parametrize(("page", "line"), LINES)
def test_the_program_understands_the_command(
    page: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = headway_words(line)
    assert words is not None
    parse(cli, words)


def test_python_toml_and_json_can_be_read() -> None:
    read = 0
    for block in BLOCKS:
        if block.page.startswith("examples/"):  # with `...` for what stands in the example itself
            continue
        if block.kind == "python":
            compile(block.text, block.page, "exec")
        elif block.kind == "toml":
            tomllib.loads(block.text)
        elif block.kind == "json" and "..." not in block.text:
            json.loads(block.text)
        else:
            continue
        read += 1
    assert read >= 20
