"""Runner files: what may stand in them, and how they become a command line."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headway.base.errors import InvalidInputError, NotFoundError
from headway.base.home import Home
from headway.base.trust import record
from headway.integrations.agents.command_line import LONGEST_ARGUMENT, command_line
from headway.integrations.agents.files import is_builtin, load_runner, runner_names
from headway.integrations.agents.model import Runner, Timeouts
from headway.jobs.agents import agent_request
from headway.jobs.settings import Config
from headway.jobs.specification import specify
from headway.jobs.views.runners import look_at_runner, runner_document
from headway.worker.launch.agent import not_passed

SOUND = 'argv = ["agent"]\nprompt = "stdin"\nparser = "text"\n'


def runner(*argv: Any, **more: Any) -> Runner:
    fields = {"prompt": "stdin", "parser": "text", **more}
    return Runner("own", "/own.toml", argv, timeouts=Timeouts(None, None, None), **fields)


@pytest.fixture(autouse=True)
def trusted(tmp_path: Path) -> None:
    """The folder that stands for a home is one that its user trusts."""
    record(str(tmp_path))


def written(tmp_path: Path, text: str, name: str = "own") -> str:
    folder = tmp_path / "runners"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.toml").write_text(text)
    return str(tmp_path)


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "command"])
def test_the_shipped_files_are_sound(name: str) -> None:
    found = load_runner(name, None)
    assert is_builtin(found.path)
    assert found.prompt == "stdin"
    assert runner_names(None) == ["claude", "codex", "command", "gemini"]


def test_a_file_of_the_project_comes_before_the_shipped_one(tmp_path: Path) -> None:
    home = written(tmp_path, SOUND, "claude")
    assert load_runner("claude", home).argv == ("agent",)
    assert load_runner("codex", home).argv[0] == "codex"
    written(tmp_path, SOUND, "mine")
    assert "mine" in runner_names(home)


@pytest.mark.parametrize("name", ["../claude", "claude/../claude", "", ".", "-x", "a" * 80, "no"])
def test_a_name_leads_to_no_other_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotFoundError, match="there is no runner"):
        load_runner(name, str(tmp_path))


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    home = written(
        tmp_path,
        'argv = ["{model}", "x{argv}", "{nobody}", 3]\nprompt = "post"\nparser = "xml"\n'
        'env_pass = ["A B"]\ndenials = "maybe"\nspeed = 3\naccess = {read = "r"}\n'
        'defaults = {max_turns = 0}\nenv = {"1" = "x"}\nversion_command = "claude"\n'
        '[timeouts]\nidle = "soon"\nlunch = "1h"\nwall = "0s"\n',
    )
    with pytest.raises(InvalidInputError) as caught:
        load_runner("own", home)
    report = str(caught.value)
    assert report.startswith(f"{home}/runners/own.toml: ")
    for words in (
        "unknown key 'speed'",
        "argv has {nobody}",
        "argv has 3",
        "{argv} stands alone",
        "the program is a plain word",
        "prompt is 'post'",
        "parser is 'xml'",
        "env_pass has 'A B'",
        "denials is 'maybe'",
        "access has not just read and write",
        "defaults has max_turns = 0",
        "env has 1 = 'x'",
        "version_command is no list",
        "timeouts has idle",
        "timeouts has lunch",
        "timeouts has wall = '0s'",
    ):
        assert words in report, words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("timeout = 3", r"unknown key 'timeout' \(did you mean timeouts\?\)"),
        ("speed = 3", r"unknown key 'speed' \(there are argv, prompt, "),
        ('argv = ["a", "{promt}"]', r"argv has {promt} \(did you mean prompt\?\)"),
        ('parser = "json"', r"parser is 'json' \(did you mean jsonl\?\)"),
        ("parser = 3", r"parser is 3 \(there are claude-stream-json, "),
        ("[timeouts]\nfirst = '1s'", r"timeouts has first \(there are first_output, idle, wall\)"),
        ("argv = [", "Expected|Unclosed|Invalid|Unexpected"),
        ("", "argv is missing; prompt is missing; parser is missing"),
        (SOUND.replace("stdin", "file"), r"argv has no \{prompt_file\}"),
        (SOUND.replace('"agent"', '"agent", "{prompt}"'), r"argv has \{prompt\}"),
        (SOUND.replace('"agent"', '"agent", "{access}"'), "belong together"),
        (SOUND + "x = '" + "x" * 70_000 + "'", "larger than 64 KiB"),
        ("argv = " + "[" * 5000 + "]" * 5000, "nest too deeply"),
        ("argv" + ".a" * 20_000 + " = 1", "nest too deeply"),
        (SOUND + "env" + ".a" * 20_000 + " = 1", "nest too deeply"),
        (SOUND + "[defaults]\nmax_turns = " + "9" * 5000, "4300"),
        (SOUND + "[defaults]\nmax_turns = 0x" + "f" * 5000, "max_turns = a value that nobody"),
        (SOUND + "[defaults]\nmax_turns = 100001", "max_turns = 100001, which cannot be"),
        (SOUND + "[defaults]\nbudget_usd = inf", "budget_usd = inf"),
        (SOUND + "[defaults]\nbudget_usd = nan", "budget_usd = nan"),
        (SOUND + "[defaults]\nmodel = '-x'", "model = '-x'"),
        (SOUND + "[defaults]\nallowed_tools = ['--yolo']", "allowed_tools"),
        (SOUND + "[timeouts]\nidle = '" + "9" * 5000 + "h'", "idle = '999"),
        (SOUND + '[env]\n"A\\u001b" = "x"', r"env has 'A\\x1b'"),
        ("\n".join(f"a{number} = 1" for number in range(3000)), "and 2983 more"),
    ],
)
def test_a_broken_file_is_refused_with_its_name(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InvalidInputError, match=f"own.toml.*({words})"):
        load_runner("own", written(tmp_path, text))


def _a_fifo(path: Path) -> None:
    os.mkfifo(path)


def _a_folder(path: Path) -> None:
    path.mkdir()


def _a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _a_link_to_nothing(path: Path) -> None:
    path.symlink_to("gone.toml")


def _no_text(path: Path) -> None:
    path.write_bytes(b"argv = '\xff'")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (_a_fifo, "is not a file"),
        (_a_folder, "is not a file"),
        (_a_device, "is not a file"),
        (_a_link_to_nothing, "cannot be read: No such file"),
        (_no_text, "invalid start byte"),
    ],
)
def test_what_is_no_file_is_refused_and_the_shipped_one_does_not_take_its_place(
    tmp_path: Path, make: Callable[[Path], None], words: str
) -> None:
    (tmp_path / "runners").mkdir()
    make(tmp_path / "runners" / "claude.toml")
    held = len(os.listdir("/proc/self/fd"))
    with pytest.raises(InvalidInputError, match=f"claude.toml.*{words}"):
        load_runner("claude", str(tmp_path))
    assert len(os.listdir("/proc/self/fd")) == held


def test_a_folder_that_cannot_be_listed_hides_no_shipped_runner(tmp_path: Path) -> None:
    (tmp_path / "runners").write_text("no folder")
    assert "claude" in runner_names(str(tmp_path))
    assert is_builtin(load_runner("claude", str(tmp_path)).path)


def test_a_file_whose_name_no_job_can_say_is_told(tmp_path: Path) -> None:
    home = written(tmp_path, SOUND, "gpt-4.1")
    written(tmp_path, SOUND, "a\x1b[2J")
    assert runner_names(home) == ["claude", "codex", "command", "gemini", "gpt-4.1"]
    seen = look_at_runner("gpt-4.1", home, Config(), "/")
    assert seen.path == f"{home}/runners/gpt-4.1.toml"
    assert runner_document(seen)["file"] == seen.path and not runner_document(seen)["built_in"]
    with pytest.raises(InvalidInputError, match=r"/gpt-4.1.toml: no job can say this name"):
        load_runner("gpt-4.1", home)


@pytest.mark.parametrize(
    ("argv", "agent", "line"),
    [
        (("a", "--model={model}", "-"), {}, ["a", "-"]),
        (("a", "--model={model}"), {"model": "x y"}, ["a", "--model=x y"]),
        (("a", ("--model", "{model}"), "b"), {}, ["a", "b"]),
        (("a", ("--model", "{model}")), {"model": "m"}, ["a", "--model", "m"]),
        (("a", "--n={max_turns}"), {"max_turns": 7}, ["a", "--n=7"]),
        (("a", "{allowed_tools}"), {"allowed_tools": ["R", "G"]}, ["a", "R,G"]),
        (("a", "{allowed_tools}"), {"allowed_tools": []}, ["a"]),
        (("a", "${budget_usd}"), {"budget_usd": 2.50}, ["a", "$2.5"]),
        (("{argv}", "-x"), {"argv": ["p", "-q", "{model}"]}, ["p", "-q", "{model}", "-x"]),
        # A value is never looked at again.
        (("a", "{model}"), {"model": "{prompt}"}, ["a", "{prompt}"]),
        (("a", "--", "{prompt}"), {"prompt": "-rf"}, ["a", "--", "-rf"]),
        (("a", "-p{prompt}"), {"prompt": "-rf"}, ["a", "-p-rf"]),
    ],
)
def test_places_are_filled_in(argv: Any, agent: dict[str, Any], line: list[str]) -> None:
    assert command_line(runner(*argv), {"prompt": "do", **agent}, prompt_file="/f") == line


@pytest.mark.parametrize(
    ("tools", "access"),
    [(None, "r"), (["Read"], "r"), (["Read", "Glob", "Grep"], "r"), (["Read", "Edit"], "w")],
)
def test_access_follows_from_the_tools(tools: list[str] | None, access: str) -> None:
    own = runner("a", "{access}", access={"read": "r", "write": "w"})
    assert command_line(own, {"prompt": "", "allowed_tools": tools}, prompt_file="") == [
        "a",
        access,
    ]


def test_a_value_that_would_be_an_option_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="would be taken for an option"):
        command_line(runner("a", "{prompt}"), {"prompt": "--yolo"}, prompt_file="")
    with pytest.raises(InvalidInputError, match="too long for an argument"):
        prompt = "x" * (LONGEST_ARGUMENT + 1)
        command_line(runner("a", "{prompt}"), {"prompt": prompt}, prompt_file="")


def test_only_what_is_listed_is_passed() -> None:
    names = [
        "PATH",
        "HOME",
        "LANG",
        "TERM",
        "USER",
        "TMPDIR",
        "HEADWAY_X",
        "A_KEY",
        "A_",
        "B",
        "a_",
    ]
    assert not_passed(runner("a", env_pass=("A_*",)), names) == ["B", "a_"]


def asked(tmp_path: Path, **agent: Any) -> dict[str, Any]:
    request = agent_request(agent.pop("prompt", "do it"), **agent)
    spec = specify(
        request._replace(check=False),
        environ={},
        working_directory="/",
        place=(Home(str(tmp_path)), Config(agent.pop("settings", {}))),
    )
    assert spec.type == "agent"
    params: dict[str, Any] = spec.params["agent"]
    return params


@pytest.mark.req("O3")
def test_what_nobody_says_is_decided_at_submit(tmp_path: Path) -> None:
    assert asked(tmp_path) == {
        "runner": "claude",
        "prompt": "do it",
        "max_turns": 10,
        "allowed_tools": ["Read", "Grep", "Glob"],
    }
    written(tmp_path, SOUND + "[defaults]\nmodel = 'small'\n")
    with pytest.raises(InvalidInputError, match="takes no model"):
        asked(tmp_path, runner="own", model="x")
    home = (Home(str(tmp_path)), Config({"agent.runner": "codex", "agent.model": "big"}))
    spec = specify(agent_request("x", check=False), environ={}, working_directory="/", place=home)
    assert spec.params["agent"]["runner"] == "codex"
    assert spec.params["agent"]["model"] == "big"
    assert spec.params["cwd"] == str(tmp_path.parent)


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ({"prompt": " "}, "needs a prompt"),
        ({"prompt": "a\0b"}, "without NUL"),
        ({"prompt": "x" * (513 << 10)}, "at most 512 KiB"),
        ({"model": "-x"}, "does not begin with -"),
        ({"model": "a\nb"}, "model"),
        ({"max_turns": 0}, "max_turns 0"),
        ({"max_turns": True}, "max_turns True"),
        ({"allowed_tools": ["--x"]}, "allowed_tools"),
        ({"allowed_tools": "Read"}, "allowed_tools 'Read'"),
        ({"budget_usd": -1}, "budget_usd -1"),
        ({"runner": "codex", "budget_usd": 3}, "cannot keep to budget_usd"),
        ({"runner": "own", "max_turns": 3}, "cannot keep to max_turns"),
        ({"runner": "own", "allowed_tools": ["Edit"]}, "cannot keep to allowed_tools"),
        ({"shell": "true"}, "instead of a line for a shell"),
        ({"type": "other"}, "is agent, not 'other'"),
        ({"stdin": "/dev/null"}, "take --stdin out"),
        ({"argv": ("x",)}, "give no command after --"),
        ({"runner": "command"}, "give it after --"),
        ({"model": "-x", "max_turns": 0}, "model '-x'.*max_turns 0"),
    ],
)
def test_what_cannot_be_asked_is_refused(tmp_path: Path, agent: dict[str, Any], words: str) -> None:
    written(tmp_path, SOUND)
    with pytest.raises(InvalidInputError, match=words):
        asked(tmp_path, **agent)


def test_the_usual_limits_may_be_asked_of_any_runner(tmp_path: Path) -> None:
    written(tmp_path, SOUND)
    usual = {"max_turns": 10, "allowed_tools": ["Read", "Grep", "Glob"]}
    assert asked(tmp_path, runner="own", **usual) == {"runner": "own", "prompt": "do it"}
