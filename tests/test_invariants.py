"""Each invariant is tested alone, in the whole and against its violation, and is documented.

A row names the tests, so that renaming or dropping one without a successor is seen here, and so is
an invariant that is left out.
"""

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
ALONE = {"core", "store", "schedules/timing", "."}
IN_THE_WHOLE = {"jobs", "schedules", "workitems", "worker", "crash", "cli", "functions", "store"}


class Proof(NamedTuple):
    """The requirement that it comes from, if any, the three tests, and where it is told."""

    requirement: str | None
    alone: str
    in_the_whole: str
    violated: str
    page: str
    words: str


INVARIANTS = {
    "params are frozen once the job runs": Proof(
        "D1",
        "test_params_are_frozen_while_the_job_runs",
        "test_params_cannot_change_once_the_job_runs",
        "test_a_running_and_an_ended_job_cannot_be_changed",
        "guarantees.md",
        "Cannot modify params",
    ),
    "a run is an audit record": Proof(
        "D2",
        "test_a_run_may_be_completed_and_then_is_final",
        "test_a_late_outcome_is_kept_as_evidence_and_changes_nothing",
        "test_a_run_is_an_audit_record",
        "guarantees.md",
        "a change of a run, which is an audit record",
    ),
    "one running job per slot": Proof(
        "D3",
        "test_no_more_start_than_there_are_slots",
        "test_the_cap_bounds_what_runs_and_direct_mode_lifts_it",
        "test_a_slot_has_one_running_job",
        "guarantees.md",
        "more than one running job per slot",
    ),
    "dispatch follows priority, position, age": Proof(
        "D4",
        "test_jobs_are_decided_in_dispatch_order",
        "test_dispatch_is_by_priority_then_position_then_age",
        "test_jobs_after_the_last_permitted_start_were_not_looked_at",
        "concepts.md",
        "earlier or was put before others",
    ),
    "one run per job, a retry is a new job": Proof(
        "D7",
        "test_each_field_of_a_retry_is_the_same_or_fresh_or_its_own",
        "test_three_retries_make_four_executions_and_then_no_more",
        "test_a_job_has_one_run",
        "guarantees.md",
        "more than one run per job",
    ),
    "a retry waits its time, and there is a last one": Proof(
        "D13",
        "test_three_retries_make_four_executions_10_20_and_40_seconds_apart",
        "test_a_template_that_always_fails_is_executed_four_times_10_20_and_40_seconds_apart",
        "test_a_retry_does_not_start_before_its_time",
        "retries.md",
        "up to four executions",
    ),
    "a template never changes a job that exists": Proof(
        "D5",
        "test_a_template_is_kept_and_another_takes_its_place",
        "test_changing_or_archiving_a_template_changes_no_job",
        "test_an_archived_template_makes_no_jobs_by_any_way",
        "templates.md",
        "Jobs have copies",
    ),
    "terminal is final": Proof(
        None,
        "test_no_move_leads_out_of_a_terminal_status",
        "test_a_retry_is_refused_after_success",
        "test_a_terminal_row_does_not_change",
        "concepts.md",
        "Terminal is final: no write leaves a terminal status",
    ),
    "an exclusive lock has one holder": Proof(
        None,
        "test_no_exclusive_key_has_two_holders",
        "test_many_waiters_on_one_lock_all_get_it_once_each",
        "test_a_lock_that_the_waiter_holds_makes_the_waiting_fail",
        "concepts.md",
        "`--lock KEY` is exclusive",
    ),
    "a group has ended when all of its members have": Proof(
        "D6",
        "test_a_group_is_terminal_only_when_it_is_closed_and_all_members_are",
        "test_a_group_waits_for_the_retries_of_a_member",
        "test_a_closed_group_takes_no_one",
        "groups.md",
        "When all members of a closed group have ended",
    ),
    "a direct call has the next slot, and is no job": Proof(
        "D10",
        "test_capacity_knows_the_first_that_waits_and_counts_those_with_a_slot",
        "test_with_the_slot_busy_it_waits_runs_next_and_leaves_the_queue_as_it_is",
        "test_one_that_nobody_renews_frees_the_queue_right_after_its_time",
        "direct.md",
        "It is no job",
    ),
    "a place is kept until someone is moved": Proof(
        "D11",
        "test_any_moves_and_inserts_give_the_order_of_a_plain_list",
        "test_random_moves_give_the_order_of_a_plain_list",
        "test_what_runs_or_has_ended_has_no_place",
        "concepts.md",
        "put before others",
    ),
    "no limit is exceeded on any path": Proof(
        None,
        "test_a_lender_lends_what_it_holds_and_not_what_two_have_already",
        "test_no_limit_is_exceeded_on_any_path_on_a_file",
        "test_a_path_around_the_limits_is_found_out",
        "capacity.md",
        "scheduler.limits.resource",
    ),
    "a subject has one open job": Proof(
        None,
        "test_the_open_job_of_a_subject_is_found",
        "test_many_who_sling_at_once_make_one_job",
        "test_an_open_job_is_kept_whatever_the_target_and_the_force",
        "sling.md",
        "is no job or run open for it",
    ),
    "a run holds its subject alone": Proof(
        None,
        "test_a_run_holds_its_subject_for_its_jobs_until_it_ends",
        "test_many_who_sling_at_once_start_one_run",
        "test_two_open_jobs_or_two_open_runs_of_a_subject_cannot_be_stored",
        "sling.md",
        "until the run ends no other job or run about it can be started",
    ),
    "nothing acknowledged is lost": Proof(
        None,
        "test_no_acknowledged_job_is_lost_wherever_the_power_goes",
        "test_killing_the_worker_loses_nothing_and_repeats_nothing",
        "test_the_recording_would_show_a_store_that_does_not_sync",
        "guarantees.md",
        "synchronous=FULL",
    ),
    "a schedule never changes a job that it made": Proof(
        "D5",
        "test_one_that_was_changed_meanwhile_is_not_moved",
        "test_what_is_done_to_a_schedule_touches_no_job_that_it_made",
        "test_a_change_beside_a_firing_never_doubles_or_revives_a_slot",
        "schedules.md",
        "None of this touches jobs that were made",
    ),
    "the store is a file that writes ahead, shared and copied whole": Proof(
        "D8",
        "test_a_new_store_is_for_its_owner_alone_and_durable",
        "test_the_files_of_a_job_are_copies_and_the_store_alone_is_believed",
        "test_a_backup_is_a_whole_store_though_others_write",
        "guarantees.md",
        "SQLite, WAL, `synchronous=FULL`",
    ),
    "a slot of a schedule fires once": Proof(
        "D9",
        "test_slots_are_those_of_a_walk_over_the_minutes",
        "test_a_slot_becomes_a_job_that_is_stored_queued_with_a_position",
        "test_no_slot_is_recorded_twice",
        "guarantees.md",
        "Each slot of a schedule fires at most once",
    ),
    "a restart resumes the queue and fails orphans": Proof(
        "D14",
        "test_recovery_judges_by_the_evidence_alone_and_twice_the_same",
        "test_a_restart_fails_orphans_and_resumes_the_queue_in_its_order",
        "test_a_worker_dispatches_nothing_before_it_has_recovered",
        "guarantees.md",
        "A worker that comes up judges every claim that nobody settled",
    ),
    "a schedule is read on the clock of its zone": Proof(
        "D16",
        "test_a_daily_time_fires_on_the_day_after_the_clocks_went_forward",
        "test_another_zone_counts_for_the_next_slot_and_for_no_job_made_before",
        "test_what_cannot_be_is_refused_with_the_reason",
        "schedules.md",
        "on the clock of `--timezone` (UTC unless given)",
    ),
    "one job runs at a time unless told otherwise": Proof(
        "D17",
        "test_by_default_one_job_runs",
        "test_by_default_one_job_runs_at_a_time_and_the_loop_goes_on_after_a_failure",
        "test_lowering_the_cap_starts_nothing_until_under_it",
        "capacity.md",
        "`scheduler.max_active`, 1 by default",
    ),
    "a sequential group stops at a failure": Proof(
        "D18",
        "test_each_policy_decides_about_the_rest",
        "test_after_the_last_retry_the_rest_is_cancelled",
        "test_a_group_is_partial_when_a_template_has_used_up_its_retries",
        "groups.md",
        "is `cancelled`, without a run: `predecessor failed`",
    ),
}
# Invariants and decisions; those of the HTTP API and of webhooks come with these.
REQUIREMENTS = {f"D{number}" for number in range(1, 19)} - {"D12", "D15"}


