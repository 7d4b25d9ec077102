"""A client that acts for another takes nothing from its process and gives jobs nothing of it."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from both_stores import on_a_file
from harness import Bench
from headway.client import Client
from headway.core.order import Place, Side
from headway.core.targets import Target
from headway.jobs.agents import agent_request
from headway.jobs.request import Request
from headway.jobs.settings import Config
from headway.store import open_store

HOUR = 3_600_000_000
WORKFLOW = """
[nodes.only]
argv = ["true"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the caller is: a repository with a few files."""
    folder = tmp_path / "theirs"
    (folder / "sub").mkdir(parents=True)
    (folder / "prompt.md").write_text("theirs")
    (folder / "in.txt").write_text("theirs")
    (folder / "flow.toml").write_text(WORKFLOW)
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], cwd=folder, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=folder, check=True)
    return folder


@contextmanager
def unknown_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """To ask this process where it is, what its mask is or whose it is, is an error."""

    def asked(*_: Any) -> Any:
        raise AssertionError("the process was asked for what is the caller's")

    with monkeypatch.context() as patch:
        for name in ("getcwd", "getcwdb", "umask", "getlogin"):
            patch.setattr(os, name, asked)
        patch.setattr("pwd.getpwuid", asked)
        yield


def submitted(client: Client, **options: Any) -> dict[str, Any]:
    return client.document(client.submit(Request(**options)).job_id)


@on_a_file
def test_verbs_ask_the_context_alone(
    bench: Bench, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.client.pause("nothing shall start")
    client = bench.client.acting(
        "token:ann", "person", folder=str(folder), environ={"PATH": "/bin:/usr/bin"}, umask=0o027
    )
    with unknown_process(monkeypatch):
        submit_and_steer(client, str(folder))
        make_others(client, str(folder))
        look(client)


def submit_and_steer(client: Client, folder: str) -> None:
    job = submitted(client, argv=("true",), cwd="sub", stdin="in.txt", produces=("file:made.txt",))
    params = job["params"]
    assert (params["cwd"], params["stdin"]) == (f"{folder}/sub", f"{folder}/in.txt")
    assert submitted(client, argv=("true",), pin_head="")["pinned_head"] is not None
    agent = {"runner": "command", "prompt_file": "prompt.md"}
    asked = client.submit(Request(agent=agent, argv=("true",))).job_id
    assert client.job(asked).params["agent"]["prompt"] == "theirs"
    client.submit(agent_request("x", runner="command", argv=("true",), cwd="sub"))
    first, second = (client.submit(Request(argv=("true",), delay=HOUR)).job_id for _ in range(2))
    client.jobs.edit(first, cwd="sub", argv=("true",))
    assert client.job(first).params["cwd"] == f"{folder}/sub"
    client.jobs.move(second, Place(Side.FRONT))
    client.jobs.cancel([second])
    client.jobs.retry(second)


def make_others(client: Client, folder: str) -> None:
    agent: dict[str, Any] = {"runner": "command", "argv": ["true"], "prompt_file": "prompt.md"}
    client.templates.add("t", argv=["true"], cwd="sub")
    client.templates.add("a", **agent)
    made = client.templates.submit("t").job_id
    assert client.job(made).params["cwd"] == f"{folder}/sub"
    client.schedules.add(name="s", every="1h", argv=["true"], cwd="sub")
    client.schedules.add(name="p", every="1h", **agent)
    assert client.schedules.show("s")["job"]["cwd"] == f"{folder}/sub"
    assert client.schedules.trigger("p").created
    client.targets.add(Target(name="here", argv=("true", "{subject}"), cwd="sub"))
    assert client.targets.show("here").cwd == f"{folder}/sub"
    assert client.workflows.check(["flow.toml"])[0]["valid"]
    assert client.workflows.start("flow.toml")


def look(client: Client) -> None:
    assert client.jobs.list().documents and client.jobs.queue().documents and client.jobs.why(1)
    assert client.artifacts.list()[0] and client.artifacts.show("file:sub/made.txt")
    assert client.scheduler.status() and client.scheduler.resume()


@on_a_file
def test_who_has_neither_folder_nor_environment_has_those_of_schedules(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "of the server")
    bench = make_bench()
    bench.client.context.config = Config(bench.config.values, {"WORD": "configured"})
    client = bench.client.acting("token:ann", "person", umask=0o027)
    said = 'pwd; umask; echo "$WORD$SECRET"; echo "$PATH"'
    job = client.submit(Request(shell=said)).job_id
    bench.until_ended(job)
    output = Path(bench.home.job(job), "stdout.log").read_text().split()
    assert output[:3] == [str(bench.folder), "0027", "configured"]
    assert output[3].startswith("/usr/local/sbin:") and "HOME" not in client.context.environ


def test_all_that_share_a_store_see_each_change_of_others(bench: Bench) -> None:
    client = bench.client
    clients = [client, *(client.acting(f"token:{each}", "person", umask=0) for each in "ab")]
    before = [each.context.changes() for each in clients]
    other = open_store(bench.home.store_url or f"sqlite://{bench.home.database}", bench.clock)
    with other.write() as tx:
        tx.settings.set_mark("log_bytes", 1)
    other.close()
    after = [each.context.changes() for each in clients]
    assert all(new != old for new, old in zip(after, before, strict=True))


def test_one_that_acts_for_another_does_not_close_the_store(bench: Bench) -> None:
    with bench.client.acting("token:ann", "person", umask=0) as client:
        job = client.submit(Request(argv=("true",))).job_id
    assert bench.job(job).submitted_by == "token:ann"
