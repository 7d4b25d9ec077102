"""What agent programs print while they work, and what it means: one module for each format.

Only the standard library and this package: the wrapper of a job runs without the rest. Whatever a
line holds, reading it neither fails nor keeps more of it than a bound.
"""

from headway.runners.streams.base import Told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def told_by(parser: str) -> Told:
    """An empty story of that format."""
    from headway.runners.streams.claude import ClaudeTold
    from headway.runners.streams.codex import CodexTold
    from headway.runners.streams.gemini import GeminiTold
    from headway.runners.streams.plain import LinesTold, TextTold

    formats: dict[str, Callable[[], Told]] = {
        "claude-stream-json": ClaudeTold,
        "codex-jsonl": CodexTold,
        "gemini-stream-json": GeminiTold,
        "jsonl": LinesTold,
        "text": TextTold,
    }
    return formats[parser]()
