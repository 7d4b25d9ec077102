"""Mistakes in what is done with git."""

from mutants.mutant import Mutant

OPERATIONS = "tests/workflows/test_operations.py"
CRASHES = "tests/workflows/test_operation_crashes.py"

MUTANTS: tuple[Mutant, ...] = (
    # any commit of the operation counts as the one that is looked for
    Mutant(
        "integrations/git/layout.py:has_branch",
        "return any(line",
        "return False and any(line",
        "tests/workflows/test_git_runs.py::test_a_branch_that_git_has_packed_is_there",
    ),
    Mutant(
        "integrations/git/commits.py:OperationSignature.find",
        'f"--grep=^{TRAILER}: .* {self.key}$"',
        'f"--grep=^{TRAILER}: "',
        f"{OPERATIONS}::test_a_commit_is_found_by_its_key",
    ),
    # a branch moves wherever it is
    Mutant(
        "integrations/git/branches.py:move_branch",
        'args = ("update-ref", f"refs/heads/{branch}", new, old)',
        'args = ("update-ref", f"refs/heads/{branch}", new)',
        f"{OPERATIONS}::test_a_branch_that_moves_at_the_last_instant_is_left_where_it_is",
    ),
    # what a killed git has written is taken for someone's changes
    Mutant(
        "integrations/git/branches.py:complete_move",
        "repair(held, intent)",
        "pass",
        f"{CRASHES}::test_a_git_killed_while_it_turns_a_checkout_is_repaired",
    ),
    # a branch that was there before goes with its worktree
    Mutant(
        "integrations/git/cleanup.py:_drop_branch",
        "if record.keeps_branch:",
        "if False:",
        f"{OPERATIONS}::test_a_branch_that_existed_stays_when_the_worktree_goes",
    ),
)
