"""Every command has help that loads nothing else, and all of it is in docs/cli.md."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
from commandline import CommandLine

from headway.cli.commands import COMMANDS
from headway.cli.main import cli
from headway.config import SETTINGS

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


@pytest.mark.parametrize("path", COMMANDS)
def test_command_is_documented_with_its_options(path: str) -> None:
    assert f"## headway {path}\n" in PAGE
    section = PAGE.split(f"## headway {path}\n")[1].split("\n## ")[0]
    for parameter in command(path).params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            shared = path == "exec" and parameter in command("submit").params
            whole = ("exec", "why", "templates add", "schedules add")
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


def test_submit_loads_neither_the_engine_nor_drawing(still: CommandLine) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-P", "-m", "headway", "submit", "--", "true"],
        cwd=still.folder,
        env=still.env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "headway.client" in loaded
    unwanted = (
        "headway.engine",
        "headway.cli.render",
        "headway.cli.exec",
        "rich",
        "tomlkit",
        "yaml",
    )
    assert not {name for name in loaded if name.startswith(unwanted)}


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
