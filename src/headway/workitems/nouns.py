"""What `headway.Client` offers for work items and their targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.core.targets import Target
from headway.jobs.context import Context
from headway.workitems.sling import Slung, Wish, sling
from headway.workitems.status import Cleared, clear, scheduled
from headway.workitems.targets import add_target, find_target, remove_target, targets


class Items:
    """`client.items`: work items that become jobs."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def sling(self, wish: Wish, *, rehearse: bool = False) -> Slung:
        """Make jobs of work items, or say what would be made."""
        return sling(self._context, wish, rehearse=rehearse)

    def list(self) -> Sequence[dict[str, Any]]:
        """What is slung and has not ended."""
        return scheduled(self._context)

    def clear(self, subject: str | None = None) -> Cleared:
        """Cancel what is slung and waits: all of it, or what is about one subject."""
        return clear(self._context, subject)


class Targets:
    """`client.targets`: where slung work goes, and what it becomes there."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def add(self, target: Target, *, replace: bool = False) -> Target:
        return add_target(self._context, target, replace=replace)

    def list(self) -> Sequence[Target]:
        return targets(self._context)

    def show(self, name: str) -> Target:
        return find_target(self._context, name)

    def remove(self, name: str) -> None:
        """What was slung to it stays."""
        remove_target(self._context, name)
