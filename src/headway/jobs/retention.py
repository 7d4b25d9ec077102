"""Remove ended jobs, rows and files, as the retention rule says or a person asks.

A chain goes as a whole, and never while an active job refers to it. That is looked at in the very
transaction that deletes its rows, so no submit can come in between. The same transaction notes
whose files are still there; they are deleted after it, and then the note. A process that dies on
the way leaves the note, and the next round goes on from it. On a store of several hosts each
deletes what it has, by its own notes.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from headway.base.crashpoints import reach
from headway.base.errors import ConflictError, DataError
from headway.base.home import Home
from headway.core.model import NOTHING, Job, JobId, shown
from headway.core.retention import (
    DAY,
    EndPlace,
    InTheWay,
    Obstacle,
    RetentionLimits,
    RetentionRule,
    automatic,
    limits_of,
)
from headway.core.states import ACTIVE
from headway.core.webhooks import NOBODY
from headway.jobs.context import Context
from headway.jobs.downstream import made_by
from headway.jobs.log_limits import kept_log_bytes
from headway.jobs.lookup import unknown_job
from headway.jobs.quotas import LONGEST_PERIOD, MOST_STARTS
from headway.jobs.settings import store_setting
from headway.jobs.worktrees import WAIT_SECONDS, clean_for_good, degraded
from headway.store.new_jobs import Event
from headway.store.records import EndedJob
from headway.store.store import Store
from headway.store.transaction import ReadTx, WriteTx
from headway.supervise.folder import remove_tree

BATCH = 500
FIRINGS_KEPT = 1_000  # of each schedule
FIRINGS_KEPT_FOR = 30 * DAY
GONE_ENTRIES_KEPT_FOR = FIRINGS_KEPT_FOR  # one that comes back finds its state
HURRIED_WAIT = 0.5  # for the lock of a repository, in seconds
WEBHOOKS_WAIT = 7 * DAY  # for the end of a job to be told; then the job goes all the same
_BEFORE_ALL = EndPlace(-1, 0)
_REMEDY = {
    InTheWay.AFTER: "wait until {by} has ended, or cancel it",
    InTheWay.ARTIFACT: "wait until {by} has ended, or cancel it",
    InTheWay.AWAITED: "wait until {by} has ended, or cancel it",
    InTheWay.PROCESSES: "a worker on its host proves that; headway work",
    InTheWay.LOCKS: "a worker on its host releases them; headway work",
    InTheWay.GROUP: "headway groups close, or cancel, its group; jobs show names it",
    InTheWay.RUN: "wait until it has ended, or stop it; headway workflows stop",
    InTheWay.WEBHOOK: "a worker sees to that; headway work",
    InTheWay.WORKTREE: "look into it and remove it with git worktree remove",
}


class Removed(NamedTuple):
    """What one transaction removed, or would remove, and what it left for which reason."""

    jobs: tuple[JobId, ...] = ()
    log_bytes: int = 0
    kept: Mapping[JobId, Obstacle] = NOTHING  # also by job
    left: tuple[str, ...] = ()  # of worktrees: patches, and branches with commits of their own


def present_rule(settings: Mapping[str, Any]) -> RetentionRule:
    """What the store's settings say."""
    return automatic(
        store_setting(settings, "scheduler.retention_days"),
        store_setting(settings, "scheduler.retention_jobs"),
    )


def forget_old_starts(store: Store) -> int:
    """Starts that are too old, or too many, for any rate to count them; how many those were."""
    with store.write() as tx:
        return tx.limits.forget_old_starts(tx.now() - LONGEST_PERIOD, MOST_STARTS)


def forget_gone_entries(store: Store, host_id: str) -> None:
    """What is known of entries that the jobs file has not had for long."""
    with store.write() as tx:
        tx.jobsfile.forget_entries(host_id, tx.now() - GONE_ENTRIES_KEPT_FOR)


