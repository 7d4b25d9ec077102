"""What every store does with jobs files and their entries."""

from recording import verbs
from stocked import HOST, START, add, claim_for, finish_of

from headway.core.states import Status
from headway.store.base import Store
from headway.store.seam_entries import EntryRecord, JobsFile

SWEEP = {"name": "sweep", "type": "script"}
MAKER = "jobs.yaml:sweep"


@verbs("jobs_file", "put_jobs_file", "note_poll")
def test_a_jobs_file_is_kept_for_each_host_with_what_the_poll_said(store: Store) -> None:
    good = JobsFile("d1", START, (), (SWEEP,), START)
    with store.write() as tx:
        assert tx.jobs_file(HOST.id) is None
        tx.put_jobs_file(HOST.id, good)
        tx.put_jobs_file("elsewhere", JobsFile("d0", START))
        tx.note_poll(HOST.id, "it is down")
        polled = {"poll_trouble": "it is down", "polled_at": tx.now()}
        assert tx.jobs_file(HOST.id) == good._replace(**polled)
        broken = good._replace(
            digest="d2", read_at=START + 1, trouble=({"line": 3, "key": "run", "text": "what"},)
        )
        tx.put_jobs_file(HOST.id, broken)
    with store.read() as tx:
        assert tx.jobs_file(HOST.id) == broken._replace(**polled)
        assert tx.jobs_file("elsewhere") == JobsFile("d0", START)
    with store.write() as tx:
        tx.note_poll(HOST.id, None, polled=False)
        assert tx.jobs_file(HOST.id) == broken


@verbs("entries", "put_entries", "entry_state", "keep_entry_state")
def test_what_a_function_keeps_stays_when_its_entry_is_written(store: Store) -> None:
    record = EntryRecord("sweep", 7, START, "failed", START + 5, "because", START + 1)
    with store.write() as tx:
        assert tx.entries(HOST.id) == {} and tx.entry_state(HOST.id, "sweep") is None
        tx.keep_entry_state(HOST.id, "sweep", {"seen": [1, "\0"]})
        tx.put_entries(HOST.id, [record, EntryRecord("aged")])
        tx.put_entries("elsewhere", [EntryRecord("sweep")])
        assert tx.entries(HOST.id) == {"aged": EntryRecord("aged"), "sweep": record}
        tx.put_entries(HOST.id, [record._replace(held=None)])
    with store.read() as tx:
        assert tx.entries(HOST.id)["sweep"] == record._replace(held=None)
        assert tx.entry_state(HOST.id, "sweep") == {"seen": [1, "\0"]}
        assert tx.entry_state(HOST.id, "aged") is None
        assert tx.entry_state("elsewhere", "sweep") is None


@verbs("forget_entries")
def test_entries_that_are_long_gone_are_forgotten_unless_a_job_is_active(store: Store) -> None:
    with store.write() as tx:
        gone = {"sweep": START, "busy": START, "lately": START + 9, "there": None}
        records = [EntryRecord(name, gone_at=at) for name, at in gone.items()]
        tx.put_entries(HOST.id, records)
        tx.put_entries("elsewhere", records)
        add(tx, schedule_id="jobs.yaml:busy")
        tx.forget_entries(HOST.id, START + 9)
        assert sorted(tx.entries(HOST.id)) == ["busy", "lately", "there"]
        assert len(tx.entries("elsewhere")) == 4


@verbs("active_made_by", "other_work", "running_of_type")
def test_what_an_entry_made_is_told_from_other_work(store: Store) -> None:
    with store.write() as tx:
        assert tx.active_made_by([MAKER]) == [] and not tx.other_work()
        made = add(tx, schedule_id=MAKER, type="agent")
        add(tx, schedule_id="jobs.yaml:aged")
        assert [job.id for job in tx.active_made_by([MAKER, "jobs.yaml:none"])] == [made.id]
        assert not tx.other_work() and not tx.running_of_type("agent")
        tx.claim([(made, claim_for(made.id))])
        assert tx.running_of_type("agent") and not tx.running_of_type("script")
        tx.finish([finish_of(claim_for(made.id))])
        assert tx.active_made_by([MAKER]) == [] and not tx.running_of_type("agent")
        add(tx, schedule_id="schedule-3", status=Status.QUEUED)
        assert tx.other_work()
