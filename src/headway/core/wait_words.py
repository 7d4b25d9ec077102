"""The words of waits: the detail and the remedy of every reason why a job does not start.

The gates decide, and say it with these. The details are contract: docs/concepts.md has their table.
Pure.
"""

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from headway.base.units import show_duration, show_instant
from headway.core.agents import MILLION, Amount, ParkedRunner
from headway.core.approvals import approval_rule, missing
from headway.core.conditions import as_text
from headway.core.facts import IMPORTING, NO_HOST, Capacity, TaskView
from headway.core.model import (
    EARLIER_LIVES,
    Approval,
    Job,
    JobId,
    Pause,
    PinnedHead,
    shown,
    shown_run,
)
from headway.core.policies import ENTRY
from headway.core.reservations import Reservation
from headway.core.states import Status

MOST_NAMED = 5
LOOKING_AGAIN = "looking once more"
_IMPORTING_FAILED = re.compile(r"importing (.+?) failed: ")
_MISSING = re.compile(r"No module named '([^']+)'")


class Words(NamedTuple):
    """What holds a job back, and what would clear it."""

    detail: str
    remedy: str


# -- time --------------------------------------------------------------------------------------


def not_its_time(job: Job) -> Words:
    again = job.attempt > 1 and job.not_before != job.requested_start
    detail = f"backing off before attempt {job.attempt}" if again else "waiting for its time"
    return Words(detail, "wait until its time")


def not_launched(job: Job) -> Words:
    if (job.last_failure or "").startswith(EARLIER_LIVES):
        remedy = "it is looked at again by itself: what that start comes to is the job's outcome"
    elif job.launch_failures:
        remedy = "it is tried again by itself; after the third failure in a row it fails"
    else:
        remedy = "it is tried again after the cool-down; `headway scheduler reset` does so now"
    return Words(f"could not be started: {job.last_failure}", remedy)


# -- jobs before it ----------------------------------------------------------------------------


def unreadable_dependency(job_id: JobId, error: str) -> Words:
    detail = f"scheduler data error for job dependency {shown(job_id)}: {error}"
    return Words(detail, "headway doctor")


def missing_dependency(job_id: JobId) -> Words:
    detail = f"missing job dependency {shown(job_id)}"
    return Words(detail, "submit it again without that dependency")


def waits_on_job(job_id: JobId) -> Words:
    name = shown(job_id)
    return Words(f"waiting on job {name}", f"wait for {name} to succeed")


def waits_on_run(run: int) -> Words:
    """An earlier run of its schedule has not ended."""
    name = shown_run(run)
    return Words(
        f"waiting on {name}", f"wait for {name} to end, or `headway workflows stop {name}`"
    )


def may_repeat(job_id: JobId, run: int) -> Words:
    """Its end does not count yet: a loop of its workflow run is not over."""
    return Words(f"waiting on job {shown(job_id)}", f"{shown_run(run)} may repeat it")


def failed_dependency(job_id: JobId, status: Status) -> Words:
    name = shown(job_id)
    return Words(f"dependency failed for job {name} ({status})", f"headway jobs retry {name}")


def passed_by(node: str, job_id: JobId, outcome: str | None) -> str:
    return f"skipped: {node} ({shown(job_id)}) {outcome}"


def does_not_hold(condition: str, found: Any) -> str:
    return f"skipped: {condition} does not hold, it is {as_text(found)}"


def not_comparable(condition: str, why: str) -> str:
    return f"when {condition}: {why}"


def not_its_turn(group: str, ahead: JobId) -> Words:
    before = shown(ahead)
    return Words(f"waiting for its turn in {group}, after {before}", f"wait for {before} to end")


# -- artifacts ---------------------------------------------------------------------------------


def waits_on_artifact(text: str, makers: Sequence[JobId] = ()) -> Words:
    named = ", ".join(shown(each) for each in makers[:3]) if makers else "nobody yet"
    return Words(f"waiting on {text}", f"it is made by {named}")


def without_producer(text: str) -> Words:
    return Words(
        f"missing {text}",
        "nobody produces it: submit its producer first, or set scheduler.missing_producer to wait",
    )


def not_produced(text: str, job_id: JobId) -> Words:
    remedy = "its producer succeeded without making it: correct that and retry it "
    remedy += f"({shown(job_id)})"
    return Words(f"missing {text}", remedy)


