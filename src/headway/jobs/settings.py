"""Settings: each declared once, with its default, its check and where it lives.

`scheduler.*` and `jobsfile.*` are rows in the store, seen by every host at once; the rest belongs
to one checkout and stands in `config.toml`. A value is checked before it is stored, a file is
checked as a whole. What could run code or send data elsewhere counts only if the folder is trusted
(`headway.base.trust`).
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from headway.base.errors import HeadwayError, InvalidInputError, NotFoundError
from headway.base.home import Home, is_store_url, without_password
from headway.base.trust import NEXT_STEP, files_that_need_trust, is_trusted
from headway.base.units import parse_duration, parse_size
from headway.core.model import NOTHING
from headway.jobs.views.fields import FORMATS, LIST_FIELDS, parse_fields


class Trust(Enum):
    """How a setting counts in the `config.toml` of a folder that is not trusted."""

    HARMLESS = "counts"  # it starts no program, sends nothing elsewhere and lifts no guard
    IGNORED = "does not count"
    REFUSED = "refused"  # going on without it would do harm


class Setting(NamedTuple):
    """`parse` takes what a person wrote and gives what is used; it raises with the reason."""

    key: str
    default: Any
    parse: Callable[[str], Any]
    about: str
    trust: Trust

    @property
    def in_store(self) -> bool:
        return self.key.startswith(("scheduler.", "jobsfile."))

    def read(self, value: object) -> Any:
        try:
            if isinstance(value, list | tuple) and not isinstance(self.default, tuple):
                raise InvalidInputError(f"{list(value)!r} is a list; give one value")
            return self.parse(_written(value))
        except InvalidInputError as error:
            raise InvalidInputError(f"{self.key}: {error}") from None


def _written(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(str(each) for each in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _whole_number(lowest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise InvalidInputError(f"{text!r} is not a whole number") from None
        if number < lowest:
            raise InvalidInputError(f"{number} is too small; the least is {lowest}")
        return number

    return parse


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InvalidInputError(f"{text!r} is not a number") from None
    if not 0 <= number < 1e6:
        raise InvalidInputError(f"{text} is not between 0 and a million")
    return number


def _yes_or_no(text: str) -> bool:
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if text.lower() not in words:
        raise InvalidInputError(f"{text!r} is not true or false")
    return words[text.lower()]


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise InvalidInputError(f"{text!r} is not one of {', '.join(words)}")
        return text

    return parse


def _duration(text: str) -> str:
    parse_duration(text)
    return text


def _duration_of_at_least(least: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if parse_duration(text) < parse_duration(least):
            raise InvalidInputError(f"{text} is too short; the least is {least}")
        return text

    return parse


def _size(text: str) -> str:
    parse_size(text)
    return text


def _path(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise InvalidInputError(f"{text!r} is not a path")
    return text


def _runner(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", text):
        raise InvalidInputError(f"{text!r} is not the name of a runner")
    return text


def _allowed_targets(text: str) -> tuple[str, ...]:
    from headway.core.destinations import parse_allowed

    entries = tuple(each.strip() for each in text.split(",") if each.strip())
    for each in entries:
        if parse_allowed(each) is None:
            raise InvalidInputError(
                f"{each!r} is no address; write it like 127.0.0.1:9000, [::1]:9000 or 10.0.0.0/8"
            )
    return entries


def _word(text: str) -> str:
    if text.startswith("-") or not text.isprintable() or len(text) > 200 or text != text.strip():
        raise InvalidInputError(f"{text!r} is not one line that does not begin with -")
    return text


def _modules(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if not all(part.isidentifier() for part in name.split(".")):
            raise InvalidInputError(f"{name!r} is not a module; write it like package.module")
        if name.endswith(".py"):
            raise InvalidInputError(f"{name!r} is a file; the module is {name.removesuffix('.py')}")
    return names


def _port(text: str) -> int:
    number = _whole_number(0)(text)
    if number > 65535:
        raise InvalidInputError(f"{number} is not a port; the largest is 65535")
    return number


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(each.strip() for each in text.split(",") if each.strip())
    for each in origins:
        if not re.fullmatch(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?", each):
            raise InvalidInputError(
                f"{each!r} is not an origin; write it like https://jobs.example.org"
            )
    return origins


def _store_url(text: str) -> str:
    if text and not is_store_url(text):
        shown = without_password(text)
        raise InvalidInputError(
            f"{shown!r} is not a store; use sqlite:///absolute/path or postgresql://host/database"
        )
    return text


SETTINGS: Mapping[str, Setting] = {
    setting.key: setting
    for setting in (
        Setting(
            "scheduler.max_active",
            1,
            _whole_number(-1),
            "how many jobs run at once; -1 or 0 lifts the cap (direct dispatch)",
            Trust.HARMLESS,
        ),
        Setting(
            "scheduler.batch_size",
            1,
            _whole_number(1),
            "how many jobs one pass starts; a worker repeats passes",
            Trust.HARMLESS,
        ),
        Setting(
            "scheduler.spawn_delay",
            "0s",
            _duration,
            "the pause between two passes",
            Trust.HARMLESS,
        ),
        Setting(
            "scheduler.reservation_expiry",
            "10s",
            _duration_of_at_least("1s"),
            "how long a direct call that is not renewed keeps its slot, or its place",
            Trust.HARMLESS,
        ),
        Setting(
            "scheduler.pressure.load",
            0.0,
            _number,
            "the load per processor above which nothing is started; 0 is no bound",
            Trust.HARMLESS,
        ),
        Setting(
            "scheduler.pressure.memory",
            "0",
            _size,
            "how much memory must be available for anything to be started; 0 is no bound",
            Trust.HARMLESS,
        ),
        Setting(
            "scheduler.ageing",
            "0s",
            _duration,
            "a waiting job gains one priority each time this passes; 0s: it never does",
            Trust.HARMLESS,
        ),
        Setting(
            "scheduler.cooldown",
            "0s",
            _duration,
            "when a job that could not be launched three times is tried again; 0s is never",
            Trust.HARMLESS,
        ),
        Setting(
            "scheduler.missing_producer",
            "block",
            _one_of("block", "wait"),
            "what a job does that needs an artifact which nobody makes",
            Trust.HARMLESS,
        ),
        Setting(
            "scheduler.graph_limit",
            100_000,
            _whole_number(1),
            "how many jobs one graph may have that is submitted as a whole",
            Trust.HARMLESS,
        ),
        Setting(
            "scheduler.retention_days",
            30,
            _whole_number(0),
            "how many days ended jobs are kept; 0 keeps them however old",
            Trust.HARMLESS,
        ),
        Setting(
            "scheduler.retention_jobs",
            10_000,
            _whole_number(0),
            "how many ended jobs are kept, and all of the last day; 0 keeps any number",
            Trust.HARMLESS,
        ),
        Setting(
            "jobsfile.parallel",
            4,
            _whole_number(1),
            "how many entries of the jobs file run at once; agents among them take slots instead",
            Trust.HARMLESS,
        ),
        Setting(
            "worker.autostart",
            True,
            _yes_or_no,
            "start a worker in the background when needed",
            Trust.HARMLESS,
        ),
        Setting(
            "worker.idle",
            "30s",
            _duration,
            "how long a background worker stays idle",
            Trust.HARMLESS,
        ),
        Setting(
            "worker.grace",
            "10s",
            _duration,
            "how long a stopping worker waits for running jobs",
            Trust.HARMLESS,
        ),
        Setting(
            "worker.crash_loop",
            3,
            _whole_number(0),
            "deaths within a minute of a start that pause dispatch; 0 never does",
            Trust.HARMLESS,
        ),
        Setting(
            "store.url",
            "",
            _store_url,
            "where the store is, if not in this folder",
            Trust.REFUSED,
        ),
        Setting(
            "store.unsafe_fs",
            False,
            _yes_or_no,
            "use a store on a network file system all the same; locks may lie there",
            Trust.IGNORED,
        ),
        Setting(
            "store.poll_only",
            False,
            _yes_or_no,
            "nothing is kept on a connection between transactions, for poolers in transaction mode",
            Trust.HARMLESS,
        ),
        Setting(
            "app.modules",
            (),
            _modules,
            "the modules with tasks, and the jobs file's functions",
            Trust.IGNORED,
        ),
        Setting(
            "app.processes",
            1,
            _whole_number(1),
            "how many processes run functions",
            Trust.HARMLESS,
        ),
        Setting(
            "app.threads",
            1,
            _whole_number(1),
            "how many functions each runs at once",
            Trust.HARMLESS,
        ),
        Setting(
            "logs.head",
            "32MiB",
            _size,
            "how much of the beginning of each log is kept",
            Trust.HARMLESS,
        ),
        Setting(
            "logs.tail",
            "32MiB",
            _size,
            "how much of the end of each log is kept",
            Trust.HARMLESS,
        ),
        Setting(
            "logs.full",
            "drop",
            _one_of("drop", "block", "kill"),
            "what happens to output beyond that",
            Trust.HARMLESS,
        ),
        Setting(
            "logs.budget",
            "20GiB",
            _size,
            "all logs together; beyond it nothing starts",
            Trust.HARMLESS,
        ),
        Setting(
            "agent.runner",
            "claude",
            _runner,
            "the runner of agent jobs that name none",
            Trust.IGNORED,
        ),
        Setting(
            "agent.model",
            "",
            _word,
            "the model of agent jobs that name none; empty: its own",
            Trust.IGNORED,
        ),
        Setting(
            "approval.from_jobs",
            False,
            _yes_or_no,
            "whether a process that runs inside a job may approve, reject and repin",
            Trust.IGNORED,
        ),
        Setting(
            "web.port",
            0,
            _port,
            "the port of `headway serve`; 0 is 7433, or the next of 20 that is free",
            Trust.HARMLESS,
        ),
        Setting(
            "web.origins",
            (),
            _origins,
            "the names under which others reach the server, as https://jobs.example.org",
            Trust.IGNORED,
        ),
        Setting(
            "web.socket_role",
            "operate",
            _one_of("read", "submit", "operate", "admin"),
            "what this user may do over the server's unix socket without a token",
            Trust.IGNORED,
        ),
        Setting(
            "web.legacy",
            True,
            _yes_or_no,
            "whether the server answers on the paths of before: /jobs/...",
            Trust.HARMLESS,
        ),
        Setting(
            "webhooks.allow",
            (),
            _allowed_targets,
            "addresses of this machine or network that webhooks may be sent to",
            Trust.IGNORED,
        ),
        Setting(
            "sources.beads",
            ".beads/issues.jsonl",
            _path,
            "the export of a beads tracker whose items can be slung",
            Trust.HARMLESS,
        ),
        Setting(
            "sources.tasks",
            ".headway/tasks",
            _path,
            "the folder of task files that can be slung",
            Trust.HARMLESS,
        ),
        Setting(
            "processes.cgroup",
            "auto",
            _one_of("auto", "off"),
            "use a control group per job where the system allows it",
            Trust.HARMLESS,
        ),
        Setting(
            "processes.leftovers",
            "kill",
            _one_of("kill", "wait", "leave"),
            "what happens to processes that a job leaves behind",
            Trust.HARMLESS,
        ),
        Setting(
            "display.lists.jobs.fields",
            LIST_FIELDS,
            parse_fields,
            "what `jobs list` shows",
            Trust.HARMLESS,
        ),
        Setting(
            "display.lists.jobs.format",
            "table",
            _one_of(*FORMATS),
            "how `jobs list` shows it",
            Trust.HARMLESS,
        ),
        Setting(
            "display.lists.jobs_show.fields",
            (),
            parse_fields,
            "what `jobs show` shows; empty is everything",
            Trust.HARMLESS,
        ),
        Setting(
            "display.lists.jobs_show.format",
            "block",
            _one_of(*FORMATS),
            "how `jobs show` shows it",
            Trust.HARMLESS,
        ),
    )
}

LIMITS = "scheduler.limits."


def _limit(key: str) -> Setting | None:
    """The setting of one limit: there are as many as there are words."""
    from headway.jobs.policies import is_kind
    from headway.jobs.quotas import check_word

    kind, _, word = key.removeprefix(LIMITS).partition(".")
    if not word or not is_kind(kind):
        return None
    check_word(kind, word)
    if kind == "rate":
        return Setting(
            key,
            None,
            _or_none(_starts),
            f"how often jobs with --rate {word} may start",
            Trust.HARMLESS,
        )
    about = f"how many jobs of {kind} {word} run at once"
    return Setting(key, None, _or_none(_whole_number(0)), about, Trust.HARMLESS)


def _or_none(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda text: None if text.lower() == "none" else parse(text)


def _starts(text: str) -> str:
    from headway.jobs.quotas import parse_limit

    parse_limit(text)
    return text


def limits_set(stored: Mapping[str, Any]) -> dict[str, int | str]:
    """The limits in force, by what they are about (`resource:ollama`); a rate as it is written."""
    limits = {}
    for key in stored:
        if not key.startswith(LIMITS):
            continue
        value = _usable_limit(stored, key)
        if value is not None:
            limits[key.removeprefix(LIMITS).replace(".", ":", 1)] = value
    return limits


def _usable_limit(stored: Mapping[str, Any], key: str) -> int | str | None:
    from headway.jobs.policies import KINDS

    value: int | str | None = stored[key]
    if key.removeprefix(LIMITS).partition(".")[0] not in KINDS:
        # To look for the policies of packages takes too long for every step.
        return value if isinstance(value, int) and value >= 0 else None
    try:
        value = store_setting(stored, key)
    except HeadwayError:  # its key is no limit at all
        return None
    return value


_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Config:
    """The settings of `config.toml`, with the defaults. `env` is for jobs without a submitter,
    `conditions` are commands whose success means that a precondition holds. `untrusted` names what
    the folder holds that does not count, because the folder is not trusted."""

    __slots__ = ("conditions", "env", "refused", "untrusted", "values")

    def __init__(
        self,
        values: Mapping[str, Any] = NOTHING,
        env: Mapping[str, str] = NOTHING,
        conditions: Mapping[str, tuple[str, ...]] = NOTHING,
        untrusted: tuple[str, ...] = (),
        refused: Mapping[str, str] = NOTHING,
    ) -> None:
        self.values = values
        self.env = env
        self.conditions = conditions
        self.untrusted = untrusted
        self.refused = refused  # by their keys the words with which whoever asks is refused

    def changed(self, values: Mapping[str, Any]) -> "Config":
        """The same with these values in the place of its own."""
        values = {**self.values, **values}
        return Config(values, self.env, self.conditions, self.untrusted, self.refused)

    def __getitem__(self, key: str) -> Any:
        if key in self.refused:
            raise InvalidInputError(self.refused[key])
        return self.values.get(key, SETTINGS[key].default)

    def micros(self, key: str) -> int:
        return parse_duration(self[key])

    def bytes(self, key: str) -> int:
        return parse_size(self[key])


SECTIONS_THAT_NEED_TRUST = ("env", "conditions")
MOST_PROBLEMS = 20
_ALL_SETTINGS = "`headway config list` shows them all"


def load_config(home: Home, environ: Mapping[str, str] | None = None) -> Config:
    """Read and check `config.toml`; every problem of the file is named at once. If the folder is
    not trusted, what needs that is left out, whatever it is."""
    config = read_config(home)
    needing = what_needs_trust(home, config)
    # The record comes last: the process that made this folder wrote it before anything else.
    if not needing or is_trusted(home.path, environ):
        return config
    return _without(config, needing, home)


def what_needs_trust(home: Home, config: Config) -> tuple[str, ...]:
    """The parts of this folder that could run code, send data elsewhere or lift a guard."""
    keys = [key for key in config.values if SETTINGS[key].trust is not Trust.HARMLESS]
    sections = [f"[{name}]" for name in SECTIONS_THAT_NEED_TRUST if getattr(config, name)]
    return (*keys, *sections, *files_that_need_trust(home.path))


def _without(config: Config, needing: tuple[str, ...], home: Home) -> Config:
    kept = {key: value for key, value in config.values.items() if key not in needing}
    refused = {
        key: f"{key} of {home.config} is not trusted, and nothing is done without it; {NEXT_STEP}"
        for key in needing
        if key in SETTINGS and SETTINGS[key].trust is Trust.REFUSED
    }
    ignored = tuple(each for each in needing if each not in refused)
    return Config(kept, untrusted=ignored, refused=refused)


def choose_store(config: Config, named: str | None, environ: Mapping[str, str]) -> str:
    """The store's URL, empty if it is the folder's own. What the user says needs no trust."""
    url: str = named or environ.get("HEADWAY_STORE") or config["store.url"]
    return url


def read_config(home: Home) -> Config:
    """All that the file says, whether it counts or not."""
    if not os.path.lexists(home.config):
        return Config()
    from headway.base.toml_file import parse, read_content  # most homes have no such file

    content = read_content(home.config)
    if content is None:
        return Config()
    document = parse(home.config, content)
    values: dict[str, Any] = {}
    env: dict[str, str] = {}
    conditions: dict[str, tuple[str, ...]] = {}
    problems: list[str] = []
    unknown = False
    for section, entries in document.items():
        if not isinstance(entries, dict):
            problems.append(f"{section} stands outside of a section{_meant(section)}")
            continue
        if section == "env":
            env = {name: _written(value) for name, value in entries.items()}
            problems += [f"env.{n} is no name" for n in env if not _ENV_NAME.fullmatch(n)]
            problems += [f"env.{n} is no text" for n, v in entries.items() if not _is_text(v)]
            continue
        if section == "conditions":
            conditions = {n: tuple(v) for n, v in entries.items() if _is_command(v)}
            problems += [
                f"conditions.{n} is no list of words, as in {n} = ['test', '-e', 'go']"
                for n in entries
                if n not in conditions
            ]
            continue
        for key, value in _flat(section, entries):
            try:
                setting = find_setting(key, in_store=False)
                values[setting.key] = setting.read(value)
            except NotFoundError:
                problems.append(_no_setting(key))
                unknown = True
            except InvalidInputError as error:
                problems.append(str(error))
    if unknown:
        problems.append(_ALL_SETTINGS)
    if problems:
        rest = len(problems) - MOST_PROBLEMS
        more = [f"and {rest} more"] if rest > 0 else []
        raise InvalidInputError(f"{home.config}: " + "; ".join([*problems[:MOST_PROBLEMS], *more]))
    return Config(values, env, conditions)


def _flat(section: str, entries: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The values of a section and of those within it, by their whole key."""
    for name, value in entries.items():
        key = f"{section}.{name}"
        if isinstance(value, dict) and key not in SETTINGS:
            yield from _flat(key, value)
        else:
            yield key, value


