"""The submitter's environment: kept once, for us alone, and given to the job byte for byte."""

import hashlib
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import Bench
from headway.base.environment import OWN_VARIABLES, keep_environment
from headway.base.home import Home
from headway.base.new_home import make_home

NAMES = st.text("ABC_", min_size=1, max_size=3)
VALUES = st.binary(max_size=20).map(lambda value: os.fsdecode(value.replace(b"\0", b"")))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(str(tmp_path / ".headway"))
    make_home(made)
    return made


def keep(home: Home, env: dict[str, str], *, umask: int = 0o022, cwd: str = "/") -> str:
    return keep_environment(home, env, umask=umask, working_directory=cwd)


def output(bench: Bench, job: int) -> bytes:
    return Path(bench.home.job(job), "stdout.log").read_bytes()


def test_the_name_is_the_digest_of_the_content(home: Home) -> None:
    name = keep(home, {"A": "1", "B": "2"})
    path = Path(home.environments, name)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == name
    assert os.listdir(home.environments) == [name]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_the_file_is_ours_alone_whatever_the_umask(home: Home, umask: int) -> None:
    before = os.umask(umask)
    try:
        name = keep(home, {"A": "1"})
    finally:
        os.umask(before)
    assert os.stat(Path(home.environments, name)).st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("env", "umask", "cwd", "same"),
    [
        ({"A": "1", "B": "2"}, 0o022, "/", True),
        ({"B": "2", "A": "1"}, 0o022, "/", True),
        ({"A": "1", "B": "2", "HEADWAY_CLAIM": "x"}, 0o022, "/", True),
        ({"A": "1", "B": "3"}, 0o022, "/", False),
        ({"A": "1"}, 0o022, "/", False),
        ({"A": "1", "B": "2"}, 0o077, "/", False),
        ({"A": "1", "B": "2"}, 0o022, "/tmp", False),
    ],
)
def test_equal_content_is_one_file(
    home: Home, env: dict[str, str], umask: int, cwd: str, same: bool
) -> None:
    first = keep(home, {"A": "1", "B": "2"})
    assert (keep(home, env, umask=umask, cwd=cwd) == first) is same
    assert len(os.listdir(home.environments)) == (1 if same else 2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(NAMES, VALUES, max_size=3), st.dictionaries(NAMES, VALUES, max_size=3))
def test_two_environments_share_a_file_only_if_they_are_equal(
    home: Home, one: dict[str, str], other: dict[str, str]
) -> None:
    assert (keep(home, one) == keep(home, other)) is (one == other)


def test_a_second_submit_with_the_same_environment_writes_no_new_file(bench: Bench) -> None:
    bench.submit("true")
    (name,) = os.listdir(bench.home.environments)
    path = Path(bench.home.environments, name)
    before = (path.stat().st_ino, path.read_bytes())
    for _ in range(3):
        bench.submit("false")
    assert os.listdir(bench.home.environments) == [name]
    assert (path.stat().st_ino, path.read_bytes()) == before


def test_a_use_makes_an_old_file_young_again(home: Home) -> None:
    path = Path(home.environments, keep(home, {"A": "1"}))
    os.utime(path, (0, 0))
    keep(home, {"A": "1"})
    assert path.stat().st_mtime > 1e9


def test_a_planted_link_is_not_followed(home: Home, tmp_path: Path) -> None:  # fault H7
    name = keep(home, {"A": "1"})
    path = Path(home.environments, name)
    path.unlink()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path.symlink_to(victim)
    keep(home, {"A": "1"})
    assert victim.read_text() == "precious"


def test_values_that_are_no_text_reach_the_job(bench: Bench) -> None:
    raw = b"\xff\xfe \xc3\x28 caf\xe9 \n\t'\"$`"
    bench.client.context.environ = {**bench.client.context.environ, "RAW": os.fsdecode(raw)}
    script = "import os,sys; sys.stdout.buffer.write(os.environb[b'RAW'] + os.environb[b'GIVEN'])"
    job = bench.submit(sys.executable, "-c", script, env={"GIVEN": os.fsdecode(raw)})
    bench.until_ended(job)
    assert output(bench, job) == raw + raw


def test_a_job_inherits_nothing_of_the_job_that_submitted_it(bench: Bench) -> None:
    """What names the surrounding job; its other variables are the submitter's own."""
    surrounding = dict.fromkeys(OWN_VARIABLES, "of-another-job")
    bench.client.context.environ = {
        **bench.client.context.environ,
        **surrounding,
        "HEADWAY_COLOUR": "blue",
    }
    job = bench.submit("sh", "-c", "env | grep ^HEADWAY_ | sort")
    bench.until_ended(job)
    lines = dict(line.split("=", 1) for line in output(bench, job).decode().splitlines())
    assert lines.pop("HEADWAY_CLAIM") not in ("of-another-job", "")
    assert lines == {
        "HEADWAY_ATTEMPT": "1",
        "HEADWAY_COLOUR": "blue",
        "HEADWAY_HOME": bench.home.path,
        "HEADWAY_JOB_ID": f"job-{job}",
        "HEADWAY_RUN_ID": f"run-{job}",
    }
    for file in Path(bench.home.environments).iterdir():
        assert b"of-another-job" not in file.read_bytes()


@pytest.mark.parametrize("name", ["JOB", "STATE", "EXIT_CODE"])
def test_what_only_an_on_finish_job_is_told_is_not_inherited(home: Home, name: str) -> None:
    assert keep(home, {"A": "1", f"HEADWAY_FINISHED_{name}": "x"}) == keep(home, {"A": "1"})


def test_the_job_has_the_submitters_environment_and_not_the_workers(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_WORKER", "x")
    job = bench.submit("env")
    bench.until_ended(job)
    assert b"OF_THE_WORKER" not in output(bench, job)
    assert b"\nHOME=/\n" in b"\n" + output(bench, job)


def test_a_value_is_in_no_byte_of_the_database_document_or_event(bench: Bench) -> None:
    secret = "xyzzy-4711"
    bench.client.context.environ = {**bench.client.context.environ, "PASSWORD": secret}
    job = bench.submit("sh", "-c", "echo ${#PASSWORD}; exit 1", retries=1, retry_base=0)
    bench.until_ended(job)
    assert output(bench, job) == b"10\n", "the job itself has it"
    holders = {
        path.parent.name
        for path in Path(bench.home.path).rglob("*")
        if path.is_file() and secret.encode() in path.read_bytes()
    }
    assert holders == {"env"}
    assert secret not in str(bench.client.jobs.chain(job)) + str(bench.events(job))


def test_a_job_whose_environment_is_gone_does_not_run_with_another(bench: Bench) -> None:
    job = bench.submit("sh", "-c", "echo ran")
    for file in Path(bench.home.environments).iterdir():
        file.unlink()
    bench.until(lambda: "unclaimed" in bench.kinds(job), "the launch to fail")
    wait = bench.client.document(job)["wait"]
    assert wait["kind"] == "launch" and "environment file" in wait["detail"]
    assert not Path(bench.home.job(job), "stdout.log").exists()