class Found(NamedTuple):
    folder: str
    marks: str


@pytest.fixture(scope="module")
def tests() -> dict[str, Found]:
    """Every test that there is, by its name."""
    found: dict[str, Found] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        folder = str(file.parent.relative_to(ROOT / "tests"))
        for each in ast.parse(file.read_text()).body:
            if isinstance(each, ast.FunctionDef) and each.name.startswith("test_"):
                marks = " ".join(ast.unparse(mark) for mark in each.decorator_list)
                found[each.name] = Found(folder, marks)
    return found


@pytest.mark.req("D28")
@pytest.mark.parametrize("invariant", INVARIANTS)
def test_an_invariant_has_its_tests_and_its_words(invariant: str, tests: dict[str, Found]) -> None:
    proof = INVARIANTS[invariant]
    names = (proof.alone, proof.in_the_whole, proof.violated)
    assert [name for name in names if name not in tests] == []
    assert len(set(names)) == 3, "one test cannot show all of it"
    alone, whole, violated = (tests[name] for name in names)
    assert alone.folder in ALONE and whole.folder in IN_THE_WHOLE
    assert not any("mark.skip" in each.marks for each in (alone, whole, violated))
    if proof.requirement is not None:
        assert any(f"'{proof.requirement}'" in each.marks for each in (alone, whole, violated))
    page = " ".join((ROOT / "docs" / proof.page).read_text().split())
    assert proof.words in page


@pytest.mark.req("D28")
def test_no_invariant_is_without_its_row() -> None:
    assert {proof.requirement for proof in INVARIANTS.values()} >= REQUIREMENTS
