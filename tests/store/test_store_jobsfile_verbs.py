"""What every store does with jobs files and their entries."""

from recording import verbs
from stocked import HOST, START, add, claim_for, finish_of

from headway.core.states import Status
from headway.store.records import EntryRecord, JobsFileRecord
from headway.store.store import Store

SWEEP = {"name": "sweep", "type": "script"}
MAKER = "jobs.yaml:sweep"


@verbs("jobsfile.file", "jobsfile.put_file", "jobsfile.note_poll")
def test_a_jobs_file_is_kept_for_each_host_with_what_the_poll_said(store: Store) -> None:
    good = JobsFileRecord("d1", START, (), (SWEEP,), START)
    with store.write() as tx:
        assert tx.jobsfile.file(HOST.id) is None
        tx.jobsfile.put_file(HOST.id, good)
        tx.jobsfile.put_file("elsewhere", JobsFileRecord("d0", START))
        tx.jobsfile.note_poll(HOST.id, "it is down")
        polled = {"poll_trouble": "it is down", "polled_at": tx.now()}
        assert tx.jobsfile.file(HOST.id) == good._replace(**polled)
        broken = good._replace(
            digest="d2", read_at=START + 1, trouble=({"line": 3, "key": "run", "text": "what"},)
        )
        tx.jobsfile.put_file(HOST.id, broken)
    with store.read() as tx:
        assert tx.jobsfile.file(HOST.id) == broken._replace(**polled)
        assert tx.jobsfile.file("elsewhere") == JobsFileRecord("d0", START)
    with store.write() as tx:
        tx.jobsfile.note_poll(HOST.id, None, polled=False)
        assert tx.jobsfile.file(HOST.id) == broken


@verbs(
    "jobsfile.entries", "jobsfile.put_entries", "jobsfile.entry_state", "jobsfile.keep_entry_state"
)
def test_what_a_function_keeps_stays_when_its_entry_is_written(store: Store) -> None:
    record = EntryRecord("sweep", 7, START, "failed", START + 5, "because", START + 1)
    with store.write() as tx:
        assert (
            tx.jobsfile.entries(HOST.id) == {} and tx.jobsfile.entry_state(HOST.id, "sweep") is None
        )
        tx.jobsfile.keep_entry_state(HOST.id, "sweep", {"seen": [1, "\0"]})
        tx.jobsfile.put_entries(HOST.id, [record, EntryRecord("aged")])
        tx.jobsfile.put_entries("elsewhere", [EntryRecord("sweep")])
        assert tx.jobsfile.entries(HOST.id) == {"aged": EntryRecord("aged"), "sweep": record}
        tx.jobsfile.put_entries(HOST.id, [record._replace(held=None)])
    with store.read() as tx:
        assert tx.jobsfile.entries(HOST.id)["sweep"] == record._replace(held=None)
        assert tx.jobsfile.entry_state(HOST.id, "sweep") == {"seen": [1, "\0"]}
        assert tx.jobsfile.entry_state(HOST.id, "aged") is None
        assert tx.jobsfile.entry_state("elsewhere", "sweep") is None


@verbs("jobsfile.forget_entries")
def test_entries_that_are_long_gone_are_forgotten_unless_a_job_is_active(store: Store) -> None:
    with store.write() as tx:
        gone = {"sweep": START, "busy": START, "lately": START + 9, "there": None}
        records = [EntryRecord(name, gone_at=at) for name, at in gone.items()]
        tx.jobsfile.put_entries(HOST.id, records)
        tx.jobsfile.put_entries("elsewhere", records)
        add(tx, schedule_id="jobs.yaml:busy")
        tx.jobsfile.forget_entries(HOST.id, START + 9)
        assert sorted(tx.jobsfile.entries(HOST.id)) == ["busy", "lately", "there"]
        assert len(tx.jobsfile.entries("elsewhere")) == 4


@verbs("jobsfile.active_made_by", "jobsfile.other_work", "jobsfile.running_of_type")
def test_what_an_entry_made_is_told_from_other_work(store: Store) -> None:
    with store.write() as tx:
        assert tx.jobsfile.active_made_by([MAKER]) == [] and not tx.jobsfile.other_work()
        made = add(tx, schedule_id=MAKER, type="agent")
        add(tx, schedule_id="jobs.yaml:aged")
        assert [job.id for job in tx.jobsfile.active_made_by([MAKER, "jobs.yaml:none"])] == [
            made.id
        ]
        assert not tx.jobsfile.other_work() and not tx.jobsfile.running_of_type("agent")
        tx.claims.begin([(made, claim_for(made.id))])
        assert tx.jobsfile.running_of_type("agent") and not tx.jobsfile.running_of_type("script")
        tx.claims.finish([finish_of(claim_for(made.id))])
        assert tx.jobsfile.active_made_by([MAKER]) == [] and not tx.jobsfile.running_of_type(
            "agent"
        )
        add(tx, schedule_id="schedule-3", status=Status.QUEUED)
        assert tx.jobsfile.other_work()
