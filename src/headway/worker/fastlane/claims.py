"""Claim many plain calls together, with a few statements for all of them."""

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import count, islice
from typing import Any

from headway.base.host import Host
from headway.core.facts import Capacity
from headway.core.model import Claim, JobId
from headway.core.plaincalls import OCCUPIES, PlainCall, PlainEnd, room_for_calls
from headway.functions.pool.calls import HostPool
from headway.functions.pool.host import ClaimedCall, Returned
from headway.store.records import Claimant, TakenCall
from headway.store.transaction import ReadTx, WriteTx
from headway.worker.tokens import tokens

MOST_AT_ONCE = 200


class LaneCall:
    """A plain call in the hands of a host. Its claim is spelled out only if that is needed."""

    __slots__ = ("claimant", "taken")

    job = None

    def __init__(self, taken: TakenCall, claimant: Claimant) -> None:
        self.taken = taken
        self.claimant = claimant

    @property
    def job_id(self) -> JobId:
        return self.taken.call.job_id

    @property
    def argument_bytes(self) -> int:
        return len(self.taken.call.params)

    @property
    def claim(self) -> Claim:
        taken = self.taken
        return Claim(
            job_id=taken.call.job_id,
            token=taken.token,
            slot=taken.slot,
            claimed_at=taken.claimed_at,
            occupies=OCCUPIES,
            **self.claimant._asdict(),
        )

    @property
    def params(self) -> Mapping[str, Any]:
        """Nobody has read all of them; damaged ones must not keep a call from its end."""
        try:
            found = json.loads(self.taken.call.params)
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def in_full(self) -> ClaimedCall:
        return ClaimedCall(self.claim, None, self.params)

    @property
    def order(self) -> str:
        """The line that has a host make it."""
        (job_id, attempt, _, _, params), token, _, _ = self.taken
        return f"r {token} {job_id} {attempt} {params}\n"


def end_of(returned: Returned, call: LaneCall) -> PlainEnd:
    (job_id, attempt, chain, _, _), token, slot, began = call.taken
    return PlainEnd(
        job_id, token, slot, attempt, chain, returned.finished_at, returned.result, began
    )


def ends_among(returned: Sequence[Returned]) -> tuple[list[PlainEnd], list[Returned]]:
    """The ends of calls that were claimed here, and all others."""
    ends: list[PlainEnd] = []
    others: list[Returned] = []
    for each in returned:
        if isinstance(each.call, LaneCall):
            ends.append(end_of(each, each.call))
        else:
            others.append(each)
    return ends, others


class BulkClaims:
    def __init__(self, host: Host, worker_id: str, pool: HostPool, lease: int | None) -> None:
        self._host = host
        self._worker_id = worker_id
        self._pool = pool
        self._lease = lease
        self._batches: dict[str, list[LaneCall]] = {}  # by host; without a commit they are dropped
        self._unsent: list[dict[str, list[LaneCall]]] = []
        self.is_clear = True  # whether nothing else might start

    @property
    def taken(self) -> list[TakenCall]:
        """The calls that were claimed by this step."""
        return [each.taken for batch in self._batches.values() for each in batch]

    def begin(self) -> None:
        """A step begins."""
        self._batches = {}
        self.is_clear = True

    def undo(self) -> None:
        """Its transaction was rolled back."""
        for host, taken in self._batches.items():
            self._pool.drop(host, [each.taken.token for each in taken])

    def committed(self) -> None:
        """Its transaction was committed: now they may be sent."""
        self._unsent.append(self._batches)

    def send(self) -> None:
        """Hand out what was committed."""
        while self._unsent:
            batches = self._unsent.pop(0)
            self._pool.order(
                {host: [each.order for each in taken] for host, taken in batches.items()}
            )

    def head(self, tx: ReadTx, capacity: Capacity, limit: int | None = None) -> list[PlainCall]:
        """The calls that may start now."""
        room = min(room_for_calls(capacity), MOST_AT_ONCE, MOST_AT_ONCE if limit is None else limit)
        if room <= 0:
            return []
        calls, all_plain = tx.calls.head(room)
        known = self.known(calls)
        self.is_clear = all_plain and len(known) == len(calls)
        return known

    def known(self, calls: list[PlainCall]) -> list[PlainCall]:
        """Those before the first whose function is not known here."""
        tasks = self._pool.tasks
        for place, call in enumerate(calls):
            if call.task not in tasks:
                return calls[:place]
        return calls

    def claim(self, tx: WriteTx, calls: Sequence[PlainCall], slots: Collection[int]) -> None:
        free = (number for number in count(1) if number not in slots)
        now, done = tx.now(), 0
        for host, share in self._pool.shares(len(calls)):
            mine = calls[done : done + share]
            done += share
            each = zip(mine, tokens(now, share), islice(free, share), strict=True)
            taken = [TakenCall(call, token, slot, now) for call, token, slot in each]
            claimant = self._claimant(host.folder, host.token, now)
            tx.calls.claim(claimant, taken)
            held = [LaneCall(each, claimant) for each in taken]
            host.calls.update((each.taken.token, each) for each in held)
            self._batches[host.token] = held

    def _claimant(self, folder: str, function_host: str, now: int) -> Claimant:
        return Claimant(
            worker_id=self._worker_id,
            host_id=self._host.id,
            home=self._host.home,
            boot_id=self._host.boot_id,
            folder=folder,
            function_host=function_host,
            lease_until=None if self._lease is None else now + self._lease,
        )
