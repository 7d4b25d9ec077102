"""Signatures as Standard Webhooks 1.0 has them, so that receivers need no code of ours."""

import base64
import hashlib
import hmac
from collections.abc import Sequence

from headway.webhooks.secret_file import key_of


def signed_headers(
    delivery_id: str, timestamp: int, body: bytes, secrets: Sequence[str]
) -> dict[str, str]:
    """The three headers; with two secrets there are two signatures, and either is enough.
    `timestamp` is in seconds, and another one at each try."""
    content = f"{delivery_id}.{timestamp}.".encode() + body
    signatures = (hmac.digest(key_of(each), content, hashlib.sha256) for each in secrets)
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(
            f"v1,{base64.b64encode(each).decode()}" for each in signatures
        ),
    }
