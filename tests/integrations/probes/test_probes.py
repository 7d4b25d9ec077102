"""Questions of gates become answers: real repositories, files and programs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness import wait_for
from headway.core.facts import Answer
from headway.core.model import ProbeKind, Question
from headway.integrations.probes import answers_to, conditions


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "tracked").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def ask(kind: ProbeKind, repo: Path | str = "", name: str = "") -> Answer:
    question = Question(kind, str(repo), name)
    return answers_to([question], {})[question]


@pytest.mark.req("V60", "V62")
def test_heads_and_branches(repo: Path) -> None:
    oid = git(repo, "rev-parse", "HEAD")
    assert ask(ProbeKind.HEAD, repo) == ask(ProbeKind.BRANCH, repo, "main") == Answer(oid)
    git(repo, "switch", "-q", "-c", "other")
    git(repo, "commit", "-q", "--allow-empty", "-m", "two")
    assert ask(ProbeKind.HEAD, repo) == ask(ProbeKind.BRANCH, repo, "other") != Answer(oid)
    assert ask(ProbeKind.BRANCH, repo, "main") == Answer(oid)
    git(repo, "switch", "-q", "--detach", oid)
    assert ask(ProbeKind.HEAD, repo) == Answer(oid)
    git(repo, "branch", "-q", "-D", "main")
    assert ask(ProbeKind.BRANCH, repo, "main") == Answer()
    assert ask(ProbeKind.BRANCH, repo, "--upload-pack=x") == Answer(), "no name of a branch"


def test_a_repository_without_a_commit_has_no_head(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    assert ask(ProbeKind.HEAD, tmp_path) == Answer()


@pytest.mark.req("V61")
def test_a_worktree_is_clean_whatever_headway_writes_in_it(repo: Path) -> None:
    assert ask(ProbeKind.CLEAN, repo) == Answer()
    (repo / ".headway" / "jobs").mkdir(parents=True)
    (repo / ".headway" / "headway.db").touch()
    assert ask(ProbeKind.CLEAN, repo) == Answer(), "our own files"
    (repo / "tracked").write_text("two\n")
    assert ask(ProbeKind.CLEAN, repo) == Answer("tracked")
    for name in "abc":
        (repo / name).touch()
    assert ask(ProbeKind.CLEAN, repo) == Answer("a, b, c and 1 more")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "two")
    assert ask(ProbeKind.CLEAN, repo) == Answer()


@pytest.mark.req("V54")
def test_files_on_branches_and_on_disk(repo: Path) -> None:
    name = "main:.headway/plans/login.md"
    assert ask(ProbeKind.FILE_ON_BRANCH, repo, name) == Answer()
    plan = repo / ".headway" / "plans" / "login.md"
    plan.parent.mkdir(parents=True)
    plan.write_text("a plan\n")
    assert ask(ProbeKind.FILE_ON_BRANCH, repo, name) == Answer(), "it is not on the branch yet"
    git(repo, "add", "-f", ".")
    git(repo, "commit", "-q", "-m", "plan")
    assert ask(ProbeKind.FILE_ON_BRANCH, repo, name) == Answer(name)
    assert ask(ProbeKind.FILE_ON_BRANCH, repo, "gone:.headway/plans/login.md") == Answer()
    assert ask(ProbeKind.FILE, name=str(plan)) == Answer(str(plan))
    assert ask(ProbeKind.FILE, name=f"{plan}/below") == Answer()
    assert ask(ProbeKind.FILE, name=f"{plan}.gone") == Answer()


def test_a_path_that_cannot_be_looked_at_is_trouble_and_not_absent(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert (
        ask(ProbeKind.FILE, name=str(loop)).trouble == f"{loop}: Too many levels of symbolic links"
    )
    assert ask(ProbeKind.FILE, name="null\0byte").trouble == "null\0byte: embedded null byte"


# fault I1
def test_the_trouble_of_one_repository_concerns_those_who_asked_about_it(
    repo: Path, tmp_path: Path
) -> None:
    gone, plain, broken = tmp_path / "gone", tmp_path / "plain", tmp_path / "broken"
    plain.mkdir()
    git(tmp_path, "clone", "-q", str(repo), str(broken))
    (broken / ".git" / "HEAD").write_text("nonsense\n")
    questions = {
        folder: Question(ProbeKind.BRANCH, str(folder), "main") for folder in (repo, gone, plain)
    }
    questions[broken] = Question(ProbeKind.CLEAN, str(broken))
    answers = answers_to(questions.values(), {})
    assert answers[questions[repo]] == Answer(git(repo, "rev-parse", "HEAD"))
    for folder in (gone, plain, broken):
        answer = answers[questions[folder]]
        assert answer.found is None and not answer.final
        assert answer.trouble is not None and str(folder) in answer.trouble


def counted_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git that writes down that it was called, and then is git."""
    log, bin_ = tmp_path / "git.log", tmp_path / "bin"
    bin_.mkdir()
    real = subprocess.run(["which", "git"], capture_output=True, text=True, check=True)
    script = bin_ / "git"
    script.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {real.stdout.strip()} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:{os.environ['PATH']}")
    return log


