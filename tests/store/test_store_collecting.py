"""Removing ended jobs changes nothing for the others: each story is told with it and without."""

import random
from pathlib import Path
from typing import Any

import pytest
from stocked import System

from headway.base.home import Home
from headway.core.artifacts import ArtifactKey
from headway.core.model import Claim, Job, JobId, RetryPolicy
from headway.core.retention import RetentionRule
from headway.core.settle import Ending, Outcome, Verdict
from headway.core.states import TERMINAL
from headway.jobs.retention import Collector
from headway.store.store import Store
from headway.store.transaction import ReadTx
from headway.testing.clock import FakeClock
from ready import open_ready

STORIES = 12
ACTS = 80
ARTIFACTS = tuple(f"custom:part:{number}" for number in range(4))


class Twins:
    """The same story in two stores; only of one the ended jobs are removed."""

    def __init__(self, store: Store, clock: FakeClock, folder: Path, seed: int) -> None:
        self.clock = clock
        self.chance = random.Random(seed)
        self.reference = open_ready(f"sqlite://{folder}/reference.db", clock)
        self.tidy = System(store, clock, folder / "tidy")
        self.full = System(self.reference, clock, folder / "full")
        self.both = (self.tidy, self.full)
        self.home = Home(str(folder))
        self.removed: set[JobId] = set()
        for system in self.both:
            system.set_max_active(3)

    def live(self) -> list[tuple[Claim, Claim]]:
        tidy, full = (system.look(lambda tx: tx.claims.live()) for system in self.both)
        by_job = {claim.job_id: claim for claim in full}
        assert {claim.job_id for claim in tidy} == set(by_job), "the same jobs run"
        pairs = [(claim, by_job[claim.job_id]) for claim in tidy]
        return sorted(pairs, key=lambda pair: pair[0].job_id)

    def jobs(self, system: System) -> dict[JobId, Job]:
        def all_jobs(tx: ReadTx) -> list[Job]:
            return [*tx.jobs.active(), *tx.jobs.finished(0, 100_000)]

        return {job.id: job for job in system.look(all_jobs)}

    # -- acts --------------------------------------------------------------------------------------

    def submit(self) -> None:
        known = sorted(self.jobs(self.tidy))
        after = self.chance.sample(known, min(len(known), self.chance.choice((0, 0, 1, 2))))
        fields: dict[str, Any] = {
            "after": tuple(after),
            "needs": tuple(each for each in self.known_artifacts() if self.chance.random() < 0.3),
            "retry": RetryPolicy(max_attempts=self.chance.choice((0, 0, 1)), base=0),
        }
        fields["produces"] = tuple(
            each
            for each in ARTIFACTS
            if each not in fields["needs"] and self.chance.random() < 0.25
        )
        made = {system.submit(**fields).id for system in self.both}
        assert len(made) == 1, "an id is never given out again"
        assert not made & self.removed

    def known_artifacts(self) -> list[ArtifactKey]:
        """Those that look the same in both: of what is gone a new job may not know."""
        views = [system.look(lambda tx: tx.graph.artifact_views(ARTIFACTS)) for system in self.both]
        return [key for key in ARTIFACTS if views[0][key] == views[1][key]]

    def start(self) -> None:
        for system in self.both:
            system.until_quiet()

    def end(self) -> None:
        running = self.live()
        if running:
            code = self.chance.choice((0, 0, 0, 1))
            for system, claim in zip(self.both, self.chance.choice(running), strict=True):
                outcome = Outcome(Ending.EXITED, self.clock.now(), exit_code=code)
                system.judge(claim, Verdict(outcome, tree_gone=True, document={"logs": {}}))

    def cancel(self) -> None:
        active = [each.id for each in self.jobs(self.tidy).values() if each.status not in TERMINAL]
        if active:
            job = self.chance.choice(sorted(active))
            for system in self.both:
                system.cancel(job)

    def retry(self) -> None:
        """Of a job whose predecessors are all there; of the others it is known that they ended."""
        jobs = self.jobs(self.tidy)
        whole = [job for job in jobs.values() if set(job.after) <= set(jobs) and not job.needs]
        if whole:
            job = self.chance.choice(sorted(each.id for each in whole))
            for system in self.both:
                system.retry(job)

    def collect(self) -> None:
        rule = self.chance.choice(
            (
                RetentionRule(0, None),
                RetentionRule(None, 2),
                RetentionRule(None, 5),
                RetentionRule(1, None),
            )
        )
        collector = Collector(self.tidy.store, self.home, "host", actor="ann", rule=rule)
        most = self.chance.choice((1, 3, 500))
        while (removed := collector.step(most)) is not None:
            self.removed.update(removed.jobs)

    def later(self) -> None:
        self.clock.advance(self.chance.choice((1.0, 3600.0, 100_000.0)))

    # -- what must be so ---------------------------------------------------------------------------

    def check(self) -> None:
        tidy, full = (self.jobs(system) for system in self.both)
        assert set(full) - set(tidy) == self.removed
        for job_id, job in tidy.items():
            same = ("status", "reason", "stage", "attempt", "chain", "wait")
            mine, theirs = ([getattr(each, name) for name in same] for each in (job, full[job_id]))
            assert mine == theirs, f"job-{job_id}"
            if job.status not in TERMINAL:
                assert set(job.after) <= set(tidy), f"job-{job_id} has lost a predecessor"
        for job_id in self.removed:
            last = max(each.id for each in full.values() if each.chain == full[job_id].chain)
            assert last in self.removed, "a chain goes as a whole"
            assert full[job_id].status in TERMINAL
        assert self.tidy.missed() == self.full.missed(), "the same jobs could start now"

    def close(self) -> None:
        self.reference.close()


ACTS_AND_WEIGHTS = (
    (Twins.submit, 6),
    (Twins.start, 5),
    (Twins.end, 6),
    (Twins.cancel, 1),
    (Twins.retry, 1),
    (Twins.collect, 4),
    (Twins.later, 2),
)


@pytest.mark.req("V97")
@pytest.mark.parametrize("seed", range(STORIES))
def test_no_job_fares_differently_because_others_were_removed(  # fault H11
    store: Store, clock: FakeClock, tmp_path: Path, seed: int
) -> None:
    twins = Twins(store, clock, tmp_path, seed)
    acts, weights = zip(*ACTS_AND_WEIGHTS, strict=True)
    try:
        for _ in range(ACTS):
            twins.chance.choices(acts, weights)[0](twins)
            twins.check()
        for _ in range(ACTS):  # to the end of all that can end
            twins.start()
            if not twins.live():
                break
            twins.end()
            twins.collect()
            twins.check()
        assert twins.removed, "the story is worth telling"
    finally:
        twins.close()
