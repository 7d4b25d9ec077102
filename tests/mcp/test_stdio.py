"""`headway mcp` as agent programs start it: a process of its own, over stdin and stdout."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp.client.stdio import stdio_client
from toolbox import told

from harness import Site, wait_for
from headway.core.model import ApprovalState
from mcp import Client as McpClient
from mcp import MCPError, StdioServerParameters

HEADWAY = [sys.executable, "-P", "-m", "headway"]
POINT = "mcp.submitted"  # after the commit, before the answer
QUIET = "[worker]\nautostart = false\n"


class Process:
    """A client with a server of its own."""

    def __init__(self, portal: Any, client: McpClient) -> None:
        self._portal = portal
        self._client = client

    def call(self, name: str, /, **given: Any) -> dict[str, Any]:
        return told(self._portal.call(self._client.call_tool, name, given)).answer

    def tools(self) -> list[str]:
        return [each.name for each in self._portal.call(self._client.list_tools).tools]


Start = Callable[..., Process]


@pytest.fixture
def make_site(tmp_path: Path, store_url: str | None) -> Iterator[Callable[..., Site]]:
    with ExitStack() as stack:

        def make(config: str = QUIET) -> Site:
            site = Site(tmp_path, config=config, store_url=store_url)
            stack.callback(site.close)
            return site

        yield make


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a server with these options, and a client of it; what it writes is in `mcp.err`."""
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())

        def begin(
            folder: Path, env: dict[str, str], *options: str, mode: str = "auto", before: str = ""
        ) -> Process:
            words = [*HEADWAY[1:], *before.split(), "mcp", *options]
            params = StdioServerParameters(command=HEADWAY[0], args=words, env=env, cwd=str(folder))
            errors = stack.enter_context(open(folder / "mcp.err", "a", encoding="utf-8"))
            client = McpClient(stdio_client(params, errlog=errors), mode=mode)
            return Process(portal, stack.enter_context(portal.wrap_async_context_manager(client)))

        yield begin


@pytest.fixture(scope="module")
def short_lived() -> str:
    return '[worker]\nidle = "1s"\n'


@pytest.mark.long
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agent_submits_and_a_person_approves(
    make_site: Callable[..., Site], start: Start, short_lived: str, mode: str
) -> None:
    """With a worker that is started by the submit, and leaves by itself."""
    site = make_site(short_lived)
    agent = start(site.folder, site.env, "--name", "ada", mode=mode)
    made = agent.call("submit_job", argv=["sh", "-c", "echo done; echo $HEADWAY_JOB_ID"])
    assert (made["job"]["id"], made["needs_approval"]) == ("job-1", True)
    assert made["job"]["data"]["submitted_by"] == "mcp:ada"
    wait_for(lambda: agent.call("why", job="job-1")["why"]["state"] == "waiting_on_approval")
    assert [each["id"] for each in agent.call("list_approvals")["approvals"]] == ["job-1"]
    site.run("jobs", "approve", "job-1")
    ended = agent.call("wait_for_job", job="job-1")
    assert (ended["ended"], ended["job"]["state"]) == (True, "succeeded")
    assert agent.call("tail_log", job="job-1")["data"]["lines"] == ["done", "job-1"]
    assert (site.folder / "mcp.err").read_text() == ""


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--submit", "free"), ("--submit", "off")])
def test_no_option_and_no_variable_lets_a_tool_decide(
    make_site: Callable[..., Site], start: Start, options: tuple[str, ...]
) -> None:
    """Nor does a token, the name of a person, or the leave for jobs to approve."""
    site = make_site(QUIET + "[approval]\nfrom_jobs = true\n")
    job = site.submit("true", require_approval=True)
    token = site.client.tokens.add("root", role="admin")
    env = {**site.env, "HEADWAY_ACTOR": "ada", "HEADWAY_TOKEN": token}
    agent = start(site.folder, env, "--name", "ada", *options, before="--as ada")
    assert agent.call("status")["you_are"] == "mcp:ada"
    for name in ("approve_job", "reject_job", "approve", "edit_job", "pause", "add_token"):
        with pytest.raises(MCPError, match="there is no tool"):
            agent.call(name, job=f"job-{job}", token=token)
    for name in agent.tools():
        said = agent.call(name, job=f"job-{job}", token=token, approve=True)
        assert said["error"] == "wrong-request", name
    assert agent.call("cancel_job", job=f"job-{job}")["error"] == "conflict"
    approval = site.client.job(job).approval
    assert approval is not None and approval.state is ApprovalState.PENDING


both_stores = pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True)


@pytest.mark.long
@both_stores
def test_a_kill_within_a_submit_with_a_key_makes_one_job(
    make_site: Callable[..., Site], start: Start
) -> None:
    """It dies when the job is there and its answer is not; the agent asks again."""
    site = make_site()
    mark = site.folder / "mark"
    env = {**site.env, "HEADWAY_POINTS": f"{POINT}=kill", "HEADWAY_TEST_MARK": str(mark)}
    asked = {"argv": ["true"], "key": "once"}
    with pytest.raises(MCPError):
        start(site.folder, env).call("submit_job", **asked)
    assert mark.read_text().startswith(f"{POINT} ")
    again = start(site.folder, site.env).call("submit_job", **asked)
    assert (again["created"], again["job"]["id"]) == (False, "job-1")
    assert len(site.client.listing(everything=True)) == 1


