"""The real agent programs against a model API on this machine: `make test-runners`.

Not part of `make test`: it installs the programs from npm first. Each test is a folder with a home
of its own, `headway exec` in it, and the programs' own homes beside it; nothing leaves the machine.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stub import ANSWER, Stub, serving

import headway
import headway.integrations.agents.files as files
from headway.base.trust import record

PROGRAMS = Path(os.environ["HEADWAY_TEST_PROGRAMS"])
SOURCES = str(Path(headway.__file__).parent.parent)
RUNNERS = ("claude", "codex", "gemini")
EVERY_RUNNER = pytest.mark.parametrize("runner", RUNNERS)


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with serving() as made:
        yield made


class Place:
    """A folder with a home, and the agent programs set up for one way of the stub."""

    def __init__(self, folder: Path, stub: Stub) -> None:
        self.folder = folder / "project"
        self.own = folder / "own"
        self.home = self.folder / ".headway"
        self.stub = stub
        for each in (self.home / "runners", self.own / "codex", self.own / ".gemini"):
            each.mkdir(parents=True)
        self.home.chmod(0o700)
        record(str(self.home), {"HOME": str(self.own)})
        (self.home / "config.toml").write_text('[worker]\nidle = "1s"\n')
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"maxAttempts": 1},
        }
        (self.own / ".gemini" / "settings.json").write_text(json.dumps(settings))

    def runner(self, name: str, old: str, new: str) -> None:
        """The shipped file with something else in it."""
        text = Path(files.folders(None)[0], f"{name}.toml").read_text()
        assert old in text
        (self.home / "runners" / f"{name}.toml").write_text(text.replace(old, new))

    def environ(self, way: str, *, key: bool = True) -> dict[str, str]:
        provider = (
            f'model = "stub-model"\nmodel_provider = "stub"\n[model_providers.stub]\n'
            f'name = "stub"\nbase_url = "{self.stub.url(way)}/v1"\nenv_key = "OPENAI_API_KEY"\n'
            f'wire_api = "responses"\nrequest_max_retries = 1\nstream_max_retries = 1\n'
        )
        (self.own / "codex" / "config.toml").write_text(provider)
        keys = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"), "key")
        return {
            "PATH": os.pathsep.join([str(PROGRAMS), os.defpath, os.path.dirname(sys.executable)]),
            "HOME": str(self.own),
            "CODEX_HOME": str(self.own / "codex"),
            "ANTHROPIC_BASE_URL": self.stub.url(way),
            "GOOGLE_GEMINI_BASE_URL": self.stub.url(way),
            "PYTHONPATH": SOURCES,
            **(keys if key else {}),
        }

    def work(
        self, runner: str, way: str, *options: str, key: bool = True
    ) -> tuple[int, dict[str, Any], dict[str, Any]]:
        """Exit code, job document and result."""
        argv = [sys.executable, "-P", "-m", "headway"]
        asked = ["--runner", runner, "--prompt", "Say that all is well.", *options]
        environ = self.environ(way, key=key)
        done = subprocess.run(
            [*argv, "exec", *asked],
            cwd=self.folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
        )
        shown = subprocess.run(
            [*argv, "jobs", "show", "1", "--json"],
            cwd=self.folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        job = json.loads(shown.stdout)["job"]
        result = job["run"]["result"]
        print(done.stderr[-1000:], json.dumps(result, indent=1))
        return done.returncode, job, result


@pytest.fixture
def place(tmp_path: Path, stub: Stub) -> Place:
    return Place(tmp_path, stub)


@EVERY_RUNNER
def test_it_does_its_work(place: Place, runner: str) -> None:
    code, job, result = place.work(runner, "says")
    assert (code, job["state"]) == (0, "succeeded")
    assert (result["ok"], result["final_text"], result["turns"]) == (True, ANSWER, 1)
    assert (result["usage"]["input"], result["usage"]["output"]) == (1200, 7)
    assert result["session_id"]


@EVERY_RUNNER
def test_an_overloaded_model(place: Place, runner: str) -> None:
    if runner == "gemini":  # it goes on trying for longer than anyone wants to wait here
        place.runner(runner, 'wall = "2h"', 'wall = "20s"')
    code, job, result = place.work(runner, "overloaded")
    assert code != 0 and job["state"] == "failed"
    assert result["error_class"] == ("limit" if runner == "gemini" else "transient")


@EVERY_RUNNER
def test_a_key_that_is_refused(place: Place, runner: str) -> None:
    code, job, result = place.work(runner, "refuses")
    assert code != 0 and job["state"] == "failed"
    assert result["error_class"] == "auth", result
    assert "401" in job["reason"]


@EVERY_RUNNER
def test_nobody_is_logged_in(place: Place, runner: str) -> None:
    code, job, result = place.work(runner, "says", key=False)
    assert code != 0 and job["state"] == "failed"
    assert result["error_class"] == "auth", result


@EVERY_RUNNER
def test_a_tool_that_is_denied(place: Place, runner: str) -> None:
    code, job, result = place.work(runner, "writes")
    assert (code, job["state"], result["error_class"]) == (1, "failed", "permission")
    assert result["exit_code"] == 0 and result["denials"]
    assert not (place.folder / "made-by-agent.txt").exists()


@pytest.mark.parametrize(("runner", "tool"), [("claude", "Bash"), ("gemini", "Write")])
def test_a_tool_that_is_allowed(place: Place, runner: str, tool: str) -> None:
    code, job, result = place.work(runner, "writes", "--allowed-tool", tool)
    assert (code, job["state"], result["denials"]) == (0, "succeeded", [])
    assert (place.folder / "made-by-agent.txt").read_text() == "made\n"


@EVERY_RUNNER
def test_a_model_that_never_answers(place: Place, runner: str) -> None:
    place.runner(runner, 'idle = "15m"', 'idle = "8s"')
    code, job, result = place.work(runner, "hangs", "--grace", "3s")
    assert (code, result["error_class"]) == (124, "stalled")
    assert job["reason"] == f"{runner}: no output for 8 s"


@EVERY_RUNNER
def test_a_network_that_is_down(place: Place, runner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some give up, some try for ever and say so, some fall silent; none is taken for done."""
    place.runner(runner, 'wall = "2h"', 'wall = "30s"')
    monkeypatch.setattr(place.stub, "url", lambda way: "http://127.0.0.1:9")
    code, job, result = place.work(runner, "says", "--grace", "3s")
    assert code != 0 and job["state"] == "failed"
    assert result["error_class"] in ("transient", "limit"), result


@EVERY_RUNNER
def test_a_model_that_never_ends(place: Place, runner: str) -> None:
    code, job, result = place.work(runner, "loops", "--max-turns", "2", "--grace", "3s")
    assert (code, result["error_class"]) == (1, "limit")
    assert "turns" in job["reason"]
