"""What `headway.Client` offers for schedules and the jobs file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.jobs.context import Context
from headway.schedules.manage import (
    add_schedule,
    disable_schedule,
    enable_schedule,
    remove_schedule,
    trigger_schedule,
)
from headway.schedules.views import (
    schedule,
    schedule_runs,
    schedule_slots,
    schedules,
    upcoming_slots,
)

if TYPE_CHECKING:
    from headway.core.fire import Schedule
    from headway.jobs.insert import Submitted


class Schedules:
    """`client.schedules`: what makes jobs at certain times. Each is known by its name or its id."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def add(self, **said: Any) -> Schedule:
        """Make jobs at certain times: `cron=`, `every=` or `at=`, and `template=` or the words of a
        job. `headway.schedules.manage.add_schedule` has them all."""
        return add_schedule(self._context, **said)

    def list(self) -> Sequence[dict[str, Any]]:
        return schedules(self._context)

    def show(self, reference: str) -> dict[str, Any]:
        return schedule(self._context, reference)

    def slots(self, reference: str, limit: int = 20) -> Sequence[dict[str, Any]]:
        """The records of its slots, the newest first."""
        return schedule_slots(self._context, reference, limit)

    def runs(self, reference: str, limit: int = 30) -> Sequence[dict[str, Any]]:
        """How its last jobs, or runs of its workflow, ended and how long they took, the newest
        first."""
        return schedule_runs(self._context, reference, limit)

    def upcoming(
        self, begin: int, end: int, *, limit: int = 1000, each: int | None = None
    ) -> tuple[Sequence[dict[str, Any]], bool]:
        """The slots of all enabled schedules between two instants, the first `each` of a schedule,
        and whether there are more."""
        return upcoming_slots(self._context, begin, end, limit=limit, each=each)

    def enable(self, reference: str) -> bool:
        """It fires from now on; False if it did before."""
        return enable_schedule(self._context, reference)

    def disable(self, reference: str) -> bool:
        """It fires no more; False if that was so before."""
        return disable_schedule(self._context, reference)

    def trigger(self, reference: str, *, key: str | None = None) -> Submitted:
        """Make one of its jobs now, for no slot; the same key twice makes one."""
        return trigger_schedule(self._context, reference, key=key)

    def remove(self, reference: str) -> Schedule:
        """Its jobs stay."""
        return remove_schedule(self._context, reference)

    def __call__(self) -> Sequence[dict[str, Any]]:
        """The name of `list` before."""
        from headway.base.renamed import warn_of_name

        warn_of_name("Client.schedules()", "Client.schedules.list()")
        return self.list()


class JobsFile:
    """`client.jobsfile`: the file of periodic jobs."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def list(self) -> dict[str, Any]:
        """The file and its entries: what is wrong, what ran, what is due, what is held."""
        from headway.schedules.jobsfile.views import standing

        return standing(self._context)

    def missing(self) -> Sequence[dict[str, Any]]:
        """What the present file names and is not there, each with its line and key; nothing while
        the file is broken or not trusted. To find functions, the modules are imported, in a process
        of their own."""
        from headway.schedules.jobsfile.views import missing_from_file

        return missing_from_file(self._context)

    def check(self, content: bytes) -> Sequence[str]:
        """The names of the entries in a jobs file of this content. Raises JobsFileError with all
        that is wrong."""
        from headway.schedules.jobsfile.reader import read_jobs_file

        return [entry.name for entry in read_jobs_file(content)]

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a jobs file, for editors."""
        from headway.schedules.jobsfile.schema import schema_document

        return schema_document()
