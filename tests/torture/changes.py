"""A workflow on a repository under kills: `python -m torture.changes --kills 300`.

Each round runs examples/agent-change in a new repository: a plan, a red check that the agent mends,
a conflict, a merge. Meanwhile the worker, and the processes of operations and gates, are killed
with -9 at random moments; a worker comes back at once. Agents are spared: whether one that was
killed had done its work, nobody knows, and that blocks a run on purpose. So does a kill in the
instant between the note that an agent is called and its start, or between its end and the note of
that; such an end is accepted by its words. What went otherwise than it must is kept to look at. In
the end every other run must have come to the same: one commit of each operation, one merge, each
branch moved to each commit once, the same files, a clean checkout.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from headway.base.trust import record
from headway.client import Client, connect

EXAMPLE = Path(__file__).parents[2] / "examples" / "agent-change"
SOURCE = str(Path(__file__).parents[2] / "src")
AGENT = """#!/bin/sh
PROMPT=$(cat)
case "$PROMPT" in
  *"Write a plan"*) TEXT="write login.txt" ;;
  *"does not say how"*) echo "to log in, use your key" > login.txt; TEXT=mended ;;
  *"conflict"*) echo "to log in, use both" > login.txt; TEXT=resolved ;;
  *) echo "use your key" > login.txt; TEXT=done ;;
esac
printf '{"type": "result", "text": "%s", "cost_usd": 0.5}\\n' "$TEXT"
"""
RUNNER = 'argv = ["{program}", "--tools={{allowed_tools}}"]\nprompt = "stdin"\nparser = "jsonl"\n'
ENDS_WITHIN = 180.0
WHO = {
    f"GIT_{who}_{what}": "ann@example.org"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}
NODE = b"__workflow-node"
ON_PURPOSE = "nobody knows what the agent did"


class Round:
    """One repository, one run of the workflow, one worker after the other."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder / "change"
        self.chance = chance
        self.kills = 0
        self.env = {
            **WHO,
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_STATE_HOME": str(folder / "state"),
            "PYTHONPATH": SOURCE,
        }
        self._make(folder)
        self.client: Client = connect(home=str(self.folder / ".headway"), environ=self.env)
        self._worker = self._start_worker()

    def _make(self, folder: Path) -> None:
        shutil.copytree(EXAMPLE, self.folder)
        program = folder / "agent"
        program.write_text(AGENT)
        program.chmod(0o755)
        home = self.folder / ".headway"
        workflow = home / "workflows" / "change.toml"
        text = workflow.read_text().replace('"claude"', '"small"')
        # A person is not part of this; what one decides is no process that could be killed.
        text = text.replace('args = { question = "Build this plan?", expires = "3d" }', "")
        workflow.write_text(text.replace("control.gate.approval", "control.gate.stop_condition"))
        (home / "runners").mkdir()
        (home / "runners" / "small.toml").write_text(RUNNER.format(program=program))
        (home / "config.toml").write_text("[worker]\ncrash_loop = 0\nautostart = false\n")
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "begin")
        record(str(home), self.env)

    def git(self, *args: str) -> str:
        return self._said("git", *args, check=True)

    def headway(self, *args: str) -> str:
        return self._said(sys.executable, "-m", "headway", *args, check=False)

    def _said(self, *argv: str, check: bool) -> str:
        done = subprocess.run(
            argv, cwd=self.folder, env=self.env, capture_output=True, text=True, check=check
        )
        return done.stdout.strip()

    def _start_worker(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [sys.executable, "-m", "headway", "work"],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def play(self, most: int) -> dict[str, object]:
        """Until the run has ended, with at most so many kills; its document."""
        self.headway("run", "change", "fix-login", "--set", "spec=login.txt says how to log in")
        self.git("commit", "-q", "--allow-empty", "-m", "a person goes on")
        conflict_made = False
        give_up_at = time.monotonic() + ENDS_WITHIN
        while time.monotonic() < give_up_at:
            document = self.client.workflows.run(1)
            if document["ended_at"] is not None:
                self._worker.terminate()
                self._worker.wait()
                return document
            passes = {each["id"]: each["pass"] for each in document["nodes"]}
            if passes["ci"] == 2 and not conflict_made:
                conflict_made = True
                (self.folder / "login.txt").write_text("to log in, ask a person\n")
                self.git("add", "login.txt")
                self.git("commit", "-q", "-m", "a person writes the same file")
            time.sleep(self.chance.random() * 0.4)
            if self.kills < most:
                self._kill()
        raise SystemExit(f"the run stands still: {self.headway('workflows', 'show', 'wf-1')}")

    def _kill(self) -> None:
        """The worker, or the process of an operation or a gate of commands."""
        if self.chance.random() < 0.5 or not self._kill_operation():
            self._worker.kill()
            self._worker.wait()
            self._worker = self._start_worker()
        self.kills += 1

    def _kill_operation(self) -> bool:
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                line = Path(f"/proc/{entry}/cmdline").read_bytes()
                inside = os.readlink(f"/proc/{entry}/cwd")
            except OSError:
                continue
            if NODE in line and inside.startswith(str(self.folder)) and not _calls_agent(entry):
                os.kill(int(entry), signal.SIGKILL)
                return True
        return False

    def wrong(self, document: dict[str, object]) -> list[str]:
        """What is not as it must be."""
        found = []
        on_purpose = document["state"] == "blocked" and ON_PURPOSE in str(document["reason"])
        if document["state"] != "succeeded" and not on_purpose:
            shown = self.headway("workflows", "show", "wf-1")
            return [f"it is {document['state']}: {document['reason']}", f"\n{shown}"]
        subjects = self.git("log", "--format=%s", "main").splitlines()
        merges = [each for each in subjects if "merge plan fix-login" in each]
        if len(merges) != (0 if on_purpose else 1):
            found.append(f"merged {len(merges)} times: {subjects}")
        keys = self.git("log", "--all", "--format=%(trailers:key=Headway-Operation,valueonly)")
        every = [each for each in keys.splitlines() if each.strip()]
        if len(every) != len({*every}):
            found.append(f"an operation has two commits: {sorted(every)}")
        for branch in self.git("branch", "--format=%(refname:short)").splitlines():
            moves = self.git("reflog", "show", "--format=%h %gs", branch).splitlines()
            if len(moves) != len({each.split()[0] for each in moves}):
                found.append(f"{branch} moved twice to one commit: {moves}")
        if on_purpose:
            return found
        if (self.folder / "login.txt").read_text() != "to log in, use both\n":
            found.append("login.txt is not as it was resolved")
        if self.git("status", "--porcelain", "--untracked-files=no"):
            found.append("the checkout is not clean")
        return found


def _calls_agent(pid: str) -> bool:
    """Whether an agent is at work below it."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        lines = [Path(f"/proc/{child}/cmdline").read_bytes() for child in children]
    except OSError:
        return True
    return any(b"/agent" in line for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--each", type=int, default=12, help="at most, of one run")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    chance, kills, rounds, bad = random.Random(asked.seed), 0, 0, 0
    while kills < asked.kills:
        folder = Path(tempfile.mkdtemp(prefix="headway-change-"))
        one = Round(folder, chance)
        document = one.play(asked.each)
        found = one.wrong(document)
        one.client.close()
        if found:
            found.append(f"\nkept in {folder}")
        else:
            shutil.rmtree(folder)
        kills, rounds, bad = kills + one.kills, rounds + 1, bad + bool(found)
        print(f"round {rounds}: {one.kills} kills, {document['state']}", *found, flush=True)
    print(f"{rounds} runs, {kills} kills, {bad} of them not as they must be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
