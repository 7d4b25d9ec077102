"""The secrets that sign deliveries, in `.headway/web/secrets.json`: by fingerprint, never stored.

The store knows fingerprints only. So backups and other hosts do not carry a secret; `webhooks
import` brings it where it is needed.
"""

import base64
import binascii
import hashlib
import os

from headway.base.errors import InvalidInputError
from headway.base.home import Home
from headway.base.private_file import PrivateFile

PREFIX = "whsec_"
BYTES = 32
_LEAST, _MOST = 24, 64  # as Standard Webhooks has it
_KEY = "secrets"


def new_secret() -> str:
    return PREFIX + base64.b64encode(os.urandom(BYTES)).decode()


def key_of(secret: str) -> bytes:
    """The bytes that sign."""
    try:
        key = base64.b64decode(secret.strip().removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not _LEAST <= len(key) <= _MOST or not secret.strip().startswith(PREFIX):
        raise InvalidInputError(
            f"this is no secret; it is {PREFIX} and {_LEAST} to {_MOST} bytes in base64, as "
            "`headway webhooks secret` prints it"
        )
    return key


def fingerprint_of(secret: str) -> str:
    return "sha256:" + hashlib.sha256(key_of(secret)).hexdigest()[:32]


class SecretFile:
    """The file of one home, read again whenever it was changed."""

    def __init__(self, home: Home) -> None:
        self._file = PrivateFile(os.path.join(home.web, "secrets.json"))
        self._stamp: tuple[int, ...] | None = None
        self._known: dict[str, str] = {}

    @property
    def path(self) -> str:
        return self._file.path

    def all(self) -> dict[str, str]:
        """By fingerprint."""
        stamp = self._file.stamp()
        if stamp != self._stamp:
            self._known = dict(self._file.read().get(_KEY, {}))
            self._stamp = stamp
        return self._known

    def get(self, fingerprint: str) -> str | None:
        return self.all().get(fingerprint)

    def add(self, secret: str) -> str:
        """Keep it; its fingerprint."""
        fingerprint = fingerprint_of(secret)
        with self._file.changing() as document:
            document.setdefault("version", 1)
            document.setdefault(_KEY, {})[fingerprint] = secret.strip()
        return fingerprint

    def forget(self, *fingerprints: str | None) -> None:
        if not any(each in self.all() for each in fingerprints):
            return
        with self._file.changing() as document:
            for each in fingerprints:
                document.get(_KEY, {}).pop(each, None)
