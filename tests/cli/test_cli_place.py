"""Which home a command uses, and what is made where none is."""

import subprocess
from pathlib import Path

import pytest
from commandline import CommandLine, Run

from harness import Site
from headway.base.errors import InvalidInputError
from headway.base.worker_lock import worker_is_there
from headway.client import connect
from headway.jobs.settings import load_config


def test_config_set_makes_a_home_as_submit_does(bare: CommandLine) -> None:
    bare("config", "set", "worker.idle", "1s")
    assert bare.out("config", "get", "worker.idle") == "1s"
    assert bare.home.is_dir()


@pytest.mark.parametrize(
    "argv",
    [
        ["config", "set", "scheduler.max_active", "4"],
        ["config", "unset", "scheduler.max_active"],
        ["scheduler", "resume"],
    ],
)
def test_a_setting_with_no_job_waiting_starts_no_worker(bare: CommandLine, argv: list[str]) -> None:
    bare("init")
    bare("config", "set", "scheduler.max_active", "2")
    bare("scheduler", "pause")
    bare(*argv)
    assert not (bare.home / "run" / "worker.lock").exists()
    assert bare.processes() == {}


def test_a_setting_with_a_job_waiting_starts_a_worker(headway: CommandLine) -> None:
    headway("init")
    headway("submit", "--delay", "1h", "--", "true")
    headway("stop")
    headway("config", "set", "scheduler.max_active", "4")
    assert worker_is_there(str(headway.home / "run" / "worker.lock"))


@pytest.mark.parametrize(
    "argv",
    [
        ["submit", "--", "true"],
        ["exec", "--", "true"],
        ["config", "set", "worker.idle", "1s"],
        ["templates", "add", "t", "--", "true"],
    ],
)
def test_a_new_home_is_named_once(bare: CommandLine, argv: list[str]) -> None:
    bare.env["HEADWAY_TRUST"] = "1"
    assert f"headway: made {bare.home}\n" in bare(*argv).stderr
    assert "made" not in bare("submit", "--", "true").stderr
    bare("stop")  # else a worker that is still coming up stays for as long as it may be idle


def test_init_names_a_new_home_once(bare: CommandLine) -> None:
    done = bare("init")
    assert (done.stdout + done.stderr).count(str(bare.home)) == 1


@pytest.mark.parametrize("argv", [["submit", "--", "true"], ["init"], ["work"]])
def test_no_home_is_made_in_the_root(bare: CommandLine, argv: list[str]) -> None:
    home, bare.folder = bare.folder, Path("/")
    done = bare(*argv, code=5)
    bare.folder = home
    assert "no home is made in /; change to the folder of your project" in done.stderr
    assert not Path("/.headway").exists()


def test_no_home_is_made_in_the_root_by_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    with pytest.raises(InvalidInputError, match="no home is made in /"):
        connect(create=True, environ={})
    assert not Path("/.headway").exists()


def test_a_refused_config_set_makes_nothing(bare: CommandLine) -> None:
    bare("config", "set", "worker.idle", "soon", code=5)
    bare("config", "set", "no.such", "1", code=3)
    assert not bare.home.exists()


def test_headway_alone_says_in_which_home_it_is(still: CommandLine) -> None:
    assert f"home: {still.home}\n" in still(env={"COLUMNS": "300"}).stdout
    narrow = still(env={"COLUMNS": "40"}).stdout
    (line,) = [each for each in narrow.splitlines() if each.startswith("home: ")]
    assert len(line) <= 40 and line.startswith("home: ...") and line.endswith("work/.headway")


def test_an_outer_home_is_named_inside_another_repository(still: CommandLine) -> None:
    inner = still.folder / "inner"
    subprocess.run(["git", "init", "-q", str(inner)], check=True)
    (inner / "deep").mkdir()
    outer = still.folder
    still.folder = inner / "deep"
    said = f"headway: {inner} has no .headway/ of its own, so {still.home} is used"
    assert still("submit", "--", "true").stderr.count(said) == 1
    assert said in still().stderr
    assert still("jobs", "list", "--json").stderr == ""
    assert "is used" not in still("--home", str(still.home), "submit", "--", "true").stderr
    still.folder = outer
    assert "is used" not in still("submit", "--", "true").stderr


def test_a_setting_gets_its_default_again(said: Run, file_site: Site) -> None:
    said("config", "set", "scheduler.max_active", "4")
    said("config", "set", "worker.idle", "5s")
    done = said("config", "unset", "scheduler.max_active")
    assert (done.code, done.err) == (0, "headway: scheduler.max_active = 1, its default\n")
    assert said("config", "unset", "worker.idle").code == 0
    assert file_site.client.scheduler.settings() == {}
    assert "worker.idle" not in load_config(file_site.home).values
    assert load_config(file_site.home)["worker.autostart"] is False, "the rest stays"
    assert "was not set; it is 30s, its default" in said("config", "unset", "worker.idle").err


def test_an_empty_default_is_called_empty(said: Run) -> None:
    said("config", "set", "app.modules", "json")
    assert said("config", "unset", "app.modules").err == (
        "headway: app.modules = empty, its default\n"
    )
    assert "it is empty, its default" in said("config", "unset", "app.modules").err


def test_unsetting_the_cap_says_which_mode_it_is(said: Run) -> None:
    said("config", "set", "scheduler.max_active", "0")
    done = said("config", "unset", "scheduler.max_active")
    assert "deferred from now on: at most 1 at a time" in done.err


@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        (["config", "get", "scheduler.max_activ"], "scheduler.max_active"),
        (["config", "set", "schedular.max_active", "1"], "scheduler.max_active"),
        (["config", "unset", "worker.idel"], "worker.idle"),
        (["config", "get", "idle"], "worker.idle"),
    ],
)
def test_a_misspelt_setting_is_answered_with_the_nearest(
    said: Run, argv: list[str], meant: str
) -> None:
    done = said(*argv)
    assert done.code == 3
    assert f"(did you mean {meant}?)" in done.err


def test_each_wrong_key_of_a_config_is_one_problem(said: Run, file_site: Site) -> None:
    Path(file_site.home.config).write_text(
        '[worker]\nidel = "3s"\nxyzzy = 3\n[schedular]\nmax_active = 1\n'
    )
    told = said("list").err
    assert told.count("there is no setting") == 3
    assert told.count("`headway config list` shows them all") == 1
    assert "'worker.idel' (did you mean worker.idle?)" in told


def test_doctor_says_that_there_is_no_config(said: Run, file_site: Site) -> None:
    assert "config.toml is sound" in said("doctor").out
    Path(file_site.home.config).unlink()
    assert "no config.toml; every setting has its default" in said("doctor").out


def test_a_module_that_is_not_there_is_named_when_it_is_set(said: Run, file_site: Site) -> None:
    (file_site.folder / "tasks.py").write_text("raise SystemExit  # nobody imports it to look\n")
    package = file_site.folder / "mail"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "tasks.py").touch()
    done = said("config", "set", "app.modules", "tasks,mail.tasks,json.tool")
    assert done.err == "headway: app.modules = tasks,mail.tasks,json.tool\n"
    told = said("config", "set", "app.modules", "taks,mail.task").err
    assert "app.modules = taks,mail.task\n" in told
    assert f"there is no module taks and no mail.task yet, neither in {file_site.folder}" in told
