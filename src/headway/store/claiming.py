"""Claims: begun, and ended, each write fenced by the token.

Where a database is a round trip away, what a transaction has read is told to be so, and it refuses
all of it if it is not; elsewhere the answer is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.core.model import Claim, Job, JobId
from headway.core.states import RUN_STATUS, Move, after
from headway.errors import InvalidOperationError
from headway.store.base import Finish
from headway.store.changing import Changing
from headway.store.rows import dump, dump_claim


class ClaimingTx(Changing):
    def claim(self, claims: Sequence[tuple[Job, Claim]]) -> None:
        """All by one worker and of one instant: that of the transaction."""
        if not claims:
            return
        for job, _ in claims:
            after(job.status, Move.CLAIM)
        if len(claims) == 1 and self._named.at_once:
            self._claim_one(*claims[0])
        else:
            self._claim_many(claims)
        if self._state is not None:
            self._state.claimed(claim for _, claim in claims)
        self._many(
            "hold_locks",
            (
                {"key": lock.key, "job_id": job.id, "mode": lock.mode.value}
                for job, _ in claims
                for lock in job.locks
            ),
        )

    def _claim_one(self, job: Job, claim: Claim) -> None:
        self._tell("claim_one_surely", **dump_claim(claim))
        self._ahead = 0, []
        self._seen_to(self._looked, [job.id])

    def _claim_many(self, claims: Sequence[tuple[Job, Claim]]) -> None:
        ids = [job.id for job, _ in claims]
        first = claims[0][1]
        self._take(ids, first.claimed_at)
        self._many("clear_waits", ({"job_id": job.id} for job, _ in claims if _was_filed(job)))
        self._many("add_claims", (dump_claim(claim) for _, claim in claims))
        self._tell(
            "add_runs",
            ids=self._database.json(ids),
            started_at=first.claimed_at,
            worker_id=first.worker_id,
        )

    def _take(self, ids: Sequence[JobId], at: int) -> None:
        """These jobs wait no more; if one of them did not, nothing of this is committed."""
        given = {"ids": self._database.json(ids), "at": at}
        if self._named.at_once:
            self._tell("claim_jobs_surely", count=len(ids), **given)
            self._ahead = 0, []
            self._seen_to(self._looked, ids)
            return
        claimed = self._all("claim_jobs", **given)
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
                if self._whereabouts is not None and not gone:
                    self._whereabouts = self._whereabouts._replace(unproven=True)
        written = [each for each in finishes if each.token in live]
        executed = [each for each in written if each.executed]
        undone = [each for each in written if not each.executed]
        if executed:
            ids = self._database.json([each.job_id for each in executed])
            self._tell("finish_jobs", ids=ids, rows=dump([_finished(each) for each in executed]))
            runs = [_finished_run(each) for each in executed]
            self._tell("finish_runs", ids=ids, rows=dump(runs))
        self._many("cancel_unstarted", map(_finished, undone))
        self._many("forget_open_run", ({"job_id": each.job_id} for each in undone))
        self._follow_ends(written)
        return [each.token in live for each in finishes]

    def _finish_one(self, finish: Finish) -> bool:
        """The same of one whose claim is known to be live, where that is better told as a whole."""
        if self._state is None or not self._named.at_once or not finish.executed:
            return False
        if not finish.tree_gone or not self._state.holds(finish.job_id, finish.token):
            return False
        run = _finished_run(finish)
        given = {**_finished(finish), **run, "run_status": run["status"], "state": "gone"}
        given |= {"status": finish.status.value, "token": finish.token}
        self._tell("finish_one_surely", **given)
        self._looked = None
        self._follow_ends([finish])
        return True

    def _follow_ends(self, written: Sequence[Finish]) -> None:
        """What else goes with their ends."""
        for each in written:
            if each.document is not None:
                self._keep(each.token, "outcome", each.job_id, each.document)
        self._let_go([each.job_id for each in written])

    def _end_claims(self, finishes: Sequence[Finish], state: str) -> set[str]:
        """The tokens of those that were live. What this transaction knows already is not asked
        again where that would be a round trip; but then it must be so, or nothing is committed."""
        known = None
        if self._state is not None and self._named.at_once:
            known = {each.token: self._state.holds(each.job_id, each.token) for each in finishes}
        if known is None or None in known.values():
            rows = self._all("end_claims", state=state, **self._claims_of(finishes))
            return {row[0] for row in rows}
        live = [each for each in finishes if known[each.token]]
        if live:
            given = self._claims_of(live)
            self._tell("end_claims_surely", state=state, count=len(live), **given)
        return {each.token for each in live}

    def _claims_of(self, finishes: Sequence[Finish]) -> dict[str, Any]:
        return {
            "ids": self._database.json([each.job_id for each in finishes]),
            "rows": dump([{"job_id": each.job_id, "token": each.token} for each in finishes]),
        }

    def _let_go(self, ids: Sequence[JobId]) -> None:
        """These jobs run no more: they hold no slot, and lend nothing."""
        if self._state is not None:
            self._state.ended(ids)
            if not self._state.lendings:
                return
        self._tell("end_lendings_of_jobs", ids=self._database.json(ids))

    def keep_late_outcome(self, claim: Claim, document: Mapping[str, Any]) -> None:
        self._keep(claim.token, "late_outcome", claim.job_id, document)

    def _keep(self, token: str, kind: str, job_id: JobId, document: Mapping[str, Any]) -> None:
        self._tell(
            "add_evidence",
            token=token,
            kind=kind,
            job_id=job_id,
            at=self._now,
            document=dump(document),
        )


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


def _was_filed(job: Job) -> bool:
    """Whether rows in `waits` may exist: a job that never waited has none to clear."""
    return job.wait is not None
