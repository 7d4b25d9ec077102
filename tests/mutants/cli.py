"""Mistakes in what a command takes for granted."""

from mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "cli/run.py:run",
        "check_run(context, manifest)",
        "pass",
        "tests/cli/test_cli_run.py::test_a_check_writes_nothing",
    ),
    Mutant(
        "cli/jobs/schedule.py:TOP",
        "10",
        "20",
        "tests/cli/test_cli_watch_defaults.py",
    ),
    Mutant(
        "cli/jobs/schedule.py:INTERVAL_MS",
        "500",
        "1000",
        "tests/cli/test_cli_watch_defaults.py",
    ),
)
