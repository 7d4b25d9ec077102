"""The records of a runner and of a request to an agent. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple

PROMPTS = ("stdin", "file", "argument")
PARSERS = ("claude-stream-json", "codex-jsonl", "gemini-stream-json", "jsonl", "text")
# Those that see turns go by, so that a limit on them can be kept without the program's help.
COUNTING = frozenset(PARSERS) - {"text"}
# Those that show what was used while the work goes on, so that a budget can be kept.
METERING = frozenset({"claude-stream-json", "jsonl"})
# Those whose programs say themselves what they cost.
PRICED = METERING
ASKED = (
    *("runner", "prompt", "model", "max_turns", "allowed_tools", "budget_usd", "max_tokens"),
    "argv",
)

# The default permissions of an agent: it may read, and not for ever.
USUAL_TURNS = 10
USUAL_TOOLS = ("Read", "Grep", "Glob")
# Beside what a runner's file lets through.
ALWAYS_PASSED = ("PATH", "HOME", "LANG", "TERM", "USER", "TMPDIR", "HEADWAY_*")

# Before the prompt of an agent that continues its session.
RESUMED = "You were interrupted by a limit. Go on with this task:\n\n"

LARGEST_PROMPT = 512 << 10

# A word of the command line, or several that are left out together.
Words = str | tuple[str, ...]


class Timeouts(NamedTuple):
    """In microseconds; None is without a bound."""

    first_output: int | None
    idle: int | None
    wall: int | None


class Runner(NamedTuple):
    """How one agent program is called, and how what it says is read."""

    name: str
    path: str  # the file that says so
    argv: tuple[Words, ...]
    prompt: str
    parser: str
    timeouts: Timeouts
    env_pass: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    access: Mapping[str, str] = {}
    defaults: Mapping[str, Any] = {}
    denials: str = "fail"
    version_command: tuple[str, ...] = ()
    tested: str = ""
    prices: Mapping[str, Mapping[str, float]] = {}  # by model, for a million tokens
    limits: tuple[str, ...] = ()  # patterns of texts that tell of a limit of all its jobs
    auth: str = "park"  # what follows where nobody is logged in: `park` or `fail`

    def takes(self, name: str) -> bool:
        """Whether its command line has a place for this."""
        return any(f"{{{name}}}" in word for word in self.words)

    @property
    def words(self) -> tuple[str, ...]:
        flat: list[str] = []
        for each in self.argv:
            flat += [each] if isinstance(each, str) else each
        return tuple(flat)

    def keeps(self, limit: str) -> bool:
        """Whether this limit can be held: by the program, or by whoever reads its stream."""
        if limit == "max_turns":
            return self.takes(limit) or self.parser in COUNTING
        if limit == "allowed_tools":
            return self.takes(limit) or bool(self.access)
        if limit == "max_tokens":
            return self.parser in METERING
        return self.takes(limit) or (self.parser in METERING and self.shows("usd"))

    def shows(self, unit: str) -> bool:
        """Whether it is known at the latest at its end what it has used: `usd` or `tokens`."""
        if unit == "tokens":
            return self.parser in COUNTING
        return self.parser in PRICED or (self.parser in COUNTING and bool(self.prices))
