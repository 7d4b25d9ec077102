"""The real agent programs against a model API on this machine: `make test-runners`.

Not part of `make test`: it installs the programs from npm first. Each test is a folder with a home
of its own, `headway exec` in it, and the programs' own homes beside it; nothing leaves the machine.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scratch import IDENTITY, Scratch
from stub import ANSWER, Stub, serving
from three_stages import SLUG, play

import headway
import headway.integrations.agents.files as files
from harness import wait_for
from headway.base.home import IGNORED
from headway.base.trust import record
from headway.integrations.agents.command_line import command_line
from headway.integrations.agents.files import load_runner
from headway.integrations.agents.streams import report_of
from headway.workflows.new_file import starter_text

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
        (self.home / ".gitignore").write_text(IGNORED)
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

    def fails_without_login(self, name: str) -> None:
        """As shipped, it would be parked until a person resumes it."""
        self.runner(name, "tested = ", 'auth = "fail"\ntested = ')

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
        asked = ["--runner", runner, "--prompt", "Say that all is well.", *options]
        environ = self.environ(way, key=key)
        done = self.headway(environ, "exec", *asked)
        job = json.loads(self.headway(environ, "jobs", "show", "1", "--json").stdout)["job"]
        result = job["run"]["result"]
        print(done.stderr[-1000:], json.dumps(result, indent=1))
        return done.returncode, job, result

    def headway(self, environ: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "headway", *words],
            cwd=self.folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
        )


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
    place.fails_without_login(runner)
    code, job, result = place.work(runner, "refuses")
    assert code != 0 and job["state"] == "failed"
    assert result["error_class"] == "auth", result
    assert "401" in job["reason"]


@EVERY_RUNNER
def test_nobody_is_logged_in(place: Place, runner: str) -> None:
    place.fails_without_login(runner)
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


@pytest.mark.parametrize("runner", ["claude", "codex"])
def test_it_goes_on_with_its_session(place: Place, runner: str) -> None:
    _, _, result = place.work(runner, "says")
    agent = {"prompt": "Go on.", "session_id": result["session_id"]}
    argv = command_line(load_runner(runner, None), agent, prompt_file="/")
    done = subprocess.run(
        argv,
        cwd=place.folder,
        env=place.environ("says"),
        input="Go on.",
        capture_output=True,
        text=True,
        timeout=180,
    )
    report = report_of(load_runner(runner, None).parser)
    for line in done.stdout.splitlines():
        report.read(line)
    assert (report.error, report.final_text) == (None, ANSWER), done.stderr
    assert report.session_id == result["session_id"]


FLOW = """
[nodes.ask]
prompt = "Say that ${{{{ params.what }}}}."
args = {{ runner = "{runner}", max_turns = 3 }}
[nodes.use]
argv = ["echo", "${{{{ nodes.ask.outputs.text }}}}"]
after = ["ask"]
[params]
what = "all is well"
"""


@EVERY_RUNNER
def test_a_workflow_hands_on_what_it_says(place: Place, runner: str) -> None:
    folder = place.home / "workflows"
    folder.mkdir()
    (folder / "ask.toml").write_text(FLOW.format(runner=runner))
    done = place.headway(place.environ("says"), "run", "ask", "--follow")
    assert done.returncode == 0, done.stderr
    assert (place.home / "jobs" / "3" / "stdout.log").read_text() == f"{ANSWER}\n"


class ProgramStage:
    """A stage on which the real programs play: `headway` itself, and the agent of a runner."""

    def __init__(self, place: Place, runner: str) -> None:
        self._place = place
        self._environ = place.environ("stages") | IDENTITY
        (place.home / "workflows").mkdir()
        for starter in ("draft", "approve", "merge"):
            text = starter_text(starter).replace('"claude"', f'"{runner}"')
            if runner != "claude":  # they show what they used only at their end, and no dollars
                text = re.sub(r"budget_usd = [\d.]+, ", "", text)
                text = text.replace("budget.usd = 10", "budget.tokens = 1000000")
            (place.home / "workflows" / f"{starter}.toml").write_text(text)
        self.scratch = Scratch(place.folder)

    def say(self, *words: str) -> str:
        done = self._place.headway(self._environ, *words)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def start(self, starter: str, **params: str) -> "ProgramRun":
        given = [word for each in params.items() for word in ("--set", "=".join(each))]
        return ProgramRun(self, self.say("run", starter, SLUG, *given).strip())

    def until(self, condition: Callable[[], Any], what: str) -> None:
        wait_for(condition, what=what, deadline=120)

    def approve(self, job: int) -> None:
        self.say("jobs", "approve", f"job-{job}")

    def chain(self, job: int) -> list[dict[str, Any]]:
        document = json.loads(self.say("jobs", "show", f"job-{job}", "--json"))
        chain = [each["id"] for each in document["chain"]]
        shown = (json.loads(self.say("jobs", "show", each, "--json")) for each in chain)
        return [each["job"] for each in shown]


class ProgramRun:
    def __init__(self, stage: ProgramStage, run: str) -> None:
        self._stage = stage
        self._run = run

    @property
    def document(self) -> dict[str, Any]:
        shown = json.loads(self._stage.say("workflows", "show", self._run, "--json"))
        document: dict[str, Any] = shown["run"]
        return document

    def node(self, name: str) -> dict[str, Any]:
        return next(each for each in self.document["nodes"] if each["id"] == name)

    def job(self, name: str) -> int:
        return int(self.node(name)["job"].removeprefix("job-"))

    def ended(self) -> dict[str, Any]:
        self._stage.until(lambda: self.document["ended_at"], f"{self._run} to end")
        return self.document


@EVERY_RUNNER
def test_from_a_specification_to_a_merged_branch(place: Place, runner: str) -> None:
    draft, approve, merge = play(ProgramStage(place, runner))
    for each in (draft, approve, merge):
        assert each["spent"]["tokens"] >= 1207, "a conflict gate's agent counts, too"
    assert approve["spent"]["tokens"] > 2 * 1207, "red, then green"