def _is_text(value: object) -> bool:
    return isinstance(value, str | int | float) and "\0" not in str(value)


def _is_command(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_text(each) for each in value)


def find_setting(key: str, *, in_store: bool | None = None) -> Setting:
    setting = _limit(key) if key.startswith(LIMITS) else SETTINGS.get(key)
    if setting is None:
        raise NotFoundError(f"{_no_setting(key)}; {_ALL_SETTINGS}")
    if in_store is False and setting.in_store:
        raise InvalidInputError(
            f"{key} is kept in the store, not in config.toml; use `headway config set {key} VALUE`"
        )
    if in_store and not setting.in_store:
        raise InvalidInputError(
            f"{key} stands in config.toml, not in the store; use `headway config set {key} VALUE`"
        )
    return setting


def _no_setting(key: str) -> str:
    return f"there is no setting {key!r}{_meant(key)}"


def _meant(key: str) -> str:
    """The setting with the most similar name, by its whole key or by its last word."""
    from difflib import get_close_matches

    near = get_close_matches(key[:64], SETTINGS, 1, 0.75)
    if not near:
        last = {each.rpartition(".")[2]: each for each in SETTINGS}
        near = [last[word] for word in get_close_matches(key[:64], last, 1, 0.75)]
    return f" (did you mean {near[0]}?)" if near else ""


