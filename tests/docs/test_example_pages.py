"""The pages with examples do what they say, each in an empty folder, with a real worker."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_tour import run
from test_tutorial import BLOCK, write

from harness import Bench, Site
from headway.core.states import Status
from headway.jobs.settings import load_config

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path, env={"HEADWAY_ACTOR": "ada"})
    yield site
    site.close()


@pytest.mark.parametrize(
    ("page", "shown_commands"),
    [
        *(("graphs.md", 5), ("groups.md", 12), ("templates.md", 4), ("retries.md", 1)),
        *(("schedules.md", 7), ("agents.md", 2)),
    ],
)
def test_the_examples_show_what_happens(
    site: Site, tmp_path_factory: pytest.TempPathFactory, page: str, shown_commands: int
) -> None:
    program = tmp_path_factory.mktemp("bin") / "headway"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m headway "$@"\n')
    program.chmod(0o755)
    env = {**site.env, "PATH": f"{program.parent}{os.pathsep}{site.env['PATH']}"}
    commands = 0
    for kind, options, content in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
        if kind == "json":
            write(site, options.strip(), content)
        elif kind == "console":
            for entry in re.split(r"^\$ ", content, flags=re.M)[1:]:
                command, _, shown = entry.partition("\n")
                run(site, env, command, shown)
                commands += 1
    assert commands == shown_commands


def test_the_housekeeping_of_the_page_runs(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=4)
    page = (DOCS / "jobs-file.md").read_text(encoding="utf-8")
    section = page.partition("\n## Functions of your own")[2].partition("\n## ")[0]
    for _, options, content in BLOCK.findall(section):
        if options.strip():
            (bench.folder / options.strip()).write_text(content)
    bench.engine.rounds.asking.modules = load_config(bench.home)["app.modules"]
    bench.step()
    bench.until_ended(1)
    assert bench.status(1) is Status.SUCCEEDED
    assert Path(bench.home.job(1), "stdout.log").read_text() == "closing feature-1\n"
    with bench.store.read() as tx:
        entries = tx.jobsfile.entries(bench.client.context.host.id)
        assert tx.jobsfile.entry_state(bench.client.context.host.id, "close_stale") == {
            "seen": ["feature-1"]
        }
    assert entries["count_bottles"].held == "condition cellar_is_open does not hold"


def test_the_python_of_the_page_runs(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (DOCS / "templates.md").read_text(encoding="utf-8")
    [source] = [content for kind, _, content in BLOCK.findall(page) if kind == "python"]
    Path(site.home.config).write_text("[worker]\nautostart = false\n")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(source, "templates.md", "exec"), names)
    job = site.client.job(1)
    assert job.params["argv"] == ["make", "june"] and job.template_id == "report"
    assert job.labels == {"by": "hand"} and job.retry.max_attempts == 3
    names["client"].close()  # type: ignore[attr-defined]


def test_the_python_of_the_schedules_runs(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (DOCS / "schedules.md").read_text(encoding="utf-8")
    [source] = [content for kind, _, content in BLOCK.findall(page) if kind == "python"]
    Path(site.home.config).write_text("[worker]\nautostart = false\n")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(source, "schedules.md", "exec"), names)
    report, poll = site.client.schedules.list()
    assert report["rule"] == {"cron": "0 9 * * 1-5", "timezone": "Europe/Berlin"}
    assert (poll["enabled"], poll["overlap"], poll["jitter"]) == (False, "queue", "30s")
    assert "at 09:00 Monday to Friday, Europe/Berlin" in capsys.readouterr().out
    names["client"].close()  # type: ignore[attr-defined]
