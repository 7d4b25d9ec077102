"""What `headway.Client` offers for workflows."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headway.base.errors import InvalidInputError, NotFoundError
from headway.core.model import NOTHING, JobId
from headway.jobs.context import Context
from headway.jobs.references import RUN_ID
from headway.jobs.submit import graph_limit
from headway.workflows.files import read_file, workflow_names

if TYPE_CHECKING:
    from headway.workflows.feed import RunFeed
    from headway.workflows.mistakes import Mistake
    from headway.workflows.model import Routes, Workflow, WorkflowFile
    from headway.workflows.retry import RetriedRun
    from headway.workflows.start import RunRequest, StartedRun


class Workflows:
    """`client.workflows`: files of steps. Each is known by its name, or by the path of its file."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def list(self) -> builtins.list[dict[str, Any]]:
        """Those of the home, by name, and how many mistakes each has."""
        found = []
        for name in workflow_names(self._context.home):
            workflow, mistakes = self._checked(name)
            found.append(
                {
                    "name": name,
                    "path": self._shown(name),
                    "description": workflow.description if workflow else "",
                    "nodes": len(workflow.nodes) if workflow else 0,
                    "mistakes": len(mistakes),
                }
            )
        return found

    def check(self, names: Sequence[str] = ()) -> builtins.list[dict[str, Any]]:
        """All that is wrong with these files, each mistake with its line and column; with all of
        the home where none is named. Nothing is written, and nothing of them runs."""
        from headway.workflows.checks import routes_of
        from headway.workflows.compiler import notes_of
        from headway.workflows.documents import mistake_document

        found = []
        for name in names or workflow_names(self._context.home):
            workflow, mistakes = self._checked(name)
            right = workflow if not mistakes else None
            found.append(
                {
                    "name": workflow.name if workflow else name,
                    "path": self._shown(name),
                    "valid": right is not None,
                    "nodes": len(right.nodes) if right else 0,
                    "mistakes": [mistake_document(each) for each in mistakes],
                    "notes": [*notes_of(right, routes_of(right))] if right else [],
                }
            )
        return found

    def show(self, name: str, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The document of a workflow; with values for its parameters also the `manifest` that a run
        of them would have. Raises WorkflowError with all that is wrong."""
        from headway.workflows.documents import manifest_document, workflow_document

        workflow, routes = self._right(name)
        document = workflow_document(workflow, routes)
        if given is None:
            return document
        from headway.workflows.compiler import compile_text

        file = self._read(name)
        limit = graph_limit(self._context)
        manifest = compile_text(
            file.text, given, name=file.name, file=file.path, limit=limit, load=self._load
        )
        return {**document, "manifest": manifest_document(manifest)}

    def graph(self, name: str, form: str = "text", *, width: int = 80) -> builtins.list[str]:
        """The lines of a drawing: text, svg, mermaid or dot. Of a run, like `wf-7`, each node says
        how it stands."""
        from headway.workflows.drawing.forms import FORMATS, draw
        from headway.workflows.drawing.model import drawing_of

        if form not in FORMATS:
            raise InvalidInputError(f"there is no format '{form}'; there are {', '.join(FORMATS)}")
        if RUN_ID.fullmatch(name):
            from headway.workflows.runs import run_drawing, run_id

            return [*draw(run_drawing(self._context, run_id(name)), form, width=width)]
        return [*draw(drawing_of(*self._right(name)), form, width=width)]

    def audit(self, name: str) -> dict[str, Any]:
        """Artifacts by outcome, needs that no node meets, loops, locks and roots."""
        from headway.workflows.documents import audit_document

        return audit_document(*self._right(name))

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a workflow file, for editors."""
        from headway.workflows.schema import schema_document

        return schema_document()

    def init(self, name: str, starter: str = "build") -> str:
        """Write a file to begin with; its path. Refused if there is one."""
        from headway.workflows.new_file import init_workflow

        return init_workflow(self._context.home, name, starter)

    # -- runs ----------------------------------------------------------------------------------

    def start(
        self,
        name: str,
        *words: str,
        params: Mapping[str, Any] = NOTHING,
        after: Sequence[JobId | str] = (),
        key: str | None = None,
        priority: int = 0,
        require_approval: bool = False,
        subject: str | None = None,
    ) -> int:
        """Start a run of a workflow; its number. `words` are its inputs, in their order. `after`
        are jobs, by id or slug, and whole runs, like `wf-7`. `subject` is the work item that it is
        about: no other job or run about it may be open."""
        from headway.workflows.start import RunRequest, resolve_after

        jobs, runs = resolve_after(self._context, after)
        request = RunRequest(words, params, jobs, runs, key, priority, require_approval)
        return self.submit(name, request._replace(subject=subject)).run

    def submit(self, name: str, request: RunRequest) -> StartedRun:
        """The same for a request that is made; it says whether the run is new: a key that was seen
        starts none."""
        from headway.workflows.files import refuse_untrusted

        file = self._read(name)
        refuse_untrusted(self._context.home, file)
        return self._start(file, request)

    def start_document(
        self,
        document: Mapping[str, Any],
        *words: str,
        name: str,
        params: Mapping[str, Any] = NOTHING,
        after: Sequence[JobId | str] = (),
        key: str | None = None,
        priority: int = 0,
        require_approval: bool = False,
        subject: str | None = None,
    ) -> int:
        """The same for a workflow that the calling program has made: what its file would be read
        as. As with a submitted command, the program is the user's own word."""
        from headway.workflows.model import WorkflowFile
        from headway.workflows.start import RunRequest, resolve_after

        jobs, runs = resolve_after(self._context, after)
        request = RunRequest(words, params, jobs, runs, key, priority, require_approval)
        request = request._replace(subject=subject)
        return self._start(WorkflowFile(name, name, document), request).run

    def _start(self, file: WorkflowFile, request: RunRequest) -> StartedRun:
        from headway.workflows.start import compile_run, start

        return start(self._context, compile_run(self._context, file, request), request)

    def run(self, run: int) -> dict[str, Any]:
        """The document of a run, with its nodes."""
        from headway.workflows.runs import show_run

        return show_run(self._context, run)

    def runs(self, *, everything: bool = False) -> builtins.list[dict[str, Any]]:
        """Runs that have not ended and the last day's, the newest first."""
        from headway.workflows.runs import list_runs

        return list_runs(self._context, everything=everything)

    def wait(self, run: int, *, timeout: float | None = None, **more: Any) -> dict[str, Any]:
        """Wait until a run has ended; its document."""
        from headway.workflows.runs import wait_for_run

        return wait_for_run(self._context, run, timeout=timeout, **more)

    def stop(self, run: int, *, everything: bool = False) -> dict[str, Any]:
        """Cancel all of a run but its `finally`; with `everything` that, too."""
        from headway.workflows.runs import stop_run

        return stop_run(self._context, run, everything=everything)

    def retry(
        self,
        run: int,
        *,
        from_node: str | None = None,
        budget_usd: float | None = None,
        budget_tokens: int | None = None,
        dry_run: bool = False,
    ) -> RetriedRun:
        """Run every node again that ended badly by itself, and all that follows; or a node, with
        all of its instances, and all after it. The budgets are other limits for all agents of the
        run. With `dry_run` nothing is changed."""
        from headway.workflows.retry import retry_run

        return retry_run(
            self._context,
            run,
            from_node=from_node,
            budget_usd=budget_usd,
            budget_tokens=budget_tokens,
            dry_run=dry_run,
        )

    def why(self, run: int) -> dict[str, Any]:
        """The first cause of why a run does not go on, or went wrong."""
        from headway.workflows.why import why_run

        return why_run(self._context, run)

    def feed(self, run: int, *, since: int) -> RunFeed:
        """What happens in a run after an event, node by node."""
        from headway.workflows.feed import RunFeed

        return RunFeed(self._context, run, since=since)

    def manifest(self, run: int) -> dict[str, Any]:
        """What a run is made of: all of each node, as compiled."""
        from headway.workflows.runs import run_manifest

        return run_manifest(self._context, run)

    # -- files ---------------------------------------------------------------------------------

    def _read(self, name: str) -> WorkflowFile:
        return read_file(self._context.home, name, self._context.folder)

    def _load(self, name: str) -> WorkflowFile | None:
        """What another file imports."""
        try:
            return self._read(name)
        except NotFoundError:
            return None

    def _shown(self, name: str) -> str:
        from headway.workflows.files import ENDING, shown_path

        is_path = "/" in name or name.endswith(ENDING)
        return name if is_path else shown_path(self._context.home, name)

    def _checked(self, name: str) -> tuple[Workflow | None, builtins.list[Mistake]]:
        """A workflow and what is wrong with it; None if it cannot be read at all."""
        from headway.workflows.compiler import check_text
        from headway.workflows.mistakes import Mistake, WorkflowError
        from headway.workflows.named_files import check_named_files

        try:
            file = self._read(name)
            workflow, problems = check_text(
                file.text,
                name=file.name,
                file=file.path,
                limit=graph_limit(self._context),
                load=self._load,
            )
        except WorkflowError as error:
            return None, [*error.mistakes]
        except InvalidInputError as error:
            words = str(error)
            for path in (self._shown(name), self._context.home.path):
                words = words.removeprefix(f"{path}: ")
            return None, [Mistake(words)]
        check_named_files(workflow, self._context.home, problems)
        return workflow, problems.mistakes

    def _right(self, name: str) -> tuple[Workflow, Routes]:
        """One without mistakes; else they are raised."""
        from headway.workflows.checks import routes_of
        from headway.workflows.compiler import check_text

        file = self._read(name)
        limit = graph_limit(self._context)
        workflow, problems = check_text(
            file.text, name=file.name, file=file.path, limit=limit, load=self._load
        )
        problems.raise_if_any()
        return workflow, routes_of(workflow)
