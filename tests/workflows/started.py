"""A run of a workflow on a bench, from the text of its file."""

from typing import Any

from harness import Bench
from headway.workflows.model import WorkflowFile
from headway.workflows.runs import show_run
from headway.workflows.start import RunRequest, StartedRun, compile_run, start


class Started:
    """One run, and how its nodes stand."""

    def __init__(self, bench: Bench, text: str, *words: str, **params: str) -> None:
        self.bench = bench
        context = bench.client.context
        asked = {name: params.pop(name) for name in RunRequest._fields if name in params}
        request = RunRequest(words=words, params=params, **asked)  # type: ignore[arg-type]
        file = WorkflowFile("flow", "flow.toml", text)
        self.manifest = compile_run(context, file, request)
        self.made: StartedRun = start(context, self.manifest, request)
        self.run = self.made.run

    @property
    def document(self) -> dict[str, Any]:
        return show_run(self.bench.client.context, self.run)

    def node(self, name: str) -> dict[str, Any]:
        return next(each for each in self.document["nodes"] if each["id"] == name)

    def job(self, name: str) -> int:
        return int(self.node(name)["job"].removeprefix("job-"))

    def outcomes(self) -> dict[str, str | None]:
        return {each["id"]: each["outcome"] for each in self.document["nodes"]}

    def ended(self) -> dict[str, Any]:
        """Its document, once it has ended."""
        self.bench.until(lambda: self.document["ended_at"], f"wf-{self.run} to end")
        return self.document

    def log(self, name: str) -> str:
        with open(f"{self.bench.home.job(self.job(name))}/stdout.log") as file:
            return file.read()
