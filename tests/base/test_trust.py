"""Trust is of a folder and a user: what the record holds, when it counts, what needs it."""

import json
import os
import shutil
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headway.base import trust
from headway.base.errors import HeadwayError, InvalidInputError, StoreError
from headway.base.home import WRITTEN, Home
from headway.base.new_home import make_home
from headway.base.store_trust import refuse_untrusted_store
from headway.integrations.agents.files import load_runner, runner_names
from headway.jobs.settings import (
    SECTIONS_THAT_NEED_TRUST,
    SETTINGS,
    Trust,
    choose_store,
    load_config,
    what_needs_trust,
)

RUNNER = 'argv = ["true"]\nprompt = "stdin"\nparser = "text"\n'


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A record of this test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("HEADWAY_TRUST", raising=False)
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def made(tmp_path: Path, environ: dict[str, str]) -> Home:
    """One that a command of ours made."""
    home = Home(str(tmp_path / "made" / ".headway"))
    os.mkdir(tmp_path / "made")
    make_home(home)
    return home


@pytest.fixture
def found(tmp_path: Path, environ: dict[str, str]) -> Home:
    """One that came with a checkout."""
    home = Home(str(tmp_path / "found" / ".headway"))
    os.makedirs(home.path)
    return home


def record_of(environ: dict[str, str]) -> Path:
    return Path(environ["XDG_STATE_HOME"]) / "headway" / "trust"


# -- the record --------------------------------------------------------------------------------


@pytest.mark.req("C47")
def test_who_makes_a_folder_trusts_it_and_who_finds_one_does_not(
    made: Home, found: Home, environ: dict[str, str]
) -> None:
    make_home(found)
    assert trust.is_trusted(made.path)
    assert not trust.is_trusted(found.path)
    entry = json.loads(record_of(environ).read_text())["folders"]
    assert [(each["path"], each["user"], each["inode"]) for each in entry] == [
        (made.path, os.geteuid(), os.stat(made.path).st_ino)
    ]


def test_the_record_is_of_its_user_alone(made: Home, environ: dict[str, str]) -> None:
    record = record_of(environ)
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert stat.S_IMODE(record.parent.stat().st_mode) == 0o700
    assert sorted(each.name for each in record.parent.iterdir()) == ["trust", "trust.lock"]


def test_without_a_state_folder_the_record_is_below_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for given in ({}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "relative"}):
        path = trust.record_path({"HOME": str(tmp_path), **given})
        assert path == f"{tmp_path}/.local/state/headway/trust"


def test_a_home_folder_of_another_user_is_not_ours(tmp_path: Path) -> None:
    """As under sudo, which may keep HOME."""
    assert trust.record_path({"HOME": "/nowhere"}) == trust.record_path({})
    if os.geteuid() == 0:
        os.chown(tmp_path, 65534, 65534)
        assert trust.record_path({"HOME": str(tmp_path)}) == trust.record_path({})
        os.chown(tmp_path, 0, 0)


def test_trust_is_given_once_and_revoked_once(found: Home, made: Home) -> None:
    assert trust.record(found.path) is True
    assert trust.record(found.path) is False
    assert trust.is_trusted(found.path)
    assert trust.revoke(found.path) is True
    assert trust.revoke(found.path) is False
    assert not trust.is_trusted(found.path)
    assert trust.is_trusted(made.path), "of another folder nothing is said"


def test_many_who_record_at_once_lose_nothing(tmp_path: Path, environ: dict[str, str]) -> None:
    folders = [tmp_path / str(number) for number in range(24)]
    for each in folders:
        each.mkdir()
    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(lambda each: trust.record(str(each)), folders))
    assert {each.path for each in trust.entries()} == {str(each) for each in folders}


def test_folders_that_are_gone_are_forgotten_when_there_are_many(
    tmp_path: Path, made: Home, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "MANY", 3)
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        trust.record(str(folder))
        shutil.rmtree(folder)
    assert {os.path.basename(each.path) for each in trust.entries()} == {".headway", "2", "3"}
    assert trust.is_trusted(made.path)


