"""The verbs of schedules: make, change, list, trigger and remove them.

A schedule makes jobs at the slots of its rule; a worker does that (`schedules/timekeeper`). Nothing
that is done to a schedule touches a job that it has made.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from headway.base.environment import MINIMAL_PATH
from headway.base.errors import (
    ConflictError,
    InvalidInputError,
    KeyReusedError,
    NotFoundError,
)
from headway.base.units import parse_duration, parse_instant
from headway.core.fire import (
    Active,
    CatchUp,
    Overlap,
    Schedule,
    begun,
    overlapping,
    shown_schedule,
)
from headway.core.model import NOTHING, Job, shown, shown_run
from headway.jobs.graph import GraphError
from headway.jobs.graph_file import is_agent, misfits
from headway.jobs.insert import Submitted
from headway.jobs.prompts import read_prompt
from headway.jobs.quotas import WORD, check_word
from headway.jobs.specification import LAST_INSTANT, check_name, specify
from headway.jobs.templates import DEFAULT_BASE, DEFAULT_RETRIES, OF_ONE_JOB
from headway.schedules.fire import Maker, request_for, take_back_ahead
from headway.schedules.timing.rules import Once, TimingRule, rule_of
from headway.schedules.timing.zones import zone_of, zones_version
from headway.store.new_jobs import Event
from headway.store.records import HostRecord
from headway.store.transaction import ReadTx, WriteTx

if TYPE_CHECKING:
    from headway.jobs.context import Context

_REFERENCE = re.compile(r"(?:schedule-|#)?([1-9][0-9]{0,17})")
LARGEST_WINDOW = 366 * 86_400_000_000
GAPS_LOOKED_AT = 50


def add_schedule(
    context: Context,
    *,
    name: str | None = None,
    cron: str | None = None,
    every: str | None = None,
    at: str | None = None,
    timezone: str = "UTC",
    template: str | None = None,
    workflow: str | None = None,
    params: Mapping[str, Any] = NOTHING,
    catch_up: str = "latest",
    window: str = "24h",
    overlap: str | None = None,
    jitter: str = "0s",
    replace: bool = False,
    enabled: bool = True,
    **options: Any,
) -> Schedule:
    """Store a schedule. `options` are the words of a job in a graph file, as `argv=[...]`; with a
    template they take the place of what it says. A workflow is read whenever the schedule fires."""
    if name is not None:
        _check_name(name)
    if workflow is not None:
        from headway.workflows.prepared import kept_name

        _refuse_beside_workflow(template, options)
        workflow = kept_name(workflow, context.folder)
    said: dict[str, Any] = {
        "rule": _rule_document(context, cron, every, at, timezone),
        "template": template,
        "params": dict(params),
        "job": _job_words(context.folder, template, params, options) if workflow is None else None,
        **({} if workflow is None else {"workflow": workflow}),
        **_treatment(catch_up, window, overlap, jitter),
    }
    with context.store.read() as tx:
        if workflow is None:
            said["agent"] = _agent(context, tx, said, name or "schedule")
        else:
            from headway.workflows.prepared import check_programs
            from headway.workflows.start import RunRequest

            request = RunRequest(params=said["params"])
            check_programs(tx, context.home, context.config, workflow, request)

    added = context.store.transact(lambda tx: _added(context, tx, name, said, replace, enabled))
    context.wake()
    return added


def enable_schedule(context: Context, reference: str) -> bool:
    """It fires from now on, without what it did not fire meanwhile; False if it did before."""
    return _switch(context, reference, enabled=True)


def disable_schedule(context: Context, reference: str) -> bool:
    """It fires no more until it is enabled; its jobs stay. False if that was so before."""
    return _switch(context, reference, enabled=False)


def remove_schedule(context: Context, reference: str) -> Schedule:
    """With what is known of its slots; its jobs stay."""

    def transaction(tx: WriteTx) -> Schedule:
        schedule = require_schedule(tx, reference)
        tx.schedules.remove(schedule.id)
        tx.schedules.note_next_fire()
        tx.events.add([Event("schedule_removed", None, _named(schedule))], actor=context.actor)
        return schedule

    return context.store.transact(transaction)


def trigger_schedule(context: Context, reference: str, *, key: str | None = None) -> Submitted:
    """Make one job now. It stands for no slot, and the next comes as it would have. A key that was
    seen before names the job, or the first one of the run, that was made with it."""
    if key is not None:
        check_name("key", key)

    def transaction(tx: WriteTx) -> Submitted:
        schedule = require_schedule(tx, reference)
        known = None if key is None else _made_with(tx, key)
        if known is not None:
            if known.schedule_id != schedule.shown:
                raise KeyReusedError(
                    f"key {key!r} belongs to {shown(known.id)}, which {schedule.name} did not "
                    "make; use another key"
                )
            return Submitted(known.id, created=False)
        _sound(schedule)
        _refuse_elsewhere(context, schedule)
        active = tx.schedules.active_jobs([schedule.shown]).get(schedule.shown, [])
        objection = overlapping(schedule.overlap, active)
        if objection is not None:
            end = "cancel it" if active[0].run is None else "stop it"
            raise ConflictError(f"{schedule.name}: {objection}; wait for it, or {end}")
        maker = Maker(tx, context.home, shared=context.store.shared)
        job_id = maker.add(schedule, maker.specify(schedule), actor=context.actor, key=key)
        if schedule.overlap is Overlap.REPLACE:
            maker.replace(active, actor=context.actor)
        tx.schedules.move([schedule._replace(last_job=job_id)])
        event = Event("schedule_triggered", job_id, _named(schedule))
        tx.events.add([event], actor=context.actor)
        return Submitted(job_id, created=True)

    triggered = context.store.transact(transaction)
    context.wake()
    return triggered


def _made_with(tx: ReadTx, key: str) -> Job | None:
    """The job of this key, or the first one of the run of this key."""
    job = tx.jobs.by_key(key)
    run = None if job is not None else tx.workflows.by_key(key)
    if run is None:
        return job
    nodes = tx.workflows.nodes(run.id)
    if not nodes:
        raise KeyReusedError(f"key {key!r} belongs to {shown_run(run.id)}, whose jobs are removed")
    return tx.jobs.by_id([nodes[0].chain])[nodes[0].chain]


def _refuse_elsewhere(context: Context, schedule: Schedule) -> None:
    """The file of a workflow is on the host of its schedule."""
    elsewhere = context.store.shared and schedule.host_id not in (None, context.host.id)
    if elsewhere and schedule.document.get("workflow") is not None:
        raise ConflictError(f"{schedule.name}: its workflow is on another host; trigger it there")


def require_schedule(tx: ReadTx, reference: str) -> Schedule:
    """By its name, or by its id as `schedule-3`, `3` or `#3`."""
    match = _REFERENCE.fullmatch(reference.strip())
    if match:
        found = tx.schedules.by_id([int(match[1])]).get(int(match[1]))
    else:
        found = tx.schedules.named(reference)
    if found is None:
        raise NotFoundError(
            f"there is no schedule {reference!r}; `headway schedules list` shows them"
        )
    return found


# -- writing -----------------------------------------------------------------------------------


def _added(
    context: Context,
    tx: WriteTx,
    name: str | None,
    said: Mapping[str, Any],
    replace: bool,
    enabled: bool,
) -> Schedule:
    document = {**said, "rule": _beginning(said["rule"], tx.now())}
    rule = _checked_rule(document, tx.now())
    if name is None and said.get("workflow") is not None:
        name = _free_name(tx, said["workflow"])
    known = tx.schedules.named(name) if name is not None else None
    if known is not None and not replace:
        raise ConflictError(
            f"schedule {name!r} is there already ({known.shown}); --replace puts this in its place"
        )
    schedule = begun(_written(context, tx, known, name, document, enabled), rule, tx.now())
    _put(tx, schedule, known)
    data = {**_named(schedule), "replaced": known is not None}
    tx.events.add([Event("schedule_added", None, data)], actor=context.actor)
    return schedule


def _free_name(tx: ReadTx, workflow: str) -> str | None:
    """The name of the workflow, with a number behind it if others have that. None: it cannot be the
    name of a schedule."""
    word = os.path.basename(workflow).removesuffix(".toml")
    if not WORD.fullmatch(word) or _REFERENCE.fullmatch(word):
        return None
    names = {each.name for each in tx.schedules.all()}
    tried = (f"{word[:57]}-{number}" for number in range(2, len(names) + 3))
    return word if word not in names else next(each for each in tried if each not in names)


def _written(
    context: Context,
    tx: WriteTx,
    known: Schedule | None,
    name: str | None,
    document: Mapping[str, Any],
    enabled: bool,
) -> Schedule:
    any_host = (document["job"] or {}).get("any_host")
    host_id = None if any_host else context.host.id
    if host_id is not None and context.store.shared:
        tx.hosts.know(HostRecord(context.host.id, context.host.name, context.host.home))
    schedule_id = tx.schedules.take_id() if known is None else known.id
    return Schedule(
        id=schedule_id,
        name=name or shown_schedule(schedule_id),
        document=document,
        enabled=enabled,
        version=1 if known is None else known.version + 1,
        host_id=host_id,
        created_at=tx.now() if known is None else known.created_at,
        created_by=context.actor if known is None else known.created_by,
        changed_at=tx.now(),
        next_slot=None,
        next_fire_at=None,
        looked_at=tx.now(),
        zones=zones_version(),
    )


def _switch(context: Context, reference: str, *, enabled: bool) -> bool:
    def transaction(tx: WriteTx) -> bool:
        schedule = require_schedule(tx, reference)
        switched = schedule._replace(
            enabled=enabled, version=schedule.version + 1, zones=zones_version()
        )
        rule = rule_of(_sound(schedule)["rule"]) if enabled else Once(0)  # which none asks
        switched = begun(switched, rule, tx.now())
        stopped = enabled and schedule.next_slot is None and switched.next_slot is not None
        if schedule.enabled == enabled and not stopped:
            return False
        _put(tx, switched, schedule)
        named = _named(schedule)
        on, off = Event("schedule_enabled", None, named), Event("schedule_disabled", None, named)
        tx.events.add([on if enabled else off], actor=context.actor)
        return True

    switched = context.store.transact(transaction)
    if enabled:
        context.wake()
    return switched


def _put(tx: WriteTx, schedule: Schedule, known: Schedule | None) -> None:
    if known is not None:
        rule: TimingRule | None = None
        with suppress(ConflictError, InvalidInputError):  # its time zone may be gone
            rule = rule_of(_sound(known)["rule"])
        take_back_ahead(tx, known, rule)
    tx.schedules.put(schedule)
    tx.schedules.note_next_fire()


def _sound(schedule: Schedule) -> Mapping[str, Any]:
    """What it says, if that can be read."""
    if not isinstance(schedule.document.get("rule"), Mapping):  # then it is damaged
        raise ConflictError(
            f"{schedule.shown} cannot be read; remove it, or put another in its place (--replace)"
        )
    return schedule.document


def _named(schedule: Schedule) -> dict[str, str]:
    """The name of a schedule in events."""
    return {"schedule": schedule.shown, "name": schedule.name}


# -- checking ----------------------------------------------------------------------------------


def _check_name(name: str) -> None:
    check_word("schedule", name)
    if _REFERENCE.fullmatch(name):
        raise InvalidInputError(
            f"the name {name!r} looks like the id of a schedule; use another word"
        )


def _rule_document(
    context: Context, cron: str | None, every: str | None, at: str | None, timezone: str
) -> dict[str, Any]:
    """As it is kept, but for the beginning of an interval."""
    if [cron, every, at].count(None) != 2:
        raise InvalidInputError("give one of --cron, --every and --at")
    if every is not None and timezone != "UTC":
        raise InvalidInputError(f"--timezone {timezone}: an interval has no clock; leave it out")
    if cron is not None:
        return {"cron": cron, "timezone": timezone}
    if every is not None:
        return {"every": parse_duration(every, "--every")}
    return {"at": parse_instant(at or "", context.clock.now(), zone_of(timezone).info, what="--at")}


def _beginning(said: Mapping[str, Any], now: int) -> Mapping[str, Any]:
    """An interval counts from now."""
    return {**said, "anchor": now} if "every" in said else said


def _checked_rule(document: Mapping[str, Any], now: int) -> TimingRule:
    said = document["rule"]
    rule = rule_of(said)
    if "at" in said and not now < said["at"] <= LAST_INSTANT:
        raise InvalidInputError("--at must be a time in the future, before the year 10000")
    _check_jitter(rule, now, document["jitter"])
    return rule


def _check_jitter(rule: TimingRule, now: int, jitter: int) -> None:
    """One slot must fire before the next comes."""
    if not jitter:
        return
    slots: list[int] = []
    following = rule.next_after(now)
    while following is not None and len(slots) < GAPS_LOOKED_AT:
        slots.append(following)
        following = rule.next_after(following)
    gap = min((later - earlier for earlier, later in pairwise(slots)), default=LARGEST_WINDOW)
    if jitter >= gap:
        from headway.base.units import exact_duration

        raise InvalidInputError(
            f"--jitter {exact_duration(jitter)} is not shorter than the time between two slots, "
            f"which may be {exact_duration(gap)}"
        )


def _treatment(catch_up: str, window: str, overlap: str | None, jitter: str) -> dict[str, Any]:
    """The policies for missed slots, and for those at which a job is still active."""
    caught = _one_of("--catch-up", catch_up, CatchUp)
    usual = Overlap.QUEUE if caught == CatchUp.ALL else Overlap.SKIP
    treated = usual if overlap is None else _one_of("--overlap", overlap, Overlap)
    if caught == CatchUp.ALL and treated != Overlap.QUEUE:
        raise InvalidInputError(
            f"--catch-up all runs a job for every slot, which --overlap {treated} would not; "
            "use --overlap queue, or --catch-up latest"
        )
    length = parse_duration(window, "--window")
    if not 0 < length <= LARGEST_WINDOW:
        raise InvalidInputError(f"--window {window} is not up to 366d; write it like 24h")
    return {
        "catch_up": str(caught),
        "window": length,
        "overlap": str(treated),
        "jitter": parse_duration(jitter, "--jitter"),
    }


def _one_of(option: str, word: str, words: type[CatchUp] | type[Overlap]) -> str:
    if word not in list(words):
        raise InvalidInputError(f"{option} {word!r} is not one of {', '.join(words)}")
    return word


def _job_words(
    folder: str, template: str | None, params: Mapping[str, str], options: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The specification of its jobs, in the keys of a graph file; all mistakes are reported
    together."""
    given = {word: value for word, value in options.items() if value is not None}
    if isinstance(given.get("prompt_file"), str) and "prompt" not in given:
        given["prompt"] = read_prompt(given.pop("prompt_file"), folder)
    for word in ("cwd", "stdin"):
        if isinstance(given.get(word), str):
            given[word] = os.path.abspath(os.path.join(folder, given[word]))
    wrong = [
        f"{word} is about one job, and a schedule makes many" for word in OF_ONE_JOB & {*given}
    ]
    wrong += misfits({word: value for word, value in given.items() if word not in OF_ONE_JOB})
    if template is None and not given:
        wrong.append("give --template NAME, or a command after --")
    if template is None and params:
        wrong.append("--param fills in what a template leaves open; give --template")
    if wrong:
        raise GraphError(wrong, len(wrong))
    if template is not None:
        return given or None
    retries = 0 if is_agent(given) else DEFAULT_RETRIES
    return {"retries": retries, "retry_base": DEFAULT_BASE, **given}


