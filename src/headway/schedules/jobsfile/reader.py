"""From the bytes of a jobs file to its entries, or to everything that is wrong with it.

A file is taken whole or not at all. Nothing here checks the world: whether a function, a condition
or a program exists is found out when the entry is due.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headway.base.errors import InvalidInputError, NotFoundError
from headway.schedules.jobsfile.keys import KEYS, MOST_ENTRIES, NEEDS, TYPES, KeyForm, fits
from headway.schedules.jobsfile.model import COMMAND, LOCAL, NAME, OPEN_PRS, Entry
from headway.schedules.jobsfile.nodes import LARGEST_FILE, Pair, YamlNode
from headway.schedules.jobsfile.problems import JobsFileError, Problem, Problems, brief, shown

__all__ = ["JobsFileError", "Problem", "file_content", "read_jobs_file"]

Mapped = Mapping[str, Pair]
_REMEDY = "write `jobs:` and below it entries"


def file_content(path: str) -> bytes:
    """The bytes of a jobs file, and not many more than it may have."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise InvalidInputError(f"{path} is not a file")
        with open(descriptor, "rb") as file:
            return file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise NotFoundError(f"there is no {path}") from None
    except OSError as error:
        raise InvalidInputError(f"cannot read {path}: {error.strerror}") from None


def read_jobs_file(content: bytes) -> list[Entry]:
    """The entries in the order of the file. Raises JobsFileError with all problems."""
    from headway.schedules.jobsfile.yaml import read_yaml  # most workers have no such file

    problems = Problems()
    root = read_yaml(content, problems)
    found = _jobs(root, problems)
    entries = [_entry(name, pair, problems) for name, pair in found.items()]
    problems.refuse()
    return [entry for entry in entries if entry is not None]


def _jobs(root: YamlNode | None, problems: Problems) -> Mapped:
    """The mapping under `jobs`, if there is one."""
    if root is None or root.value is None:
        problems.add(1, "", "it is empty; write `jobs: {}` if there are to be none")
        return {}
    if not isinstance(root.value, dict):
        problems.add(
            root.line, "", f"it is {shown(root.value)}; write `jobs:` and below it entries"
        )
        return {}
    for key, pair in root.value.items():
        if key != "jobs":
            problems.add(pair.line, brief(key), f"unknown key{_perhaps(key, ['jobs'])}")
    if "jobs" not in root.value:
        problems.add(root.line, "", f"it has no `jobs`; {_REMEDY}")
        return {}
    jobs = root.value["jobs"]
    if not isinstance(jobs.node.value, dict):
        remedy = "write entries below it, or `jobs: {}` if there are to be none"
        problems.add(jobs.line, "jobs", f"{shown(jobs.node.value)} is not a mapping; {remedy}")
        return {}
    if len(jobs.node.value) > MOST_ENTRIES:
        problems.add(jobs.line, "jobs", f"it has more than {MOST_ENTRIES:,} entries")
        return {}
    inside: Mapped = jobs.node.value
    return inside


def _entry(name: str, pair: Pair, problems: Problems) -> Entry | None:
    path = f"jobs.{brief(name)}"
    if not re.fullmatch(NAME, name):
        problems.add(
            pair.line,
            path,
            "the name may have letters, digits, _ - and ., at most 64 of them, and begins with a "
            "letter, a digit or _",
        )
    keys = pair.node.value
    if not isinstance(keys, dict):
        problems.add(pair.line, path, f"{shown(keys)} is not an entry; write its keys below it")
        return None
    kind = keys["type"].node.value if "type" in keys else None
    known = kind if isinstance(kind, str) and kind in TYPES else None
    fields: dict[str, Any] = {}
    for key, value in keys.items():
        form = _form_of(key, value, known, path, problems)
        if form is not None:
            _take(fields, key, value.node, form, f"{path}.{key}", problems)
    _check_together(keys, known, fields, pair.line, path, problems)
    if "type" not in fields:
        return None
    if kind == COMMAND and "run" in fields:
        fields["argv"] = fields.pop("run")
    return Entry(name=name, line=pair.line, **fields)


def _form_of(
    key: str, pair: Pair, kind: str | None, path: str, problems: Problems
) -> KeyForm | None:
    """The form of the key's value; None if the key must not be there, or if it is unknown."""
    if key not in KEYS:
        belong = [each for each in KEYS if kind is None or kind in KEYS[each].forms]
        where = f"{path}.{brief(key)}"
        problems.add(pair.line, where, f"unknown key{_perhaps(key, belong)}")
        return None
    forms = KEYS[key].forms
    if kind is None:
        return next(iter(forms.values())) if len(set(map(id, forms.values()))) == 1 else None
    if kind not in forms:
        owners = " or ".join(forms)
        problems.add(
            pair.line,
            f"{path}.{key}",
            f"it belongs to type {owners}, and this is {kind}; take it out",
        )
    return forms.get(kind)


