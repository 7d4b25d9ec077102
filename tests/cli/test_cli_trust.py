"""A cloned repository runs nothing: whatever its `.headway/` holds, until `headway trust`."""

import os
import pty
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commandline import CommandLine, wait_for

from harness import Site

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")

CONFIG = """\
[worker]
idle = "1s"
[app]
modules = ["evil"]
[agent]
runner = "evil"
[approval]
from_jobs = true
[env]
PYTHONPATH = "{project}"
BASH_ENV = "{project}/evil.sh"
[conditions]
go = ["touch", "{marks}/condition"]
"""
JOBS = """\
jobs:
  command:
    interval: 1
    type: command
    run: [touch, "{marks}/command"]
  named:
    interval: 1
    type: script
    run: evil
    conditions: [evil]
  script:
    interval: 1
    type: script
    run: evil:run
  asked:
    interval: 1
    type: command
    run: [touch, "{marks}/asked"]
    conditions: ["command:touch {marks}/jobs-condition"]
  agent:
    interval: 1
    type: agent
    prompt: x
    runner: evil
"""
RUNNER = """\
argv = ["touch", "{marks}/runner"]
prompt = "stdin"
parser = "text"
version_command = ["touch", "{marks}/version"]
"""
MODULE = """\
import headway, pathlib
pathlib.Path("{marks}/import").touch()
app = headway.App()
@headway.job("evil")
def evil(): pass
@headway.condition("evil")
def holds(): return True
@headway.poll
def poll(): pathlib.Path("{marks}/poll").touch()
def run(): pass
"""
FILES = {
    ".headway/config.toml": CONFIG,
    ".headway/jobs.yaml": JOBS,
    ".headway/runners/evil.toml": RUNNER,
    ".headway/runners/claude.toml": RUNNER,
    ".headway/workflows/evil.toml": '[nodes.a]\nargv = ["touch", "{marks}/workflow"]\n',
    ".headway/tasks/one.md": "# one\n",
    ".headway/plans/one.md": "# one\n",
    "mine.toml": '[imports.x]\nworkflow = "evil"\n[nodes.b]\nargv = ["true"]\n',
    "evil.py": MODULE,
    "evil.sh": "touch {marks}/bash\n",
    "sitecustomize.py": "import pathlib; pathlib.Path('{marks}/site').touch()\n",
}
# Every command that could set one of the baits off.
COMMANDS = [
    ("init",),
    ("submit", "--", "true"),
    ("submit", "--require", "custom:go", "--", "true"),
    ("submit", "--type", "agent", "--no-check", "--", "x"),
    ("jobs", "list"),
    ("jobs", "list", "--json"),
    ("jobs", "schedule"),
    ("jobs", "why", "job-1"),
    ("jobs", "why", "job-2"),
    ("why", "job-2"),
    ("scheduler", "status"),
    ("scheduler", "run", "--dry-run"),
    ("scheduler", "run"),
    ("scheduler", "list"),
    ("sling", "one"),
    ("doctor",),
    ("jobsfile", "check"),
    ("jobsfile", "list"),
    ("jobsfile", "schema"),
    ("runners", "list"),
    ("runners", "show", "evil"),
    ("runners", "show", "claude"),
    ("config", "list"),
    ("schedules", "list"),
    ("schedules", "add", "x", "--every", "1h", "--", "true"),
    ("schedules", "trigger", "x"),
    ("templates", "list"),
    ("targets", "list"),
    ("artifacts", "list"),
    ("service", "status"),
    ("service", "install", "--print"),
    ("exec", "--", "bash", "-c", "true"),
    ("direct", "--", "true"),
    ("run", "evil"),
    ("run", "evil", "--check"),
    ("run", "./mine.toml"),
    ("trust",),
    ("trust", "--json"),
    ("trust", "--list"),
    (),
]


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