def _refuse_beside_workflow(template: str | None, options: Mapping[str, Any]) -> None:
    """The file says how its jobs run."""
    given = sorted(word for word, value in options.items() if value is not None)
    wrong = ["give --workflow or --template, not both"] if template is not None else []
    wrong += [f"{word}: the workflow says it itself; take it out" for word in given]
    if wrong:
        raise GraphError(wrong, len(wrong))


def _agent(
    context: Context, tx: ReadTx, document: Mapping[str, Any], name: str
) -> dict[str, Any] | None:
    """Its jobs must be possible now; programs are searched for on the PATH that they will have. The
    request to an agent is settled here: the host that fires a slot may have other runners and
    settings. A template may change, so its request is settled when a slot fires."""
    request = request_for(tx, document, name)
    spec = specify(
        request,
        environ={"PATH": MINIMAL_PATH, **context.config.env},
        working_directory=os.path.dirname(context.home.path),
        remedy="jobs of schedules have the PATH of [env] in config.toml",
        no_check=context.no_check,
        place=(context.home, context.config),
    )
    return spec.params.get("agent") if document["template"] is None else None


def active_job(active: Sequence[Active]) -> Active | None:
    """The one to name: what runs, else what has waited for the longest time."""
    return next((each for each in active if each.running), active[0] if active else None)
