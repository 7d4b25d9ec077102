"""A run of a workflow, as the program that started it holds it: its state, its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headway.base.units import Duration, read_duration
from headway.core.model import shown_run

if TYPE_CHECKING:
    from headway.functions.handle import OpenedApp
    from headway.workflows.nouns import Workflows


class RunHandle:
    """A run. It holds nothing but the number, so it may be kept, or made again elsewhere."""

    def __init__(self, app: OpenedApp, run: int | str) -> None:
        """`run` is the run's number, or its id."""
        from headway.workflows.runs import run_id

        self._app = app
        self.run = run if isinstance(run, int) else run_id(run)

    @property
    def _workflows(self) -> Workflows:
        from headway.workflows.nouns import Workflows

        return Workflows(self._app.context)

    @property
    def id(self) -> str:
        return shown_run(self.run)

    @property
    def state(self) -> str:
        """running, succeeded, failed, blocked or cancelled."""
        return str(self.document()["state"])

    def done(self) -> bool:
        return self.document()["ended_at"] is not None

    def document(self) -> dict[str, Any]:
        """All that is known, as `headway workflows show --json` prints it."""
        return self._workflows.run(self.run)

    def wait(self, timeout: Duration | None = None) -> dict[str, Any]:
        """Wait for its end; its document, whose `state` says how that was. Raises TimedOutError
        after `timeout` (seconds, or as `"5m"`). Inside a task it lends what that one holds
        meanwhile."""
        from headway.functions.current import present

        seconds = None if timeout is None else read_duration(timeout, "timeout") / 1e6
        return self._workflows.wait(self.run, timeout=seconds, inside=present())

    def stop(self, *, everything: bool = False) -> dict[str, Any]:
        """Cancel all of it but its `finally`; with `everything` that, too. Its document."""
        return self._workflows.stop(self.run, everything=everything)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RunHandle):
            return NotImplemented
        return self.run == other.run and self._app is other._app

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<{self.id}>"