def failed_producer(text: str, job_id: JobId, status: Status) -> Words:
    remedy = f"headway jobs retry {shown(job_id)} ({status})"
    return Words(f"dependency failed for {text}", remedy)


# -- the world outside -------------------------------------------------------------------------

UNSEEN = "wait a moment"  # the remedy while a probe runs
FINAL_TROUBLE = "submit it again without that condition"


def trouble_of_probe(trouble: str | None) -> str:
    """The remedy when a probe failed."""
    return f"it could not be looked at: {trouble}"


class Probed(NamedTuple):
    """The details while an answer is missing, and when the answer holds the job back."""

    looking: str
    detail: str


def head(pin: PinnedHead) -> Probed:
    return Probed(f"looking at {pin.branch}", f"pinned head mismatch on {pin.branch}")


def moved_head(pin: PinnedHead, found: str | None, job: Job) -> str:
    there = f"is at {found[:12]}" if found else "is gone"
    return (
        f"{pin.branch} {there}, not at {pin.oid[:12]}: move it back, "
        f"or headway jobs repin {shown(job.id)}"
    )


CLEAN_WORKTREE = Probed("looking at the worktree", "worktree is not clean")


def branch_exists(branch: str) -> Probed:
    return Probed(f"looking for branch {branch}", f"branch {branch} does not exist")


def condition(name: str) -> Probed:
    return Probed(f"asking condition {name}", f"condition {name} does not hold")


def unclean(repo: str | None, found: str) -> str:
    return f"commit or remove the changes in {repo}: {found}"


def make_branch(branch: str, repo: str | None) -> str:
    return f"git branch {branch}, in {repo}"


def let_it_hold(name: str) -> str:
    return f"wait until {name} holds"


def unclear_branch(branches: Sequence[str]) -> Words:
    which = ", ".join(branches) if branches else "none"
    return Words(
        f"branch_exists needs one branch, and there is {which}",
        "submit it again with --require branch_exists:BRANCH",
    )


def unknown_precondition(text: str) -> Words:
    return Words(f"unknown precondition {text}", "submit it again without it")


def looks_at_subject(subject: str | None) -> Words:
    return Words(f"looking at {subject}", UNSEEN)


def unseen_subject(subject: str | None, trouble: str) -> Words:
    remedy = f"correct it, or headway scheduler clear --subject {subject}"
    return Words(f"{subject} cannot be looked at: {trouble}", remedy)


def lost_subject(subject: str | None, where: str) -> Words:
    remedy = f"put it back, or headway scheduler clear --subject {subject}"
    return Words(f"{subject} is not in {where} any more", remedy)


def closed_subject(subject: str | None) -> Words:
    return Words(f"subject {subject} is closed", "open it again and sling it")


