"""Find concurrency policies: those built in, and those of installed packages.

A package registers a class without parameters, or an object, by the entry point group
`headway.policies`, under the policy's name. Its keys go into the store as words with spaces
between, so what is not `NAME:WORD` is left out, and a policy that raises limits nobody.
"""

import os
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from headway.core.model import Job
from headway.core.policies import BUILT_IN, RATE, ConcurrencyPolicy
from headway.jobs.quotas import WORD

GROUP = "headway.policies"
INFO = (".dist-info", ".egg-info")
KINDS = (*(policy.name for policy in BUILT_IN), RATE)  # what limits can be about without others


class Plugged:
    """A policy from outside, held to what the store needs of it."""

    def __init__(self, name: str, policy: Any, say: Callable[[str], None]) -> None:
        self.name = name
        self._policy = policy
        self._say = say
        self._said = False

    def keys(self, job: Job, /) -> tuple[str, ...]:
        try:
            given = tuple(str(key) for key in self._policy.keys(job))
        except Exception as error:  # it is not ours, and must not keep jobs from starting
            self._complain(f"raises {type(error).__name__}: {error}")
            return ()
        mine = f"{self.name}:"
        good = [key for key in given if key.startswith(mine) and WORD.fullmatch(key, len(mine))]
        if len(good) < len(given):
            self._complain(f"gives {next(key for key in given if key not in good)!r} as a key")
        return tuple(dict.fromkeys(good))

    def _complain(self, what: str) -> None:
        if not self._said:
            self._said = True
            self._say(f"policy {self.name} {what}; it does not limit such jobs")


def all_policies(
    say: Callable[[str], None] = lambda text: None,
) -> tuple[ConcurrencyPolicy, ...]:
    """The built in policies and every installed one, for the planner: what they occupy is
    written down also where there is no limit yet."""
    return (*BUILT_IN, *(_load(name, entry, say) for name, entry in _installed().items()))


def policies_for(limits: Mapping[str, Any]) -> tuple[ConcurrencyPolicy, ...]:
    """The policies of the limits in force, for callers that only read."""
    foreign = {key.partition(":")[0] for key in limits} - set(KINDS)
    if not foreign:
        return BUILT_IN
    found = _installed()
    named = sorted(foreign & found.keys())
    return (*BUILT_IN, *(_load(each, found[each], lambda text: None) for each in named))


def is_kind(kind: str) -> bool:
    """Whether there can be limits of this kind."""
    return kind in KINDS or kind in _installed()


def _load(name: str, entry: Any, say: Callable[[str], None]) -> Plugged:
    try:
        policy = entry.load()
        return Plugged(name, policy() if isinstance(policy, type) else policy, say)
    except Exception as error:
        say(f"policy {name} cannot be loaded: {type(error).__name__}: {error}")
        return Plugged(name, _Nothing(), say)


class _Nothing:
    def keys(self, job: Job, /) -> tuple[str, ...]:
        return ()


def _installed() -> dict[str, Any]:
    if not _mentioned():
        return {}
    from importlib.metadata import entry_points

    found = {each.name: each for each in entry_points(group=GROUP)}
    return {name: entry for name, entry in found.items() if name not in KINDS}


@lru_cache(maxsize=1)
def _mentioned() -> bool:
    """Whether any package says that it has a policy. To ask for entry points takes 30 ms, which
    every worker would pay at its start; to read their files takes one."""
    for folder in sys.path:
        try:
            with os.scandir(folder or ".") as entries:
                names = [each.path for each in entries if each.name.endswith(INFO)]
        except OSError:
            continue
        for path in names:
            try:
                with open(os.path.join(path, "entry_points.txt"), encoding="utf-8") as file:
                    if f"[{GROUP}]" in file.read():
                        return True
            except (OSError, UnicodeDecodeError):
                continue
    return False
