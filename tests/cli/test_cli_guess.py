"""What people type first works, or is answered with what they meant."""

import json
import subprocess
from pathlib import Path

import click
import pytest
from commandline import CommandLine, Run
from test_cli_docs import command

from harness import Site
from headway.cli.commands import COMMANDS, NEIGHBOURS, SECTIONS, SHORT
from headway.cli.main import cli
from headway.core.model import Claim
from headway.core.states import Status
from headway.store.records import Finish

ENOUGH = "echo out; echo more; echo err >&2"


def test_every_command_stands_once_in_the_help() -> None:
    listed = [name for names in SECTIONS.values() for name in names]
    top = [name for name in COMMANDS if " " not in name]
    assert sorted([*listed, *SHORT, "help"]) == sorted(top)


@pytest.mark.parametrize(("path", "most"), [("", 52), ("submit", 100), ("exec", 100)])
def test_the_help_fits_two_screens(path: str, most: int) -> None:
    found = command(path) if path else cli
    text = found.get_help(click.Context(found, info_name="headway", terminal_width=80))
    lines = text.splitlines()
    assert len(lines) <= most
    assert all(len(line) <= 80 for line in lines)


def test_the_options_of_submit_are_in_sections(said: Run) -> None:
    told = said("submit", "--help").out
    titles = [line for line in told.splitlines() if line.endswith(":") and line[0] != " "]
    assert titles == [
        *("Command:", "When it may run:", "Order:", "Capacity:", "Git:", "Retries:", "Agents:"),
        "Options:",
    ]
    assert told.index("Git:") < told.index("--worktree") < told.index("Retries:")
    assert told.count("--worktree") == 1


def test_the_help_of_the_program_is_grouped_by_what_one_wants(said: Run) -> None:
    told = said("--help").out
    assert told.index("Run:") < told.index("Look and steer:") < told.index("Set up:")
    epilog = " ".join(told.partition("Short for `jobs`: ")[2].split())
    short, _, rest = epilog.partition("; also ")
    assert all(f"jobs {name}" in COMMANDS for name in short.split())
    assert rest.startswith("logs") and {*short.split(), "logs"} == set(SHORT)


def test_short_names_do_what_those_of_jobs_do(headway: CommandLine) -> None:
    assert headway.submit("--", "sh", "-c", ENOUGH) == "job-1"
    headway("wait", "1")
    assert headway.out("status", "1") == "succeeded"
    assert headway.json("status", "1")["state"] == "succeeded"
    assert headway.out("list", "--fields", "id,state").split() == [
        *("Job", "State"),
        "job-1",
        "succeeded",
    ]
    assert headway.json("show", "1")["job"]["id"] == "job-1"
    assert headway("tail", "-n", "1", "1").stdout == "more\n"
    assert headway("logs", "1").stdout == "out\nmore\n"
    assert headway("logs", "1").stderr == "err\n"
    assert headway("logs", "-f", "--stdout", "1").stdout == "out\nmore\n"
    assert headway("logs", "--stderr", "1").stdout == ""
    assert "nothing to retry" in headway("retry", "1", code=4).stderr
    headway("cancel", "1", code=4)
    headway("approve", "1", code=4)


def test_status_alone_tells_how_things_stand_and_where(said: Run, file_site: Site) -> None:
    file_site.submit("true")
    told = said("status")
    assert told.code == 0
    assert "0 running (of 1), 1 waiting" in told.out
    assert "worker: none" in told.out
    home = told.out.partition("home: ")[2].splitlines()[0]
    assert home.removeprefix("...") and file_site.home.path.endswith(home.removeprefix("..."))
    assert json.loads(said("status", "--json").out)["queued_total"] == 1


