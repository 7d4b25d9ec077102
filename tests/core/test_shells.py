"""Which words of a command a shell would run, and what may stand in them."""

import os
import subprocess
from pathlib import Path

import pytest

from headway.base.shells import SHELLS, scripts
from headway.core.targets import run_as_code

SCRIPT = "touch mark"
COMMANDS = [
    ["sh", "-c", SCRIPT],
    ["/bin/sh", "-c", SCRIPT, "sh", "x"],
    ["sh", "-ec", SCRIPT],
    ["sh", "-ce", SCRIPT],
    ["sh", "-c", "-e", SCRIPT],
    ["sh", "-e", "-c", SCRIPT],
    ["sh", "-c", "--", SCRIPT],
    ["sh", "-c", "-", SCRIPT],
    ["bash", "-lc", SCRIPT],
    ["bash", "+c", SCRIPT],
    ["bash", "--norc", "-c", SCRIPT],
    ["bash", "--rcfile", "x", "-c", SCRIPT],
    ["bash", "-o", "pipefail", "-c", SCRIPT],
    ["bash", "-euo", "pipefail", "-c", SCRIPT],
    ["bash", "-ceuo", "pipefail", SCRIPT],
    ["bash", "-c", "-O", "extglob", SCRIPT],
    ["env", "A=1", "sh", "-c", SCRIPT],
    ["timeout", "60", "nice", "bash", "-c", SCRIPT],
    ["xargs", "sh", "-c", SCRIPT],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_script_is_found_where_the_shell_finds_it(command: list[str], tmp_path: Path) -> None:
    assert [command[place] for place in scripts(command)] == [SCRIPT]
    environ = {"PATH": os.environ["PATH"]}
    subprocess.run(command, cwd=tmp_path, env=environ, stdin=subprocess.DEVNULL, check=True)
    assert (tmp_path / "mark").exists(), "the shell agrees"


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_every_shell_is_known_by_its_name_wherever_it_is(shell: str) -> None:
    assert scripts([f"/opt/bin/{shell}", "-c", "x"]) == {2: shell}


@pytest.mark.parametrize(
    "command",
    [
        ["sh"],
        ["sh", "-c"],
        ["sh", "-e", "script", "x"],
        ["sh", "script", "-c", "x"],
        ["sh", "-s", "x"],
        ["bash", "--norc", "script"],
        ["make", "-c", "x"],
        ["claude", "-p", "use bash -c"],
        [],
    ],
    ids=" ".join,
)
def test_what_no_shell_runs_is_no_script(command: list[str]) -> None:
    assert scripts(command) == {}


VALUES = {"subject": "gt-1", "title": "t", "target": "gas", "args": "-c", "x": "bash"}


@pytest.mark.parametrize(
    ("words", "exposed"),
    [
        (["sh", "-c", "echo {title}"], ("title", "sh")),
        (["sh", "-c", "echo {args}"], ("args", "sh")),
        (["sh", "-c", "echo '{x}'"], ("x", "sh")),
        (["sh", "-c", "{subject} {target} {{title}}"], None),
        (["sh", "-c", 'echo "$1"', "sh", "{title}"], None),
        (["sh", "{args}", "{title}"], ("title", "sh")),
        (["{x}", "-c", "{title}"], ("title", "bash")),
        (["env", "{x}", "{args}", "{title}"], ("title", "bash")),
        (["echo", "{title}"], None),
    ],
)
def test_a_value_that_a_shell_would_run_is_found(
    words: list[str], exposed: tuple[str, str] | None
) -> None:
    assert run_as_code(words, VALUES) == exposed


@pytest.mark.parametrize("subject", ["gt;id", "gt$(id)", "gt`id`", "gt'", "gt|x", "gt&x", "g>x"])
def test_a_subject_of_other_characters_is_code(subject: str) -> None:
    values = {**VALUES, "subject": subject}
    assert run_as_code(["sh", "-c", "echo {subject}"], values) == ("subject", "sh")
    assert run_as_code(["echo", "{subject}"], values) is None
