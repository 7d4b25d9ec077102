"""`headway scheduler`, `config`, `work`, `init`, `doctor`, `completion` and `headway` alone."""

import signal

import pytest
from commandline import CommandLine, wait_for

from headway.base.worker_lock import START, WorkerLock

STATUS = """
mode paused paused_by paused_at max_active active free queued_total queued_ready waiting
last_dispatch_at last_dispatch_count worker reason
"""


@pytest.mark.req("D17")
def test_status_shows_one_slot_by_default(still: CommandLine) -> None:
    told = still.json("scheduler", "status")
    assert set(STATUS.split()) <= set(told)
    assert (told["mode"], told["max_active"], told["free"]) == ("deferred", 1, 1)
    assert (told["worker"], told["reason"]) == (False, "nothing is queued")
    lines = still.out("scheduler", "status").splitlines()
    assert lines[0].split() == ["mode", "deferred"]
    assert lines[1].split() == ["cap", "1"]


@pytest.mark.req("G40")
def test_status_says_in_one_line_how_much_is_queued_and_ready(still: CommandLine) -> None:
    assert "Queued: 0 total, 0 ready" in still.out("scheduler", "status").splitlines()
    still("submit", "--", "true")
    still("submit", "--after", "1", "--", "true")
    assert "Queued: 2 total, 1 ready" in still.out("scheduler", "status").splitlines()


@pytest.mark.req("G40")
def test_status_tells_of_pause_queue_slots_and_the_last_dispatch(still: CommandLine) -> None:
    before = still.json("scheduler", "status")
    assert (before["paused"], before["paused_by"]) == (False, None)
    assert (before["active"], before["last_dispatch_at"]) == (0, None)
    still("submit", "--", "sleep", "60")
    still("submit", "--", "true")
    still("submit", "--after", "1", "--", "true")
    assert still.out("scheduler", "run") == "job-1"
    still("--as", "eve", "scheduler", "pause", "--reason", "lunch")

    told = still.json("scheduler", "status")
    assert (told["paused"], told["paused_by"], told["paused_reason"]) == (True, "eve", "lunch")
    assert (told["queued_total"], told["queued_ready"]) == (2, 1), "one waits for another"
    assert (told["active"], told["free"], told["max_active"]) == (1, 0, 1)
    started = still.json("jobs", "show", "1")["job"]["started_at"]
    assert (told["last_dispatch_at"], told["last_dispatch_count"]) == (started, 1)
    lines = still.out("scheduler", "status").splitlines()
    shown = dict(line.split(maxsplit=1) for line in lines)
    assert (shown["used"], shown["cap"], shown["free"]) == ("1", "1", "0")
    assert shown["paused"].startswith("by eve, ") and shown["paused"].endswith(": lunch")
    assert shown["last"].startswith("start ") and shown["last"].endswith(", 1 job")
    assert "Queued: 2 total, 1 ready" in lines


@pytest.mark.req("G36")
def test_pause_and_resume_are_idempotent(headway: CommandLine) -> None:
    assert "it was not paused" in headway("init").stderr + headway("scheduler", "resume").stderr
    headway("--as", "eve", "scheduler", "pause", "--reason", "lunch")
    again = headway("scheduler", "pause", "--reason", "other")
    assert "already paused by eve: lunch" in again.stderr
    told = headway.json("scheduler", "status")
    assert (told["paused"], told["paused_by"], told["reason"]) == (
        True,
        "eve",
        "paused by eve: lunch",
    )
    assert told["paused_at"].endswith("Z")
    headway("submit", "--", "true")
    assert "started job-1" in headway("scheduler", "resume").stderr
    assert "it was not paused" in headway("scheduler", "resume").stderr


@pytest.mark.req("G4")
def test_dry_run_changes_nothing(still: CommandLine) -> None:
    still("submit", "--", "true")
    before = still.json("jobs", "show", "1")
    assert still.out("scheduler", "run", "--dry-run") == "job-1"
    document = still.json("scheduler", "run", "--dry-run")
    assert document["would_start"] == [{"id": "job-1", "name": "true"}]
    assert still.json("jobs", "show", "1") == before


def test_run_without_a_worker_does_one_step(still: CommandLine) -> None:
    still("config", "set", "scheduler.max_active", "3")
    for _ in range(3):
        still("submit", "--", "true")
    assert still.out("scheduler", "run") == "job-1"
    assert still.json("scheduler", "run", "--batch", "5")["started"] == ["job-2", "job-3"]
    still("scheduler", "run", "--batch", "0", code=5)
    wait_for(lambda: not still.processes())
    assert "nothing is queued" in still("scheduler", "run").stderr
    assert still.state("3") == "succeeded"


def test_run_with_a_worker_is_its_step(headway: CommandLine) -> None:
    headway("submit", "--", "sleep", "60")
    headway.until_running("1")
    document = headway.json("scheduler", "run")
    assert (document["worker"], document["started"]) == (True, [])


@pytest.mark.req("G6")
def test_run_beside_another_step_does_nothing(still: CommandLine) -> None:
    still("submit", "--", "true")
    other = WorkerLock(str(still.home / "run" / "worker.lock"))
    assert other.take(START)
    assert "another step is running" in still("scheduler", "run").stderr
    assert still.json("scheduler", "run")["busy"] is True
    other.close()
    assert still.state("1") == "queued"


def test_reset_says_how_many(still: CommandLine) -> None:
    assert "0 waiting jobs" in still("scheduler", "reset").stderr


