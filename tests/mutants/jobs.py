"""Mistakes in what follows from an end or a retry: most are wake-ups that are missing."""

from mutants.mutant import Mutant

LOOPS = "tests/workflows/test_loops.py"
FANS = "tests/workflows/test_fans.py"
SUBJECTS = "tests/workflows/test_run_subjects.py"
SLUNG = "tests/workitems/test_slung_runs.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "jobs/budgets.py:_used",
        "if result is None:\n        return _most(claim)",
        "if result is None:\n        return Amount()",
        "tests/workflows/test_budgets.py::test_an_agent_whose_cost_nobody_knows_counts_with_all_that_it_might_use",
    ),
    Mutant(
        "jobs/worktrees.py:_succeeded",
        "if node in (each.written, each.node)",
        "if node.partition('[')[0] == each.written",
        "tests/workflows/test_git_runs.py::test_an_instance_works_in_the_worktree_of_its_own_combination",
    ),
    Mutant(
        "jobs/budgets.py:_used",
        'most = _most(claim) if result.get("turns") or result.get("final_text") else Amount()',
        "most = Amount()",
        "tests/workflows/test_budgets.py::test_an_agent_that_is_ended_before_it_shows_what_it_used_counts_with_all_that_it_might",
    ),
    Mutant(
        "jobs/budgets.py:spend",
        "if result is not None or is_called:",
        "if True:",
        "tests/workflows/test_agents_with_git.py::test_a_gate_that_finds_no_conflict_spends_nothing",
    ),
    Mutant(
        "jobs/runners.py:resume_runner",
        "tx.waits.wake_topics([runner_topic(name)])",
        "",
        "tests/integrations/agents/test_parking.py::test_a_refused_login_parks_until_a_person_resumes",
    ),
    Mutant(
        "jobs/lifecycle.py:end_all_unstarted",
        "        _follow_up(tx, job, how, actor=actor)\n",
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
        "jobs/lifecycle.py:chains_made",
        "    tx.waits.wake_topics(artifact_topic(each.artifact) for each in products)\n",
        "",
        "tests/jobs/test_artifacts.py::test_a_producer_that_succeeded_without_making_it[sqlite]",
    ),
    Mutant(
        "jobs/lifecycle.py:chains_made",
        "    tx.graph.made_again(list(chains))\n",
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
        "    release_locks(tx, [claim.job_id for claim in claims])\n",
        "",
        "tests/worker/test_recovery.py::test_locks_are_held_until_the_tree_is_proven_gone[sqlite]",
    ),
    Mutant(
        "jobs/locks.py:release_locks",
        "    tx.waits.wake_first([lock_topic(key) for key in tx.claims.release_locks(job_ids)])\n",
        "    tx.claims.release_locks(job_ids)\n",
        "tests/jobs/test_locks.py::test_waiters_get_a_lock_in_the_order_of_dispatch[sqlite]",
    ),
    Mutant(
        "jobs/repeat.py:repeat_jobs",
        "        give_up_locks(tx, job)\n",
        "        pass\n",
        "tests/store/test_store_wake_ups.py::test_a_rewind_gives_up_what_was_promised[sqlite]",
    ),
    Mutant(
        "jobs/repeat.py:repeat_jobs",
        "        tx.waits.chain_reopened(job.chain)\n",
        "",
        "tests/store/test_store_wake_ups.py::test_nothing_of_a_rewound_set_counts_as_failed_any_more[sqlite]",
    ),
    Mutant(
        "jobs/repeat.py:repeat_jobs",
        "    tx.graph.reopen_edges([job.id for job in waiting.values()], chains)\n",
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
    # the merge of a person in a worktree does not keep from a retry
    Mutant(
        "jobs/retry.py:_refuse_within_merge",
        "repositories |= _checkouts_of_nodes(tx, planned.members)",
        "pass",
        "tests/workflows/test_git_runs.py::test_a_person_resolves_a_conflict_and_retries",
    ),
    # the mark of a conflict outlives the retry of its merge
    Mutant(
        "jobs/retry.py:_clear_sentinels",
        "(*job.needs, *job.produces, *_of_merge(job))",
        "job.needs",
        "tests/workflows/test_git_runs.py::test_a_retry_of_a_merge_clears_the_sentinel_of_its_slug",
    ),
    # an end inside of a loop counts for others at once
    Mutant(
        "jobs/lifecycle.py:end_chains",
        " if not is_repeatable(each.job)]",
        "]",
        f"{LOOPS}::test_a_job_outside_waits_until_the_loop_is_over",
    ),
    # what is outside of the run waits only for the loops around its node
    Mutant(
        "jobs/loops.py:_close",
        "found.left_by(each.written)",
        "each.within",
        f"{LOOPS}::test_what_follows_waits_for_a_loop_that_may_call_the_one_it_left",
    ),
    # a loop is taken while a node of its body runs
    Mutant(
        "jobs/loop_state.py:RunLoops.running",
        "busy = {Status.RUNNING, *TERMINAL}",
        "busy = {*TERMINAL}",
        f"{LOOPS}::test_a_cancel_by_a_person_ends_the_loop",
    ),
    # a cancel by a person does not end it
    Mutant(
        "jobs/loops.py:_take",
        "if found.cancelled(head) is not None:",
        "if False:",
        f"{LOOPS}::test_a_cancel_by_a_person_ends_the_loop",
    ),
    # a stopped run goes back
    Mutant(
        "jobs/loops.py:turn_loops",
        "if record.stopped_at is None:",
        "if True:",
        f"{LOOPS}::test_a_stopped_run_takes_no_loop",
    ),
    # a node that goes back stays in its pass
    Mutant(
        "jobs/repeat.py:_next_pass",
        "job._replace(node_pass=job.node_pass + 1)",
        "job",
        f"{LOOPS}::test_a_loop_goes_back_until_it_is_green",
    ),
    # the delay of a loop is forgotten
    Mutant(
        "jobs/loops.py:_take",
        "until = tx.now() + max(each.rule.delay for each in calling)",
        "until = tx.now()",
        f"{LOOPS}::test_a_delay_holds_the_next_pass_back",
    ),
    # the instances of before count on
    Mutant(
        "jobs/repeat.py:_dismiss",
        "tx.workflows.dismiss([job.chain for job in jobs])",
        "pass",
        f"{FANS}::test_a_fan_that_runs_again_makes_new_instances",
    ),
    # what a node left in an earlier pass is handed on
    # nobody wakes the run that stands in line
    Mutant(
        "jobs/routes.py:end_runs",
        "tx.waits.wake_topics([run_topic(record.id)])",
        "pass",
        "tests/schedules/test_schedule_workflows.py"
        "::test_runs_that_queue_begin_one_after_the_other_however_they_end",
    ),
    Mutant(
        "jobs/routes.py:NodeValues._last_left",
        'if data["pass"] == last',
        "if True",
        f"{FANS}::test_what_a_longer_list_left_is_not_handed_on",
    ),
    Mutant(
        "jobs/approvals.py:_undecided",
        "    refuse_changed(tx, job_id, seen)\n",
        "",
        "tests/jobs/test_revisions.py::test_what_was_seen_before_a_change_counts_no_more[sqlite-approve]",
    ),
    Mutant(
        "jobs/approvals.py:repin",
        "        refuse_changed(tx, job_id, revision)\n",
        "",
        "tests/jobs/test_revisions.py::test_the_pin_is_moved_by_who_has_seen_the_present_one[sqlite]",
    ),
    Mutant(
        "jobs/edit.py:edit",
        "        refuse_changed(tx, job_id, revision)\n",
        "",
        "tests/jobs/test_revisions.py::test_what_was_seen_before_a_change_counts_no_more[sqlite-edit]",
    ),
    Mutant(
        "jobs/order.py:move",
        "        refuse_changed(tx, job_id, revision)\n",
        "",
        "tests/jobs/test_revisions.py::test_what_was_seen_before_a_change_counts_no_more[sqlite-move]",
    ),
    Mutant(
        "jobs/order.py:reorder",
        "        refuse_changed_queue(tx, revision)\n",
        "",
        "tests/jobs/test_revisions.py::test_a_queue_is_reordered_by_who_has_seen_it[sqlite]",
    ),
    Mutant(
        "jobs/views/search.py:_find",
        "found[limit - 1].id",
        "stretch.below",
        "tests/jobs/test_pages.py::test_the_pages_together_are_all_that_was_asked_for[sqlite]",
    ),
    # a run is no holder of its subject
    Mutant(
        "jobs/subjects.py:subject_holders",
        "for name, run in runs.items()",
        "for name, run in {}.items()",
        f"{SUBJECTS}::test_all_jobs_of_a_run_have_its_subject_and_nobody_else[sqlite]",
    ),
    # the jobs of a run are in each other's way
    Mutant(
        "jobs/subjects.py:refuse_second",
        "shown(job.id) if run is None else shown_run(run)",
        "shown(job.id)",
        f"{SUBJECTS}::test_all_jobs_of_a_run_have_its_subject_and_nobody_else[sqlite]",
    ),
    # one run is taken for another
    Mutant(
        "jobs/subjects.py:refuse_second",
        "if makers[subject] != {known.shown}:",
        "if known.run is None:",
        f"{SUBJECTS}::test_a_retry_takes_the_subject_again_if_nobody_has_it[sqlite]",
    ),
    # a rewind starts two that are about one thing
    Mutant(
        "jobs/subjects.py:refuse_second",
        "if len(made_by) > 1:",
        "if False:",
        f"{SUBJECTS}::test_a_rewind_is_refused_that_would_work_twice_on_one_thing[sqlite]",
    ),
    # a retry does not ask who has the subject
    Mutant(
        "jobs/retry.py:_apply",
        "        refuse_second(tx, planned.again)\n",
        "",
        f"{SUBJECTS}::test_a_retry_takes_the_subject_again_if_nobody_has_it[sqlite]",
    ),
    # a worker with a loop whose body runs makes steps without end
    Mutant(
        "jobs/loops.py:settle_runs",
        "BODIES_RUN if left else 0",
        "ENDS_CAME if left else 0",
        f"{LOOPS}::test_a_step_waits_for_the_rest_of_a_called_body[sqlite]",
    ),
    # a group whose last run had a loop never ends
    Mutant(
        "jobs/loops.py:settle_runs",
        "write_group_end(tx, group, actor=actor)",
        "pass",
        f"{SLUNG}::test_a_group_ends_when_loops_and_fans_of_its_runs_are_over[sqlite]",
    ),
    Mutant(
        "jobs/views/counts.py:count",
        "if for_limit else 0",
        "if jobs.ready else 0",
        "tests/jobs/test_status.py::test_the_status_by_counts_of_a_moment_ago_is_the_same[sqlite]",
    ),
    Mutant(
        "jobs/views/status.py:scheduler_status",
        "count(tx) if counts is None else counts",
        "count(tx)",
        "tests/jobs/test_status.py::test_a_status_costs_the_same_however_much_waits[sqlite]",
    ),
    Mutant(
        "jobs/actor.py:require_person",
        "surrounding_claim(context.environ, context.pid)",
        "surrounding_claim(context.environ)",
        "tests/jobs/test_actor.py::test_a_person_is_judged_by_the_process_at_the_other_end[approve-sqlite]",
    ),
    Mutant(
        "jobs/actor.py:require_person",
        "    if context.pid is None:\n        return\n",
        "",
        "tests/jobs/test_actor.py::test_a_server_inside_a_job_judges_its_callers_and_not_itself[sqlite]",
    ),
    Mutant(
        "jobs/approvals.py:repin",
        '    require_person(context, "repin")\n',
        "",
        "tests/jobs/test_actor.py::test_an_agent_decides_nothing_whatever_else_is_so[sqlite-repin]",
    ),
    Mutant(
        "jobs/agents.py:_with_prompt",
        'read_prompt(agent["prompt_file"], folder)',
        'read_prompt(agent["prompt_file"])',
        "tests/jobs/test_acting.py::test_verbs_ask_the_context_alone[sqlite]",
    ),
    Mutant(
        "jobs/context.py:Context.acting",
        "            changes=self._changes,\n",
        "",
        "tests/jobs/test_acting.py::test_all_that_share_a_store_see_each_change_of_others[sqlite]",
    ),
    Mutant(
        "jobs/context.py:Context.acting",
        ", **self.config.env}",
        "}",
        "tests/jobs/test_acting.py::test_who_has_neither_folder_nor_environment_has_those_of_schedules[sqlite]",
    ),
    Mutant(
        "jobs/views/graph/svg.py:_box",
        'data-job="{shown(node.id)}" ',
        "",
        "tests/jobs/graph/test_graph_svg.py::test_a_page_may_style_it_and_finds_the_job_of_each_box",
    ),
    Mutant(
        "jobs/groups.py:_take_in",
        "    tx.events.add(edited, actor=context.actor)\n",
        "",
        "tests/jobs/test_revisions.py::test_a_job_that_was_put_into_a_group_has_changed[sqlite-approve]",
    ),
    Mutant(
        "jobs/statistics.py:series",
        "could = created if not_before is None or not_before < created else not_before",
        "could = created",
        "tests/jobs/test_statistics.py::test_what_ended_waited_and_ran_is_counted_by_the_minute[sqlite]",
    ),
    Mutant(
        "jobs/statistics.py:series",
        "if slot is None or slot >= 0:",
        "if True:",
        "tests/jobs/test_statistics.py::test_what_ended_waited_and_ran_is_counted_by_the_minute[sqlite]",
    ),
    Mutant(
        "jobs/statistics.py:load",
        "first = buckets.place(ended[-1].finished_at or 0) + 1",
        "first = buckets.place(ended[-1].finished_at or 0)",
        "tests/jobs/test_statistics.py::test_beyond_what_is_read_only_the_number_of_ends_is_known[sqlite]",
    ),
    Mutant(
        "jobs/statistics.py:BusyTime.add",
        "self._whole[last] -= width",
        "pass",
        "tests/jobs/test_statistics.py::test_a_slot_that_is_busy_over_many_buckets_counts_in_each",
    ),
    Mutant(
        "jobs/views/timeline.py:_wait",
        "at - last.since <= SOON",
        "True",
        "tests/jobs/test_timelines.py::test_the_life_of_a_job_is_one_interval_after_the_other",
    ),
    Mutant(
        "jobs/views/timeline.py:intervals",
        '            _begin(found, Interval("waiting", each.at, None, NOT_LOOKED_AT, job.state))\n',
        "            pass\n",
        "tests/jobs/test_timelines.py::test_the_life_of_a_job_is_one_interval_after_the_other",
    ),
    Mutant(
        "jobs/views/recent.py:recent",
        ", statuses=_FAILURES",
        "",
        "tests/jobs/test_recent.py::test_many_that_were_cancelled_hide_no_failure",
    ),
    Mutant(
        "jobs/approvals.py:_beside",
        "if not asks_for_run(job):",
        "if True:",
        "tests/workflows/test_approval_gates.py::test_a_run_is_agreed_to_once",
    ),
    Mutant(
        "jobs/approvals.py:reject",
        "together = (job, *_beside(tx, job))",
        "together = (job,)",
        "tests/workflows/test_approval_gates.py::test_a_run_is_rejected_as_a_whole_and_asked_about_anew",
    ),
    Mutant(
        "jobs/routes.py:end_nodes",
        "tx.graph.publish(markers)",
        "pass",
        "tests/workflows/test_runs.py::test_outputs_are_compared_and_handed_on",
    ),
    Mutant(
        "jobs/views/documents.py:workflow_document",
        'node["policy"] if node["class"] is None else None',
        'node["policy"]',
        "tests/workflows/test_runs.py::test_every_node_is_one_job_and_the_manifest_is_kept",
    ),
    Mutant(
        "jobs/retention.py:obstacles_of",
        "        found[chain] = Obstacle(InTheWay.WEBHOOK, by)\n",
        "        pass\n",
        "tests/webhooks/test_expansion.py::test_a_job_stays_until_its_end_was_made_a_delivery_of[sqlite]",
    ),
)
