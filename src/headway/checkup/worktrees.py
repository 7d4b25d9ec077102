"""Whether the worktrees on disk and the jobs that own them fit together."""

import os
from collections.abc import Iterator, Mapping

from headway.checkup.finding import GREEN, YELLOW, Finding, Opened, entries
from headway.core.model import JobId, shown
from headway.core.states import TERMINAL
from headway.core.worktrees import OwnedWorktree, WorktreeState


def worktrees(place: Opened) -> Iterator[Finding]:
    folder = place.home.worktrees
    with place.store.store.read() as tx:
        kept = tx.kept_worktrees()
        # On a store of several hosts those of other homes are none of ours.
        own = {each: row for each, row in kept.items() if os.path.dirname(row.path) == folder}
        jobs = tx.readable_jobs(list(own))
    owned = {os.path.basename(row.path) for row in own.values()}
    present = set(entries(folder))
    strangers = sorted(present - owned)
    if strangers:
        told = f"{len(strangers)} in {folder} that no job owns: {_few(strangers)}"
        step = f"look into them, then git worktree remove, as {folder}/{strangers[0]}"
        yield Finding("worktrees", YELLOW, told, step)
    ran = {each for each, job in jobs.items() if job.status in TERMINAL and job.started_at}
    gone = [each for each in sorted(ran) if os.path.basename(own[each].path) not in present]
    if gone:
        told = f"{_few([shown(each) for each in gone])} own one that is gone"
        step = "nothing to do: jobs retry, clean or gc take note of it"
        yield Finding("worktrees", YELLOW, told, step)
    yield from _degraded(own)
    if present and not strangers:
        yield Finding("worktrees", GREEN, f"{len(present)}, each of a job")


def _degraded(own: Mapping[JobId, OwnedWorktree]) -> Iterator[Finding]:
    for each, row in own.items():
        if row.state is WorktreeState.DEGRADED:
            told = f"{shown(each)}: it could not be cleaned away: {row.error}"
            yield Finding("worktrees", YELLOW, told, f"headway jobs cancel {shown(each)}")


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
