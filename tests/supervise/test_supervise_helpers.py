"""What runs before a command and after it: in time, in bounds, and never mistaken for it."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from supervised import Claim, Home, is_alive, kill, wait_for

from headway.supervise import launcher, rescue
from headway.supervise.records import OutcomeRecord

NEVER = "while :; do sleep 0.05; done"


def helper(script: str, seconds: float = 60.0, **more: Any) -> dict[str, Any]:
    return {"argv": ["/bin/sh", "-c", script], "timeout_seconds": seconds, **more}


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper that must end is given half a second to do so, not five."""
    change = "import headway.supervise.helper; headway.supervise.helper.TO_END_SECONDS = 0.5; "
    begin, load, rest = launcher._MAIN.partition("from headway.supervise.parent")
    assert load
    monkeypatch.setattr(launcher, "_MAIN", begin + change + load + rest)


# -- before ------------------------------------------------------------------------------------


def test_what_is_prepared_is_there_when_the_command_begins(home: Home, cgroup: str) -> None:
    made = home.path / "made" / "inside"
    claim = home.run_shell(
        "pwd; cat note",
        cgroup=cgroup,
        cwd=str(made),
        prepare=helper(f"mkdir -p {made}; echo for $HEADWAY_JOB_ID >{made}/note; echo unheard"),
    )
    outcome = claim.outcome()
    assert (outcome.reason, outcome.exit_code) == ("exited", 0)
    assert claim.log() == f"{made}\nfor job-24\n".encode()
    assert claim.evidence.has_begun()


def test_the_start_is_recorded_before_anything_is_prepared(home: Home) -> None:
    go = home.path / "go"
    claim = home.run_shell(
        "true", prepare=helper(f"while ! test -e {go}; do sleep 0.01; done; echo x >{go}")
    )
    started = claim.started()
    assert is_alive(started.child_pid) and not claim.evidence.has_begun()
    go.touch()
    assert claim.outcome().exit_code == 0


@pytest.mark.parametrize(
    ("script", "number", "words"),
    [
        ("echo the branch is taken >&2; exit 1", errno.ENOENT, "the branch is taken"),
        ("exit 3", errno.ENOENT, "ended with exit code 3 and without a word"),
        ("kill -9 $$", errno.ENOENT, "ended with signal 9 and without a word"),
        (
            "echo it cannot be made: No space left on device >&2; exit 75",
            errno.ENOSPC,
            "it cannot be made: No space left on device",
        ),
        (
            "echo Too many open files in system >&2; exit 75",
            errno.ENFILE,
            "Too many open files in system",
        ),
        ("echo something lacks >&2; exit 75", errno.EAGAIN, "something lacks"),
    ],
)
def test_what_cannot_be_prepared_is_no_start(
    home: Home, script: str, number: int, words: str
) -> None:
    ran = home.path / "ran"
    claim = home.run_shell(f"touch {ran}", prepare=helper(script))
    outcome = claim.outcome()
    assert (outcome.reason, outcome.errno, outcome.error) == ("spawn_error", number, words)
    assert outcome.exit_code is None and outcome.tree == "gone"
    assert not ran.exists() and not claim.evidence.has_begun()


def test_its_words_are_kept_within_bounds_and_the_last_line_counts(home: Home) -> None:
    many = "i=0; while [ $i -lt 3000 ]; do echo line $i of many words >&2; i=$((i+1)); done"
    claim = home.run_shell("true", prepare=helper(f"{many}; exit 1"))
    assert claim.outcome().error == "line 2999 of many words"


def test_a_program_that_is_not_there_is_named(home: Home) -> None:
    claim = home.run_shell("true", prepare={"argv": ["/no/such"], "timeout_seconds": 5.0})
    outcome = claim.outcome()
    assert outcome.reason == "spawn_error"
    assert outcome.error == "/no/such: No such file or directory"


@pytest.mark.usefixtures("hasty")
def test_a_preparation_without_end_is_ended_with_all_that_it_started(
    home: Home, cgroup: str
) -> None:
    pids = home.path / "pids"
    script = f"setsid sh -c 'echo $$ >>{pids}; {NEVER}' & echo $$ >>{pids}; trap '' TERM; {NEVER}"
    claim = home.run_shell("true", prepare=helper(script, 0.3), cgroup=cgroup)
    outcome = claim.outcome()
    assert (outcome.reason, outcome.errno) == ("spawn_error", errno.ETIMEDOUT)
    assert outcome.error == "not done within 0.3 s" and outcome.tree == "gone"
    assert [is_alive(int(pid)) for pid in pids.read_text().split()] == [False, False]


