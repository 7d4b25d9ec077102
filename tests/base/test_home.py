"""Where things live: one rule to find the folder, and no folder that others could plant into."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import warm
from headway.base.errors import InvalidInputError, NotFoundError, StoreError
from headway.base.home import Home, find_home, inner_repository, refuse_unsafe
from headway.base.new_home import make_home
from headway.jobs.settings import find_setting

NOBODY = 65534


def mode(path: str | Path) -> int:
    return os.lstat(path).st_mode & 0o777


# The modules first: the interpreter's own files may be closed to an ordinary user.
PROGRAM = """
import os, pkgutil, sys
import encodings.idna, headway
for module in pkgutil.walk_packages(headway.__path__, "headway."):
    if not {"__main__", "aliases", "mcp", "testing", "web"} & set(module.name.split(".")):
        __import__(module.name)
if "--nobody" in sys.argv and os.getuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
from headway.cli.main import run
sys.exit(run([each for each in sys.argv[1:] if each != "--nobody"]))
"""


def run(folder: Path, *arguments: str, nobody: bool = False) -> "subprocess.CompletedProcess[str]":
    """The real program in that folder, as an ordinary user where asked."""
    env = {
        "PATH": os.environ["PATH"],
        "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"],
        "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if not nobody:
        return warm.headway([], arguments, cwd=folder, env=env, timeout=60)
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "--nobody", *arguments],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def everything(folder: Path) -> dict[str, tuple[int, int]]:
    """What there is, and when it was last changed."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        status = path.lstat()
        found[str(path)] = (status.st_mode, status.st_mtime_ns)
    return found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with a folder deep inside."""
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    (tmp_path / "repository" / "a" / "b").mkdir(parents=True)
    (tmp_path / "plain" / "c").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that an ordinary user can get to, which pytest's own are not."""
    path = Path(tempfile.mkdtemp(prefix="headway-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize(
    ("made", "here", "found", "exists"),
    [
        ("repository/.headway", "repository/a/b", "repository/.headway", True),
        ("repository/a/.headway", "repository/a/b", "repository/a/.headway", True),
        ("repository/a/b/.headway", "repository/a/b", "repository/a/b/.headway", True),
        (".headway", "repository/a/b", ".headway", True),
        (None, "repository/a/b", "repository/.headway", False),
        (None, "repository", "repository/.headway", False),
        (None, "plain/c", "plain/c/.headway", False),
        ("plain/c/.headway", "plain", "plain/.headway", False),
    ],
)
def test_the_home_is_found_upwards_else_at_the_repositorys_root_else_here(
    tree: Path, made: str | None, here: str, found: str, exists: bool
) -> None:
    if made:
        (tree / made).mkdir()
    home, was_there = find_home(None, {}, str(tree / here))
    assert (home.path, was_there) == (str(tree / found), exists)


def test_a_worktree_whose_git_is_a_file_is_a_repository_too(tree: Path) -> None:
    (tree / "plain" / ".git").write_text("gitdir: elsewhere\n")
    assert find_home(None, {}, str(tree / "plain" / "c"))[0].path == str(tree / "plain/.headway")


@pytest.mark.parametrize(
    ("option", "variable", "found"),
    [
        ("/named", None, "/named"),
        (None, "/meant", "/meant"),
        ("/named", "/meant", "/named"),
        ("sub", None, "{here}/sub"),
        ("../up", None, "{above}/up"),
        (None, "sub", "{here}/sub"),
        (None, "", "{here}/.headway"),
    ],
)
def test_the_option_is_stronger_than_the_variable_and_both_than_the_search(
    tree: Path, option: str | None, variable: str | None, found: str
) -> None:
    here = tree / "repository"
    (here / ".headway").mkdir()
    environ = {} if variable is None else {"HEADWAY_HOME": variable}
    home, _ = find_home(option, environ, str(here))
    assert home.path == found.format(here=here, above=tree)


def test_a_home_is_ours_alone_whatever_the_umask(tmp_path: Path) -> None:
    home = Home(str(tmp_path / ".headway"))
    before = os.umask(0)
    try:
        make_home(home)
    finally:
        os.umask(before)
    assert {mode(path) for path in (home.path, home.run, home.environments, home.jobs)} == {0o700}
    made = everything(tmp_path)
    make_home(home)
    assert everything(tmp_path) == made, "making it again changes nothing"


def test_runtime_parts_stay_out_of_git_and_what_people_wrote_shows_up(tmp_path: Path) -> None:
    git = ["git", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
    done = run(tmp_path, "exec", "--", "echo", "hello")
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    home = tmp_path / ".headway"
    (home / "config.toml").write_text("[worker]\n")
    (home / "jobs.yaml").write_text("jobs: []\n")
    (home / "token").write_text("secret")
    for folder in ("workflows", "runners", "plans", "worktrees"):
        (home / folder).mkdir()
        (home / folder / "x.toml").write_text("")
    status = subprocess.run(
        [*git, "status", "--porcelain", "--untracked-files=all"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert sorted(status.stdout.splitlines()) == [
        "?? .headway/.gitignore",
        "?? .headway/config.toml",
        "?? .headway/jobs.yaml",
        "?? .headway/plans/x.toml",
        "?? .headway/runners/x.toml",
        "?? .headway/workflows/x.toml",
    ]
    assert (home / "headway.db").exists() and (home / "jobs" / "1").exists()


def test_an_own_gitignore_is_kept(tmp_path: Path) -> None:
    home = Home(str(tmp_path / ".headway"))
    make_home(home)
    ignore = Path(home.path, ".gitignore")
    ignore.write_text("mine\n")
    make_home(home)
    assert ignore.read_text() == "mine\n"


# -- folders that are refused ---------------------------------------------------------------------


def link_to_a_folder(home: Path) -> None:
    real = home.with_name("elsewhere")
    real.mkdir(mode=0o700)
    home.symlink_to(real)


def link_to_nothing(home: Path) -> None:
    home.symlink_to(home.with_name("nowhere"))


def world_writable(home: Path) -> None:
    home.mkdir()
    home.chmod(0o777)


def group_writable(home: Path) -> None:
    home.mkdir()
    home.chmod(0o770)


def sticky_like_tmp(home: Path) -> None:
    home.mkdir()
    home.chmod(0o1777)


def of_another_user(home: Path) -> None:
    home.mkdir(mode=0o700)
    os.chown(home, NOBODY, NOBODY)


def a_file(home: Path) -> None:
    home.write_text("mine")


UNSAFE = [
    pytest.param(link_to_a_folder, "is not a folder (or a link to one)", id="link"),
    pytest.param(link_to_nothing, "is not a folder (or a link to one)", id="dangling"),
    pytest.param(a_file, "is not a folder (or a link to one)", id="file"),
    pytest.param(world_writable, "can be written by others; run chmod go-w", id="world-writable"),
    pytest.param(group_writable, "can be written by others; run chmod go-w", id="group-writable"),
    pytest.param(sticky_like_tmp, "can be written by others; run chmod go-w", id="sticky"),
    pytest.param(
        of_another_user,
        f"belongs to user {NOBODY}, not to you",
        id="foreign",
        marks=pytest.mark.root,
    ),
]


@pytest.mark.parametrize(("make", "why"), UNSAFE)
def test_an_unsafe_home_is_refused_and_nothing_is_written(  # fault H7
    tmp_path: Path, make: Callable[[Path], None], why: str
) -> None:
    make(tmp_path / ".headway")
    before = everything(tmp_path)
    for act in (lambda: make_home(Home(str(tmp_path / ".headway"))), refuse_it(tmp_path)):
        with pytest.raises(StoreError) as refusal:
            act()
        assert why in str(refusal.value) and str(tmp_path) in str(refusal.value)
        assert refusal.value.exit_code == 6
    assert everything(tmp_path) == before


def refuse_it(folder: Path) -> Callable[[], None]:
    return lambda: refuse_unsafe(str(folder / ".headway"))


@pytest.mark.parametrize(("make", "why"), UNSAFE)
@pytest.mark.parametrize("command", [("submit", "--", "true"), ("init",)])
def test_commands_refuse_an_unsafe_home_with_exit_code_6(  # fault H7
    tmp_path: Path, make: Callable[[Path], None], why: str, command: tuple[str, ...]
) -> None:
    make(tmp_path / ".headway")
    before = everything(tmp_path)
    done = run(tmp_path, *command)
    assert (done.returncode, done.stdout) == (6, ""), done.stderr
    assert done.stderr.startswith("headway: ") and why in done.stderr
    assert everything(tmp_path) == before


@pytest.mark.parametrize("name", ["run", "env", "jobs"])
def test_a_planted_link_inside_the_home_is_refused(tmp_path: Path, name: str) -> None:  # fault H7
    home = Home(str(tmp_path / ".headway"))
    make_home(home)
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    Path(home.path, name).rmdir()
    Path(home.path, name).symlink_to(victim)
    done = run(tmp_path, "submit", "--", "true")
    assert done.returncode == 6 and "is not a folder" in done.stderr
    assert list(victim.iterdir()) == []


def test_a_home_that_is_not_there_says_what_to_do() -> None:
    with pytest.raises(NotFoundError, match="run `headway init`"):
        refuse_unsafe("/nowhere/.headway")
    with pytest.raises(StoreError, match="cannot make /nowhere/deep/home"):
        make_home(Home("/nowhere/deep/home"))


@pytest.mark.user
def test_where_nothing_may_be_written_a_submit_says_so(open_folder: Path) -> None:  # fault C12
    # As root this would pass vacuously: root may write everywhere. So the command drops its rights.
    open_folder.chmod(0o555)
    done = run(open_folder, "submit", "--", "true", nobody=True)
    assert (done.returncode, done.stdout) == (6, ""), done.stderr
    assert f"cannot make {open_folder}/.headway: Permission denied" in done.stderr
    assert "use --home elsewhere" in done.stderr
    assert list(open_folder.iterdir()) == []


@pytest.mark.root
@pytest.mark.user
@pytest.mark.parametrize("command", [("submit", "--", "true"), ("jobs", "list"), ("init",)])
def test_the_home_of_another_user_is_refused_to_an_ordinary_one(  # fault H7, C12
    open_folder: Path, command: tuple[str, ...]
) -> None:
    # As root this would pass vacuously: root may read what others made. So it drops its rights.
    make_home(Home(str(open_folder / ".headway")))
    before = everything(open_folder)
    done = run(open_folder, *command, nobody=True)
    assert (done.returncode, done.stdout) == (6, ""), done.stderr
    assert f"{open_folder}/.headway belongs to user 0, not to you" in done.stderr
    assert everything(open_folder) == before


@pytest.mark.user
def test_a_home_that_lost_its_permission_is_refused_not_retried(  # fault C12
    open_folder: Path,
) -> None:
    # As root this would pass vacuously: root may write everywhere. So the command drops its rights.
    home = open_folder / "own"
    home.mkdir(mode=0o500)
    if os.geteuid() == 0:
        os.chown(home, NOBODY, NOBODY)
    done = run(open_folder, "--home", str(home), "submit", "--", "true", nobody=True)
    assert (done.returncode, done.stdout) == (6, ""), done.stderr
    assert "Permission denied" in done.stderr
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mysql://bob:s3cret@db/x", "mysql://bob:***@db/x"),
        ("postgresql+psycopg://bob:s3cret@db/x", "postgresql+psycopg://bob:***@db/x"),
        ("postgresql:/bob:s3cret@db", "postgresql:/bob:***@db"),
        ("redis://:s3cret@db", "redis://:***@db"),
        ("mysql://bob:s3:cr@et/s3cret@db:1/x", "mysql://bob:***@db:1/x"),
        ("mysql://db/x?user=a&password=s3cret&b=c", "mysql://db/x?user=a&password=***&b=c"),
        ("shop", "shop"),
    ],
)
def test_a_url_of_another_kind_is_refused_without_its_password(url: str, shown: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Home("/somewhere/.headway", url)
    assert f"store.url is '{shown}'; use " in str(caught.value)
    with pytest.raises(InvalidInputError) as caught:
        find_setting("store.url").read(url)
    assert shown in str(caught.value) and "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("project", None),
        ("project/src", None),
        ("project/vendor/lib", "project/vendor"),
        ("project/vendor", "project/vendor"),
        ("project/.headway/worktrees/1/src", None),
    ],
)
def test_a_repository_inside_of_a_project_is_told_apart(
    tmp_path: Path, where: str, found: str | None
) -> None:
    for repository in ("project", "project/vendor", "project/.headway/worktrees/1"):
        (tmp_path / repository / ".git").mkdir(parents=True)
    (tmp_path / where).mkdir(parents=True, exist_ok=True)
    inner = inner_repository(str(tmp_path / "project/.headway"), str(tmp_path / where))
    assert inner == (None if found is None else str(tmp_path / found))
