"""The table of recovery, row by row, told by files alone (docs/protocols.md, section 6)."""

import errno
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from headway.base.host import Host
from headway.base.proc import boot_id
from headway.core.model import Claim, Job, WaitKind
from headway.core.settle import Ending, HostFailed, Judgement, NeverRan, Verdict
from headway.core.states import Status
from headway.supervise.evidence import Evidence, OutcomeRecord, Started
from headway.testing.clock import FakeClock
from headway.worker import recovery as module
from headway.worker.recovery import JudgedClaim, Recovery, taken_in

TOKEN = "c" * 32
NOW = 1_700_000_000_000_000
NEVER = NeverRan("nothing had been started when the scheduler came back")


def written(**fields: Any) -> OutcomeRecord:
    given: dict[str, Any] = {
        "token": TOKEN,
        "job": 24,
        "reason": "exited",
        "exit_code": 3,
        "wait_status": 768,
        "started_at": NOW - 9,
        "finished_at": NOW - 5,
        "usage": {"user_seconds": 0.1, "system_seconds": 0.2, "max_rss_kb": 3},
        "logs": {"stdout": {"bytes": 1, "dropped": 0}, "stderr": {"bytes": 0, "dropped": 0}},
        "tree": "gone",
    }
    return OutcomeRecord(**{**given, **fields})


def a_start() -> Started:
    """By processes of another boot: nobody can be taken for them."""
    return Started(
        boot_id="long ago",
        supervisor_pid=1,
        supervisor_start=2,
        child_pid=1,
        child_start=2,
        cgroup=None,
        started_at=NOW - 9,
    )


class Scene:
    """A claim of this host, and whoever comes to judge it."""

    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock(NOW)
        self.host = Host("host", boot_id(), str(folder / "home"))
        self.recovery = Recovery(self.host, "worker", self.clock)
        self.evidence = Evidence(str(folder / "home" / "jobs" / "24"), TOKEN)
        self.evidence.prepare({"token": TOKEN})
        self.claim = Claim(
            job_id=24,
            token=TOKEN,
            slot=1,
            worker_id="worker",
            host_id=self.host.id,
            home=self.host.home,
            boot_id=self.host.boot_id,
            folder=self.evidence.folder,
            claimed_at=NOW - 10,
        )

    def judge(self, **options: Any) -> Judgement | None:
        judged = self.recovery.judge(self.claim, **options)
        if judged is None:
            return None
        judged.release()
        return judged.judgement

    def ending(self, **options: Any) -> tuple[Ending, int | None, bool]:
        judgement = self.judge(**options)
        assert isinstance(judgement, Verdict), judgement
        return judgement.outcome.ending, judgement.outcome.exit_code, judgement.tree_gone

    def rebooted(self) -> None:
        self.claim = self.claim._replace(boot_id="the last boot")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def nothing(scene: Scene) -> None:
    """The claim's files, as they are before anyone starts it."""


def void(scene: Scene) -> None:
    scene.evidence.make_void()


def start(scene: Scene) -> None:
    scene.evidence.write_started(a_start())


def cancel(scene: Scene) -> None:
    scene.evidence.request_cancel()


def no_claim_file(scene: Scene) -> None:
    os.unlink(scene.evidence.claim)


def reboot(scene: Scene) -> None:
    scene.rebooted()


EVERYTHING_ELSE = [nothing, void, start, cancel, no_claim_file, reboot]


@pytest.mark.req("V98")
@pytest.mark.parametrize("besides", EVERYTHING_ELSE)
@pytest.mark.parametrize("alive_worker", [False, True])
def test_an_outcome_is_the_truth_whatever_else_there_is(  # fault A7
    scene: Scene, besides: Callable[[Scene], None], alive_worker: bool
) -> None:
    scene.evidence.write_outcome(written())
    besides(scene)
    assert scene.ending(alive_worker=alive_worker) == (Ending.EXITED, 3, True)
    assert scene.ending() == (Ending.EXITED, 3, True), "twice gives the same"


