"""What each file of a claim means, in tables: who may start, what has begun, what is left over."""

import json
import os
import resource
from pathlib import Path

import pytest

from headway.supervise import evidence as module
from headway.supervise.evidence import Evidence

TOKEN = "e" * 32


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    made = Evidence(str(tmp_path / "24"), TOKEN)
    made.prepare({"token": TOKEN})
    return made


def put(evidence: Evidence, name: str, content: str = "") -> None:
    Path(evidence.folder, name.replace("T", TOKEN)).write_text(content)


def names(evidence: Evidence) -> set[str]:
    return {each.replace(TOKEN, "T") for each in os.listdir(evidence.folder)}


@pytest.mark.parametrize(
    ("there", "may"),
    [
        ([], True),
        (["void.T"], False),
        (["cancel.T"], False),
        (["started.T"], False),
        (["outcome.T.json"], False),
        (["void.other", "cancel.other", "started.other", "outcome.other.json"], True),
        (["prepared.T", "crash.T", "wanted.T"], True),
    ],
)
def test_a_claim_may_start_once_and_only_if_nobody_forbade_it(
    evidence: Evidence, there: list[str], may: bool
) -> None:
    for name in there:
        put(evidence, name)
    assert evidence.may_start() is may


def test_a_link_that_leads_nowhere_forbids_a_start_as_a_file_does(evidence: Evidence) -> None:
    os.symlink("/nowhere", evidence.void)
    assert evidence.is_void() and not evidence.may_start()


@pytest.mark.parametrize(
    ("spec", "there", "begun"),
    [
        ({}, [], False),
        ({}, ["prepared.T"], False),
        ({}, ["started.T"], True),
        ({"prepare": {}}, ["started.T"], False),
        ({"prepare": {}}, ["prepared.T"], False),
        ({"prepare": {}}, ["started.T", "prepared.T"], True),
        (None, ["started.T"], True),
    ],
)
def test_it_has_begun_when_all_that_had_to_be_made_is_made(
    evidence: Evidence, spec: dict[str, object] | None, there: list[str], begun: bool
) -> None:
    os.unlink(evidence.claim)
    if spec is not None:
        put(evidence, "claim.T", json.dumps(spec))
    for name in there:
        put(evidence, name, "{}")
    assert evidence.has_begun() is begun


def test_the_mark_of_what_was_prepared_is_its_own(evidence: Evidence) -> None:
    evidence.mark_prepared()
    assert names(evidence) == {"claim.T", "outcome.T.tmp", "prepared.T"}


def test_an_undoing_keeps_only_what_forbids_a_late_start(evidence: Evidence) -> None:
    evidence.make_void()
    put(evidence, "claim.other")
    evidence.shed()
    assert names(evidence) == {"void.T", "claim.other"}
    evidence.shed()


def test_a_discard_leaves_nothing_of_its_token_and_what_is_not_its_own(evidence: Evidence) -> None:
    mine = ["lock.T", "void.T", "started.T", "prepared.T", "cancel.T", "wanted.T", "crash.T"]
    mine += ["verdict.T", "started.T.tmp", "outcome.T.json"]
    for name in (*mine, "stdout.log", "claim.other"):
        put(evidence, name)
    evidence.discard()
    assert names(evidence) == {"stdout.log", "claim.other"}
    Evidence(evidence.folder, "other").discard()
    assert names(evidence) == {"stdout.log"}
    os.unlink(os.path.join(evidence.folder, "stdout.log"))
    evidence.discard()
    assert not os.path.exists(evidence.folder)
    evidence.discard()


@pytest.mark.parametrize("was_there", [False, True])
def test_a_preparing_that_fails_leaves_the_folder_as_it_was(
    tmp_path: Path, was_there: bool
) -> None:
    evidence = Evidence(str(tmp_path / "24"), TOKEN)
    if was_there:
        os.mkdir(evidence.folder, 0o700)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            evidence.prepare({})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.path.exists(evidence.folder) is was_there


def test_no_descriptor_is_left_open(evidence: Evidence) -> None:
    def open_ones() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = open_ones()
    lock = evidence.try_lock()
    assert evidence.try_lock() is None, "and the one that was refused is closed"
    os.close(lock or -1)
    evidence.mark_prepared()
    evidence.may_start()
    evidence.request_cancel()
    evidence.is_cancelled()
    evidence.read_outcome()
    other = Evidence(evidence.folder, "f" * 32)
    other.prepare({})
    other.shed()
    assert open_ones() == before


def test_who_keeps_its_folder_open_needs_no_path(evidence: Evidence, tmp_path: Path) -> None:
    kept = Evidence.kept_open(evidence.folder, TOKEN)
    os.rename(evidence.folder, tmp_path / "moved")
    kept.request_cancel()
    kept.make_void()
    assert kept.is_cancelled() and kept.is_void()
    assert (tmp_path / "moved" / f"cancel.{TOKEN}").exists()


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ('{"error": "e", "classes": ["A"]}', {"error": "e", "classes": ["A"]}),
        ('{"error": "e", "classes": [1]}', {"error": "e", "classes": ["1"]}),
        ('{"error": 1, "classes": []}', None),
        ('{"error": "e", "classes": "A"}', None),
        ('{"error": "e"}', None),
        ("[]", None),
        ("{", None),
        ("[" * 60000, None),
    ],
)
def test_words_of_the_main_process_are_taken_if_they_make_sense(
    evidence: Evidence, said: str, read: dict[str, object] | None
) -> None:
    assert evidence.read_verdict() is None
    put(evidence, "verdict.T", said)
    assert evidence.read_verdict() == read


def test_words_of_the_main_process_are_cut_so_that_the_outcome_fits(evidence: Evidence) -> None:
    long = {"error": "e" * 1001, "classes": ["c" * 65] * 9}
    put(evidence, "verdict.T", json.dumps(long))
    assert evidence.read_verdict() == {"error": "e" * 1000, "classes": ["c" * 64] * 8}
    put(evidence, "verdict.T", json.dumps({**long, "more": "x" * 64 * 1024}))
    assert evidence.read_verdict() is None
    assert module.RESERVED_BYTES == 16384 and module.LARGEST_VERDICT == 65536


@pytest.mark.parametrize(
    ("said", "words"), [("Traceback\nE: x\n", "E: x"), ("\n\n", None), ("one", "one")]
)
def test_the_last_words_of_a_supervisor_are_its_last_line(
    evidence: Evidence, said: str, words: str | None
) -> None:
    assert evidence.read_crash() is None
    put(evidence, "crash.T", said)
    assert evidence.read_crash() == words


def test_a_worker_is_asked_for_and_the_request_taken_once(evidence: Evidence) -> None:
    assert evidence.take_worker_request() is None
    evidence.ask_for_worker({"argv": ["x"]})
    assert names(evidence) == {"claim.T", "outcome.T.tmp", "wanted.T"}
    assert evidence.take_worker_request() == {"argv": ["x"]}
    assert evidence.take_worker_request() is None
    for nonsense in ("{", "[1]"):
        put(evidence, "wanted.T", nonsense)
        assert evidence.take_worker_request() is None