def clone(line: CommandLine, marks: Path, more: dict[str, str] | None = None) -> None:
    """A fresh clone, at the place of the command line's folder, of a repository with baits."""
    origin = line.folder.parent / "origin"
    for name, text in {**FILES, **(more or {})}.items():
        path = origin / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{marks}", str(marks)).replace("{project}", str(line.folder)))
    for words in (["init", "-q"], ["add", "-f", "."], ["commit", "-qm", "x"]):
        subprocess.run([*GIT, *words], cwd=origin, check=True)
    line.folder.rmdir()
    subprocess.run([*GIT, "clone", "-q", str(origin), str(line.folder)], check=True)


def marked(marks: Path) -> set[str]:
    return {each.name for each in marks.iterdir()}


@pytest.mark.req("C47")
@pytest.mark.long
def test_a_clone_runs_nothing_whatever_is_asked_until_it_is_trusted(
    bare: CommandLine, marks: Path
) -> None:
    bare.env["XDG_CONFIG_HOME"] = str(bare.folder.parent / "systemd")
    clone(bare, marks)
    for command in COMMANDS:
        done = bare(*command, code=None)
        assert "Traceback" not in done.stderr, (command, done.stderr)
        assert marked(marks) == set(), command
    told = bare("exec", "--", "true").stderr
    assert told.count("is not trusted") == 1, "once for each command"
    for name in ("app.modules", "[env]", "[conditions]", "jobs.yaml", "runners/evil.toml"):
        assert name in told
    worker = bare.start("work")
    wait_for(lambda: bare.json("scheduler", "status")["worker"])
    assert bare("exec", "--", "true").returncode == 0, "a worker has made steps"
    assert marked(marks) == set()
    # The same baits do their work as soon as the folder is trusted, in the worker that is there.
    bare("trust", "--yes")
    everything = {"command", "asked", "jobs-condition", "import", "poll", "runner"}
    wait_for(lambda: everything <= marked(marks))
    bare("trust", "--revoke")
    wait_for(lambda: not bare.json("jobsfile", "list")["entries"])
    worker.terminate()
    worker.communicate()


