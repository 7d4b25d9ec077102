"""Who asks over HTTP, and what a role may do. Pure.

Each role includes those before it. A route names the least role that may use it. Of jobs, a token
that may only submit changes its own.
"""

from enum import IntEnum
from typing import NamedTuple


class Role(IntEnum):
    READ = 1
    SUBMIT = 2
    OPERATE = 3
    ADMIN = 4

    @property
    def word(self) -> str:
        return self.name.lower()


ROLES = {role.word: role for role in Role}
PERSON, AGENT = "person", "agent"


class Principal(NamedTuple):
    """One who was recognised by a token, a session or the socket's own user."""

    name: str  # of the token or session
    actor: str  # the name in events
    kind: str
    role: Role
    templates: tuple[str, ...] = ()  # may make jobs of these alone, if there are any
    session: bool = False  # of a browser, which sends its cookie unasked

    @property
    def is_person(self) -> bool:
        return self.kind == PERSON

    def may_change(self, submitted_by: str | None) -> bool:
        """Whether it may cancel, edit or retry a job of this submitter."""
        return self.role >= Role.OPERATE or submitted_by == self.actor
