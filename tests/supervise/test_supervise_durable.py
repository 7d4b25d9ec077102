"""What an outcome has gone through when it counts: told by the real calls, in their order.

Nothing is replaced: each call is looked at and made. A power cut keeps only what an fsync had
reached, so what matters is what lay in the file, and in its folder, at the instant of each.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from supervised import Home
from test_supervise_evidence import TOKEN, outcome_of

from headway.supervise.evidence import RESERVED_BYTES, Evidence
from headway.supervise.records import Started

TMP, DONE = f"outcome.{TOKEN}.tmp", f"outcome.{TOKEN}.json"


class Call(NamedTuple):
    """A call, the name of what it was made for, and what lay there when it was made."""

    call: str
    name: str
    content: bytes = b""
    names: tuple[str, ...] = ()
    room: int = 0
    flags: int = 0


class Watched:
    """The calls that a process makes inside of one folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
        self.folder = folder
        self.calls: list[Call] = []
        for name in ("open", "write", "fsync", "fdatasync", "ftruncate", "rename", "close"):
            monkeypatch.setattr(os, name, self._spy(name, getattr(os, name)))

    def _spy(self, call: str, real: Any) -> Any:
        def spied(*given: Any, **options: Any) -> Any:
            flags = given[1] if call == "open" else 0
            if isinstance(given[0], int):
                self._note(call, os.readlink(f"/proc/self/fd/{given[0]}"), flags)
            else:
                self._note(call, os.path.join(self.folder, given[0]), flags)
            return real(*given, **options)

        return spied

    def _note(self, call: str, path: str, flags: int) -> None:
        inside = os.path.relpath(os.path.realpath(path), self.folder)
        if inside.startswith(".."):
            return
        names = tuple(sorted(each.name for each in Path(self.folder).iterdir()))
        file = Path(path)
        content = b"" if file.is_dir() or not file.exists() else file.read_bytes()
        room = file.stat().st_blocks * 512 if file.is_file() else 0
        self.calls.append(Call(call, inside, content, names, room, flags))

    def named(self, *names: str) -> list[Call]:
        return [each for each in self.calls if each.call in names]


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    made = Evidence(str(tmp_path / "24"), TOKEN)
    made.prepare({"token": TOKEN})
    return made


@pytest.fixture
def watched(evidence: Evidence) -> Iterator[Watched]:
    with pytest.MonkeyPatch.context() as patching:  # undone before anyone else needs these calls
        watched = Watched(patching, evidence.folder)
        evidence.write_outcome(outcome_of(TOKEN))
    yield watched


def test_the_whole_outcome_is_synced_before_it_has_its_name(watched: Watched) -> None:
    syncs = watched.named("fsync", "rename")
    assert [(each.call, each.name) for each in syncs] == [
        ("fsync", TMP),
        ("rename", TMP),
        ("fsync", "."),
    ]
    assert syncs[0].content == outcome_of(TOKEN).to_json(), "whole, and nothing behind it"


def test_the_folder_is_synced_when_the_outcome_has_its_name(watched: Watched) -> None:
    last = watched.named("fsync")[-1]
    assert last.name == "." and DONE in last.names and TMP not in last.names


def test_nothing_is_written_to_an_outcome_after_its_sync(watched: Watched) -> None:
    order = [each.call for each in watched.calls if each.name == TMP]
    assert order.index("fsync") > max(order.index("write"), order.index("ftruncate"))
    assert order.count("fsync") == 1


def test_an_outcome_is_written_into_the_room_that_was_kept_for_it(watched: Watched) -> None:
    (write,) = watched.named("write")
    assert write.room >= RESERVED_BYTES, "a disk that is full by now has none to give"
    (opened,) = [each for each in watched.named("open") if each.name == TMP]
    assert not opened.flags & os.O_TRUNC
    assert opened.flags & os.O_CREAT, "the room may have been taken away; then it is tried at least"


def test_an_outcome_whose_room_was_removed_is_written_all_the_same(evidence: Evidence) -> None:
    os.unlink(evidence.outcome_tmp)
    evidence.write_outcome(outcome_of(TOKEN))
    assert Path(evidence.outcome).read_bytes() == outcome_of(TOKEN).to_json()


def test_the_same_is_so_of_who_keeps_its_folder_open(evidence: Evidence) -> None:
    kept = Evidence.kept_open(evidence.folder, TOKEN)
    with pytest.MonkeyPatch.context() as patching:
        watched = Watched(patching, evidence.folder)
        kept.write_outcome(outcome_of(TOKEN))
    assert [each.name for each in watched.named("fsync")] == [TMP, "."]
    assert kept.read_outcome() is not None, "its folder is still open"


# -- what may be made only once ------------------------------------------------------------------


def names_of(folder: str) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in Path(folder).iterdir()}


@pytest.mark.parametrize("left", ["claim", "outcome"])
def test_a_token_is_prepared_once_and_what_was_there_stays(evidence: Evidence, left: str) -> None:
    os.unlink(evidence.outcome_tmp if left == "claim" else evidence.claim)
    before = names_of(evidence.folder)
    with pytest.raises(FileExistsError):
        evidence.prepare({"token": TOKEN, "argv": ["another"]})
    after = names_of(evidence.folder)
    assert {name: after[name] for name in before} == before


def test_a_start_is_seen_whole_or_not_at_all(evidence: Evidence) -> None:
    started = Started(
        boot_id="boot",
        supervisor_pid=7,
        supervisor_start=8,
        child_pid=9,
        child_start=10,
        cgroup=None,
        started_at=11,
    )
    Path(evidence.started + ".tmp").write_bytes(b"x" * 5000)  # of a write that was cut short
    with pytest.MonkeyPatch.context() as patching:
        watched = Watched(patching, evidence.folder)
        evidence.write_started(started)
    assert Path(evidence.started).read_bytes() == started.to_json()
    assert getattr(evidence.read_started(), "child_start", None) == 10
    (renamed,) = watched.named("rename")
    assert renamed.content == started.to_json()
    assert f"started.{TOKEN}" not in renamed.names
    assert not os.path.exists(evidence.started + ".tmp")


def test_a_supervisor_writes_its_outcome_so(home: Home) -> None:
    """The same file that was kept free for it is the one that has the name in the end."""
    claim = home.claim("sh", "-c", "exit 3")
    kept = os.stat(claim.evidence.outcome_tmp).st_ino
    assert claim.launch().outcome().exit_code == 3
    assert os.stat(claim.evidence.outcome).st_ino == kept
