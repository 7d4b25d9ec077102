"""What a transaction remembers is what it would hear if it asked: after every change of its own."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from called import CLAIMANT, TASK, add_call, end_of
from stocked import HOST, START, add, claim_for, finish_of, parking, reservation, unclaim_of
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
from headway.store.new_jobs import Alike, Model
from headway.store.records import ROUND_JOBS, Lending, TakenCall
from headway.store.store import Store
from headway.store.transaction import WriteTx

QUEUES = ("", HOST.id, "functions")


# All that the state and the whereabouts stand behind.
QUESTIONS: dict[str, Callable[[WriteTx], Any]] = {
    "slots": lambda tx: tx.claims.slots(),
    "marks": lambda tx: tx.settings.marks(),
    "lendings": lambda tx: sorted(tx.claims.lendings()),
    "reservations": lambda tx: tx.reservations.all(),
    "settings": lambda tx: tx.settings.all(),
    "pause": lambda tx: tx.settings.pause_in_force(),
    "trouble": lambda tx: tx.hosts.trouble(HOST.id),
    "woken": lambda tx: [job.id for job in tx.waits.woken(ROUND_JOBS, QUEUES)],
    "unmet": lambda tx: tx.waits.predecessors(tx.waits.woken(ROUND_JOBS, QUEUES)),
    "ready": lambda tx: [job.id for job in tx.waits.ready(100, QUEUES)],
    "next_wake": lambda tx: tx.waits.next_wake(),
    "cancelling": lambda tx: tx.claims.cancelling(),
    "unproven": lambda tx: {claim.token for claim in tx.claims.unproven()},
    "active": lambda tx: tx.jobs.anything_active(),
    "products": lambda tx: tx.graph.produced_by(range(1, 100)),
    "plain_calls": lambda tx: tx.calls.head(5),
}


def remembered(tx: WriteTx) -> dict[str, Any]:
    return {name: question(tx) for name, question in QUESTIONS.items()}


def asked(store: Store) -> dict[str, Any]:
    """The same from transactions that remember nothing: each question is the first of its own."""
    return {
        name: question(WriteTx(store.database, store.queries, START))  # type: ignore[attr-defined]
        for name, question in QUESTIONS.items()
    }


# What may be known to be less clear than it is; said to be so, it is so.
CAREFUL: dict[str, Callable[[WriteTx], bool]] = {
    "only_calls_wait": lambda tx: tx.calls.are_alone(QUEUES[:2]),
    "nobody_awaits": lambda tx: not tx.calls.anyone_awaits(),
    "nobody_waits_for_locks": lambda tx: not tx.waits.are_locks_contended(),
}


def assert_careful(tx: WriteTx, store: Store) -> None:
    for name, question in CAREFUL.items():
        fresh: Any = WriteTx(store.database, store.queries, START)  # type: ignore[attr-defined]
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
        found = self.tx.jobs.by_id([job.id for job in self.jobs])
        return [job for job in found.values() if job.stage is not None]

    def at_hand(self) -> list[Job]:
        """Those that a step may look at."""
        return [job for job in self.waiting() if job.stage is not Stage.PARKED]

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
            self.tx.claims.begin([(job, claim)])
            self.claims.append(claim)

    def do_finish(self) -> None:
        gone = self.lots.random() < 0.7
        ended, self.claims = self.claims[:2], self.claims[2:]
        self.tx.claims.finish([finish_of(each, tree_gone=gone) for each in ended])
        self.tx.waits.chains_succeeded([each.job_id for each in ended])

    def do_unclaim(self) -> None:
        if self.claims:
            claim = self.claims.pop()
            self.tx.claims.undo([unclaim_of(claim)])
            self.tx.claims.release_locks([claim.job_id])

    def do_release_locks(self) -> None:
        held = [(each.job_id, each.key) for each in self.tx.claims.locks_held()]
        told = self.tx.waits.are_locks_contended()
        for job in self.jobs:
            keys = [key for of, key in held if of == job.id]
            assert self.tx.claims.release_locks([job.id]) == (keys if told else [])
        assert self.tx.claims.locks_held() == []

    def do_file(self) -> None:
        for job in self.at_hand()[:1]:
            at = self.lots.choice([None, START + 5, START + 50])
            topics = [f"lock:{lock.key}" for lock in job.locks] or ["lock:a"]
            self.tx.waits.park([parking(job, *topics, wake_at=at)])

    def do_park_for_capacity(self) -> None:
        for job in self.at_hand()[:1]:
            self.tx.waits.park([parking(job, stage=Stage.READY, status=Status.QUEUED)])

    def do_wake(self) -> None:
        self.tx.waits.wake_topics(["lock:a"])

    def do_wake_first(self) -> None:
        self.tx.waits.wake_first(["lock:a"])

    def do_wake_due(self) -> None:
        self.tx.waits.wake_due(START + self.lots.choice([0, 10, 100]), 10)

    def do_wake_all(self) -> None:
        self.tx.waits.wake_everything()

    def do_end(self) -> None:
        for job in self.waiting()[:1]:
            self.tx.jobs.end_waiting(job, Status.CANCELLED, "because", None)

    def do_request_cancel(self) -> None:
        for claim in self.claims[:1]:
            self.tx.jobs.request_cancel(claim.job_id, "ann")

    def do_prove(self) -> None:
        for claim in self.tx.claims.unproven():
            self.tx.claims.prove_gone(claim.token)

    def do_lend(self) -> None:
        for claim in self.claims[:1]:
            self.tx.claims.lend(f"lending-{claim.token}", Lending(claim.job_id, 1, START + 9))

    def do_reserve(self) -> None:
        made = reservation(
            self.tx.reservations.take_id(), expires_at=START + self.lots.randrange(3)
        )
        self.tx.reservations.add(made)

    def do_grant(self) -> None:
        for each in self.tx.reservations.all()[:1]:
            self.tx.reservations.grant(each.token, None)
            self.tx.reservations.renew(each.token, START + 5)

    def do_release(self) -> None:
        for each in self.tx.reservations.all()[1:2]:
            self.tx.reservations.release(each)

    def do_expire(self) -> None:
        self.tx.reservations.expire([each.token for each in self.tx.reservations.all()])

    def do_marks(self) -> None:
        self.tx.settings.set_mark("last_dispatch_at", self.lots.randrange(100))
        self.tx.settings.add_to_mark("log_bytes", 7)

    def do_set(self) -> None:
        self.tx.settings.set("scheduler.max_active", self.lots.randrange(9), by="ann")

    def do_pause(self) -> None:
        if not self.tx.settings.resume():
            self.tx.settings.pause(Pause("ann", None, START))

    def do_trouble(self) -> None:
        trouble = HostTrouble(WaitKind.STORAGE, "full", 1, START + 9)
        if not self.tx.hosts.close_breaker(HOST.id):
            self.tx.hosts.open_breaker(HOST.id, trouble)

    def do_look(self) -> None:
        self.lots.choice([self.tx.waits.prefetch, self.tx.calls.prefetch])(self.lots.randrange(7))

    def do_add_call(self) -> None:
        self.jobs.append(add_call(self.tx, priority=self.lots.randrange(3)))

    def do_add_alike(self) -> None:
        params = {"task": TASK, "args": {}}
        model = Model(made(0, type=FUNCTION, queue=FUNCTIONS, stage=Stage.READY, params=params))
        count = self.lots.choice([1, 7])
        first = self.tx.bulk.add([Alike(model, dict.fromkeys(range(count), params))])
        assert first is not None
        self.jobs.append(self.tx.jobs.by_id([first])[first])

    def do_claim_calls(self) -> None:
        taken = []
        for call in self.tx.calls.head(self.lots.randrange(1, 4))[0]:
            self.slot += 1
            taken.append(TakenCall(call, f"t{self.slot}", self.slot, START))
        if taken:
            self.tx.calls.claim(CLAIMANT, taken)
            self.calls += taken

    def do_finish_calls(self) -> None:
        number = self.lots.choice([1, 2, 12])
        ended, self.calls = self.calls[:number], self.calls[number:]
        if ended:
            ends = [end_of(each, self.lots.choice([None, 7])) for each in ended]
            self.tx.calls.finish(ends, actor="worker", awaited=self.tx.calls.anyone_awaits())

    def do_fail_and_retry(self) -> None:
        for claim in self.claims[:1]:
            self.claims.remove(claim)
            self.tx.claims.finish([finish_of(claim, status=Status.FAILED)])
            failed = self.tx.jobs.by_id([claim.job_id])[claim.job_id]
            self.tx.waits.chains_failed([failed.chain])
            if self.lots.random() < 0.5:
                again = made(self.tx.jobs.take_ids(1), chain=failed.chain, retry_of=failed.id)
                self.tx.jobs.add_retries([again])
                self.tx.waits.chain_reopened(failed.chain)
                self.jobs.append(again)

    def do_requeue(self) -> None:
        for job in self.waiting()[:1]:
            self.tx.waits.requeue([job.id], self.lots.choice(QUEUES))


@pytest.mark.bulk
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
