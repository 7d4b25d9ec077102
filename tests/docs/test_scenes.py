"""Blocks of the docs that need something before them: jobs, groups, items, a program.

A scene plays blocks of one page in one folder, in this order, with a real worker. What is only
needed to get there happens behind the scene. The output of a `console` block is compared; that of
others is an example.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from test_tour import run

from harness import Site, wait_for
from headway.core.states import Status

DOCS = Path(__file__).parents[2] / "docs"
ANY_BLOCK = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.M | re.S)


class Behind(NamedTuple):
    """A command line that the page does not show."""

    line: str


class Until(NamedTuple):
    """Wait until this job has that status."""

    job_id: int
    status: Status


class Inside(NamedTuple):
    """The block that begins so, inside of a job."""

    begins: str


class Written(NamedTuple):
    """The block that begins so, as a file."""

    begins: str
    path: str


class Part(NamedTuple):
    """The block that begins so is a part of the document that a command prints."""

    begins: str
    line: str


class Serving(NamedTuple):
    """A server of this folder: the one that a page calls 127.0.0.1:7433."""


class Session(NamedTuple):
    """The block that begins so, in one shell, whose variables the following ones have."""

    begins: str


class Listening(NamedTuple):
    """The block that begins so does not end; it is ended when it has shown this."""

    begins: str
    shown: str


Step = str | Behind | Until | Inside | Written | Part | Serving | Session | Listening


class Scene(NamedTuple):
    page: str
    steps: tuple[Step, ...]

    def begins(self) -> list[str]:
        """How the blocks begin that it plays."""
        played = [step for step in self.steps if not isinstance(step, Behind | Until | Serving)]
        return [step if isinstance(step, str) else step.begins for step in played]


OPEN = "state = 'open'\\n"
CALLED = "127.0.0.1:7433"  # by pages; another server may be there
SCENES = {
    "a job": Scene(
        "docs/cli.md",
        (
            "$ headway submit --name nightly",
            Behind("headway jobs wait 1"),
            "$ headway jobs status 1",
            "$ headway logs 1",
            "$ headway jobs show 1",
            "$ headway jobs tail -f 1",
            "$ headway runs show run-1",
            "$ headway exec --lock repo",
            "$ headway jobs gc",
            "$ headway jobs clean 1",
        ),
    ),
    "a copy": Scene(
        "docs/cli.md",
        (
            Behind("headway exec -- true"),
            "$ headway backup",
            "$ headway stop",
            "$ headway restore",
        ),
    ),
    "a run": Scene(
        "docs/cli.md",
        (Behind("headway workflows init release"), "$ headway run release"),
    ),
    "a workflow": Scene(
        "docs/workflows.md",
        (
            Behind("mkdir -p .headway/workflows"),
            Written('inputs = ["who"]', ".headway/workflows/hello.toml"),
            "headway run hello ada --follow",
            "headway schedules add nightly --cron",
        ),
    ),
    "a failure": Scene(
        "docs/cli.md",
        (
            Behind("headway submit -- true"),
            Behind("headway submit --shell 'exit 2'"),
            Behind("headway submit --after 2 -- true"),
            "$ headway jobs wait 1 2",
            "$ headway jobs retry 2",
            Behind("headway jobs wait 4 || true"),
            "$ headway runs retry run-2",
        ),
    ),
    "a queue": Scene(
        "docs/cli.md",
        (
            Behind("headway submit --name deploy --lock repo -- sleep 600"),
            Until(1, Status.RUNNING),
            Behind("headway submit --name later -- echo later"),
            Behind("headway submit --name test --lock repo -- make test"),
            "$ headway jobs list",
            "$ headway why 2",
            "$ headway status",
            "$ headway locks",
            "$ headway jobs schedule",
            "$ headway scheduler status",
            "$ headway scheduler run --dry-run",
            "$ headway jobs move 3",
            "$ headway jobs reorder 2 3",
            "$ headway jobs edit 2",
            "$ headway scheduler pause",
            "$ headway scheduler resume",
            "$ headway scheduler reset",
            Behind("headway scheduler pause"),
            "$ headway jobs cancel 1 2",
        ),
    ),
    "webhooks": Scene(
        "docs/cli.md",
        (
            "$ headway webhooks add ops",
            "$ headway webhooks list",
            "$ headway webhooks show ops",
            "$ headway webhooks pause ops",
            "$ headway webhooks resume ops",
            "$ headway webhooks rotate ops",
            "$ headway webhooks secret ops\n",
            "$ headway webhooks secret ops | headway webhooks import ops",
            "$ headway webhooks deliveries",
            "$ headway webhooks replay",
            "$ headway webhooks remove ops",
        ),
    ),
    "approvals": Scene(
        "docs/cli.md",
        (
            Behind("git config user.name Ada && git config user.email ada@example.org"),
            Behind("headway submit --name deploy --require-approval -- make report"),
            Behind("headway submit --require-approval -- true"),
            "$ headway jobs approvals",
            "$ headway jobs approve 1",
            "$ headway jobs reject 2",
            Behind("headway submit --pin-head --delay 1h -- true"),
            Behind("git commit -q --allow-empty -m second"),
            "$ headway jobs repin 3",
        ),
    ),
    "artifacts": Scene(
        "docs/cli.md",
        (
            Inside("$ headway artifacts publish"),
            "$ headway artifacts list",
            "$ headway artifacts show",
        ),
    ),
    "a group": Scene(
        "docs/cli.md",
        (
            "$ headway groups create --name nightly",
            Behind("headway submit --group nightly -- true"),
            Behind("headway submit --group nightly --shell 'exit 3'"),
            "$ headway groups list",
            "$ headway groups show nightly",
            "$ headway groups wait nightly",
            "$ headway groups close nightly",
            Behind("headway groups create --name nightly"),
            "$ headway groups cancel nightly",
        ),
    ),
    "work items": Scene(
        "docs/cli.md",
        (
            Behind(f'mkdir .headway/tasks && printf "{OPEN}" >.headway/tasks/gt-abc.toml'),
            Behind("cp .headway/tasks/gt-abc.toml .headway/tasks/gt-def.toml"),
            "$ headway targets add gastown",
            "$ headway targets list",
            "$ headway targets show gastown",
            Behind("headway scheduler pause"),
            "$ headway sling gt-abc",
            "$ headway scheduler list",
            "$ headway scheduler clear --subject gt-abc",
            Behind("headway scheduler clear"),
            "$ headway targets remove gastown",
        ),
    ),
    "templates": Scene(
        "docs/cli.md",
        (
            "$ headway templates add build",
            "$ headway templates list",
            "$ headway templates show build",
            "$ headway templates archive build",
        ),
    ),
    "schedules": Scene(
        "docs/cli.md",
        (
            "$ headway schedules add --name backup",
            "$ headway schedules list",
            "$ headway schedules show backup",
            "$ headway schedules disable backup",
            "$ headway schedules enable backup",
            "$ headway schedules trigger backup",
            "$ headway schedules remove backup",
            "$ headway schedules explain",
        ),
    ),
    "a jobs file": Scene(
        "docs/cli.md",
        (
            Behind(
                "printf 'jobs:\\n  tidy: {type: command, run: [make, all], interval: 1h}\\n'"
                " >.headway/jobs.yaml"
            ),
            "$ headway jobsfile check",
            "$ headway jobsfile list",
            "$ headway jobsfile schema",
        ),
    ),
    "settings": Scene(
        "docs/cli.md",
        (
            "$ headway config get scheduler.max_active",
            "$ headway config set scheduler.max_active",
            "$ headway config unset scheduler.max_active",
            "$ headway config list",
            "$ headway runners list",
            "$ headway runners show claude",
            "$ headway runners resume claude",
        ),
    ),
    "a home": Scene(
        "docs/cli.md",
        (
            "$ headway init",
            "$ headway trust",
            "$ headway doctor",
            "$ headway service status",
            "$ headway service remove",
            "$ headway help jobs retry",
        ),
    ),
    "decisions": Scene(
        "docs/gates.md",
        (
            Behind("headway submit --require-approval -- true"),
            Behind("headway submit --require-approval -- true"),
            "headway jobs approvals",
        ),
    ),
    "worktrees": Scene(
        "docs/worktrees.md",
        ("$ headway submit --worktree", "$ headway submit --needs command_patch:job-1"),
    ),
    "functions": Scene(
        "docs/functions.md",
        (
            Behind("mkdir docs && touch docs/1 docs/2 docs/3 docs/4 docs/5 docs/6"),
            Behind("touch docs/7 docs/8 docs/9 docs/10 docs/11 docs/12"),
            Written("import os\n", "mymodule.py"),
            Written("from mymodule import build\n", "night.py"),
            "$ headway config set app.modules mymodule",
            Written("from headway.testing import drain", "test_build.py"),
            Behind("python -m pytest -q -p no:cacheprovider test_build.py"),
        ),
    ),
    "steps": Scene(
        "docs/functions.md",
        (
            Written("import headway\n", "orders.py"),
            "$ headway config set app.modules orders",
        ),
    ),
    "a workflow in Python": Scene(
        "docs/workflows.md",
        (
            Written("import headway\n", "shop.py"),
            Written("from shop import release\n", "ship.py"),
            "headway config set app.modules shop",
            Behind("test $(headway jobs list --all --json | grep -c succeeded) -ge 4"),
        ),
    ),
    "items of a tracker": Scene(
        "docs/sling.md",
        (
            Behind("mkdir .headway/tasks && cd .headway/tasks && touch gt-abc.toml gt-def.toml"),
            Behind("echo 'parent = \"gt-epic\"' >.headway/tasks/gt-one.toml"),
            Behind("echo 'kind = \"tree\"' >.headway/tasks/gt-epic.toml"),
            Behind(
                'printf \'kind = "group"\\nchildren = ["gt-def"]\\n\''
                " >.headway/tasks/hq-convoy.toml"
            ),
            Behind("headway scheduler pause"),
            "headway config set scheduler.max_active 5",
        ),
    ),
    "a workflow as recipe": Scene(
        "docs/sling.md",
        (
            Behind("mkdir .headway/tasks .headway/workflows && touch .headway/tasks/gt-abc.toml"),
            Written("[params]\nslug", ".headway/workflows/change.toml"),
            Behind("headway scheduler pause"),
            "headway targets add gastown --prefix gt- --workflow",
            Behind("headway scheduler list | grep 'wf-1 job-1'"),
        ),
    ),
    "a recipe with a shell": Scene(
        "docs/sling.md",
        (
            "headway targets add gastown --prefix gt- -- sh -c",
            Behind("mkdir .headway/tasks && cd .headway/tasks && touch database.toml session.toml"),
            Behind("echo 'kind = \"tree\"' >.headway/tasks/login.toml"),
            Written("---\n", ".headway/tasks/keys.md"),
            Behind("headway targets add all -- echo '{subject}'"),
            Behind("headway sling keys all && headway why 1 | grep 'blocked by database'"),
        ),
    ),
    "over HTTP": Scene(
        "docs/http.md",
        (
            Serving(),
            Session("export TOKEN="),
            '$ curl -s -H "$AUTH" $API/jobs -H \'Content-Type: application/json\' -d \'{"argv"',
            "$ curl -s -H \"$AUTH\" $API/jobs -H 'Content-Type: application/json' -H 'Prefer",
            '$ curl -sN -H "$AUTH" $API/jobs/job-2/logs',
            Listening("curl -sN", "event: hello"),
            '$ curl -s -H "$AUTH" "$API/events',
            Written("import json\nimport os\nimport urllib", "ask.py"),
            Written("import json\n\nfrom ask import ask\n\njob =", "wait.py"),
            Behind("python wait.py | grep -q '^succeeded hello'"),
            '$ curl -s -H "$AUTH" $API/reservations',
            "$ headway templates add deploy",
        ),
    ),
    "approvals over HTTP": Scene(
        "docs/http.md",
        (
            Serving(),
            Session("export TOKEN="),
            Behind("headway submit --name deploy --require-approval -- make deploy"),
            Written("import json\nimport os\nimport urllib", "ask.py"),
            Written("import json\nimport os\n\nfrom ask", "approve.py"),
            Behind("PERSON=$(headway tokens add ada --role operate) python approve.py"),
            Behind("headway jobs wait 1"),
        ),
    ),
    "a server": Scene(
        "docs/cli.md",
        (
            Serving(),
            "$ headway web login",
            "$ headway tokens add laptop",
            "$ headway tokens list",
            "$ headway tokens revoke laptop",
        ),
    ),
    "views": Scene(
        "docs/views.md",
        (
            Behind("headway config set scheduler.max_active 2"),
            Behind("headway config set scheduler.missing_producer wait"),
            Behind("headway exec --name 'fetch prices' --produces custom:data:prices -- true"),
            Behind("headway stop && headway config set worker.autostart false"),
            Behind("headway submit --name lint --slug lint -- false"),
            Behind("headway submit --name 'build shop' --slug build --lock tree -- sleep 600"),
            Behind("headway submit --name 'publish docs' --after 2 -- true"),
            Behind("headway submit --name 'unit tests' --slug test --after 3 -- true"),
            Behind(
                "headway submit --name 'import prices' --needs custom:data:prices"
                " --needs custom:data:rates -- true"
            ),
            Behind("headway submit --name 'nightly report' --pin-head -- true"),
            Behind("git commit -q --allow-empty -m second"),
            Behind("headway submit --name 'clean the tree' --lock tree -- true"),
            Behind("headway submit --name deploy --slug deploy --require-approval -- true"),
            Behind(
                "headway submit --name announce --after 5 --after 9"
                " --needs custom:data:prices -- true"
            ),
            Behind("headway config set worker.autostart true && headway scheduler resume"),
            Until(3, Status.RUNNING),
            Until(4, Status.BLOCKED_BY_DEPENDENCY),
            Until(7, Status.WAITING_ON_DEPS),
            Until(8, Status.WAITING_ON_LOCKS),
            Until(9, Status.WAITING_ON_APPROVAL),
            "$ headway jobs schedule\n",
            "$ headway jobs schedule --format dag",
            Part("{\n", "headway jobs schedule --json"),
            "$ headway jobs list --since 1h",
            "$ headway jobs show 9",
            Written("[display.lists.jobs]", ".headway/config.toml"),
            Behind("headway jobs list && headway jobs show 9"),
        ),
    ),
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path, env={"USER": "ada"})
    yield site
    site.close()


# Programs that a reader has, and what they do here.
STAND_INS = {
    "pytest": "true",
    "my-agent": 'echo "$1" >>notes.txt',
    "review": 'cat "$1"',
    "claude": "true",
}


@pytest.fixture
def shell_env(site: Site, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A repository with a commit, the program on the PATH, and stand-ins for readers' programs."""
    folder = tmp_path_factory.mktemp("bin")
    python = f'exec {sys.executable} "$@"'
    headway = f'exec {sys.executable} -P -m headway "$@"'
    programs = {"headway": headway, "python": python, **STAND_INS}
    for name, line in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
    who = {"NAME": "Ada", "EMAIL": "ada@example.org"}
    names = {f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()}
    env = {**site.env, **names, "PATH": f"{folder}{os.pathsep}{site.env['PATH']}"}
    (site.folder / "Makefile").write_text("all test report deploy backup work:\n\t@true\n")
    (site.folder / "totals.json").write_text("{}")
    (site.folder / ".gitignore").write_text("*\n!notes.txt\n")
    for words in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *words], cwd=site.folder, env=env, check=True)
    return env


