"""The judge: reads the ledger, the torturer's own records and the database, and believes no one.

It imports nothing of Headway. Each check is one function from the evidence to how many things it
looked at and what is wrong with some of them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from torture import database, ledger, processes
from torture.database import ClaimRow, JobRow, Rows
from torture.ledger import Line
from torture.records import Cancel, Files, Gone, Kill, Planned

TERMINAL = frozenset({"succeeded", "failed", "skipped", "cancelled", "blocked_by_dependency"})
CRASH = "Scheduler crash recovery"
UNKNOWN = f"{CRASH}: outcome_unknown"
KILLED = "killed by SIGKILL"
CANCELLED_EXIT = 143
TIMED_OUT_EXIT = 124
# A supervisor writes by its host's clock. On a server a run begins by the server's, and how the two
# stand to each other is known to a few milliseconds.
CLOCKS_AGREE = 5_000
END = 1 << 62


class Violation(NamedTuple):
    text: str
    job: int | None = None
    evidence: tuple[str, ...] = ()


class Result(NamedTuple):
    """What one check looked at, and what it found wrong."""

    looked_at: int
    violations: list[Violation]


class Evidence:
    """Everything that is known, ordered for the checks."""

    def __init__(
        self,
        rows: Rows,
        lines: Iterable[Line],
        *,
        planned: Iterable[Planned] = (),
        cancels: Iterable[Cancel] = (),
        kills: Iterable[Kill] = (),
        gone: Iterable[Gone] = (),
        survivors: Iterable[processes.Process] = (),
    ) -> None:
        self.rows = rows
        self.lines = list(lines)
        self.planned = {each.id: each for each in planned}
        self.cancels = list(cancels)
        self.kills = list(kills)
        self.gone = list(gone)
        self.survivors = list(survivors)

    @cached_property
    def lines_of(self) -> dict[int, list[Line]]:
        found: dict[int, list[Line]] = defaultdict(list)
        for line in self.lines:
            found[line.job].append(line)
        return found

    @cached_property
    def chains(self) -> dict[int, list[JobRow]]:
        found: dict[int, list[JobRow]] = defaultdict(list)
        for job in self.rows.jobs.values():
            found[job.chain].append(job)
        return found

    @cached_property
    def claim_of(self) -> dict[int, ClaimRow]:
        return {claim.job: claim for claim in self.rows.claims}

    @cached_property
    def killed(self) -> dict[str, set[str]]:
        """The kinds of process that were killed, by claim."""
        found: dict[str, set[str]] = defaultdict(set)
        for kill in self.kills:
            if kill.token:
                found[kill.token].add(kill.kind)
        return found

    def killed_of(self, job: int) -> set[str]:
        claim = self.claim_of.get(job)
        return self.killed.get(claim.token, set()) if claim else set()

    def words(self, job: int, word: str) -> list[Line]:
        return [line for line in self.lines_of.get(job, []) if line.word == word]

    def about(self, job: int) -> tuple[str, ...]:
        """All that is known about one job, for a person to read."""
        lines = self.lines_of.get(job, [])
        claims = [claim for claim in self.rows.claims if claim.job == job]
        tokens = {line.token for line in lines} | {claim.token for claim in claims}
        shown = [line for line in lines if line.word != "beat"][:8] + lines[-2:]
        return (
            str(self.rows.jobs.get(job)),
            str(self.rows.runs.get(job)),
            *(str(claim) for claim in claims),
            *(str(line) for line in dict.fromkeys(shown)),
            *(str(kill) for kill in self.kills if kill.token in tokens),
            *(str(event) for event in self.rows.events if event.job == job),
        )

    def wrong(self, job: int, text: str) -> Violation:
        return Violation(f"job-{job}: {text}", job, self.about(job))


def gather(folder: Path, url: str) -> Evidence:
    """Read everything there is, the processes included."""
    files = Files(folder)
    records = files.read()
    with database.opened(url) as select:
        rows = database.read(select)
    return Evidence(
        rows,
        ledger.read(files.ledger).lines,
        planned=records.planned,
        cancels=records.cancels,
        kills=records.kills,
        gone=records.gone,
        survivors=processes.scan(str(folder)),
    )


def nothing_acknowledged_is_lost(given: Evidence) -> Result:
    lost = [
        Violation(f"job-{job} was acknowledged and is not in the store")
        for job in given.planned
        if job not in given.rows.jobs
    ]
    return Result(len(given.planned), lost)


def every_job_ends(given: Evidence) -> Result:
    unended = [
        given.wrong(job.id, f"is {job.status}")
        for job in given.rows.jobs.values()
        if job.status not in TERMINAL
    ]
    return Result(len(given.rows.jobs), unended)


def nothing_is_invented(given: Evidence) -> Result:
    """Every row continues an acknowledged job, every line belongs to the claim of its job."""
    wrong = [
        given.wrong(job.id, "nobody submitted its chain")
        for job in given.rows.jobs.values()
        if job.chain not in given.planned
    ]
    for job, lines in given.lines_of.items():
        claim = given.claim_of.get(job)
        if claim is None or {line.token for line in lines} != {claim.token}:
            wrong.append(given.wrong(job, "ran under a claim that the store does not have"))
    return Result(len(given.rows.jobs) + len(given.lines_of), wrong)


def nothing_runs_twice(given: Evidence) -> Result:
    wrong = []
    for job in given.rows.jobs.values():
        starts, ends = given.words(job.id, "start"), given.words(job.id, "end")
        if len(starts) > 1 or len(ends) > 1:
            wrong.append(given.wrong(job.id, f"{len(starts)} starts and {len(ends)} ends"))
        elif job.status == "succeeded" and not (starts and ends):
            wrong.append(given.wrong(job.id, "succeeded without having run to its end"))
        elif job.status == "blocked_by_dependency" and starts:
            wrong.append(given.wrong(job.id, "ran although it is blocked"))
    return Result(len(given.rows.jobs), wrong)


def every_outcome_is_true(given: Evidence) -> Result:
    """The recorded end is the one in the ledger, or one that a logged kill explains."""
    wrong = []
    judged = [job for job in given.rows.jobs.values() if job.id in given.rows.runs]
    for job in judged:
        objection = _objection(given, job)
        if objection:
            wrong.append(given.wrong(job.id, objection))
    return Result(len(judged), wrong)


def _objection(given: Evidence, job: JobRow) -> str | None:
    run = given.rows.runs[job.id]
    plan = given.planned.get(job.chain)
    if plan is None:
        return None  # told by another check
    ends = given.words(job.id, "end")
    killed = given.killed_of(job.id)
    error = run.error or ""
    if job.status == "cancelled":
        known = job.cancel_requested_at is not None
        return None if known and run.exit_code == CANCELLED_EXIT else f"cancelled: {run}"
    if error.startswith("timed out"):
        if plan.timeout is None or run.exit_code != TIMED_OUT_EXIT or job.status != "failed":
            return "timed out, which nothing explains"
        took = (run.finished_at or 0) - run.started_at
        return (
            None if took >= plan.timeout * 1e6 - CLOCKS_AGREE else f"timed out after only {took} us"
        )
    if error == UNKNOWN:
        return None if "supervisor" in killed else "outcome unknown, and no supervisor was killed"
    if error == KILLED:
        known = bool(killed & {"child", "fork"}) and run.exit_code is None
        return None if known else "killed, which nothing explains"
    if "child" in killed and "supervisor" not in killed:
        return f"its command was killed, but: {error or 'succeeded'}"
    if len(ends) != 1 or ends[0].number != run.exit_code:
        return f"exit code {run.exit_code}, not that of the ledger"
    if run.exit_code != plan.code(job.attempt):
        return f"exit code {run.exit_code}, not the planned {plan.code(job.attempt)}"
    wanted = "succeeded" if run.exit_code == 0 else "failed"
    return None if job.status == wanted else f"{job.status} with exit code {run.exit_code}"


def no_two_hold_a_lock(given: Evidence) -> Result:
    """By the first and the last line that any process of a job wrote."""
    spans: dict[str, list[tuple[int, int, int, str]]] = defaultdict(list)
    for job, lines in given.lines_of.items():
        row = given.rows.jobs.get(job)
        plan = given.planned.get(row.chain) if row else None
        for key, mode in plan.locks if plan else ():
            spans[key].append((lines[0].at, lines[-1].at, job, mode))
    wrong = []
    for key, held in spans.items():
        open_spans: list[tuple[int, int, int, str]] = []
        for span in sorted(held):
            open_spans = [each for each in open_spans if each[1] > span[0]]
            for other in open_spans:
                if "exclusive" in (span[3], other[3]):
                    text = f"has {key} ({span[3]}) while job-{other[2]} has it ({other[3]})"
                    found = given.wrong(span[2], text)
                    wrong.append(found._replace(evidence=found.evidence + given.about(other[2])))
            open_spans.append(span)
    return Result(sum(len(held) for held in spans.values()), wrong)


def dependents_wait(given: Evidence) -> Result:
    wrong = []
    looked_at = 0
    for plan in given.planned.values():
        for before in plan.after:
            chain = given.chains.get(before, [])
            last = chain[-1] if chain else None
            ends = given.words(last.id, "end") if last else []
            ready_at = ends[0].at if last and last.status == "succeeded" and ends else END
            for job in given.chains.get(plan.id, []):
                looked_at += 1
                if any(line.at < ready_at for line in given.lines_of.get(job.id, [])):
                    wrong.append(given.wrong(job.id, f"ran before job-{before} had succeeded"))
        for job in given.chains.get(plan.id, []):
            if job.status == "blocked_by_dependency" and not _has_failed(given, plan.after):
                wrong.append(given.wrong(job.id, "blocked, but all that it waits for succeeded"))
    return Result(looked_at, wrong)


def _has_failed(given: Evidence, chains: Iterable[int]) -> bool:
    return any(given.chains[each][-1].status != "succeeded" for each in chains)


def cancels_hold(given: Evidence) -> Result:
    """What waited never starts; what ran is not followed by a retry."""
    wrong = []
    for cancel in given.cancels:
        row = given.rows.jobs.get(cancel.job)
        if row is None:
            continue  # told by another check
        if not cancel.was_running and (row.status != "cancelled" or cancel.job in given.lines_of):
            wrong.append(given.wrong(cancel.job, "was cancelled while it waited"))
        if given.chains[row.chain][-1].id != cancel.job:
            wrong.append(given.wrong(cancel.job, "was cancelled, and its chain went on"))
    asked = {cancel.job for cancel in given.cancels}
    for job in given.rows.jobs.values():
        if job.status == "cancelled" and job.id not in asked:
            wrong.append(given.wrong(job.id, "nobody cancelled it"))
    return Result(len(given.cancels), wrong)


def retries_follow_failures(given: Evidence) -> Result:
    """A chain is one row after another: failed ones, as many as are allowed, then the last."""
    wrong = []
    cancelled = {cancel.job for cancel in given.cancels}
    for first, chain in given.chains.items():
        plan = given.planned.get(first)
        if plan is None:
            continue
        for before, job in zip([None, *chain], chain, strict=False):
            fits = job.retry_of == (before.id if before else None)
            if not fits or job.attempt != (before.attempt + 1 if before else 1):
                wrong.append(given.wrong(job.id, "does not continue its chain"))
            if before and before.status != "failed":
                wrong.append(given.wrong(job.id, f"retries a job that is {before.status}"))
        last = chain[-1]
        if len(chain) > plan.retries + 1:
            wrong.append(given.wrong(last.id, f"{len(chain)} attempts, {plan.retries} retries"))
        due = last.status == "failed" and len(chain) < plan.retries + 1
        if due and last.id not in cancelled:
            wrong.append(given.wrong(last.id, "failed with a retry left"))
    return Result(len(given.chains), wrong)


def nothing_survives(given: Evidence) -> Result:
    """No process at the end; no line of a tree that was gone, or of a command whose supervisor
    was dead."""
    wrong = [
        Violation(f"process {each.pid} ({each.kind}) is still there", evidence=(str(each),))
        for each in given.survivors
    ]
    wrong += [
        Violation(f"a command outlived its supervisor: {kill}")
        for kill in given.kills
        if kill.outlived
    ]
    limits: dict[str, tuple[int, str]] = {}
    for sample in given.gone:
        for token in sample.tokens:
            limits.setdefault(token, (sample.offset, "after its tree was called gone"))
    orphaned = {
        kill.token: kill.offset for kill in given.kills if kill.kind == "supervisor" and kill.token
    }
    for line in given.lines:
        offset, why = limits.get(line.token, (END, ""))
        if line.word != "stray" and orphaned.get(line.token, END) < offset:
            offset, why = orphaned[line.token], "after its supervisor had died"
        if line.at >= offset:
            wrong.append(given.wrong(line.job, f"{line.word} {why}"))
    return Result(len(given.lines), wrong)


def living_jobs_are_readopted(given: Evidence) -> Result:
    """Whoever lived when a worker or a parent was killed, and was not killed itself, has its true
    outcome taken in by a later worker."""
    living = {token for kill in given.kills for token in kill.living}
    job_of = {claim.token: claim.job for claim in given.rows.claims}
    wrong = []
    for token in sorted(living):
        if "supervisor" in given.killed.get(token, ()):
            continue
        if token not in job_of:
            wrong.append(Violation(f"claim {token} was alive and has been forgotten"))
        elif token not in given.rows.outcomes:
            wrong.append(given.wrong(job_of[token], "was alive, and its outcome was not taken in"))
    return Result(len(living), wrong)


def nothing_is_left_over(given: Evidence) -> Result:
    """No claim, lock or loan stays, and each job has at most one of each, and one closed run."""
    rows = given.rows
    wrong = [
        given.wrong(claim.job, f"its claim is still {claim.state}")
        for claim in rows.claims
        if claim.state != "gone"
    ]
    wrong += [given.wrong(job, f"still holds the lock {key}") for key, job in rows.held_locks]
    wrong += [given.wrong(job, "still lends its slot") for job in rows.lendings]
    wrong += [
        given.wrong(run.job, "its run is open") for run in rows.runs.values() if not run.status
    ]
    counts: dict[int, int] = defaultdict(int)
    for claim in rows.claims:
        counts[claim.job] += 1
    wrong += [given.wrong(job, f"{count} claims") for job, count in counts.items() if count > 1]
    executed = {"succeeded", "failed", "skipped"}
    for job in rows.jobs.values():
        if job.status in executed and (job.id not in rows.runs or job.id not in counts):
            wrong.append(given.wrong(job.id, f"is {job.status} without a run and a claim"))
        if job.status == "blocked_by_dependency" and job.id in rows.runs:
            wrong.append(given.wrong(job.id, "has a run and is blocked"))
    return Result(len(rows.claims) + len(rows.runs), wrong)


CHECKS: tuple[Callable[[Evidence], Result], ...] = (
    nothing_acknowledged_is_lost,
    every_job_ends,
    nothing_is_invented,
    nothing_runs_twice,
    every_outcome_is_true,
    no_two_hold_a_lock,
    dependents_wait,
    cancels_hold,
    retries_follow_failures,
    nothing_survives,
    living_jobs_are_readopted,
    nothing_is_left_over,
)


def check(given: Evidence) -> dict[str, Result]:
    return {each.__name__.replace("_", " "): each(given) for each in CHECKS}


def red(results: dict[str, Result]) -> dict[str, list[str]]:
    """The checks that found something, and what."""
    return {
        name: [violation.text for violation in result.violations]
        for name, result in results.items()
        if result.violations
    }