SPOILED: dict[str, Callable[[Path], object]] = {
    "a mode for others": lambda record: record.chmod(0o644),
    "a mode for its group": lambda record: record.chmod(0o620),
    "a link": lambda record: _linked(record),
    "a second name": lambda record: os.link(record, f"{record}.2"),
    "no file": lambda record: (record.unlink(), os.mkfifo(record, 0o600)),
    "nonsense": lambda record: record.write_text("x"),
    "nothing": lambda record: record.write_text(""),
    "another document": lambda record: record.write_text("[]"),
    "an entry of another form": lambda record: record.write_text('{"folders": [{"path": 1}]}'),
    "depth": lambda record: record.write_text("[" * 100_000),
    "size": lambda record: record.write_text(" " * (trust.LARGEST_RECORD + 1)),
    "a folder for others": lambda record: record.parent.chmod(0o777),
    "a folder that is a link": lambda record: _linked(record.parent),
}


def _linked(path: Path) -> None:
    aside = path.with_name(f"{path.name}.aside")
    path.rename(aside)
    path.symlink_to(aside)


@pytest.mark.parametrize("how", SPOILED)
def test_a_record_that_others_may_have_written_says_nothing(
    made: Home, found: Home, environ: dict[str, str], how: str
) -> None:
    SPOILED[how](record_of(environ))
    refusal = trust.why_not(made.path)
    assert refusal is not None and str(record_of(environ).parent) in refusal
    with pytest.raises(StoreError):
        trust.record(found.path)
    with pytest.raises(StoreError):
        trust.revoke(made.path)
    assert not trust.is_trusted(found.path)


@pytest.mark.root
@pytest.mark.parametrize("whose", ["file", "folder"])
def test_a_record_of_another_user_says_nothing(
    made: Home, environ: dict[str, str], whose: str
) -> None:
    record = record_of(environ)
    os.chown(record if whose == "file" else record.parent, 65534, 65534)
    assert "belongs to user 65534" in (trust.why_not(made.path) or "")


def test_where_nothing_can_be_recorded_a_home_works_but_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").write_text("in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    home = Home(str(tmp_path / ".headway"))
    make_home(home)
    Path(home.database).touch()
    refuse_untrusted_store(home, os.environ)
    assert not trust.is_trusted(home.path)
    with pytest.raises(StoreError, match="state"):
        trust.record(home.path)


# -- the folder --------------------------------------------------------------------------------


def _moved(home: Home) -> str:
    os.rename(home.path, f"{home.path}.2")
    return f"{home.path}.2"


def _copied(home: Home) -> str:
    shutil.copytree(home.path, f"{home.path}.2")
    return f"{home.path}.2"


def _cloned_again(home: Home) -> str:
    """With everything that was in it, but for what is no longer the same."""
    shutil.copytree(home.path, f"{home.path}.2")
    shutil.rmtree(home.path)
    os.rename(f"{home.path}.2", home.path)
    return home.path


def _with_the_same_inode(home: Home) -> str:
    """A file system gives the number of a removed folder to the next one."""
    Path(home.path, trust.MARK).unlink()
    return home.path


def _with_another_mark(home: Home) -> str:
    Path(home.path, trust.MARK).write_text("0" * 32)
    return home.path


def _with_a_linked_mark(home: Home) -> str:
    mark = Path(home.path, trust.MARK)
    mark.rename(f"{mark}.aside")
    mark.symlink_to(f"{mark}.aside")
    return home.path


def _linked_home(home: Home) -> str:
    os.symlink(home.path, f"{home.path}.link")
    return f"{home.path}.link"


def _replaced_by_a_link(home: Home) -> str:
    os.rename(home.path, f"{home.path}.2")
    os.symlink(f"{home.path}.2", home.path)
    return home.path


def _open_to_others(home: Home) -> str:
    os.chmod(home.path, 0o777)
    return home.path


@pytest.mark.req("C47")
@pytest.mark.parametrize(
    "happens",
    [
        _moved,
        _copied,
        _cloned_again,
        _with_the_same_inode,
        _with_another_mark,
        _with_a_linked_mark,
        _linked_home,
        _replaced_by_a_link,
        _open_to_others,
    ],
)
def test_another_folder_is_not_trusted(made: Home, happens: Callable[[Home], str]) -> None:
    assert trust.is_trusted(made.path)
    assert not trust.is_trusted(happens(made))


@pytest.mark.root
def test_the_folder_of_another_user_is_not_trusted(made: Home) -> None:
    os.chown(made.path, 65534, 65534)
    assert not trust.is_trusted(made.path)
    assert not trust.is_trusted(made.path, {**os.environ, "HEADWAY_TRUST": "1"})
    with pytest.raises(InvalidInputError, match="belongs to user 65534"):
        trust.record(made.path)