def forget_old_firings(store: Store, after: int, most: int) -> int | None:
    """Records of slots that are too old or too many, of so many schedules with greater ids; where
    to go on, None at the end."""
    with store.read() as tx:
        if tx.settings.marks()["next_schedule_id"] == after + 1:
            return None
    with store.write() as tx:
        before = tx.now() - FIRINGS_KEPT_FOR
        return tx.schedules.forget_firings(before, FIRINGS_KEPT, after=after, limit=most)


def forget_old_traces(store: Store, most: int) -> int:
    """Events about no job, and ended groups without members, which no job takes along: so many of
    each at most, when they are older than jobs get; how many those were."""
    with store.write() as tx:
        days = present_rule(tx.settings.all()).days
        if days is None:
            return 0
        before = tx.now() - days * DAY
        return tx.retention.forget_events(before, most) + tx.retention.forget_groups(before, most)


def gc(
    context: Context,
    rule: RetentionRule | None = None,
    *,
    preview: bool = False,
    progress: Callable[[Removed], None] = lambda removed: None,
    trouble: Callable[[str], None] = lambda text: None,
) -> Removed:
    """Remove ended jobs that nobody needs, with their files; with `preview` only say which. Without
    a rule, that of the settings counts. `progress` is called with what each transaction removed."""
    collector = _collector(context, rule, trouble)
    jobs: list[JobId] = []
    log_bytes, kept = 0, dict[JobId, Obstacle]()
    while (removed := collector.preview() if preview else collector.step()) is not None:
        jobs += removed.jobs
        log_bytes += removed.log_bytes
        kept |= removed.kept
        progress(removed)
    if jobs and not preview:
        context.wake()  # logs that are gone may let others start
    return Removed(tuple(jobs), log_bytes, kept)


def clean(
    context: Context, job_id: JobId, *, trouble: Callable[[str], None] = lambda text: None
) -> Removed:
    """Remove one ended job, with its chain and its files."""
    removed = _collector(context, None, trouble).clean(job_id)
    context.wake()
    return removed


def _collector(
    context: Context, rule: RetentionRule | None, trouble: Callable[[str], None]
) -> "Collector":
    return Collector(
        context.store,
        context.home,
        context.host.id,
        actor=context.actor,
        rule=rule,
        trouble=trouble,
    )


