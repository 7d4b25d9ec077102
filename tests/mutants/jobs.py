"""Mistakes in what follows from an end or a retry: most are wake-ups that are missing."""

from mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "jobs/lifecycle.py:end_all_unstarted",
        "        _follow_up(tx, job, Ended(status, None, None, reason, executed=False), actor=actor)\n",
        "        pass\n",
        "tests/jobs/test_cancel.py::test_a_job_that_is_cancelled_while_it_waits_has_its_follow_up[sqlite]",
    ),
    Mutant(
        "jobs/lifecycle.py:end_all_unstarted",
        "    ended_waiting(tx, ended)\n",
        "",
        "tests/store/test_store_wake_ups.py::test_an_end_gives_up_what_was_promised[sqlite]",
    ),
    Mutant(
        "jobs/lifecycle.py:end_all_unstarted",
        "    chains_failed(tx, [job.chain for job in ended])\n",
        "",
        "tests/jobs/test_groups.py::test_what_comes_after_a_cancelled_rest_is_told[sqlite]",
    ),
    Mutant(
        "jobs/lifecycle.py:end_all_unstarted",
        "        tx.waits.wake_topics(turn_topic(each.chain) for each in members)\n",
        "",
        "tests/worker/test_wake_ups.py::test_who_is_behind_several_that_are_cancelled_together_has_its_turn[sqlite]",
    ),
    Mutant(
        "jobs/lifecycle.py:chains_failed",
        "        tx.waits.wake_topics(\n"
        "            {artifact_topic(each.artifact) for each in tx.graph.produced_by(chains)}\n"
        "        )\n",
        "",
        "tests/jobs/test_artifacts.py::test_all_producers_ended_without_success[sqlite-failed]",
    ),
    Mutant(
        "jobs/lifecycle.py:chains_succeeded",
        "    tx.waits.wake_topics(artifact_topic(each.artifact) for each in products)\n",
        "",
        "tests/jobs/test_artifacts.py::test_a_producer_that_succeeded_without_making_it[sqlite]",
    ),
    Mutant(
        "jobs/lifecycle.py:chains_succeeded",
        "    tx.graph.made_again(chains)\n",
        "",
        "tests/jobs/test_retry.py::test_what_the_set_made_counts_as_missing_until_it_is_made_again[sqlite]",
    ),
    Mutant(
        "jobs/lifecycle.py:publish",
        "    tx.waits.wake_topics(artifact_topic(each.artifact) for each in markers)\n",
        "",
        "tests/jobs/test_artifacts.py::test_a_running_job_publishes_with_a_payload_and_the_consumer_starts_at_once[sqlite]",
    ),
    Mutant(
        "jobs/lifecycle.py:member_ended",
        "        tx.waits.wake_topics([turn_topic(job.chain)])\n",
        "        pass\n",
        "tests/jobs/test_groups.py::test_members_of_a_sequential_group_run_one_after_the_other[sqlite]",
    ),
    Mutant(
        "jobs/lifecycle.py:trees_gone",
        "        release_locks(tx, claim.job_id)\n",
        "",
        "tests/worker/test_recovery.py::test_locks_are_held_until_the_tree_is_proven_gone[sqlite]",
    ),
    Mutant(
        "jobs/locks.py:release_locks",
        "    tx.waits.wake_first([lock_topic(key) for key in tx.claims.release_locks(job_id)])\n",
        "    tx.claims.release_locks(job_id)\n",
        "tests/jobs/test_locks.py::test_waiters_get_a_lock_in_the_order_of_dispatch[sqlite]",
    ),
    Mutant(
        "jobs/retry.py:_apply",
        "        give_up_locks(tx, job)\n",
        "        pass\n",
        "tests/store/test_store_wake_ups.py::test_a_rewind_gives_up_what_was_promised[sqlite]",
    ),
    Mutant(
        "jobs/retry.py:_apply",
        "        tx.waits.chain_reopened(job.chain)\n",
        "",
        "tests/store/test_store_wake_ups.py::test_nothing_of_a_rewound_set_counts_as_failed_any_more[sqlite]",
    ),
    Mutant(
        "jobs/retry.py:_apply",
        "    tx.graph.reopen_edges(queued, planned.chains)\n",
        "",
        "tests/jobs/test_retry.py::test_a_succeeded_follower_waits_for_the_new_attempt[sqlite]",
    ),
    Mutant(
        "jobs/retry.py:_apply",
        "    tx.groups.reopen(planned.chains)\n",
        "",
        "tests/jobs/test_group_members.py::test_a_rewind_takes_the_later_members_along_and_the_group_ends_again[sqlite]",
    ),
    Mutant(
        "jobs/views/status.py:scheduler_status",
        'show_instant(marks["last_dispatch_at"] or None)',
        "None",
        "tests/jobs/test_status.py::test_the_last_start_and_what_waits_for_capacity_are_told[sqlite]",
    ),
    Mutant(
        "jobs/scheduler.py:_needs_worker",
        "tx.jobs.anything_active() or ",
        "",
        "tests/cli/test_cli_place.py::test_a_setting_with_a_job_waiting_starts_a_worker",
    ),
    Mutant(
        "jobs/views/why.py:_would_queue",
        "hold.for_capacity or hold.expected",
        "True",
        "tests/cli/test_cli_why.py::test_why_says_what_is_in_the_way_who_and_for_how_long[sqlite-not_checked_yet]",
    ),
    Mutant(
        "jobs/membership.py:stopped_by",
        " and fate_of_rest(group, culprit) is not None",
        "",
        "tests/cli/test_cli_groups.py::test_a_group_that_goes_on_after_failures_is_not_stopped[sqlite]",
    ),
)