@pytest.mark.req("C47")
def test_an_untrusted_store_gets_nothing_and_no_command_goes_on_without_it(
    bare: CommandLine, marks: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as thief:
        url = f"postgresql://u:secret@127.0.0.1:{thief.getsockname()[1]}/x"
        clone(bare, marks, {".headway/config.toml": f"[store]\nurl = '{url}'\n"})
        before = tree(bare.folder)
        for command in COMMANDS:
            if not command or command[0] in ("runners", "trust", "doctor"):
                continue
            if command[:2] in (("jobsfile", "check"), ("jobsfile", "schema")):
                continue
            done = bare(*command, code=5)
            assert "headway trust" in done.stderr and "secret" not in done.stderr, command
        for command in (("trust",), ("trust", "--json"), ("doctor",), ("runners", "list")):
            assert "secret" not in (said := bare(*command, code=None)).stdout + said.stderr
        thief.setblocking(False)
        with pytest.raises(BlockingIOError):
            thief.accept()
    assert tree(bare.folder) == before and marked(marks) == set()
    own = f"sqlite://{bare.folder}/mine.db"
    assert bare("--store", own, "exec", "--", "echo", "hello").stdout == "hello\n"


@pytest.mark.req("C47")
def test_a_store_that_was_committed_is_not_opened(
    bare: CommandLine, marks: Path, tmp_path: Path
) -> None:
    """It holds a job that would run as soon as a worker comes."""
    (tmp_path / "theirs").mkdir()
    theirs = Site(tmp_path / "theirs", config="[worker]\nautostart = false\n")
    theirs.submit("touch", f"{marks}/planted")
    theirs.close()
    shutil.copytree(theirs.folder / ".headway", tmp_path / "origin" / ".headway")
    (tmp_path / "origin" / ".headway" / ".gitignore").unlink()
    (tmp_path / "origin" / ".headway" / "trust-mark").write_text("f" * 32)  # of their record
    clone(bare, marks, {".headway/config.toml": "", ".headway/jobs.yaml": ""})
    for command in (("exec", "--", "true"), ("jobs", "list"), ("work",), ("scheduler", "run")):
        assert "headway trust" in bare(*command, code=5).stderr
    assert "headway.db" in bare("doctor", code=None).stdout
    allowed = bare.json("trust", code=4)["trust"]["allows"]
    assert {"kind": "store", "name": "job-1", "detail": f"runs touch {marks}/planted"} in allowed
    assert marked(marks) == set()
    bare("trust", "--yes")
    bare("exec", "--", "true")
    wait_for(lambda: marked(marks) == {"planted"})


def tree(folder: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if ".git/" not in f"{path}/"
    }


def test_trust_shows_each_file_setting_and_program_first(bare: CommandLine, marks: Path) -> None:
    clone(bare, marks)
    shown = bare("trust", code=4)
    assert "headway trust --yes" in shown.stderr
    for word in (
        *("evil.py", "agent.runner", "approval.from_jobs", "PYTHONPATH", "BASH_ENV"),
        *("go", f"{marks}/condition", "calls evil:run", f"{marks}/command", "evil.toml"),
        *("claude.toml", f"{marks}/runner", "workflows/evil.toml", "jobs-condition"),
    ):
        assert word in shown.stdout.replace("\n", "").replace(" ", "") or word in shown.stdout, word
    told = bare.json("trust", code=4)["trust"]
    assert told["trusted"] is False and "no record of trust" in told["reason"]
    kinds = {each["kind"] for each in told["allows"]}
    assert kinds == {
        *("module", "setting", "variable", "condition", "jobs file", "runner", "workflow")
    }
    assert str(bare.home) not in bare("trust", "--list", "--json").stdout
    assert bare.json("trust", "--yes")["trust"]["trusted"] is True
    assert bare.json("trust")["trust"]["recorded"] is True
    listed = bare.json("trust", "--list")["trusted"]
    assert [each["state"] for each in listed if each["path"] == str(bare.home)] == ["trusted"]
    assert bare.json("trust", "--revoke") == {"version": 1, "home": str(bare.home), "revoked": True}
    assert bare.json("trust", "--revoke")["revoked"] is False
    assert bare.json("trust", code=4)["trust"]["trusted"] is False


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_on_a_terminal_trust_asks(bare: CommandLine, marks: Path, answer: str, code: int) -> None:
    clone(bare, marks)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        bare.argv("trust"),
        cwd=bare.folder,
        env=bare.env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, answer.encode())
    heard = b""
    try:
        while more := os.read(ours, 4096):
            heard += more
    except OSError:
        pass
    os.close(ours)
    assert process.wait() == code and b"Trust this folder?" in heard, heard
    assert bare.json("trust", code=None)["trust"]["trusted"] is (code == 0)


def test_options_that_exclude_each_other_are_refused(bare: CommandLine) -> None:
    bare("trust", "--yes", "--revoke", code=2)
    bare("trust", "--list", "--revoke", code=2)


def test_a_folder_without_a_home_has_nothing_to_be_trusted(bare: CommandLine) -> None:
    bare("trust", code=3)
    (bare.folder / "src").mkdir()
    assert "is no home" in bare("--home", ".", "trust", "--yes", code=3).stderr
    assert tree(bare.folder) == {"src": None}


def test_a_job_may_not_trust(headway: CommandLine) -> None:
    """Whatever approval.from_jobs says."""
    headway.configure('[worker]\nidle = "1s"\n[approval]\nfrom_jobs = true\n')
    program = headway.argv("trust")
    for words in (["--yes"], ["--revoke"]):
        done = headway("exec", "--", *program, *words, code=4)
        assert "inside job-" in done.stderr and "a person decides" in done.stderr
    assert headway.json("trust")["trust"]["recorded"] is True
    headway("exec", "--", *program, "--list", "--json")


