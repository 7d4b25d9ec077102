"""Who may speak to `headway serve`: tokens of programs, login codes and sessions of browsers.

All are entries of `.headway/web/tokens.json`. It keeps the SHA-256 of a secret, never the secret,
which is shown once. It is no part of the store: backups and other hosts must not carry it. A server
reads it again whenever it was changed, so a revocation holds at once.
"""

import base64
import hashlib
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from headway.base.clock import HOUR, MINUTE
from headway.base.errors import ConflictError, InvalidInputError, NotFoundError
from headway.base.home import Home
from headway.base.private_file import PrivateFile
from headway.base.units import show_instant
from headway.core.principals import AGENT, PERSON, ROLES, Principal, Role

TOKEN, CODE, SESSION = "token", "code", "session"
PREFIX = "hw_"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
CODE_LASTS = 5 * MINUTE
SESSION_IDLES = 12 * HOUR
SESSION_LASTS = 7 * 24 * HOUR
USE_WRITTEN_EVERY = 10 * MINUTE
MOST_SESSIONS = 200

T = TypeVar("T")


class TokenEntry(NamedTuple):
    """One line of the file. `host` is the name under which a session was begun."""

    sort: str
    name: str
    actor: str
    kind: str
    role: str
    digest: str
    created_at: int
    expires_at: int | None = None
    used_at: int | None = None
    revoked_at: int | None = None
    templates: tuple[str, ...] = ()
    host: str | None = None

    def holds(self, now: int) -> bool:
        if self.revoked_at is not None or (self.expires_at is not None and now >= self.expires_at):
            return False
        idle_since = self.used_at or self.created_at
        return self.sort != SESSION or now < idle_since + SESSION_IDLES

    def principal(self) -> Principal:
        return Principal(
            self.name,
            self.actor,
            self.kind,
            ROLES[self.role],
            self.templates,
            session=self.sort == SESSION,
        )


class TokenFile:
    """`.headway/web/tokens.json`, read again when it has changed."""

    def __init__(self, home: Home) -> None:
        self._file = PrivateFile(os.path.join(home.path, "web", "tokens.json"))
        self._stamp: tuple[int, ...] = ()
        self._entries: dict[str, TokenEntry] = {}

    def entries(self) -> Sequence[TokenEntry]:
        stamp = self._file.stamp()
        if stamp != self._stamp:
            self._entries = {each.digest: each for each in _entries(self._file.read())}
            self._stamp = stamp
        return list(self._entries.values())

    def find(self, secret: str, sort: str, now: int) -> TokenEntry | None:
        """The entry of a secret, if it still counts."""
        self.entries()
        entry = self._entries.get(_digest(secret))
        return entry if entry is not None and entry.sort == sort and entry.holds(now) else None

    # -- tokens --------------------------------------------------------------------------------

    def add(
        self,
        name: str,
        role: str,
        now: int,
        *,
        agent: bool = False,
        lasts: int | None = None,
        templates: Sequence[str] = (),
    ) -> str:
        """A new token: its secret, which nobody can read again."""
        check_token(name, role, agent, templates)
        secret = PREFIX + _random(32)
        entry = TokenEntry(
            TOKEN,
            name,
            f"token:{name}",
            AGENT if agent else PERSON,
            role,
            _digest(secret),
            now,
            None if lasts is None else now + lasts,
            templates=tuple(templates),
        )

        def change(known: list[TokenEntry]) -> None:
            for each in known:
                if each.sort == TOKEN and each.name == name:
                    was = "was revoked" if each.revoked_at is not None else "is there"
                    raise ConflictError(
                        f"a token {name} {was}; a name is given once, so take another one"
                    )
            known.append(entry)

        self._change(change, now)
        return secret

    def revoke(self, name: str, now: int) -> TokenEntry:
        """It counts no more, from now on; its name is not given again."""

        def change(known: list[TokenEntry]) -> TokenEntry:
            for index, each in enumerate(known):
                if each.sort in (TOKEN, SESSION) and each.name == name:
                    if each.revoked_at is not None:
                        raise ConflictError(f"{name} was revoked before")
                    known[index] = each._replace(revoked_at=now)
                    return known[index]
            raise NotFoundError(f"there is no token {name}; `headway tokens list` has them all")

        return self._change(change, now)

    # -- browsers ------------------------------------------------------------------------------

    def login_code(self, actor: str, role: str, host: str, now: int) -> str:
        """A code that begins one session within five minutes, under this host name."""
        check_token("login", role, False, ())
        code = _random(16)
        entry = TokenEntry(
            CODE, "login", actor, PERSON, role, _digest(code), now, now + CODE_LASTS, host=host
        )
        self._change(lambda known: known.append(entry), now)
        return code

    def begin_session(self, code: str, host: str, now: int) -> tuple[str, TokenEntry] | None:
        """A session for a code, which is used up; None if it is not good, or of another host."""
        secret = _random(32)

        def change(known: list[TokenEntry]) -> TokenEntry | None:
            for index, each in enumerate(known):
                if each.sort == CODE and each.digest == _digest(code) and each.holds(now):
                    if each.host != host:
                        return None
                    known[index] = each._replace(
                        sort=SESSION,
                        name=f"session-{_random(6)}",
                        digest=_digest(secret),
                        created_at=now,
                        expires_at=now + SESSION_LASTS,
                    )
                    return known[index]
            return None

        entry = self._change(change, now)
        return None if entry is None else (secret, entry)

    def used(self, digest: str, now: int) -> None:
        """Keep that an entry was used; at most every ten minutes, so that reads stay reads."""
        entry = self._entries.get(digest)
        if entry is None or now - (entry.used_at or 0) < USE_WRITTEN_EVERY:
            return

        def change(known: list[TokenEntry]) -> None:
            for index, each in enumerate(known):
                if each.digest == digest:
                    known[index] = each._replace(used_at=now)

        self._change(change, now)

    def _change(self, change: Callable[[list[TokenEntry]], T], now: int) -> T:
        with self._file.changing() as document:
            known = _entries(document)
            given = change(known)
            document["version"] = 1
            document["entries"] = [_kept(each) for each in _tidied(known, now)]
        return given


