"""Who owns which worktree, on every store."""

from recording import verbs
from stocked import add, job

from headway.core.worktrees import WorktreeState, owned_worktree
from headway.store.store import Store

ASKED = {"repo": "/repo", "base": "b" * 40, "inside": "part", "folder": "/home/worktrees"}


@verbs("graph.own_worktrees", "graph.worktrees", "graph.kept_worktrees")
def test_a_worktree_is_owned_from_the_moment_its_job_is_added(store: Store) -> None:
    with store.write() as tx:
        plain = add(tx)
        owner = add(tx, params={"argv": ["true"], "worktree": ASKED})
        half = add(tx, params={"argv": ["true"], "worktree": {"repo": "/repo"}})
        again = job(tx.jobs.take_ids(1), chain=owner.id, retry_of=owner.id, params=owner.params)
        tx.jobs.add_retries([again])
        rows = tx.graph.worktrees([plain.id, owner.id, half.id, again.id])
        assert tx.graph.kept_worktrees() == rows and list(rows) == [owner.id, again.id]
        for each in (owner, again):
            found = rows[each.id]
            assert found.path == f"/home/worktrees/job-{each.id}"
            assert (found.branch, found.base) == (f"headway/job-{each.id}", "b" * 40)
            assert (found.repo, found.state, found.error) == ("/repo", WorktreeState.OWNED, None)
        made = owned_worktree(owner)
        assert made is not None and made.inside == "part"
        tx.graph.own_worktrees([made])  # told twice, owned once
        assert tx.graph.worktrees([owner.id])[owner.id] == rows[owner.id]


@verbs("graph.set_worktree_state", "graph.worktrees", "graph.kept_worktrees")
def test_what_was_cleaned_is_no_longer_kept_and_what_could_not_be_says_why(store: Store) -> None:
    with store.write() as tx:
        one, other = (add(tx, params={"worktree": ASKED}) for _ in range(2))
        tx.graph.set_worktree_state(one.id, WorktreeState.DEGRADED, "it is in use")
        tx.graph.set_worktree_state(other.id, WorktreeState.CLEANED)
    with store.read() as tx:
        assert list(tx.graph.kept_worktrees()) == [one.id]
        rows = tx.graph.worktrees([one.id, other.id])
        assert (rows[one.id].state, rows[one.id].error) == (WorktreeState.DEGRADED, "it is in use")
        assert (rows[other.id].state, rows[other.id].error) == (WorktreeState.CLEANED, None)
    with store.write() as tx:
        tx.graph.set_worktree_state(one.id, WorktreeState.CLEANED)
        assert (
            tx.graph.kept_worktrees() == {} and tx.graph.worktrees([one.id])[one.id].error is None
        )