def blocked_subject(blockers: Sequence[str]) -> Words:
    more = len(blockers) - MOST_NAMED
    named = ", ".join(blockers[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return Words(f"blocked by {named}", f"wait until {named} is closed")


def held_subject(subject: str | None, hold: str) -> Words:
    return Words(hold, f"let {subject} be worked on where it is kept")


# -- people ------------------------------------------------------------------------------------


def not_approved(job: Job, approval: Approval) -> Words:
    rule = approval_rule(job)
    asked = f"{rule.question} " if rule.question else ""
    who = f" as {' or '.join(rule.approvers)}" if rule.approvers else ""
    left = missing(job)
    others = f"; {left} of {rule.required} must still agree" if rule.required > 1 else ""
    return Words(
        "awaiting human approval",
        f"{asked}headway jobs approve {shown(job.id)}{who}, or reject it{others}; "
        f"asked for by {approval.requested_by or 'its submitter'}",
    )


def approval_expired(job: Job, expires: int) -> Words:
    return Words(f"approval expired after {show_duration(expires)}", rejected(job.id))


def paused(pause: Pause) -> Words:
    because = f": {pause.reason}" if pause.reason else ""
    return Words(f"paused by {pause.actor}{because}", "headway scheduler resume")


# -- agents ------------------------------------------------------------------------------------


def parked_runner(parked: ParkedRunner) -> Words:
    name = parked.runner
    if parked.until is None:
        return Words(
            f"{name} is parked: {parked.reason}",
            f"correct that, then headway runners resume {name}",
        )
    return Words(
        f"{name} is parked until {show_instant(parked.until)}: {parked.reason}",
        f"wait until then, or headway runners resume {name}",
    )


def reserved_budget(run: int, job_id: JobId) -> Words:
    name = shown(job_id)
    return Words(
        f"the budget of {shown_run(run)} is reserved by {name}",
        f"wait for {name} to end, or give it a budget_usd of its own",
    )


def used_up_budget(run: int, spent: Amount, limit: Amount) -> Words:
    """`limit` has the one that is used up."""
    name = shown_run(run)
    if limit.usd is not None:
        used = f"${(spent.usd or 0) / MILLION:.2f} of ${limit.usd / MILLION:.2f}"
    else:
        used = f"{spent.tokens or 0:,} of {limit.tokens:,}{_TOKENS}"
    said = f"{_BUDGET}{name} is used up: {used}"
    return Words(said, more_budget(run, said) or "")


_BUDGET, _TOKENS = "the budget of ", " tokens"


def more_budget(run: int, reason: str | None) -> str | None:
    """The command that lets a node go on which is blocked because the budget of its run is used up;
    None: that is not why."""
    if reason is None or not reason.startswith(_BUDGET):
        return None
    option = "--budget-tokens" if reason.endswith(_TOKENS) else "--budget-usd"
    return f"headway workflows retry {shown_run(run)} {option} N"


# -- locks -------------------------------------------------------------------------------------


def locks(lacking: Sequence[tuple[str, str]]) -> Words:
    """`lacking` are the keys, each with its obstacle."""
    return Words("waiting on locks", "; ".join(f"{key} {obstacle}" for key, obstacle in lacking))


def held_lock(holder: JobId) -> str:
    return f"is held by {shown(holder)}"


def promised_lock(reserver: JobId) -> str:
    return f"is promised to {shown(reserver)}"


# -- capacity ----------------------------------------------------------------------------------


def no_pass_due() -> Words:
    return Words(
        "the next pass is not due: scheduler.spawn_delay",
        "wait until its time, or lower scheduler.spawn_delay",
    )


def pass_is_full(most: int) -> Words:
    return Words(f"one pass starts at most {most}", "the next pass starts it, if its turn comes")


def direct_call_first(reservation: Reservation) -> Words:
    return Words(
        f"{reservation.name} of {reservation.holder} goes first",
        f"wait until {reservation.name} has its slot; `headway scheduler status` shows it",
    )


def no_slot(capacity: Capacity) -> Words:
    direct = ", ".join(f"{each.name} of {each.holder}" for each in capacity.granted)
    many = f"all {capacity.max_active} slots are in use"
    return Words(
        many if capacity.max_active > 1 else "the one slot is in use",
        f"wait for {f'{direct} or ' if direct else ''}a running job to end, "
        "or raise scheduler.max_active",
    )


def no_process() -> Words:
    return Words(
        "every process that runs functions is busy",
        "wait for a function to return, or raise app.processes",
    )


def used_up(key: str, capacity: Capacity) -> Words:
    """That nothing is left under this key."""
    view = capacity.rates.get(key)
    if view is not None:
        return Words(f"rate {view.rate.key}: {view.text} is used up", "wait until its time")
    if key == ENTRY:
        places = (
            "the one place for entries of the jobs file is in use"
            if capacity.parallel == 1
            else f"all {capacity.parallel} places for entries of the jobs file are in use"
        )
        return Words(places, "wait for an entry's job to end, or raise jobsfile.parallel")
    kind, _, word = key.partition(":")
    limit, setting = capacity.limits[key], f"scheduler.limits.{kind}.{word}"
    if limit == 0:
        return Words(f"none of {kind} {word} may run", f"{setting} is 0; raise it")
    used = f"{kind} {word} is in use" if limit == 1 else f"all {limit} of {kind} {word} are in use"
    return Words(used, f"wait for a job that uses it to end, or raise {setting}")


def all_used_up(keys: Sequence[str], capacity: Capacity) -> Words:
    said = [used_up(key, capacity) for key in keys]
    details, remedies = (each.detail for each in said), (each.remedy for each in said)
    return Words("; ".join(details), "; ".join(remedies))


def high_load(load: float, most: float) -> Words:
    return Words(
        f"the load per processor is {load:.2f}, above {most:g}",
        "wait for it to fall, or raise scheduler.pressure.load",
    )


def little_memory(memory: int, least: int) -> Words:
    mebi = 1 << 20
    return Words(
        f"{memory / mebi:.0f} MiB of memory are available, less than {least / mebi:.0f} MiB",
        "wait for memory to be freed, or lower scheduler.pressure.memory",
    )


# -- who can start it --------------------------------------------------------------------------


def unknown_type(job: Job) -> Words:
    detail = f"jobs of type {job.type} are unknown here"
    return Words(detail, "upgrade Headway where its worker runs")


def other_host(name: str) -> Words:
    remedy = f"a worker on {name}; or submit it again with --any-host"
    return Words(f"only {name} may start it", remedy)


def left_to_a_host(task: str) -> str:
    return f"left to a host that knows {task}"


def task_known_once(task: str, host: str) -> Words:
    detail = f"no host that is up knows {task}; {host} did"
    return Words(detail, f"headway work there, or {_how_to_run(task)}")


def no_worker_for(task: str) -> Words:
    return Words(f"no worker runs {task}", _how_to_run(task))


def not_imported(task: str, trouble: str) -> Words:
    meant = _module_of(task)
    remedy = how_to_import(trouble)
    if is_misnamed(trouble) and meant is not None and not _imports(trouble, meant):
        remedy = f"headway config set app.modules {meant}, if that is what was meant; {remedy}"
    return Words(trouble, remedy)


def unknown_task(task: str, tasks: TaskView) -> Words:
    known = ", ".join(sorted(tasks.names)[:10]) or "none"
    remedy = _out_of_reach(task) or (
        "headway config set app.modules with its module among them, also if that has changed "
        f"since it was imported; known are {known}"
    )
    return Words(f"task {task} is unknown", remedy)


def _how_to_run(task: str) -> str:
    module = _module_of(task) or "MODULE"
    return _out_of_reach(task) or (
        f"headway config set app.modules {module}, or headway work --app {module}"
    )


def _module_of(task: str) -> str | None:
    """The module is what stands before the function's name, and before the class that has it."""
    parts = task.split(".")[:-1]
    found = takewhile(lambda part: part.isidentifier() and part == part.lower(), parts)
    return ".".join(found) or None


def _out_of_reach(task: str) -> str | None:
    """What to do with a function that no import of its module finds."""
    if "<locals>" in task:
        return "define it at the top of its module: a function within another cannot be imported"
    if task.startswith("__main__."):
        return "put it into a module: what was typed in cannot be imported"
    return None


def how_to_import(trouble: str) -> str:
    """What to do about a module that cannot be imported, or is not yet."""
    if trouble == IMPORTING:
        return "it starts when they are"
    if trouble.startswith(NO_HOST):
        return "it is tried again by itself"
    if "No module named" in trouble:
        named = "correct app.modules, or move the module: " if is_misnamed(trouble) else ""
        return (
            f"{named}modules are found beside .headway/ and on the PYTHONPATH, which [env] of "
            "config.toml may set; it is tried again by itself"
        )
    return "correct the module; it is tried again by itself"


def is_misnamed(trouble: str) -> bool:
    """Whether a module that app.modules names is not there, and not one that it imports."""
    missing = _MISSING.search(trouble)
    return missing is not None and _imports(trouble, missing[1])


def _imports(trouble: str, module: str) -> bool:
    asked = _IMPORTING_FAILED.match(trouble)
    names = asked[1].split(", ") if asked is not None else ()
    return any(f"{each}.".startswith(f"{module}.") for each in names)


# -- the next step after an end ----------------------------------------------------------------


def retried_since(last: JobId, status: Status) -> str:
    return f"it was retried; its last attempt is {shown(last)} ({status})"


def unknown_outcome(job_id: JobId) -> str:
    name = shown(job_id)
    return (
        f"it may have done its work: see headway jobs tail {name}, then headway jobs retry {name} "
        "if it is to run again"
    )


def failed_itself(job_id: JobId, *, has_output: bool) -> str:
    name = shown(job_id)
    output = f"headway jobs tail {name} shows its output; " if has_output else ""
    return f"{output}headway jobs retry {name} runs it again, and all that follows"


def rejected(job_id: JobId) -> str:
    return f"headway jobs retry {shown(job_id)} asks for approval again"


def retry_from(root: JobId) -> str:
    return f"headway jobs retry {shown(root)} runs it again, and all that follows from it"


def then_retry(job_id: JobId, text: str) -> str:
    """After a block for an artifact that nobody makes: a producer that comes now is too late."""
    return (
        f"nobody produces it: submit its producer (--produces {text}), then headway jobs retry "
        f"{shown(job_id)}"
    )
