"""Mistakes in what the system is asked to keep."""

from mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "admin/service/plan.py:_WORDS",
        '"--no-autostart"',
        '"--json"',
        "tests/admin/test_service_commands.py",
    ),
    Mutant(
        "admin/service/plan.py:make_plan",
        '"-web" if what == SERVER else ""',
        '""',
        "tests/admin/test_service_commands.py",
    ),
)
