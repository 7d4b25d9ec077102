"""The route table: the only place that knows paths, rights, requests and answers.

The guard, the OpenAPI document, docs/http.md and the tests read it. A route without a right cannot
be written: `right` has no default. `verbs` are the methods of `headway.Client` behind it; UNROUTED
says of every other one why it has no route.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from headway.base.shapes import (
    ANYTHING,
    FLAG,
    NUMBER,
    TEXT,
    TEXTS,
    WHOLE,
    WORD,
    Schema,
    keys,
    one_of,
    texts_by_name,
    whole,
)
from headway.core.groups import POLICIES, GroupMode
from headway.core.principals import Role
from headway.core.webhooks import TYPES
from headway.jobs.graph_file import schema_of_entry
from headway.jobs.revisions import MOST_IN_LINE
from headway.web.calls import Handler, Reply, WebCall
from headway.web.handlers import (
    collections,
    events,
    jobs,
    legacy,
    login,
    metrics,
    runs,
    scheduler,
    server,
    statistics,
    webhooks,
)
from headway.web.metrics import MEDIA
from headway.web.openapi import STATES, STATUSES, document
from headway.web.pages.acts import OF_FORMS, acts
from headway.web.pages.approvals import ApprovalsPage
from headway.web.pages.assets import ASSETS, Asset
from headway.web.pages.edit import EDITED, EditPage, edit_job
from headway.web.pages.events import EventsPage
from headway.web.pages.graph import GraphPage
from headway.web.pages.groups import CancelGroupPage, GroupPage, GroupsPage
from headway.web.pages.hosts import HostsPage
from headway.web.pages.job import ConfirmPage, JobPage
from headway.web.pages.jobs import BulkPage, JobsPage, bulk
from headway.web.pages.limits import LimitsPage
from headway.web.pages.live import live
from headway.web.pages.overview import Overview
from headway.web.pages.page import LIVE, WebPage, shown
from headway.web.pages.requests import BULK, OF_PAGES, SPAN
from headway.web.pages.schedules import SchedulePage, SchedulesPage
from headway.web.pages.settings import SettingsPage, change
from headway.web.pages.submission import (
    NEW_COMMAND,
    NEW_OF,
    NewPage,
    start_workflow,
    submit_command,
    submit_template,
)
from headway.web.pages.webhooks import WebhooksPage
from headway.web.pages.workflows import RunPage, WorkflowsPage
from headway.web.route import ADMIN, API, DECIDE, NONE, OPERATE, PUBLIC, READ, SUBMIT, Right, Route
from headway.web.shapes import INSTANT

MOST_DRAWN = 10_000  # jobs of a graph; without a bound one answer could take all memory
LARGEST_GRAPH = 16 << 20
LARGEST_CODE = 4 << 10  # of a body that is read for nobody


def _get(
    path: str,
    handler: Handler,
    about: str,
    answer: str,
    query: Mapping[str, Schema] = NONE,
    *,
    right: Right = READ,
    verbs: tuple[str, ...],
    **more: Any,
) -> Route:
    made = {"answers": {200: answer}, **more}
    return Route("GET", API + path, right, handler, about, query=query, verbs=verbs, **made)


def _post(
    path: str,
    handler: Handler,
    about: str,
    right: Right,
    answers: Mapping[int, str],
    body: Schema = keys(),  # noqa: B008
    *,
    verbs: tuple[str, ...],
    **more: Any,
) -> Route:
    return Route(
        "POST", API + path, right, handler, about, answers, NONE, body, verbs=verbs, **more
    )


PAGE = whole(1, 1000, 50)
ALL = {"all": FLAG}
REASON = keys(reason={**TEXT, "type": ["string", "null"]})
# A file of a server is none of the caller's; the text can be sent.
ENTRY = {"title": "Entry", **schema_of_entry(without=("prompt_file",))}
_ENTRY_KEYS = ENTRY["properties"]
NEW_JOB: Schema = {
    **ENTRY,
    "title": "NewJob",
    "properties": {
        **_ENTRY_KEYS,
        "template": TEXT,
        "params": texts_by_name("the parameters of the template"),
    },
}
GRAPH = keys(("jobs",), jobs={"type": "array", "items": ENTRY, "maxItems": 100_000})
EDIT: Schema = keys(
    **{
        word: _ENTRY_KEYS[word]
        for word in (
            *("argv", "shell", "name", "slug", "labels", "priority", "env", "cwd"),
            *("timeout", "grace"),
        )
    }
)
RETRY = keys(dry_run=FLAG, again=FLAG)
NEW_TEMPLATE: Schema = {
    **ENTRY,
    "title": "NewTemplate",
    "properties": {
        **_ENTRY_KEYS,
        "params": texts_by_name("parameters and their defaults, null for those that must be given"),
    },
}
NEW_SCHEDULE = keys(
    name=TEXT,
    cron=TEXT,
    every=TEXT,
    at=TEXT,
    timezone=TEXT,
    template=TEXT,
    workflow=TEXT,
    params=texts_by_name("of the template or the workflow"),
    job=ENTRY,
    catch_up=one_of("latest", "all", "none"),
    window=TEXT,
    overlap=one_of("skip", "queue", "replace"),
    jitter=TEXT,
    replace=FLAG,
    enabled=FLAG,
)

JOBS = (
    _get(
        "/jobs",
        jobs.list_jobs,
        "Jobs, the newest first, in pages; all of them, also those of long ago.",
        "JobPage",
        {
            "state": {"type": "array", "items": one_of(*STATES)},
            "status": {"type": "array", "items": one_of(*STATUSES)},
            "label": {"type": "array", "items": WORD, "description": "K=V; all must fit"},
            "name": {**TEXT, "description": "a pattern like build*"},
            "since": INSTANT,
            "group": TEXTS,
            "run": {**TEXTS, "description": "of workflows, like wf-7"},
            "subject": TEXTS,
            "target": TEXTS,
            "limit": PAGE,
            "cursor": {**TEXT, "description": "`next` of the page before"},
        },
        verbs=("jobs.list", "listing"),
    ),
    _post(
        "/jobs",
        jobs.submit,
        "Submit a job: an entry of a graph file, or a template with its parameters. With "
        "`Prefer: wait=N` the answer waits for its end, up to 60 s.",
        SUBMIT,
        {200: "Submitted", 201: "Submitted", 202: "Submitted"},
        NEW_JOB,
        headers=("Idempotency-Key", "Prefer"),
        verbs=(
            "submit",
            "jobs.submit",
            "jobs.submit_entry",
            "templates.submit",
            "jobs.wait",
            "wait",
        ),
    ),
    _post(
        "/graphs",
        jobs.submit_graph,
        "Submit a graph of jobs, all of it or nothing.",
        SUBMIT,
        {200: "SubmittedGraph", 201: "SubmittedGraph"},
        GRAPH,
        headers=("Idempotency-Key",),
        largest=LARGEST_GRAPH,
        verbs=("submit_many", "jobs.submit_many", "jobs.submit_entries", "jobs.documents"),
    ),
    _get(
        "/jobs/{job}",
        jobs.show,
        "One job. Its ETag is the revision that changes can name.",
        "OneJob",
        {"include": {"type": "array", "items": one_of("chain", "events")}},
        verbs=(
            *("job", "document", "jobs.get", "jobs.show", "jobs.find", "jobs.revision"),
            *("jobs.chain", "jobs.tries", "jobs.history", "jobs.last_of_chain", "jobs.progress"),
        ),
    ),
    Route(
        "PATCH",
        API + "/jobs/{job}",
        SUBMIT,
        jobs.edit,
        "Change a job that still waits: a key replaces, labels and env entry by entry.",
        {200: "Edited"},
        NONE,
        EDIT,
        ("If-Match",),
        verbs=("jobs.edit",),
        own=True,
    ),
    Route(
        "DELETE",
        API + "/jobs/{job}",
        ADMIN,
        jobs.remove,
        "Remove an ended job, with its chain and its files.",
        {204: ""},
        verbs=("jobs.clean",),
    ),
    _get(
        "/jobs/{job}/why",
        jobs.why,
        "Why it does not run, and what would let it.",
        "Why",
        verbs=("jobs.why", "jobs.why_not"),
    ),
    _get(
        "/jobs/{job}/result",
        jobs.result,
        "What its function returned, or its agent reported.",
        "Result",
        verbs=("jobs.show",),
    ),
    _get(
        "/jobs/{job}/patch",
        jobs.patch,
        "What it changed in its worktree, as a patch.",
        "Text",
        media="text/x-diff; charset=utf-8",
        verbs=("jobs.patch",),
    ),
    _post(
        "/jobs/{job}/cancel",
        jobs.cancel,
        "Cancel it; what runs is asked to end, which 202 says.",
        SUBMIT,
        {200: "Jobs", 202: "Jobs"},
        keys(downstream=FLAG),
        verbs=("cancel", "jobs.cancel", "jobs.cancel_downstream", "jobs.downstream"),
        own=True,
    ),
    _post(
        "/jobs/{job}/retry",
        jobs.retry,
        "Run it again, and all that follows from it; `again` also if it succeeded.",
        SUBMIT,
        {200: "Retried", 201: "Retried"},
        RETRY,
        verbs=(
            *("retry", "jobs.retry", "jobs.repeat"),
            *("jobs.preview_retry", "jobs.preview_repeat"),
        ),
        own=True,
    ),
    _post(
        "/jobs/{job}/move",
        jobs.move,
        "Put a waiting job elsewhere in the queue.",
        OPERATE,
        {200: "Moved"},
        keys(before=TEXT, after=TEXT, position=whole(1, 10**9), front=FLAG),
        headers=("If-Match",),
        verbs=("jobs.move",),
    ),
    _post(
        "/jobs/{job}/approve",
        jobs.approve,
        "Let a job run that asks for approval. If-Match names what was seen.",
        DECIDE,
        {200: "OneJob"},
        headers=("If-Match",),
        verbs=("jobs.approve", "jobs.approve_all"),
    ),
    _post(
        "/jobs/{job}/reject",
        jobs.reject,
        "End a job that asks for approval.",
        DECIDE,
        {200: "OneJob"},
        REASON,
        headers=("If-Match",),
        verbs=("jobs.reject",),
    ),
    _post(
        "/jobs/{job}/repin",
        jobs.repin,
        "Move a waiting job's pin to the present commit.",
        DECIDE,
        {200: "Repinned"},
        headers=("If-Match",),
        verbs=("jobs.repin",),
    ),
    _get(
        "/jobs/{job}/logs",
        jobs.follow,
        "What it writes, as it comes: events `log`, `next` (its retry), `end`.",
        "Stream",
        {"this": FLAG},
        headers=("Last-Event-ID",),
        stream=True,
        media="text/event-stream; charset=utf-8",
        verbs=("jobs.log",),
    ),
    _get(
        "/jobs/{job}/logs/{stream}",
        jobs.log,
        "A part of what it wrote to stdout or stderr, by logical offsets.",
        "Text",
        {"offset": whole(0, 10**18), "limit": whole(1, 1 << 20, 1 << 20), "tail": whole(1, 10_000)},
        answers={200: "Text", 206: "Text"},
        headers=("Range",),
        media="text/plain; charset=utf-8",
        verbs=("jobs.log", "jobs.log_tail", "jobs.ran_elsewhere"),
    ),
    _get(
        "/queue",
        jobs.queue,
        "Waiting jobs in the order of dispatch, with estimates.",
        "Queue",
        {"limit": whole(1, MOST_IN_LINE, 1000)},
        verbs=("jobs.queue", "jobs.queue_revision"),
    ),
    Route(
        "PUT",
        API + "/queue",
        OPERATE,
        jobs.reorder,
        "Let these jobs have, among the places that they have now, the order given.",
        {200: "Reordered"},
        NONE,
        keys(("order",), order=TEXTS),
        ("If-Match",),
        verbs=("jobs.reorder",),
    ),
    _get(
        "/approvals",
        jobs.approvals,
        "What waits for a person, and what it would run.",
        "Approvals",
        verbs=("jobs.approvals",),
    ),
    _get(
        "/graph",
        jobs.graph,
        "What is to run and what each job waits for: the first `top` jobs, 10,000 at most.",
        "Graph",
        {
            "job": TEXT,
            "all": FLAG,
            "depth": whole(0, 100),
            "top": whole(1, MOST_DRAWN, MOST_DRAWN),
            "format": {**one_of("json", "svg", "dot", "mermaid"), "default": "json"},
        },
        verbs=("jobs.graph",),
    ),
)

RUNS = (
    _get(
        "/runs",
        runs.list_runs,
        "The executions that go on now.",
        "Runs",
        {"limit": PAGE},
        verbs=("jobs.list",),
    ),
    _get("/runs/{run}", runs.show, "One execution of a job.", "OneRun", verbs=("jobs.run",)),
    _post(
        "/runs/{run}/retry",
        runs.retry,
        "Run its job again, however often it was tried.",
        SUBMIT,
        {200: "Retried", 201: "Retried"},
        RETRY,
        verbs=("jobs.retry",),
        own=True,
    ),
    Route(
        "POST",
        "/api/job-runs/{run}/retry",
        SUBMIT,
        runs.retry,
        "The same under an older path.",
        {200: "Retried", 201: "Retried"},
        NONE,
        RETRY,
        verbs=("jobs.retry",),
        own=True,
        old=True,
    ),
)

WORKFLOWS = (
    _get(
        "/workflows",
        runs.list_workflows,
        "The workflows of the home.",
        "Workflows",
        verbs=("workflows.list", "workflows.check"),
    ),
    _get(
        "/workflows/{workflow}",
        runs.show_workflow,
        "What a workflow takes and what its nodes do.",
        "OneWorkflow",
        verbs=("workflows.show",),
    ),
    _post(
        "/workflows/{workflow}/runs",
        runs.start,
        "Start a run of it.",
        SUBMIT,
        {200: "StartedWorkflowRun", 201: "StartedWorkflowRun"},
        keys(
            params={"type": "object"},
            after=TEXTS,
            priority=whole(-1_000_000, 1_000_000),
            require_approval=FLAG,
        ),
        headers=("Idempotency-Key",),
        verbs=("workflows.start", "workflows.submit"),
    ),
    _get(
        "/workflow-runs",
        runs.list_workflow_runs,
        "Runs that have not ended and the last day's.",
        "WorkflowRuns",
        ALL,
        verbs=("workflows.runs",),
    ),
    _get(
        "/workflow-runs/{run}",
        runs.show_workflow_run,
        "One run, with its nodes.",
        "OneWorkflowRun",
        {"include": {"type": "array", "items": one_of("manifest")}},
        verbs=("workflows.run", "workflows.manifest"),
    ),
    _get(
        "/workflow-runs/{run}/why",
        runs.why_workflow_run,
        "The first cause of why it does not go on, or went wrong.",
        "Why",
        verbs=("workflows.why",),
    ),
    _post(
        "/workflow-runs/{run}/stop",
        runs.stop,
        "Cancel all of it but its `finally`; with `now` that, too.",
        SUBMIT,
        {202: "OneWorkflowRun"},
        keys(now=FLAG),
        verbs=("workflows.stop",),
        own=True,
    ),
    _post(
        "/workflow-runs/{run}/retry",
        runs.retry_workflow_run,
        "Run what failed again, or a node and all after it.",
        SUBMIT,
        {200: "RetriedRun", 201: "RetriedRun"},
        keys(**{"from": TEXT}, budget_usd=NUMBER, budget_tokens=WHOLE, dry_run=FLAG),
        verbs=("workflows.retry",),
        own=True,
    ),
)

GROUPS = (
    _get(
        "/groups",
        collections.list_groups,
        "Groups that have not ended and the last day's.",
        "Groups",
        ALL,
        verbs=("groups.list",),
    ),
    _get(
        "/groups/{group}",
        collections.show_group,
        "How far a group is, and its members.",
        "OneGroup",
        verbs=("groups.show",),
    ),
    _post(
        "/groups",
        collections.create_group,
        "Make a group, empty and open, or of waiting jobs.",
        SUBMIT,
        {201: "OneGroup"},
        keys(
            name=TEXT,
            mode=one_of(*(each.value for each in GroupMode)),
            on_failure=one_of(*POLICIES),
            jobs=TEXTS,
            open=FLAG,
        ),
        verbs=("groups.create",),
        own=True,
    ),
    _post(
        "/groups/{group}/close",
        collections.close_group,
        "Let nobody join any more.",
        OPERATE,
        {200: "OneGroup"},
        verbs=("groups.close",),
    ),
    _post(
        "/groups/{group}/cancel",
        collections.cancel_group,
        "End all members that have not ended, and close it.",
        OPERATE,
        {200: "CancelledGroup", 202: "CancelledGroup"},
        verbs=("groups.cancel",),
    ),
)

SCHEDULES = (
    _get(
        "/schedules",
        collections.list_schedules,
        "All schedules.",
        "Schedules",
        verbs=("schedules.list",),
    ),
    _get(
        "/schedules/upcoming",
        collections.upcoming,
        "The slots that are to come, of all schedules; 24 h unless said, 92 days at most.",
        "Upcoming",
        {"from": INSTANT, "until": INSTANT, "limit": whole(1, 10_000, 1000)},
        verbs=("schedules.upcoming",),
    ),
    _get(
        "/schedules/{schedule}",
        collections.show_schedule,
        "One schedule.",
        "OneSchedule",
        verbs=("schedules.show",),
    ),
    _get(
        "/schedules/{schedule}/slots",
        collections.slots,
        "The records of its slots, the newest first.",
        "Slots",
        {"limit": whole(1, 1000, 20)},
        verbs=("schedules.slots",),
    ),
    _post(
        "/schedules",
        collections.add_schedule,
        "Make jobs, or runs of a workflow, at certain times.",
        ADMIN,
        {201: "OneSchedule"},
        NEW_SCHEDULE,
        verbs=("schedules.add",),
    ),
    Route(
        "DELETE",
        API + "/schedules/{schedule}",
        ADMIN,
        collections.remove_schedule,
        "Remove it; its jobs stay.",
        {204: ""},
        verbs=("schedules.remove",),
    ),
    _post(
        "/schedules/{schedule}/enable",
        collections.enable_schedule,
        "Let it fire from now on.",
        OPERATE,
        {200: "OneSchedule"},
        verbs=("schedules.enable",),
    ),
    _post(
        "/schedules/{schedule}/disable",
        collections.disable_schedule,
        "Let it fire no more.",
        OPERATE,
        {200: "OneSchedule"},
        verbs=("schedules.disable",),
    ),
    _post(
        "/schedules/{schedule}/trigger",
        collections.trigger_schedule,
        "Make one of its jobs now, for no slot.",
        OPERATE,
        {200: "Triggered", 201: "Triggered"},
        headers=("Idempotency-Key",),
        verbs=("schedules.trigger",),
    ),
)

TEMPLATES = (
    _get(
        "/templates",
        collections.list_templates,
        "The templates that make jobs; with `all` also those that do no more.",
        "Templates",
        ALL,
        verbs=("templates.list",),
    ),
    _get(
        "/templates/{template}",
        collections.show_template,
        "One template.",
        "OneTemplate",
        verbs=("templates.show",),
    ),
    Route(
        "PUT",
        API + "/templates/{template}",
        ADMIN,
        collections.put_template,
        "Keep a job under a name, in the place of one of that name.",
        {200: "OneTemplate", 201: "OneTemplate"},
        NONE,
        NEW_TEMPLATE,
        verbs=("templates.add",),
    ),
    Route(
        "DELETE",
        API + "/templates/{template}",
        ADMIN,
        collections.archive_template,
        "Let it make no more jobs.",
        {204: ""},
        verbs=("templates.archive",),
    ),
)

SCHEDULER = (
    _get(
        "/scheduler",
        scheduler.status,
        "Mode, caps, what is in use, and why nothing starts now.",
        "SchedulerStatus",
        verbs=("scheduler.status", "scheduler.counts"),
    ),
    _get(
        "/scheduler/plan",
        scheduler.plan,
        "What one pass would start now.",
        "Plan",
        {"batch": whole(1, 10_000)},
        verbs=("scheduler.dry_run",),
    ),
    _post(
        "/scheduler/pause",
        scheduler.pause,
        "Start nothing more; what runs goes on.",
        OPERATE,
        {200: "SchedulerStatus"},
        REASON,
        verbs=("pause", "scheduler.pause"),
    ),
    _post(
        "/scheduler/resume",
        scheduler.resume,
        "End the pause.",
        OPERATE,
        {200: "SchedulerStatus"},
        verbs=("resume", "scheduler.resume"),
    ),
    _post(
        "/scheduler/reset",
        scheduler.reset,
        "Forget launch failures and try again at once.",
        OPERATE,
        {200: "ResetDone"},
        verbs=("scheduler.reset",),
    ),
    _post(
        "/scheduler/clear",
        scheduler.clear,
        "Cancel what is slung and waits.",
        OPERATE,
        {200: "ClearedItems"},
        keys(subject=TEXT),
        verbs=("items.clear",),
    ),
    _get(
        "/settings",
        scheduler.settings,
        "Every setting: its value, its default, where it stands.",
        "Settings",
        verbs=("scheduler.all_settings", "scheduler.settings"),
    ),
    Route(
        "PUT",
        API + "/settings/{key}",
        ADMIN,
        scheduler.put_setting,
        "Change a setting that the store keeps; null is its default.",
        {200: "Settings"},
        NONE,
        keys(("value",), value=ANYTHING),
        verbs=("scheduler.set", "scheduler.unset", "set_setting"),
    ),
    _post(
        "/reservations",
        scheduler.reserve,
        "Hold a slot for work that is no job; 202 while it waits for one.",
        SUBMIT,
        {201: "OneReservation", 202: "OneReservation"},
        keys(note={**TEXT, "maxLength": 200}, type=TEXT, resources=TEXTS, target=TEXT),
        headers=("Prefer",),
        verbs=("reservations.ask", "reservations.look"),
    ),
    _post(
        "/reservations/{reservation}/renew",
        scheduler.renew,
        "Keep it, or its place in line.",
        SUBMIT,
        {200: "OneReservation"},
        verbs=("reservations.renew", "reservations.show"),
        own=True,
    ),
    Route(
        "DELETE",
        API + "/reservations/{reservation}",
        SUBMIT,
        scheduler.release,
        "Give it back, or leave the line.",
        {204: ""},
        verbs=("reservations.release",),
        own=True,
    ),
)

OF_LOAD: Schema = {
    **TEXT,
    "pattern": "^([1-9][0-9]{0,3}m|([1-9][0-9]?|[1-6][0-9]{2})h|([1-9]|[12][0-9]|3[01])d)$",
    "default": "1h",
    "description": "like 30m, 1h, 24h or 7d; 31d at most",
}
LAST_RUNS = {"limit": whole(1, 1000, 30)}
STATISTICS = (
    _get(
        "/statistics/load",
        statistics.load,
        "What ended, waited and ran over time; of a busy store since `complete_since`.",
        "Load",
        {"span": OF_LOAD},
        verbs=("statistics.load",),
    ),
    _get(
        "/statistics/jobs/{name}",
        statistics.of_jobs,
        "How long the last jobs of a name took.",
        "Lengths",
        LAST_RUNS,
        verbs=("statistics.jobs",),
    ),
    _get(
        "/statistics/workflows/{workflow}",
        statistics.of_workflow,
        "How long the last runs of a workflow took.",
        "Lengths",
        LAST_RUNS,
        verbs=("statistics.runs",),
    ),
    _get(
        "/statistics/schedules/{schedule}",
        statistics.of_schedule,
        "How long the last jobs or runs of a schedule took.",
        "Lengths",
        LAST_RUNS,
        verbs=("schedules.runs",),
    ),
    _get(
        "/statistics/spend",
        statistics.spend,
        "What agents used, by day.",
        "Spend",
        {"days": whole(1, 31, 30)},
        verbs=("statistics.spend",),
    ),
    _get(
        "/workflow-runs/{run}/timeline",
        statistics.timeline_of_run,
        "When each node of a run waited, on what, and ran.",
        "Timeline",
        verbs=("statistics.timeline_of_run",),
    ),
    _get(
        "/groups/{group}/timeline",
        statistics.timeline_of_group,
        "The same of the members of a group.",
        "Timeline",
        verbs=("statistics.timeline_of_group",),
    ),
    _get(
        "/jobs/{job}/timeline",
        statistics.timeline_of_job,
        "The same of a job and all that it depends on or that depends on it.",
        "Timeline",
        verbs=("statistics.timeline_of_job",),
    ),
)


@cache
def _described() -> bytes:
    """Made once: it takes as long as a hundred other answers."""
    return Reply(document=document(API_ROUTES)).content()


def _openapi(call: WebCall) -> Reply:
    return Reply(body=_described())


OTHERS = (
    _get(
        "/artifacts",
        collections.artifacts,
        "What jobs have published, make or need.",
        "Artifacts",
        verbs=("artifacts.list",),
    ),
    _get(
        "/locks",
        collections.locks,
        "Who holds each lock, and who waits for it.",
        "Locks",
        verbs=("scheduler.locks",),
    ),
    _get(
        "/hosts",
        collections.hosts,
        "Every host of the store, with its last worker.",
        "Hosts",
        verbs=("scheduler.hosts",),
    ),
    _get(
        "/limits",
        collections.limits,
        "Slots and limits, and what is in use of them.",
        "Limits",
        verbs=("scheduler.status",),
    ),
    _get(
        "/targets",
        collections.targets,
        "Where slung work goes.",
        "Targets",
        verbs=("targets.list", "targets.show"),
    ),
    _get(
        "/items",
        collections.items,
        "What is slung and has not ended, by target.",
        "Targets",
        verbs=("items.list",),
    ),
    _get(
        "/runners",
        collections.runners,
        "The agent programs that jobs can use.",
        "Runners",
        verbs=("runners.list", "runners.parked"),
    ),
    _get(
        "/runners/{runner}",
        collections.show_runner,
        "One of them.",
        "OneRunner",
        verbs=("runners.show",),
    ),
    _post(
        "/runners/{runner}/resume",
        collections.resume_runner,
        "Let jobs of a parked runner start again.",
        OPERATE,
        {200: "Resumed"},
        verbs=("runners.resume",),
    ),
    _get(
        "/jobs-file",
        collections.jobs_file,
        "The file of periodic jobs and its entries.",
        "JobsFile",
        verbs=("jobsfile.list",),
    ),
    _get(
        "/events",
        events.list_events,
        "What happened: a page, or with `Accept: text/event-stream` all that happens.",
        "Events",
        {
            "kind": {**TEXTS, "items": {**WORD, "enum": sorted(TYPES)}},
            "job": TEXT,
            "group": TEXT,
            "after": {**TEXT, "description": "an id like EPOCH-SEQ"},
            "limit": PAGE,
        },
        headers=("Last-Event-ID",),
        stream=True,
        verbs=("events.since", "events.last", "events.epoch", "events.started_since"),
    ),
    _get("/me", server.me, "Who you are, and what you may do.", "Me", verbs=()),
    _get("/version", server.version, "The version.", "Version", verbs=()),
    _get("/openapi.json", _openapi, "This API as OpenAPI 3.1.", "Anything", verbs=()),
    Route(
        "GET",
        "/readyz",
        READ,
        server.ready,
        "Whether the store can be used and listeners hear of what happens.",
        {200: "Ready"},
    ),
    Route(
        "GET",
        "/metrics",
        READ,
        metrics.scrape,
        "Metrics, for Prometheus.",
        {200: "Text"},
        media=MEDIA,
    ),
)

NAME = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_.-]{0,63}$"}
WEBHOOKS = (
    _get(
        "/webhooks",
        webhooks.list_endpoints,
        "The endpoints that learn what happens; the URL only for admins.",
        "Endpoints",
        verbs=("webhooks.list",),
    ),
    _get(
        "/webhooks/{endpoint}",
        webhooks.show_endpoint,
        "One endpoint.",
        "OneEndpoint",
        verbs=("webhooks.show",),
    ),
    _post(
        "/webhooks",
        webhooks.add_endpoint,
        "Tell a URL what happens from now on; its secret is in this answer alone.",
        ADMIN,
        {201: "OneEndpoint"},
        keys(
            ("name", "url"), name=NAME, url=TEXT, types=TEXTS, schedule=one_of("quick", "standard")
        ),
        verbs=("webhooks.add",),
    ),
    Route(
        "DELETE",
        API + "/webhooks/{endpoint}",
        ADMIN,
        webhooks.remove_endpoint,
        "Remove it, with its deliveries.",
        {204: ""},
        verbs=("webhooks.remove",),
    ),
    _post(
        "/webhooks/{endpoint}/test",
        webhooks.test_endpoint,
        "Send one request now and wait for the answer.",
        ADMIN,
        {200: "Tested"},
        verbs=("webhooks.test",),
    ),
    _post(
        "/webhooks/{endpoint}/pause",
        webhooks.pause_endpoint,
        "Send nothing to it until it is resumed.",
        ADMIN,
        {200: "OneEndpoint"},
        verbs=("webhooks.pause",),
    ),
    _post(
        "/webhooks/{endpoint}/resume",
        webhooks.resume_endpoint,
        "Send to it again.",
        ADMIN,
        {200: "OneEndpoint"},
        verbs=("webhooks.resume",),
    ),
    _post(
        "/webhooks/{endpoint}/rotate",
        webhooks.rotate,
        "Give it a new secret; until the overlap is over the one before signs as well.",
        ADMIN,
        {200: "Rotated"},
        keys(overlap=TEXT),
        verbs=("webhooks.rotate",),
    ),
    _get(
        "/deliveries",
        webhooks.deliveries,
        "Deliveries, the newest first.",
        "Deliveries",
        {
            "state": one_of("pending", "delivered", "failed"),
            "job": TEXT,
            "since": INSTANT,
            "limit": PAGE,
        },
        verbs=("webhooks.deliveries",),
    ),
    _get(
        "/deliveries/{delivery}",
        webhooks.show_delivery,
        "One delivery, with the bytes that are sent.",
        "OneDelivery",
        verbs=("webhooks.delivery",),
    ),
    _post(
        "/deliveries/{delivery}/replay",
        webhooks.replay,
        "Send it once more, with the same id and bytes.",
        OPERATE,
        {202: "OneDelivery"},
        verbs=("webhooks.replay",),
    ),
    _post(
        "/deliveries/replay",
        webhooks.replay_since,
        "The same for all that failed of those made since then.",
        OPERATE,
        {202: "Replayed"},
        keys(("since",), since=INSTANT),
        verbs=("webhooks.replay_since",),
    ),
)

_PARAMS = {"type": "object", "description": "of the template"}
_LEGACY = (
    Route(
        "POST",
        "/jobs/{template}/trigger",
        SUBMIT,
        legacy.trigger,
        "Make a job of a template; use POST /api/v1/jobs.",
        {202: "LegacyTriggered"},
        NONE,
        keys(params=_PARAMS),
        ("Idempotency-Key",),
    ),
    Route(
        "POST",
        "/jobs/batch/trigger",
        SUBMIT,
        legacy.trigger_batch,
        "Make jobs of several templates; use POST /api/v1/graphs with a group.",
        {202: "LegacyBatch"},
        NONE,
        keys(
            ("jobs",),
            jobs={
                "type": "array",
                "items": keys(("template",), template=TEXT, params=_PARAMS),
                "maxItems": 1000,
            },
            mode=one_of(*(each.value for each in GroupMode)),
            on_failure=one_of(*POLICIES),
        ),
    ),
    Route(
        "GET",
        "/jobs/batch/{group}",
        READ,
        legacy.show_batch,
        "A group; use GET /api/v1/groups/{group}.",
        {200: "OneGroup"},
    ),
    Route(
        "GET",
        "/jobs",
        READ,
        legacy.list_jobs,
        "Jobs; use GET /api/v1/jobs.",
        {200: "JobPage"},
        JOBS[0].query,
    ),
    Route(
        "GET",
        "/jobs/{job}",
        READ,
        legacy.show_job,
        "One job; use GET /api/v1/jobs/{job}.",
        {200: "OneJob"},
    ),
    Route(
        "POST",
        "/jobs/{job}/cancel",
        SUBMIT,
        legacy.cancel_job,
        "Cancel a job; use POST /api/v1/jobs/{job}/cancel.",
        {200: "Jobs", 202: "Jobs"},
        NONE,
        keys(downstream=FLAG),
        own=True,
    ),
)

LEGACY = tuple(each._replace(old=True) for each in _LEGACY)

_HTML = "text/html; charset=utf-8"
SIGN_IN = (
    Route(
        "GET",
        "/healthz",
        PUBLIC,
        login.fixed,
        "Whether the process answers.",
        {200: "Text"},
        media="text/plain; charset=utf-8",
        fixed=login.HEALTHY,
    ),
    Route(
        "GET",
        "/login",
        PUBLIC,
        login.fixed,
        "The page that signs a browser in.",
        {200: "Text"},
        media=_HTML,
        fixed=login.PAGE,
    ),
    Route(
        "GET",
        "/login.js",
        PUBLIC,
        login.fixed,
        "Its script.",
        {200: "Text"},
        media="text/javascript; charset=utf-8",
        fixed=login.SCRIPT,
    ),
    Route(
        "POST",
        "/login",
        Right(Role.READ, person=True, public=True),
        login.sign_in,
        "Begin a session with a code that is good once.",
        {303: ""},
        NONE,
        keys(("code",), code=TEXT),
        largest=LARGEST_CODE,
        form=True,
    ),
    Route("GET", "/", READ, server.to_pages, "Leads to the pages.", {303: ""}),
)


def _page(
    path: str, page: Callable[[WebCall], WebPage], about: str, query: Mapping[str, Schema] = NONE
) -> Route:
    words = {**OF_PAGES, **query}
    answers = {200: "Text"}
    return Route(
        "GET", f"/ui/{path}", READ, shown(page), about, answers, words, media=_HTML, page=True
    )


def _form(
    path: str,
    handler: Handler,
    about: str,
    words: Mapping[str, Schema],
    right: Right,
    *,
    own: bool = False,
) -> Route:
    body = keys(**words, **OF_FORMS)
    fixed = ("POST", f"/ui/{path}", right, handler, about, {303: ""})
    return Route(*fixed, body=body, own=own, form=True, page=True)


def _asset(asset: Asset) -> Route:
    media = asset.reply.media
    return Route(
        *("GET", asset.path, PUBLIC, login.fixed, asset.about, {200: "Text"}),
        media=media,
        fixed=asset.reply,
        page=True,
    )


# What forms of pages do: paths of the API, and the word that the page says then (`page.SAID`).
_ACTS = {
    "/jobs/{job}/approve": "approved",
    "/jobs/{job}/reject": "rejected",
    "/jobs/{job}/repin": "repinned",
    "/jobs/{job}/cancel": "cancelled",
    "/jobs/{job}/retry": "retried",
    "/jobs/{job}/move": "moved",
    "/scheduler/pause": "paused",
    "/scheduler/resume": "resumed",
    "/scheduler/reset": "reset",
    "/workflow-runs/{run}/stop": "stopped",
    "/workflow-runs/{run}/retry": "retried",
    "/groups/{group}/close": "closed",
    "/groups/{group}/cancel": "cancelled",
    "/schedules/{schedule}/enable": "enabled",
    "/schedules/{schedule}/disable": "disabled",
    "/schedules/{schedule}/trigger": "triggered",
    "/runners/{runner}/resume": "resumed",
    "/webhooks/{endpoint}/pause": "paused",
    "/webhooks/{endpoint}/resume": "resumed",
    "/deliveries/{delivery}/replay": "replayed",
    "/deliveries/replay": "replayed",
}
PAGES = (
    _page("", Overview, "How everything stands.", SPAN),
    _page("jobs", JobsPage, "Jobs; the query is the view.", JOBS[0].query),
    _page("jobs/bulk", BulkPage, "What a change of many jobs would do.", BULK),
    _form("jobs/bulk", bulk, "Cancel or retry many jobs.", BULK, SUBMIT, own=True),
    _page(
        "jobs/{job}",
        JobPage,
        "One job, with its log.",
        {"stream": one_of("stdout", "stderr"), "find": TEXT},
    ),
    *(
        _page(f"jobs/{{job}}/{verb}", ConfirmPage, f"Asks before it does: {verb}.")
        for verb in ("cancel", "retry", "reject", "approve", "move")
    ),
    _page("jobs/{job}/edit", EditPage, "A form that changes a job that waits."),
    _form("jobs/{job}/edit", edit_job, "Change a job that waits.", EDITED, SUBMIT, own=True),
    _page("approvals", ApprovalsPage, "What waits for a person."),
    Route(
        "GET",
        LIVE,
        READ,
        live,
        "What changes, for the regions of a page, and a log that it follows.",
        {200: "Stream"},
        {"log": TEXT},
        headers=("Last-Event-ID",),
        stream=True,
        media="text/event-stream; charset=utf-8",
        page=True,
    ),
    _page("workflows", WorkflowsPage, "Workflows and their runs.", ALL),
    _page("workflow-runs/{run}", RunPage, "One run, with its nodes."),
    _page("groups", GroupsPage, "Groups.", ALL),
    _page("groups/{group}", GroupPage, "One group."),
    _page("groups/{group}/cancel", CancelGroupPage, "Asks before it does: cancel."),
    _page("schedules", SchedulesPage, "Schedules, and a calendar of what is to come."),
    _page("schedules/{schedule}", SchedulePage, "One schedule."),
    _page(
        "graph",
        GraphPage,
        "What is to run, as a picture.",
        {"job": TEXT, "all": FLAG, "size": whole(10, 200)},
    ),
    _page("limits", LimitsPage, "Slots, limits and locks."),
    _page("hosts", HostsPage, "Hosts and agent programs."),
    _page(
        "events",
        EventsPage,
        "What happened.",
        {"kind": TEXTS, "job": TEXT, "group": TEXT, "before": whole(1, 10**18)},
    ),
    _page(
        "webhooks",
        WebhooksPage,
        "Where messages go.",
        {"state": one_of("pending", "delivered", "failed")},
    ),
    _page("settings", SettingsPage, "Every setting, and what `doctor` says.", {"doctor": FLAG}),
    _page("new", NewPage, "A form for something new."),
    _form("jobs", submit_command, "Submit a command.", NEW_COMMAND, SUBMIT),
    _form("templates", submit_template, "Submit a template.", NEW_OF, SUBMIT),
    _form("workflows", start_workflow, "Start a workflow.", NEW_OF, SUBMIT),
    _form("settings/{key}", change, "Change a setting of the store.", {"value": TEXT}, ADMIN),
    *acts([*JOBS, *SCHEDULER, *WORKFLOWS, *GROUPS, *SCHEDULES, *OTHERS, *WEBHOOKS], _ACTS),
    *map(_asset, ASSETS),
)

ROUTES: tuple[Route, ...] = (
    *JOBS,
    *RUNS,
    *WORKFLOWS,
    *GROUPS,
    *SCHEDULES,
    *TEMPLATES,
    *SCHEDULER,
    *STATISTICS,
    *OTHERS,
    *WEBHOOKS,
    *LEGACY,
    *SIGN_IN,
    *PAGES,
)

NEW_ROUTES = tuple(each for each in ROUTES if each not in LEGACY)
API_ROUTES = tuple(each for each in ROUTES if not each.page)  # for programs

# Verbs of the client that have no route, and why.
UNROUTED: Mapping[str, str] = {
    "webhooks.secret": "a secret is shown once, when it is made",
    "webhooks.import_": "a secret is brought by hand: `headway webhooks import`",
    "reserve": "holds a slot within a block of one process; /reservations is the same for others",
    "jobs.submit_specifications": "takes what the library has checked",
    "groups.submit": "submit a graph with `group`, or group waiting jobs",
    "groups.submit_specifications": "takes what the library has checked",
    "groups.wait": "GET the group, or follow its events",
    "jobs.recent": "is for the overview; /jobs and /statistics have the same",
    "jobs.times": "is for the metrics, which have them in sum",
    "jobs.gc": "the worker does it; by hand it is `headway jobs gc`",
    "templates.request": "makes nothing",
    "artifacts.publish": "is said inside a running job",
    "artifacts.show": "reads files of the server's machine",
    "artifacts.without_producer": "is part of `why`",
    "artifacts.without_producers": "is part of `why`",
    "scheduler.await_step": "an answer comes with the commit; follow the events for what starts",
    "scheduler.stop_worker": "ends a process of the server's machine: `headway stop`",
    "jobsfile.missing": "reads files of the server's machine",
    "jobsfile.check": "is for files that are being written: `headway jobsfile check`",
    "jobsfile.schema": "is for editors: `headway jobsfile schema`",
    "workflows.audit": "is for files that are being written",
    "workflows.graph": "draws for a terminal; the run document has the nodes",
    "workflows.schema": "is for editors: `headway workflows schema`",
    "workflows.init": "writes a file of the server's machine",
    "workflows.start_document": "runs what a program has made, as that program's user",
    "workflows.wait": "GET the run, or follow its events",
    "workflows.feed": "follow the events of the run's jobs",
    "items.sling": "reads trackers of the server's machine: `headway sling`",
    "targets.add": "names programs of the server's machine: `headway targets add`",
    "targets.remove": "names programs of the server's machine: `headway targets remove`",
    "admin.backup": "writes a file of the server's machine: `headway backup`",
    "admin.doctor": "looks at the server's machine: `headway doctor`, or the page of settings",
    "admin.configure": "config.toml may name code, so it is changed as a file",
    "admin.unset": "config.toml may name code, so it is changed as a file",
    "tokens.add": "a token must not make tokens: `headway tokens add`",
    "tokens.list": "tokens are of the server's machine: `headway tokens list`",
    "tokens.revoke": "tokens are of the server's machine: `headway tokens revoke`",
    "tokens.login_code": "is for the one at the machine: `headway web login`",
}
