"""What `headway.Client` offers for the care of a home and its store.

To restore a backup, to trust a home and to install a service needs no store that is open; so these
are no methods of a client, but commands.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headway.jobs.context import Context

if TYPE_CHECKING:
    from headway.admin.doctor import Finding


class Admin:
    """`client.admin`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def backup(self, path: str) -> str:
        """Write a consistent copy of the store, also while it is used; its full path."""
        full = os.path.abspath(os.path.join(self._context.folder, path))
        self._context.store.backup(full)
        return full

    def doctor(self) -> Sequence[Finding]:
        """Check the host, the folder and the store; changes nothing."""
        from headway.admin.doctor import examine

        context = self._context
        home = context.home
        return list(examine(home.path, home.store_url, context.environ, context.folder))

    def configure(self, key: str, value: Any) -> None:
        """Change a setting that stands in `config.toml`; `client.scheduler.set` has the others."""
        from headway.jobs.settings import find_setting, write_config

        checked = find_setting(key, in_store=False).read(value)
        write_config(self._context.home, key, checked)

    def unset(self, key: str) -> bool:
        """Let a setting of `config.toml` have its default again; False if it does not stand there.
        `client.scheduler.unset` is for the others."""
        from headway.jobs.settings import remove_from_config

        return remove_from_config(self._context.home, key)
