"""Sling: make jobs of work items, or runs of workflows. One item, several, a tracked group or a
tree; all in one transaction, and never two open jobs or runs for one subject.

Everything is read and checked before anything is written: the items, the target of each, the
guards, and the whole command that would run. An item of a group or tree that fails a check is left
out with a warning. An item that was named itself refuses everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from headway.base.environment import keep_environment
from headway.base.errors import ConflictError, HeadwayError, InvalidInputError, NotFoundError
from headway.core.groups import Group, GroupId, GroupMode, shown_group
from headway.core.model import NOTHING, Job, JobId, JobSpec, shown, shown_run
from headway.core.subjects import SUBJECT, Item, ItemKind, ItemState
from headway.core.targets import Target, fits, target_for
from headway.integrations.trackers import SourcePlace
from headway.jobs.context import Context
from headway.jobs.insert import Origin, add_jobs
from headway.jobs.membership import close_group, join_group, new_group
from headway.jobs.settings import store_setting
from headway.jobs.subjects import Finder, FoundItem, SubjectHolder, subject_holders
from headway.store.new_jobs import Event
from headway.store.transaction import WriteTx
from headway.workitems.recipes import Values, check_values, specification

if TYPE_CHECKING:
    from headway.workflows.prepared import PreparedRun

MOST_ITEMS = 10_000


class Wish(NamedTuple):
    """A request to sling: subjects, and perhaps a target as the last word."""

    words: tuple[str, ...]
    force: bool = False
    args: str | None = None
    variables: Mapping[str, str] = NOTHING
    priority: int = 0
    on: str | None = None  # a template


class Scheduled(NamedTuple):
    """What an item became: a job, or a run of a workflow."""

    subject: str
    target: str | None
    job_id: JobId | None = None  # none in a rehearsal
    workflow: str | None = None
    run: int | None = None  # none in a rehearsal

    @property
    def shown(self) -> str:
        return shown(self.job_id or 0) if self.run is None else shown_run(self.run)


class SkippedItem(NamedTuple):
    subject: str
    reason: str


class Slung(NamedTuple):
    """The result of a sling, or of its dry run."""

    direct: bool
    max_active: int
    scheduled: tuple[Scheduled, ...]
    already: tuple[Scheduled, ...]
    skipped: tuple[SkippedItem, ...]
    closed: int  # items of groups and trees that are done, and were left out without a word
    groups: tuple[GroupId, ...] = ()  # that what was scheduled is tracked by
    troubles: tuple[str, ...] = ()


class _WantedItem(NamedTuple):
    """An item to be slung; `root` is the named subject that led to it."""

    item: Item
    place: SourcePlace
    root: str

    @property
    def named(self) -> bool:
        return self.root == self.item.id


class _Taken(NamedTuple):
    wanted: _WantedItem
    target: Target
    made: JobSpec | PreparedRun

    @property
    def scheduled(self) -> Scheduled:
        """As a rehearsal has it."""
        workflow = None if isinstance(self.made, JobSpec) else self.made.manifest.workflow.name
        return Scheduled(self.wanted.item.id, self.target.name, workflow=workflow)


class _Chosen(NamedTuple):
    taken: list[_Taken]
    already: list[Scheduled]
    skipped: list[SkippedItem]


def sling(context: Context, wish: Wish, *, rehearse: bool = False) -> Slung:
    """Schedule what is wished for, as one; with `rehearse`, only say what would be."""
    with context.store.read() as tx:
        targets = tx.workitems.targets()
        cap = int(store_setting(tx.settings.all(), "scheduler.max_active"))
    finder = Finder(context.home, context.config)
    subjects, target = read_words(wish.words, targets, finder)
    wanted, closed = _expanded(finder, subjects)
    chosen = _choose(context, wish, wanted, target, targets)
    slung = Slung(cap <= 0, cap, (), tuple(chosen.already), tuple(chosen.skipped), closed)
    slung = slung._replace(troubles=tuple(finder.troubles))
    if rehearse or not chosen.taken:
        return slung._replace(scheduled=tuple(each.scheduled for each in chosen.taken))
    return _schedule(context, chosen.taken, subjects, slung)


def read_words(
    words: Sequence[str], targets: Mapping[str, Target], finder: Finder
) -> tuple[list[str], Target | None]:
    """Which words are subjects, and whether the last is a target: of several it is one if there is
    a target of that name; a single word is always a subject."""
    if not words:
        raise InvalidInputError("what is to be slung? Name a subject")
    for word in words:
        if not SUBJECT.fullmatch(word):
            raise NotFoundError(f"{word[:60]!r} is not a subject")
    if len(words) > 1 and words[-1] in targets:
        return list(dict.fromkeys(words[:-1])), targets[words[-1]]
    if len(words) > 1 and words[-1] not in finder.find(words[-1:]):
        raise NotFoundError(
            f"{words[-1]} is neither a target nor a subject; `headway targets list` shows targets"
        )
    return list(dict.fromkeys(words)), None


def _expanded(finder: Finder, subjects: Sequence[str]) -> tuple[list[_WantedItem], int]:
    """The tasks that are meant: those named, and those of groups and trees, each once."""
    found = finder.find(subjects)
    wanted: dict[str, _WantedItem] = {}
    closed = 0
    for subject in subjects:
        if subject not in found:
            raise finder.unknown(subject)
        root = found[subject]
        if root.item.trouble is not None or root.item.kind is ItemKind.TASK:
            wanted[subject] = _WantedItem(root.item, root.place, subject)
            continue
        if root.item.state is ItemState.CLOSED:
            raise ConflictError(f"{subject} is closed; open it again first")
        for each in _below(finder, root):
            if each.item.state is ItemState.CLOSED:
                closed += 1
            else:
                wanted.setdefault(each.item.id, _WantedItem(each.item, each.place, subject))
    return list(wanted.values()), closed


def _below(finder: Finder, root: FoundItem) -> Iterator[FoundItem]:
    """The tasks of a group or tree, level by level. One that is named and missing is returned as an
    item in trouble."""
    seen = {root.item.id}
    level = list(root.item.children)
    while level:
        names = [each for each in dict.fromkeys(level) if each not in seen]
        seen.update(names)
        if len(seen) > MOST_ITEMS:
            raise InvalidInputError(f"{root.item.id} has more than {MOST_ITEMS} items below it")
        found = finder.find(names)
        level = []
        for name in names:
            if name not in found:
                yield FoundItem(Item(name, trouble=f"no source has {name}"), root.place)
                continue
            each = found[name]
            if each.item.trouble is not None or each.item.kind is ItemKind.TASK:
                yield each
            if each.item.state is not ItemState.CLOSED:
                level += each.item.children


def _choose(
    context: Context,
    wish: Wish,
    wanted: Sequence[_WantedItem],
    target: Target | None,
    targets: Mapping[str, Target],
) -> _Chosen:
    """Guard by guard, in this order: it exists, an open job or run, its target, the mismatch, its
    state, its recipe. What is open comes first, so that to sling again is never an error."""
    with context.store.read() as tx:
        already = subject_holders(tx, [each.item.id for each in wanted])
    chosen = _Chosen([], [], [])
    aimed: list[tuple[_WantedItem, Target]] = []
    for each in wanted:
        if each.item.id in already:
            chosen.already.append(_held(each.item.id, already[each.item.id]))
            continue
        try:
            aim = _aim(each.item, target, targets, force=wish.force)
            _refuse_state(each.item, force=wish.force)
            aimed.append((each, aim))
        except HeadwayError as error:
            if each.named:
                raise
            chosen.skipped.append(SkippedItem(each.item.id, str(error)))
    _specify(context, _values(context, wish), aimed, chosen)
    return chosen


def _held(subject: str, holder: SubjectHolder) -> Scheduled:
    return Scheduled(subject, holder.target, holder.job_id, holder.workflow, holder.run)


def _specify(
    context: Context, values: Values, aimed: Sequence[tuple[_WantedItem, Target]], chosen: _Chosen
) -> None:
    """The job or run that each would be. A recipe that cannot run concerns the items that it is
    for."""
    values, aimed = _with_workflows(context, values, aimed, chosen)
    check_values(values, [aim for _, aim in aimed])
    found: dict[str, bool] = {}
    for each, aim in aimed:
        try:
            made = specification(context, each.item, each.place, aim, values, found)
        except InvalidInputError as error:
            _leave_out(each, aim, error, chosen)
        else:
            chosen.taken.append(_Taken(each, aim, made))


def _with_workflows(
    context: Context, values: Values, aimed: Sequence[tuple[_WantedItem, Target]], chosen: _Chosen
) -> tuple[Values, Sequence[tuple[_WantedItem, Target]]]:
    """The values with the workflows of the targets, and the items whose target can be read."""
    if values.template is not None or not any(aim.workflow for _, aim in aimed):
        return values, aimed
    from headway.workitems.run_recipes import read_recipes

    runs, broken = read_recipes(context, (aim for _, aim in aimed))
    for each, aim in aimed:
        if aim.name in broken:
            _leave_out(each, aim, broken[aim.name], chosen)
    readable = [(each, aim) for each, aim in aimed if aim.name not in broken]
    return values._replace(runs=runs), readable


def _leave_out(each: _WantedItem, aim: Target, error: HeadwayError, chosen: _Chosen) -> None:
    if each.named:
        where = f"{each.item.id} cannot be slung to target {aim.name}"
        raise InvalidInputError(f"{where}: {error}") from None
    chosen.skipped.append(SkippedItem(each.item.id, f"target {aim.name}: {error}"))


def _values(context: Context, wish: Wish) -> Values:
    template = None
    if wish.on is not None:
        from headway.jobs.stored_templates import require_usable

        with context.store.read() as tx:
            template = require_usable(tx, wish.on)
    return Values(wish.args, wish.variables, wish.priority, template)


def _aim(
    item: Item, target: Target | None, targets: Mapping[str, Target], *, force: bool
) -> Target:
    """The target of an item: as named, else by its prefix."""
    if item.trouble is not None:
        raise InvalidInputError(f"{item.id} cannot be slung: {item.trouble}")
    aim = target or target_for(item.id, targets.values())
    if aim is None:
        raise NotFoundError(
            f"no target has a prefix of {item.id}; name the target, or give one its prefix"
        )
    if not force and not fits(item.id, aim, targets.values()):
        raise ConflictError(
            f"{item.id} does not belong to target {aim.name}, whose prefix is {aim.prefix}; "
            "--force slings it all the same"
        )
    return aim


def _refuse_state(item: Item, *, force: bool) -> None:
    if item.state is ItemState.CLOSED:
        raise ConflictError(f"{item.id} is closed; open it again first")
    if item.state is ItemState.IN_PROGRESS and not force:
        raise ConflictError(f"{item.id} is in progress already; --force slings it all the same")


def _schedule(
    context: Context, taken: Sequence[_Taken], subjects: Sequence[str], slung: Slung
) -> Slung:
    """Write it all in one transaction. What came first in the meantime keeps the subject."""
    env_digest = keep_environment(
        context.home, context.environ, umask=context.umask, working_directory=context.folder
    )
    host = context.host if context.store.shared else None
    origin = Origin(context.actor, context.home.worktrees, host, env_digest)

    def transaction(tx: WriteTx) -> Slung:
        first = subject_holders(tx, [each.wanted.item.id for each in taken])
        new = [each for each in taken if each.wanted.item.id not in first]
        late = [_held(name, holder) for name, holder in first.items()]
        done = slung._replace(already=(*slung.already, *late))
        if not new:
            return done
        added = _add(tx, new, origin)
        groups = _track(tx, new, [each.jobs for each in added], subjects, by=context.actor)
        for each, group_id in zip(added, groups, strict=True):
            tx.events.add([_slung(each.scheduled, group_id)], actor=context.actor)
        scheduled = tuple(each.scheduled for each in added)
        return done._replace(scheduled=scheduled, groups=tuple(dict.fromkeys(groups)))

    done = context.store.transact(transaction)
    context.wake()
    return done


class _Added(NamedTuple):
    """What an item became, and all jobs of that."""

    scheduled: Scheduled
    jobs: tuple[JobId, ...]


def _add(tx: WriteTx, new: Sequence[_Taken], origin: Origin) -> list[_Added]:
    """The jobs at once, each run by itself; in the order of the items."""
    specs = [each.made for each in new if isinstance(each.made, JobSpec)]
    ids = iter([each.job_id for each in add_jobs(tx, specs, origin)] if specs else ())
    added = []
    for each in new:
        if isinstance(each.made, JobSpec):
            job_id = next(ids)
            added.append(_Added(each.scheduled._replace(job_id=job_id), (job_id,)))
            continue
        from headway.workflows.prepared import add_prepared

        started = add_prepared(tx, each.made, origin)
        added.append(_Added(each.scheduled._replace(run=started.run), started.jobs))
    return added


def _slung(scheduled: Scheduled, group_id: GroupId) -> Event:
    data = {"subject": scheduled.subject, "target": scheduled.target}
    if scheduled.run is not None:
        data["run"] = shown_run(scheduled.run)
    return Event("slung", scheduled.job_id, {**data, "group": shown_group(group_id)})


def _track(
    tx: WriteTx,
    new: Sequence[_Taken],
    ids: Sequence[Sequence[JobId]],
    subjects: Sequence[str],
    *,
    by: str,
) -> list[GroupId]:
    """Put the jobs of each item into a group that tracks its subject, or what led to it, and has
    not ended; the others into one new group, which is whole then."""
    names = [each.wanted.item.id for each in new]
    tracked = tx.workitems.groups_tracking(list(dict.fromkeys([*names, *subjects])))
    groups: list[GroupId] = []
    fresh: Group | None = None
    for each in new:
        known = tracked.get(each.wanted.item.id) or tracked.get(each.wanted.root)
        if known is None:
            if fresh is None:
                about = subjects[0] if len(subjects) == 1 else None
                fresh = new_group(
                    tx, mode=GroupMode.PARALLEL, on_failure="continue", subject=about, actor=by
                )
            known = fresh.id
        groups.append(known)
    jobs = tx.jobs.by_id([job_id for some in ids for job_id in some])
    joining: dict[GroupId, list[Job]] = {}
    for some, group_id in zip(ids, groups, strict=True):
        joining.setdefault(group_id, []).extend(jobs[job_id] for job_id in some)
    for group_id, some_jobs in joining.items():
        join_group(tx, some_jobs, group_id)
    if fresh is not None:
        close_group(tx, fresh, actor=by)
    return groups


def slung_document(slung: Slung) -> dict[str, object]:
    def listed(entries: Iterable[Scheduled]) -> list[dict[str, object]]:
        return [
            {
                "subject": each.subject,
                "target": each.target,
                "job": shown(each.job_id) if each.job_id is not None else None,
                "workflow": each.workflow,
                "run": shown_run(each.run) if each.run is not None else None,
            }
            for each in entries
        ]

    return {
        "mode": "direct" if slung.direct else "deferred",
        "max_active": slung.max_active,
        "groups": [shown_group(each) for each in slung.groups],
        "scheduled": listed(slung.scheduled),
        "already": listed(slung.already),
        "skipped": [each._asdict() for each in slung.skipped],
        "closed": slung.closed,
        "troubles": list(slung.troubles),
    }
