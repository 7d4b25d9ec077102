"""Makes this fixture anew; only for the tree of b7429f4, by its interpreter:

    env -i PATH=/usr/bin:/bin LANG=C.UTF-8 OLD/.venv/bin/python make.py

It makes a home in a temporary folder, lets a scheduler run jobs there, ends all of its processes as
a crash does, and writes down what is left: the rows as SQL, and the files that matter. Whatever
names this machine becomes a placeholder, which `build` in `test_left_homes.py` fills in.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
from headway.engine.engine import Engine

from headway.client import connect
from headway.supervise.launcher import Launcher

HERE = Path(__file__).resolve().parent
EARLIER_BOOT = "00000000-0000-4000-8000-000000000000"
COMMIT = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "a"), ("EMAIL", "a@example.org"), ("DATE", "1770000000 +0000"))
}


class Maker:
    def __init__(self, project: Path) -> None:
        self.project = project
        self.home = project / ".headway"
        shutil.copy(HERE / "chores.py", project)
        shutil.copytree(HERE / "home", self.home)
        self.home.chmod(0o700)
        for words in ("init -q -b main", "add chores.py", "commit -q -m first"):
            environ = {**os.environ, **COMMIT}
            subprocess.run(["git", *words.split()], cwd=project, env=environ, check=True)
        self.headway("init")
        self.ids: dict[str, int] = {}
        self.client: Any = connect(home=str(self.home))
        self.engine = Engine(
            self.client.context.store,
            self.client.context.home,
            self.client.context.config,
            self.client.context.host,
            self.client.context.clock,
            worker_id="worker-left",
            launcher=Launcher(),
        )
        self.engine.finisher.open()
        self.engine.recover()

    def headway(self, *words: str) -> str:
        argv = [sys.executable, "-m", "headway", "--as", "tester", *words]
        done = subprocess.run(argv, cwd=self.project, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout

    def submit(self, name: str, *options: str, say: str | None = None) -> None:
        """A job that writes its name to `ran`, or runs `say`."""
        line = say or f"echo {name} >> ran"
        told = self.headway("submit", "--name", name, *options, "--", "sh", "-c", line)
        self.ids[name] = int(told.strip().removeprefix("job-"))

    def call(self, task: str, name: str) -> None:
        program = f"import chores; print(chores.{task}.submit({name!r}, priority=5).id)"
        argv = [sys.executable, "-c", program]
        environ = {**os.environ, "HEADWAY_ACTOR": "tester"}
        told = subprocess.run(
            argv, cwd=self.project, env=environ, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
        self.ids[name] = int(told.strip().removeprefix("job-"))

    def until(self, condition: Callable[[], Any]) -> None:
        give_up_at = time.monotonic() + 60
        self.engine.step()
        while not condition():
            if time.monotonic() > give_up_at:
                raise SystemExit(f"not in time; {self.headway('jobs', 'list')}")
            for key, _ in self.engine.finisher.selector.select(0.1):
                key.data()
            self.engine.step()

    def status(self, name: str) -> str:
        return str(self.client.jobs.last_of_chain(self.ids[name]).status)

    def ended(self, *names: str) -> None:
        done = ("succeeded", "failed", "cancelled", "skipped")
        self.until(lambda: all(self.status(each) in done for each in names))

    def ran(self, *words: str) -> None:
        file = self.project / "ran"
        self.until(lambda: file.exists() and {*words} <= {*file.read_text().split("\n")})

    def folder(self, name: str) -> Path:
        return self.home / "jobs" / str(self.ids[name])

    # -- what is left --------------------------------------------------------------------------

    def fill(self) -> None:
        """Ended jobs first, while the jobs file has nothing to say."""
        jobs_file = self.home / "jobs.yaml"
        content = jobs_file.read_text()
        jobs_file.unlink()
        self.headway("config", "set", "scheduler.max_active", "6")
        self.submit("ended-ok")
        self.submit("ended-retried", "--retries", "1", "--retry-base", "1s", say="exit 3")
        self.submit("ended-skipped", "--skip-exit-code", "9", say="exit 9")
        self.submit("ended-cancelled", "--delay", "1h")
        self.headway("jobs", "cancel", "job-4")
        self.submit("ended-patch", "--worktree", "--save-patch", say="echo more >> chores.py")
        self.headway("groups", "create", "--name", "release", "--mode", "sequential")
        self.submit("group-first", "--group", "release")
        self.call("note", "ended-call")
        self.ended(*self.ids)

        self.headway("groups", "create", "--name", "broken", "--mode", "sequential")
        self.submit("group-failed", "--group", "broken", say="exit 1")
        self.submit("group-stopped", "--group", "broken", "--last")
        self.ended("group-failed", "group-stopped")

        # Six that take all places, each to be left in another way.
        self.call("hang", "left-call")
        rest = "exec sleep 600"
        self.submit("left-rebooted", say=f"echo left-rebooted >> ran; {rest}")
        self.submit(
            "left-retried", "--retries", "1", "--retry-base", "1s", "--retry-on", "unknown",
            say='echo left-retried $HEADWAY_ATTEMPT >> ran; [ "$HEADWAY_ATTEMPT" = 2 ] || ' + rest,
        )  # fmt: skip
        self.submit("left-alone", "--lock", "repo", say=f"echo left-alone >> ran; {rest}")
        self.submit("left-done", say="echo left-done >> ran; while ! [ -e go ]; do sleep 0.1; done")
        alone = ("left-call", "left-rebooted", "left-alone", "left-done")
        self.ran(*alone, "left-retried 1")
        self.until(lambda: not self.engine.finisher.unanswered())
        self.engine.finisher.launch = lambda claims: None  # type: ignore[method-assign]
        self.submit("left-claimed")
        self.until(lambda: self.status("left-claimed") == "running")

        # No place is free: all of these wait.
        jobs_file.write_text(content)
        self.submit("waits-place")
        self.submit("waits-retried-job", "--after", f"job-{self.ids['left-retried']}")
        self.submit("waits-lost-job", "--after", f"job-{self.ids['left-alone']}")
        self.submit("waits-done-job", "--after", f"job-{self.ids['left-done']}")
        self.submit("waits-lock", "--lock", "repo")
        self.submit("waits-time", "--at", "2099-01-01T00:00")
        self.submit("waits-delay", "--delay", "2h")
        self.submit("waits-approval", "--require-approval")
        self.submit("waits-artifact", "--needs", "custom:plan:one")
        self.submit(
            "makes-artifact", "--produces", "custom:plan:one", say="echo makes-artifact >> ran"
        )
        self.submit(
            "waits-worktree", "--worktree", say="git rev-parse HEAD > $HEADWAY_HOME/../head"
        )
        self.submit("group-second", "--group", "release")
        self.call("note", "waits-call")
        self.headway("templates", "add", "report", "--param", "month", "--", "sh", "-c",
                     'echo "report $1" >> ran', "sh", "{month}")  # fmt: skip
        told = self.headway("submit", "--template", "report", "--param", "month=june")
        self.ids["waits-template"] = int(told.strip().removeprefix("job-"))
        self.headway("targets", "add", "town", "--prefix", "gt-", "--", "sh", "-c",
                     'echo "slung $1" >> ran', "sh", "{subject}")  # fmt: skip
        self.headway("sling", "gt-1")
        for name, *when in (
            ("daily", "--cron", "47 4 * * *"),
            ("often", "--every", "20h"),
            ("once", "--at", "+30m", "--window", "72h"),
        ):
            line = f"echo {name} >> ran"
            self.headway("schedules", "add", "--name", name, *when, "--", "sh", "-c", line)
        self.until(lambda: len([*(self.home / "run" / "polls").glob("*")]) == 1)
        self.until(lambda: '"sweep"' in self.headway("jobs", "list", "--json"))

    def finish_one(self) -> None:
        """One job ends while there is no worker."""
        self.engine.finisher._launcher.stop(kill=True)
        (self.project / "go").touch()
        wait_for(lambda: [*self.folder("left-done").glob("outcome.*.json")])
        (self.project / "go").unlink()

    def crash(self) -> None:
        """Whatever was started ends at once."""
        self.engine.finisher._launcher.stop(kill=True)
        for path in self.home.rglob("started.*"):
            told = json.loads(path.read_text())
            for pid in (told["supervisor_pid"], told["child_pid"]):
                if str(self.home).encode() in environment_of(told["child_pid"]):
                    os.kill(pid, signal.SIGKILL)

    # -- writing it down -----------------------------------------------------------------------

    def write_down(self) -> None:
        left_at = self.client.context.clock.now()
        self.client.close()
        host = json.loads((self.home / "host-id").read_text())["id"]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        source = str(Path(sys.modules["headway"].__file__ or "").parents[1])
        names = {
            str(self.project): "@PROJECT@",
            sys.executable: "@PYTHON@",
            source: "@SOURCE@",
            host: "@HOST@",
            boot: "@BOOT@",
            f"'{os.uname().nodename}'": "'host'",
        }

        def plain(text: str) -> str:
            for name, placeholder in names.items():
                text = text.replace(name, placeholder)
            return text

        rows = plain(self._dump())
        (token,) = [
            each.name.split(".")[1] for each in self.folder("left-rebooted").glob("claim.*")
        ]
        rows = "\n".join(
            line.replace("@BOOT@", EARLIER_BOOT) if token in line else line
            for line in rows.split("\n")
        )
        (HERE / "store.sql").write_text(rows)
        files = {}
        for path in sorted(self.home.rglob("*")):
            name = str(path.relative_to(self.home))
            if path.is_file() and self._matters(name):
                files[name] = plain(path.read_bytes().rstrip(b"\0").decode())
                if token in name:
                    files[name] = files[name].replace("@BOOT@", EARLIER_BOOT)
        (HERE / "files.json").write_text(json.dumps(files, indent=1) + "\n")
        about = {"left_at": left_at, "jobs": self.ids, "ran": (self.project / "ran").read_text()}
        (HERE / "about.json").write_text(plain(json.dumps(about, indent=1)) + "\n")

    def _matters(self, name: str) -> bool:
        """Environments, poll data, function hosts, and all of jobs that have not ended; of ended
        ones the outcome, and what they made."""
        parts = name.split("/")
        if parts[0] == "jobs":
            left = [str(number) for job, number in self.ids.items() if job.startswith("left-")]
            return parts[1] in left or parts[-1] in ("outcome.json", "command.patch")
        return parts[0] == "env" or parts[:2] in (["run", "hosts"], ["run", "polls"])

    def _dump(self) -> str:
        """Rows before indexes and triggers, as these would refuse some."""
        connection = apsw.Connection(str(self.home / "headway.db"))
        (version,) = connection.execute("pragma user_version").fetchall()[0]
        (application,) = connection.execute("pragma application_id").fetchall()[0]
        lines = [f"pragma user_version = {version};", f"pragma application_id = {application};"]
        parts = connection.execute(
            "select type, name, sql from sqlite_schema where sql is not null "
            "and name not like 'sqlite_%' order by type <> 'table', rowid"
        ).fetchall()
        lines += [f"{sql};" for kind, _, sql in parts if kind == "table"]
        for kind, name, _ in parts:
            if kind == "table":
                for row in connection.execute(f"select * from {name}"):
                    values = ", ".join(map(str, map(apsw.format_sql_value, row)))
                    lines.append(f"insert into {name} values ({values});")
        lines += [f"{sql};" for kind, _, sql in parts if kind != "table"]
        return "\n".join(lines) + "\n"


def environment_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def wait_for(condition: Callable[[], Any]) -> None:
    give_up_at = time.monotonic() + 60
    while not condition():
        if time.monotonic() > give_up_at:
            raise SystemExit("not in time")
        time.sleep(0.05)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        maker = Maker(Path(folder))
        try:
            maker.fill()
            maker.finish_one()
        finally:
            maker.crash()
        maker.write_down()
