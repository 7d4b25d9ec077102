"""Mistakes in what is refused of a workflow file, and in what it is compiled to."""

from mutants.mutant import Mutant

REFUSALS = "tests/workflows/test_refusals.py::test_it_is_refused_in_these_words"
COMPILE = "tests/workflows/test_compile.py"
VALUES = "tests/workflows/test_values.py"

MUTANTS: tuple[Mutant, ...] = (
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
        "if not edge.wants_success or routes.rules[name].at_the_end:",
        "if routes.rules[name].at_the_end:",
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
        "workflows/matrices.py:instance_id",
        "as_text(value)",
        "value",
        f"{VALUES}::test_an_instance_is_named_by_its_values",
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
)
