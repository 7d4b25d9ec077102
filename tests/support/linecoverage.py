"""How many lines of the program the tests run, in all processes: `make coverage`.

Tests hand their own environments to processes, so no variable reaches all of them. Instead a file
in the environment's site-packages starts the measurement in every Python of it, for as long as
this program runs. Parents of supervisors and wrappers of agents start with `-S`, which leaves that
file out: a Python that is measured starts them without it. What is killed is not counted.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "coverage"
SETTINGS = FOLDER / "settings"
STARTED = Path(sysconfig.get_path("purelib"))
STARTERS = (STARTED / "headway_lines.py", STARTED / "headway_lines.pth")

# Since 3.12 the interpreter itself tells which lines run, at a fraction of a tracer's cost.
CORE = "core = sysmon" if sys.version_info >= (3, 12) else ""

CONTENT = f"""\
[run]
{CORE}
data_file = {FOLDER}/lines
source = {ROOT}/src/headway
parallel = true
patch = _exit, fork
disable_warnings = no-data-collected, module-not-imported, module-not-measured
[report]
exclude_also =
    if TYPE_CHECKING:
"""

HOOK = f"""\
import os, subprocess, sys

def loud(argv):
    '''The same command, but with what measures it.'''
    if argv and os.fsdecode(argv[0]) == sys.executable:
        return [each for each in argv if os.fsdecode(each) != '-S']
    return argv

def measure():
    import coverage
    from coverage.control import process_startup
    os.environ['COVERAGE_PROCESS_START'] = {str(SETTINGS)!r}
    process_startup()
    del os.environ['COVERAGE_PROCESS_START']
    start, execve = subprocess.Popen.__init__, os.execve

    def popen(self, args, *rest, **options):
        start(self, loud(args) if isinstance(args, list) else args, *rest, **options)

    def exec_(path, argv, env):
        measured = coverage.Coverage.current()
        if measured is not None:
            measured.save()
        execve(path, loud(list(argv)), env)

    subprocess.Popen.__init__, os.execve = popen, exec_

if os.path.exists({str(SETTINGS)!r}):
    measure()
"""


def main() -> int:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    SETTINGS.write_text(CONTENT)
    environ = {**os.environ, "COVERAGE_RCFILE": str(SETTINGS)}
    coverage = [sys.executable, "-m", "coverage"]
    try:
        STARTERS[0].write_text(HOOK)
        STARTERS[1].write_text("import headway_lines\n")
        tests = subprocess.run([sys.executable, "-m", "pytest", *sys.argv[1:]], cwd=ROOT)
    finally:
        for each in STARTERS:
            each.unlink(missing_ok=True)
    subprocess.run([*coverage, "combine", "--quiet"], cwd=ROOT, env=environ, check=True)
    for killed in FOLDER.glob("lines.*"):  # while it wrote
        killed.unlink()
    report = [*coverage, "report", "--skip-covered", "--sort=miss"]
    subprocess.run(report, cwd=ROOT, env=environ, check=True)
    return tests.returncode


if __name__ == "__main__":
    sys.exit(main())
