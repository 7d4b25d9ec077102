"""Templates: stored specifications with defaults, and jobs that are made from them.

The document of a template has the words of a job in a graph file, so the same code checks both, and
it can be read by people. A job has a copy of everything: changing or archiving a template never
changes a job. A parameter `{name}` stands in words of the command and of a few options; it is
filled in as text, in one pass and without any shell, and never in a script that a shell would run.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headway.base.errors import ConflictError, InvalidInputError
from headway.base.shells import as_code, scripts
from headway.core.model import NOTHING
from headway.jobs.context import Context
from headway.jobs.graph import GraphError
from headway.jobs.graph_file import OF_AGENTS, is_agent, misfits, request_of
from headway.jobs.insert import Submitted
from headway.jobs.prompts import read_prompt
from headway.jobs.quotas import check_word
from headway.jobs.references import parse_reference
from headway.jobs.request import Request
from headway.jobs.specification import specify
from headway.jobs.stored_templates import require_template, require_usable
from headway.jobs.submit import submit
from headway.store.new_jobs import Event
from headway.store.records import Template
from headway.store.transaction import WriteTx

DEFAULT_RETRIES = 3  # the author of a template says that its work may be repeated
DEFAULT_BASE = "10s"
PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]{0,63})\}")
# What is said about one job when it is submitted.
OF_ONE_JOB = frozenset({"id", "after", "at", "key", "group", "last", "position", "subject"})
# Where parameters are filled in; not in a line for a shell, which would read the values as code.
FILLED = (
    *("argv", "name", "labels", "locks", "needs", "produces", "env", "cwd", "stdin"),
    *("resources", "rates", "target", "prompt", "model"),
)
_EXCLUDES = {"argv": "shell", "shell": "argv", "at": "delay", "delay": "at"}
_MERGED = ("labels", "env")


class TemplateError(GraphError):
    """All that is wrong with a template."""


def add_template(
    context: Context,
    name: str,
    /,
    *,
    params: Mapping[str, str | None] = NOTHING,
    replace: bool = False,
    **options: Any,
) -> Template:
    """Store a template. `params` are its parameters with their defaults, None for those that must
    be given; `options` are the words of a job in a graph file, as `argv=[...], timeout="5m"`."""
    entry = {
        # An agent that failed has cost money, and may have left half of its work.
        "retries": 0 if is_agent(options) else DEFAULT_RETRIES,
        "retry_base": DEFAULT_BASE,
        **{word: value for word, value in options.items() if value is not None},
    }
    if isinstance(entry.get("prompt_file"), str) and entry.get("prompt") is None:
        entry["prompt"] = read_prompt(entry.pop("prompt_file"), context.folder)
    for word in ("cwd", "stdin"):
        if isinstance(entry.get(word), str):
            entry[word] = os.path.abspath(os.path.join(context.folder, entry[word]))
    _refuse_wrong(context, name, entry, params)
    document = {"job": entry, "params": dict(params)}

    def transaction(tx: WriteTx) -> Template:
        known = tx.templates.by_name([name]).get(name)
        if known is not None and not replace:
            state = "archived" if known.archived_at is not None else "there already"
            raise ConflictError(f"template {name!r} is {state}; --replace puts this in its place")
        template = Template(name, document, tx.now(), context.actor)
        tx.templates.put(template)
        event = Event("template_added", None, {"template": name, "replaced": known is not None})
        tx.events.add([event], actor=context.actor)
        return template

    return context.store.transact(transaction)


def archive_template(context: Context, name: str) -> bool:
    """From now on it makes no jobs; False if that was so before."""

    def transaction(tx: WriteTx) -> bool:
        require_template(tx, name)
        archived = tx.templates.archive(name)
        if archived:
            event = Event("template_archived", None, {"template": name})
            tx.events.add([event], actor=context.actor)
        return archived

    return context.store.transact(transaction)


def submit_template(
    context: Context, name: str, /, *, params: Mapping[str, str] = NOTHING, **overrides: Any
) -> Submitted:
    """Make a job of a template. `overrides` take the place of what it says, in the same words;
    labels and variables are merged."""
    return submit(context, request_of_template(context, name, params=params, **overrides))


def request_of_template(
    context: Context, name: str, /, *, params: Mapping[str, str] = NOTHING, **overrides: Any
) -> Request:
    """The request of the job that `submit_template` makes."""
    with context.store.read() as tx:
        template = require_usable(tx, name)
    return request_from_template(template, params, overrides, context.clock.now())


def request_from_template(
    template: Template, params: Mapping[str, str], overrides: Mapping[str, Any], now: int
) -> Request:
    """The request that it stands for, with these values and changes."""
    given = {word: value for word, value in overrides.items() if value is not None}
    own = _left_over(template.document["job"], given)
    values = _values(template.name, template.document["params"], params, own)
    entry = {**_filled_in(own, values), **given}
    for word in _MERGED:
        if word in own and word in given:
            entry[word] = {**_filled(own[word], values), **given[word]}
    after = [str(each) for each in entry.pop("after", ())]
    wrong = [*misfits(entry), *_run_as_code(own, values)]
    request = None if wrong else request_of(entry, now, wrong)
    if request is None:
        raise TemplateError(wrong, len(wrong))
    following = tuple(parse_reference(each) for each in after)
    return request._replace(template=template.name, after=following)


def _left_over(job: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The template's own words that these words do not replace."""
    gone = {*given, *(_EXCLUDES[word] for word in given if word in _EXCLUDES)}
    own = {word: value for word, value in job.items() if word not in gone}
    for word in _MERGED:
        if word in job and isinstance(given.get(word), Mapping):
            own[word] = {key: text for key, text in job[word].items() if key not in given[word]}
    return own