@pytest.mark.req("G8")
@pytest.mark.parametrize(
    ("key", "bad", "good"),
    [
        ("scheduler.max_active", "-2", "-1"),
        ("scheduler.batch_size", "0", "4"),
        ("scheduler.spawn_delay", "soon", "2s"),
        ("worker.idle", "forever", "5m"),
        ("worker.autostart", "maybe", "false"),
        ("logs.full", "explode", "block"),
        ("logs.head", "much", "1MiB"),
    ],
)
def test_settings_are_checked_before_they_are_stored(
    still: CommandLine, key: str, bad: str, good: str
) -> None:
    before = still.out("config", "get", key)
    assert key in still("config", "set", key, bad, code=5).stderr
    assert still.out("config", "get", key) == before
    still("config", "set", key, good)
    assert still.out("config", "get", key) == good
    assert key in still("config", "list").stdout


def test_config_list_says_where_a_value_comes_from(still: CommandLine) -> None:
    still("config", "set", "scheduler.max_active", "2")
    settings = {each["key"]: each for each in still.json("config", "list")["settings"]}
    assert settings["scheduler.max_active"]["from"] == "the store"
    assert settings["worker.autostart"]["from"] == "config.toml"
    assert settings["logs.head"]["from"] == "default"
    assert all(len(line) <= 80 for line in still("config", "list").stdout.splitlines())


def test_unknown_settings_are_not_found(still: CommandLine) -> None:
    still("config", "get", "no.such", code=3)
    still("config", "set", "no.such", "1", code=3)


def test_work_is_one_per_home(still: CommandLine) -> None:
    worker = still.start("work")
    assert worker.stderr is not None
    assert b"is up" in worker.stderr.readline()
    told = still("work", code=4).stderr
    assert f"a worker is already there (pid {worker.pid}); `headway stop` ends it" in told
    assert still.out("exec", "--", "echo", "hi") == "hi"
    worker.send_signal(signal.SIGINT)
    _, err = worker.communicate(timeout=60)
    assert worker.returncode == 0
    assert b"job-1 echo hi: succeeded" in err


def test_one_slot_is_not_called_all(headway: CommandLine) -> None:
    headway("submit", "--lock", "k", "--", "sleep", "600")
    headway.until_running("1")
    headway("submit", "--", "true")
    assert headway.json("scheduler", "status")["reason"] == "the one slot is in use"
    assert "nothing starts: the one slot is in use" in headway().stdout
    assert headway("locks").stdout.splitlines()[1].split()[-1][-1] == "s", "0s, not now"


def test_init_says_where(bare: CommandLine) -> None:
    assert bare.out("init") == str(bare.home)
    assert "already there" in bare("init").stderr
    assert bare.home.stat().st_mode & 0o777 == 0o700


def test_reading_without_a_home_says_what_to_do(bare: CommandLine) -> None:
    for argv in (["jobs", "list"], ["scheduler", "status"], ["why", "1"], ["config", "list"]):
        assert "headway init" in bare(*argv, code=3).stderr
    assert list(bare.folder.iterdir()) == []


def test_headway_alone(bare: CommandLine) -> None:
    assert "headway submit" in bare().stdout
    bare.configure("[worker]\nautostart = false\n")
    bare("submit", "--", "true")
    told = bare().stdout
    assert "0 running (of 1), 1 waiting" in told
    assert "nothing starts: no worker is there" in told
    assert len([line for line in told.splitlines() if line.startswith("  headway ")]) == 3


def test_doctor_finds_a_sound_home_sound(still: CommandLine) -> None:
    document = still.json("doctor")
    assert document["ok"] is True
    checks = {each["check"] for each in document["findings"]}
    assert {"system", "sqlite", "cgroup", "home", "file system", "space", "store"} <= checks
    still("scheduler", "pause")
    still.home.chmod(0o755)
    done = still("doctor").stdout
    assert "headway scheduler resume" in done
    assert "chmod 700" in done
    assert all(len(line) <= 80 or "/" in line for line in done.splitlines())


def test_doctor_works_on_a_damaged_store(still: CommandLine) -> None:
    database = still.home / "headway.db"
    for rest in still.home.glob("headway.db-*"):
        rest.unlink()
    database.write_bytes(b"not a database" * 1000)
    document = still.json("doctor", code=1)
    red = [each for each in document["findings"] if each["level"] == "red"]
    assert [each["check"] for each in red] == ["store"]
    assert "damaged" in red[0]["detail"]
    for argv in (["jobs", "list"], ["submit", "--", "true"], ["scheduler", "status"], []):
        assert "is damaged" in still(*argv, code=6).stderr
    assert database.read_bytes() == b"not a database" * 1000
    database.unlink()


def test_doctor_names_every_problem_of_the_config(still: CommandLine) -> None:
    (still.home / "config.toml").write_text('[worker]\nidle = "x"\nnope = 1\n')
    finding = next(
        each for each in still.json("doctor", code=1)["findings"] if each["check"] == "config"
    )
    assert "worker.idle" in finding["detail"]
    assert "worker.nope" in finding["detail"]
    assert "worker.idle" in still("jobs", "list", code=5).stderr
    still.configure("[worker]\nautostart = false\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(bare: CommandLine, shell: str) -> None:
    assert "_HEADWAY_COMPLETE" in bare("completion", shell).stdout


def test_completion_completes(bare: CommandLine) -> None:
    words = {
        "COMP_WORDS": "headway jobs s",
        "COMP_CWORD": "2",
        "_HEADWAY_COMPLETE": "bash_complete",
    }
    assert bare(env=words).stdout.split() == ["plain,show", "plain,status", "plain,schedule"]
