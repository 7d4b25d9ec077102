"""How a worker's service is written: what is read out of it again is what was put in."""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.admin.service.plan import (
    ServicePlan,
    cron_line,
    has_password,
    is_ours,
    make_plan,
    service_name,
    unit_text,
)
from headway.base.errors import InvalidInputError

SYSTEMD = shutil.which("systemd", path="/usr/lib/systemd:/lib/systemd")
NOBODY = 65534
HARD = [
    "plain",
    "with space",
    "per%cent %h",
    "do$lar ${HOME}",
    'quo"te',
    "apo'strophe",
    "semi;colon",
    "#hash",
]


def planned(
    home: str = "/srv/project/.headway",
    *,
    python: str = "/usr/bin/python3",
    store_url: str | None = None,
    environ: dict[str, str] | None = None,
    grace: int = 10,
) -> ServicePlan:
    return make_plan(
        home,
        python=python,
        log=f"{home}/run/worker.log",
        store_url=store_url,
        grace_seconds=grace,
        environ={"PATH": "/usr/bin:/bin"} if environ is None else environ,
    )


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can look into: as root, systemd's test runs as another one."""
    folder = Path(tempfile.mkdtemp(prefix="headway-service-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_systemd_reads(plan: ServicePlan, folder: Path) -> dict[str, list[str]]:
    """The values that systemd itself finds in the unit, by its own dry run."""
    units, runtime = folder / "systemd" / "user", folder / "run"
    units.mkdir(parents=True)
    runtime.mkdir()
    (units / plan.unit).write_text(unit_text(plan))
    asked = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    if asked:
        os.chown(runtime, NOBODY, NOBODY)
    done = subprocess.run(
        [str(SYSTEMD), "--user", "--test", f"--unit={plan.unit}"],
        env={"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_RUNTIME_DIR": str(runtime)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **asked,  # type: ignore[call-overload]
    )
    assert done.returncode == 0, done.stderr
    assert plan.unit not in done.stderr, done.stderr  # no complaint about a line of ours
    section = done.stdout.split(f"-> Unit {plan.unit}:\n")[1].split("\t-> Unit ")[0]
    found: dict[str, list[str]] = {}
    for line in section.splitlines():
        key, _, value = line.strip().partition(": ")
        found.setdefault(key, []).append(value)
    return found


def test_jobs_outlive_a_service_that_is_stopped() -> None:  # fault B17
    assert {"KillMode=process", "Delegate=yes"} <= set(unit_text(planned()).splitlines())


@pytest.mark.parametrize("word", HARD)
def test_systemd_reads_what_was_meant(open_folder: Path, word: str) -> None:
    project = open_folder / word
    project.mkdir()
    store = f"sqlite:///srv/{word}.db"
    plan = planned(f"{project}/.headway", store_url=store, environ={"PATH": f"/bin:/opt/{word}"})
    if SYSTEMD is None:
        assert "\nExecStart=:/usr/bin/python3 -P -m headway --home " in unit_text(plan)
        return
    read = as_systemd_reads(plan, open_folder)
    assert read["WorkingDirectory"] == [str(project)]
    assert read["Environment"] == [f"PATH=/bin:/opt/{word}", f"HEADWAY_STORE={store}"]
    shown = read["Command Line"][0].replace("\\$", "$")  # which shlex leaves as it is
    assert shlex.split(shown) == list(plan.argv)
    assert read["KillMode"] == ["process"]
    assert read["Delegate"] == ["yes"]
    assert read["OOMPolicy"] == ["continue"]
    assert read["Restart"] == ["on-failure"]


def test_systemd_analyze_has_no_objection(open_folder: Path) -> None:
    plan = planned(f"{open_folder}/.headway")
    if shutil.which("systemd-analyze") is None:
        assert "[Install]\nWantedBy=default.target\n" in unit_text(plan)
        return
    file, runtime = open_folder / plan.unit, open_folder / "run"
    file.write_text(unit_text(plan))
    runtime.mkdir()
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(file)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime), "HOME": str(open_folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_as_a_whole() -> None:
    text = unit_text(planned("/srv/my 100%/.headway", environ={}, grace=100))
    name = service_name("/srv/my 100%/.headway")
    assert text.splitlines()[2] == f"Description=Headway worker of /srv/my 100%% ({name})"
    assert (
        "\nWorkingDirectory=/srv/my 100%%\nExecStart=:/usr/bin/python3 -P -m headway --home "
        '"/srv/my 100%%/.headway" work --wait\nRestart=on-failure\nRestartSec=10\n'
        "TimeoutStopSec=130\n"
    ) in text
    assert "Environment" not in text


@pytest.mark.parametrize("word", HARD)
def test_the_shell_of_cron_reads_what_was_meant(tmp_path: Path, word: str) -> None:
    project = tmp_path / word
    (project / ".headway" / "run").mkdir(parents=True)
    program = project / "python"  # says what it was given, in place of a worker
    program.write_text('#!/bin/sh\nprintf "%s\\0" "$PWD" "$PATH" "$HEADWAY_STORE" "$@"\n')
    program.chmod(0o755)
    path = f"/usr/bin:/bin:/opt/{word}"
    store = f"sqlite:///srv/{word}.db"
    home = f"{project}/.headway"
    plan = planned(home, python=str(program), store_url=store, environ={"PATH": path})
    line = cron_line(plan)
    assert is_ours(line, plan)
    command = line.removeprefix("@reboot ")
    assert "%" not in command.replace("\\%", "")  # cron ends the command at a bare one
    subprocess.run(["/bin/sh", "-c", command.replace("\\%", "%")], timeout=60, check=True)
    said = Path(plan.log).read_text().split("\0")[:-1]
    assert said == [str(project), path, store, *plan.argv[1:]]
    assert Path(plan.log).stat().st_mode & 0o777 == 0o600


def test_the_name_is_of_the_folder_and_of_no_other_home() -> None:
    name = service_name("/srv/My Project!/.headway")
    assert name.startswith("headway-my-project-")
    assert name != service_name("/srv/elsewhere/My Project!/.headway")
    assert name != service_name("/srv/My Project!/.headway", "sqlite:///srv/x.db")
    assert service_name("/.headway").startswith("headway-project-")
    assert len(service_name(f"/{'x' * 250}/.headway")) < 64


@pytest.mark.parametrize(
    ("home", "python", "why"),
    [
        ("/srv/new\nline/.headway", "/usr/bin/python3", "control characters"),
        ("/srv/del\x7f/.headway", "/usr/bin/python3", "control characters"),
        ("/srv/\udcff/.headway", "/usr/bin/python3", "not UTF-8"),
        ("/srv/x/.headway", "", "which Python"),
    ],
)
def test_what_no_file_can_carry_is_refused(home: str, python: str, why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        planned(home, python=python)


def test_what_only_one_of_the_two_can_carry_is_refused_there() -> None:
    back = planned("/srv/back\\slash/.headway")
    assert '"/srv/back\\\\slash/.headway"' in unit_text(back)
    with pytest.raises(InvalidInputError, match="backslash"):
        cron_line(back)
    for folder in ("/srv/end ", "/srv/end\\"):
        with pytest.raises(InvalidInputError, match="ends so"):
            unit_text(planned(f"{folder}/.headway"))
    with pytest.raises(InvalidInputError, match="quotes in its path"):
        unit_text(planned(python="/opt/it's/python3"))


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("postgresql://ada:secret@db/x", True),
        ("postgresql://ada:@db/x", False),
        ("postgresql://db/x?password=", False),
        ("postgresql://db/x?password=secret", True),
        ("postgresql://db/x?application_name=a&sslpassword=b", True),
        ("postgresql://[broken", True),
        ("postgresql://ada@db/x", False),
        ("postgresql://db/x?options=-csearch_path%3Dt", False),
        ("sqlite:///srv/x.db", False),
    ],
)
def test_no_password_is_written_down(url: str, *, secret: bool) -> None:
    assert has_password(url) is secret
    if secret:
        with pytest.raises(InvalidInputError, match=r"config\.toml") as told:
            planned(store_url=url)
        assert "secret" not in str(told.value)
    else:
        assert ("HEADWAY_STORE", url) in planned(store_url=url).environment


def test_only_what_the_worker_needs_is_in_its_environment() -> None:
    given = {"PATH": "/usr/bin:.:bin:/opt/bin", "PYTHONPATH": "", "API_KEY": "x", "HOME": "/root"}
    assert planned(environ=given).environment == (("PATH", "/usr/bin:/opt/bin"),)