# -- checking ----------------------------------------------------------------------------------


def _refuse_wrong(
    context: Context, name: str, entry: Mapping[str, Any], params: Mapping[str, str | None]
) -> None:
    check_word("template", name)
    kept = {word: value for word, value in entry.items() if word not in OF_ONE_JOB}
    wrong = list(misfits(kept))
    if not is_agent(kept) and bool(kept.get("argv")) == (kept.get("shell") is not None):
        wrong.append("give a command after --, or --shell STRING, and not both")
    if not wrong:
        wrong += _wrong_params(kept, params)
        wrong += _wrong_values(context, kept, params)
    alien = sorted(entry.keys() - kept.keys())
    wrong += [f"{word} is about one job; give it when you submit" for word in alien]
    if wrong:
        raise TemplateError(wrong, len(wrong))


def _wrong_params(entry: Mapping[str, Any], params: Mapping[str, str | None]) -> Iterator[str]:
    used = set(_places({word: entry[word] for word in FILLED if word in entry}))
    for each, default in params.items():
        if not PARAMETER.fullmatch(each):
            yield f"parameter {each!r} may have letters, digits and _, and begins with no digit"
        elif default is not None and not isinstance(default, str):
            yield f"parameter {each!r} has the default {default!r}, which is not a text"
        elif each not in used:
            shell = "; a line for a shell takes none" if "shell" in entry else ""
            yield f"parameter {each!r} is used nowhere; write {{{each}}} in the command{shell}"


def _run_as_code(entry: Mapping[str, Any], values: Mapping[str, str]) -> Iterator[str]:
    """Parameters whose value a shell would run; a value may also be the shell, or its option."""
    words = entry.get("argv", [])
    places = scripts(words) | scripts(_filled(words, values))
    for place, shell in sorted(places.items()):
        for name in dict.fromkeys(_places(words[place])):
            if name in values:
                yield as_code(name, shell)


def _wrong_values(
    context: Context, entry: Mapping[str, Any], params: Mapping[str, str | None]
) -> Iterator[str]:
    """The mistakes in each word by itself, and then in all of them together."""
    values = {name: default for name, default in params.items() if default is not None}
    where = _places([entry.get("argv", [""])[0], entry.get("cwd"), entry.get("stdin")])
    open_ = any(name in params and name not in values for name in where)
    samples = {**dict.fromkeys(params, "x"), **values}
    yield from _run_as_code(entry, samples)
    sample = _filled_in(entry, samples)
    check = False if open_ else not entry.get("no_check", False)
    command: dict[str, Any] = {
        word: sample[word] for word in ("argv", "shell", "cwd", "env", *OF_AGENTS) if word in sample
    }
    found = list(_problems(context, command, check))
    where_it_runs = {"argv": ["true"], **({"cwd": sample["cwd"]} if "cwd" in sample else {})}
    if is_agent(sample):  # words may mean more there than of a command
        where_it_runs = command
    for word in [each for each in sample if each not in command]:
        plain = {**where_it_runs, word: sample[word]}
        found += _problems(context, plain, word == "stdin" and check)
    yield from found or _problems(context, sample, check)


def _problems(context: Context, entry: Mapping[str, Any], check: bool) -> Iterator[str]:
    wrong: list[str] = []
    request = request_of(entry, context.clock.now(), wrong)
    if request is not None:
        try:
            specify(
                request._replace(check=check),
                environ=context.environ,
                working_directory=context.folder,
                no_check=context.no_check,
                place=(context.home, context.config),
            )
        except InvalidInputError as error:
            wrong.append(str(error))
    yield from wrong


# -- parameters --------------------------------------------------------------------------------


def _values(
    name: str,
    declared: Mapping[str, str | None],
    given: Mapping[str, str],
    entry: Mapping[str, Any],
) -> dict[str, str]:
    """The value of each parameter; one that is not declared, or is needed and missing, is wrong."""
    wrong = []
    for each in given:
        if each not in declared:
            there = f"there are {', '.join(declared)}" if declared else "it has none"
            wrong.append(f"template {name!r} has no parameter {each!r}; {there}")
        elif not isinstance(given[each], str):
            wrong.append(f"parameter {each!r} is {given[each]!r}; give a text")
    values = {each: default for each, default in declared.items() if default is not None}
    values |= {each: given[each] for each in given if each in declared}
    needed = set(_places({word: entry[word] for word in FILLED if word in entry}))
    wrong += [
        f"parameter {each!r} of template {name!r} has no value; give --param {each}=VALUE"
        for each in declared
        if each in needed and each not in values
    ]
    if wrong:
        raise TemplateError(wrong, len(wrong))
    return values


def _filled_in(entry: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    return {
        word: _filled(value, values) if word in FILLED else value for word, value in entry.items()
    }


def _filled(value: Any, values: Mapping[str, str]) -> Any:
    """A name in braces that is no parameter stays as it is: braces mean something to many
    programs."""
    if isinstance(value, str):
        return _PLACE.sub(lambda found: values.get(found[1], found[0]), value)
    if isinstance(value, Mapping):
        return {key: _filled(each, values) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [_filled(each, values) for each in value]
    return value


def _places(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from _PLACE.findall(value)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _places(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _places(each)
