"""`jobs move`, `jobs reorder`, `jobs list --queue` and the places of a submit."""

import json

import pytest
from commandline import CommandLine


def ids(headway: CommandLine) -> list[str]:
    told = json.loads(headway.out("jobs", "list", "--queue", "--json"))
    assert [each["place"] for each in told["jobs"]] == list(range(1, len(told["jobs"]) + 1))
    return [each["id"] for each in told["jobs"]]


@pytest.fixture
def three(still: CommandLine) -> CommandLine:
    for name in ("a", "b", "c"):
        still("submit", "--name", name, "--", "true")
    return still


@pytest.mark.req("D11")
def test_a_job_is_moved_to_each_place(three: CommandLine) -> None:
    three("jobs", "move", "3", "--front")
    assert ids(three) == ["job-3", "job-1", "job-2"]
    three("jobs", "move", "3", "--back")
    three("jobs", "move", "job-3", "--before", "job-2")
    assert ids(three) == ["job-1", "job-3", "job-2"]
    three("jobs", "move", "1", "--after", "3")
    assert ids(three) == ["job-3", "job-1", "job-2"]
    done = three("jobs", "move", "2", "--position", "2", "--json")
    told = json.loads(done.stdout)
    assert (told["version"], told["moved"], told["job"]["id"]) == (1, True, "job-2")
    assert ids(three) == ["job-3", "job-2", "job-1"]
    again = three("jobs", "move", "2", "--position", "2")
    assert "it stood there already" in again.stderr and again.stdout == ""


@pytest.mark.req("D11")
def test_several_are_reordered(three: CommandLine) -> None:
    told = json.loads(three.out("jobs", "reorder", "3", "1", "--json"))
    assert told["moved"] == ["job-3", "job-1"]
    assert [each["id"] for each in told["jobs"]] == ["job-3", "job-1"]
    assert ids(three) == ["job-3", "job-2", "job-1"]
    assert "already" in three("jobs", "reorder", "3", "2", "1").stderr


@pytest.mark.req("D11")
def test_a_submit_takes_a_place(three: CommandLine) -> None:
    three("submit", "--front", "--", "true")
    three("submit", "--position", "2", "--", "true")
    assert ids(three) == ["job-4", "job-5", "job-1", "job-2", "job-3"]
    (three.folder / "g.json").write_text(
        '[{"id": "x", "argv": ["true"], "position": 1},'
        ' {"id": "y", "argv": ["true"], "after": ["x"], "position": 2}]'
    )
    three("submit", "--graph", "g.json")
    assert ids(three)[:3] == ["job-6", "job-7", "job-4"]


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["move", "1"], 2, "Where to?"),
        (["move", "1", "--front", "--back"], 2, "Where to?"),
        (["move", "9", "--front"], 3, "there is no job-9"),
        (["move", "1", "--before", "9"], 3, "there is no job-9"),
        (["move", "1", "--before", "1"], 5, "cannot stand before itself"),
        (["move", "1", "--position", "0"], 5, "less than 1"),
        (["move", "1", "--position", "x"], 5, "not a whole number"),
        (["move", "1", "--before", "4"], 4, "headway jobs edit job-1 --priority 5"),
        (["reorder", "1", "4"], 4, "has priority"),
        (["reorder", "1", "1"], 5, "twice"),
        (["reorder"], 2, "JOB"),
        (["list", "--queue", "--all"], 2, "--queue"),
        (["list", "--queue", "--since", "1h"], 2, "--queue"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_is_refused_with_the_next_step(
    three: CommandLine, argv: list[str], code: int, words: str
) -> None:
    three("submit", "--priority", "5", "--", "true")
    before = ids(three)
    done = three("jobs", *argv, code=code)
    assert words in done.stderr and done.stdout == ""
    assert ids(three) == before


def test_the_queue_shows_places_and_estimates(three: CommandLine) -> None:
    lines = three.out("jobs", "list", "--queue").splitlines()
    assert lines[0].split() == ["Place", "Job", "Name", "Priority", "State", "Wait/Result", *STARTS]
    assert lines[1].split() == ["1", "job-1", "a", "0", "queued", "now"]
    assert lines[2].split() == ["2", "job-2", "b", "0", "queued", "?"]
    only = three.out("jobs", "list", "--queue", "--name", "c", "--fields", "place,id")
    assert only.splitlines()[1:] == ["3      job-3"]
    assert three.out("jobs", "list", "--queue", "--state", "waiting_on_locks") == ""
    cut = three("jobs", "list", "--queue", "--limit", "2")
    assert len(cut.stdout.splitlines()) == 3 and "later jobs are not shown" in cut.stderr
    three("scheduler", "pause", "--reason", "tea")
    paused = three("jobs", "list", "--queue", "--json")
    assert "nothing starts now: paused by ada: tea" in paused.stderr
    estimates = [each["estimated_wait_seconds"] for each in json.loads(paused.stdout)["jobs"]]
    assert estimates == [None, None, None]


STARTS = ("Starts", "in")


def test_an_empty_queue_says_so(still: CommandLine) -> None:
    assert "nothing waits" in still("jobs", "list", "--queue").stderr
    assert json.loads(still.out("jobs", "list", "--queue", "--json"))["jobs"] == []