def block_of(page: str, begins: str) -> tuple[str, str]:
    """The kind and the text of the one block that begins so."""
    text = (DOCS.parent / page).read_text(encoding="utf-8")
    found = [(kind, body) for kind, _, body in ANY_BLOCK.findall(text) if body.startswith(begins)]
    assert len(found) == 1, (page, begins, len(found))
    return found[0]


def commands_of(kind: str, text: str) -> list[tuple[str, str]]:
    """What a reader types, with what must be shown."""
    if kind == "sh":
        return [(line, "...") for line in text.splitlines() if line.strip()]
    entries = (entry.partition("\n") for entry in re.split(r"^\$ ", text, flags=re.M)[1:])
    return [(line, shown if kind == "console" else "...") for line, _, shown in entries]


def is_settled(site: Site) -> bool:
    """What is shown next will not change by itself: no worker has still to check a job."""
    if not site.client.context.worker_is_there():
        return True
    with site.client.context.store.read() as tx:
        return not tx.waits.anything_woken()


def has_status(site: Site, step: Until) -> bool:
    return site.status(step.job_id) is step.status


def here(text: str, env: dict[str, str]) -> str:
    """With the address of the server that is really there."""
    return text.replace(CALLED, env.get("SERVED", CALLED))


def run_session(site: Site, env: dict[str, str], text: str) -> None:
    script = f"{here(text, env)}\nenv -0 >.variables"
    run(site, env, script, "...")
    file = site.folder / ".variables"
    env.update(each.split("=", 1) for each in file.read_text().split("\0") if "=" in each)


