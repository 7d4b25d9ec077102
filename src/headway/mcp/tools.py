"""The table of tools: the only place that knows their names, hints, words and bounds.

The server, docs/mcp.md and the tests read it. No tool approves, rejects, edits, pauses, sets or
makes tokens: what a person decides has no row here. The client of a handler acts for an agent, and
those verbs refuse agents. An approval does not show everything of a job: its variables, what it
reads from a file, what follows its end. A tool that submits does not take these.
"""

from headway.base.shapes import Schema, keys, one_of, whole
from headway.core.states import Status
from headway.mcp import handlers
from headway.mcp.answers import LOG_BYTES
from headway.mcp.handlers import MOST_ROWS
from headway.mcp.tool import Hints, McpTool, SubmitRule, Submits

LONGEST_WAIT = 50  # seconds; some clients give up after 60
MOST_LINES = 200
LOOKS = Hints(reads=True)
RUNS = Hints(open_world=True)


def _text(about: str, longest: int = 4096) -> Schema:
    return {"type": "string", "minLength": 1, "maxLength": longest, "description": about}


def _texts(about: str, most: int = 200) -> Schema:
    each = {"type": "string", "maxLength": 4096}
    return {"type": "array", "items": each, "maxItems": most, "description": about}


def _named(about: str) -> Schema:
    each = {"type": "string", "maxLength": 4096}
    return {"type": "object", "additionalProperties": each, "description": about}


def _said(schema: Schema, about: str) -> Schema:
    return {**schema, "description": about}


JOB = _text("its id, like job-24, or its slug", 200)
KEY = _text("a word of yours for this request: the same one again makes no second job", 200)
NOTHING = keys()
# Words of a job's entry in a graph file, by which they are read.
ENTRY: Schema = {
    "argv": _texts("the command and its arguments, without a shell", 1000),
    "shell": _text("a line for /bin/sh, instead of argv", 64 << 10),
    "runner": _text("the agent program that is to do `prompt`, instead of argv", 200),
    "prompt": _text("what that agent is asked to do", 64 << 10),
    "model": _text("of that agent", 200),
    "max_turns": whole(1, 10_000),
    "budget_usd": {"type": "number", "minimum": 0},
    "name": _text("what people see; else it is made of the command", 200),
    "labels": _named("words of yours, to find it again"),
    "cwd": _text("the folder to run in; else the one that this server runs in"),
    "after": _texts("ids of jobs that must succeed first"),
    "needs": _texts("artifacts that must be there first, like file:/srv/data.csv"),
    "produces": _texts("artifacts that it makes"),
    "locks": _texts("keys that it holds while it runs; `db:shared` shares one"),
    "resources": _texts("words that limits go by"),
    "priority": whole(-1000, 1000),
    "delay": _text('how long it waits at least, like "10m"', 64),
    "at": _text("not before this time, like 2026-11-15T22:30", 64),
    "timeout": _text('how long it may run, like "1h"', 64),
    "retries": whole(0, 100),
    "worktree": {
        "type": ["string", "boolean"],
        "maxLength": 4096,
        "description": "run in a git worktree of its own: true, or the branch to begin from",
    },
    "save_patch": {"type": "boolean", "description": "keep what it changed in its worktree"},
    "key": KEY,
}

