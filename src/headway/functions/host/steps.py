"""Steps of a function: values that it records under keys, so that a retry does not repeat them.

A step is in the host's journal, synced, before its value is returned. The worker writes it into the
store when it reads the journal, at the latest with the end of the call.
"""

from __future__ import annotations

import json

from headway.base.crashpoints import reach
from headway.base.errors import InvalidInputError
from headway.functions.host.journal import line
from headway.functions.type_checks import json_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Record = Callable[[str], None]  # adds a line to the journal; durable when it returns

LARGEST_VALUE = 1 << 20
LARGEST_SUM = 16 << 20
MOST_STEPS = 1000
LONGEST_KEY = 200


class Steps:
    """The steps of one call, and those of the earlier tries of its chain."""

    def __init__(self, token: str, known: Mapping[str, str], record: Record) -> None:
        """`known` are recorded values as JSON, by key."""
        self._token = token
        self._known = dict(known)
        self._size = sum(map(len, self._known.values()))
        self._record = record

    def take(
        self, key: str, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        """The recorded value, or that of a call made now."""
        _refuse_wrong_key(key)
        if key not in self._known:
            self._refuse_more(key)
            self._keep(key, function(*args, **kwargs))
        return json.loads(self._known[key])

    async def awaited(
        self, key: str, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        """The same for an async function."""
        _refuse_wrong_key(key)
        if key not in self._known:
            self._refuse_more(key)
            self._keep(key, await function(*args, **kwargs))
        return json.loads(self._known[key])

    def _keep(self, key: str, value: Any) -> None:
        problem = json_value(value, "")
        text = "" if problem else json.dumps(value)
        if len(text) > LARGEST_VALUE:
            problem = "is larger than 1 MiB; write a file and return its path"
        elif self._size + len(text) > LARGEST_SUM:
            problem = "and those before it are larger than 16 MiB; write files and return paths"
        if problem:
            raise InvalidInputError(f"step {key!r}: its value {problem}")
        self._record(line("c", self._token, [key, value]))
        reach("step.recorded")
        self._known[key] = text
        self._size += len(text)

    def _refuse_more(self, key: str) -> None:
        if len(self._known) >= MOST_STEPS:
            raise InvalidInputError(f"step {key!r}: one call may have {MOST_STEPS:,} steps")


def _refuse_wrong_key(key: str) -> None:
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
        raise InvalidInputError(
            f"step {str(key)[:40]!r}: a key is a text of 1 to {LONGEST_KEY} printable characters"
        )
