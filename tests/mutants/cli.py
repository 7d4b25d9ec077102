"""Mistakes in what a command takes for granted."""

from mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "cli/run.py:_check",
        "check_run(context, manifest)",
        "pass",
        "tests/cli/test_cli_run.py::test_a_check_writes_nothing",
    ),
    Mutant(
        "cli/panes/model.py:_answer",
        "if not seen_to_the_end(question, size):",
        "if False:",
        "tests/cli/test_panes_model.py::test_a_yes_counts_only_when_all_of_it_was_seen",
    ),
    Mutant(
        "cli/panes/model.py:settled",
        "if was.pane is not Pane.NEEDS_YOU:",
        "if True:",
        "tests/cli/test_panes_model.py::test_the_selection_stays_on_what_is_there",
    ),
    Mutant(
        "cli/panes/live.py:press_all",
        "if action is not None or (state.question is not None and asked is None):",
        "if action is not None:",
        "tests/cli/test_panes_model.py::test_a_key_in_one_burst_with_the_key_before_it_is_no_answer",
    ),
    Mutant(
        "cli/panes/actions.py:_do",
        "client.jobs.approve(job, revision=revision)",
        "client.jobs.approve(job)",
        "tests/cli/test_cli_top.py::test_what_was_edited_since_it_was_asked_is_not_approved",
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
