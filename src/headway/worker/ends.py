"""The ends of claims that a supervisor watched: judge, settle, and clear away what each leaves."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from headway.base.crashpoints import reach
from headway.core.gates.graph import questions_at_start
from headway.core.model import Claim, JobId
from headway.core.settle import Ending, Judgement, Verdict, has_changed
from headway.jobs.part import StepContext
from headway.jobs.views.documents import job_documents, write_job_files
from headway.store.transaction import ReadTx, WriteTx
from headway.supervise.evidence import Evidence
from headway.supervise.leftover_groups import GroupsLeft
from headway.supervise.rescue import forget_cgroup
from headway.worker.attempts import do_all
from headway.worker.launches import Launches
from headway.worker.probes import Probes
from headway.worker.recovery import JudgedClaim, Recovery
from headway.worker.settler import Settler

Documents = dict[int, dict[str, Any]]
Report = Callable[[dict[str, Any]], None]


class ClaimEnds:
    def __init__(
        self,
        context: StepContext,
        settler: Settler,
        recovery: Recovery,
        launches: Launches,
        probes: Probes,
        report: Report,
    ) -> None:
        self._context = context
        self._settler = settler
        self._recovery = recovery
        self._launches = launches
        self._probes = probes
        self._report = report
        self.groups = GroupsLeft(context.home)

    def settle(self, tx: WriteTx, judged: Sequence[JudgedClaim]) -> Documents:
        """Write these judgements. Returns the documents of the jobs that came to their end."""
        if not judged:
            return {}
        ended = self._settler.apply(tx, [(each.claim, each.judgement) for each in judged])
        self._refute(tx, [each.claim.job_id for each in judged if has_changed(each.judgement)])
        documents = job_documents(tx, [claim.job_id for claim, _ in ended], self._context.home)
        self._context.makers += [each["schedule_id"] for each in documents.values()]
        return documents

    def _refute(self, tx: ReadTx, job_ids: list[JobId]) -> None:
        """The answers that these were claimed on held no longer when they were to start."""
        if job_ids:
            for job in tx.jobs.by_id(job_ids).values():
                self._probes.refute(questions_at_start(job))

    def settled(self, judged: Sequence[JudgedClaim], documents: Documents) -> None:
        """The judgements are committed: let go of these claims, and write the jobs' files."""
        if not judged:
            return
        reach("engine.settled")
        do_all(partial(self._forget, each) for each in judged)
        do_all(partial(self._document, each.claim, documents) for each in judged)

    def _forget(self, judged: JudgedClaim) -> None:
        """A lock that stays held would make its dead supervisor look alive."""
        self._launches.forget(judged.claim.token)
        judged.release()
        self._clear_away(judged.claim, judged.judgement)

    def _clear_away(self, claim: Claim, judgement: Judgement) -> None:
        """Remove the files that only a start needs, and the control group."""
        if claim.host_id != self._context.host.id:  # the groups of a copied home are its own
            return
        if isinstance(judgement, Verdict) and not has_changed(judgement):
            if judgement.outcome.ending is Ending.SPAWN_ERROR or judgement.left:
                self.groups.note(claim.folder, claim.token)
            return
        if not forget_cgroup(claim.token):
            self.groups.note(claim.folder, claim.token)
        with suppress(OSError):
            Evidence(claim.folder, claim.token).shed()

    def _document(self, claim: Claim, documents: Documents) -> None:
        document = documents.get(claim.job_id)
        if document is not None:
            write_job_files(claim, document)
            reach("engine.documented")
            self._report(document)

    def judge(
        self, claims: Sequence[Claim], judge: Callable[[Claim], JudgedClaim | None] | None = None
    ) -> None:
        """Settle the claims whose supervisors are gone; watch the others."""
        if not claims:
            return
        judge = judge or self._recovery.judge
        judged, living = [], []
        try:
            for claim in claims:
                verdict = judge(claim)
                if verdict is None:
                    living.append(claim._replace(host_id=self._context.host.id))
                else:
                    judged.append(verdict)
            with self._context.store.write() as tx:
                adopted = [claim for claim in living if not self._launches.watches(claim)]
                self._recovery.readopted(tx, adopted)
                documents = self.settle(tx, judged)
                reach("engine.judged")
        except BaseException:
            for each in judged:  # a lock still held would make a dead supervisor look alive
                each.release()
            raise
        reach("engine.recovered")
        for claim in living:
            self._launches.watch(claim)
        self.settled(judged, documents)
