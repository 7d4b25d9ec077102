"""Mistakes in what agents may do by their tools, and in what they are shown."""

from mutants.mutant import Mutant

SAFETY = "tests/mcp/test_safety.py"
STRANGERS = "tests/mcp/test_strangers.py"
BOUNDS = "tests/mcp/test_bounds.py"
MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "mcp/handlers.py:submit_job",
        "if call.rule.needs_person():",
        'if call.rule.needs_person() and "shell" in entry:',
        f"{SAFETY}::test_what_it_submits_needs_a_person",
    ),
    Mutant(
        "mcp/handlers.py:submit_template",
        "_refuse_follow_up(call, template)",
        "pass",
        f"{SAFETY}::test_what_follows_a_cancel_is_approved_as_well",
    ),
    Mutant(
        "mcp/handlers.py:retry_job",
        "job.approval is None and call.rule.needs_person(job.template_id)",
        "False",
        f"{SAFETY}::test_a_retry_does_not_get_round_the_approval",
    ),
    Mutant(
        "mcp/handlers.py:retry_job",
        'call.own(jobs, "retry")',
        'call.own(jobs[:1], "retry")',
        f"{SAFETY}::test_a_retry_reaches_no_job_of_others",
    ),
    Mutant(
        "mcp/tool.py:SubmitRule.needs_person",
        "self.submits is not Submits.FREE",
        "self.submits is Submits.APPROVAL",
        f"{SAFETY}::test_a_retry_does_not_get_round_the_approval",
    ),
    Mutant(
        "mcp/caller.py:agent",
        "AGENT, Role.SUBMIT",
        "AGENT, Role.OPERATE",
        f"{SAFETY}::test_jobs_of_others_are_left_alone",
    ),
    Mutant(
        "mcp/caller.py:ToolCaller._acting",
        "self._principal.kind",
        '"person"',
        f"{SAFETY}::test_the_client_of_an_agent_may_not_decide",
    ),
    Mutant(
        "mcp/answers.py:visible",
        "_cut(plain(value), room)",
        "_cut(value, room)",
        f"{STRANGERS}::test_what_a_function_returns_is_data",
    ),
    Mutant(
        "mcp/answers.py:last_lines",
        "left -= size",
        "left -= len(line)",
        f"{BOUNDS}::test_a_tail_has_16_kib",
    ),
    Mutant(
        "mcp/handlers.py:wait_for_job",
        ", meanwhile=call.refuse_gone",
        "",
        "tests/mcp/test_tools.py::test_a_wait_that_is_given_up_leaves_its_thread",
    ),
    Mutant(
        "mcp/caller.py:HomeClient.use",
        "or not self._opened.has_store",
        "",
        "tests/mcp/test_stdio.py::test_looking_makes_no_home_and_a_submit_does",
    ),
)
