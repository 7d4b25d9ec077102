"""What a home holds is for its user alone, whatever umask whoever makes it has."""

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Bench, Site, wait_for
from headway.supervise.evidence import Evidence

OPEN = ("config.toml", "jobs.yaml")  # what people wrote themselves
MODULE = """\
import headway
app = headway.App()
@app.task
def add(a, b):
    print("added")
    return a + b
@headway.job("tidy")
def tidy(ctx):
    ctx.state["times"] = 1
"""


@pytest.fixture
def open_site(tmp_path: Path) -> Iterator[Site]:
    """A home made and used by someone who lets everyone do everything."""
    before = os.umask(0)
    try:
        (tmp_path / "mine.py").write_text(MODULE)
        site = Site(tmp_path, config='[app]\nmodules = ["mine"]\n')
        (tmp_path / ".headway" / "jobs.yaml").write_text(
            "jobs:\n  tidy:\n    interval: 1h\n    type: script\n    run: tidy\n"
        )
        yield site
        site.close()
    finally:
        os.umask(before)


def too_open(home: Path) -> list[str]:
    """The parts of a home that others could read or write."""
    return [
        f"{stat.S_IMODE(path.lstat().st_mode):o} {path.relative_to(home)}"
        for path in [home, *home.rglob("*")]
        if path.lstat().st_mode & 0o077
        and path.name not in OPEN
        and not path.is_symlink()
        and "worktrees" not in path.parts
    ]


@pytest.mark.req("C47")
def test_nothing_in_a_used_home_is_open_to_others(open_site: Site, tmp_path: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "mine.py"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    worker = open_site.worker()
    run = open_site.run
    assert run("exec", "--", "sh", "-c", "echo out; echo err >&2").stdout == "out\n"
    run("exec", "--save-patch", "--", "sh", "-c", "echo x > new")
    run("exec", "--worktree", "--", "true")
    run("submit", "--stdin", "mine.py", "--", "cat")
    run("direct", "--", "true")
    run("config", "set", "worker.idle", "5s")
    call = "import mine; print(mine.add.submit(1, 2).result(timeout=60))"
    python = [*worker.args[:1], "-c", call]  # type: ignore[index]
    done = subprocess.run(python, cwd=tmp_path, env=open_site.env, check=True, capture_output=True)
    assert done.stdout.strip() == b"3"
    wait_for(lambda: b"succeeded" in run("jobs", "list").stdout.encode() and _tidied(open_site))
    home = Path(open_site.home.path)
    assert any(path.name == "host.json" for path in home.rglob("*")), "a function host is there"
    assert too_open(home) == []
    worker.terminate()
    worker.wait()
    assert too_open(home) == []


def test_what_an_older_version_left_open_is_closed(bench: Bench) -> None:
    """Of a function host that lives on: its folder is not removed."""
    folder = Path(bench.home.hosts) / ("0" * 32)
    folder.mkdir(parents=True, mode=0o700)
    (folder / "host.json").write_text("{}")
    (folder / "host.json").chmod(0o644)
    evidence = Evidence(str(folder), "0" * 32)
    evidence.prepare({})
    lock = evidence.try_lock()
    assert lock is not None
    bench.engine.recover()
    assert (folder / "host.json").stat().st_mode & 0o777 == 0o600
    os.close(lock)  # or this process would be taken for a supervisor


def _tidied(site: Site) -> bool:
    listed = site.run("jobsfile", "list", "--json").stdout
    return '"status": "succeeded"' in listed