def test_a_home_that_a_command_made_is_trusted(bare: CommandLine) -> None:
    bare("init")
    (bare.home / "jobs.yaml").write_text("jobs: {}\n")
    assert "trust" not in bare("jobs", "list").stderr
    assert bare.json("jobsfile", "list")["jobs_file"]["state"] == "good"
    assert "trusted" in bare("doctor", code=None).stdout
    aside = bare.folder / "elsewhere"
    shutil.copytree(bare.home, aside)
    told = bare("--home", str(aside), "jobs", "list").stderr  # its store, and nothing else
    assert "so jobs.yaml does not count; `headway trust`" in told


def test_init_in_a_clone_does_not_trust_it(bare: CommandLine, marks: Path) -> None:
    clone(bare, marks)
    done = bare("init")
    assert "headway trust" in done.stderr
    assert bare.json("trust", code=4)["trust"]["trusted"] is False


def test_what_does_not_count_is_shown_where_it_would(bare: CommandLine, marks: Path) -> None:
    clone(bare, marks)
    bare("init")
    listed = bare("jobsfile", "list")
    assert "jobs.yaml is not trusted" in listed.stderr
    told = bare.json("jobsfile", "list")
    assert told["jobs_file"]["state"] == "untrusted" and told["entries"] == []
    assert "app.modules" in told["untrusted"]
    checked = bare("jobsfile", "check")
    assert "nothing is wrong" in checked.stderr and "is not trusted" in checked.stderr
    found = {each["check"]: each for each in bare.json("doctor", code=None)["findings"]}
    assert found["trust"]["level"] == "yellow" and "jobs.yaml" in found["trust"]["detail"]


def test_with_the_variable_everything_counts(bare: CommandLine, marks: Path) -> None:
    clone(bare, marks)
    bare.env["HEADWAY_TRUST"] = "1"
    assert bare("exec", "--", "true").stderr == ""
    wait_for(lambda: {"import", "command", "poll"} <= marked(marks))
    said = bare("trust", "--revoke").stderr
    assert "HEADWAY_TRUST=1" in said


def test_a_setting_that_is_written_into_an_untrusted_folder_waits_for_trust(
    bare: CommandLine, marks: Path
) -> None:
    clone(bare, marks)
    bare("config", "set", "app.modules", "mine")
    assert bare.json("config", "get", "app.modules")["value"] == []
    bare("trust", "--yes")
    assert bare.json("config", "get", "app.modules")["value"] == ["mine"]


def test_a_module_that_the_user_names_runs_beside_settings_that_need_no_trust(
    bare: CommandLine,
) -> None:
    """The worker began anew for ever: it took the user's module for one of the folder."""
    bare.home.mkdir(0o700)
    (bare.home / "config.toml").write_text('[worker]\nidle = "1s"\n')
    (bare.folder / "mine.py").write_text(
        "import headway\napp = headway.App()\n@app.task\ndef double(x): return 2 * x\n"
    )
    assert bare.json("trust", code=4)["trust"]["trusted"] is False
    with bare.start("work", "--app", "mine", stderr=subprocess.STDOUT) as worker:
        call = "import mine; print(mine.double.submit(21).result(timeout=30))"
        argv = [sys.executable, "-c", call]
        done = subprocess.run(argv, cwd=bare.folder, env=bare.env, capture_output=True, text=True)
        worker.terminate()
        said, _ = worker.communicate(timeout=30)
    assert done.stdout == "42\n", (done, said)
    assert b"anew" not in said


def test_a_unit_finds_the_record() -> None:
    from headway.admin.service.plan import make_plan, unit_text

    given = {"PATH": "/bin", "XDG_STATE_HOME": "/my state", "HOME": "/root"}
    plan = make_plan(
        "/x/.headway", python="/p", log="/l", store_url=None, grace_seconds=1, environ=given
    )
    assert 'Environment="XDG_STATE_HOME=/my state"' in unit_text(plan)
    assert "HEADWAY_TRUST" not in unit_text(plan)
    wanted = make_plan(
        *("/x/.headway",),
        python="/p",
        log="/l",
        store_url=None,
        grace_seconds=1,
        environ={**given, "HEADWAY_TRUST": "1"},
    )
    assert "Environment=HEADWAY_TRUST=1\n" in unit_text(wanted)