def test_many_questions_about_one_repository_are_three_processes_at_most(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = counted_git(tmp_path, monkeypatch)
    for number in range(20):
        git(repo, "branch", f"b-{number}")
    log.write_text("")
    questions = [
        Question(ProbeKind.HEAD, str(repo)),
        Question(ProbeKind.CLEAN, str(repo)),
        *(Question(ProbeKind.BRANCH, str(repo), f"b-{n}") for n in range(20)),
        *(Question(ProbeKind.FILE_ON_BRANCH, str(repo), f"b-{n}:tracked") for n in range(20)),
    ]
    answers = answers_to(questions, {})
    assert all(each.found for question, each in answers.items() if question.kind != ProbeKind.CLEAN)
    assert len(log.read_text().splitlines()) == 3, log.read_text()


def test_without_the_git_program_the_answer_says_so(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    trouble = ask(ProbeKind.BRANCH, repo, "main").trouble
    assert trouble == "the git program was not found; install git, or correct PATH"


# -- conditions -----------------------------------------------------------------------------------


@pytest.mark.req("V63", "V64")
def test_a_condition_holds_while_its_command_succeeds(tmp_path: Path) -> None:
    commands = {"go": ("test", "-e", "go"), "absent": ("/no/such/program",)}
    assert conditions.ask("go", str(tmp_path), commands) == Answer()
    (tmp_path / "go").touch()
    assert conditions.ask("go", str(tmp_path), commands) == Answer("go")
    assert conditions.ask("go", str(tmp_path / "gone"), commands).trouble == (
        "condition go cannot be asked: No such file or directory"
    )
    trouble = conditions.ask("absent", "", commands)
    assert trouble == Answer(
        trouble="condition absent cannot be asked: No such file or directory"
    ), "it may be installed later"


@pytest.mark.req("V63")
def test_an_unknown_condition_is_final() -> None:
    question = Question(ProbeKind.CONDITION, "", "full_moon")
    assert answers_to([question], {}) == {
        question: Answer(trouble="unknown custom precondition full_moon", final=True)
    }


def test_a_condition_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditions, "SECONDS", 0.3)
    pids = tmp_path / "pids"
    script = f"sleep 600 & echo $$ $! > {pids}; wait"
    answer = conditions.ask("slow", "", {"slow": ("sh", "-c", script)})
    assert answer == Answer(trouble="condition slow took longer than 0.3 s")
    for pid in pids.read_text().split():
        wait_for(lambda pid=pid: not _runs(pid), what=f"{pid} is gone")


def _runs(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_package_registers_a_function_that_is_called_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial is a package as an installer leaves it: a module and its metadata."""
    (tmp_path / "trial.py").write_text(
        "import os\n"
        "def holds():\n    return os.path.exists('go')\n"
        "def fails():\n    raise ValueError('broken')\n"
        "def gone():\n    os._exit(0 if os.getpid() == -1 else 3)\n"
    )
    metadata = tmp_path / "trial-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: trial\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[headway.conditions]\nholds = trial:holds\nfails = trial:fails\ngone = trial:gone\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert conditions.ask("holds", str(tmp_path), {}) == Answer()
    (tmp_path / "go").touch()
    assert conditions.ask("holds", str(tmp_path), {}) == Answer("holds")
    assert conditions.ask("fails", str(tmp_path), {}) == Answer()
    assert conditions.ask("gone", str(tmp_path), {}) == Answer()
    assert "trial" not in sys.modules
