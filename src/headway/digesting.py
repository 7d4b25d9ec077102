"""What makes two submits with one key the same."""

import hashlib
import json
from typing import Any

from headway.core.model import JobSpec


def digest(spec: JobSpec) -> str:
    """What makes two submits with one key the same: all that was asked for, not the moment."""
    document: dict[str, Any] = {
        "params": spec.params,
        "name": spec.name,
        "type": spec.type,
        "slug": spec.slug,
        "labels": spec.labels,
        "priority": spec.priority,
        "after": spec.after,
        "locks": [(lock.key, lock.mode) for lock in spec.locks],
        "delay": spec.delay,
        "at": spec.at,
        "retry": [spec.retry.max_attempts, spec.retry.base, spec.retry.cap, spec.retry.on],
        "on_finish": spec.on_finish,
    }
    gates = {
        "needs": spec.needs,
        "produces": spec.produces,
        "pinned_head": spec.pinned_head,
        "preconditions": spec.preconditions,
        "repo": spec.repo,
        "require_approval": spec.require_approval,
    }
    queueing = {
        "group": spec.group,
        "last": spec.last,
        "subject": spec.subject,
        "target": spec.target,
        "template_id": spec.template_id,
        "resources": spec.resources,
        "rates": spec.rates,
        "place": spec.place,
        "jitter": spec.retry.jitter,
    }
    document |= {name: value for name, value in (gates | queueing).items() if value}
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