@pytest.mark.long
def test_a_kill_at_any_point_of_a_submit_with_a_key_makes_one_job(
    make_site: Callable[..., Site], start: Start
) -> None:
    site = make_site()
    visit = 0
    while True:
        visit += 1
        mark = site.folder / f"mark-{visit}"
        armed = {"HEADWAY_POINTS": f"*=kill@{visit}", "HEADWAY_TEST_MARK": str(mark)}
        asked = {"argv": ["true"], "key": f"once-{visit}"}
        agent = start(site.folder, {**site.env, **armed})
        try:
            made = agent.call("submit_job", **asked)
        except MCPError:
            assert mark.exists()
            made = start(site.folder, site.env).call("submit_job", **asked)
        assert len(site.client.listing(everything=True)) == visit
        assert made["job"]["id"] == f"job-{visit}"
        if not mark.exists():
            break
    assert visit > 1, "no point was visited"


@pytest.mark.long
def test_looking_makes_no_home_and_a_submit_does(
    tmp_path: Path, start: Start, short_lived: str
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    env = {name: os.environ[name] for name in ("PATH", "XDG_STATE_HOME") if name in os.environ}
    env |= {"HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    agent = start(folder, env)
    for name in ("status", "list_jobs", "list_approvals", "list_schedules"):
        assert "error" not in agent.call(name)
    for name in ("why", "cancel_job", "retry_job", "wait_for_job"):
        assert agent.call(name, job="job-1")["error"] == "not-found"
    assert not (folder / ".headway").exists()
    assert agent.call("submit_job", argv=["true"])["job"]["id"] == "job-1"
    assert agent.call("why", job="job-1")["why"]["id"] == "job-1"
    subprocess.run([*HEADWAY, "stop"], cwd=folder, env=env, check=True, capture_output=True)


# -- the command -------------------------------------------------------------------------------

HELLO: dict[str, Any] = {
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
READY: dict[str, Any] = {"method": "notifications/initialized"}


@contextmanager
def speaking(
    folder: Path, env: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[str], Callable[..., Any]]]:
    """The process, and what writes these messages to it and reads one line."""
    process = subprocess.Popen(
        [*HEADWAY, "mcp"],
        cwd=folder,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin is not None and process.stdout is not None
        pipe, lines = process.stdin, process.stdout

        def say(*messages: dict[str, Any]) -> Any:
            for each in messages:
                pipe.write(f"{json.dumps({'jsonrpc': '2.0', **each})}\n")
            pipe.flush()
            return json.loads(lines.readline())

        yield process, say


def test_it_says_what_it_is_and_ends_with_its_stdin(make_site: Callable[..., Site]) -> None:
    site = make_site()
    with speaking(site.folder, site.env) as (process, say):
        said = say(HELLO)["result"]
        assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0
    assert said["serverInfo"]["name"] == "headway" and said["capabilities"].keys() == {"tools"}
    assert "cannot approve" in said["instructions"] and "`data`" in said["instructions"]


@pytest.mark.long
def test_what_is_said_to_people_is_not_on_stdout(
    make_site: Callable[..., Site], tmp_path: Path
) -> None:
    site = make_site()
    (tmp_path / "new").mkdir()
    env = {**site.env, "HEADWAY_HOME": str(tmp_path / "new" / ".headway")}
    call = {"name": "submit_job", "arguments": {"argv": ["true"]}}
    with speaking(site.folder, env) as (process, say):
        say(HELLO)
        answer = say(READY, {"id": 2, "method": "tools/call", "params": call})
        assert answer["result"]["structuredContent"]["job"]["id"] == "job-1"
        out, errors = process.communicate(timeout=60)
    assert out == "" and "made " in errors
    subprocess.run([*HEADWAY, "stop"], env=env, check=True, capture_output=True)


def test_an_interrupt_ends_it_at_once(make_site: Callable[..., Site]) -> None:
    site = make_site()
    with speaking(site.folder, site.env) as (process, say):
        say(HELLO)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--name", "a b"], "--name 'a b': use letters, digits"),
        (["--name", "x" * 65], "use letters, digits"),
        (["--submit", "off", "--free-template", "t"], "no meaning with --submit off"),
        (["--submit", "free", "--free-template", "t"], "no meaning with --submit free"),
    ],
)
def test_wrong_options_are_refused(
    make_site: Callable[..., Site], options: list[str], says: str
) -> None:
    done = make_site().run("mcp", *options, check=False)
    assert done.returncode == 5 and says in done.stderr


def test_without_the_extra_it_is_named(make_site: Callable[..., Site], tmp_path: Path) -> None:
    """`mcp` is not importable, as where it was not installed."""
    site = make_site()
    script = (
        "import sys\nsys.modules['mcp'] = None\nfrom headway.cli.main import run\nrun(['mcp'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        cwd=site.folder,
        env=site.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "pip install 'headway[mcp]'" in done.stderr, done.stderr
