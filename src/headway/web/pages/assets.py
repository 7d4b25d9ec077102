"""The style sheet, the script and the icon: files of ours, sent as they stand.

Each has the digest of its content in its path, so a browser may keep it for ever and still has the
one that the page was made for.
"""

import hashlib
import os
from typing import NamedTuple

from headway.web.calls import Reply

FOLDER = os.path.join(os.path.dirname(__file__), "static")
FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}


class Asset(NamedTuple):
    path: str
    reply: Reply
    about: str

    @property
    def size(self) -> int:
        return len(self.reply.content())


def _read(*names: str) -> bytes:
    made = []
    for name in names:
        with open(os.path.join(FOLDER, name), "rb") as file:
            made.append(file.read())
    return b"".join(made)


def _asset(stem: str, suffix: str, media: str, content: bytes, about: str) -> Asset:
    digest = hashlib.sha256(content).hexdigest()[:12]
    path = f"/ui/static/{stem}.{digest}.{suffix}"
    return Asset(path, Reply(headers=FOR_EVER, body=content, media=media), about)


STYLE = _asset(
    "page", "css", "text/css; charset=utf-8", _read("page.css", "charts.css"), "The style sheet."
)
SCRIPT = _asset("page", "js", "text/javascript; charset=utf-8", _read("page.js"), "The script.")
ICON = _asset("icon", "svg", "image/svg+xml", _read("icon.svg"), "The icon.")
ASSETS = (STYLE, SCRIPT, ICON)
