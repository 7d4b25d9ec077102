"""How what could not be launched is told in `headway scheduler status` and `scheduler reset`."""

from typing import Any

from headway.cli.render import counted, moment
from headway.core.model import shown
from headway.jobs.launch_failures import Reset


def trouble_fields(document: dict[str, Any], now: int) -> list[tuple[str, str | None]]:
    """Open breakers, jobs with strikes, and those that were given up in the last day."""
    struck, broken = document["launch_failures"], document["circuit_broken"]
    entries: list[tuple[str, str | None]] = [
        ("breaker", _breaker(each, now)) for each in document["breakers"]
    ]
    if struck["count"]:
        entries.append(("not started", f"{counted(struck['count'], 'job')} could not be launched"))
        entries += [("", _struck(each, now)) for each in struck["jobs"]]
    if broken["count"]:
        entries.append(("given up", f"{counted(broken['count'], 'job')} in the last day"))
        entries += [("", _broken(each, now)) for each in broken["jobs"]]
    return entries


def _breaker(breaker: dict[str, Any], now: int) -> str:
    return (
        f"{breaker['kind']} on {breaker['host'] or breaker['host_id']}: {breaker['cause']}; "
        f"since {moment(breaker['since'], now)}, next probe {moment(breaker['probe_at'], now)}"
    )


def _struck(job: dict[str, Any], now: int) -> str:
    strikes = f"strike {job['failures']} of 3" if job["failures"] else "cooling down"
    again = moment(job["next_try_at"], now) or "now"
    return f"{job['id']} {job['name']}: {job['cause']} ({strikes}, tried again {again})"


def _broken(job: dict[str, Any], now: int) -> str:
    return f"{job['id']} {job['name']}: {job['cause']}, {moment(job['finished_at'], now)}"


def describe_reset(reset: Reset, given_up: int) -> str:
    """What a reset did, and what it leaves to people."""
    named = ", ".join(map(shown, reset.jobs[:5])) + (", ..." if len(reset.jobs) > 5 else "")
    jobs = f"{counted(len(reset.jobs), 'waiting job')} tried again at once"
    done = f"reset; {counted(len(reset.hosts), 'breaker')} closed, {jobs}"
    done += f" ({named})" if reset.jobs else ""
    if given_up:
        done += (
            f"; {counted(given_up, 'job')} given up in the last day stay as they are "
            "(`headway jobs retry JOB`)"
        )
    return done