def _tidied(known: list[TokenEntry], now: int) -> list[TokenEntry]:
    """Codes and sessions go when they are over. Tokens stay: a name is never given again."""
    lasting = [each for each in known if each.sort == TOKEN]
    others = [each for each in known if each.sort != TOKEN and each.holds(now)]
    return [*lasting, *others[-MOST_SESSIONS:]]


def _entries(document: dict[str, Any]) -> list[TokenEntry]:
    return [
        TokenEntry(**{**each, "templates": tuple(each.get("templates", ()))})
        for each in document.get("entries", ())
    ]


def _kept(entry: TokenEntry) -> dict[str, Any]:
    return {key: value for key, value in entry._asdict().items() if value not in (None, ())}


def check_token(name: str, role: str, agent: bool, templates: Sequence[str]) -> None:
    """Refuse what no token may be."""
    if not NAME.fullmatch(name):
        raise InvalidInputError(
            f"{name!r} is not a name; use letters, digits, '.', '_' and '-', 64 at most"
        )
    if role not in ROLES:
        raise InvalidInputError(f"{role!r} is not a role; there are {', '.join(ROLES)}")
    if agent and ROLES[role] is Role.ADMIN:
        raise InvalidInputError("an agent may not have the role admin; give it operate or less")
    if templates and ROLES[role] is not Role.SUBMIT:
        raise InvalidInputError("templates bound what a token submits; give it the role submit")


def _random(count: int) -> str:
    return base64.urlsafe_b64encode(os.urandom(count)).rstrip(b"=").decode()


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def csrf_value(session_secret: str) -> str:
    """What a page of this session sends back with every form; known to nobody else."""
    return hashlib.sha256(b"csrf:" + session_secret.encode()).hexdigest()


def token_document(entry: TokenEntry, now: int) -> dict[str, Any]:
    """What may be shown of an entry."""

    def at(when: int | None) -> str | None:
        return None if when is None else show_instant(when)

    return {
        "name": entry.name,
        "sort": entry.sort,
        "actor": entry.actor,
        "kind": entry.kind,
        "role": entry.role,
        "templates": list(entry.templates),
        "created_at": at(entry.created_at),
        "expires_at": at(entry.expires_at),
        "used_at": at(entry.used_at),
        "revoked_at": at(entry.revoked_at),
        "holds": entry.holds(now),
    }
