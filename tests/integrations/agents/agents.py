"""A home with agent programs that are small scripts, for tests of agent jobs."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from harness import Bench
from headway.core.model import Job
from headway.jobs.agents import agent_request

SPEAKER = Path(__file__).with_name("speaker.py")
RUNNERS = ("claude", "codex", "gemini", "command")


class Agents:
    """Runs agents on a bench. Each program is the speaker, which speaks its format."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.programs = bench.folder / "bin"
        self.programs.mkdir()
        for name in RUNNERS:
            self.install(name, name)
        path = os.pathsep.join([str(self.programs), bench.client.context.environ["PATH"]])
        bench.client.context.environ = {**bench.client.context.environ, "PATH": path}

    def install(self, name: str, spoken: str) -> None:
        script = self.programs / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {SPEAKER} {spoken} "$@"\n')
        script.chmod(0o755)

    def runner(self, name: str, text: str) -> None:
        folder = Path(self.bench.home.path) / "runners"
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.toml").write_text(text)

    def submit(self, runner: str, prompt: str, **options: Any) -> int:
        if runner == "command":
            options.setdefault("argv", ("command",))
        return self.bench.client.submit(agent_request(prompt, runner=runner, **options)).job_id

    def ended(self, runner: str, prompt: str, **options: Any) -> Job:
        job = self.submit(runner, prompt, **options)
        return self.bench.until_ended(job)[0]

    def result(self, job: Job) -> dict[str, Any]:
        path = Path(self.bench.home.job(job.id)) / "result.json"
        document: dict[str, Any] = json.loads(path.read_text())
        return document

    def log(self, job: Job, name: str) -> str:
        return (Path(self.bench.home.job(job.id)) / f"{name}.log").read_text(errors="replace")

    def built_in(self, name: str, **replaced: str) -> None:
        """The shipped runner, with other lines: as a user's copy of it."""
        import headway.integrations.agents.files as files

        text = Path(files.folders(None)[0], f"{name}.toml").read_text()
        for old, new in replaced.items():
            key = old.replace("__", ".")
            lines = [
                f"{key} = {new}" if line.startswith(f"{key} =") else line
                for line in text.splitlines()
            ]
            text = "\n".join(lines) + "\n"
        self.runner(name, text)
