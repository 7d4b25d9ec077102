"""Mistakes in the step, in settling and in recovery."""

from mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "worker/settler.py:Settler._job_at_end",
        "if calls_agent(job) and ended.executed:",
        "if job.type == AGENT and ended.executed:",
        "tests/workflows/test_agents_with_git.py::test_an_agent_resolves_a_conflict_and_it_is_merged",
    ),
    Mutant(
        "worker/settler.py:Settler._agent_ended",
        "return with_session(job, met)",
        "return job",
        "tests/integrations/agents/test_parking.py::test_a_parked_agent_continues_its_session",
    ),
    Mutant(
        "worker/process.py:Worker._step",
        "            if not self._recovered:\n"
        "                self._engine.recover()\n"
        "                self._recovered = True\n"
        "            self._delay = self._engine.step(undisturbed=undisturbed)\n",
        "            self._delay = self._engine.step(undisturbed=undisturbed)\n"
        "            if not self._recovered:\n"
        "                self._engine.recover()\n"
        "                self._recovered = True\n",
        "tests/worker/test_recover_first.py::test_claims_are_judged_before_anything_is_started",
    ),
    Mutant(
        "worker/recovery.py:Recovery._verdict",
        "        outcome = evidence.read_outcome()\n"
        "        if outcome is not None:\n"
        "            return taken_in(outcome, evidence)\n"
        "        if claim.boot_id != self._host.boot_id:\n"
        "            return self._crashed(Ending.HOST_REBOOTED, tree_gone=True)\n",
        "        if claim.boot_id != self._host.boot_id:\n"
        "            return self._crashed(Ending.HOST_REBOOTED, tree_gone=True)\n"
        "        outcome = evidence.read_outcome()\n"
        "        if outcome is not None:\n"
        "            return taken_in(outcome, evidence)\n",
        "tests/worker/test_recovery_verdicts.py::test_an_outcome_is_the_truth_whatever_else_there_is",
    ),
    Mutant(
        "worker/recovery.py:Recovery._verdict",
        "            evidence.make_void()\n",
        "",
        "tests/worker/test_recovery_verdicts.py::test_without_an_outcome_the_first_row_that_fits_counts",
    ),
    Mutant(
        "worker/recovery.py:Recovery._verdict",
        'tree_gone=proof == "gone"',
        "tree_gone=True",
        "tests/worker/test_recovery_verdicts.py::test_without_an_outcome_the_first_row_that_fits_counts",
    ),
    Mutant(
        "worker/recovery.py:Recovery._judge",
        " and not evidence.is_cancelled()",
        "",
        "tests/worker/test_recovery_verdicts.py::test_a_supervisor_that_found_a_cancel_did_not_fail",
    ),
    Mutant(
        "worker/recovery.py:Recovery._judge",
        "        except BaseException:\n            os.close(lock)\n            raise\n",
        "        except BaseException:\n            raise\n",
        "tests/worker/test_recovery_verdicts.py::test_a_lock_is_let_go_if_the_evidence_cannot_be_judged",
    ),
    Mutant(
        "worker/recovery.py:Recovery.prove_gone",
        "                if now - first >= SWEEP_GAP:\n"
        "                    del self._first_empty[claim.token]\n"
        "                    proven.append(claim)\n",
        "                proven.append(claim)\n",
        "tests/worker/test_recovery_verdicts.py::test_two_looks_a_second_apart_prove_that_a_tree_is_gone",
    ),
    Mutant(
        "worker/recovery.py:Recovery.prove_gone",
        "                self._first_empty.pop(claim.token, None)\n",
        "",
        "tests/worker/test_recovery_verdicts.py::test_a_process_that_comes_up_between_two_looks_is_ended_and_it_begins_anew",
    ),
    Mutant(
        "worker/recovery.py:Recovery._is_late",
        '            limits.append(self._since.setdefault((claim.token, "cancelling"), now))\n',
        "            limits.append(now)\n",
        "tests/worker/test_recovery_verdicts.py::test_a_supervisor_is_late_after_its_limit_its_grace_and_ten_seconds",
    ),
    Mutant(
        "worker/recovery.py:Recovery._is_late",
        "now > min(limits) + patience",
        "now > max(limits) + patience",
        "tests/worker/test_recovery_verdicts.py::test_a_supervisor_is_late_after_its_limit_its_grace_and_ten_seconds",
    ),
    Mutant(
        "worker/recovery.py:Recovery.unanswered",
        "        self._since = {key: since for key, since in self._since.items() if key[0] in living}\n",
        "",
        "tests/worker/test_recovery_verdicts.py::test_what_was_known_of_a_claim_that_is_over_is_forgotten",
    ),
    Mutant(
        "worker/recovery.py:Recovery.mine",
        " if claim.host_id == self._host.id",
        "",
        "tests/worker/test_recovery_verdicts.py::test_only_the_claims_of_this_host_are_judged_wherever_its_home_has_moved",
    ),
    Mutant(
        "worker/recovery.py:Recovery.rebooted",
        "claim.host_id != self._host.id and ",
        "",
        "tests/worker/test_recovery_verdicts.py::test_a_copied_home_judges_what_another_host_ran_only_after_a_reboot",
    ),
    Mutant(
        "worker/recovery.py:taken_in",
        'written.tree in ("gone", "left")',
        'written.tree == "gone"',
        "tests/worker/test_recovery_verdicts.py::test_what_became_of_the_tree_is_the_supervisors_word",
    ),
    Mutant(
        "worker/recovery.py:taken_in",
        "        changed=bool(written.changed),\n",
        "",
        "tests/worker/test_start_checks.py::test_what_changes_between_claim_and_start_undoes_the_claim",
    ),
    Mutant(
        "worker/recovery.py:taken_in",
        '            "usage",\n',
        "",
        "tests/worker/test_recovery_verdicts.py::test_a_supervisors_word_is_taken_in_whole",
    ),
    Mutant(
        "worker/settler.py:Settler._end",
        "            if each.answer.launch_failures:\n                _strike_out(tx, each)\n",
        "            pass\n",
        "tests/store/test_store_settling.py::test_a_command_that_cannot_be_launched_gets_its_strikes_and_a_cooldown[sqlite]",
    ),
    Mutant(
        "worker/settler.py:_has_no_other_consequence",
        "end.job.on_finish or ",
        "",
        "tests/store/test_store_settling.py::test_a_success_without_a_document_has_its_follow_up[sqlite]",
    ),
    Mutant(
        "worker/settler.py:_has_no_other_consequence",
        " or end.claim.probe",
        "",
        "tests/store/test_store_settling.py::test_a_probe_that_succeeds_frees_capacity[sqlite]",
    ),
    Mutant(
        "worker/settler.py:_has_no_other_consequence",
        " or end.job.group_id",
        "",
        "tests/store/test_store_settling.py::test_a_members_success_lets_the_next_one_go[sqlite]",
    ),
    Mutant(
        "worker/settler.py:_has_no_other_consequence",
        "        and document is None\n",
        "",
        "tests/store/test_store_settling.py::test_what_the_logs_keep_is_counted[sqlite]",
    ),
    Mutant(
        "worker/settler.py:Settler._end",
        "            if fenced:",
        "            if True:",
        "tests/store/test_store_settling.py::test_a_word_about_a_claim_that_is_over_changes_nothing[sqlite-success]",
    ),
    Mutant(
        "worker/settler.py:Settler._end",
        "        self._follow(tx, others)\n",
        "        for each in others:\n            self._follow(tx, [each])\n",
        "tests/store/test_store_settling.py::test_a_group_has_not_ended_while_one_of_its_chains_goes_on[sqlite]",
    ),
    Mutant(
        "worker/settler.py:Settler._undo",
        "        release_locks(tx, [claim.job_id])\n",
        "",
        "tests/store/test_store_settling.py::test_a_word_about_a_claim_that_is_over_changes_nothing[sqlite-success]",
    ),
    Mutant(
        "worker/settler.py:Settler._undo",
        "        if not tx.claims.undo([unclaim])[0]:\n            return\n",
        "        tx.claims.undo([unclaim])\n",
        "tests/store/test_store_settling.py::test_a_word_about_a_claim_that_is_over_changes_nothing[sqlite-undoing]",
    ),
    Mutant(
        "worker/settler.py:Settler._job_at_end",
        "        if not ended.executed:\n            tx.limits.forget_starts(job, end.claim)\n",
        "",
        "tests/store/test_store_settling.py::test_a_start_that_never_was_does_not_count_in_its_rate[sqlite-True-judgement0]",
    ),
    Mutant(
        "worker/settler.py:Settler._follow",
        " if _is_tree_gone(each)]",
        "]",
        "tests/store/test_store_settling.py::test_a_lock_is_kept_while_the_tree_may_live[sqlite-0]",
    ),
    Mutant(
        "worker/settler.py:Settler._job_at_end",
        "if end.claim.probe and ended.executed:",
        "if end.claim.probe:",
        "tests/store/test_store_settling.py::test_a_probe_that_never_ran_proves_nothing[sqlite]",
    ),
    Mutant(
        "worker/settler.py:Settler._job_at_end",
        '            tx.settings.add_to_mark("log_bytes", kept_log_bytes(end.judgement.document))\n',
        "            pass\n",
        "tests/store/test_store_settling.py::test_what_the_logs_keep_is_counted[sqlite]",
    ),
    Mutant(
        "worker/settler.py:Settler.host_failed",
        "(known.failures if known else 0) + 1",
        "1",
        "tests/store/test_store_settling.py::test_a_host_that_could_not_start_is_told_and_leaves_no_capacity[sqlite]",
    ),
    Mutant(
        "worker/settler.py:Settler.host_recovered",
        "        if tx.hosts.close_breaker(self._host.id):\n            tx.events",
        "        tx.hosts.close_breaker(self._host.id)\n        if True:\n            tx.events",
        "tests/store/test_store_settling.py::test_the_end_of_the_trouble_is_told_once[sqlite]",
    ),
    Mutant(
        "worker/settler.py:Settler.look_at_probes",
        "if claim.probe and _has_begun(claim):",
        "if _has_begun(claim):",
        "tests/store/test_store_settling.py::test_a_probe_that_has_begun_frees_capacity_before_it_ends[sqlite-False-True-False]",
    ),
    Mutant(
        "worker/settler.py:_has_no_other_consequence",
        "end.job.locks or ",
        "",
        "tests/testing/test_testing.py::test_locks_are_free_again_for_the_next",
    ),
    Mutant(
        "worker/settler.py:Settler._undo",
        "        tx.limits.forget_starts(job, claim)\n",
        "",
        "tests/jobs/test_limits.py::test_a_start_that_came_to_nothing_does_not_count[sqlite]",
    ),
    Mutant(
        "worker/settler.py:Settler._too_late",
        "            tx.claims.keep_late_outcome(claim, judgement.document)\n",
        "            pass\n",
        "tests/worker/test_recovery.py::test_a_late_outcome_is_kept_as_evidence_and_changes_nothing[sqlite]",
    ),
    Mutant(
        "worker/step.py:Engine.recover",
        "            tx.waits.wake_everything()\n",
        "",
        "tests/worker/test_wake_ups.py::test_a_new_worker_looks_at_everything_once[sqlite]",
    ),
    Mutant(
        "worker/step.py:Engine.recover",
        "        put_back_environments(tools.home)\n",
        "",
        "tests/worker/test_janitor.py::test_an_environment_that_a_janitor_died_over_is_put_back[sqlite]",
    ),
    Mutant(
        "worker/step.py:Engine._full_step",
        "            for part in entered[::-1]:\n                part.undo()\n",
        "",
        "tests/worker/test_parts.py::test_a_step_that_fails_undoes_the_parts_that_it_entered[sqlite-take_in-undone0]",
    ),
    Mutant(
        "worker/step.py:Engine._full_step",
        "do_all(part.committed for part in parts[::-1])",
        "do_all(part.committed for part in parts)",
        "tests/worker/test_parts.py::test_parts_decide_in_their_order_and_act_in_the_opposite_one[sqlite]",
    ),
    # a worktree that is made belongs to nobody
    # a killed process of a node leaves the lock files of its git
    Mutant(
        "worker/launch/node.py:node_specification",
        'spec["leftovers"] = "terminate"',
        "pass",
        "tests/workflows/test_git_runs.py::test_a_git_whose_node_is_killed_leaves_no_lock_file",
    ),
    Mutant(
        "worker/planner.py:_wake_nobody",
        "not tx.waits.are_locks_contended() or ",
        "True or ",
        "tests/store/test_store_settling.py::test_all_who_share_a_lock_go_when_it_is_free",
    ),
    Mutant(
        "worker/planner.py:Planner._prepare",
        "tx.graph.own_worktrees([tree])",
        "pass",
        "tests/workflows/test_git_runs.py::test_a_retry_takes_back_the_worktree_and_makes_another",
    ),
    Mutant(
        "worker/functions.py:FunctionsPart._settle",
        "tx.steps.keep(self._pool.steps_to_keep())",
        "self._pool.steps_to_keep()",
        "tests/functions/test_steps.py::test_a_retried_call_does_not_repeat_a_step[sqlite-host]",
    ),
    Mutant(
        "worker/planner.py:Planner._call_params",
        "job.retry_of is None",
        "job.retry_of is not None",
        "tests/functions/test_steps.py::test_every_retry_of_a_chain_finds_them[sqlite]",
    ),
    Mutant(
        "worker/planner.py:Planner._filled_params",
        "dict(filled(tx, job, self._home).params)",
        "dict(job.params)",
        "tests/functions/test_function_nodes.py::test_a_node_calls_a_function_with_filled_arguments[sqlite]",
    ),
    # what a step ends by planning is looked at when something else wakes the worker
    Mutant(
        "worker/dispatch.py:DispatchPart._until",
        "tx.settings.marks()[UNSETTLED_RUNS] == ENDS_CAME",
        "False",
        "tests/workflows/test_loops.py::test_a_run_ends_with_its_last_node[sqlite-a node before the loop fails]",
    ),
)
