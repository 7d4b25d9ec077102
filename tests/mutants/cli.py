"""Mistakes in what a command takes for granted."""

from mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
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
