"""Readers of the streams that agent programs print: one module for each format.

Only the standard library and this package may be imported: the wrapper of a job runs without the
rest. No line makes a reader fail, and of each at most a bounded part is kept.
"""

from headway.integrations.agents.streams.base import AgentReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def report_of(parser: str) -> AgentReport:
    """An empty record of that format."""
    from headway.integrations.agents.streams.claude import ClaudeReport
    from headway.integrations.agents.streams.codex import CodexReport
    from headway.integrations.agents.streams.gemini import GeminiReport
    from headway.integrations.agents.streams.plain import LinesReport, TextReport

    formats: dict[str, Callable[[], AgentReport]] = {
        "claude-stream-json": ClaudeReport,
        "codex-jsonl": CodexReport,
        "gemini-stream-json": GeminiReport,
        "jsonl": LinesReport,
        "text": TextReport,
    }
    return formats[parser]()
