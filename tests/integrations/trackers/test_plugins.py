"""Sources of installed packages: found by entry point, asked in a process, bounded."""

import os
import signal
from pathlib import Path

import pytest

from headway.base.errors import SourceError
from headway.core.subjects import Item, ItemKind
from headway.integrations.trackers import SourcePlace, open_source, places, plugins

pytestmark = pytest.mark.processes

GOOD = """
from headway.core.subjects import Item, ItemKind
from headway.integrations.trackers import Seen

class Tickets:
    def __init__(self, project):
        self.project = project

    def look(self, subjects):
        print("noise")
        item = Item("T-1", self.project, kind=ItemKind.TREE, children=("T-2",), blockers=("T-3",))
        return Seen({"T-1": item} if "T-1" in subjects else {}, ("one is odd",))
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path that looks like an installed package with a source `tickets`."""
    package = tmp_path / "installed"
    info = package / "tickets-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tickets\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[headway.sources]\ntickets = tickets:Tickets\n")
    monkeypatch.syspath_prepend(str(package))
    known = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(package), known])))
    return package / "tickets.py"


def test_a_registered_source_is_found_and_asked(install: Path, tmp_path: Path) -> None:
    install.write_text(GOOD)
    found = places(str(tmp_path), beads="none", tasks="none")
    assert found == [SourcePlace("tickets", str(tmp_path))]
    seen = open_source(found[0]).look(["T-1", "T-9"])
    expected = Item("T-1", str(tmp_path), kind=ItemKind.TREE, children=("T-2",), blockers=("T-3",))
    assert seen.items == {"T-1": expected}
    assert seen.troubles == ("one is odd",)


@pytest.mark.parametrize(
    ("body", "trouble"),
    [
        ("raise RuntimeError('no network')", "source tickets failed: RuntimeError: no network"),
        ("class Tickets:\n    def __init__(self, project): pass", "failed: AttributeError"),
        (GOOD.replace("kind=ItemKind.TREE", 'state="odd"'), "gave no proper answer"),
        (GOOD.replace('children=("T-2",)', 'children=("-rf",)'), "gave no proper answer"),
    ],
)
def test_what_goes_wrong_is_an_error_that_names_the_source(
    install: Path, tmp_path: Path, body: str, trouble: str
) -> None:
    install.write_text(body)
    source = open_source(SourcePlace("tickets", str(tmp_path)))
    with pytest.raises(SourceError, match=trouble):
        source.look(["T-1"])


@pytest.mark.req("G42")
def test_one_that_hangs_is_ended(
    install: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "pid"
    install.write_text(
        f"import os, signal\nopen({str(mark)!r}, 'w').write(str(os.getpid()))\nsignal.pause()"
    )
    monkeypatch.setattr(plugins, "SECONDS", 2.0)
    with pytest.raises(SourceError, match="did not answer within 2 s"):
        open_source(SourcePlace("tickets", str(tmp_path))).look(["T-1"])
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


def test_an_answer_counts_though_a_child_outside_of_the_session_goes_on(
    install: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "pid"
    install.write_text(
        "import subprocess\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        f"open({str(mark)!r}, 'w').write(str(child.pid))\n{GOOD}"
    )
    try:
        seen = open_source(SourcePlace("tickets", str(tmp_path))).look(["T-1"])
        assert list(seen.items) == ["T-1"]
    finally:
        os.kill(int(mark.read_text()), signal.SIGKILL)  # which also says that it went on


def test_sources_that_are_not_there_are_not_asked(tmp_path: Path) -> None:
    assert places(str(tmp_path), beads="b", tasks="t") == []
    (tmp_path / "b").write_text("")
    (tmp_path / "t").mkdir()
    assert [each.source for each in places(str(tmp_path), beads="b", tasks="t")] == [
        "beads",
        "tasks",
    ]
