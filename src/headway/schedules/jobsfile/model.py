"""The entries of a jobs file, as everyone but its reader sees them. Pure."""

from typing import Any, NamedTuple

from headway.core.model import OF_JOBS_FILE

FILE = "jobs.yaml"
NAME = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"  # of an entry, a function or a condition
SCRIPT, AGENT, COMMAND, WORKFLOW = "script", "agent", "command", "workflow"
LOCAL, REMOTE = "local", "remote"
SKIP_CODE = 77  # a script job that exits so is skipped
POLL_FILE = "HEADWAY_POLL_DATA"  # names the file with what the poll returned
LARGEST_STATE = LARGEST_POLL = 1 << 20  # bytes of JSON
LONGEST_ERROR = 300  # letters of what the user's code raised
SECONDS = 10  # for one question of a round
MARK = b"\x1e"  # stands before what is printed during a question
NO_AGENTS, OPEN_PRS = "no_agents_running", "has_open_prs"  # the conditions that are built in


class Entry(NamedTuple):
    """One periodic job. Durations are microseconds; just one of `interval` and `cron` is given."""

    name: str
    type: str  # script, agent, command or workflow
    line: int  # where it begins in the file
    interval: int | None = None  # from the end of one run to the next
    interval_active: int | None = None  # instead, while other work runs or waits
    interval_idle: int | None = None  # instead, while there is none
    cron: str | None = None
    timezone: str = "UTC"
    run: str | None = None  # of a script: a registered name, or module:function
    argv: tuple[str, ...] = ()  # of a command
    prompt: str | None = None  # of an agent, and what follows
    runner: str | None = None
    model: str | None = None
    max_turns: int = 10
    allowed_tools: tuple[str, ...] = ("Read", "Grep", "Glob")
    group: str = REMOTE  # whether it gets the data of the poll
    conditions: tuple[str, ...] = ()  # names; all must hold
    enabled: bool = True
    timeout: int | None = None
    priority: int = 0
    resources: tuple[str, ...] = ()
    workflow: str | None = None  # of a workflow: its name, or the path of its file
    params: tuple[str, ...] = ()  # and values of its parameters, as K=V

    @property
    def schedule_id(self) -> str:
        """The name by which its jobs refer to it."""
        return f"{OF_JOBS_FILE}{self.name}"

    def document(self) -> dict[str, Any]:
        """As the store keeps the last good set; `entry_of` is the way back."""
        return {**self._asdict()}


def entry_of(document: dict[str, Any]) -> Entry:
    """The entry that `document` has written."""
    lists = ("argv", "allowed_tools", "conditions", "resources", "params")
    return Entry(**{**document, **{word: tuple(document.get(word, ())) for word in lists}})