@pytest.mark.parametrize("leftovers", ["leave", "wait", "kill"])
def test_nothing_of_a_failed_preparation_is_left_whatever_the_policy(
    home: Home, cgroup: str, leftovers: str
) -> None:
    """The next try would meet it."""
    pids = home.path / "pids"
    script = f"setsid sh -c 'echo $$ >>{pids}; {NEVER}' & "
    script += f"while ! test -s {pids}; do sleep 0.01; done; exit 1"
    claim = home.run_shell("true", prepare=helper(script), cgroup=cgroup, leftovers=leftovers)
    outcome = claim.outcome()
    assert (outcome.reason, outcome.tree) == ("spawn_error", "gone")
    assert not is_alive(int(pids.read_text()))


def test_what_has_changed_is_no_start_and_no_failure(home: Home) -> None:
    ran = home.path / "ran"
    claim = with_finish(
        home, f"touch {ran}", prepare=helper("true"), check=helper("echo it moved >&2; exit 76")
    )
    outcome = claim.outcome()
    assert (outcome.reason, outcome.errno, outcome.error) == ("spawn_error", None, "it moved")
    assert outcome.changed is True
    assert (outcome.exit_code, outcome.tree, outcome.patch) == (None, "gone", None)
    assert not ran.exists() and not claim.evidence.has_begun()


@pytest.mark.parametrize(
    ("script", "number", "words"),
    [
        ("echo no git >&2; exit 1", errno.ENOENT, "no git"),
        ("echo No space left on device >&2; exit 75", errno.ENOSPC, "No space left on device"),
        ("sleep 30", errno.ETIMEDOUT, "not done within 0.3 s"),
    ],
)
def test_what_cannot_be_checked_is_no_start(
    home: Home, script: str, number: int, words: str
) -> None:
    ran = home.path / "ran"
    claim = home.run_shell(f"touch {ran}", check=helper(script, 0.3 if "sleep" in script else 60.0))
    outcome = claim.outcome()
    assert (outcome.reason, outcome.errno, outcome.error) == ("spawn_error", number, words)
    assert not ran.exists() and not claim.evidence.has_begun() and outcome.changed is None


def test_it_is_checked_last_and_not_in_the_environment_of_the_job(home: Home) -> None:
    """The worker has looked in its own: which git there is, and how it is configured."""
    line = home.path / "line"
    claim = home.run_shell(
        f"echo ran >>{line}",
        env={"PATH": "/nowhere:/bin:/usr/bin", "GIT_DIR": "/elsewhere"},
        prepare=helper(f"echo prepared >>{line}"),
        check=helper(f"echo checked ${{GIT_DIR:-none}} $HEADWAY_CLAIM >>{line}"),
    )
    assert claim.outcome().exit_code == 0 and claim.evidence.has_begun()
    assert line.read_text() == f"prepared\nchecked none {claim.evidence.token}\nran\n"


@pytest.fixture(params=["prepare", "check"])
def before(request: pytest.FixtureRequest) -> str:
    """Which of the two that come before the command."""
    return str(request.param)


def busy_preparing(home: Home, before: str, **changes: Any) -> tuple[Claim, Path, Path]:
    """A claim whose preparation, or check, is under way and ends in peace when told to."""
    begun, peace = home.path / "begun", home.path / "peace"
    script = f"trap 'echo yes >{peace}; exit 143' TERM; echo $$ >{begun}; {NEVER}"
    claim = home.run_shell(f"touch {home.path}/ran", **{before: helper(script)}, **changes)
    wait_for(lambda: begun.exists() and begun.read_text().strip())
    return claim, begun, peace


def test_a_cancel_while_it_is_prepared_ends_it_in_peace(
    home: Home, cgroup: str, before: str
) -> None:
    claim, begun, peace = busy_preparing(home, before, cgroup=cgroup)
    claim.cancel()
    outcome = claim.outcome()
    assert (outcome.reason, outcome.exit_code, outcome.tree) == ("cancelled", 143, "gone")
    assert peace.read_text() == "yes\n" and not is_alive(int(begun.read_text()))
    assert not (home.path / "ran").exists()


def test_the_deadline_counts_while_it_is_prepared(home: Home, cgroup: str, before: str) -> None:
    claim, begun, peace = busy_preparing(home, before, cgroup=cgroup, timeout_seconds=1.0)
    outcome = claim.outcome()
    assert (outcome.reason, outcome.exit_code, outcome.tree) == ("timed_out", 124, "gone")
    assert peace.exists() and not is_alive(int(begun.read_text()))
    assert not (home.path / "ran").exists()


