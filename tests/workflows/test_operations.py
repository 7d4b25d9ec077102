"""Every operation on a repository, by each outcome, on real repositories."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from scratch import IDENTITY, Desk, Scratch

from headway.integrations.git.program import GitError
from headway.workflows.labels import LABELS
from headway.workflows.operations import OPERATIONS, operation_of
from headway.workflows.operations.model import BlockedError, FailedError


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scratch:
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    return Scratch(tmp_path / "repo")


@pytest.fixture
def desk(scratch: Scratch, tmp_path: Path) -> Desk:
    return Desk(scratch, tmp_path)


@pytest.mark.req("V21")
def test_every_operation_dispatches() -> None:
    elsewhere = {"prompt.resolve", "agent.invoke", "command.run", "cicd.run", "function.call"}
    ours = {each.operation for each in LABELS.values() if not each.is_control} - elsewhere
    assert {*OPERATIONS} - elsewhere == ours | {"gate.conflict_resolution", "fan"}
    assert all(callable(operation_of(name)) for name in OPERATIONS)


# -- worktrees ---------------------------------------------------------------------------------


def test_a_worktree_of_a_new_branch_begins_at_its_base(scratch: Scratch, desk: Desk) -> None:
    done = desk.do("worktree.prepare", {"slug": "login", "base": "main"})
    made = done.outputs
    assert made["branch"] == "draft/login" and made["base"] == made["head"] == scratch.head("main")
    assert scratch.git("symbolic-ref", "--short", "HEAD", at=made["path"]) == "draft/login"
    assert Path(made["path"]).parent == desk.home / "worktrees"


def test_a_branch_that_exists_is_used_as_it_stands(scratch: Scratch, desk: Desk) -> None:
    base, tip = scratch.head("main"), scratch.on_branch("draft/login", new="new\n")
    scratch.write("readme.txt", "later\n")
    scratch.commit("main goes on")
    made = desk.do("worktree.prepare", {"plan": "login"}).outputs
    assert made["head"] == tip and made["base"] == base
    assert (Path(made["path"]) / "new").read_text() == "new\n"


def test_a_branch_that_existed_stays_when_the_worktree_goes(scratch: Scratch, desk: Desk) -> None:
    scratch.git("branch", "topic")
    tree = desk.tree(branch="topic")
    done = desk.within(tree, "worktree.cleanup")
    assert done.summary == "worktree cleanup done" and not os.path.exists(tree["path"])
    assert scratch.head("topic") == scratch.head("main")
    tree = desk.tree(branch="fresh")
    desk.within(tree, "worktree.cleanup")
    assert not scratch.head("fresh"), "one that was made for it, and has no commits, goes"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({}, "worktree.prepare could not determine branch (set branch or slug/plan)"),
        ({"slug": "a b"}, "'a b' is no slug"),
        ({"branch": "-x"}, "'-x' cannot be the name of a branch"),
        ({"slug": "a", "base": "nowhere"}, "'nowhere' names no commit"),
    ],
)
def test_a_worktree_that_cannot_be_made(desk: Desk, args: dict[str, str], words: str) -> None:
    with pytest.raises(FailedError) as caught:
        desk.do("worktree.prepare", args)
    assert words in str(caught.value) and not isinstance(caught.value, BlockedError)
    assert os.listdir(desk.home / "worktrees") == []


def test_a_branch_that_someone_has_checked_out_blocks(
    scratch: Scratch, desk: Desk, tmp_path: Path
) -> None:
    scratch.git("worktree", "add", "-q", "-b", "draft/login", str(tmp_path / "mine"))
    with pytest.raises(BlockedError, match=r"branch draft/login is checked out at \S+/mine") as no:
        desk.do("worktree.prepare", {"slug": "login"})
    assert no.value.outputs["cleaned"] == ["job-1"], "it owns nothing"
    assert os.listdir(desk.home / "worktrees") == []


def test_another_run_that_has_the_branch_blocks_by_name(desk: Desk) -> None:
    # fault J8
    tree = {**desk.tree(slug="login"), "run": "wf-3", "ended": False}
    with pytest.raises(BlockedError, match=r"belongs to job-1 of wf-3; wait until it has ended"):
        desk.do("worktree.prepare", {"slug": "login"}, old_trees=[tree])
    assert os.path.isdir(tree["path"])


def test_an_older_worktree_goes_first_and_its_changes_are_saved(
    scratch: Scratch, desk: Desk
) -> None:
    tree = {**desk.tree(slug="login"), "run": "wf-3", "ended": True}
    scratch.write("readme.txt", "changed\n", at=tree["path"])
    done = desk.do("worktree.prepare", {"slug": "login", "base": "main"}, old_trees=[tree])
    assert done.outputs["cleaned"] == ["job-1"] and done.outputs["degraded"] == {}
    assert not os.path.exists(tree["path"]) and os.path.isdir(done.outputs["path"])
    assert "changed" in (desk.home / "jobs" / "1" / "worktree.patch").read_text()


def test_worktrees_are_made_side_by_side(scratch: Scratch, desk: Desk) -> None:
    # fault I2
    tasks = [desk.task("worktree.prepare", args={"slug": f"s{n}"}) for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        made = [each.outputs["path"] for each in pool.map(desk.run, tasks)]
    assert len({*made}) == 8
    assert all(scratch.status(at=each) == "" for each in made)


def test_a_cleanup_without_a_worktree_is_skipped(desk: Desk) -> None:
    assert desk.do("worktree.cleanup").summary == "worktree cleanup skipped"


@pytest.mark.parametrize("state", ["failed", "blocked", "cancelled"])
def test_a_run_that_did_not_succeed_keeps_its_worktree(desk: Desk, state: str) -> None:
    tree = desk.tree(slug="login")
    done = desk.within(tree, "worktree.cleanup", state=state)
    assert done.summary == f"worktree kept for a retry: wf-7 {state}"
    assert os.path.isdir(tree["path"])
    desk.within(tree, "worktree.cleanup", state=state, args={"always": True})
    assert not os.path.exists(tree["path"])


def test_a_cleanup_saves_what_is_not_committed(scratch: Scratch, desk: Desk) -> None:
    # fault I3
    tree = desk.tree(slug="login")
    scratch.write("new", "untracked\n", at=tree["path"])
    saved = desk.within(tree, "worktree.cleanup", state="succeeded").outputs["saved"]
    assert "+untracked" in Path(saved).read_text()


@pytest.mark.req("V40")
def test_a_cleanup_that_cannot_is_degraded(scratch: Scratch, desk: Desk) -> None:
    tree = desk.tree(slug="login")
    scratch.git("init", "-q", "inner", at=tree["path"])
    scratch.write("inner/file", "x", at=tree["path"])
    done = desk.within(tree, "worktree.cleanup", state="succeeded")
    assert done.summary.startswith("worktree cleanup degraded: ")
    assert list(done.outputs["degraded"]) == [tree["job"]] and os.path.isdir(tree["path"])


# -- commits and plans ---------------------------------------------------------------------------


def test_a_commit_has_all_that_changed_and_its_key(scratch: Scratch, desk: Desk) -> None:
    tree = desk.tree(slug="login")
    scratch.write("new", "new\n", at=tree["path"])
    os.unlink(Path(tree["path"]) / "part" / "data")
    task = desk.task(
        "git.stage_commit", args={"message": "feat: x"}, directory=tree["path"], node="commit"
    )
    done = desk.run(task)
    assert done.outputs == {"commit": scratch.head("draft/login"), "changed": 2}
    assert scratch.message("draft/login") == (
        f"feat: x\n\nHeadway-Operation: wf-7/commit/1 {task.key}"
    )
    assert scratch.status(at=tree["path"]) == ""


def test_a_commit_is_found_by_its_key(scratch: Scratch, desk: Desk) -> None:
    # fault J2
    tree = desk.tree(slug="login")
    scratch.write("new", "new\n", at=tree["path"])
    first = desk.within(tree, "git.stage_commit", args={"message": "m"}).outputs
    scratch.write("later", "not of this pass\n", at=tree["path"])
    assert desk.within(tree, "git.stage_commit", args={"message": "m"}).outputs == first
    assert scratch.count("draft/login") == 2
    again = desk.within(tree, "git.stage_commit", args={"message": "m"}, node_pass=2).outputs
    assert again["commit"] != first["commit"], "the next pass has work of its own"


def test_nothing_to_commit_is_a_success(scratch: Scratch, desk: Desk) -> None:
    tree = desk.tree(slug="login")
    done = desk.within(tree, "git.stage_commit", args={"message": "m"})
    assert done.summary == "git.stage_commit: no staged changes"
    assert done.outputs == {"commit": scratch.head("main"), "changed": 0}


def test_only_the_paths_that_are_asked_for_are_committed(scratch: Scratch, desk: Desk) -> None:
    tree = desk.tree(slug="login")
    for name in ("a", "part/b"):
        scratch.write(name, "x\n", at=tree["path"])
    desk.within(tree, "git.stage_commit", args={"message": "m", "paths": ["part"]})
    assert scratch.git("show", "--name-only", "--format=", "draft/login") == "part/b"
    with pytest.raises(FailedError, match=r"\.\./x is outside of the repository"):
        desk.within(
            tree, "git.stage_commit", args={"message": "m", "paths": ["../x"]}, node="other"
        )


def test_the_message_may_be_the_text_of_an_artifact(scratch: Scratch, desk: Desk) -> None:
    scratch.write("new", "x")
    artifacts = {"custom:summary:x": {"text": "feat: as it says"}}
    desk.do("git.stage_commit", artifacts=artifacts)
    assert scratch.message("main").startswith("feat: as it says\n")
    with pytest.raises(FailedError, match=r"git.stage_commit has no message"):
        desk.do("git.stage_commit", node="other")


def test_a_merge_in_progress_blocks_a_commit(scratch: Scratch, desk: Desk) -> None:
    # fault I1
    Path(scratch.path, ".git", "MERGE_HEAD").write_text(scratch.head() + "\n")
    with pytest.raises(BlockedError, match=r"in the middle of a merge; finish it .*--abort"):
        desk.do("git.stage_commit", {"message": "m"})


def test_a_lock_that_git_left_blocks_and_stays(scratch: Scratch, desk: Desk) -> None:
    # fault I1
    lock = scratch.write(".git/index.lock", "")
    scratch.write("new", "x")
    words = r"repo: index.lock is there; if no git is at work, remove it and retry"
    with pytest.raises(BlockedError, match=words):
        desk.do("git.stage_commit", {"message": "m"})
    assert lock.exists()


def test_a_branch_that_is_gone_names_the_node_to_retry_from(scratch: Scratch, desk: Desk) -> None:
    # fault J11
    tree = desk.tree(slug="login")
    scratch.git("update-ref", "-d", "refs/heads/draft/login")
    words = (
        r"branch draft/login of tree \(job-1\) is gone; headway workflows retry wf-7 --from tree"
    )
    for operation, args in (
        ("git.stage_commit", {"message": "m"}),
        ("git.integrate_plan_branch", {"slug": "login", "target": "main"}),
    ):
        with pytest.raises(FailedError, match=words):
            desk.within(tree, operation, args=args)
    assert not scratch.head("draft/login")


def test_a_plan_is_kept_on_its_branch(scratch: Scratch, desk: Desk) -> None:
    artifacts = {"custom:plan_text:plan": {"text": "1. do it"}}
    args = {"slug": "login", "target": "main", "spec_text": "make it so"}
    done = desk.do("plan.persist", args, artifacts=artifacts)
    assert done.outputs == {
        "slug": "login",
        "branch": "draft/login",
        "path": ".headway/plans/login.md",
        "commit": scratch.head("draft/login"),
    }
    text = scratch.git("show", "draft/login:.headway/plans/login.md")
    assert text.index("make it so") < text.index("1. do it") and text.startswith("# login")
    assert scratch.head("draft/login^") == scratch.head("main") and scratch.status() == ""
    assert desk.do("plan.persist", args, artifacts=artifacts).outputs == done.outputs
    assert scratch.count("draft/login") == 2, "it is found by its key"
    assert desk.do("plan.persist", args, artifacts=artifacts, node_pass=2).outputs == done.outputs


def test_a_plan_moves_the_worktree_that_has_its_branch(scratch: Scratch, desk: Desk) -> None:
    tree = desk.tree(slug="login")
    scratch.write("readme.txt", "being edited\n", at=tree["path"])
    desk.within(tree, "plan.persist", args={"slug": "login", "spec_file": "part/data"})
    assert "data" in Path(tree["path"], ".headway", "plans", "login.md").read_text()
    assert scratch.status(at=tree["path"]) == "M readme.txt", "the rest is left alone"


def test_a_file_in_the_way_of_a_plan_blocks(scratch: Scratch, desk: Desk) -> None:
    # fault J4
    tree = desk.tree(slug="login")
    mine = scratch.write(".headway/plans/login.md", "mine\n", at=tree["path"])
    with pytest.raises(BlockedError, match=r"plan.persist: a dirty checkout, \S+: .*login.md"):
        desk.do("plan.persist", {"slug": "login", "spec_text": "so"})
    assert mine.read_text() == "mine\n" and scratch.head("draft/login") == scratch.head("main")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"slug": "x"}, "plan.persist requires spec_text or spec_file"),
        ({"spec_text": "x"}, "plan.persist requires slug"),
        ({"slug": "../x", "spec_text": "x"}, "'../x' is no slug"),
        ({"slug": "x", "spec_file": "/etc/passwd"}, "/etc/passwd is outside of the repository"),
        ({"slug": "x", "spec_file": "none"}, "cannot read none: No such file or directory"),
    ],
)
def test_a_plan_that_cannot_be_kept(
    scratch: Scratch, desk: Desk, args: dict[str, str], words: str
) -> None:
    with pytest.raises(FailedError) as caught:
        desk.do("plan.persist", args)
    assert words in str(caught.value) and not scratch.head("draft/x")


# -- integration -----------------------------------------------------------------------------------


def plan_on(scratch: Scratch, desk: Desk, slug: str = "login") -> str:
    desk.do("plan.persist", {"slug": slug, "spec_text": "the document"}, node="keep")
    return scratch.on_branch(f"draft/{slug}", new="new\n")


@pytest.mark.req("V24")
@pytest.mark.parametrize("squash", [True, False])
def test_a_plan_is_merged_with_its_document(scratch: Scratch, desk: Desk, squash: bool) -> None:
    before, tip = scratch.head("main"), plan_on(scratch, desk)
    args = {"slug": "login", "target": "main", "squash": squash}
    done = desk.do("git.integrate_plan_branch", args)
    main = scratch.head("main")
    assert done.outputs == {"commit": main, "conflicts": []}
    message = scratch.message("main")
    assert message.startswith("feat: merge plan login\n\n# login\n\n## Specification")
    assert "the document" in message and "Headway-Operation: wf-7/node/1 " in message
    parents = scratch.git("log", "-1", "--format=%P", "main").split()
    assert parents == [before] if squash else parents == [before, scratch.head("draft/login")]
    assert scratch.head("draft/login^") == tip, "the document left by a commit of its own"
    for branch in ("main", "draft/login"):
        assert ".headway" not in scratch.git("ls-tree", "--name-only", branch)
    assert (scratch.path / "new").exists() and scratch.status() == "", "the checkout has moved"
    again = desk.do("git.integrate_plan_branch", args)
    assert again.outputs == done.outputs and scratch.head("main") == main
    later = desk.do("git.integrate_plan_branch", args, node_pass=2)
    assert later.outputs["commit"] == main, "what is merged already is a success"


def test_a_document_that_left_before_is_found_in_the_history(scratch: Scratch, desk: Desk) -> None:
    plan_on(scratch, desk)
    tree = desk.tree(slug="login")
    os.unlink(Path(tree["path"], ".headway", "plans", "login.md"))
    scratch.commit("by hand", at=tree["path"])
    desk.do("git.integrate_plan_branch", {"slug": "login", "target": "main", "message": "feat: y"})
    message = scratch.message("main")
    assert message.startswith("feat: y\n\n# login") and "the document" in message


def test_the_words_of_a_conflict_in_many_files_are_one_short_line(
    scratch: Scratch, desk: Desk
) -> None:
    names = [f"{number}{'x' * 90}\n" for number in range(5)]
    scratch.on_branch("draft/login", **dict.fromkeys(names, "theirs\n"))
    for name in names:
        scratch.write(name, "ours\n")
    scratch.commit("ours")
    with pytest.raises(BlockedError) as caught:
        desk.do("git.integrate_plan_branch", {"slug": "login", "target": "main"})
    said = str(caught.value)
    assert "and 2 more; merge main into draft/login" in said
    assert len(said) < 400 and "\n" not in said


def test_a_conflict_blocks_and_is_noted(scratch: Scratch, desk: Desk) -> None:
    scratch.on_branch("draft/login", **{"readme.txt": "theirs\n"})
    scratch.write("readme.txt", "ours\n")
    main, tip = scratch.commit("ours"), scratch.head("draft/login")
    with pytest.raises(BlockedError) as caught:
        desk.do("git.integrate_plan_branch", {"slug": "login", "target": "main"})
    assert str(caught.value) == (
        "git.integrate_plan_branch detected merge conflicts of draft/login with main in "
        "readme.txt; merge main into draft/login to resolve them"
    )
    assert caught.value.outputs == {"conflicts": ["readme.txt"]}
    noted = json.loads(desk.sentinel("login").read_text())
    assert noted["source"] == "draft/login" and noted["target"] == "main"
    assert (scratch.head("main"), scratch.head("draft/login")) == (main, tip)
    assert scratch.status() == ""


def test_a_dirty_checkout_blocks_and_nothing_is_overwritten(scratch: Scratch, desk: Desk) -> None:
    # fault J4
    scratch.on_branch("draft/login", **{"readme.txt": "theirs\n"})
    scratch.write("readme.txt", "being edited\n")
    main = scratch.head("main")
    with pytest.raises(BlockedError, match=r"a dirty checkout, \S+/repo: .*readme.txt"):
        desk.do("git.integrate_plan_branch", {"slug": "login", "target": "main"})
    assert scratch.head("main") == main
    assert (scratch.path / "readme.txt").read_text() == "being edited\n"
    scratch.write("readme.txt", "first\nsecond\nthird\n")
    desk.do("git.integrate_plan_branch", {"slug": "login", "target": "main"})
    assert (scratch.path / "readme.txt").read_text() == "theirs\n" and scratch.status() == ""


def test_an_untracked_file_in_the_way_blocks(scratch: Scratch, desk: Desk) -> None:
    # fault J4
    scratch.on_branch("draft/login", new="theirs\n")
    scratch.write("new", "mine\n")
    with pytest.raises(BlockedError, match="a dirty checkout"):
        desk.do("git.integrate_plan_branch", {"slug": "login", "target": "main"})
    assert (scratch.path / "new").read_text() == "mine\n"


def test_changes_elsewhere_in_the_checkout_are_left_alone(scratch: Scratch, desk: Desk) -> None:
    scratch.on_branch("draft/login", new="theirs\n")
    scratch.write("readme.txt", "being edited\n")
    scratch.write("scrap", "untracked\n")
    desk.do("git.integrate_plan_branch", {"slug": "login", "target": "main"})
    assert scratch.status().splitlines() == ["M readme.txt", "?? scrap"]


def test_a_source_that_is_checked_out_nowhere_is_deleted_if_asked(
    scratch: Scratch, desk: Desk
) -> None:
    plan_on(scratch, desk)
    args = {"source": "draft/login", "target": "main", "delete_branch": True}
    desk.do("git.integrate_plan_branch", args)
    assert not scratch.head("draft/login") and "# login" in scratch.message("main")
    scratch.on_branch("draft/other", other="x\n")
    desk.tree(slug="other")
    args = {"slug": "other", "target": "main", "delete_branch": True}
    desk.do("git.integrate_plan_branch", args, node="other")
    assert scratch.head("draft/other"), "it is checked out"


def test_a_source_with_commits_that_were_not_merged_stays(scratch: Scratch, desk: Desk) -> None:
    scratch.on_branch("topic", new="x\n")
    args = {"source": "topic", "target": "main"}
    merged = desk.do("git.integrate_plan_branch", args).outputs
    tip = scratch.on_branch("topic", later="y\n")
    again = desk.do("git.integrate_plan_branch", {**args, "delete_branch": True}).outputs
    assert again == merged and scratch.head("topic") == tip


MOVER = """\
#!/bin/sh
case " $* " in
*" merge-tree "*)
  if [ "$(wc -l <{count})" -lt {times} ]; then
    echo >>{count}
    new=$({git} -C {repo} commit-tree -p main -m "someone else" "main^{{tree}}")
    {git} -C {repo} update-ref refs/heads/main "$new"
  fi ;;
