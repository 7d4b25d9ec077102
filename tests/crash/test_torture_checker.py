"""The torture's checker on small made-up evidence: green as it is, red after each falsification."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import torture
from torture.checker import CHECKS, Evidence, check, red
from torture.database import ClaimRow, EventRow, JobRow, Rows, RunRow
from torture.ledger import Line, read
from torture.processes import Process
from torture.records import Cancel, Files, Gone, Kill, Planned

TOKENS = {job: f"{job:032x}" for job in range(1, 10)}


class Made(NamedTuple):
    """job-1 succeeds under a lock; job-2 comes after it, fails with 3 and is retried as job-3;
    job-4 wants the lock, too, loses its supervisor and has no retry; job-5 is cancelled waiting."""

    jobs: dict[int, JobRow]
    runs: dict[int, RunRow]
    claims: list[ClaimRow]
    outcomes: set[str]
    lines: list[Line]
    planned: list[Planned]
    cancels: list[Cancel]
    kills: list[Kill]
    gone: list[Gone]
    survivors: list[Process]
    held_locks: list[tuple[str, int]]

    def evidence(self) -> Evidence:
        rows = Rows(
            self.jobs,
            self.runs,
            self.claims,
            self.outcomes,
            [EventRow(1, "submitted", "x", "{}")],
            self.held_locks,
            [],
        )
        return Evidence(
            rows,
            self.lines,
            planned=self.planned,
            cancels=self.cancels,
            kills=self.kills,
            gone=self.gone,
            survivors=self.survivors,
        )


def line(at: int, word: str, job: int, number: int = 0) -> Line:
    return Line(at, word, job, TOKENS[job], 100 + job, number)


def made() -> Made:
    unknown = "Scheduler crash recovery: outcome_unknown"
    jobs = [
        JobRow(1, "succeeded", 1, None, 1, 0, None, None),
        JobRow(2, "failed", 2, None, 1, 0, None, None),
        JobRow(3, "succeeded", 2, 2, 2, 1, None, None),
        JobRow(4, "failed", 4, None, 1, 0, None, None),
        JobRow(5, "cancelled", 5, None, 1, 0, None, 7),
    ]
    runs = [
        RunRow(1, "COMPLETED", 0, None, 0, 10),
        RunRow(2, "FAILED", 3, "exit code 3", 0, 10),
        RunRow(3, "COMPLETED", 0, None, 0, 10),
        RunRow(4, "FAILED", None, unknown, 0, 10),
    ]
    return Made(
        {job.id: job for job in jobs},
        {run.job: run for run in runs},
        [ClaimRow(TOKENS[job], job, "gone") for job in (1, 2, 3, 4)],
        {TOKENS[job] for job in (1, 2, 3)},
        [
            line(0, "start", 1),
            line(10, "beat", 1),
            line(20, "end", 1),
            line(30, "start", 2, 3),
            line(40, "start", 4),
            line(50, "end", 2, 3),
            line(60, "start", 3),
            line(70, "end", 3),
        ],
        [
            Planned(1, "plain", (0,), locks=(("red", "exclusive"),)),
            Planned(2, "plain", (3, 0), after=(1,), retries=2),
            Planned(4, "plain", (0,), locks=(("red", "shared"),)),
            Planned(5, "plain", (0,)),
        ],
        [Cancel(5, 5, False)],
        [
            Kill(1, "one", "worker", 9, None, 15, living=(TOKENS[1],)),
            Kill(2, "one", "supervisor", 8, TOKENS[4], 45),
        ],
        [Gone(25, (TOKENS[1],))],
        [],
        [],
    )


def job(given: Made, number: int, **fields: Any) -> None:
    given.jobs[number] = given.jobs[number]._replace(**fields)


def run(given: Made, number: int, **fields: Any) -> None:
    given.runs[number] = given.runs[number]._replace(**fields)


def planned(given: Made, place: int, **fields: Any) -> None:
    given.planned[place] = given.planned[place]._replace(**fields)


Falsify = Callable[[Made], object]
CASES: list[tuple[str, str, Falsify]] = [
    ("a job is gone", "nothing acknowledged is lost", lambda m: m.jobs.pop(5)),
    ("a job still waits", "every job ends", lambda m: job(m, 5, status="queued")),
    ("a chain of nobody", "nothing is invented", lambda m: m.planned.pop(3)),
    (
        "a line of an unknown claim",
        "nothing is invented",
        lambda m: m.lines.append(Line(80, "beat", 1, TOKENS[9], 1, 0)),
    ),
    ("a second start", "nothing runs twice", lambda m: m.lines.append(line(80, "start", 1))),
    ("success without an end", "nothing runs twice", lambda m: m.lines.pop(7)),
    ("another exit code", "every outcome is true", lambda m: run(m, 2, exit_code=4)),
    ("not the planned code", "every outcome is true", lambda m: planned(m, 1, codes=(4, 0))),
    ("unknown, but nothing was killed", "every outcome is true", lambda m: m.kills.pop()),
    (
        "killed by nobody",
        "every outcome is true",
        lambda m: run(m, 4, error="killed by SIGKILL"),
    ),
    (
        "killed, but said to have succeeded",
        "every outcome is true",
        lambda m: m.kills.append(Kill(3, "one", "child", 7, TOKENS[1], 90)),
    ),
    (
        "timed out without a timeout",
        "every outcome is true",
        lambda m: run(m, 2, exit_code=124, error="timed out after 1 s"),
    ),
    ("cancelled by itself", "every outcome is true", lambda m: job(m, 2, status="cancelled")),
    (
        "a holder that still writes",
        "no two hold a lock",
        lambda m: m.lines.append(line(80, "stray", 1)),
    ),
    ("before its predecessor", "dependents wait", lambda m: m.lines.insert(0, line(5, "beat", 2))),
    (
        "blocked for nothing",
        "dependents wait",
        lambda m: (m.planned.append(Planned(6, "plain", (0,), after=(1,))), job_6(m)),
    ),
    ("a cancelled job ran", "cancels hold", lambda m: m.lines.append(line(80, "start", 5))),
    ("a cancel of nobody", "cancels hold", lambda m: m.cancels.pop()),
    ("a chain goes on", "cancels hold", lambda m: m.cancels.append(Cancel(2, 2, True))),
    ("a retry of a success", "retries follow failures", lambda m: job(m, 2, status="succeeded")),
    ("a retry too many", "retries follow failures", lambda m: planned(m, 1, retries=0)),
    ("a retry too few", "retries follow failures", lambda m: planned(m, 2, retries=1)),
    ("a wrong attempt", "retries follow failures", lambda m: job(m, 3, attempt=3)),
    (
        "a process is left",
        "nothing survives",
        lambda m: m.survivors.append(Process(5, 5, 1, "descendant", TOKENS[1])),
    ),
    ("a line of a tree that was gone", "nothing survives", lambda m: gone_at(m, 5)),
    (
        "a line after the supervisor's death",
        "nothing survives",
        lambda m: m.lines.append(line(80, "beat", 4)),
    ),
    (
        "a command outlives its supervisor",
        "nothing survives",
        lambda m: m.kills.append(Kill(3, "one", "supervisor", 7, TOKENS[4], 90, outlived=True)),
    ),
    (
        "a living job's outcome is not taken in",
        "living jobs are readopted",
        lambda m: m.outcomes.discard(TOKENS[1]),
    ),
    ("a living claim is forgotten", "living jobs are readopted", lambda m: m.claims.pop(0)),
    ("a live claim", "nothing is left over", lambda m: claim(m, 0, "live")),
    ("two claims", "nothing is left over", lambda m: m.claims.append(ClaimRow("f", 1, "gone"))),
    ("a lock", "nothing is left over", lambda m: m.held_locks.append(("red", 1))),
    ("an open run", "nothing is left over", lambda m: run(m, 1, status=None)),
    ("no run", "nothing is left over", lambda m: m.runs.pop(1)),
]


def job_6(given: Made) -> None:
    given.jobs[6] = JobRow(6, "blocked_by_dependency", 6, None, 1, 0, None, None)


def gone_at(given: Made, offset: int) -> None:
    given.gone[0] = given.gone[0]._replace(offset=offset)


def claim(given: Made, place: int, state: str) -> None:
    given.claims[place] = given.claims[place]._replace(state=state)


def test_the_evidence_is_green_as_it_is() -> None:
    results = check(made().evidence())
    assert red(results) == {}
    assert all(result.looked_at for result in results.values())


@pytest.mark.parametrize(
    ("name", "falsify"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_a_falsification_is_found(name: str, falsify: Falsify) -> None:
    given = made()
    falsify(given)
    assert name in red(check(given.evidence()))


def test_every_check_is_shown_to_fail() -> None:
    assert {name for _, name, _ in CASES} == {each.__name__.replace("_", " ") for each in CHECKS}


def test_the_checker_knows_nothing_of_the_program() -> None:
    folder = Path(torture.__path__[0])
    pending, seen = ["checker"], set()
    while pending:
        name = pending.pop()
        seen.add(name)
        for node in ast.walk(ast.parse((folder / f"{name}.py").read_text())):
            imported = []
            if isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                imported = [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
            for each in imported:
                assert each.split(".")[0] != "headway", f"{name} imports {each}"
                own = each.removeprefix("torture.")
                if (folder / f"{own}.py").exists() and own not in seen:
                    pending.append(own)
    assert seen == {"checker", "database", "ledger", "processes", "records"}


def test_a_torn_line_counts_for_nothing(tmp_path: Path) -> None:
    whole = f"@start job-1 {TOKENS[1]} 5 0;\n"
    path = tmp_path / "ledger"
    path.write_text(whole + whole[:20] + whole)
    found = read(path)
    assert [each.at for each in found.lines] == [0, len(whole) + 20]
    assert found.torn == 20


def test_what_is_written_down_is_read_back(tmp_path: Path) -> None:
    given, files = made(), Files(tmp_path)
    files.acknowledged(given.planned)
    files.killed(given.kills)
    for cancel in given.cancels:
        files.cancelled(cancel)
    for gone in given.gone:
        files.gone(gone)
    assert files.read() == (given.planned, given.cancels, given.kills, given.gone)
    assert files.strikes() == 2
