"""Parked runners, on both stores."""

from recording import verbs
from test_store_workflow_verbs import add_jobs, add_run

from headway.core.agents import ParkedRunner
from headway.store.store import Store


@verbs("runners.parked", "runners.park", "runners.resume")
def test_a_runner_is_parked_anew_and_resumed_once(store: Store) -> None:
    first = ParkedRunner("claude", 900, "too much", 100, 7, guessed=True)
    other = ParkedRunner("codex", None, "bad key", 200, 8)
    with store.write() as tx:
        assert tx.runners.parked() == {}
        tx.runners.park(first)
        tx.runners.park(other)
    with store.write() as tx:
        assert tx.runners.parked() == {"claude": first, "codex": other}
        later = first._replace(until=1800, guessed=False)
        tx.runners.park(later)
        assert tx.runners.parked()["claude"] == later
        assert tx.runners.resume("codex") is True
        assert tx.runners.resume("codex") is False
    with store.read() as tx:
        assert tx.runners.parked() == {"claude": later}


@verbs("workflows.spend", "workflows.set_budget", "workflows.running_agents")
def test_what_agents_of_a_run_use_adds_up(store: Store) -> None:
    jobs = add_jobs(store, 2)
    with store.write() as tx:
        run, other = add_run(tx, jobs[:1]), add_run(tx, jobs[1:])
        tx.workflows.spend(run, usd=1_500_000, tokens=10)
        tx.workflows.spend(run, usd=500_000, tokens=5)
        tx.workflows.set_budget(run, usd=4_000_000, tokens=None)
        tx.workflows.set_budget(run, usd=None, tokens=99)
    with store.read() as tx:
        found = tx.workflows.by_id([run, other])
        assert (found[run].usd_spent, found[run].tokens_spent) == (2_000_000, 15)
        assert (found[run].usd_budget, found[run].token_budget) == (4_000_000, 99)
        assert (found[other].usd_spent, found[other].usd_budget) == (0, None)
        assert tx.workflows.running_agents(run) == []
