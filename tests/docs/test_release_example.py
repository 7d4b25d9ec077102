"""The example of a release runs: what is tested is what is published, once a person agrees."""

import hashlib
import shutil
from pathlib import Path

import pytest

from harness import Bench
from headway.base.trust import record
from headway.workflows.files import read_file
from headway.workflows.mistakes import WorkflowError
from headway.workflows.runs import show_run
from headway.workflows.start import RunRequest, compile_run, start

EXAMPLE = Path(__file__).parents[2] / "examples" / "release"


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    folder = tmp_path / "release"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("dist", "published", "notices"))
    record(str(folder / ".headway"))  # as `headway trust` of the README does
    monkeypatch.chdir(folder)
    return Bench(folder, max_active=4)


def run(bench: Bench, *words: str, **params: str) -> int:
    context = bench.client.context
    request = RunRequest(words=words, params=params)
    file = read_file(context.home, "release", context.folder)
    return start(context, compile_run(context, file, request), request).run


def outcomes(bench: Bench, number: int) -> dict[str, str | None]:
    document = show_run(bench.client.context, number)
    return {each["id"]: each["outcome"] for each in document["nodes"]}


def until_ended(bench: Bench, number: int) -> dict[str, str | None]:
    bench.until(lambda: show_run(bench.client.context, number)["ended_at"], "the run to end")
    return outcomes(bench, number)


def test_what_was_tested_is_published_when_a_person_agrees(released: Bench) -> None:
    number = run(released, "1.2.0", publish="true")
    released.until(
        lambda: all(
            outcome
            for name, outcome in outcomes(released, number).items()
            if name not in ("publish", "alarm", "report")
        ),
        "all but the publication",
    )
    assert not (released.folder / "published").exists()
    (job,) = [
        each["job"]
        for each in show_run(released.client.context, number)["nodes"]
        if each["id"] == "publish"
    ]
    assert f"headway approve {job} " in (EXAMPLE / "README.md").read_text()
    released.client.jobs.approve(job)
    found = until_ended(released, number)
    assert show_run(released.client.context, number)["state"] == "succeeded"
    assert found["lint"] == "failed", "which is tolerated"
    assert found["publish"] == "succeeded" and found["alarm"] == "skipped"
    assert found["slow[0]"] == found["slow[1]"] == "succeeded"
    assert len([name for name in found if name.startswith("test[")]) == 5
    built = (released.folder / "dist" / "app.tar").read_bytes()
    published = (released.folder / "published" / "app-1.2.0.tar").read_bytes()
    assert hashlib.sha256(built).digest() == hashlib.sha256(published).digest()
    assert (released.folder / "notices").read_text() == f"wf-{number} succeeded\n"
    released.close()


def test_without_the_wish_nothing_is_published(released: Bench) -> None:
    number = run(released, "1.2.0")
    assert until_ended(released, number)["publish"] == "skipped"
    assert (released.folder / "notices").read_text() == f"wf-{number} succeeded\n"
    assert not (released.folder / "published").exists()
    released.close()


def test_a_wrong_version_is_refused(released: Bench) -> None:
    with pytest.raises(WorkflowError, match="parameter 'version' is"):
        run(released, "1.2")
    assert released.client.jobs.list().documents == []
    released.close()
