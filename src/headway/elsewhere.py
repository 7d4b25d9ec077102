"""What runs on other hosts of the store, and whether anyone there looks after it."""

from collections.abc import Sequence
from typing import Any

from headway.core.model import Claim, shown
from headway.store.base import ReadTx
from headway.units import show_instant


def pauses_elsewhere(tx: ReadTx, host_id: str) -> list[dict[str, Any]]:
    """The other hosts that start nothing, while those of the rest do."""
    theirs = [each for each in tx.host_pauses() if each.host_id != host_id]
    names = tx.hosts() if theirs else {}
    return [
        {
            "host_id": each.host_id,
            "host": names[each.host_id].name if each.host_id in names else None,
            "home": names[each.host_id].home if each.host_id in names else None,
            "paused_by": each.actor,
            "paused_at": show_instant(each.at),
            "paused_reason": each.reason,
        }
        for each in sorted(theirs, key=lambda pause: pause.host_id or "")
    ]


def claims_elsewhere(tx: ReadTx, live: Sequence[Claim], host_id: str) -> list[dict[str, Any]]:
    """The claims of other hosts, which only they can judge. An expired lease says that nobody there
    looks after them, not that they have ended."""
    theirs: dict[str, list[Claim]] = {}
    for claim in live:
        if claim.host_id != host_id:
            theirs.setdefault(claim.host_id, []).append(claim)
    names = tx.hosts() if theirs else {}
    found = []
    for other, claims in sorted(theirs.items()):
        known = names.get(other)
        leases = [claim.lease_until for claim in claims if claim.lease_until is not None]
        expired = [until for until in leases if until < tx.now()]
        found.append(
            {
                "host_id": other,
                "host": known.name if known else None,
                "home": claims[0].home,
                "running": [shown(claim.job_id) for claim in claims],
                "expired": len(expired),
                "expired_at": show_instant(min(expired)) if expired else None,
            }
        )
    return found
