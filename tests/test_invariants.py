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
    "a group has ended when all of its members have": (
        "test_a_group_is_terminal_only_when_it_is_closed_and_all_members_are",
        "test_a_group_waits_for_the_retries_of_a_member",
        "test_a_closed_group_takes_no_one",
        "When all members of a closed group have ended",
    ),
    "a direct call has the next slot, and is no job": (
        "test_the_door_knows_the_first_that_waits_and_counts_those_with_a_slot",
        "test_with_the_slot_busy_it_waits_runs_next_and_leaves_the_queue_as_it_is",
        "test_one_that_nobody_renews_frees_the_queue_right_after_its_time",
        "It is no job",
    ),
    "a place is kept until someone is moved": (
        "test_any_moves_and_inserts_give_the_order_of_a_plain_list",
        "test_random_moves_give_the_order_of_a_plain_list",
        "test_what_runs_or_has_ended_has_no_place",
        "put before others",
    ),
    "no limit is exceeded on any path": (
        "test_a_lender_lends_what_it_holds_and_not_what_two_have_already",
        "test_no_limit_is_exceeded_on_any_path_on_a_file",
        "test_a_path_around_the_limits_is_found_out",
        "scheduler.limits.resource",
    ),
    "a subject has one open job": (
        "test_the_open_job_of_a_subject_is_found",
        "test_many_who_sling_at_once_make_one_job",
        "test_an_open_job_is_kept_whatever_the_target_and_the_force",
        "is no job open for it",
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
