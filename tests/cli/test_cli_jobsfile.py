"""`headway jobsfile`: what is wrong with the file, how its entries stand, the schema."""

import json
from contextlib import closing
from pathlib import Path

import pytest
from commandline import CommandLine

from harness import Site
from headway.base.units import show_instant
from headway.base.worker_lock import STAYS, WorkerLock
from headway.cli.jobsfile import _last, _next, _state, _when
from headway.core.model import JobSpec
from headway.jobs.insert import Origin, add_jobs
from headway.schedules.jobsfile.reader import read_jobs_file
from headway.schedules.jobsfile.schema import schema_document
from headway.store.records import EntryRecord, JobsFileRecord

MINUTE = 60_000_000
GOOD = """\
jobs:
  sweep: {type: command, run: [tidy], interval: 5m, interval_idle: 1h, group: local}
  review: {type: agent, prompt: Look., interval: 60, conditions: [has_open_prs]}
  report: {type: script, run: report, cron: "30 0 * * *", timezone: Europe/Berlin}
  later: {type: script, run: later, interval: 60, enabled: false}
"""
BROKEN = GOOD.replace("interval: 60, conditions", "interval: often, conditions")
TROUBLE = (
    'line 3: jobs.review.interval: "often" is not whole seconds (at least 1) or a duration; '
    "write e.g. 300 or 5m"
)


# -- check -------------------------------------------------------------------------------------


@pytest.mark.req("C17", "O4")
def test_check_tells_all_that_is_wrong_and_exits_5(bare: CommandLine) -> None:
    bare.configure()
    file = bare.home / "jobs.yaml"
    file.write_text(BROKEN + "  x y: {}\n")
    done = bare("jobsfile", "check", code=5)
    told = done.stderr.splitlines()
    assert told[0] == f"headway: .headway/jobs.yaml: {TROUBLE}"
    assert [line.split(": ")[2] for line in told[1:]] == ["line 6"] * 3 and done.stdout == ""
    document = json.loads(bare("jobsfile", "check", "--json", code=5).stdout)
    assert (document["version"], document["valid"], document["entries"]) == (1, False, [])
    assert document["problems"][0]["key"] == "jobs.review.interval"
    assert [each["line"] for each in document["problems"]] == [3, 6, 6, 6]
    assert not (bare.home / "headway.db").exists(), "a check needs no store"


def test_check_takes_any_file_and_says_that_it_is_good(bare: CommandLine) -> None:
    (bare.folder / "mine.yaml").write_text(GOOD)
    assert bare("jobsfile", "check", "mine.yaml").stderr == (
        "headway: mine.yaml: 4 entries, nothing is wrong\n"
    )
    assert bare.json("jobsfile", "check", "mine.yaml") == {
        "version": 1,
        "path": "mine.yaml",
        "valid": True,
        "entries": ["sweep", "review", "report", "later"],
        "problems": [],
        "missing": [],
    }
    assert "stdin: line 1: it is empty" in bare("jobsfile", "check", "-", code=5).stderr
    assert "there is no .headway/jobs.yaml" in bare("jobsfile", "check", code=3).stderr
    assert not bare.home.exists()


def test_the_schema_is_one_document(bare: CommandLine) -> None:
    assert json.loads(bare.out("jobsfile", "schema")) == schema_document()


# -- list --------------------------------------------------------------------------------------


def put(site: Site, text: str) -> None:
    Path(site.home.path, "jobs.yaml").write_text(text)


def known(site: Site, *records: EntryRecord, **more: object) -> int:
    """As a worker would have left it: the good file is loaded. Gives the present time."""
    entries = tuple(entry.document() for entry in read_jobs_file(GOOD.encode()))
    host = site.client.context.host.id
    with site.client.context.store.write() as tx:
        now = tx.now()
        file = JobsFileRecord("digest", now - MINUTE, (), entries, now - MINUTE)
        tx.jobsfile.put_file(host, file._replace(**more))  # type: ignore[arg-type]
        tx.jobsfile.put_entries(host, records)
    return now


def test_what_is_declared_is_listed_although_no_worker_has_read_it(site: Site) -> None:
    put(site, GOOD)
    told = site.client.jobsfile.list()
    assert (told["jobs_file"]["state"], told["jobs_file"]["taken_over"]) == ("good", False)
    assert not told["worker"]
    sweep, review, report, later = told["entries"]
    assert sweep == {
        "name": "sweep",
        "type": "command",
        "line": 2,
        "enabled": True,
        "interval": "5m",
        "interval_active": None,
        "interval_idle": "1h",
        "cron": None,
        "timezone": None,
        "group": "local",
        "conditions": [],
        "active_job": None,
        "last_run": None,
        "next_at": sweep["next_at"],
        "held": None,
    }
    assert sweep["next_at"] and review["conditions"] == ["has_open_prs"]
    assert (report["cron"], report["timezone"]) == ("30 0 * * *", "Europe/Berlin")
    assert report["next_at"].endswith(("22:30:00.000000Z", "23:30:00.000000Z"))
    assert (later["enabled"], later["next_at"]) == (False, None)