def test_a_preparation_that_succeeds_in_spite_of_a_cancel_starts_nothing(
    home: Home, before: str
) -> None:
    """The stop was kept for the child, and ends it before the command."""
    begun = home.path / "begun"
    script = f"trap 'exit 0' TERM; echo $$ >{begun}; {NEVER}"
    claim = home.run_shell(f"touch {home.path}/ran", **{before: helper(script)})
    wait_for(lambda: begun.exists() and begun.read_text().strip())
    claim.cancel()
    assert claim.outcome().reason == "cancelled"
    assert not (home.path / "ran").exists()


def test_a_killed_supervisor_leaves_nothing_of_the_preparation(
    home: Home, cgroup: str, before: str
) -> None:
    claim, begun, _ = busy_preparing(home, before, cgroup=cgroup)
    started = claim.started()
    kill(started.supervisor_pid)
    claim.ended()
    wait_for(lambda: not is_alive(started.child_pid))
    lock = wait_for(claim.evidence.try_lock)
    assert claim.evidence.read_outcome() is None
    rescue.end_claim(claim.evidence)
    os.close(lock)
    assert not is_alive(int(begun.read_text())) and not (home.path / "ran").exists()


def test_variables_of_another_repository_are_not_handed_on(home: Home) -> None:
    submitted = {"env": {"GIT_DIR": "/elsewhere", "KEPT": "1"}, "cwd": "/", "umask": 0o022}
    claim = home.run_shell(
        "echo ${GIT_DIR:-none} $KEPT", env_file=home.env_file(submitted), unset=["GIT_DIR"]
    )
    claim.outcome()
    assert claim.log() == b"none 1\n"


# -- after -------------------------------------------------------------------------------------


def with_finish(home: Home, command: str, save: str = "", **changes: Any) -> Claim:
    """`FOLDER` in the script stands for the claim's folder, which is known only now."""
    claim = home.claim("sh", "-c", command, **changes)
    spec = claim.evidence.read_spec()
    body = save or "echo changed >FOLDER/command.patch"
    seconds = spec.pop("finish_seconds", 60.0)
    spec["finish"] = helper(body.replace("FOLDER", str(claim.folder)), seconds)
    spec["finish"]["file"] = "command.patch"
    Path(claim.evidence.claim).unlink()
    Path(claim.evidence.outcome_tmp).unlink()
    claim.evidence.prepare(spec)
    return claim.launch()


@pytest.mark.req("V9")
@pytest.mark.parametrize(
    ("command", "changes", "reason"),
    [
        ("exit 0", {}, "exited"),
        ("exit 7", {}, "exited"),
        ("kill -9 $$", {}, "signalled"),
        (NEVER, {"timeout_seconds": 0.2, "grace_seconds": 0.0}, "timed_out"),
    ],
)
def test_what_it_leaves_is_saved_however_it_ended(
    home: Home, cgroup: str, command: str, changes: dict[str, Any], reason: str
) -> None:
    claim = with_finish(home, command, cgroup=cgroup, **changes)
    outcome = claim.outcome()
    assert (outcome.reason, outcome.patch) == (reason, {"saved": True, "bytes": 8})
    assert (claim.folder / "command.patch").read_text() == "changed\n"


def test_it_is_saved_after_a_cancel_and_the_tree_is_gone_before(home: Home, cgroup: str) -> None:
    pid = home.path / "pid"
    save = f"kill -0 $(cat {pid}) 2>/dev/null && echo alive >FOLDER/command.patch"
    save += " || echo gone >FOLDER/command.patch"
    claim = with_finish(home, f"echo $$ >{pid}; {NEVER}", save, cgroup=cgroup)
    wait_for(lambda: pid.exists() and pid.read_text().strip())
    claim.cancel()
    outcome = claim.outcome()
    assert (outcome.reason, outcome.exit_code) == ("cancelled", 143)
    assert outcome.patch == {"saved": True, "bytes": 5}
    assert (claim.folder / "command.patch").read_text() == "gone\n"


@pytest.mark.parametrize(
    ("save", "error"),
    [
        ("echo it would be larger than 10 bytes >&2; exit 1", "it would be larger than 10 bytes"),
        ("true", "No such file or directory (command.patch)"),
    ],
)
def test_what_cannot_be_saved_is_recorded_and_changes_no_verdict(
    home: Home, save: str, error: str
) -> None:
    outcome = with_finish(home, "exit 7", save).outcome()
    assert (outcome.reason, outcome.exit_code) == ("exited", 7)
    assert outcome.patch == {"saved": False, "error": error}


