"""`headway service`: what it asks of the system's programs, and what it leaves alone.

systemctl, loginctl and crontab are small programs that write down how they were called.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import headway
from headway.base.home import Home
from headway.base.new_home import make_home
from headway.base.worker_lock import STAYS, WorkerLock
from headway.cli.main import run

pytestmark = pytest.mark.processes

SYSTEMCTL = """#!/bin/sh
echo "systemctl $*" >>"$RECORD"
units="$XDG_CONFIG_HOME/systemd/user"
case "$2" in
is-system-running) cat "$STATE/manager"; exit 1;;
is-enabled) [ -e "$STATE/enabled" ] && echo enabled || { echo disabled; exit 1; };;
is-active) [ -e "$STATE/active" ] && echo active || { echo inactive; exit 3; };;
show) echo "$(cat "$STATE/result" 2>/dev/null || echo success)";;
enable) [ ! -e "$STATE/refuses" ] || { echo "Failed to enable unit: no" >&2; exit 1; }
        [ -e "$units/$3" ] || exit 5; touch "$STATE/enabled";;
restart) [ -e "$units/$3" ] || exit 5; touch "$STATE/active";;
disable) rm -f "$STATE/enabled" "$STATE/active";;
esac
"""
LOGINCTL = '#!/bin/sh\necho "loginctl $*" >>"$RECORD"\ncat "$STATE/linger"\n'
CRONTAB = """#!/bin/sh
echo "crontab $*" >>"$RECORD"
case "$1" in
-l) [ ! -e "$STATE/refuses" ] || { echo "You (ada) are not allowed" >&2; exit 1; }
    [ -e "$STATE/crontab" ] || { echo "no crontab for ada" >&2; exit 1; }
    cat "$STATE/crontab";;
-) cat >"$STATE/crontab";;
esac
"""
ASKING = ("is-system-running", "is-enabled", "is-active", "show", "show-user", "-l")


class Told(NamedTuple):
    code: int
    out: str
    err: str


class System:
    """A project, and the programs that this system has."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.programs, self.state, self.config = (
            folder / name for name in ("bin", "state", "config")
        )
        self.project = folder / "My project"
        for each in (self.programs, self.state, self.config, self.project):
            each.mkdir()
        self.record = folder / "record"
        self._capsys = capsys

    def has(self, name: str, text: str) -> None:
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def __call__(self, *argv: str, code: int = 0) -> Told:
        self._capsys.readouterr()
        told = Told(run(list(argv)), *self._capsys.readouterr())
        assert told.code == code, told
        return told

    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self("service", "status", "--json").out)["service"]
        return found

    def changes(self) -> list[str]:
        """What the programs were asked to do since the last look, but for mere questions."""
        lines = self.record.read_text().splitlines() if self.record.exists() else []
        self.record.write_text("")
        return [line for line in lines if not any(word in line.split() for word in ASKING)]

    @property
    def units(self) -> list[Path]:
        return sorted(each for each in self.config.rglob("*") if each.is_file())


@pytest.fixture
def bare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> System:
    """Neither systemd nor cron."""
    system = System(tmp_path, capsys)
    for name in ("HEADWAY_HOME", "HEADWAY_STORE", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    # The fakes are shell scripts, and need what is in /bin but for the real ones.
    for name in ("cat", "rm", "touch"):
        (system.programs / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(system.programs))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(system.config))
    monkeypatch.setenv("RECORD", str(system.record))
    monkeypatch.setenv("STATE", str(system.state))
    monkeypatch.chdir(system.project)
    assert run(["init"]) == 0
    return system


@pytest.fixture
def systemd(bare: System) -> System:
    bare.has("systemctl", SYSTEMCTL)
    bare.has("loginctl", LOGINCTL)
    bare.has("crontab", CRONTAB)
    (bare.state / "manager").write_text("degraded\n")
    (bare.state / "linger").write_text("yes\n")
    return bare


@pytest.fixture
def cron(systemd: System) -> System:
    """There is a systemctl, but no systemd of the user's that answers."""
    (systemd.state / "manager").write_text("offline\n")
    return systemd


def test_a_unit_is_written_enabled_and_started(systemd: System) -> None:
    told = systemd("service", "install")
    [unit] = systemd.units
    assert told.out == f"{unit}\n"
    assert unit.parent == systemd.config / "systemd" / "user"
    assert unit.name.startswith("headway-my-project-")
    assert f'--home "{systemd.project}/.headway" work --wait\n' in unit.read_text()
    assert sys.executable in unit.read_text()
    assert unit.stat().st_mode & 0o022 == 0
    assert systemd.changes() == [
        "systemctl --user daemon-reload",
        f"systemctl --user enable {unit.name}",
        f"systemctl --user restart {unit.name}",
    ]