def listen(site: Site, env: dict[str, str], text: str, shown: str) -> None:
    with subprocess.Popen(
        ["/bin/sh", "-c", f"exec {here(text, env)}"],
        cwd=site.folder,
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any(shown in line for line in process.stdout)
        process.kill()


def play(site: Site, env: dict[str, str], page: str, step: Step) -> None:
    match step:
        case Serving():
            env["SERVED"] = f"127.0.0.1:{site.serve(env=env).port}"
        case Session(begins):
            run_session(site, env, block_of(page, begins)[1])
        case Listening(begins, shown):
            listen(site, env, block_of(page, begins)[1], shown)
        case Behind(line):
            run(site, env, line, "...")
        case Until():
            wait_for(lambda: has_status(site, step), what=f"{step}")
        case Inside(begins):
            for line, shown in commands_of(*block_of(page, begins)):
                run(site, env, f"headway exec --shell {shlex.quote(line)}", shown)
        case Written(begins, path):
            (site.folder / path).write_text(here(block_of(page, begins)[1], env))
        case Part(begins, line):
            part = json.loads(block_of(page, begins)[1])
            done = subprocess.run(line.split(), cwd=site.folder, env=env, capture_output=True)
            check_part(part, json.loads(done.stdout))
        case str():
            for line, shown in commands_of(*block_of(page, step)):
                run(site, env, line, shown)


def check_part(part: dict[str, Any], whole: dict[str, Any]) -> None:
    """Some jobs and edges of a schedule. Their times and their places among all jobs differ."""
    assert list(part) == list(whole)
    assert all(edge in whole["edges"] for edge in part["edges"])
    jobs = {each["job_id"]: each for each in whole["jobs"]}
    for each in part["jobs"]:
        found = jobs[each["job_id"]]
        assert {**found, "order": each["order"], "created_at": each["created_at"]} == each


@pytest.mark.parametrize("name", SCENES)
def test_the_blocks_of_a_scene_run(site: Site, shell_env: dict[str, str], name: str) -> None:
    scene = SCENES[name]
    for step in scene.steps:
        play(site, shell_env, scene.page, step)
        wait_for(lambda: is_settled(site), what=f"the worker to look, after: {step}")