@pytest.mark.usefixtures("hasty")
def test_a_saving_without_end_is_ended_with_all_that_it_started(home: Home, cgroup: str) -> None:
    pids = home.path / "pids"
    save = f"setsid sh -c 'echo $$ >>{pids}; {NEVER}' & echo $$ >>{pids}; trap '' TERM; {NEVER}"
    claim = with_finish(home, "exit 0", save, cgroup=cgroup, finish_seconds=0.3)
    outcome = claim.outcome()
    assert outcome.patch == {"saved": False, "error": "not done within 0.3 s"}
    assert (outcome.reason, outcome.exit_code, outcome.tree) == ("exited", 0, "gone")
    assert [is_alive(int(pid)) for pid in pids.read_text().split()] == [False, False]


def test_what_a_job_may_leave_behind_survives_the_saving(home: Home) -> None:
    pid = home.path / "pid"
    command = f"setsid sh -c 'echo $$ >{pid}; {NEVER}' >/dev/null 2>&1 & "
    command += f"while ! test -s {pid}; do sleep 0.01; done"
    saver = home.path / "saver"
    save = f"trap '' TERM; setsid sh -c 'echo $$ >{saver}; {NEVER}' & {NEVER}"
    claim = with_finish(home, command, save, leftovers="leave", finish_seconds=0.5)
    outcome = claim.outcome()
    assert outcome.tree == "left" and outcome.patch is not None
    assert is_alive(int(pid.read_text())) and not is_alive(int(saver.read_text()))


def test_what_the_saving_leaves_behind_is_ended(home: Home) -> None:
    pid = home.path / "pid"
    save = f"setsid sh -c 'echo $$ >{pid}; {NEVER}' & while ! test -s {pid}; do sleep 0.01; done; "
    claim = with_finish(home, "true", f"{save} echo x >FOLDER/command.patch")
    assert claim.outcome().patch == {"saved": True, "bytes": 2}
    assert not is_alive(int(pid.read_text()))


def test_the_saving_is_not_in_the_cgroup_of_the_job(home: Home) -> None:
    save = "cat /proc/self/cgroup >FOLDER/command.patch"
    claim = with_finish(home, "cat /proc/self/cgroup", save)
    claim.outcome()
    inside, outside = claim.log().decode(), (claim.folder / "command.patch").read_text()
    if claim.started().cgroup is not None:
        assert claim.evidence.token in inside
    assert claim.evidence.token not in outside


def test_nothing_is_saved_of_what_never_began(home: Home) -> None:
    claim = with_finish(home, "true", prepare=helper("exit 1"))
    outcome = claim.outcome()
    assert (outcome.reason, outcome.patch) == ("spawn_error", None)
    assert not (claim.folder / "command.patch").exists()


def test_a_supervisor_killed_while_saving_leaves_nothing_running(home: Home) -> None:
    begun = home.path / "begun"
    save = f"setsid sh -c 'echo $$ >>{begun}; {NEVER}' & echo $$ >>{begun}; {NEVER}"
    claim = with_finish(home, "true", save)
    wait_for(lambda: begun.exists() and len(begun.read_text().split()) == 2)
    kill(claim.started().supervisor_pid)
    claim.ended()
    lock = wait_for(claim.evidence.try_lock)
    os.close(lock)
    rescue.end_claim(claim.evidence)
    assert [is_alive(int(pid)) for pid in begun.read_text().split()] == [False, False]


def test_a_cancel_while_it_is_saved_changes_nothing(home: Home) -> None:
    begun, go = home.path / "begun", home.path / "go"
    save = f"touch {begun}; while ! test -e {go}; do sleep 0.01; done; echo x >FOLDER/command.patch"
    claim = with_finish(home, "exit 3", save)
    wait_for(begun.exists)
    claim.cancel()
    go.touch()
    outcome = claim.outcome()
    assert (outcome.reason, outcome.exit_code) == ("exited", 3)
    assert outcome.patch == {"saved": True, "bytes": 2}


def test_an_outcome_without_a_patch_is_written_as_ever(home: Home) -> None:
    claim = home.run_shell("exit 0")
    assert claim.outcome().patch is None
    assert b"patch" not in Path(claim.evidence.outcome).read_bytes()


def test_an_outcome_with_a_patch_is_read_back() -> None:
    outcome = OutcomeRecord(
        token="t",
        job=1,
        reason="exited",
        exit_code=0,
        started_at=1,
        finished_at=2,
        usage={},
        logs={},
        tree="gone",
        patch={"saved": True, "bytes": 7},
    )
    read = OutcomeRecord.from_json(outcome.to_json(), token="t")
    assert read is not None and read.patch == {"saved": True, "bytes": 7}