@pytest.mark.parametrize("besides", EVERYTHING_ELSE)
def test_without_an_outcome_a_reboot_is_all_that_is_known(  # fault A7
    scene: Scene, besides: Callable[[Scene], None]
) -> None:
    besides(scene)
    scene.rebooted()
    before = set(os.listdir(scene.evidence.folder))
    assert scene.ending(alive_worker=True) == (Ending.HOST_REBOOTED, None, True)
    assert set(os.listdir(scene.evidence.folder)) == before | {f"lock.{TOKEN}"}


@pytest.mark.parametrize(
    ("besides", "expected"),
    [
        ([nothing], NEVER),
        ([cancel], NEVER),
        ([void], NEVER),
        ([void, start], NEVER),
        ([start], Ending.OUTCOME_UNKNOWN),
        ([start, cancel], Ending.OUTCOME_UNKNOWN),
        ([no_claim_file], Ending.EVIDENCE_MISSING),
        ([no_claim_file, start], Ending.EVIDENCE_MISSING),
        ([no_claim_file, void], Ending.EVIDENCE_MISSING),
    ],
)
def test_without_an_outcome_the_first_row_that_fits_counts(
    scene: Scene, besides: list[Callable[[Scene], None]], expected: NeverRan | Ending
) -> None:
    for each in besides:
        each(scene)
    for _ in range(2):
        judgement = scene.judge()
        if isinstance(expected, NeverRan):
            assert judgement == expected
            assert scene.evidence.is_void(), "so that it can never start"
        else:
            assert isinstance(judgement, Verdict)
            assert (judgement.outcome.ending, judgement.tree_gone) == (expected, False)
            assert judgement.outcome.finished_at == NOW


def test_what_is_missing_is_named(scene: Scene) -> None:
    os.unlink(scene.evidence.claim)
    judgement = scene.judge()
    assert isinstance(judgement, Verdict)
    assert judgement.outcome.error == "claim file is gone"


@pytest.mark.parametrize("rebooted", [False, True])
def test_a_folder_that_is_gone_or_not_ours_alone_is_lost_evidence(
    scene: Scene, rebooted: bool
) -> None:
    if rebooted:
        scene.rebooted()
    lost = Ending.HOST_REBOOTED if rebooted else Ending.EVIDENCE_MISSING
    os.chmod(scene.evidence.folder, 0o777)
    assert scene.ending() == (lost, None, rebooted)
    scene.claim = scene.claim._replace(folder=scene.evidence.folder + "-gone")
    assert scene.ending() == (lost, None, rebooted)
    assert stat.S_IMODE(os.stat(scene.evidence.folder).st_mode) == 0o777


