"""Settings: every value is checked before it is kept, and a file is judged as a whole."""

import os
from pathlib import Path
from typing import Any

import pytest

from headway.base.errors import InvalidInputError, NotFoundError
from headway.base.home import Home
from headway.base.new_home import make_home
from headway.jobs.settings import (
    SETTINGS,
    Config,
    find_setting,
    limits_set,
    load_config,
    store_setting,
    unusable_settings,
    write_config,
)

IN_A_HOME = [".gitignore", "config.toml", "env", "host-id", "jobs", "run", "trust-mark"]
WRITTEN = """\
# mine
[logs]            # first
tail = "1MiB"  # small
head = "2MiB"

[env]
COLOUR = "blue"

[worker]
idle = "5s"
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(str(tmp_path / ".headway"))
    make_home(made)
    return made


def write(home: Home, text: str | bytes) -> Path:
    path = Path(home.config)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refused(home: Home, text: str | bytes) -> str:
    """The message with which the file is refused; the file stays as it is."""
    path = write(home, text)
    before = path.read_bytes()
    with pytest.raises(InvalidInputError) as refusal:
        load_config(home)
    assert path.read_bytes() == before
    return str(refusal.value)


def test_without_a_file_every_setting_has_its_default(home: Home) -> None:
    config = load_config(home)
    assert {key: config[key] for key in SETTINGS} == {
        "scheduler.max_active": 1,
        "scheduler.batch_size": 1,
        "scheduler.ageing": "0s",
        "scheduler.pressure.load": 0.0,
        "scheduler.pressure.memory": "0",
        "scheduler.reservation_expiry": "10s",
        "scheduler.spawn_delay": "0s",
        "scheduler.cooldown": "0s",
        "scheduler.missing_producer": "block",
        "scheduler.graph_limit": 100_000,
        "scheduler.retention_days": 30,
        "scheduler.retention_jobs": 10_000,
        "jobsfile.parallel": 4,
        "agent.runner": "claude",
        "agent.model": "",
        "approval.from_jobs": False,
        "web.port": 0,
        "web.origins": (),
        "web.socket_role": "operate",
        "web.legacy": True,
        "sources.beads": ".beads/issues.jsonl",
        "sources.tasks": ".headway/tasks",
        "worker.autostart": True,
        "worker.idle": "30s",
        "worker.grace": "10s",
        "worker.crash_loop": 3,
        "store.unsafe_fs": False,
        "store.poll_only": False,
        "store.url": "",
        "app.modules": (),
        "app.processes": 1,
        "app.threads": 1,
        "logs.head": "32MiB",
        "logs.tail": "32MiB",
        "logs.full": "drop",
        "logs.budget": "20GiB",
        "webhooks.allow": (),
        "processes.cgroup": "auto",
        "processes.leftovers": "kill",
        "display.lists.jobs.fields": ("id", "name", "state", "result", "age"),
        "display.lists.jobs.format": "table",
        "display.lists.jobs_show.fields": (),
        "display.lists.jobs_show.format": "block",
    }
    assert config.micros("worker.idle") == 30_000_000
    assert config.bytes("logs.head") == 32 << 20
    assert config.env == {}


@pytest.mark.parametrize(
    "key",
    sorted(SETTINGS),
)
def test_every_setting_takes_its_own_default(key: str) -> None:
    setting = SETTINGS[key]
    assert setting.read(setting.default) == setting.default
    assert setting.about


NONSENSE = ["", "blah", "\0", "[1]", "-", "{}", " ", "1\n2", "1.5"]
# What is no nonsense there after all: a size may be 1.5 bytes, an empty URL means none, and so do
# empty names of modules and an empty list of addresses.
SENSIBLE = {
    *(("logs.head", "1.5"), ("logs.tail", "1.5"), ("logs.budget", "1.5"), ("store.url", "")),
    *(("scheduler.pressure.load", "1.5"), ("scheduler.pressure.memory", "1.5")),
    *(("agent.model", text) for text in ("", "blah", "[1]", "{}", "1.5")),
    *(("agent.runner", "blah"),),
    *(("app.modules", ""), ("app.modules", " "), ("app.modules", "blah")),
    *(("web.origins", ""), ("web.origins", " ")),
    *(("webhooks.allow", ""), ("webhooks.allow", " ")),
    *(
        (f"sources.{name}", text)
        for name in ("beads", "tasks")
        for text in ("blah", "[1]", "-", "{}", "1.5")
    ),
    *(
        (f"display.lists.{view}.fields", text)
        for view in ("jobs", "jobs_show")
        for text in ("", " ")
    ),
}


@pytest.mark.parametrize("key", sorted(SETTINGS))
def test_every_setting_refuses_nonsense_and_names_itself(key: str) -> None:
    for text in NONSENSE:
        if (key, text) in SENSIBLE:
            continue
        with pytest.raises(InvalidInputError) as refusal:
            SETTINGS[key].read(text)
        assert str(refusal.value).startswith(f"{key}: "), text


@pytest.mark.req("G8")
@pytest.mark.parametrize(
    ("key", "accepted", "refused_values"),
    [
        ("scheduler.max_active", ["-1", "0", "1", "500"], ["-2", "-100", "1.5", "many", ""]),
        ("scheduler.batch_size", ["1", "50"], ["0", "-1", "0.5", "all", ""]),
        ("scheduler.spawn_delay", ["0s", "1.5s", "1h30m"], ["5", "soon", "-5s", "", "5 s"]),
        ("scheduler.limits.resource.ollama", ["0", "1", "500"], ["-1", "1.5", "many", ""]),
        ("scheduler.limits.type.a.b/c", ["7"], ["x"]),
        ("scheduler.limits.rate.claude", ["10/min", "5/90s"], ["10", "0/min", "10/soon", ""]),
        ("scheduler.pressure.load", ["0.0", "1.5"], ["-1", "nan", "inf", "much", ""]),
        ("scheduler.pressure.memory", ["0", "500MiB"], ["-1", "lots", ""]),
    ],
)
def test_scheduler_settings_refuse_what_is_out_of_range(
    key: str, accepted: list[str], refused_values: list[str]
) -> None:
    setting = find_setting(key)
    for text in accepted:
        assert str(setting.read(text)) == text
    for text in refused_values:
        with pytest.raises(InvalidInputError, match=f"^{key}: "):
            setting.read(text)


@pytest.mark.req("G8")
def test_the_scheduler_starts_one_job_at_a_time_without_a_delay_by_default() -> None:
    assert store_setting({}, "scheduler.batch_size") == 1
    assert store_setting({}, "scheduler.spawn_delay") == "0s"
    assert store_setting({"scheduler.batch_size": 7}, "scheduler.batch_size") == 7


@pytest.mark.parametrize(
    ("text", "value"),
    [(word, True) for word in ("true", "yes", "on", "True", "YES")]
    + [(word, False) for word in ("false", "no", "off", "False")],
)
def test_yes_and_no_may_be_written_in_several_ways(text: str, value: bool) -> None:
    assert SETTINGS["worker.autostart"].read(text) is value
    assert SETTINGS["worker.autostart"].read(value) is value


def test_values_of_the_file_replace_defaults(home: Home) -> None:
    write(home, WRITTEN + 'autostart = false\ncrash_loop = 0\n[store]\nurl = "sqlite:////d/x.db"\n')
    config = load_config(home)
    assert config["worker.autostart"] is False and config["worker.crash_loop"] == 0
    assert config.micros("worker.idle") == 5_000_000 and config.bytes("logs.tail") == 1 << 20
    assert config["store.url"] == "sqlite:////d/x.db"
    assert config["worker.grace"] == "10s"
    assert config.env == {"COLOUR": "blue"}


def test_all_problems_of_a_file_are_named_at_once(home: Home) -> None:
    message = refused(
        home,
        "loose = 1\n"
        '[worker]\nidle = "soon"\nspeed = 3\n'
        '[logs]\nfull = "explode"\nhead = "-1"\n'
        "[scheduler]\nmax_active = 3\n"
        "[colour]\nred = 1\n"
        '[env]\n"A B" = "x"\n',
    )
    assert message.startswith(f"{home.config}: ")
    for named in (
        "loose stands outside of a section",
        "worker.idle: ",
        "'worker.speed'",
        "logs.full: 'explode' is not one of drop, block, kill",
        "logs.head: ",
        "scheduler.max_active",
        "'colour.red'",
        "env.A B",
    ):
        assert named in message, named


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[worker\n", "line 1"),
        ("[worker]\nidle = 5\n", "worker.idle: "),
        ("[worker]\nautostart = 1\n", "worker.autostart: "),
        ("[worker]\ncrash_loop = 3.0\n", "worker.crash_loop: "),
        ("[worker]\nidle = ['5s']\n", "worker.idle: "),
        ("[worker.idle]\nx = 1\n", "worker.idle: "),
        ("[app]\nmodules = ['a b']\n", "app.modules: 'a b' is not a module"),
        ("[app]\nmodules = ['shop.py']\n", "app.modules: 'shop.py' is a file; the module is shop"),
        ("[app]\nmodules = [1]\n", "app.modules: '1' is not a module"),
        ("[[worker]]\nidle = '5s'\n", "worker"),
        ("[worker]\nnap = '5s'\n", "there is no setting 'worker.nap'; `headway config list`"),
        ("[store]\nurl = 'mysql://x'\n", "store.url: "),
        ("[store]\nurl = 'sqlite://relative.db'\n", "store.url: "),
        pytest.param("[env]\nA = ['x']\n", "env.A"),
        pytest.param("[env]\nA = {b = 1}\n", "env.A"),
        pytest.param('[env]\nA = "\\u0000"\n', "env.A"),
        pytest.param(b"\xff\xfe", "config.toml"),
        pytest.param(b'[env]\nA = "\xff"\n', "config.toml"),
    ],
)
def test_a_bad_file_is_refused_by_name(home: Home, text: str | bytes, named: str) -> None:
    assert named in refused(home, text)


def test_a_file_that_cannot_be_read_is_refused_by_name(home: Home) -> None:
    Path(home.config).mkdir()  # root reads a file of any mode, but no folder
    with pytest.raises(InvalidInputError, match=r"config\.toml"):
        load_config(home)


@pytest.mark.parametrize("key", [key for key in sorted(SETTINGS) if key.startswith("scheduler.")])
def test_what_the_store_keeps_is_refused_in_the_file_with_the_next_step(
    home: Home, key: str
) -> None:
    section, _, name = key.partition(".")
    message = refused(home, f"[{section}]\n{name} = {SETTINGS[key].default!r}\n")
    assert f"{key} is kept in the store, not in config.toml" in message
    assert f"use `headway config set {key} VALUE`" in message


def test_an_unknown_setting_is_not_found() -> None:
    with pytest.raises(NotFoundError, match=r"there is no setting 'worker\.nap'") as refusal:
        find_setting("worker.nap")
    assert refusal.value.exit_code == 3


def test_a_written_value_keeps_comments_and_order(home: Home) -> None:
    path = write(home, WRITTEN)
    write_config(home, "logs.tail", "9MiB")
    assert path.read_text() == WRITTEN.replace('"1MiB"', '"9MiB"')
    write_config(home, "worker.autostart", False)
    write_config(home, "store.url", "sqlite:////d/x.db")
    text = path.read_text()
    assert text.startswith(WRITTEN.replace('"1MiB"', '"9MiB"') + "autostart = false\n")
    assert load_config(home)["store.url"] == "sqlite:////d/x.db"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("worker.autostart", False),
        ("worker.crash_loop", 0),
        ("worker.idle", "1m"),
        ("logs.full", "kill"),
        ("store.url", "sqlite:////d/x.db"),
    ],
)
def test_a_written_value_reads_back(home: Home, key: str, value: Any) -> None:
    write_config(home, key, value)
    assert load_config(home)[key] == value


@pytest.mark.parametrize("before", [None, WRITTEN])
def test_a_written_file_is_ours_alone_and_nothing_else_stays(
    home: Home, before: str | None
) -> None:
    if before is not None:
        os.chmod(write(home, before), 0o644)
    write_config(home, "worker.idle", "1m")
    assert os.stat(home.config).st_mode & 0o777 == 0o600
    assert sorted(os.listdir(home.path)) == IN_A_HOME


@pytest.mark.parametrize(
    "broken", ["[worker\n", "[worker]\nidle = 'soon'\n", pytest.param(b"\xff\xfe")]
)
def test_a_broken_file_is_left_untouched(home: Home, broken: str | bytes) -> None:
    path = write(home, broken)
    before = (path.read_bytes(), path.stat().st_ino)
    with pytest.raises(InvalidInputError):
        write_config(home, "worker.idle", "1m")
    assert (path.read_bytes(), path.stat().st_ino) == before
    assert sorted(os.listdir(home.path)) == IN_A_HOME


def test_what_a_killed_writer_left_behind_is_no_obstacle(home: Home) -> None:
    """In a container the next process often has the same id."""
    Path(f"{home.config}.{os.getpid()}.tmp").write_text("half")
    write_config(home, "worker.idle", "1m")
    assert load_config(home)["worker.idle"] == "1m"


def test_config_without_a_file_is_the_defaults() -> None:
    assert Config()["logs.full"] == "drop"
    with pytest.raises(KeyError):
        Config()["logs.nothing"]


@pytest.mark.parametrize(
    "key",
    [
        *("scheduler.limits", "scheduler.limits.", "scheduler.limits.resource"),
        *("scheduler.limits.resource.", "scheduler.limits.colour.red", "scheduler.limits..x"),
    ],
)
def test_there_are_limits_only_of_known_kinds_and_with_a_word(key: str) -> None:
    with pytest.raises(NotFoundError, match="there is no setting"):
        find_setting(key)


@pytest.mark.parametrize("word", ["a b", "-x", "a:b", "x" * 65, "a@b", "a=b"])
def test_a_limit_is_about_one_word(word: str) -> None:
    with pytest.raises(InvalidInputError, match="resource"):
        find_setting(f"scheduler.limits.resource.{word}")


def test_a_limit_is_none_until_it_is_set_and_again_when_it_is_taken_away() -> None:
    setting = find_setting("scheduler.limits.resource.ollama")
    assert setting.default is None and setting.read("none") is None and setting.in_store
    stored = {setting.key: 2, "scheduler.limits.type.x": None, "scheduler.limits.rate.r.x": "1/s"}
    assert limits_set(stored) == {"resource:ollama": 2, "rate:r.x": "1/s"}
    assert store_setting({}, setting.key) is None
    assert store_setting(stored, "scheduler.limits.type.x") is None


@pytest.mark.parametrize(
    ("stored", "key", "counts"),
    [
        ("three", "scheduler.max_active", 1),
        (-7, "scheduler.max_active", 1),
        ([2], "scheduler.max_active", 1),
        (None, "scheduler.max_active", 1),
        ("3", "scheduler.max_active", 3),
        (7, "scheduler.spawn_delay", "0s"),
        ("soon", "scheduler.ageing", "0s"),
        ("much", "scheduler.pressure.memory", "0"),
        ("one", "scheduler.limits.resource.gpu", None),
    ],
)
def test_a_stored_value_that_cannot_be_used_gives_way_to_the_default(
    stored: Any, key: str, counts: Any
) -> None:
    assert store_setting({key: stored}, key) == counts
    unusable = unusable_settings({key: stored})
    assert [each.key for each in unusable] == ([] if counts == 3 else [key])
    for each in unusable:
        assert key in each.problem and each.remedy == f"headway config unset {key}"


def test_rows_of_no_setting_are_named_and_limit_nobody() -> None:
    stored = {
        "scheduler.maxactive": 3,
        "worker.idle": "5m",
        "scheduler.limits.resource.gpu": "one",
        "scheduler.limits.rate.api": 5,
        "scheduler.limits.resource.a b": 1,
        "scheduler.limits.elsewhere.acme": 2,
        "scheduler.limits.elsewhere.other": "two",
        "scheduler.limits.type.agent": 1,
    }
    assert limits_set(stored) == {"type:agent": 1, "elsewhere:acme": 2}
    assert [each.key for each in unusable_settings(stored)] == [
        "scheduler.limits.rate.api",
        "scheduler.limits.resource.a b",
        "scheduler.limits.resource.gpu",
        "scheduler.maxactive",
        "worker.idle",
    ]