esac
exec {git} "$@"
"""


def move_main(scratch: Scratch, folder: Path, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Someone commits to main during each of so many merges."""
    program, count = folder / "bin" / "git", folder / "count"
    program.parent.mkdir()
    count.write_text("")
    git = shutil.which("git")
    program.write_text(MOVER.format(git=git, repo=scratch.path, count=count, times=times))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


@pytest.mark.parametrize("times", [1, 4])
def test_a_target_that_moves_is_merged_anew(
    scratch: Scratch, desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    # faults J3 and I5
    scratch.on_branch("draft/login", new="theirs\n")
    move_main(scratch, tmp_path, times, monkeypatch)
    desk.do("git.integrate_plan_branch", {"slug": "login", "target": "main"})
    log = scratch.git("log", "--format=%s", "main").splitlines()
    assert log == ["feat: merge plan login", *["someone else"] * times, "begin"]
    assert (scratch.path / "new").exists() and scratch.status() == ""


def test_a_target_that_never_rests_blocks(
    scratch: Scratch, desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # fault J3
    scratch.on_branch("draft/login", new="theirs\n")
    move_main(scratch, tmp_path, 100, monkeypatch)
    with pytest.raises(BlockedError, match="main moved 5 times during the merge; retry when it"):
        desk.do("git.integrate_plan_branch", {"slug": "login", "target": "main"})
    assert scratch.count("main") == 6 and scratch.status() == ""
    assert not (scratch.path / "new").exists()


LATE_MOVER = """\
#!/bin/sh
case " $* " in
*" update-ref refs/heads/main "*)
  if [ ! -e {mark} ]; then
    touch {mark}
    new=$({git} -C {repo} commit-tree -p main -m "someone else" "main^{{tree}}")
    {git} -C {repo} update-ref refs/heads/main "$new"
  fi ;;
esac
exec {git} "$@"
"""


def test_a_branch_that_moves_at_the_last_instant_is_left_where_it_is(
    scratch: Scratch, desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the checkout has turned, and before the branch has: both go back and on."""
    # faults J3 and I5
    scratch.on_branch("draft/login", new="theirs\n")
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    git, mark = shutil.which("git"), tmp_path / "mark"
    program.write_text(LATE_MOVER.format(git=git, repo=scratch.path, mark=mark))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    desk.do("git.integrate_plan_branch", {"slug": "login", "target": "main"})
    log = scratch.git("log", "--format=%s", "main").splitlines()
    assert log == ["feat: merge plan login", "someone else", "begin"]
    assert (scratch.path / "new").exists() and scratch.status() == ""


def test_no_hook_of_the_repository_runs(scratch: Scratch, desk: Desk, tmp_path: Path) -> None:
    # fault I4
    for name in (
        "post-checkout",
        "pre-commit",
        "commit-msg",
        "post-merge",
        "reference-transaction",
    ):
        hook = scratch.write(f".git/hooks/{name}", f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
        hook.chmod(0o755)
    tree = desk.tree(slug="login")
    scratch.write("new", "x", at=tree["path"])
    desk.within(tree, "git.stage_commit", args={"message": "m"}, node="commit")
    desk.do("git.integrate_plan_branch", {"slug": "login", "target": "main"}, node="merge")
    assert (scratch.path / "new").exists() and not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"target": "main"}, "needs slug or source"),
        ({"slug": "none", "target": "main"}, "there is no branch draft/none"),
        ({"source": "main", "target": "main"}, "main is source and target"),
        ({"source": "main", "target": "x y"}, "'x y' cannot be the name of a branch"),
    ],
)
def test_what_cannot_be_merged_fails(desk: Desk, args: dict[str, str], words: str) -> None:
    with pytest.raises(FailedError, match=words):
        desk.do("git.integrate_plan_branch", args)


# -- patches -----------------------------------------------------------------------------------


def test_a_worktree_becomes_a_patch(scratch: Scratch, desk: Desk) -> None:
    tree = desk.tree(slug="login")
    scratch.write("new", "committed\n", at=tree["path"])
    scratch.commit("work", at=tree["path"])
    scratch.write("readme.txt", "not committed\n", at=tree["path"])
    for operation in ("git.save_worktree_patch", "patch.pipeline_finalize"):
        task = desk.task(operation, directory=tree["path"], root=tree)
        outputs = desk.run(task).outputs
        assert outputs["patch"] == f"{task.folder}/command.patch"
        text = Path(outputs["patch"]).read_text()
        assert "+committed" in text and "+not committed" in text and len(text) == outputs["bytes"]


def test_patches_are_copied_and_applied_all_or_none(scratch: Scratch, desk: Desk) -> None:
    files = patches_of(scratch, desk)
    prepared = desk.do("patch.pipeline_prepare", {"files": files})
    assert prepared.outputs["total"] == 2
    for each in files:
        (scratch.path / each).unlink()
    tree = desk.tree(slug="login")
    args = {"from": "prep", "manifest": prepared.outputs["manifest"]}
    done = desk.within(tree, "patch.execute_pipeline", args=args)
    assert done.outputs["applied"] == 2
    assert Path(tree["path"], "b").read_text() == "b\n"
    assert Path(tree["path"], "readme.txt").read_text() == "patched\n"
    assert scratch.git("write-tree", at=tree["path"]) == done.outputs["tree"]
    assert desk.within(tree, "patch.execute_pipeline", args=args).outputs == done.outputs


def patches_of(scratch: Scratch, desk: Desk) -> list[str]:
    """Two patches in the repository, of which the second builds on the first."""
    scratch.on_branch("one", **{"readme.txt": "patched\n", "a": "a\n"})
    scratch.git("branch", "two", "one")
    scratch.on_branch("two", b="b\n")
    for name, pair in (("one.patch", ("main", "one")), ("two.patch", ("one", "two"))):
        scratch.write(name, scratch.git("diff", "--binary", *pair) + "\n")
    return ["one.patch", "two.patch"]


def test_a_patch_that_does_not_fit_changes_nothing(scratch: Scratch, desk: Desk) -> None:
    files = patches_of(scratch, desk)
    tree = desk.tree(slug="login")
    more = [scratch.path / each for each in files]
    more.append(scratch.write("bad.patch", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-no\n+yes\n"))
    with pytest.raises(FailedError, match=r"patch.execute_pipeline failed applying \S+bad.patch: "):
        desk.within(tree, "patch.execute_pipeline", args={"files": [str(each) for each in more]})
    assert scratch.status(at=tree["path"]) == ""


def test_a_patch_on_changed_files_blocks(scratch: Scratch, desk: Desk) -> None:
    files = patches_of(scratch, desk)
    scratch.write("readme.txt", "being edited\n")
    with pytest.raises(BlockedError, match=r"patch.execute_pipeline: a dirty checkout"):
        desk.do("patch.execute_pipeline", {"files": files})
    assert (scratch.path / "readme.txt").read_text() == "being edited\n"
    assert not (scratch.path / "b").exists()


def test_a_missing_patch_is_named(desk: Desk) -> None:
    for operation in ("patch.pipeline_prepare", "patch.execute_pipeline"):
        with pytest.raises(FailedError, match=f"{operation} missing patch file none.patch"):
            desk.do(operation, {"files": ["none.patch"]})


def test_copies_of_patches_have_the_names_of_what_is_in_them(scratch: Scratch, desk: Desk) -> None:
    names = [*patches_of(scratch, desk), "again.patch"]
    shutil.copy(scratch.path / names[0], scratch.path / names[2])
    task = desk.task("patch.pipeline_prepare", args={"files": names})
    first = desk.run(task).outputs
    copies = sorted(Path(task.folder, "patches").iterdir())
    assert first["total"] == 3 and len(copies) == 2, "the same content is copied once"
    before = [each.read_bytes() for each in copies]
    copies[0].write_text("torn")
    assert desk.run(task).outputs == first
    assert [each.read_bytes() for each in copies] == before
    manifest = json.loads(Path(first["manifest"]).read_text())
    assert [each["name"] for each in manifest["files"]] == names


def test_what_is_too_large_for_a_patch_is_refused(scratch: Scratch, desk: Desk) -> None:
    tree = desk.tree(slug="login")
    large = scratch.write("large", "", at=tree["path"])
    os.truncate(large, 513 << 20)  # it could not be packed into what a patch may have
    for operation in ("git.save_worktree_patch", "patch.pipeline_finalize"):
        task = desk.task(operation, directory=tree["path"], root=tree)
        with pytest.raises(GitError, match=r"larger than 67108864 bytes and was not saved") as no:
            desk.run(task)
        assert not no.value.of_host and "command.patch" not in os.listdir(task.folder)
    os.truncate(scratch.write("large.patch", ""), (64 << 20) + 1)
    with pytest.raises(FailedError, match=r"large.patch is larger than 67108864 bytes"):
        desk.do("patch.pipeline_prepare", {"files": ["large.patch"]})


# -- builds and sentinels --------------------------------------------------------------------------


def test_a_step_is_written_and_its_branches_are_made_once(scratch: Scratch, desk: Desk) -> None:
    args = {"slug": "login", "target": "release"}
    path = desk.do("build.materialize_step", args).outputs["path"]
    assert path == str(desk.home / "builds" / "wf-7" / "node.json")
    assert json.loads(Path(path).read_text())["branch"] == "draft/login"
    assert scratch.head("release") == scratch.head("draft/login") == scratch.head("main")
    tip = scratch.on_branch("draft/login", new="x")
    assert desk.do("build.materialize_step", args).outputs["path"] == path
    assert scratch.head("draft/login") == tip


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"branch": "a..b"}, "'a..b' cannot be the name of a branch"),
        ({"build_id": "../up"}, "build_id is '../up'"),
    ],
)
def test_a_step_that_cannot_be_made_fails(desk: Desk, args: dict[str, str], words: str) -> None:
    with pytest.raises(FailedError, match=words):
        desk.do("build.materialize_step", args)


def test_a_sentinel_comes_and_goes(desk: Desk) -> None:
    args = {"slug": "login", "target": "main"}
    desk.do("merge.sentinel.write", args)
    assert json.loads(desk.sentinel("login").read_text())["source"] == "draft/login"
    assert desk.do("merge.sentinel.clear", args).summary == "merge conflict of login cleared"
    assert not desk.sentinel("login").exists()
    assert desk.do("merge.sentinel.clear", args).summary == "merge conflict of login was not noted"
    with pytest.raises(FailedError, match="'a b' is no slug"):
        desk.do("merge.sentinel.write", {"slug": "a b"})


# -- conflicts ---------------------------------------------------------------------------------


def conflict(scratch: Scratch, desk: Desk) -> None:
    """Both branches have changed a file, and that is noted."""
    scratch.on_branch("draft/login", **{"readme.txt": "theirs\n"})
    scratch.write("readme.txt", "ours\n")
    scratch.commit("ours")
    with pytest.raises(BlockedError):
        desk.do("git.integrate_plan_branch", {"slug": "login", "target": "main"}, node="merge")


RESOLVE = ["sh", "-c", "echo both >readme.txt"]


@pytest.mark.req("V22")
def test_no_conflict_is_a_success(desk: Desk) -> None:
    done = desk.do("gate.conflict_resolution", {"slug": "login"})
    assert done.summary == "no merge conflict of login"


@pytest.mark.req("V22")
@pytest.mark.parametrize("own", [True, False], ids=["own tree", "root"])
def test_a_command_resolves_a_conflict_on_the_source(
    scratch: Scratch, desk: Desk, own: bool
) -> None:
    conflict(scratch, desk)
    tree = None if own else desk.tree(slug="login")
    task = desk.task("gate.conflict_resolution", args={"slug": "login"}, command=RESOLVE, root=tree)
    assert desk.run(task).summary == "merge conflict of login resolved on draft/login"
    assert scratch.git("show", "draft/login:readme.txt") == "both"
    assert f"Headway-Operation: wf-7/node/1 {task.key}" in scratch.message("draft/login")
    assert scratch.head("draft/login^2") == scratch.head("main")
    assert not desk.sentinel("login").exists()
    if tree is not None:
        assert scratch.status(at=tree["path"]) == ""
    else:
        assert os.listdir(desk.home / "worktrees") == []
    desk.do("git.integrate_plan_branch", {"slug": "login", "target": "main"}, node="merge")
    assert (scratch.path / "readme.txt").read_text() == "both\n"


@pytest.mark.req("V22")
@pytest.mark.parametrize("command", [None, ["false"], ["true"]])
def test_a_conflict_that_stays_blocks(
    scratch: Scratch, desk: Desk, command: list[str] | None
) -> None:
    conflict(scratch, desk)
    tree = desk.tree(slug="login")
    words = "merge conflict resolution incomplete for slug login: unmerged index entries remain"
    with pytest.raises(BlockedError) as caught:
        desk.within(
            tree, "gate.conflict_resolution", args={"slug": "login"}, command=command, node="r"
        )
    assert str(caught.value) == words and desk.sentinel("login").exists()
    scratch.write("readme.txt", "by a person\n", at=tree["path"])
    scratch.commit("by a person", at=tree["path"])
    desk.within(tree, "gate.conflict_resolution", args={"slug": "login"}, node="r")
    assert not desk.sentinel("login").exists()
    assert scratch.git("show", "draft/login:readme.txt") == "by a person"


def test_a_command_may_commit_the_merge_itself(scratch: Scratch, desk: Desk) -> None:
    conflict(scratch, desk)
    tree = desk.tree(slug="login")
    command = ["sh", "-c", "echo both >readme.txt && git commit -qam mine"]
    desk.within(tree, "gate.conflict_resolution", args={"slug": "login"}, command=command)
    assert scratch.message("draft/login") == "mine" and not desk.sentinel("login").exists()


def test_a_resolution_goes_on_in_a_tree_of_its_own(scratch: Scratch, desk: Desk) -> None:
    conflict(scratch, desk)
    with pytest.raises(BlockedError, match="unmerged index entries remain"):
        desk.do("gate.conflict_resolution", {"slug": "login"}, command=["false"])
    owner = f"job-{desk.jobs}"
    old = {
        "job": owner,
        "repo": str(scratch.path),
        "path": str(desk.home / "worktrees" / owner),
        "branch": "draft/login",
        "base": scratch.head("main"),
        "run": "wf-7",
        "ended": True,
    }
    args = {"slug": "login"}
    done = desk.do("gate.conflict_resolution", args, command=RESOLVE, old_trees=[old])
    assert done.outputs["cleaned"] == [owner, f"job-{desk.jobs}"]
    assert scratch.git("show", "draft/login:readme.txt") == "both"
    assert os.listdir(desk.home / "worktrees") == []


def test_changes_that_are_not_committed_block_a_resolution(scratch: Scratch, desk: Desk) -> None:
    conflict(scratch, desk)
    tree = desk.tree(slug="login")
    scratch.write("part/data", "being edited\n", at=tree["path"])
    with pytest.raises(BlockedError, match="has changes that are not committed"):
        desk.within(tree, "gate.conflict_resolution", args={"slug": "login"}, command=RESOLVE)


def test_a_source_that_someone_has_checked_out_blocks_a_resolution(
    scratch: Scratch, desk: Desk, tmp_path: Path
) -> None:
    conflict(scratch, desk)
    scratch.git("worktree", "add", "-q", str(tmp_path / "mine"), "draft/login")
    with pytest.raises(BlockedError, match=r"branch draft/login is checked out at \S+/mine; check"):
        desk.do("gate.conflict_resolution", {"slug": "login"}, command=RESOLVE)
    assert desk.sentinel("login").exists() and scratch.status(at=tmp_path / "mine") == ""


def test_a_resolution_needs_a_slug_and_a_target(scratch: Scratch, desk: Desk) -> None:
    with pytest.raises(FailedError, match=r"gate.conflict_resolution requires slug"):
        desk.do("gate.conflict_resolution")
    scratch.git("branch", "draft/login")
    desk.do("merge.sentinel.write", {"slug": "login"})
    with pytest.raises(FailedError, match=r"the target of login is not known; give it"):
        desk.do("gate.conflict_resolution", {"slug": "login"}, command=RESOLVE)
    desk.do("gate.conflict_resolution", {"slug": "login", "target": "main"}, command=RESOLVE)
    assert not desk.sentinel("login").exists(), "nothing is in conflict any more"


def test_a_resolution_that_is_done_again_finds_its_commit(scratch: Scratch, desk: Desk) -> None:
    conflict(scratch, desk)
    tree, note = desk.tree(slug="login"), desk.sentinel("login").read_text()
    task = desk.task("gate.conflict_resolution", args={"slug": "login"}, command=RESOLVE, root=tree)
    desk.run(task)
    merge = scratch.head("draft/login")
    scratch.write("readme.txt", "main goes on\n")
    scratch.commit("main goes on")
    desk.sentinel("login").write_text(note)  # as if it had died before that went
    desk.run(task)
    assert scratch.head("draft/login") == merge and not desk.sentinel("login").exists()