class Collector:
    """One round over the ended jobs, from the oldest end to the newest that the rule concerns."""

    def __init__(
        self,
        store: Store,
        home: Home,
        host_id: str,
        *,
        actor: str,
        rule: RetentionRule | None = None,
        hurried: bool = False,
        trouble: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Without a rule it is that of the settings. One that is `hurried` hardly waits for the
        lock of a repository, and leaves worktrees alone that could not be taken back before."""
        self._store = store
        self._home = home
        self._host_id = host_id
        self._actor = actor
        self._rule = rule
        self._hurried = hurried
        self._trouble = trouble
        self._limits: RetentionLimits | None = None
        self._after = _BEFORE_ALL
        self._files_after: JobId | None = 0
        self._freed: set[JobId] = set()  # chains whose worktrees this round has tried to take back

    def step(self, most: int = BATCH) -> Removed | None:
        """Look at so many jobs at most, and remove those that may go; None at the end."""
        if self._files_after is not None:
            with self._store.read() as tx:
                left = tx.retention.files_to_remove(self._host_id, self._files_after, most)
            self._files_after = left[-1] if left else None
            if left:
                self._delete_files(left)
                return Removed()
        with self._store.read() as tx:
            page = self._page(tx, most)
            due = self._due(page)
            obstacles = obstacles_of(tx, due)
        if not page:
            return None
        owners = [c for c in obstacles if c not in self._freed and _only_worktree(obstacles[c])]
        if owners:  # one at a time: git may take long, and others have their turn in between
            self._freed.add(owners[0])
            self._free_worktrees(owners[0])
            return Removed()
        removed = self._remove_due(most) if due else Removed()
        self._after = page[-1].place
        return removed

    def preview(self, most: int = BATCH) -> Removed | None:
        """Like `step`, without removing anything."""
        with self._store.read() as tx:
            page = self._page(tx, most)
            if not page:
                return None
            self._after = page[-1].place
            due = self._due(page)
            found = obstacles_of(tx, due)
            kept = {chain: each for chain, each in found.items() if not _only_worktree(each)}
            jobs = tuple(tx.retention.members_of([chain for chain in due if chain not in kept]))
            return Removed(jobs, _log_bytes(tx, jobs), _by_job(tx, kept))

    def clean(self, job_id: JobId) -> Removed:
        """Remove one ended job with its chain; refused while anybody refers to it."""

        def transaction(tx: WriteTx) -> Removed:
            job = _ended(tx, job_id)
            return self._remove(tx, [job.chain], refuse=job)

        with self._store.read() as tx:
            obstacles = obstacles_of(tx, [_ended(tx, job_id).chain])
        left: list[str] = []
        for chain, each in obstacles.items():
            if _only_worktree(each):
                left += self._free_worktrees(chain)
        removed = self._store.transact(transaction)
        reach("gc.cleaned")
        self._delete_files(removed.jobs)
        return removed._replace(left=tuple(left))

    def _page(self, tx: ReadTx, most: int) -> list[EndedJob]:
        if self._limits is None:
            rule = self._rule or present_rule(tx.settings.all())
            nth = tx.retention.nth_newest_finished(rule.jobs) if rule.jobs else None
            self._limits = limits_of(rule, now=tx.now(), nth_newest=nth)
        until = self._limits.until
        return tx.retention.finished_page(self._after, until, most) if until is not None else []

    def _due(self, page: Sequence[EndedJob]) -> list[JobId]:
        """The chains whose time has come; one with a later job stands where that one is."""
        limits = self._limits or RetentionLimits()
        return [each.chain for each in page if each.last and limits.take(each.place)]

    def _remove_due(self, most: int) -> Removed:
        """The page once more, and this time nobody comes in between."""

        def transaction(tx: WriteTx) -> Removed:
            return self._remove(tx, self._due(self._page(tx, most)))

        removed = self._store.transact(transaction)
        reach("gc.removed")
        self._delete_files(removed.jobs)
        return removed

    def _remove(self, tx: WriteTx, chains: Sequence[JobId], refuse: Job | None = None) -> Removed:
        kept = obstacles_of(tx, chains)
        if refuse is not None and refuse.chain in kept:
            raise _refusal(refuse, kept[refuse.chain])
        jobs = tuple(tx.retention.members_of([chain for chain in chains if chain not in kept]))
        if not jobs:
            return Removed(kept=_by_job(tx, kept))
        log_bytes = _log_bytes(tx, jobs)
        tx.retention.note_files(jobs, self._host_id)
        if self._store.shared:
            tx.retention.note_files_elsewhere(jobs)
        # Before the rows go: a file gives the number of the newest event again once that is gone.
        data = {"jobs": len(jobs), "oldest": shown(min(jobs)), "newest": shown(max(jobs))}
        missed = _not_notified(tx, [chain for chain in chains if chain not in kept], 0)
        if missed:
            data["not_notified"] = len(missed)
        tx.events.add([Event("removed", None, data)], actor=self._actor)
        tx.retention.remove_jobs(jobs)
        tx.settings.add_to_mark(
            "log_bytes", -min(log_bytes, max(0, tx.settings.marks()["log_bytes"]))
        )
        return Removed(jobs, log_bytes, _by_job(tx, kept))

    def _free_worktrees(self, chain: JobId) -> list[str]:
        """Take back the worktrees of jobs that are to go, before the transaction; a chain whose
        worktree cannot be taken back stays. What is left of them, in words."""
        with self._store.read() as tx:
            members = list(tx.retention.members_of([chain]))
            stuck = degraded(tx, members) if self._hurried else []
        wait = HURRIED_WAIT if self._hurried else WAIT_SECONDS
        members = [job_id for job_id in members if job_id not in stuck]
        cleaned = clean_for_good(
            self._store, self._home, members, actor=self._actor, wait_seconds=wait
        )
        patches = [each.saved for each in cleaned.values() if each.saved]
        return patches + [f"branch {each.kept}" for each in cleaned.values() if each.kept]

    def _delete_files(self, jobs: Sequence[JobId]) -> None:
        if not jobs:
            return
        gone = [job_id for job_id in jobs if self._delete_folder(job_id)]
        reach("gc.files_deleted")
        with self._store.write() as tx:
            tx.retention.files_removed(gone, self._host_id)
        reach("gc.files_noted")

    def _delete_folder(self, job_id: JobId) -> bool:
        path = self._home.job(job_id)
        try:
            remove_tree(path)
        except FileNotFoundError:
            return True
        except OSError as error:
            self._trouble(f"cannot remove {path}: {error.strerror or error}; the next round tries")
            return False
        return True


def obstacles_of(tx: ReadTx, chains: Sequence[JobId]) -> dict[JobId, Obstacle]:
    """Of these ended chains those that must stay, and why: a worktree, which can be taken back,
    only where nothing else is in the way."""
    if not chains:
        return {}
    found = tx.retention.in_the_way(chains)
    free = [chain for chain in chains if chain not in found or _only_worktree(found[chain])]
    for chain, by in _not_notified(tx, free, tx.now() - WEBHOOKS_WAIT).items():
        found[chain] = Obstacle(InTheWay.WEBHOOK, by)
    made = made_by(tx, tx.retention.members_of(free))
    needed = tx.retention.active_in_need({key for key, _ in made}) if made else {}
    for key, chain in made:
        if key in needed:
            found[chain] = Obstacle(InTheWay.ARTIFACT, needed[key])
    return found


def _not_notified(tx: ReadTx, chains: Sequence[JobId], ended_after: int) -> dict[JobId, JobId]:
    """Those of which events are yet to be made deliveries of: the events go with the jobs."""
    cursor = tx.webhooks.cursor() if chains else NOBODY
    return {} if cursor == NOBODY else tx.webhooks.beyond_cursor(chains, cursor, ended_after)


def _only_worktree(obstacle: Obstacle) -> bool:
    return obstacle.why is InTheWay.WORKTREE


def _by_job(tx: ReadTx, kept: Mapping[JobId, Obstacle]) -> dict[JobId, Obstacle]:
    return (
        {job: kept[chain] for job, chain in tx.retention.members_of(list(kept)).items()}
        if kept
        else {}
    )


def _ended(tx: ReadTx, job_id: JobId) -> Job:
    """The last job of this one's chain, which must have ended."""
    job = tx.jobs.by_id([job_id]).get(job_id)
    if job is None:
        raise unknown_job(tx, job_id)
    last = tx.jobs.last_in_chain(job.chain) or job
    if last.status in ACTIVE:
        raise ConflictError(f"{shown(last.id)} is {last.status}; cancel it first")
    return last


def _refusal(job: Job, obstacle: Obstacle) -> ConflictError:
    by = shown(obstacle.by)
    said = f"{obstacle.why} ({by})" if obstacle.by != job.id else str(obstacle.why)
    return ConflictError(f"{shown(job.id)} stays: {said}; {_REMEDY[obstacle.why].format(by=by)}")


def _log_bytes(tx: ReadTx, jobs: Sequence[JobId]) -> int:
    """What the logs of these jobs were counted as; a record that cannot be read counts nothing."""
    try:
        documents = tx.jobs.evidence(jobs)
    except DataError:
        documents = {}
        for job_id in jobs:
            with suppress(DataError):
                documents |= tx.jobs.evidence([job_id])
    total = 0
    for kinds in documents.values():
        with suppress(KeyError, TypeError, AttributeError):
            total += kept_log_bytes(kinds["outcome"])
    return total