def write_config(home: Home, key: str, value: Any) -> None:
    """Set one value in `config.toml`, keeping the rest of the file as it was written."""
    import tomlkit

    document = _document_of(home)
    *sections, name = key.split(".")
    table: Any = document
    for section in sections:
        if section not in table:
            table[section] = tomlkit.table(is_super_table=section != sections[-1])
        table = table[section]
    table[name] = value
    _write_document(home, document)


def remove_from_config(home: Home, key: str) -> bool:
    """Take one value out of `config.toml`; False if it does not stand there."""
    document = _document_of(home)
    *sections, name = key.split(".")
    table: Any = document
    for section in sections:
        table = table.get(section, {})
    if name not in table:
        return False
    del table[name]
    _write_document(home, document)
    return True


def _document_of(home: Home) -> Any:
    """The file as it is written, once it is known to be sound."""
    import tomlkit

    read_config(home)
    try:
        with open(home.config, encoding="utf-8") as file:
            return tomlkit.parse(file.read())
    except FileNotFoundError:
        return tomlkit.document()


def _write_document(home: Home, document: Any) -> None:
    import tomlkit

    from headway.base.whole_file import write_whole

    write_whole(home.config, tomlkit.dumps(document))


def store_setting(stored: Mapping[str, Any], key: str) -> Any:
    """The value of a setting that is kept in the store, or its default."""
    return usable_value(stored, find_setting(key))