def _take(
    fields: dict[str, Any], key: str, node: YamlNode, form: KeyForm, path: str, problems: Problems
) -> None:
    value = _bare(node)
    if not fits(value, form.schema):
        for line, what in _misfits(node, form):
            problems.add(line, path, f"{what}; write e.g. {form.example}")
        return
    try:
        fields[key] = form.make(value)
    except InvalidInputError as error:
        problems.add(node.line, path, brief(str(error), 200))


def _bare(node: YamlNode) -> Any:
    """The value without its places. Deep ones fit nothing, so one level is enough."""
    if isinstance(node.value, list):
        return [each.value for each in node.value]
    return node.value


def _misfits(node: YamlNode, form: KeyForm) -> Iterator[tuple[int, str]]:
    """Where it is wrong, and how: of a list, each item that does not fit."""
    choices = form.schema.get("anyOf", [form.schema])
    lists = [each for each in choices if "items" in each]
    if node.value is None:
        yield node.line, "it has no value"
    elif not lists or not isinstance(node.value, list):
        yield node.line, f"{shown(node.value)} is not {form.says}"
    elif not node.value:
        yield node.line, "the list is empty"
    elif len(node.value) > (most := lists[0]["maxItems"]):
        yield node.line, f"it has {len(node.value):,} items, at most {most:,} may be"
    else:
        wrong = (each for each in node.value if not fits(each.value, lists[0]["items"]))
        for each in wrong:
            yield each.line, f"{shown(each.value)} does not belong into {form.says}"


def _check_together(
    keys: Mapped,
    kind: str | None,
    fields: Mapping[str, Any],
    line: int,
    path: str,
    problems: Problems,
) -> None:
    """Check the rules that concern several keys. One that is misspelt is not missing, too."""
    unknown = [key for key in keys if key not in KEYS]
    present = {*keys, *(_nearest(key, list(KEYS)) for key in unknown)}
    if "type" not in present:
        problems.add(line, path, f"it has no type; write e.g. type: {TYPES[0]}")
    if "interval" not in present and "cron" not in present:
        problems.add(line, path, "it has no interval; write e.g. interval: 300, or a cron")
    if "interval" in keys and "cron" in keys:
        problems.add(keys["cron"].line, f"{path}.cron", "give interval or cron, not both")
    for key, needed in NEEDS.items():
        if key in keys and needed not in present:
            problems.add(keys[key].line, f"{path}.{key}", f"it needs {needed}; give that too")
    for key, form in _required(kind):
        if key not in present:
            text = f"type {kind} needs {key}; write e.g. {key}: {form.example}"
            problems.add(line, path, text)
    if fields.get("group") == LOCAL and OPEN_PRS in fields.get("conditions", ()):
        problem = f"{OPEN_PRS} asks the poll, whose data a local job has not; take one of them out"
        problems.add(keys["conditions"].line, f"{path}.conditions", problem)
    _check_cron(keys, fields, path, problems)


def _required(kind: str | None) -> Iterable[tuple[str, KeyForm]]:
    if kind is not None:
        for key, about in KEYS.items():
            if about.required and key != "type" and kind in about.forms:
                yield key, about.forms[kind]


def _check_cron(keys: Mapped, fields: Mapping[str, Any], path: str, problems: Problems) -> None:
    """The zone first, so that each complaint is about its own key."""
    if "cron" not in fields and "timezone" not in fields:
        return
    from headway.schedules.timing.rules import parse_cron

    zone = fields.get("timezone", "UTC")
    try:
        parse_cron("0 0 * * *", zone)
    except InvalidInputError as error:
        problems.add(keys["timezone"].node.line, f"{path}.timezone", brief(str(error), 200))
        zone = "UTC"
    if "cron" in fields:
        try:
            parse_cron(fields["cron"], zone)
        except InvalidInputError as error:
            problems.add(keys["cron"].node.line, f"{path}.cron", brief(str(error), 200))


def _perhaps(key: str, known: list[str]) -> str:
    near = _nearest(key, known)
    return f"; did you mean {near}?" if near else f"; there are {', '.join(known)}"


def _nearest(key: str, known: list[str]) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(key[:64], known, 1)), None)
