"""What every store does with targets, open jobs by their subjects, and groups that track them."""

from typing import Any

import apsw
import psycopg
import pytest
from recording import verbs
from stocked import START, add, finish_of, start

from headway.core.groups import Group, GroupMode
from headway.core.model import Stage
from headway.core.targets import Target
from headway.store.records import RunRecord
from headway.store.store import Store
from headway.store.transaction import WriteTx

BROKEN = (apsw.ConstraintError, psycopg.IntegrityError)
GAS = Target(
    "gas",
    ("make", "{subject}", "é"),
    prefix="gt-",
    cwd="/srv",
    env={"A": "1"},
    resources=("gpu",),
    locks=("repo:shared",),
    timeout=7,
    retries=2,
    helper=("/bin/true", "x"),
    created_at=START,
    created_by="ann",
)


@verbs("workitems.targets", "workitems.add_target", "workitems.remove_target")
def test_targets_are_kept_whole_and_one_per_name(store: Store) -> None:
    plain = Target("any", ("true",), created_at=START, created_by="bob")
    run = Target("run", workflow="change", params={"slug": "{subject}"}, created_by="bob")
    with store.write() as tx:
        assert tx.workitems.targets() == {}
        assert tx.workitems.add_target(run)
        assert tx.workitems.targets() == {"run": run} and tx.workitems.remove_target("run")
        assert tx.workitems.add_target(GAS) and tx.workitems.add_target(plain)
        assert not tx.workitems.add_target(plain._replace(argv=("false",)))
        assert not tx.workitems.add_target(GAS._replace(name="other")), "the prefix is taken"
        assert tx.workitems.targets() == {"any": plain, "gas": GAS}
        assert list(tx.workitems.targets()) == ["any", "gas"]
        assert tx.workitems.remove_target("any") and not tx.workitems.remove_target("any")
        assert list(tx.workitems.targets()) == ["gas"]


@pytest.mark.req("G17")
@verbs("workitems.open_about", "workitems.open_with_subject", "workitems.open_with_subject_after")
def test_the_open_job_of_a_subject_is_found(store: Store) -> None:
    with store.write() as tx:
        ended = add(tx, subject="gt-1")
        tx.claims.finish([finish_of(start(tx, ended))])
        second = add(tx, subject="gt-1", position=900)
        other = add(tx, subject="gt-2", priority=5)
        running = add(tx, subject="gt-3", position=950)
        start(tx, running)
        add(tx)
        found = tx.workitems.open_about(["gt-1", "gt-3", "gt-9"])
        assert {subject: job.id for subject, job in found.items()} == {
            "gt-1": second.id,
            "gt-3": running.id,
        }
        assert tx.workitems.open_about([]) == {}
        listed = [job.id for job in tx.workitems.open_with_subject(10)]
        assert listed == [other.id, second.id, running.id]
        assert [job.id for job in tx.workitems.open_with_subject(1)] == [other.id]
        later = [job.id for job in tx.workitems.open_with_subject_after(second.id, 10)]
        assert later == [other.id, running.id]
        assert [job.id for job in tx.workitems.open_with_subject_after(0, 1)] == [second.id]


RUN = RunRecord(1, "flow", "1", "f" * 64, {}, START, "ann", subject="gt-1", target="gas")


def add_run(tx: WriteTx, **fields: Any) -> RunRecord:
    run = RUN._replace(id=tx.workflows.take_id(), **fields)
    tx.workflows.add(run, key=None, manifest={}, nodes=[])
    return run


@pytest.mark.req("G17")
@verbs("workitems.open_runs_about", "workitems.open_runs_with_subject")
def test_a_run_holds_its_subject_for_its_jobs_until_it_ends(store: Store) -> None:
    with store.write() as tx:
        add_run(tx, subject=None)
        run = add_run(tx)
        of_run = {"workflow_run": run.id, "node": "a", "node_pass": 1, "subject": "gt-1"}
        add(tx, **of_run)
        add(tx, **of_run)
        alone = add(tx, subject="gt-2", needs=("run:x",))
        other = add_run(tx, subject="gt-3")
        asked = ["gt-1", "gt-2", "gt-3"]
        assert {name: job.id for name, job in tx.workitems.open_about(asked).items()} == {
            "gt-2": alone.id
        }
        assert [job.id for job in tx.workitems.open_with_subject(10)] == [alone.id]
        assert [job.id for job in tx.workitems.open_with_subject_after(0, 10)] == [alone.id]
        assert tx.workitems.open_runs_about(asked) == {"gt-1": run, "gt-3": other}
        assert tx.workitems.open_runs_with_subject(10) == [run, other]
        assert tx.workitems.open_runs_with_subject(1) == [run]
        tx.workflows.end(run.id, "failed")
        assert tx.workitems.open_runs_about(asked) == {"gt-3": other}
        assert tx.workitems.open_runs_with_subject(10) == [other]


@pytest.mark.req("G17")
def test_two_open_jobs_or_two_open_runs_of_a_subject_cannot_be_stored(store: Store) -> None:
    """What the check forgets the schema refuses."""
    with store.write() as tx:
        add(tx, subject="gt-1")
        first = add_run(tx, subject="gt-2")
    with pytest.raises(BROKEN), store.write() as tx:
        add(tx, subject="gt-1", needs=("file:run:x",), produces=('file:"run":',))
    with pytest.raises(BROKEN), store.write() as tx:
        add_run(tx, subject="gt-2")
    with store.write() as tx:
        tx.workflows.end(first.id, "failed")
        add_run(tx, subject="gt-2")


@verbs("workitems.places_in_queue")
def test_places_count_everybody_that_waits_for_capacity(store: Store) -> None:
    with store.write() as tx:
        add(tx)
        mine = add(tx, subject="gt-1", stage=Stage.READY)
        add(tx, priority=3)
        start(tx, add(tx, subject="gt-2", priority=9))
        assert tx.workitems.places_in_queue() == {mine.id: 3}


@pytest.mark.req("G20")
@verbs("workitems.groups_tracking")
def test_groups_of_slings_are_found_by_what_they_track(store: Store) -> None:
    def group(group_id: int, subject: str | None = None, **fields: object) -> Group:
        whole = Group(group_id, GroupMode.PARALLEL, "continue", START, "ann", subject=subject)
        return whole._replace(**fields)  # type: ignore[arg-type]

    with store.write() as tx:
        for made in (
            group(1, "gt-epic"),
            group(2, "gt-epic"),
            group(3, "gt-old", ended_at=START),
            group(4),
            group(5, "gt-mine", name="by hand"),
            group(6, "gt-line", mode=GroupMode.SEQUENTIAL),
        ):
            tx.groups.add(made)
        add(tx, subject="gt-a", group_id=4, sequence_number=1)
        add(tx, subject="gt-b", group_id=3, sequence_number=1)
        asked = ["gt-epic", "gt-old", "gt-a", "gt-b", "gt-mine", "gt-line", "gt-none"]
        assert tx.workitems.groups_tracking(asked) == {"gt-epic": 2, "gt-a": 4}