def usable_value(stored: Mapping[str, Any], setting: Setting) -> Any:
    """A value that cannot be used stops nobody: the default counts instead, and
    `unusable_settings` names it."""
    if setting.key not in stored:
        return setting.default
    try:
        return setting.read(stored[setting.key])
    except InvalidInputError:
        return setting.default


class UnusableSetting(NamedTuple):
    """A row of the store that does not count."""

    key: str
    problem: str

    @property
    def remedy(self) -> str:
        return f"headway config unset {self.key}"


def unusable_settings(stored: Mapping[str, Any]) -> tuple[UnusableSetting, ...]:
    """The rows that do not count: of no setting that is kept there, or with no value of it."""
    found = []
    for key, value in sorted(stored.items()):
        if _is_of_other_policy(key):
            continue
        try:
            setting = find_setting(key, in_store=True)
        except HeadwayError as error:
            found.append(UnusableSetting(key, str(error).partition(";")[0]))
            continue
        try:
            setting.read(value)
        except InvalidInputError as error:
            default = "none" if setting.default is None else setting.default
            found.append(UnusableSetting(key, f"{error}; {default} counts, its default"))
    return tuple(found)


def _is_of_other_policy(key: str) -> bool:
    """Whether this is the limit of a policy that is not installed here, but may be elsewhere."""
    from headway.jobs.policies import is_kind

    kind, _, word = key.removeprefix(LIMITS).partition(".")
    return key.startswith(LIMITS) and bool(kind and word) and not is_kind(kind)