@pytest.mark.req("C16", "C32")
def test_an_entry_shows_its_last_run_its_next_and_what_holds_it(site: Site) -> None:
    put(site, GOOD)
    spec = JobSpec(name="report", params={"argv": ["true"]}, schedule_id="jobs.yaml:report")
    with site.client.context.store.write() as tx:
        [made] = add_jobs(tx, [spec], Origin("jobs.yaml", site.home.worktrees))
    now = known(
        site,
        EntryRecord("sweep", 7, None, None, None),
        EntryRecord("review", None, None, None, 1, "condition has_open_prs does not hold", 1),
        EntryRecord("report", made.job_id, 1, "failed", None),
        EntryRecord("later", 9, 1, "succeeded", 1, "something", 1),
    )
    with site.client.context.store.write() as tx:
        record = EntryRecord("sweep", 7, now - MINUTE, "succeeded", now + 4 * MINUTE)
        tx.jobsfile.put_entries(site.client.context.host.id, [record])
    told = site.client.jobsfile.list()
    assert told["jobs_file"]["taken_over"] and told["jobs_file"]["loaded_at"]
    sweep, review, report, later = told["entries"]
    assert sweep["last_run"]["status"] == "succeeded" and sweep["last_run"]["job"] == "job-7"
    assert review["held"]["reason"] == "condition has_open_prs does not hold"
    assert (report["active_job"], report["next_at"]) == (f"job-{made.job_id}", None)
    assert report["last_run"]["job"] is None, "the one that is active is not the one that ended"
    assert later["held"] is None and later["next_at"] is None, "a disabled one waits for nothing"
    words = [
        (_when(each), _last(each, now), _next(each, now), _state(each)) for each in told["entries"]
    ]
    assert words[0][:2] == ("every 5m (1h idle)", "1m ago")
    assert words[1][1:] == ("never", "now", "held back")
    assert words[2][0] == "30 0 * * * Europe/Berlin" and words[2][2] == "-"
    assert words[2][3] == f"job-{made.job_id} is active" and words[3][3] == "disabled"


@pytest.mark.req("C32")
def test_the_next_run_goes_by_the_interval_of_the_present_work(site: Site) -> None:
    put(site, GOOD)
    now = known(site)
    with site.client.context.store.write() as tx:
        record = EntryRecord("sweep", 7, now, "succeeded", now + 5 * MINUTE)
        tx.jobsfile.put_entries(site.client.context.host.id, [record])
    idle = site.client.jobsfile.list()["entries"][0]["next_at"]
    site.submit("true")
    busy = site.client.jobsfile.list()["entries"][0]["next_at"]
    assert (idle, busy) == (show_instant(now + 60 * MINUTE), show_instant(now + 5 * MINUTE))


@pytest.mark.req("C17")
def test_while_the_file_is_broken_the_last_good_set_is_listed_and_said_to_run_on(
    file_site: Site,
) -> None:
    site = file_site
    reason = "program 'tidy' was not found, or may not be executed (its PATH is set in [env])"
    known(site, EntryRecord("sweep", next_at=1, held=reason, held_at=1))
    put(site, BROKEN)
    told = site.client.jobsfile.list()
    assert told["jobs_file"]["state"] == "broken" and not told["jobs_file"]["taken_over"]
    [problem] = told["jobs_file"]["problems"]
    assert (problem["line"], problem["key"]) == (3, "jobs.review.interval")
    assert [each["name"] for each in told["entries"]] == ["sweep", "review", "report", "later"]
    done = site.run("jobsfile", "list")
    first, second, third = done.stderr.splitlines()
    assert first == f"headway: .headway/jobs.yaml: {TROUBLE}"
    assert "is broken; the last good set of 4 entries runs on, read 20" in second
    assert "no worker is there" in third
    table, held = done.stdout.split("\n\n")
    assert [line.split()[0] for line in table.splitlines()] == [
        *("Name", "sweep", "review", "report", "later")
    ]
    assert reason in " ".join(held.split()), "in full, however narrow the terminal"
    document = json.loads(site.run("jobsfile", "list", "--json").stdout)
    assert document["version"] == 1 and document["jobs_file"]["state"] == "broken"
    assert len(document["entries"]) == 4


