"""What stands in the way of one item: it leaves out that item and no other, and says why."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Bench
from headway.base.errors import InvalidInputError
from headway.core.targets import Target
from headway.jobs.templates import add_template
from headway.workitems.sling import slung_document
from headway.workitems.targets import add_target, remove_target
from slung import Project, issue


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench(max_active=10)


@pytest.fixture
def project(bench: Bench) -> Project:
    """A tree of two items for a target that works, and one between them for another."""
    project = Project(
        bench,
        issue("gt-epic", issue_type="epic"),
        issue("gt-1", ("gt-epic", "parent-child")),
        issue("bb-1", ("gt-epic", "parent-child")),
        issue("gt-2", ("gt-epic", "parent-child")),
    )
    project.target("bad", "true", prefix="bb-")
    return project


def jobs(bench: Bench) -> list[dict[str, Any]]:
    return bench.client.listing(everything=True)


def without_program(project: Project) -> str:
    tool = project.bench.folder / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    project.target("bad", str(tool), prefix="bb-")
    tool.unlink()
    return "was not found"


def without_value(project: Project) -> str:
    project.target("bad", "echo", "{branch}", prefix="bb-")
    return "the recipe of target bad has {branch}; give --var branch=VALUE"


@pytest.mark.req("G19", "G23")
@pytest.mark.parametrize("breaking", [without_program, without_value])
def test_a_recipe_that_cannot_run_leaves_out_its_own_items(
    project: Project, bench: Bench, breaking: Callable[[Project], str]
) -> None:
    told = breaking(project)
    with pytest.raises(InvalidInputError) as refusal:
        project.sling("gt-1", "bb-1")
    assert str(refusal.value).startswith("bb-1 cannot be slung to target bad: ")
    assert told in str(refusal.value) and "--no-check" not in str(refusal.value)
    assert jobs(bench) == [], "what was named itself refuses everything"
    slung = project.sling("gt-epic")
    assert [each.subject for each in slung.scheduled] == ["gt-1", "gt-2"]
    [skipped] = slung.skipped
    assert skipped.subject == "bb-1" and skipped.reason.startswith("target bad: ")
    assert told in skipped.reason


@pytest.mark.req("G23")
def test_what_is_wrong_whatever_the_item_refuses_the_whole_tree(
    project: Project, bench: Bench
) -> None:
    add_template(bench.client.context, "greet", argv=["echo", "{mood}"], params={"mood": None})
    for wish, told in (
        ({"priority": 10**9}, "priority 1000000000 is not between"),
        ({"variables": {"x": "1"}}, "no recipe has {x}"),
        ({"on": "greet"}, "the recipe of template greet has {mood}"),
    ):
        with pytest.raises(InvalidInputError) as refusal:
            project.sling("gt-epic", **wish)
        assert told in str(refusal.value)
    assert jobs(bench) == []


@pytest.mark.req("G17")
def test_to_sling_again_is_no_error_though_the_target_is_gone(
    project: Project, bench: Bench
) -> None:
    job_id = project.job_of(project.sling("gt-1"))
    remove_target(bench.client.context, "gas")
    again = project.sling("gt-1")
    assert [(each.subject, each.job_id) for each in again.already] == [("gt-1", job_id)]
    again = project.sling("gt-1", "bad")
    assert again.scheduled == () and len(again.already) == 1, "nor is one that it does not fit"
    assert len(jobs(bench)) == 1


# -- what others wrote is never run -------------------------------------------------------------

HOSTILE = "x; touch PWNED"


def stored(bench: Bench, target: Target) -> None:
    """A row that an earlier version has let in."""
    with bench.store.write() as tx:
        tx.workitems.remove_target(target.name)
        tx.workitems.add_target(target)


@pytest.mark.parametrize(
    "script", ["echo {title}", "echo '{title}'", 'echo "{args}"', "echo {subject} {branch}"]
)
def test_a_target_that_would_run_what_others_wrote_is_refused(
    project: Project, bench: Bench, script: str
) -> None:
    with pytest.raises(InvalidInputError, match="would run its value as code; give it as an arg"):
        add_target(bench.client.context, Target("new", ("env", "sh", "-ec", script)))
    with bench.store.read() as tx:
        assert "new" not in tx.workitems.targets()


def test_a_target_of_before_does_not_run_what_others_wrote(project: Project, bench: Bench) -> None:
    project.change("bb-1", title=HOSTILE)
    stored(bench, Target("bad", ("sh", "-c", "echo {title}"), prefix="bb-"))
    with pytest.raises(InvalidInputError, match=r"bb-1 .* target bad: {title} stands in the"):
        project.sling("bb-1")
    slung = project.sling("gt-epic")
    assert [each.subject for each in slung.scheduled] == ["gt-1", "gt-2"]
    assert [each.subject for each in slung.skipped] == ["bb-1"]


def test_a_title_given_as_an_argument_is_only_text(project: Project, bench: Bench) -> None:
    project.change("bb-1", title=HOSTILE)
    project.target("bad", "sh", "-c", 'echo "{subject} $1"', "sh", "{title}", prefix="bb-")
    job_id = project.job_of(project.sling("bb-1"))
    bench.until_ended(job_id)
    assert Path(bench.home.job(job_id), "stdout.log").read_text() == f"bb-1 {HOSTILE}\n"
    assert not (bench.folder / "PWNED").exists()


def test_a_subject_that_is_code_is_left_out_where_a_shell_would_run_it(
    project: Project, bench: Bench
) -> None:
    project.target("bad", "sh", "-c", "echo {subject}", prefix="bb-")
    edge = ("gt-epic", "parent-child")
    project.write(issue("gt-epic", issue_type="epic"), issue("bb-1", edge), issue("bb-$(id)", edge))
    slung = project.sling("gt-epic")
    assert [each.subject for each in slung.scheduled] == ["bb-1"]
    assert [each.subject for each in slung.skipped] == ["bb-$(id)"]


# -- groups -------------------------------------------------------------------------------------


@pytest.mark.req("G20")
def test_all_groups_that_track_what_was_slung_are_named(project: Project, bench: Bench) -> None:
    project.target("gas", "false", prefix="gt-")
    project.change("gt-2", status="closed")
    tree = project.sling("gt-epic")
    project.change("gt-2", status="open")
    bench.client.cancel([each.job_id for each in tree.scheduled if each.subject == "gt-1"])
    project.write(*project.issues.values(), issue("gt-9"))
    slung = project.sling("gt-9", "gt-epic")
    joined = [bench.job(each.job_id or 0).group_id for each in slung.scheduled]
    assert len(set(joined)) == 2 and slung.groups == tuple(dict.fromkeys(joined))
    assert slung_document(slung)["groups"] == [f"group-{each}" for each in slung.groups]
