"""What a transaction remembers is what it would hear if it asked: after every change of its own."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from called import CLAIMANT, TASK, add_call, end_of
from stocked import HOST, START, add, claim_for, filing, finish_of, reservation, unclaim_of
from stocked import job as made

from headway.core.model import (
    FUNCTION,
    FUNCTIONS,
    Claim,
    HostTrouble,
    Job,
    Lock,
    Pause,
    Stage,
    WaitKind,
)
from headway.core.states import Status
from headway.store.base import Lending, Store, WriteTx
from headway.store.seam_adding import Alike, Model
from headway.store.seam_calls import TakenCall
from headway.store.seam_waking import ROUND_JOBS
from headway.store.writing import SqlWriteTx

QUEUES = ("", HOST.id, "functions")


# All that the state and the whereabouts stand behind.
QUESTIONS: dict[str, Callable[[WriteTx], Any]] = {
    "slots": lambda tx: tx.slots(),
    "marks": lambda tx: tx.marks(),
    "lendings": lambda tx: sorted(tx.lendings()),
    "reservations": lambda tx: tx.reservations(),
    "settings": lambda tx: tx.settings(),
    "pause": lambda tx: tx.pause_in_force(),
    "trouble": lambda tx: tx.host_trouble(HOST.id),
    "woken": lambda tx: [job.id for job in tx.woken(ROUND_JOBS, QUEUES)],
    "unmet": lambda tx: tx.predecessors(tx.woken(ROUND_JOBS, QUEUES)),
    "ready": lambda tx: [job.id for job in tx.ready(100, QUEUES)],
    "next_wake": lambda tx: tx.next_wake(),
    "cancelling": lambda tx: tx.cancelling_jobs(),
    "unproven": lambda tx: {claim.token for claim in tx.unproven_claims()},
    "active": lambda tx: tx.anything_active(),
    "products": lambda tx: tx.produced_by(range(1, 100)),
    "plain_calls": lambda tx: tx.plain_calls(5),
}


def remembered(tx: WriteTx) -> dict[str, Any]:
    return {name: question(tx) for name, question in QUESTIONS.items()}


def asked(store: Store) -> dict[str, Any]:
    """The same from transactions that remember nothing: each question is the first of its own."""
    return {
        name: question(SqlWriteTx(store.database, store.queries, START))  # type: ignore[attr-defined]
        for name, question in QUESTIONS.items()
    }


# What may be known to be less clear than it is; said to be so, it is so.
CAREFUL: dict[str, Callable[[WriteTx], bool]] = {
    "only_calls_wait": lambda tx: tx.only_calls_wait(QUEUES[:2]),
    "nobody_awaits": lambda tx: not tx.anyone_awaits(),
}


def assert_careful(tx: WriteTx, store: Store) -> None:
    for name, question in CAREFUL.items():
        fresh: Any = SqlWriteTx(store.database, store.queries, START)  # type: ignore[attr-defined]
        assert not question(tx) or question(fresh), name


class Acts:
    """One change after the other, of jobs and claims that are there."""

    def __init__(self, tx: WriteTx, lots: random.Random) -> None:
        self.tx = tx
        self.lots = lots
        self.jobs: list[Job] = []
        self.claims: list[Claim] = []
        self.calls: list[TakenCall] = []
        self.slot = 0

    def waiting(self) -> list[Job]:
        found = self.tx.jobs([job.id for job in self.jobs])
        return [job for job in found.values() if job.stage is not None]

    def at_hand(self) -> list[Job]:
        """Those that a step may look at."""
        return [job for job in self.waiting() if job.stage is not Stage.FILED]

    def act(self) -> str:
        verb = self.lots.choice([name for name in vars(Acts) if name.startswith("do_")])
        getattr(self, verb)()
        return verb

    def do_add(self) -> None:
        stage = self.lots.choice([Stage.WOKEN, Stage.READY])
        more: dict[str, Any] = {"produces": ("custom:x",)} if self.lots.random() < 0.1 else {}
        if self.jobs and self.lots.random() < 0.3:
            more["after"] = (self.lots.choice(self.jobs).id,)
        if self.lots.random() < 0.3:
            more["locks"] = (Lock(f"k-{len(self.jobs)}"),)
        self.jobs.append(add(self.tx, stage=stage, queue=self.lots.choice(QUEUES), **more))

    def do_claim(self) -> None:
        for job in self.at_hand()[: self.lots.randrange(3)]:
            self.slot += 1
            claim = claim_for(job.id, self.slot, token=f"t{self.slot}", probe=self.slot % 5 == 0)
            self.tx.claim([(job, claim)])
            self.claims.append(claim)

    def do_finish(self) -> None:
        gone = self.lots.random() < 0.7
        ended, self.claims = self.claims[:2], self.claims[2:]
        self.tx.finish([finish_of(each, tree_gone=gone) for each in ended])
        self.tx.chains_succeeded([each.job_id for each in ended])

    def do_unclaim(self) -> None:
        if self.claims:
            claim = self.claims.pop()
            self.tx.unclaim([unclaim_of(claim)])
            self.tx.release_locks(claim.job_id)

    def do_release_locks(self) -> None:
        held = [(each.job_id, each.key) for each in self.tx.locks_held()]
        for job in self.jobs:
            assert self.tx.release_locks(job.id) == [key for of, key in held if of == job.id]

    def do_file(self) -> None:
        for job in self.at_hand()[:1]:
            at = self.lots.choice([None, START + 5, START + 50])
            self.tx.file([filing(job, "lock:a", wake_at=at)])

    def do_file_at_the_door(self) -> None:
        for job in self.at_hand()[:1]:
            self.tx.file([filing(job, stage=Stage.READY, status=Status.QUEUED)])

    def do_wake(self) -> None:
        self.tx.wake_topics(["lock:a"])

    def do_wake_first(self) -> None:
        self.tx.wake_first(["lock:a"])

    def do_wake_due(self) -> None:
        self.tx.wake_due(START + self.lots.choice([0, 10, 100]), 10)

    def do_wake_all(self) -> None:
        self.tx.wake_everything()

    def do_end(self) -> None:
        for job in self.waiting()[:1]:
            self.tx.end_waiting(job, Status.CANCELLED, "because", None)

    def do_request_cancel(self) -> None:
        for claim in self.claims[:1]:
            self.tx.request_cancel(claim.job_id, "ann")

    def do_prove(self) -> None:
        for claim in self.tx.unproven_claims():
            self.tx.prove_gone(claim.token)

    def do_lend(self) -> None:
        for claim in self.claims[:1]:
            self.tx.lend(f"lending-{claim.token}", Lending(claim.job_id, 1, START + 9))

    def do_reserve(self) -> None:
        made = reservation(self.tx.take_reservation_id(), expires_at=START + self.lots.randrange(3))
        self.tx.reserve(made)

    def do_grant(self) -> None:
        for each in self.tx.reservations()[:1]:
            self.tx.grant(each.token, None)
            self.tx.renew_reservation(each.token, START + 5)

    def do_release(self) -> None:
        for each in self.tx.reservations()[1:2]:
            self.tx.release(each)

    def do_expire(self) -> None:
        self.tx.expire_reservations([each.token for each in self.tx.reservations()])

    def do_marks(self) -> None:
        self.tx.set_mark("last_dispatch_at", self.lots.randrange(100))
        self.tx.add_to_mark("log_bytes", 7)

    def do_set(self) -> None:
        self.tx.set_setting("scheduler.max_active", self.lots.randrange(9), by="ann")

    def do_pause(self) -> None:
        if not self.tx.resume():
            self.tx.pause(Pause("ann", None, START))

    def do_trouble(self) -> None:
        trouble = HostTrouble(WaitKind.STORAGE, "full", 1, START + 9)
        if not self.tx.close_breaker(HOST.id):
            self.tx.open_breaker(HOST.id, trouble)

    def do_look(self) -> None:
        self.lots.choice([self.tx.look_around, self.tx.look_at_calls])(self.lots.randrange(7))

    def do_add_call(self) -> None:
        self.jobs.append(add_call(self.tx, priority=self.lots.randrange(3)))

    def do_add_alike(self) -> None:
        params = {"task": TASK, "args": {}}
        model = Model(made(0, type=FUNCTION, queue=FUNCTIONS, stage=Stage.READY, params=params))
        count = self.lots.choice([1, 7])
        first = self.tx.add_alike([Alike(model, dict.fromkeys(range(count), params))])
        assert first is not None
        self.jobs.append(self.tx.jobs([first])[first])

    def do_claim_calls(self) -> None:
        taken = []
        for call in self.tx.plain_calls(self.lots.randrange(1, 4))[0]:
            self.slot += 1
            taken.append(TakenCall(call, f"t{self.slot}", self.slot, START))
        if taken:
            self.tx.claim_calls(CLAIMANT, taken)
            self.calls += taken

    def do_finish_calls(self) -> None:
        number = self.lots.choice([1, 2, 12])
        ended, self.calls = self.calls[:number], self.calls[number:]
        if ended:
            ends = [end_of(each, self.lots.choice([None, 7])) for each in ended]
            self.tx.finish_calls(ends, actor="worker", awaited=self.tx.anyone_awaits())

    def do_fail_and_retry(self) -> None:
        for claim in self.claims[:1]:
            self.claims.remove(claim)
            self.tx.finish([finish_of(claim, status=Status.FAILED)])
            failed = self.tx.jobs([claim.job_id])[claim.job_id]
            self.tx.chains_failed([failed.chain])
            if self.lots.random() < 0.5:
                again = made(self.tx.take_ids(1), chain=failed.chain, retry_of=failed.id)
                self.tx.add_retries([again])
                self.tx.chain_reopened(failed.chain)
                self.jobs.append(again)

    def do_requeue(self) -> None:
        for job in self.waiting()[:1]:
            self.tx.requeue([job.id], self.lots.choice(QUEUES))


@pytest.mark.parametrize("seed", range(16))
def test_what_is_remembered_is_what_would_be_heard(store: Store, seed: int) -> None:
    lots = random.Random(seed)
    with store.write() as tx:
        acts = Acts(tx, lots)
        done = []
        remembered(tx)
        for _ in range(60):
            done.append(acts.act())
            if lots.random() < 0.7:  # or the next change meets what this one left
                assert remembered(tx) == asked(store), done
                assert_careful(tx, store)
