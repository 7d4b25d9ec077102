"""The real agent programs with the tools of `headway mcp`: `make test-runners`.

Each is set up by its line of docs/mcp.md, in a folder with a home of its own. The model API on this
machine calls the tools; a person, the test, approves what the agent submits.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "integrations" / "agents"))
from real_programs import EVERY_RUNNER, Place, place, stub  # noqa: F401
from stub import ANSWER

from harness import wait_for

PAGE = Path(__file__).parents[2] / "docs" / "mcp.md"
ASK = "Submit the tests as a job, and tell me what came of it."
OF_CODEX = "mcp_servers.headway"
LEAVE = f'{OF_CODEX}.default_tools_approval_mode="approve"'
WAITS = f"{OF_CODEX}.required=true"  # until the server is there, however busy the machine is
# How each works without a person at its side, with leave to use the tools of this server.
WORKS: dict[str, list[str]] = {
    "claude": ["claude", "-p", ASK, "--allowedTools", "mcp__headway"],
    "codex": ["codex", "exec", "--skip-git-repo-check", "-c", LEAVE, "-c", WAITS, ASK],
    "gemini": [
        "gemini",
        "-p",
        ASK,
        "--allowed-mcp-server-names",
        "headway",
        "--approval-mode",
        "yolo",
    ],
}
# The model is offered the tools from the beginning, and not when it searches for them; the folder
# is trusted, as its user would say when asked.
SETTINGS = {
    "ENABLE_TOOL_SEARCH": "false",
    "MCP_CONNECTION_NONBLOCKING": "false",
    "MCP_CONNECT_TIMEOUT_MS": "60000",
    "MCP_TIMEOUT": "60000",
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
}


def line_of(runner: str) -> list[str]:
    """The line of the page that a reader would type."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    return shlex.split(next(each for each in lines if each.startswith(f"{runner} mcp add headway")))


def run(place: Place, argv: list[str], environ: dict[str, str]) -> subprocess.Popen[str]:  # noqa: F811
    return subprocess.Popen(
        argv,
        cwd=place.folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@EVERY_RUNNER
def test_an_agent_submits_a_person_approves_and_it_reads_what_came(
    place: Place,  # noqa: F811
    runner: str,
) -> None:
    environ = place.environ("tools") | SETTINGS
    added = run(place, line_of(runner), environ)
    out, errors = added.communicate(timeout=60)
    assert added.returncode == 0, (out, errors)
    process = run(place, WORKS[runner], environ)

    def asking() -> list[Any]:
        assert process.poll() is None, process.communicate()
        done = place.headway(environ, "jobs", "approvals", "--json")
        return list(json.loads(done.stdout)["approvals"]) if done.returncode == 0 else []

    try:
        [asked] = wait_for(asking, what="the agent to submit", deadline=90)
        assert (asked["id"], asked["requested_by"]) == ("job-1", "mcp")
        approved = place.headway(environ, "jobs", "approve", "job-1")
        assert approved.returncode == 0, approved.stderr
        out, errors = process.communicate(timeout=120)
    finally:
        process.kill()
        process.communicate()
        place.headway(environ, "stop")
    print(out[-2000:], errors[-2000:])
    assert process.returncode == 0 and ANSWER in out
    job = json.loads(place.headway(environ, "jobs", "show", "1", "--json").stdout)["job"]
    assert (job["state"], job["submitted_by"]) == ("failed", "mcp")
    # All that the model was told: the list, the submit, the wait, the why and the log.
    told = json.dumps(place.stub.last["tools"]).replace("\\", "")
    for said in (
        '"needs_approval":true',
        '"exit_code":3',
        '"remedy":',
        '"lines":["said-by-the-job"]',
    ):
        assert said in told, said
