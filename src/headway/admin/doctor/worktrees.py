"""Whether the worktrees on disk and the jobs that own them fit together."""

import os
from collections.abc import Iterator, Mapping

from headway.admin.doctor.finding import GREEN, YELLOW, Finding, OpenedHome, entries
from headway.core.model import JobId, shown
from headway.core.states import TERMINAL
from headway.core.worktrees import OwnedWorktree, WorktreeState


def worktrees(place: OpenedHome) -> Iterator[Finding]:
    folder = place.home.worktrees
    with place.store.store.read() as tx:
        kept = tx.graph.kept_worktrees()
        # On a store of several hosts those of other homes are none of ours.
        own = {each: row for each, row in kept.items() if os.path.dirname(row.path) == folder}
        jobs = tx.jobs.readable(list(own))
    owned = {os.path.basename(row.path) for row in own.values()}
    present = set(entries(folder))
    strangers = sorted(present - owned)
    if strangers:
        detail = f"{len(strangers)} in {folder} that no job owns: {_few(strangers)}"
        step = f"look into them, then git worktree remove, as {folder}/{strangers[0]}"
        yield Finding("worktrees", YELLOW, detail, step)
    ran = {each for each, job in jobs.items() if job.status in TERMINAL and job.started_at}
    gone = [each for each in sorted(ran) if os.path.basename(own[each].path) not in present]
    if gone:
        detail = f"{_few([shown(each) for each in gone])} own one that is gone"
        step = "nothing to do: jobs retry, clean or gc take note of it"
        yield Finding("worktrees", YELLOW, detail, step)
    yield from _degraded(own)
    if present and not strangers:
        yield Finding("worktrees", GREEN, f"{len(present)}, each of a job")


def _degraded(own: Mapping[JobId, OwnedWorktree]) -> Iterator[Finding]:
    for each, row in own.items():
        if row.state is WorktreeState.DEGRADED:
            detail = f"{shown(each)}: it could not be cleaned away: {row.error}"
            yield Finding("worktrees", YELLOW, detail, f"headway jobs cancel {shown(each)}")


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
