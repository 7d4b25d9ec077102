"""The verbs of the queue, as methods of the client: each is told in a module of its own, which is
imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from headway.core.model import JobId

if TYPE_CHECKING:
    from headway.adding import Submitted
    from headway.client import Cancelled, Client
    from headway.core.dispatch import DispatchPlan
    from headway.core.fire import Schedule
    from headway.core.groups import Group, GroupStatus
    from headway.core.order import Place
    from headway.core.targets import Target
    from headway.grouping import Made, Plan
    from headway.ordering import Moved
    from headway.scheduled import Cleared
    from headway.slinging import Slung, Wish
    from headway.submission import Request


class QueueVerbs:
    @property
    def _client(self) -> Client:
        return cast("Client", self)  # there is no other

    # -- order ---------------------------------------------------------------------------------

    def move(self, job_id: JobId, place: Place) -> Moved:
        """Put a waiting job elsewhere among those of its level."""
        from headway.ordering import move

        return move(self._client, job_id, place)

    def reorder(self, job_ids: Sequence[JobId]) -> list[Moved]:
        """Let these have, among the places that they have now, the order given."""
        from headway.ordering import reorder

        return reorder(self._client, job_ids)

    # -- groups --------------------------------------------------------------------------------

    def create_group(self, plan: Plan, job_ids: Sequence[JobId] = (), **how: Any) -> Made:
        """An empty group that is open, or one of these waiting jobs."""
        from headway.grouping import create

        return create(self._client, plan, job_ids, **how)

    def submit_group(self, requests: Sequence[Request], plan: Plan) -> tuple[Made, list[Submitted]]:
        """A whole group in one transaction."""
        from headway.grouping import submit_group

        return submit_group(self._client, requests, plan)

    def close_group(self, group: str) -> tuple[Group, GroupStatus]:
        from headway.grouping import close

        return close(self._client, group)

    def cancel_group(self, group: str) -> tuple[Group, list[Cancelled]]:
        from headway.grouping import cancel

        return cancel(self._client, group)

    def group(self, group: str) -> dict[str, Any]:
        """Its document, with its members."""
        from headway.grouping import document

        return document(self._client, group)

    def groups(self, *, everything: bool = False) -> list[dict[str, Any]]:
        from headway.grouping import listing

        return listing(self._client, everything=everything)

    # -- templates -----------------------------------------------------------------------------

    def add_template(self, name: str, /, **job: Any) -> Any:
        """Keep a specification under a name; `templating.add_template` says with what words."""
        from headway.templating import add_template

        return add_template(self._client, name, **job)

    def archive_template(self, name: str) -> bool:
        from headway.templating import archive_template

        return archive_template(self._client, name)

    def submit_template(self, name: str, /, **overrides: Any) -> Submitted:
        from headway.templating import submit_template

        return submit_template(self._client, name, **overrides)

    # -- schedules -----------------------------------------------------------------------------

    def add_schedule(self, **said: Any) -> Schedule:
        """Make jobs at certain times; `scheduling.add_schedule` says with what words."""
        from headway.scheduling import add_schedule

        return add_schedule(self._client, **said)

    def schedules(self) -> list[dict[str, Any]]:
        from headway.schedules import schedules

        return schedules(self._client)

    def schedule(self, reference: str) -> dict[str, Any]:
        """By its name or its id."""
        from headway.schedules import schedule

        return schedule(self._client, reference)

    def schedule_slots(self, reference: str, limit: int = 20) -> list[dict[str, Any]]:
        """What became of its slots, the newest first."""
        from headway.schedules import schedule_slots

        return schedule_slots(self._client, reference, limit)

    def enable_schedule(self, reference: str) -> bool:
        """It fires from now on; False if it did before."""
        from headway.scheduling import enable_schedule

        return enable_schedule(self._client, reference)

    def disable_schedule(self, reference: str) -> bool:
        """It fires no more; False if that was so before."""
        from headway.scheduling import disable_schedule

        return disable_schedule(self._client, reference)

    def trigger_schedule(self, reference: str) -> Submitted:
        """Make one of its jobs now, for no slot."""
        from headway.scheduling import trigger_schedule

        return trigger_schedule(self._client, reference)

    def remove_schedule(self, reference: str) -> Schedule:
        """Its jobs stay."""
        from headway.scheduling import remove_schedule

        return remove_schedule(self._client, reference)

    # -- periodic jobs -------------------------------------------------------------------------

    def jobs_file(self) -> dict[str, Any]:
        """The jobs file and its entries: what is wrong, what ran, what is due, what is held."""
        from headway.jobsfile.standing import standing

        return standing(self._client)

    # -- slung work ----------------------------------------------------------------------------

    def add_target(self, target: Target, *, replace: bool = False) -> Target:
        from headway.targeting import add_target

        return add_target(self._client, target, replace=replace)

    def remove_target(self, name: str) -> None:
        from headway.targeting import remove_target

        remove_target(self._client, name)

    def sling(self, wish: Wish, *, rehearse: bool = False) -> Slung:
        """Make jobs of work items, or say what would be made."""
        from headway.slinging import sling

        return sling(self._client, wish, rehearse=rehearse)

    def scheduled(self) -> list[dict[str, Any]]:
        """What is slung and has not ended."""
        from headway.scheduled import scheduled

        return scheduled(self._client)

    def clear(self, subject: str | None = None) -> Cleared:
        """Cancel what is slung and waits: all of it, or what is about one subject."""
        from headway.scheduled import clear

        return clear(self._client, subject)

    # -- the scheduler -------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Mode, caps, what is in use, and why nothing starts now."""
        from headway.views import scheduler_status

        return scheduler_status(self._client)

    def dry_run(self, batch: int) -> DispatchPlan:
        """What one pass would start, what it would leave, and why."""
        from headway.views import dry_run

        return dry_run(self._client, batch)
