"""Mistakes in what becomes of work items."""

from mutants.mutant import Mutant

RUNS = "tests/workitems/test_slung_runs.py"

MUTANTS: tuple[Mutant, ...] = (
    # what is slung does not take the place of what the target says
    Mutant(
        "workitems/run_recipes.py:prepared_run",
        "name in variables or ",
        "",
        f"{RUNS}::test_values_of_the_target_of_the_item_and_of_the_sling",
    ),
    # the title of the item takes the place of what the target says
    Mutant(
        "workitems/run_recipes.py:prepared_run",
        " and name not in fixed",
        "",
        f"{RUNS}::test_values_of_the_target_of_the_item_and_of_the_sling",
    ),
    # an empty value takes the place of a default
    Mutant(
        "workitems/run_recipes.py:prepared_run",
        " and (filling[name] or not recipe.optional(name))",
        "",
        f"{RUNS}::test_values_of_the_target_of_the_item_and_of_the_sling",
    ),
    # the run does not know what it was slung to
    Mutant(
        "workitems/run_recipes.py:prepared_run",
        "        target=recipe.target.name,\n",
        "",
        f"{RUNS}::test_an_item_becomes_a_run_with_its_values[sqlite]",
    ),
    # one wrong file leaves nothing of a tree
    Mutant(
        "workitems/sling.py:_leave_out",
        "if each.named:",
        "if True:",
        f"{RUNS}::test_of_a_tree_only_the_items_of_a_wrong_file_are_left_out[sqlite]",
    ),
    # a run under way is cleared
    Mutant(
        "workitems/status.py:_clear",
        "if any(node.status not in WAITING for node in tx.workflows.nodes(run.id)):",
        "if False:",
        f"{RUNS}::test_clear_takes_back_runs_that_have_not_begun[sqlite]",
    ),
    # what is only about a subject is taken for slung
    Mutant(
        "workitems/status.py:_slung_runs",
        "_slung(tx.workflows.active(run.id))",
        "tx.workflows.active(run.id)",
        f"{RUNS}::test_clear_takes_back_runs_that_have_not_begun[sqlite]",
    ),
    # what a workflow says itself may stand beside it
    Mutant(
        "workitems/targets.py:_check_workflow",
        "if getattr(target, word)",
        "if False",
        f"{RUNS}::test_a_wrong_target_is_refused_when_it_is_added",
    ),
)