TOOLS = (
    McpTool(
        "status",
        "How things stand",
        "How much runs and waits, why nothing starts, and what becomes of what you submit.",
        handlers.status,
        LOOKS,
        NOTHING,
        ("scheduler.status",),
    ),
    McpTool(
        "list_jobs",
        "List jobs",
        "Jobs, the newest first. `next` of an answer is `before` of the next page.",
        handlers.list_jobs,
        LOOKS,
        keys(
            state=one_of(*(str(each) for each in Status)),
            name=_text("a pattern like build*", 200),
            labels=_named("all must fit"),
            limit=whole(1, MOST_ROWS, MOST_ROWS),
            before=_said(JOB, "only jobs older than this one"),
        ),
        ("jobs.list",),
        f"{MOST_ROWS} rows",
    ),
    McpTool(
        "show_job",
        "Show a job",
        "All about one job: what it runs, its state, its tries and its result.",
        handlers.show_job,
        LOOKS,
        keys(("job",), job=JOB),
        ("jobs.show", "jobs.tries"),
    ),
    McpTool(
        "why",
        "Why a job does not run",
        "Everything that keeps a job from running, and what would let it; of one that failed, "
        "what to do.",
        handlers.why,
        LOOKS,
        keys(("job",), job=JOB),
        ("jobs.why",),
        f"{MOST_ROWS} objections",
    ),
    McpTool(
        "tail_log",
        "The end of a job's output",
        "The last lines that a job wrote.",
        handlers.tail_log,
        LOOKS,
        keys(
            ("job",),
            job=JOB,
            stream={**one_of("stdout", "stderr"), "default": "stdout"},
            lines=whole(1, MOST_LINES, MOST_ROWS),
        ),
        ("jobs.log", "jobs.log_tail"),
        f"{MOST_LINES} lines, {LOG_BYTES >> 10} KiB",
    ),
    McpTool(
        "list_approvals",
        "What waits for a person",
        "The jobs that a person has to decide about. You cannot: tell the person.",
        handlers.list_approvals,
        LOOKS,
        NOTHING,
        ("jobs.approvals",),
        f"{MOST_ROWS} rows",
    ),
    McpTool(
        "list_schedules",
        "List schedules",
        "What makes jobs at certain times, and when next.",
        handlers.list_schedules,
        LOOKS,
        NOTHING,
        ("schedules.list",),
        f"{MOST_ROWS} rows",
    ),
    McpTool(
        "wait_for_job",
        "Wait for a job",
        "Wait until a job and its retries have ended: its state, and why it has not ended if it "
        "has not. Ask again to go on waiting.",
        handlers.wait_for_job,
        LOOKS,
        keys(("job",), job=JOB, seconds=whole(0, LONGEST_WAIT, LONGEST_WAIT)),
        ("jobs.wait", "jobs.why"),
        f"{LONGEST_WAIT} s",
        waits=True,
    ),
    McpTool(
        "submit_job",
        "Submit a job",
        "Queue a command, or a prompt for an agent program; give argv, shell or prompt. A person "
        "may have to approve it first: `needs_approval` says so. With `key` it can be asked for "
        "again after an error and makes one job.",
        handlers.submit_job,
        RUNS,
        keys(**ENTRY),
        ("jobs.submit_entry",),
        submits=True,
        makes_home=True,
    ),
    McpTool(
        "submit_template",
        "Submit a job of a template",
        "Queue a job of a stored template, with its parameters. A person may have to approve it "
        "first: `needs_approval` says so. With `key` it can be asked for again after an error "
        "and makes one job.",
        handlers.submit_template,
        RUNS,
        keys(
            ("template",),
            template=_text("its name", 200),
            params=_named("its parameters"),
            key=KEY,
        ),
        ("templates.submit", "templates.show"),
        submits=True,
    ),
    McpTool(
        "cancel_job",
        "Cancel a job",
        "End a job that you submitted: what waits never runs, what runs is killed.",
        handlers.cancel_job,
        Hints(destructive=True),
        keys(("job",), job=JOB),
        ("jobs.cancel",),
        "own jobs",
    ),
    McpTool(
        "retry_job",
        "Retry a job",
        "Run a job of yours that ended without success again, and all that follows from it. "
        "What needed an approval needs one again.",
        handlers.retry_job,
        Hints(destructive=False, open_world=True),
        keys(("job",), job=JOB),
        ("jobs.retry",),
        "own jobs",
    ),
)


def tools_for(rule: SubmitRule) -> dict[str, McpTool]:
    """Those that are offered, by their names."""
    off = rule.submits is Submits.OFF
    return {each.name: each for each in TOOLS if not (off and each.submits)}
