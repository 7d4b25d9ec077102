"""Every command has help that loads nothing else, and all of it is in docs/cli.md."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
from commandline import CommandLine

from headway.cli.commands import COMMANDS
from headway.cli.main import cli
from headway.jobs.settings import SETTINGS

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def command(path: str) -> click.Command:
    context = click.Context(cli, info_name="headway")
    found: click.Command = cli
    for word in path.split():
        assert isinstance(found, click.Group)
        inner = found.get_command(context, word)
        assert inner is not None
        found = inner
    return found


PLACES = [place for place, _ in COMMANDS.values()]
SAME = [path for path, (place, _) in COMMANDS.items() if place and PLACES.count(place) > 1]
SHORT_NAMES = [path for path in SAME if " " not in path]


@pytest.mark.parametrize("path", SHORT_NAMES)
def test_short_name_is_documented(path: str) -> None:
    assert f"| `headway {path}" in PAGE
    assert f"](#headway-jobs-{path})" in PAGE


@pytest.mark.parametrize("path", [path for path in COMMANDS if path not in SHORT_NAMES])
def test_command_is_documented_with_its_options(path: str) -> None:
    assert f"## headway {path}\n" in PAGE
    section = PAGE.split(f"## headway {path}\n")[1].split("\n## ")[0]
    for parameter in command(path).params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            shared = path == "exec" and parameter in command("submit").params
            whole = ("exec", "templates add", "schedules add")
            place = PAGE if shared or path in whole else section
            assert parameter.opts[0] in place, f"{path}: {parameter.opts[0]}"


@pytest.mark.parametrize("key", SETTINGS)
def test_setting_is_documented(key: str) -> None:
    assert f"`{key}`" in PAGE


@pytest.mark.parametrize("path", COMMANDS)
def test_command_has_help_of_its_own_that_fits(path: str) -> None:
    found = command(path)
    context = click.Context(found, info_name=path, terminal_width=80)
    help_text = found.get_help(context)
    assert found.help
    assert all(len(line) <= 80 for line in help_text.splitlines())
    assert COMMANDS[path][1].endswith(".")


def test_help_lists_every_command(bare: CommandLine) -> None:
    told = bare("--help").stdout
    assert all(name in told for name in COMMANDS if " " not in name)
    assert all(len(line) <= 80 for line in told.splitlines())
    assert "Usage: headway jobs list" in bare("jobs", "list", "-h").stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["worker"], "No such command 'worker'. (Did you mean work?)"),
        (["job", "list"], "No such command 'job'. (Did you mean jobs?)"),
        (["jobs", "lst"], "No such command 'lst'. (Did you mean list?)"),
        (["xyzzy"], "No such command 'xyzzy'.\n"),
    ],
)
def test_a_command_that_is_not_there(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(click.UsageError) as caught:
        cli.main(words, prog_name="headway", standalone_mode=False)
    caught.value.show()
    assert told in capsys.readouterr().err and caught.value.exit_code == 2


def test_help_loads_no_command() -> None:
    script = (
        "import sys\nfrom headway.cli.main import run\nrun(['--help'])\nrun(['jobs', '--help'])\n"
        "print(sorted(m for m in sys.modules if m.startswith('headway.')), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = done.stderr
    assert "headway.cli.commands" in loaded
    assert not any(word in loaded for word in ("headway.client", "cli.submit", "cli.listing"))


# Everything of ours that `headway submit -- true` loads, and nothing else. To add a line here makes
# every submit slower: `make bench-startup` says by how much.
OF_A_SUBMIT = {
    "headway",
    "headway.client",
    "headway.base",
    "headway.base.clock",
    "headway.base.crashpoints",
    "headway.base.environment",
    "headway.base.errors",
    "headway.base.home",
    "headway.base.new_home",
    "headway.base.proc",
    "headway.base.store_trust",
    "headway.base.toml_file",
    "headway.base.trust",
    "headway.base.units",
    "headway.base.worker_lock",
    "headway.cli",
    "headway.cli.commands",
    "headway.cli.main",
    "headway.cli.options",
    "headway.cli.scope",
    "headway.cli.submit",
    "headway.core",
    "headway.core.model",
    "headway.core.states",
    "headway.jobs",
    "headway.jobs.context",
    "headway.jobs.insert",
    "headway.jobs.references",
    "headway.jobs.request",
    "headway.jobs.settings",
    "headway.jobs.specification",
    "headway.jobs.views",
    "headway.jobs.views.fields",
    "headway.jobs.wake",
    "headway.jobs.submit",
    "headway.store",
    "headway.store.access",
    "headway.store.bulk",
    "headway.store.new_jobs",
    "headway.store.patience",
    "headway.store.queries",
    "headway.store.rows",
    "headway.store.step_cache",
    "headway.store.sqlite",
    "headway.store.sqlite.database",
    "headway.store.sqlite.errors",
    "headway.store.sqlite.filesystems",
    "headway.store.sqlite.store",
    "headway.store.store",
    "headway.store.transaction",
}
# Of others, what would come back easily and cost a millisecond or more.
NOT_OF_A_SUBMIT = {
    *("asyncio", "dataclasses", "importlib.metadata", "importlib.resources", "logging", "pathlib"),
    *("random", "rich", "secrets", "shutil", "subprocess", "tempfile", "tomlkit", "urllib"),
    *("cronsim", "yaml", "zoneinfo"),
}


@pytest.mark.bulk
def test_submit_loads_what_it_needs_and_nothing_else(still: CommandLine) -> None:
    still("submit", "--", "true")  # makes the store
    script = (
        "import sys\nbefore = set(sys.modules)\nfrom headway.cli.main import run\n"
        "run(['submit', '--', 'true'])\nprint(*set(sys.modules) - before, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        cwd=still.folder,
        env=still.env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    loaded = set(done.stderr.split())
    assert {name for name in loaded if name.partition(".")[0] == "headway"} == OF_A_SUBMIT
    assert not loaded & NOT_OF_A_SUBMIT


def test_version(bare: CommandLine) -> None:
    assert bare.out("--version").startswith("headway ")


@pytest.mark.parametrize("argv", [["frobnicate"], ["jobs", "frobnicate"], ["jobs"], ["--nope"]])
def test_misuse_is_2_and_goes_to_stderr(bare: CommandLine, argv: list[str]) -> None:
    done = bare(*argv, code=2)
    assert done.stdout == ""
    assert "Usage: headway" in done.stderr


def test_the_unexpected_is_one_line_and_says_how_to_see_more(still: CommandLine) -> None:
    broken = {"PYTHONPATH": str(still.folder) + ":" + still.env["PYTHONPATH"]}
    (still.folder / "apsw.py").write_text("raise RuntimeError('broken\\x1b[2J installation')")
    done = still("jobs", "list", code=1, env=broken)
    assert len(done.stderr.splitlines()) == 1
    assert "HEADWAY_DEBUG=1" in done.stderr
    assert "\x1b" not in done.stderr
    traced = still("jobs", "list", code=1, env={**broken, "HEADWAY_DEBUG": "1"})
    assert "Traceback" in traced.stderr
    (still.folder / "apsw.py").unlink()
