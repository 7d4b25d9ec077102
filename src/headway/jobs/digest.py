"""The digest by which two submits with one key are the same."""

import hashlib
import json
from typing import Any

from headway.core.model import FIELDS, Digest, JobSpec, of_spec

_ALWAYS = of_spec(field for field in FIELDS if field.digest is Digest.ALWAYS)
_IF_SET = of_spec(field for field in FIELDS if field.digest is Digest.IF_SET)


def digest(spec: JobSpec) -> str:
    """The digest by which two submits with one key are the same: all that was asked for, not the
    moment."""
    document: dict[str, Any] = {name: getattr(spec, name) for name in _ALWAYS}
    document |= {name: value for name in _IF_SET if (value := getattr(spec, name))}
    retry = spec.retry
    document["retry"] = [retry.max_attempts, retry.base, retry.cap, retry.on]
    if retry.jitter:
        document["jitter"] = retry.jitter
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
