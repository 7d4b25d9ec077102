"""Claims: begun, and ended, each write fenced by the token; slots, locks and lendings.

On PostgreSQL a write carries the state that was read as a condition, and fails the transaction if
that no longer holds; this saves a round trip. On SQLite the count of rows is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway.base.errors import InvalidOperationError
from headway.core.facts import Holder, LockView, Reserver
from headway.core.model import Claim, Job, JobId, LockMode, lock_topic
from headway.core.states import RUN_STATUS, Move, Status, after
from headway.store.access import Table
from headway.store.records import Finish, HeldLock, Lending, LockWaiter, Slots, Unclaim
from headway.store.rows import dump, dump_claim, load_claim


class ClaimsReader(Table):
    """Claims as a read transaction shows them."""

    def live(self) -> list[Claim]:
        return [load_claim(row) for row in self._db.all("live_claims")]

    def unproven(self) -> list[Claim]:
        if self._cache.presence is not None and not self._cache.presence.unproven:
            return []
        return [load_claim(row) for row in self._db.all("unproven_claims")]

    def by_token(self, tokens: Sequence[str]) -> dict[str, Claim]:
        rows = self._db.all("claims_by_token", tokens=self._db.json(tokens))
        return {row[1]: load_claim(row) for row in rows}

    def cancelling(self) -> set[JobId]:
        self._present()  # a caller that asks this asks for the rest, too
        if self._cache.presence is not None and not self._cache.presence.cancelling:
            return set()
        return {row[0] for row in self._db.all("cancelling_jobs")}

    def of_job(self, job_id: JobId) -> Claim | None:
        row = self._db.one("claim_of_job", job_id=job_id)
        return load_claim(row) if row else None

    def last_of(self, ids: Sequence[JobId]) -> dict[JobId, Claim]:
        """The newest claim of each job that ever had one, whatever became of it."""
        rows = self._db.all("claims_of_jobs", ids=self._db.json(ids))
        return {row[0]: load_claim(row) for row in rows}

    def slots(self) -> Slots:
        return self._present().slots

    def lendings(self) -> list[Lending]:
        return list(self._present().lendings)

    def lock_views(self, keys: Iterable[str]) -> dict[str, LockView]:
        keys = list(keys)
        if not keys:
            return {}
        holders: dict[str, list[Holder]] = {key: [] for key in keys}
        for key, job_id, mode in self._db.all("lock_holders", keys=self._db.json(keys)):
            holders[key].append(Holder(job_id, LockMode(mode)))
        return {key: LockView(tuple(holders[key]), self._first_reservers(key)) for key in keys}

    def locks_held(self) -> list[HeldLock]:
        rows = self._db.all("locks_held")
        return [HeldLock(key, job_id, LockMode(mode)) for key, job_id, mode in rows]

    def lock_waiters(self, limit: int) -> list[LockWaiter]:
        """Those that wait for each lock, in the order in which they will get it."""
        rows = self._db.all("lock_waiters", limit=limit)
        return [
            LockWaiter(topic.removeprefix(lock_topic("")), job_id, LockMode(mode), bool(reserves))
            for topic, job_id, mode, reserves in rows
        ]

    def _first_reservers(self, key: str) -> tuple[Reserver, ...]:
        found = []
        for mode in LockMode if self._cache.contended else ():
            row = self._db.one("first_reservers", topic=lock_topic(key), mode=mode.value)
            if row:
                job_id, _, level, position, created_at = row
                found.append(Reserver(job_id, mode, (-level, position, created_at, job_id)))
        return tuple(found)


class ClaimsTable(ClaimsReader):
    """Claims as a write transaction begins and ends them."""

    def begin(self, claims: Sequence[tuple[Job, Claim]]) -> None:
        """All by one worker and of one instant: that of the transaction."""
        if not claims:
            return
        for job, _ in claims:
            after(job.status, Move.CLAIM)
        if len(claims) == 1 and self._db.at_once:
            self._claim_one(*claims[0])
        else:
            self._claim_many(claims)
        if self._cache.state is not None:
            self._cache.state.claimed(claim for _, claim in claims)
        self._db.many(
            "hold_locks",
            (
                {"key": lock.key, "job_id": job.id, "mode": lock.mode.value}
                for job, _ in claims
                for lock in job.locks
            ),
        )

    def _claim_one(self, job: Job, claim: Claim) -> None:
        self._db.send("claim_one_surely", **dump_claim(claim))
        self._cache.ahead = 0, []
        self._cache.seen_to(self._cache.woken, [job.id])

    def _claim_many(self, claims: Sequence[tuple[Job, Claim]]) -> None:
        ids = [job.id for job, _ in claims]
        first = claims[0][1]
        self._take(ids, first.claimed_at)
        self._db.many("clear_waits", ({"job_id": job.id} for job, _ in claims if _was_parked(job)))
        self._db.many("add_claims", (dump_claim(claim) for _, claim in claims))
        self._db.send(
            "add_runs",
            ids=self._db.json(ids),
            started_at=first.claimed_at,
            worker_id=first.worker_id,
        )

    def _take(self, ids: Sequence[JobId], at: int) -> None:
        """These jobs wait no more; if one of them did not, nothing of this is committed."""
        given = {"ids": self._db.json(ids), "at": at}
        if self._db.at_once:
            self._db.send("claim_jobs_surely", count=len(ids), **given)
            self._cache.ahead = 0, []
            self._cache.seen_to(self._cache.woken, ids)
            return
        claimed = self._db.all("claim_jobs", **given)
        if len(claimed) != len(ids):
            gone = set(ids) - {row[0] for row in claimed}
            raise InvalidOperationError(f"job-{min(gone, default=ids[0])} is no longer waiting")

    def finish(self, finishes: Sequence[Finish]) -> list[bool]:
        """Write final words; False for each whose claim is no longer live."""
        if not finishes:
            return []
        if len(finishes) == 1 and self._finish_one(*finishes):
            return [True]
        live: set[str] = set()
        for state, gone in (("gone", True), ("ended", False)):
            ended = [each for each in finishes if each.tree_gone is gone]
            if ended:
                live |= self._end_claims(ended, state)
                if self._cache.presence is not None and not gone:
                    self._cache.presence = self._cache.presence._replace(unproven=True)
        written = [each for each in finishes if each.token in live]
        executed = [each for each in written if each.executed]
        undone = [each for each in written if not each.executed]
        if executed:
            ids = self._db.json([each.job_id for each in executed])
            self._db.send("finish_jobs", ids=ids, rows=dump([_finished(each) for each in executed]))
            runs = [_finished_run(each) for each in executed]
            self._db.send("finish_runs", ids=ids, rows=dump(runs))
        self._db.many("cancel_unstarted", map(_finished, undone))
        self._db.many("forget_open_run", ({"job_id": each.job_id} for each in undone))
        self._follow_ends(written)
        return [each.token in live for each in finishes]

    def _finish_one(self, finish: Finish) -> bool:
        """The same for one whose claim is known to be live, where one statement for all of it is
        better."""
        if self._cache.state is None or not self._db.at_once or not finish.executed:
            return False
        if not finish.tree_gone or not self._cache.state.holds(finish.job_id, finish.token):
            return False
        run = _finished_run(finish)
        given = {**_finished(finish), **run, "run_status": run["status"], "state": "gone"}
        given |= {"status": finish.status.value, "token": finish.token}
        self._db.send("finish_one_surely", **given)
        self._cache.woken = None
        self._follow_ends([finish])
        return True

    def _follow_ends(self, written: Sequence[Finish]) -> None:
        """The other changes that come with their ends."""
        for each in written:
            if each.document is not None:
                self._keep(each.token, "outcome", each.job_id, each.document)
        self._let_go([each.job_id for each in written])

    def _end_claims(self, finishes: Sequence[Finish], state: str) -> set[str]:
        """The tokens of those that were live. What this transaction knows already is not asked
        again where that would be a round trip; but then it must be so, or nothing is committed."""
        known = None
        if self._cache.state is not None and self._db.at_once:
            known = {
                each.token: self._cache.state.holds(each.job_id, each.token) for each in finishes
            }
        if known is None or None in known.values():
            rows = self._db.all("end_claims", state=state, **self._claims_of(finishes))
            return {row[0] for row in rows}
        live = [each for each in finishes if known[each.token]]
        if live:
            given = self._claims_of(live)
            self._db.send("end_claims_surely", state=state, count=len(live), **given)
        return {each.token for each in live}

    def _claims_of(self, finishes: Sequence[Finish]) -> dict[str, Any]:
        return {
            "ids": self._db.json([each.job_id for each in finishes]),
            "rows": dump([{"job_id": each.job_id, "token": each.token} for each in finishes]),
        }

    def _let_go(self, ids: Sequence[JobId]) -> None:
        """These jobs run no more: they hold no slot, and lend nothing."""
        if self._cache.state is not None:
            self._cache.state.ended(ids)
            if not self._cache.state.lendings:
                return
        self._db.send("end_lendings_of_jobs", ids=self._db.json(ids))

    def keep_late_outcome(self, claim: Claim, document: Mapping[str, Any]) -> None:
        self._keep(claim.token, "late_outcome", claim.job_id, document)

    def _keep(self, token: str, kind: str, job_id: JobId, document: Mapping[str, Any]) -> None:
        self._db.send(
            "add_evidence",
            token=token,
            kind=kind,
            job_id=job_id,
            at=self._db.now,
            document=dump(document),
        )

    def undo(self, unclaims: Sequence[Unclaim]) -> list[bool]:
        return [self._undo(unclaim) for unclaim in unclaims]

    def _undo(self, unclaim: Unclaim) -> bool:
        if self._db.change("forget_claim", job_id=unclaim.job_id, token=unclaim.token) != 1:
            return False
        if self._cache.state is not None:
            self._cache.state.ended([unclaim.job_id])
        self._db.send("forget_open_run", job_id=unclaim.job_id)
        self._db.send(
            "unclaim_job",
            id=unclaim.job_id,
            status=after(Status.RUNNING, Move.UNCLAIM).value,
            not_before=unclaim.not_before,
            launch_failures=unclaim.launch_failures,
            launch_wait=unclaim.launch_wait,
            last_failure=unclaim.cause,
        )
        return True

    def renew_leases(self, host_id: str, until: int) -> None:
        self._db.send("renew_leases", host_id=host_id, until=until)

    def release_locks(self, job_ids: Sequence[JobId]) -> list[str]:
        """The keys that these jobs held and that somebody may wait for."""
        held = self._cache.presence is None or self._cache.presence.held
        if not job_ids or not held:
            return []
        ids = self._db.json(job_ids)
        if not self._cache.contended:
            self._db.send("release_locks", ids=ids)
            return []
        return sorted({row[0] for row in self._db.all("release_locks", ids=ids)})

    def prove_gone(self, token: str) -> None:
        self._db.send("prove_claim_gone", token=token)

    def lend(self, token: str, lending: Lending) -> None:
        self._db.send(
            "lend",
            token=token,
            job_id=lending.job_id,
            chain=lending.chain,
            expires_at=lending.expires_at,
        )

    def end_lending(self, token: str) -> None:
        self._db.send("end_lending", token=token)

    def end_expired_lendings(self, now: int) -> None:
        self._db.send("end_expired_lendings", now=now)


def _finished(finish: Finish) -> dict[str, Any]:
    return {
        "id": finish.job_id,
        "status": finish.status.value,
        "reason": finish.reason,
        "finished_at": finish.finished_at,
    }


def _finished_run(finish: Finish) -> dict[str, Any]:
    return {
        "job_id": finish.job_id,
        "status": RUN_STATUS[finish.status],
        "exit_code": finish.exit_code,
        "error": finish.error,
        "finished_at": finish.finished_at,
    }


def _was_parked(job: Job) -> bool:
    """Whether rows in `waits` may exist: a job that never waited has none to clear."""
    return job.wait is not None