def test_installing_twice_changes_nothing(systemd: System) -> None:
    systemd("service", "install")
    systemd.changes()
    [unit] = systemd.units
    before = unit.stat()  # another file would have another inode
    assert "already there" in systemd("service", "install").err
    assert systemd.changes() == []
    after = unit.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_an_older_text_is_replaced_and_started_anew(systemd: System) -> None:
    systemd("service", "install")
    [unit] = systemd.units
    whole = unit.read_text()
    unit.write_text(whole.replace("RestartSec=10", "RestartSec=1"))
    told = systemd("service", "status")
    assert "headway service install" in told.err
    systemd.changes()
    systemd("service", "install")
    assert systemd.units == [unit]
    assert unit.read_text() == whole
    assert systemd.changes()[-1] == f"systemctl --user restart {unit.name}"


def test_print_changes_nothing(systemd: System) -> None:
    told = systemd("service", "install", "--print")
    assert told.out.startswith("# Made by `headway service install`")
    assert systemd.units == []
    assert systemd.changes() == []
    systemd("service", "install")
    assert systemd.units[0].read_text() == told.out
    (systemd.state / "manager").write_text("offline\n")
    line = systemd("service", "install", "--print").out
    assert line.startswith("@reboot ")
    assert not (systemd.state / "crontab").exists()


def test_print_needs_neither_systemd_nor_cron(bare: System) -> None:
    told = bare("service", "install", "--print")
    assert told.out.startswith("# Made by `headway service install`")
    assert "work --wait" in told.out
    assert "it would be " in told.err and "have whatever starts programs here run: " in told.err
    assert bare.units == []


def test_who_does_not_linger_is_told_how(systemd: System) -> None:
    (systemd.state / "linger").write_text("no\n")
    assert "loginctl enable-linger" in systemd("service", "install").err
    assert "loginctl enable-linger" in systemd("service", "status").err
    assert systemd.json()["linger"] is False
    assert "loginctl enable-linger" not in "".join(systemd.changes())  # said, not done


def test_what_systemd_refuses_leaves_nothing_behind(systemd: System) -> None:
    (systemd.state / "refuses").touch()
    told = systemd("service", "install", code=1)
    assert told.err.startswith("headway: systemctl --user enable ")
    assert told.err.endswith(": Failed to enable unit: no\n")
    assert systemd.units == []


def test_a_unit_that_is_not_ours_is_never_touched(systemd: System) -> None:
    systemd("service", "install")
    [unit] = systemd.units
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    systemd.changes()
    assert "not ours" in systemd("service", "install", code=4).err
    assert "not ours" in systemd("service", "remove", code=4).err
    assert systemd.json()["kind"] is None
    assert unit.read_text() == "[Service]\nExecStart=/bin/true\n"
    assert systemd.changes() == []


def test_the_status_of_a_unit(systemd: System) -> None:
    systemd("service", "install")
    [unit] = systemd.units
    assert systemd.json() == {
        "name": unit.stem,
        "kind": "systemd",
        "place": str(unit),
        "current": True,
        "enabled": True,
        "active": "active",
        "result": "success",
        "linger": True,
        "worker": {"alive": False, "pid": None},
        "server": None,
    }
    (systemd.state / "active").unlink()
    (systemd.state / "result").write_text("exit-code\n")
    told = systemd("service", "status")
    words = " ".join(told.out.split())
    assert f"inactive (exit-code); see: journalctl --user -u {unit.stem} " in words
    assert all(len(line) <= 80 for line in told.out.splitlines())


