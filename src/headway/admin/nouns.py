"""What `headway.Client` offers for the care of a home and its store.

To restore a backup, to trust a home and to install a service needs no store that is open; so these
are no methods of a client, but commands.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from headway.jobs.context import Context

if TYPE_CHECKING:
    from headway.admin.doctor import Finding
    from headway.admin.tokens import TokenEntry, TokenFile


class Admin:
    """`client.admin`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def backup(self, path: str, *, replace: bool = False) -> str:
        """Write a consistent copy of the store, also while it is used; its full path. With
        `replace` it takes the place of an earlier backup there, once it is whole."""
        full = os.path.abspath(os.path.join(self._context.folder, path))
        if replace:
            from headway.admin.backup import replace_backup

            replace_backup(self._context, full)
        else:
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


class Tokens:
    """`client.tokens`: who may speak to `headway serve`. `headway.admin.tokens` has the file."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @cached_property
    def file(self) -> TokenFile:
        from headway.admin.tokens import TokenFile

        return TokenFile(self._context.home)

    def add(
        self,
        name: str,
        *,
        role: str,
        agent: bool = False,
        lasts: int | None = None,
        templates: Sequence[str] = (),
    ) -> str:
        """A new token; what it returns is shown once, and nobody can read it again."""
        self._refuse_inside_a_job("make tokens")
        for each in templates:
            self._known_template(each)
        now = self._context.clock.now()
        return self.file.add(name, role, now, agent=agent, lasts=lasts, templates=templates)

    def list(self) -> Sequence[TokenEntry]:
        return self.file.entries()

    def revoke(self, name: str) -> TokenEntry:
        """It counts no more, from now on."""
        self._refuse_inside_a_job("revoke tokens")
        return self.file.revoke(name, self._context.clock.now())

    def login_code(self, *, role: str = "operate", host: str) -> str:
        """A code that lets one browser in, once, within five minutes."""
        self._refuse_inside_a_job("log in")
        return self.file.login_code(self._context.actor, role, host, self._context.clock.now())

    def _refuse_inside_a_job(self, verb: str) -> None:
        from headway.jobs.actor import require_person

        require_person(self._context, verb)

    def _known_template(self, name: str) -> None:
        from headway.jobs.stored_templates import template

        template(self._context, name)
