"""What `import headway` gives, and what it costs."""

import re
import subprocess
import sys
from functools import cached_property
from importlib import import_module
from pathlib import Path

import pytest

import headway
import headway.testing
from harness import Bench
from headway.cli.commands import COMMANDS
from headway.client import EARLIER, Client
from headway.functions.task_options import OPTIONS

SOURCES = Path(__file__).parents[1] / "src"
HEAVY = (
    "apsw",
    "click",
    "rich",
    "tomlkit",
    "mcp",
    "pydantic",
    "headway.worker",
    "headway.cli",
    "headway.store.sqlite.database",
)


def test_importing_headway_loads_nothing_heavy() -> None:
    script = "import sys, headway; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert "headway" in loaded
    assert [name for name in loaded if name.startswith(HEAVY)] == []


def test_the_public_names_are_these() -> None:
    """One that is added or removed is a decision, and a line in the changelog."""
    assert headway.__all__ == [
        *("App", "AppWorkflow", "Client", "Handle", "HeadwayError", "InvalidInputError", "Item"),
        *("JobContext", "Plan", "Request", "Retry", "RunHandle", "Seen", "Skip"),
        *("TaskFailedError", "TimedOutError"),
        *("agent_request", "condition", "connect", "current", "job", "poll"),
    ]
    assert all(getattr(headway, name) is not None for name in headway.__all__)
    assert headway.testing.__all__ == ["FakeClock", "drain", "make_test_home", "using"]


@pytest.mark.parametrize("word", sorted(OPTIONS))
def test_every_option_of_a_task_is_documented(word: str) -> None:
    page = (SOURCES.parent / "docs" / "functions.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert any(f"`{word}`" in row.split("|")[1] for row in rows), word


def test_every_public_name_is_documented() -> None:
    page = (SOURCES.parent / "docs" / "python.md").read_text(encoding="utf-8")
    rows = {row.split("`")[1] for row in page.splitlines() if row.startswith("| `headway.")}
    assert rows == {f"headway.{name}" for name in headway.__all__} | {
        f"headway.testing.{name}" for name in headway.testing.__all__
    }


def nouns() -> dict[str, type]:
    """The nouns of a client, by the classes that its properties say they have."""
    found = {}
    for name, value in vars(Client).items():
        if isinstance(value, cached_property):
            room = NOUNS.get(name, "jobs")
            module = import_module(f"headway.{room}.nouns")
            found[name] = getattr(module, value.func.__annotations__["return"])
    return found


NOUNS = {
    **dict.fromkeys(("schedules", "jobsfile"), "schedules"),
    **dict.fromkeys(("items", "targets"), "workitems"),
    "workflows": "workflows",
    "admin": "admin",
    "tokens": "admin",
    "webhooks": "webhooks",
}


def test_every_verb_of_a_client_is_documented() -> None:
    page = (SOURCES.parent / "docs" / "python.md").read_text(encoding="utf-8")
    for noun, kind in nouns().items():
        (row,) = [each for each in page.splitlines() if each.startswith(f"| `client.{noun}`")]
        verbs = {each for each in dir(kind) if not each.startswith("_")}
        assert set(re.findall(r"`(\w+)`", row.split("|")[2])) == verbs, noun


# What a command does besides verbs: it reads files, watches, starts a worker, or opens no store.
NO_VERBS = {
    *("exec", "direct", "completion", "init", "restore", "trust", "work", "schedules explain"),
    *("service install", "service remove", "service status", "scheduler run", "jobs tail"),
    *("tail", "logs", "help", "serve", "mcp"),
}
VERBS = {
    **{name: f"jobs.{name}" for name in ("list", "show", "wait", "approve", "cancel", "retry")},
    "status": "scheduler.status",
    "top": "jobs.recent",
    "run": "workflows.start",
    "stop": "scheduler.stop_worker",
    "config unset": "admin.unset",
    "submit": "jobs.submit",
    "why": "jobs.why",
    "jobs status": "jobs.get",
    "jobs schedule": "jobs.graph",
    "runs show": "jobs.run",
    "runs retry": "jobs.retry",
    "locks": "scheduler.locks",
    "sling": "items.sling",
    "scheduler list": "items.list",
    "scheduler clear": "items.clear",
    "config get": "scheduler.settings",
    "config list": "scheduler.settings",
    "config set": "admin.configure",
    "doctor": "admin.doctor",
    "backup": "admin.backup",
    "web login": "tokens.login_code",
    "webhooks import": "webhooks.import_",
}


@pytest.mark.parametrize("command", [name for name, (place, _) in COMMANDS.items() if place])
def test_every_command_is_a_verb_of_the_client(command: str) -> None:
    if command in NO_VERBS:
        return
    noun, _, verb = VERBS.get(command, command.replace(" ", ".")).partition(".")
    assert callable(getattr(nouns()[noun], verb)), command


EARLIER_IMPORTS = [
    ("headway.submission", "Request", headway.Request),
    ("headway.grouping", "Plan", headway.Plan),
    ("headway.app", "App", headway.App),
    ("headway.app", "Handle", headway.Handle),
    ("headway.app", "TaskFailedError", headway.TaskFailedError),
    ("headway.sources", "Seen", headway.Seen),
    ("headway.runners", "agent_request", headway.agent_request),
]


@pytest.mark.parametrize(("module", "name", "now"), EARLIER_IMPORTS)
def test_a_documented_import_of_before_warns(module: str, name: str, now: object) -> None:
    with pytest.warns(DeprecationWarning, match=f"{module}.{name} is now headway.{name}"):
        assert getattr(import_module(module), name) is now
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        import_module(module).nothing  # noqa: B018


@pytest.mark.parametrize("how", ["grouping", "templating"])
def test_a_documented_function_of_before_is_a_verb_of_the_client(how: str, bench: Bench) -> None:
    module = import_module(f"headway.{how}")
    if how == "grouping":
        with pytest.warns(DeprecationWarning, match="is now headway.Client.groups.submit"):
            submit_group = module.submit_group
        made, _ = submit_group(bench.client, [headway.Request(argv=("true",))], headway.Plan())
        assert bench.client.groups.show(f"group-{made.group}")["total"] == 1
        return
    with pytest.warns(DeprecationWarning) as warned:
        add, archive = module.add_template, module.archive_template
        submit = module.submit_template
    assert "headway.templating.add_template is now" in str(warned[0].message)
    add(bench.client, "build", argv=["true"])
    assert submit(bench.client, "build").created
    assert archive(bench.client, "build")


@pytest.mark.parametrize("name", sorted(EARLIER))
def test_a_method_of_before_warns(name: str, bench: Bench) -> None:
    with pytest.warns(DeprecationWarning, match=f"Client.{name} is now Client.{EARLIER[name]}"):
        assert getattr(bench.client, name) is not None


def test_nouns_that_were_methods_can_still_be_called(bench: Bench) -> None:
    with pytest.warns(DeprecationWarning, match="is now Client.groups.list"):
        assert bench.client.groups() == []
    with pytest.warns(DeprecationWarning, match="is now Client.schedules.list"):
        assert bench.client.schedules() == []
    with pytest.raises(AttributeError, match="a client has no 'nothing'"):
        bench.client.nothing  # noqa: B018