def test_logs_prints_all_and_not_the_end_alone(headway: CommandLine) -> None:
    headway("exec", "--", "seq", "100")
    assert headway("logs", "1").stdout.splitlines() == [str(each) for each in range(1, 101)]
    assert len(headway("tail", "1").stdout.splitlines()) == 20


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        ([], "Usage: headway [OPTIONS]"),
        (["submit"], "Usage: headway submit [OPTIONS] [--] CMD ..."),
        (["jobs", "retry"], "Usage: headway jobs retry [OPTIONS] JOB|RUN"),
        (["jobs"], "Usage: headway jobs [OPTIONS] COMMAND"),
    ],
)
def test_help_prints_the_help_of_a_command(said: Run, words: list[str], usage: str) -> None:
    told = said("help", *words)
    assert told.code == 0
    assert told.out.startswith(usage)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["help", "jobz"], "No such command 'jobz'. (Did you mean jobs?)"),
        (["help", "submit", "x"], "submit has no commands of its own."),
        (["submitt"], "'submitt'. (Did you mean submit?)"),
        (["pause"], "'pause'. (Did you mean headway scheduler pause or headway webhooks pause?)"),
        (
            ["jobs", "pause"],
            "'pause'. (Did you mean headway scheduler pause or headway webhooks pause?)",
        ),
        (["jobs", "logs"], "'logs'. (Did you mean headway logs?)"),
        (["retri"], "'retri'. (Did you mean retry?)"),
        (["runs", "retyr"], "'retyr'. (Did you mean retry?)"),
        (["pauze"], "'pauze'. (Did you mean headway scheduler pause or headway webhooks pause?)"),
        (["gc"], "'gc'. (Did you mean headway jobs gc?)"),
        (["kill"], "'kill'. (Did you mean headway cancel?)"),
        (["ls"], "'ls'. (Did you mean headway list or headway status?)"),
        (["ps"], "'ps'. (Did you mean headway list or headway status?)"),
        (["log"], "'log'. (Did you mean headway logs?)"),
        (["version"], "'version'. (Did you mean headway --version?)"),
        (["start"], "(Did you mean headway exec or headway submit or headway run?)"),
        (["add"], "(Did you mean headway submit or headway targets add or"),
        (["restart"], "'restart'. (Did you mean headway retry?)"),
        (["reject"], "'reject'. (Did you mean headway jobs reject?)"),
        (["rm"], "(Did you mean headway cancel or headway jobs clean or"),
        (["jobs", "rm"], "'rm'. (Did you mean cancel or clean?)"),
        (["jobs", "kill"], "'kill'. (Did you mean cancel?)"),
        (["jobs", "add"], "(Did you mean headway submit or"),
        (["schedules", "rm"], "'rm'. (Did you mean remove?)"),
        (["templates", "remove"], "'remove'. (Did you mean archive?)"),
        (["enable"], "'enable'. (Did you mean headway schedules enable?)"),
    ],
)
def test_what_was_meant_is_found_in_all_nouns(said: Run, words: list[str], told: str) -> None:
    done = said(*words)
    assert done.code == 2
    assert told in done.err
    assert "restore" not in done.err


def test_the_words_of_neighbours_lead_to_commands() -> None:
    for word, meant in NEIGHBOURS.items():
        assert word not in COMMANDS, word
        assert all(path in COMMANDS or path == "--version" for path in meant), word


@pytest.mark.parametrize("option", ["--after", "--delay", "--lock", "--require-approval"])
def test_an_option_that_only_submit_has_cannot_be_changed(said: Run, option: str) -> None:
    said("submit", "--", "true")
    done = said("jobs", "edit", "1", option, "1")
    assert done.code == 2
    assert f"{option} cannot be changed; cancel the job and submit it anew." in done.err
    assert "'--name'?" in said("jobs", "edit", "1", "--nam", "1").err


# -- names ----------------------------------------------------------------------------------------


def test_a_template_takes_its_name_as_an_option(said: Run, file_site: Site) -> None:
    assert said("templates", "add", "--name", "say", "--", "echo", "hi").code == 0
    assert said("templates", "add", "--name", "line", "--shell", "echo hi").code == 0
    assert said("templates", "add", "both", "--name", "for people", "--", "echo").code == 0
    found = {each["name"]: each["job"] for each in file_site.client.templates.list()}
    assert found["say"]["argv"] == ["echo", "hi"] and "name" not in found["say"]
    assert found["line"]["shell"] == "echo hi"
    assert found["both"]["name"] == "for people"


def test_a_target_takes_its_name_as_an_option(said: Run, file_site: Site) -> None:
    assert said("targets", "add", "--name", "here", "--", "echo", "{subject}").code == 0
    (made,) = file_site.client.targets.list()
    assert (made.name, made.argv) == ("here", ("echo", "{subject}"))
    assert said("targets", "add", "one", "--name", "two", "--", "echo").code == 2


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["templates", "add", "--replace", "--", "echo", "hi"], "The name is missing."),
        (["templates", "add", "--pin-head", "night", "--", "echo"], "The name is missing."),
        (["templates", "add", "--priority", "3", "echo", "hi"], "'echo' could be the command."),
        (["targets", "add", "--retries", "2", "--", "echo", "hi"], "The name is missing."),
    ],
)
def test_no_word_of_a_command_is_taken_for_a_name(
    said: Run, file_site: Site, words: list[str], problem: str
) -> None:
    done = said(*words)
    assert done.code == 2
    assert f"{problem} Write the name first, and the command after --" in done.err
    assert file_site.client.templates.list() == [] and list(file_site.client.targets.list()) == []


