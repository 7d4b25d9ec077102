"""A copy of the project in which one mistake at a time is made and its tests are run."""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mutants.mutant import Mutant, patched

RED = 1  # how pytest exits if a test failed; any other code says that none was run
MARK = "HEADWAY_MUTANT"
LISTED = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")


class Slot:
    """Made below `folder`. Its own environment of Python uses the packages of the one that runs
    this, but the program of the copy."""

    def __init__(self, project: Path, folder: Path) -> None:
        self.project = folder / "project"
        self._temporary = folder / "tmp"
        self._mark = f"{MARK}={folder}"
        self._changes = 0
        _copy(project, self.project)
        self._python = _make_environment(folder / "venv", self.project)

    def run(self, ids: Iterable[str], seconds: float) -> "Ran":
        """Run these tests until the first is red."""
        self._temporary.mkdir()
        command = [str(self._python), "-m", "pytest", "-x", "-q", "--no-header", *ids]
        name, _, value = self._mark.partition("=")
        surroundings = {**os.environ, "TMPDIR": str(self._temporary), name: value}
        surroundings.pop("PYTHONPATH", None)
        with tempfile.TemporaryFile("w+") as output:
            running = subprocess.Popen(
                command,
                cwd=self.project,
                env=surroundings,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                code: int | None = running.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                self._end_all(running)
                shutil.rmtree(self._temporary, ignore_errors=True)
            output.seek(0)
            return Ran(code, output.read())

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """Make the mistake for a while. The times of the file differ each time, because bytecode is
        taken for current by the time and the length of its source."""
        file = self.project / mutant.file
        text, then = file.read_text(), file.stat()
        self._changes += 1
        file.write_text(patched(mutant, self.project))
        os.utime(file, (then.st_atime, int(then.st_mtime) + self._changes))
        try:
            yield
        finally:
            file.write_text(text)
            os.utime(file, ns=(then.st_atime_ns, then.st_mtime_ns))

    def _end_all(self, running: "subprocess.Popen[bytes] | subprocess.Popen[str]") -> None:
        """With a mistake in it, tests can hang, or leave processes. First their group, as one:
        whoever forks all the time would be gone from any list. Then all others that have the
        mark, which are in sessions of their own."""
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        while self._end_marked():
            continue

    def _end_marked(self) -> bool:
        """End all there are now; True if there were any."""
        found = False
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                if self._mark.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    os.kill(pid, signal.SIGKILL)
                    found = True
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue  # it has ended, or belongs to others
        return found


class Ran:
    """How a run of tests ended: `code` is None if its time was over."""

    def __init__(self, code: int | None, output: str) -> None:
        self.code = code
        self.output = output

    @property
    def is_green(self) -> bool:
        return self.code == 0

    @property
    def hung(self) -> bool:
        return self.code is None

    @property
    def is_red(self) -> bool:
        """A test failed. If the tests could not even be collected, that proves nothing."""
        return self.hung or self.code == RED


def _copy(project: Path, there: Path) -> None:
    listed = subprocess.run(LISTED, cwd=project, check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if os.path.lexists(project / name):
            (there / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(project / name, there / name, follow_symlinks=False)


def _make_environment(folder: Path, project: Path) -> Path:
    """A file in its packages names the copy's sources, before the packages of this environment:
    theirs that would lead to the sources of the original are not read from there."""
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(command, check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    (packages / "copy.pth").write_text(f"{project}/src\n{sysconfig.get_path('purelib')}\n")
    return folder / "bin" / "python"