def test_another_path_of_the_shell_is_no_news(
    systemd: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemd("service", "install")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/opt/new")
    assert systemd.json()["current"] is True


def test_remove_takes_away_what_is_ours_alone(systemd: System) -> None:
    systemd("service", "install")
    [unit] = systemd.units
    other = unit.with_name("headway-other-12345678.service")
    other.write_text(unit.read_text())
    systemd.changes()
    assert "is removed" in systemd("service", "remove").err
    assert systemd.units == [other]
    assert systemd.changes() == [
        f"systemctl --user disable --now {unit.name}",
        "systemctl --user daemon-reload",
    ]
    assert systemd.json()["kind"] is None
    assert "no service is installed" in systemd("service", "remove").err
    assert systemd.changes() == []


def test_remove_without_a_systemd_that_answers_takes_the_files(cron: System) -> None:
    (cron.state / "manager").write_text("running\n")
    cron("service", "install")
    [unit] = cron.units
    wants = unit.parent / "default.target.wants"
    wants.mkdir()
    (wants / unit.name).symlink_to(unit)
    (cron.state / "manager").write_text("offline\n")
    cron("service", "remove")
    assert cron.units == []
    assert not list(wants.iterdir())


def test_a_server_has_a_unit_of_its_own_and_starts_no_worker(systemd: System) -> None:
    told = systemd("service", "install", "--web")
    server, worker = sorted(systemd.units, key=lambda unit: "work --wait" in unit.read_text())
    assert told.out.splitlines() == [str(worker), str(server)]
    assert server.stem == f"{worker.stem}-web"
    text = server.read_text()
    assert "Headway server of" in text and '/.headway" serve --no-autostart\n' in text
    assert "Delegate" not in text and "KillMode" not in text  # it has no jobs
    assert systemd.changes()[-1] == f"systemctl --user restart {server.name}"
    found = systemd.json()
    assert found["server"]["name"] == server.stem and found["server"]["current"] is True
    assert server.stem in systemd("service", "status").out
    server.write_text(text.replace("RestartSec=10", "RestartSec=1"))
    assert "headway service install --web" in systemd("service", "status").err
    assert systemd("service", "remove").err.count("is removed") == 2
    assert systemd.units == []


def test_a_server_is_kept_only_where_it_was_asked_for(systemd: System) -> None:
    systemd("service", "install")
    assert len(systemd.units) == 1
    assert systemd.json()["server"] is None


def test_cron_has_a_line_for_the_server(cron: System) -> None:
    worker, server = cron("service", "install", "--web").out.splitlines()
    assert " serve --no-autostart >>" in server and "/run/web.log' " in server
    assert (cron.state / "crontab").read_text() == f"{worker}\n{server}\n"
    assert "already there" in cron("service", "install", "--web").err
    cron("service", "remove")
    assert (cron.state / "crontab").read_text() == ""


def test_without_systemd_and_cron_both_commands_are_said(bare: System) -> None:
    told = bare("service", "install", "--web", code=1)
    assert "work --wait, and: " in told.err and "serve --no-autostart" in told.err
    printed = bare("service", "install", "--web", "--print")
    assert printed.out.count("[Unit]") == 2
    assert bare.units == []


def test_a_store_of_its_own_has_a_service_of_its_own(
    systemd: System, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    systemd("service", "install")
    store = f"sqlite://{tmp_path}/other.db"
    systemd("--store", store, "service", "install")
    first, second = sorted(systemd.units, key=lambda unit: "HEADWAY_STORE" in unit.read_text())
    assert f"HEADWAY_STORE={store}" in second.read_text()
    monkeypatch.setenv("HEADWAY_STORE", "postgresql://ada:secret@db/jobs")
    told = systemd("service", "install", code=5)
    assert "secret" not in told.err
    assert systemd.units == sorted([first, second])
    config = systemd.project / ".headway" / "config.toml"
    config.write_text('[store]\nurl = "postgresql://ada:secret@db/jobs"\n')
    systemd("service", "install")  # what config.toml says needs no word in the unit
    assert "already there" in systemd("service", "install").err
    assert "secret" not in "".join(unit.read_text() for unit in systemd.units)


def test_without_a_home_there_is_nothing_to_keep(
    systemd: System, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "headway init" in systemd("service", "install", code=3).err


def test_where_there_is_no_systemd_a_line_joins_the_others(cron: System) -> None:
    others = "MAILTO=ada\n\n0 4 * * * backup 100\\%  # headway\n@reboot other  # headway-other-1\n"
    (cron.state / "crontab").write_text(others)
    line = cron("service", "install").out
    assert (cron.state / "crontab").read_text() == others + line
    assert cron.changes() == ["crontab -"]
    assert "already there" in cron("service", "install").err
    assert cron.changes() == []
    told = cron.json()
    assert (told["kind"], told["place"], told["current"]) == ("crontab", line.strip(), True)
    cron("service", "remove")
    assert (cron.state / "crontab").read_text() == others
    assert cron.units == []


def test_an_older_line_is_replaced(cron: System) -> None:
    line = cron("service", "install").out
    older = line.replace(" -P ", " ")
    (cron.state / "crontab").write_text(older + "# mine\n" + older)
    assert cron.json()["current"] is False
    cron("service", "install")
    assert (cron.state / "crontab").read_text() == "# mine\n" + line


def test_a_crontab_that_cannot_be_read_is_not_written(cron: System) -> None:
    (cron.state / "refuses").touch()
    told = cron("service", "install", code=1)
    assert told.err == "headway: crontab -l: You (ada) are not allowed\n"
    assert cron.changes() == []


def test_where_there_is_neither_it_says_what_to_run(bare: System) -> None:
    told = bare("service", "install", code=1)
    assert f"run: {sys.executable} -P -m headway --home '{bare.project}/.headway' work" in told.err
    assert told.out == ""
    assert bare.json()["kind"] is None
    assert "no service is installed" in bare("service", "remove").err


def test_a_worker_of_a_service_waits_for_the_place_of_another(tmp_path: Path) -> None:
    """With exit 4 it would be started again and again."""
    home = tmp_path / ".headway"
    make_home(Home(str(home)))
    lock = WorkerLock(str(home / "run" / "worker.lock"))
    assert lock.take(STAYS)
    worker = subprocess.Popen(
        [
            sys.executable,
            "-P",
            "-m",
            "headway",
            "--home",
            str(tmp_path / ".headway"),
            "work",
            "--wait",
        ],
        env={**os.environ, "PYTHONPATH": str(Path(headway.__file__).parents[1])},
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert worker.stderr is not None
        assert "a worker is already there; `headway stop`" in worker.stderr.readline()
        lock.close()
        assert "is up" in worker.stderr.readline()
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0
    finally:
        worker.kill()
        worker.communicate()