# -- commands -------------------------------------------------------------------------------------


def test_a_line_given_as_one_word_is_answered_with_how_to_write_it(bare: CommandLine) -> None:
    done = bare("submit", "echo hi", code=5)
    assert "--shell 'echo hi', or -- echo hi" in done.stderr
    assert not bare.home.exists()
    assert "--shell" not in bare("submit", "--", "no-such-program", "a", code=5).stderr


@pytest.mark.parametrize("line", ["echo hi && ls", "cat a | wc", "ls *.py", "echo $HOME", "a > b"])
def test_a_line_for_a_shell_is_not_offered_to_the_shell_that_one_types_in(
    bare: CommandLine, line: str
) -> None:
    done = bare("submit", "--", line, code=5)
    assert done.stderr.endswith(f"write --shell '{line}'\n")


def test_a_succeeded_job_is_repeated_when_asked(headway: CommandLine) -> None:
    headway("exec", "--", "true")
    assert "--again" in headway("runs", "retry", "run-1", code=4).stderr
    assert headway.out("runs", "retry", "run-1", "--again", "--dry-run") == "job-1"
    assert headway.out("runs", "retry", "run-1", "--again") == "job-2"
    headway("wait", "2")
    assert headway.out("retry", "2", "--again") == "job-3"
    headway("wait", "3")


def test_a_folder_that_was_removed_is_named_as_the_cause(bare: CommandLine) -> None:
    gone = bare.folder / "gone"
    script = 'cd gone && rmdir ../gone && exec "$@"'
    for argv in (["submit", "--", "true"], ["jobs", "list"], []):
        gone.mkdir()
        done = subprocess.run(
            ["sh", "-c", script, "sh", *bare.argv(*argv)],
            cwd=bare.folder,
            env=bare.env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 3
        assert done.stderr == (
            "headway: the folder that you are in was removed; cd to one that is there\n"
        )


def test_a_since_without_a_unit_says_so(said: Run) -> None:
    done = said("list", "--since", "5")
    assert done.code == 5
    assert "--since '5' has no unit; write 5m, 5h or 5d" in done.err
    assert said("list", "--since", "5m").code == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["submit", "--at", "never", "--", "true"], "--at 'never' is not a time; write"),
        (["submit", "--at", "+x", "--", "true"], "--at 'x' is not a duration; write"),
        (["submit", "--timeout", "5", "--", "true"], "--timeout '5' is not a duration; write"),
        (["list", "--since", "then"], "--since 'then' is not a time; write it like 2h, 22:30 or"),
        (["schedules", "add", "--at", "x", "--", "true"], "--at 'x' is not a time"),
        (["config", "set", "worker.idle", "5"], "worker.idle: '5' is not a duration"),
        (["config", "set", "logs.head", "much"], "logs.head: 'much' is not a size"),
    ],
)
def test_the_same_mistake_is_told_in_the_same_words(
    said: Run, words: list[str], problem: str
) -> None:
    done = said(*words)
    assert done.code == 5
    assert problem in done.err


def test_a_schedule_says_that_no_service_keeps_a_worker(
    said: Run, monkeypatch: pytest.MonkeyPatch, file_site: Site
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(file_site.folder / "configuration"))
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    added = said("schedules", "add", "--every", "1h", "--", "true")
    assert added.out == "schedule-1\n"
    assert "no service keeps a worker" in added.err and "headway service install" in added.err
    name = said("service", "status").out.split()[1]
    units = file_site.folder / "configuration" / "systemd" / "user"
    units.mkdir(parents=True)
    (units / f"{name}.service").write_text("")
    assert "service" not in said("schedules", "add", "--every", "1h", "--", "true").err


def test_output_on_another_host_is_not_found_here(tmp_path: Path, postgres_url: str) -> None:
    site = Site(tmp_path, config="[worker]\nautostart = false\n", store_url=postgres_url)
    job = site.client.job(site.submit("true"))
    with site.client.context.store.write() as tx:
        now = tx.now()
        claim = Claim(job.id, "t", 1, "worker", "there", "/home/b", "boot", "/b/jobs/1", now)
        tx.claims.begin([(job, claim)])
        end = Finish("t", job.id, Status.SUCCEEDED, None, now, 0, None, True, True)
        tx.claims.finish([end])
    for words in (["tail"], ["tail", "-f"], ["logs"], ["logs", "-f"]):
        done = site.run(*words, "1", check=False)
        assert done.returncode == 3
        assert "job-1 runs on there; its output is there, in /b/jobs/1" in done.stderr
    site.close()
