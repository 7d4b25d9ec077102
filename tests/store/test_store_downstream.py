"""All that comes after a job is found, once each, the nearest first."""

import sys
from typing import Any

from stocked import START, add, finish_of, job, start

from headway.core.model import Job
from headway.jobs.downstream import downstream
from headway.store.records import Marker
from headway.store.store import Store


def ids(jobs: list[Job]) -> list[int]:
    return [each.id for each in jobs]


def end(tx: Any, waiting: Job) -> None:
    tx.claims.finish([finish_of(start(tx, waiting))])


def test_edges_lead_to_the_last_job_of_each_chain_the_nearest_first(store: Store) -> None:
    with store.write() as tx:
        root = add(tx)
        left = add(tx, after=(root.id,))
        right = add(tx, after=(root.id,))
        bottom = add(tx, after=(left.id, right.id))
        beside = add(tx)
        below_both = add(tx, after=(bottom.id, beside.id))
        end(tx, left)
        again = job(tx.jobs.take_ids(1), chain=left.id, retry_of=left.id, after=(root.id,))
        tx.jobs.add_retries([again])
        # `again` is the present word of its chain, and near
        assert ids(downstream(tx, [root])) == [again.id, right.id, bottom.id, below_both.id]
        assert ids(downstream(tx, [again])) == [bottom.id, below_both.id]
        assert ids(downstream(tx, [root, right])) == [again.id, bottom.id, below_both.id]
        assert downstream(tx, [below_both]) == downstream(tx, []) == []


def test_artifacts_lead_on_whether_they_were_announced_or_not(store: Store) -> None:
    with store.write() as tx:
        maker = add(tx, produces=("custom:report:june",))
        reader = add(tx, needs=("custom:report:june",))
        add(tx, needs=("custom:report:july",))
        surprised = add(tx, needs=("custom:found:it",))
        patched = add(tx, needs=(f"command_patch:job-{reader.id}",))
        tx.graph.publish([Marker("custom:found:it", maker.id, START)])
        assert ids(downstream(tx, [maker])) == [reader.id, surprised.id, patched.id]


def test_an_artifact_of_another_repository_leads_nowhere(store: Store) -> None:
    with store.write() as tx:
        maker = add(tx, produces=("plan_doc:login",), repo="/srv/one")
        add(tx, needs=("plan_doc:login",), repo="/srv/two")
        same = add(tx, needs=("plan_doc:login",), repo="/srv/one")
        assert ids(downstream(tx, [maker])) == [same.id]


def test_a_circle_of_artifacts_ends_and_does_not_name_its_root(store: Store) -> None:
    with store.write() as tx:
        one = add(tx, produces=("custom:a:1",), needs=("custom:b:1",))
        two = add(tx, produces=("custom:b:1",), needs=("custom:a:1",))
        assert ids(downstream(tx, [one])) == [two.id]


def test_a_long_line_is_walked_without_recursion(store: Store) -> None:
    with store.write() as tx:
        first, length = add(tx), sys.getrecursionlimit() + 1
        begin = tx.jobs.take_ids(length)
        rest = [job(each, after=(each - 1,)) for each in range(begin, begin + length)]
        assert begin == first.id + 1
        tx.jobs.add(rest)
        jobs = [first, *rest]
        assert ids(downstream(tx, jobs[:1])) == ids(jobs[1:])