def test_a_folder_is_known_by_any_way_that_leads_there(made: Home, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(os.path.dirname(made.path))
    assert trust.is_trusted(str(tmp_path / "link" / ".headway"))


@pytest.mark.parametrize(
    ("value", "trusted"), [("1", True), ("0", False), ("", False), ("yes", False)]
)
def test_a_variable_trusts_for_services_and_containers(
    found: Home, value: str, trusted: bool
) -> None:
    assert trust.is_trusted(found.path, {**os.environ, "HEADWAY_TRUST": value}) is trusted


# -- what counts -------------------------------------------------------------------------------

VALUES = {
    "worker.autostart": "false",
    "store.url": "'postgresql://nowhere/x'",
    "store.unsafe_fs": "true",
    "app.modules": "['evil']",
    "agent.runner": "'codex'",
    "agent.model": "'x'",
    "approval.from_jobs": "true",
    "web.origins": "['https://evil.example']",
    "web.socket_role": "'admin'",
    "webhooks.allow": "['127.0.0.1:9000']",
}


def test_every_setting_says_whether_it_needs_trust() -> None:
    """A new one must be put into the one list or the other, by whoever thinks about it."""
    needs = {key for key, each in SETTINGS.items() if each.trust is not Trust.HARMLESS}
    assert needs == {
        "webhooks.allow",
        "store.url",
        "web.origins",
        "web.socket_role",
        "store.unsafe_fs",
        "app.modules",
        "agent.runner",
        "agent.model",
        "approval.from_jobs",
    }
    harmless = {key.split(".")[0] for key in SETTINGS} - {key.split(".")[0] for key in needs}
    assert harmless == {
        *("scheduler", "jobsfile", "worker", "logs", "sources", "processes", "display")
    }
    refused = {key for key, each in SETTINGS.items() if each.trust is Trust.REFUSED}
    assert refused == {"store.url"}


@pytest.mark.req("C47")
@pytest.mark.parametrize("key", [key for key, each in SETTINGS.items() if not each.in_store])
@pytest.mark.parametrize("trusted", [False, True])
def test_a_setting_of_a_checkout_counts_if_it_is_harmless_or_trusted(
    found: Home, key: str, trusted: bool
) -> None:
    section, _, name = key.rpartition(".")
    default = SETTINGS[key].default
    plain = json.dumps(list(default) if isinstance(default, tuple) else default)
    value = VALUES.get(key, plain)
    Path(found.config).write_text(f"[{section}]\n{name} = {value}\n")
    if trusted:
        trust.record(found.path)
    config = load_config(found)
    match trusted, SETTINGS[key].trust:
        case (False, Trust.IGNORED):
            assert key not in config.values and config.untrusted == (key,)
            assert config[key] == SETTINGS[key].default
        case (False, Trust.REFUSED):
            assert key not in config.values
            with pytest.raises(InvalidInputError, match="headway trust"):
                config[key]
        case _:
            assert key in config.values and not config.untrusted and not config.refused


@pytest.mark.parametrize(
    ("section", "line"), [("env", "A = 'b'"), ("conditions", "go = ['touch', 'x']")]
)
def test_a_section_of_a_checkout_counts_only_if_it_is_trusted(
    found: Home, section: str, line: str
) -> None:
    assert section in SECTIONS_THAT_NEED_TRUST
    Path(found.config).write_text(f"[{section}]\n{line}\n")
    config = load_config(found)
    assert not config.env and not config.conditions
    assert config.untrusted == (f"[{section}]",)
    trust.record(found.path)
    config = load_config(found)
    assert config.env or config.conditions
    trust.revoke(found.path)
    assert load_config(found).untrusted


@pytest.mark.parametrize("file", ["jobs.yaml", "runners/mine.toml", "workflows/x.toml"])
def test_a_file_of_a_checkout_is_named_as_long_as_it_does_not_count(found: Home, file: str) -> None:
    path = Path(found.path, file)
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    assert load_config(found).untrusted == (file,)
    trust.record(found.path)
    assert load_config(found).untrusted == ()


def test_a_home_of_before_that_holds_nothing_to_be_trusted_works_without_a_word(
    found: Home,
) -> None:
    make_home(found)
    Path(found.database).touch()
    Path(found.config).write_text("[worker]\nidle = '5s'\n[display.lists.jobs]\nformat = 'table'\n")
    for folder in ("plans", "tasks", "worktrees"):
        Path(found.path, folder).mkdir()
    config = load_config(found)
    assert what_needs_trust(found, config) == () and config["worker.idle"] == "5s"
    refuse_untrusted_store(found, os.environ)
    assert not trust.is_trusted(found.path), "nothing was recorded by that, either"


def test_what_the_user_says_needs_no_trust(found: Home) -> None:
    Path(found.config).write_text("[store]\nurl = 'postgresql://nowhere/x'\n")
    config = load_config(found)
    assert choose_store(config, "sqlite:///mine", {}) == "sqlite:///mine"
    assert choose_store(config, None, {"HEADWAY_STORE": "sqlite:///mine"}) == "sqlite:///mine"
    with pytest.raises(InvalidInputError, match="headway trust"):
        choose_store(config, None, {})
    assert config.changed({"app.modules": ("mine",)})["app.modules"] == ("mine",)
    with pytest.raises(InvalidInputError, match="headway trust"):
        choose_store(config.changed({"app.modules": ("mine",)}), None, {})


def test_a_runner_of_a_checkout_does_not_take_the_place_of_a_shipped_one(found: Home) -> None:
    own = Path(found.path, "runners")
    own.mkdir()
    for name in ("claude", "mine"):
        (own / f"{name}.toml").write_text(RUNNER)
    shipped = load_runner("claude", found.path)
    assert shipped.argv[0] == "claude" and "mine" not in runner_names(found.path)
    with pytest.raises(HeadwayError, match="headway trust"):
        load_runner("mine", found.path)
    trust.record(found.path)
    assert load_runner("claude", found.path).argv == ("true",)
    assert load_runner("mine", found.path).argv == ("true",)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_headway_writes_does_not_count_if_it_came_with_a_folder(
    found: Home, name: str
) -> None:
    """A link in the place of a log, as one, could lead anywhere."""
    os.mkdir(os.path.join(found.path, name))
    with pytest.raises(InvalidInputError, match=name):
        refuse_untrusted_store(found, os.environ)
    with pytest.raises(InvalidInputError, match=name):
        refuse_untrusted_store(Home(found.path, "sqlite:///elsewhere"), os.environ)
    trust.record(found.path)
    refuse_untrusted_store(found, os.environ)


@pytest.mark.parametrize("how", ["no id", "the id of another", "a link"])
def test_a_store_that_came_with_a_folder_is_not_opened(found: Home, made: Home, how: str) -> None:
    if how == "a link":
        make_home(found)
        Path(made.database).touch()
        os.symlink(made.database, found.database)
    else:
        Path(found.database).touch()
    if how == "the id of another":
        shutil.copy(made.host_id, found.host_id)
    with pytest.raises(InvalidInputError, match="headway trust"):
        refuse_untrusted_store(found, os.environ)
    trust.record(found.path)
    refuse_untrusted_store(found, os.environ)


def test_processes_of_ours_decide_as_their_starter_does(tmp_path: Path) -> None:
    usual = trust.record_path({})
    for environ in (
        {"XDG_STATE_HOME": str(tmp_path)},
        {"HOME": str(tmp_path)},
        {"HOME": os.path.expanduser("~"), "HEADWAY_TRUST": "1"},
    ):
        passed = trust.passed_on(environ)
        assert trust.record_path(passed) == trust.record_path(environ)
        assert passed.get("HEADWAY_TRUST") == environ.get("HEADWAY_TRUST")
    assert trust.record_path(trust.passed_on({})) == usual


def test_the_store_of_a_copy_of_a_trusted_home_counts_and_nothing_else_in_it(
    tmp_path: Path,
) -> None:
    home = Home(str(tmp_path / ".headway"))
    make_home(home)
    Path(home.database).touch()
    Path(home.path, "jobs.yaml").write_text("jobs: {}\n")
    copy = Home(f"{home.path}.2")
    shutil.copytree(home.path, copy.path)
    refuse_untrusted_store(copy, os.environ)
    assert not trust.is_trusted(copy.path)
    assert load_config(copy).untrusted == ("jobs.yaml",)
    Path(copy.path, trust.MARK).write_text("0" * 32)
    with pytest.raises(InvalidInputError, match="came with it"):
        refuse_untrusted_store(copy, os.environ)
    shutil.copy(Path(home.path, trust.MARK), copy.path)
    trust.revoke(home.path)
    with pytest.raises(InvalidInputError, match="came with it"):
        refuse_untrusted_store(copy, os.environ)
