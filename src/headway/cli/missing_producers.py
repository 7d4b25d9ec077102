"""What new jobs need, is not there, and no job makes: said when they are submitted."""

from collections.abc import Sequence

from headway.cli.render import say
from headway.jobs.settings import store_setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from headway.client import Client
    from headway.core.model import JobId, JobSpec
    from headway.jobs.insert import Submitted

MOST_SAID = 10
SETTING = "scheduler.missing_producer"


def say_what_nobody_makes(client: "Client", job_ids: "Sequence[JobId]") -> None:
    """They are accepted: the jobs that make it may come later. What then becomes of these is up to
    a setting."""
    found = client.artifacts.without_producers(job_ids)
    if not found:
        return
    waits = store_setting(client.scheduler.settings(), SETTING) == "wait"
    for job_id, text in found[:MOST_SAID]:
        so = "so it waits" if waits else "so it is blocked"
        then = "" if waits else f", then `headway jobs retry job-{job_id}`"
        say(
            f"job-{job_id} needs {text}, which no job makes, {so}; "
            f"submit one with --produces {text}{then}"
        )
    if len(found) > MOST_SAID:
        say(f"and {len(found) - MOST_SAID} more artifacts are made by no job")


def needing_others(specs: "Sequence[JobSpec]", submitted: "Sequence[Submitted]") -> "list[JobId]":
    """Those jobs of a graph that need what no other job of the graph makes."""
    made = {text for spec in specs for text in spec.produces}
    pairs = zip(specs, submitted, strict=True)
    return [each.job_id for spec, each in pairs if not made.issuperset(spec.needs)]