def test_what_is_not_there_is_said(file_site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    from headway.cli.main import run

    def listed() -> list[str]:
        assert run(["--home", file_site.home.path, "jobsfile", "list"]) == 0
        out, told = capsys.readouterr()
        assert out == ""
        return [line.removeprefix("headway: ") for line in told.splitlines()]

    assert listed()[0].startswith("there is no ")
    put(file_site, "jobs: {}\n")
    assert listed()[0].endswith("jobs.yaml has no entries")
    put(file_site, "jobs:\n" + "  x y: {}\n" + "".join(f"  a{n}: 1\n" for n in range(6)))
    told = listed()
    assert len(told) == 7 and "and 4 more; `headway jobsfile check` tells all" in told[-2]
    assert "there was no good one before it; nothing of it runs" in told[-1]
    known(file_site, entries=({"words": "of another version"},))
    assert "the last good set of 0 entries" in listed()[-1]
    put(file_site, "jobs: {}\n")
    with file_site.client.context.store.write() as tx:
        tx.jobsfile.note_poll(file_site.client.context.host.id, "it is down")
    assert "the last poll failed" in listed()[-1] and listed()[-1].endswith("it is down")


RUNNABLE = "jobs:\n  sweep: {type: command, run: ['true'], interval: 1h}\n"
NO_WORKER = (
    "headway: no worker is there to run it; next: headway service install, or headway work for now"
)
NOT_KEPT = "headway: no service keeps a worker after a reboot; next: headway service install"
NOT_THERE_NOW = (
    "headway: a service keeps a worker, but none is there now; next: headway service status"
)


def test_check_and_list_say_what_keeps_the_file_running(bare: CommandLine) -> None:
    bare.env["XDG_CONFIG_HOME"] = str(bare.folder / "configuration")
    bare.configure("[worker]\nautostart = false\n")
    bare.make_store()
    file = bare.home / "jobs.yaml"

    def last_words(verb: str) -> str:
        return bare("jobsfile", verb).stderr.splitlines()[-1]

    file.write_text(RUNNABLE)
    assert [last_words("check"), last_words("list")] == [NO_WORKER] * 2
    with closing(WorkerLock(str(bare.home / "run" / "worker.lock"))) as lock:
        assert lock.take(STAYS)
        assert last_words("check") == NOT_KEPT
        assert NOT_KEPT in bare("jobsfile", "list").stderr
    name = bare.out("service", "status").split()[1]
    units = bare.folder / "configuration" / "systemd" / "user"
    units.mkdir(parents=True)
    (units / f"{name}.service").write_text("")
    assert [last_words("check"), last_words("list")] == [NOT_THERE_NOW] * 2


@pytest.mark.parametrize("verb", ["check", "list"])
def test_a_file_of_disabled_entries_needs_no_worker(bare: CommandLine, verb: str) -> None:
    bare.configure()
    bare.make_store()
    (bare.home / "jobs.yaml").write_text(RUNNABLE.replace("1h", "1h, enabled: false"))
    assert "worker" not in bare("jobsfile", verb).stderr


def test_the_documents_of_check_and_list_say_nothing_beside_them(bare: CommandLine) -> None:
    bare.configure()
    bare.make_store()
    (bare.home / "jobs.yaml").write_text(RUNNABLE)
    assert bare("jobsfile", "check", "--json").stderr == ""
    assert bare("jobsfile", "list", "--json").stderr == ""


MISSING = "jobs:\n  sweep: {type: command, run: no-such-program, interval: 5m}\n"
NOT_THERE = (
    "line 2: jobs.sweep.run: program 'no-such-program' was not found, or may not be executed"
)


def test_check_list_and_doctor_name_what_is_not_there_in_the_same_words(bare: CommandLine) -> None:
    bare.configure()
    bare.make_store()
    (bare.home / "jobs.yaml").write_text(MISSING)
    assert f".headway/jobs.yaml: {NOT_THERE}" in bare("jobsfile", "check", code=5).stderr
    document = bare.json("jobsfile", "check", code=5)
    assert (document["valid"], document["problems"]) == (True, [])
    assert document["missing"][0]["key"] == "jobs.sweep.run"
    assert f".headway/jobs.yaml: {NOT_THERE}" in bare("jobsfile", "list").stderr
    assert bare.json("jobsfile", "list")["jobs_file"]["missing"] == document["missing"]
    findings = bare.json("doctor", code=None)["findings"]
    assert [NOT_THERE in each["detail"] for each in findings if each["check"] == "jobs file"] == [
        True
    ]


def test_doctor_says_of_a_broken_file_what_check_says(bare: CommandLine) -> None:
    bare.configure()
    bare.make_store()
    (bare.home / "jobs.yaml").write_text(BROKEN)
    findings = bare.json("doctor", code=None)["findings"]
    assert [TROUBLE in each["detail"] for each in findings if each["check"] == "jobs file"] == [
        True
    ]
