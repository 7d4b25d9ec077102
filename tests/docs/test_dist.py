"""What `make dist` builds runs in an environment that has nothing but what the wheel asks for."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src"


def run(*argv: object, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(word) for word in argv],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist and with the wheel that was made of it, not of the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    run("make", "dist", f"ARGS=--outdir={folder}", f"BIN={Path(sys.executable).parent}", "STAMP=")
    return folder


def needed(root: Distribution) -> dict[str, Distribution]:
    """What a distribution needs without its extras, and what those need."""
    found: dict[str, Distribution] = {}
    ahead = [root]
    while ahead:
        for line in ahead.pop().requires or []:
            requirement = Requirement(line)
            wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
            if wanted and requirement.name not in found:
                found[requirement.name] = distribution(requirement.name)
                ahead.append(found[requirement.name])
    return found


def install(wheel: Path, venv: Path) -> None:
    """Without a network: pip unpacks the wheel; what it asks for is copied from here."""
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    offline = ("--no-index", "--no-deps", "--disable-pip-version-check")
    run(
        sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "install", *offline, wheel
    )
    [packages] = venv.glob("lib/python*/site-packages")
    [metadata] = packages.glob("headway-*.dist-info")
    for each in needed(Distribution.at(metadata)).values():
        for file in each.files or []:
            if ".." not in file.parts and file.suffix != ".pyc":
                target = packages / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), target)


@pytest.mark.long
@pytest.mark.processes
def test_the_wheel_runs_a_job_in_an_empty_environment(dist: Path, tmp_path: Path) -> None:
    [wheel] = dist.glob("*.whl")
    install(wheel, tmp_path / "venv")
    project = tmp_path / "project"
    project.mkdir()
    kept = {"PATH", "LANG", "TMPDIR", "XDG_STATE_HOME"}
    env = {name: value for name, value in os.environ.items() if name in kept}
    env["HOME"] = str(tmp_path)

    def headway(*words: str) -> str:
        return run(tmp_path / "venv" / "bin" / "headway", *words, cwd=project, env=env).strip()

    version = wheel.name.split("-")[1]
    assert headway("--version") == f"headway {version}"
    headway("init")
    headway("config", "set", "worker.idle", "1s")  # the worker leaves by itself
    assert headway("submit", "--", "echo", "hello") == "job-1"
    headway("jobs", "wait", "job-1")
    assert headway("jobs", "tail", "job-1") == "hello"


@pytest.mark.processes
def test_the_wheel_has_every_file_of_the_package(dist: Path) -> None:
    [wheel] = dist.glob("*.whl")
    files = {
        str(path.relative_to(PACKAGE))
        for path in (PACKAGE / "headway").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert any(name.endswith(".sql") for name in files)
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == files


@pytest.mark.processes
def test_the_sdist_has_what_make_needs_and_nothing_that_lies_around(dist: Path) -> None:
    [sdist] = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        paths = [Path(name).parts[1:] for name in archive.getnames()]
    assert {parts[0] for parts in paths if parts} == {
        *("src", "tests", "docs", "examples", "bench", "Makefile", "pyproject.toml", "PKG-INFO"),
        *("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE"),
        ".gitignore",
    }
