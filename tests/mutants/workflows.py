"""Mistakes in what is refused of a workflow file, and in what it is compiled to."""

from mutants.mutant import Mutant

REFUSALS = "tests/workflows/test_refusals.py::test_it_is_refused_in_these_words"
COMPILE = "tests/workflows/test_compile.py"
VALUES = "tests/workflows/test_values.py"
OPERATIONS = "tests/workflows/test_operations.py"
CRASHES = "tests/workflows/test_operation_crashes.py"
RUNS = "tests/workflows/test_git_runs.py"
SUBJECTS = "tests/workflows/test_run_subjects.py"
SLUNG = "tests/workitems/test_slung_runs.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "workflows/checks.py:_Checks._wrong_reference",
        "self._knows_order and ",
        "",
        REFUSALS,
    ),
    # a run may have a priority that no job may have
    Mutant(
        "workflows/start.py:_check_options",
        "    check_values(Request(after=request.after, priority=request.priority))\n",
        "",
        "tests/workflows/test_runs.py::test_a_wrong_option_starts_no_run",
    ),
    # an empty key is as none
    Mutant(
        "workflows/start.py:_check_options",
        "if text is not None:",
        "if text:",
        "tests/workflows/test_runs.py::test_a_wrong_option_starts_no_run",
    ),
    # a list is made of its own elements
    Mutant(
        "workflows/checks.py:_Checks._wrong_reference",
        ' or key == "each"',
        "",
        REFUSALS,
    ),
    # a word is taken for a number that may come
    Mutant(
        "workflows/checks.py:_may_hold",
        "0 if isinstance(side, str) and side.startswith(OPEN) else side",
        "0 if isinstance(side, str) else side",
        REFUSALS,
    ),
    # nobody is told that a clean-up of the end has no worktree
    Mutant(
        "workflows/compiler.py:_lost_trees",
        "if node.label.name == CLEANUP:",
        "if node.label.name == CLEANUP and not rule.at_the_end:",
        f"{COMPILE}::test_a_clean_up_without_a_worktree_is_told_of",
    ),
    # less than what is spent lets an agent start
    Mutant(
        "workflows/retry.py:_finder",
        "        refuse_used_up(record, budget)\n",
        "",
        "tests/workflows/test_budgets.py::test_the_next_step_of_a_run_without_budget_names_the_option_that_helps",
    ),
    Mutant(
        "workflows/operations/conflict_agent.py:_asked",
        "**runner.defaults, **given",
        "**runner.defaults",
        "tests/workflows/test_agents_with_git.py::test_a_gate_keeps_its_agent_to_its_budget",
    ),
    Mutant(
        "workflows/values.py:filled",
        "return with_grant(tx, job, beside) if calls_agent(job) else job",
        "return job",
        "tests/workflows/test_agents_with_git.py::test_a_gate_whose_end_nobody_knows_counts_with_all_that_it_might_use",
    ),
    Mutant(
        "workflows/prompts.py:filled_parts",
        " if each.name not in there",
        " if False",
        "tests/workflows/test_agents.py::test_a_prompt_that_cannot_be_resolved_fails",
    ),
    # an agent that has done its work is called by the next try
    Mutant(
        "workflows/operations/conflicts.py:_by_agent",
        'None if code else "done"',
        "None",
        f"{CRASHES}::test_killed_at_a_point_and_done_again_it_ends_the_same[conflict.agent_ended]",
    ),
    # so is one that was ended at its work
    Mutant(
        "workflows/operations/conflicts.py:_by_agent",
        '    note_agent(task, slug, "called")\n',
        "",
        f"{CRASHES}::test_an_agent_that_was_ended_at_its_work_is_not_called_again",
    ),
    # one that met a limit is taken for one that was ended at its work
    Mutant(
        "workflows/operations/conflicts.py:_by_agent",
        "except (BlockedError, ParkedError):",
        "except BlockedError:",
        "tests/workflows/test_agents_with_git.py"
        "::test_a_gate_whose_agent_meets_a_limit_parks_the_runner_and_goes_on",
    ),
    # its runner is not parked
    Mutant(
        "workflows/operations/conflict_agent.py:resolve_by_agent",
        "if met := parks(wanted, report, judged, ending):",
        "if met := {}:",
        "tests/workflows/test_agents_with_git.py"
        "::test_a_gate_whose_agent_meets_a_limit_parks_the_runner_and_goes_on",
    ),
    # one that left marks is never called again
    Mutant(
        "workflows/operations/conflicts.py:_merge",
        "if noted_agent(task, slug) is not None:",
        "if False:",
        f"{CRASHES}::test_an_agent_that_failed_or_left_marks_is_called_again",
    ),
    # a gate that calls an agent is not done again when it is killed
    Mutant(
        "workflows/nodes.py:_repeats",
        "label.operation in OPERATIONS)",
        'label.operation in OPERATIONS and "auto_resolve" not in node.args)',
        "tests/workflows/test_agents_with_git.py::test_an_agent_resolves_a_conflict_and_it_is_merged",
    ),
    # a value that looks like a reference is looked up at the claim
    Mutant(
        "workflows/compiler.py:_instance",
        "return UNKNOWN if has_form else value",
        "return value",
        f"{COMPILE}::test_a_hostile_value_is_one_argument_and_never_a_script_or_a_reference",
    ),
    # a clean-up passes its worktree on
    Mutant(
        "workflows/compiler.py:roots_of",
        "elif source.label.name != CLEANUP:",
        "else:",
        f"{COMPILE}::test_a_worktree_is_passed_on_along_success_until_it_is_cleaned_up",
    ),
    # a worktree is passed on along any outcome
    Mutant(
        "workflows/compiler.py:roots_of",
        "if not edge.wants_success:",
        "if False:",
        f"{COMPILE}::test_a_worktree_is_passed_on_along_success_until_it_is_cleaned_up",
    ),
    # the order of the file counts nothing
    Mutant(
        "workflows/compiler.py:canonical",
        '"order": order',
        '"order": []',
        f"{COMPILE}::test_the_hash_is_another_when_a_run_would_be",
    ),
    # the shell runs a value
    Mutant(
        "workflows/checks.py:_Checks._values",
        "if node.shell is not None and OPEN in node.shell:",
        "if False:",
        REFUSALS,
    ),
    # a lock may name what is known only at the claim
    Mutant(
        "workflows/checks.py:_BEFORE_THE_CLAIM",
        '"locks", ',
        "",
        REFUSALS,
    ),
    # a path is judged by its end alone
    Mutant(
        "workflows/checks.py:_leads_out",
        "        if depth < 0:\n            return True\n    return False",
        "    return depth < 0",
        "tests/workflows/test_refusals.py::test_a_path_that_leaves_and_comes_back_is_outside",
    ),
    # an unknown label is a command
    Mutant(
        "workflows/reader.py:_Nodes._used",
        "if label is None:",
        "if label is None and renamed(name):",
        REFUSALS,
    ),
    # a reference in a condition may have more around it
    Mutant(
        "workflows/conditions.py:_side",
        "text.find(CLOSE) == len(text) - len(CLOSE)",
        "text.endswith(CLOSE)",
        f"{VALUES}::test_other_texts_are_no_condition",
    ),
    # two instances get one name
    Mutant(
        "workflows/matrices.py:show_values",
        "as_text(value)",
        "value",
        f"{VALUES}::test_an_instance_is_named_by_its_values",
    ),
    # a conflict is resolved in a worktree that is cleaned up by then
    Mutant(
        "workflows/compiler.py:_trees_of_source",
        "and each.id not in cleaned",
        "and each.id",
        "tests/workflows/test_compile.py::test_a_conflict_is_resolved_where_its_branch_is",
    ),
    # the fan of an agent asks for a prompt itself
    Mutant(
        "workflows/fans.py:fan_of",
        "if key not in _WORK}",
        "if key not in _WORK[:-1]}",
        "tests/workflows/test_agents.py::test_an_agent_works_on_each_element_of_a_list",
    ),
    # all instances of an agent have one prompt
    Mutant(
        "workflows/fans.py:_instance",
        "_put(instance, NUMBER, str(at))",
        '_put(instance, NUMBER, "")',
        "tests/workflows/test_agents.py::test_an_agent_works_on_each_element_of_a_list",
    ),
    # the prompts of two imports are one
    Mutant(
        "workflows/imports.py:_artifact",
        "PROMPT_TEXT + lead + text",
        "PROMPT_TEXT + text",
        "tests/workflows/test_workflow_imports.py",
    ),
    # integrating leaves the checkout to others
    Mutant(
        "workflows/locks.py:default_locks",
        "(_alone(checkout),) if label.operation == INTEGRATE else ()",
        "()",
        "tests/workflows/test_node_locks.py",
    ),
    # a file that is there is overwritten
    Mutant(
        "workflows/new_file.py:init_workflow",
        'open(path, "x"',
        'open(path, "w"',
        "tests/workflows/test_starters.py::test_a_file_is_never_overwritten",
    ),
    # a commit that was made is not looked for
    Mutant(
        "workflows/operations/commits.py:stage_commit",
        "made = signed.find(top, head) if head is not None else None",
        "made = None",
        f"{OPERATIONS}::test_a_commit_is_found_by_its_key",
    ),
    # the document stays on the source
    Mutant(
        "workflows/operations/integration.py:_without_document",
        "if file_in(asked.repo, tip, path) is None:",
        "if True:",
        f"{OPERATIONS}::test_a_plan_is_merged_with_its_document",
    ),
    # a target that moved is merged once more only
    Mutant(
        "workflows/operations/integration.py:TRIES",
        "TRIES = 5",
        "TRIES = 2",
        f"{OPERATIONS}::test_a_target_that_moves_is_merged_anew",
    ),
    # the worktree of an active run is cleaned
    Mutant(
        "workflows/operations/worktrees.py:_clean_old",
        'if not each["ended"]:',
        "if False:",
        f"{OPERATIONS}::test_another_run_that_has_the_branch_blocks_by_name",
    ),
    # a link leads a node elsewhere
    Mutant(
        "workflows/compiler.py:_root_of_matrix",
        "if node.matrix.keys() == tree.matrix.keys():",
        "if node.matrix.keys() >= tree.matrix.keys():",
        REFUSALS,
    ),
    Mutant(
        "workflows/compiler.py:_compiled",
        "root = instance_root(workflow, roots.get(node.id), values)",
        "root = roots.get(node.id)",
        f"{COMPILE}::test_an_instance_works_in_the_worktree_of_the_same_combination",
    ),
    Mutant(
        "workflows/roots.py:_gone",
        'return None if has_branch(row.repo, row.branch) else f"branch {row.branch}"',
        "return None",
        f"{RUNS}::test_what_is_gone_of_a_root_names_the_node_to_retry_from",
    ),
    Mutant(
        "workflows/roots.py:_refuse_outside",
        "real = os.path.realpath(path)",
        "real = path",
        f"{RUNS}::test_a_worktree_that_leads_elsewhere_is_refused",
    ),
    # what is left of a conflict is committed
    Mutant(
        "workflows/operations/conflicts.py:_resolve",
        "if not _has_marks(os.path.join(top, path))",
        "if True",
        f"{OPERATIONS}::test_a_conflict_that_stays_blocks",
    ),
    # a key of other parameters gives the run that is there
    Mutant(
        "workflows/start.py:_refuse_other",
        "same = asked == (known.name, known.policy_hash, known.params)",
        "same = asked[:2] == (known.name, known.policy_hash)",
        "tests/workflows/test_runs.py::test_a_run_waits_for_jobs_and_a_key_starts_one",
    ),
    # a run does not hold its subject
    Mutant(
        "workflows/start.py:add_run",
        "        subject=request.subject,\n",
        "",
        f"{SUBJECTS}::test_all_jobs_of_a_run_have_its_subject_and_nobody_else[sqlite]",
    ),
    # the jobs of a run do not know its subject
    Mutant(
        "workflows/start.py:_of_run",
        "        subject=request.subject,\n",
        "",
        f"{SUBJECTS}::test_all_jobs_of_a_run_have_its_subject_and_nobody_else[sqlite]",
    ),
    # the target of the run counts more than that of the node
    Mutant(
        "workflows/start.py:_of_run",
        "target=spec.target or request.target",
        "target=request.target",
        f"{SUBJECTS}::test_all_jobs_of_a_run_have_its_subject_and_nobody_else[sqlite]",
    ),
    # instances are in no group
    Mutant(
        "workflows/fans.py:_expand",
        "if job.group_id is not None and SLING in job.params:",
        "if False:",
        f"{SLUNG}::test_a_group_ends_when_loops_and_fans_of_its_runs_are_over[sqlite]",
    ),
    # a value with a placeholder may be for no parameter
    Mutant(
        "workflows/prepared.py:check_run",
        "    refuse_unknown(written, later, problems)\n",
        "",
        f"{SLUNG}::test_a_wrong_target_is_refused_when_it_is_added",
    ),
    # what only an item decides is asked for when a target is added
    Mutant(
        "workflows/prepared.py:check_run",
        "name in given or param.default is not MISSING",
        "True",
        f"{SLUNG}::test_a_wrong_target_is_refused_when_it_is_added",
    ),
    # a shell runs what a reference stands for
    Mutant(
        "workflows/checks.py:_Checks._values",
        "if runs_value(node.argv):",
        "if False:",
        "tests/workflows/test_shell_scripts.py"
        "::test_a_reference_in_the_script_of_a_shell_is_refused",
    ),
    # so does one that comes by a value
    Mutant(
        "workflows/compiler.py:_check_filled",
        "runs_value(node.argv, fill_texts(node.argv, look_up))",
        "False",
        "tests/workflows/test_shell_scripts.py::test_a_value_may_be_the_shell_itself",
    ),
    # every command with a shell is refused
    Mutant(
        "workflows/shell_scripts.py:runs_value",
        "OPEN in str(written[place])",
        "True",
        "tests/workflows/test_shell_scripts.py::test_what_is_only_text_is_left_alone",
    ),
    # runs of one schedule go on side by side
    Mutant(
        "workflows/start.py:_of_run",
        'own["behind"] = list(request.behind)',
        "pass",
        "tests/schedules/test_schedule_workflows.py::test_all_that_was_missed_becomes_runs_in_line",
    ),
    Mutant(
        "workflows/drawing/svg.py:_last_row",
        "drawing.jobs.get(node.name)",
        "None",
        "tests/workflows/test_drawing.py::test_a_page_may_style_it_and_finds_the_node_of_each_box",
    ),
    Mutant(
        "workflows/model.py:Routes.sinks",
        " and not rule.at_the_end",
        "",
        "tests/workflows/test_compile.py::test_a_success_sink_has_no_edge_of_success_behind_it",
    ),
    Mutant(
        "workflows/nodes.py:specifications",
        "edge.accepts == _SUCCESS",
        "NodeOutcome.SUCCEEDED in edge.accepts",
        "tests/workflows/test_runs.py::test_success_is_an_ordinary_edge",
    ),
    Mutant(
        "workflows/nodes.py:_reported_once",
        "if alike[node.node, words] == instances[node.node] else node.id",
        "if True else node.id",
        "tests/cli/test_cli_run.py::test_a_check_writes_nothing",
    ),
    Mutant(
        "workflows/nodes.py:_agent",
        'args.get("runner") == "command"',
        "False",
        "tests/workflows/test_agents.py::test_an_agent_without_a_runner_is_refused_and_nothing_is_written",
    ),
    Mutant(
        "workflows/start.py:document",
        "compiled_document(node) for node",
        "node._asdict() for node",
        "tests/workflows/test_runs.py::test_the_manifest_has_all_of_each_node_as_compiled",
    ),
    Mutant(
        "workflows/start.py:_refuse_other",
        "asked == (known.name, known.policy_hash, known.params)",
        "True",
        "tests/cli/test_cli_run.py::test_a_key_is_of_one_run",
    ),
    Mutant(
        "workflows/checks.py:_Checks._circle",
        "waits[place] = []",
        "pass",
        "tests/workflows/test_refusals.py::test_it_is_refused_in_these_words",
    ),
    Mutant(
        "workflows/compiler.py:_check_filled",
        'problems.add(wrong, (*path, "args", key))',
        "pass",
        "tests/workflows/test_refusals.py::test_an_argument_is_checked_when_it_is_filled_and_told_once",
    ),
    Mutant(
        "workflows/locks.py:default_locks",
        "Lock(checkout, LockMode.SHARED)",
        "_alone(checkout)",
        "tests/workflows/test_node_locks.py::test_a_node_locks_what_it_writes",
    ),
    Mutant(
        "workflows/operations/fan.py:announce",
        "count > most",
        "count > most + 1",
        "tests/workflows/test_fans.py::test_what_is_no_list_or_too_long_fails_the_fan",
    ),
    Mutant(
        "workflows/drawing/languages.py:colours_of",
        "if node.state",
        "if False",
        "tests/cli/test_cli_run.py::test_a_run_is_drawn_with_its_states",
    ),
    Mutant(
        "workflows/references.py:parse_reference",
        'raise MalformedError(f"{name[:60]}: unknown", name)',
        "return Reference(Kind.PARAMS, name)",
        "tests/workflows/test_values.py::test_all_else_is_unknown",
    ),
)
