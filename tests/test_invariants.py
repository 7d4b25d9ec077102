"""Each invariant is tested alone, in the whole and against its violation, and is documented.

A row names the tests, so that renaming or dropping one without a successor is seen here.
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# invariant: (unit, integration, error case, words in docs/)
INVARIANTS = {
    "params are frozen once the job runs": (
        "test_params_are_frozen_while_the_job_runs",
        "test_params_cannot_change_once_the_job_runs",
        "test_params_cannot_change_once_the_job_runs",
        "Cannot modify params",
    ),
    "a run is an audit record": (
        "test_a_run_may_be_completed_and_then_is_final",
        "test_a_late_outcome_is_kept_as_evidence_and_changes_nothing",
        "test_a_run_is_an_audit_record",
        "audit record",
    ),
    "one running job per slot": (
        "test_no_more_start_than_there_are_slots",
        "test_the_cap_bounds_what_runs_and_direct_mode_lifts_it",
        "test_a_slot_has_one_running_job",
        "one running job per slot",
    ),
    "dispatch follows priority, position, age": (
        "test_jobs_are_decided_in_dispatch_order",
        "test_dispatch_is_by_priority_then_position_then_age",
        "test_jobs_after_the_last_permitted_start_were_not_looked_at",
        "dispatch order",
    ),
    "one run per job, a retry is a new job": (
        "test_the_next_in_a_chain_is_the_same_work_with_a_fresh_life",
        "test_three_retries_make_four_executions_and_then_no_more",
        "test_a_job_has_one_run",
        "one run per job",
    ),
    "a retry waits its time, and there is a last one": (
        "test_three_retries_make_four_executions_10_20_and_40_seconds_apart",
        "test_a_template_that_always_fails_is_executed_four_times_10_20_and_40_seconds_apart",
        "test_a_retry_does_not_start_before_its_time",
        "up to four executions",
    ),
    "a template never changes a job that exists": (
        "test_a_template_is_kept_and_another_takes_its_place",
        "test_changing_or_archiving_a_template_changes_no_job",
        "test_an_archived_template_makes_no_jobs_by_any_way",
        "Jobs have copies",
    ),
    "terminal is final": (
        "test_no_move_leads_out_of_a_terminal_status",
        "test_a_retry_is_refused_after_success",
        "test_a_terminal_row_does_not_change",
        "final",
    ),
    "an exclusive lock has one holder": (
        "test_no_exclusive_key_has_two_holders",
        "test_many_waiters_on_one_lock_all_get_it_once_each",
        "test_a_lock_that_the_waiter_holds_makes_the_waiting_fail",
        "exclusive",
    ),
    "nothing acknowledged is lost": (
        "test_no_acknowledged_job_is_lost_wherever_the_power_goes",
        "test_killing_the_worker_loses_nothing_and_repeats_nothing",
        "test_the_recording_would_show_a_store_that_does_not_sync",
        "synchronous=FULL",
    ),
}


@pytest.fixture(scope="module")
def tests() -> str:
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return "\n".join(file.read_text() for file in files if file != Path(__file__))


@pytest.fixture(scope="module")
def docs() -> str:
    return " ".join(" ".join(file.read_text().split()) for file in (ROOT / "docs").rglob("*.md"))


@pytest.mark.req("D28")
@pytest.mark.parametrize("invariant", INVARIANTS)
def test_an_invariant_has_its_tests_and_its_words(invariant: str, tests: str, docs: str) -> None:
    *named, words = INVARIANTS[invariant]
    assert [name for name in named if f"def {name}(" not in tests] == []
    assert words in docs