def test_a_lock_that_cannot_be_asked_for_is_no_verdict(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_many() -> int | None:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(scene.evidence.__class__, "try_lock", lambda self: too_many())
    assert scene.judge() is None


def test_a_folder_in_the_place_of_a_lock_is_no_evidence(scene: Scene) -> None:
    os.mkdir(scene.evidence.lock)
    assert scene.ending()[0] is Ending.EVIDENCE_MISSING


def test_a_busy_lock_says_that_the_supervisor_lives_until_its_outcome_is_there(
    scene: Scene,
) -> None:
    lock = scene.evidence.try_lock()
    assert lock is not None
    assert scene.judge() is None
    assert not scene.evidence.is_void()
    scene.evidence.write_outcome(written())
    judged = scene.recovery.judge(scene.claim)
    assert judged is not None and judged.lock is None
    os.close(lock)


def test_the_lock_is_held_until_the_verdict_is_committed(scene: Scene) -> None:
    judged = scene.recovery.judge(scene.claim)
    assert judged is not None
    assert scene.evidence.try_lock() is None
    judged.release()
    os.close(scene.evidence.try_lock() or -1)


def test_a_lock_is_let_go_if_the_evidence_cannot_be_judged(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(scene.recovery, "_verdict", broken)
    with pytest.raises(MemoryError):
        scene.recovery.judge(scene.claim)
    os.close(scene.evidence.try_lock() or -1)


# -- by the worker that launched it --------------------------------------------------------------


def test_a_supervisor_that_ended_too_early_is_the_hosts_trouble(scene: Scene) -> None:
    judgement = scene.judge(alive_worker=True)
    assert isinstance(judgement, HostFailed)
    assert judgement.kind is WaitKind.PRESSURE
    assert "supervisor ended too early" in judgement.cause


def test_a_supervisor_that_failed_itself_is_the_jobs_trouble(scene: Scene) -> None:
    Path(scene.evidence.folder, f"crash.{TOKEN}").write_text("Traceback\nValueError: x\n")
    judgement = scene.judge(alive_worker=True)
    assert isinstance(judgement, Verdict) and judgement.tree_gone
    outcome = judgement.outcome
    assert (outcome.ending, outcome.errno) == (Ending.SPAWN_ERROR, errno.EINVAL)
    assert outcome.error == "its supervisor failed: ValueError: x"


def test_a_supervisor_that_found_a_cancel_did_not_fail(scene: Scene) -> None:
    scene.evidence.request_cancel()
    assert scene.judge(alive_worker=True) == NEVER


def test_another_workers_supervisor_that_crashed_never_ran(scene: Scene) -> None:
    Path(scene.evidence.folder, f"crash.{TOKEN}").write_text("ValueError: x\n")
    assert scene.judge() == NEVER


# -- whose claims they are -----------------------------------------------------------------------


def test_only_the_claims_of_this_host_are_judged_wherever_its_home_has_moved(scene: Scene) -> None:
    other = scene.claim._replace(host_id="another")
    moved = scene.claim._replace(home="/old", folder="/old/jobs/24")
    assert scene.recovery.mine([scene.claim, other, moved]) == [scene.claim, scene.claim]


def test_a_copied_home_judges_what_another_host_ran_only_after_a_reboot(scene: Scene) -> None:
    other = scene.claim._replace(host_id="another")
    past = {"boot_id": "the last boot"}
    claims = [scene.claim, scene.claim._replace(**past), other, other._replace(**past)]
    (judged,) = scene.recovery.rebooted(claims)
    assert judged.claim == claims[3]
    assert isinstance(judged.judgement, Verdict) and judged.judgement.tree_gone
    assert judged.judgement.outcome.ending is Ending.HOST_REBOOTED


# -- trees that are not proven gone --------------------------------------------------------------


@pytest.fixture
def left_behind() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the claim, known by its environment."""
    environ = {"PATH": os.environ["PATH"], "HEADWAY_CLAIM": TOKEN}
    with subprocess.Popen(["sleep", "600"], env=environ, start_new_session=True) as process:
        yield process
        with suppress(ProcessLookupError):
            process.kill()


def test_two_looks_a_second_apart_prove_that_a_tree_is_gone(scene: Scene) -> None:
    assert scene.recovery.prove_gone([scene.claim]) == [], "one look proves nothing"
    assert scene.recovery.prove_gone([scene.claim]) == [], "nor two at the same time"
    scene.clock.advance(0.999)
    assert scene.recovery.prove_gone([scene.claim]) == []
    scene.clock.advance(0.002)
    assert scene.recovery.prove_gone([scene.claim]) == [scene.claim]
    assert scene.recovery.prove_gone([scene.claim]) == [], "asked anew, it looks anew"


def test_each_tree_has_looks_of_its_own(scene: Scene) -> None:
    other = scene.claim._replace(token="d" * 32)
    scene.recovery.prove_gone([scene.claim])
    scene.clock.advance(1)
    assert scene.recovery.prove_gone([scene.claim, other]) == [scene.claim]


@pytest.mark.processes
def test_a_process_that_comes_up_between_two_looks_is_ended_and_it_begins_anew(
    scene: Scene, request: pytest.FixtureRequest
) -> None:
    assert scene.recovery.prove_gone([scene.claim]) == []
    scene.clock.advance(1)
    process: subprocess.Popen[bytes] = request.getfixturevalue("left_behind")
    assert scene.recovery.prove_gone([scene.claim]) == []
    assert process.wait(timeout=30) == -9
    assert scene.recovery.prove_gone([scene.claim]) == [], "the first of two looks"
    scene.clock.advance(1)
    assert scene.recovery.prove_gone([scene.claim]) == [scene.claim]


def test_a_tree_of_another_boot_is_gone(scene: Scene, left_behind: subprocess.Popen[bytes]) -> None:
    scene.rebooted()
    assert scene.recovery.prove_gone([scene.claim]) == [scene.claim]


# -- supervisors that do not answer --------------------------------------------------------------


class Rows:
    """Of a transaction only what is asked for here: its jobs, and of those who runs."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.jobs = self

    def running(self, ids: list[int]) -> dict[int, Job]:
        return dict.fromkeys(ids, self.job)


def running(**fields: Any) -> Job:
    given: dict[str, Any] = {"params": {"argv": ["x"]}, "created_at": NOW, "chain": 24}
    given |= {"name": "x", "type": "command", "status": Status.RUNNING}
    return Job(id=24, priority=0, position=1, **{**given, **fields})


@pytest.mark.parametrize(
    ("params", "cancelled", "seconds"),
    [
        ({}, False, None),
        ({}, True, 20.0),
        ({"grace_seconds": 3.0}, True, 13.0),
        ({"timeout_seconds": 5}, False, 25.0),
        ({"timeout_seconds": 5, "grace_seconds": 1.0}, False, 16.0),
        ({"timeout_seconds": 5}, True, 20.0),
    ],
)
def test_a_supervisor_is_late_after_its_limit_its_grace_and_ten_seconds(
    scene: Scene, params: dict[str, Any], cancelled: bool, seconds: float | None
) -> None:
    asked = {"cancel_requested_at": NOW, "cancel_requested_by": "ann"} if cancelled else {}
    rows: Any = Rows(running(params={"argv": ["x"], **params}, **asked))

    def late() -> list[Claim]:
        return scene.recovery.unanswered(rows, [scene.claim])

    assert late() == []
    scene.clock.advance((seconds or 1000.0) - 0.001)
    assert late() == []
    scene.clock.advance(0.002)
    assert late() == ([] if seconds is None else [scene.claim])


def test_a_late_supervisor_that_only_writes_its_outcome_is_left_alone(scene: Scene) -> None:
    rows: Any = Rows(running(cancel_requested_at=NOW))
    scene.evidence.write_started(a_start())  # its command has ended, and it is not stopped
    scene.recovery.unanswered(rows, [scene.claim])
    scene.clock.advance(1000)
    assert scene.recovery.unanswered(rows, [scene.claim]) == []


def test_what_was_known_of_a_claim_that_is_over_is_forgotten(scene: Scene) -> None:
    rows: Any = Rows(running(cancel_requested_at=NOW))
    scene.recovery.unanswered(rows, [scene.claim])
    scene.clock.advance(1000)
    scene.recovery.unanswered(rows, [])
    assert scene.recovery.unanswered(rows, [scene.claim]) == [], "seen for the first time again"


# -- a supervisor's own word ---------------------------------------------------------------------


def test_a_supervisors_word_is_taken_in_whole() -> None:
    word = written(
        reason="signalled", exit_code=None, signal="SIGTERM", errno=5, error="e", core_dumped=True
    )
    verdict = taken_in(word)
    outcome = verdict.outcome
    assert (outcome.ending, outcome.signal, outcome.errno) == (Ending.SIGNALLED, "SIGTERM", 5)
    assert (outcome.finished_at, outcome.error, outcome.classes) == (NOW - 5, "e", ())
    assert verdict.document is not None
    apart = {"token", "job", "patch", "unmade", "verdict", "changed", "outputs"}
    names = set(OutcomeRecord.__slots__) - apart
    assert set(verdict.document) == names
    assert all(verdict.document[name] == getattr(word, name) for name in names)


def test_why_it_failed_goes_before_what_the_supervisor_saw() -> None:
    told = {"error": "denied Bash", "classes": ["Denied"]}
    verdict = taken_in(written(verdict=told, patch={"path": "x"}, error="e"))
    assert (verdict.outcome.error, verdict.outcome.classes) == ("denied Bash", ("Denied",))
    assert verdict.document is not None
    assert (verdict.document["verdict"], verdict.document["patch"]) == (told, {"path": "x"})


@pytest.mark.parametrize(("tree", "gone"), [("gone", True), ("left", True), ("unproven", False)])
def test_what_became_of_the_tree_is_the_supervisors_word(tree: str, gone: bool) -> None:
    assert taken_in(written(tree=tree)).tree_gone is gone


def test_the_gap_between_two_looks_is_a_second() -> None:
    assert (module.SWEEP_GAP, module.UNANSWERED) == (1.0, 10.0)
    assert JudgedClaim._field_defaults == {"lock": None}
