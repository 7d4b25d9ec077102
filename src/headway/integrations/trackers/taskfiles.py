"""A folder of task files: Markdown with front matter, or TOML. The id is the name of the file.

`title`, `state` (open, in_progress, closed), `kind` (task, group, tree), `depends_on`, `children`,
`parent`; all may be left out. A file with children, or that others call their parent, is a tree. A
file that cannot be read concerns its own item, and those that depend on it. It stays the child of
the parent that it names, if that much can be read. Otherwise it is reported as a trouble of the
folder, since it is unknown where it belongs.
"""

import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from headway.base.errors import SourceError
from headway.core.subjects import SUBJECT, Item, ItemKind, ItemState
from headway.integrations.trackers.bounded_files import one_line, read_bounded
from headway.integrations.trackers.model import Seen

MOST_FILES = 10_000
MOST_BYTES = 1 << 20
MOST_TROUBLES = 10
ENDINGS = (".md", ".toml")
_FRONT = re.compile(r"\A(---|\+\+\+)[ \t]*\r?\n(.*?)^\1[ \t]*$", re.S | re.M)
_HEADING = re.compile(r"^#[ \t]+(.+?)[ \t#]*$", re.M)
_ENTRY = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*)[ \t]*:(?:[ \t]+(.*))?")
_PARENT = re.compile(r"""^parent[ \t]*[:=][ \t]*["']?([^\s"'#]+)""", re.M)
_LISTS = ("depends_on", "children")
_WORDS = ("title", "state", "kind", "parent")
_DONE = {"done": "closed", "todo": "open"}


class TaskFiles:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._tasks: dict[str, Mapping[str, Any]] | None = None
        self._children: dict[str, list[str]] = {}
        self._troubles: list[str] = []

    def look(self, subjects: Collection[str]) -> Seen:
        if self._tasks is None:
            self._tasks = self._read()
        known = [each for each in dict.fromkeys(subjects) if each in self._tasks]
        items = {each: self._item(each, self._tasks) for each in known}
        return Seen(items, tuple(self._troubles))

    def _read(self) -> dict[str, Mapping[str, Any]]:
        try:
            names = sorted(os.listdir(self._folder))
        except OSError as error:
            raise SourceError(f"{self._folder} cannot be read: {error.strerror}") from None
        files = [each for each in names if each.endswith(ENDINGS) and not each.startswith(".")]
        if len(files) > MOST_FILES:
            raise SourceError(f"{self._folder} has more than {MOST_FILES} task files")
        tasks: dict[str, Mapping[str, Any]] = {}
        for file in files:
            name = os.path.splitext(file)[0]
            if not SUBJECT.fullmatch(name):
                continue
            task = self._task(os.path.join(self._folder, file))
            if name in tasks:
                parent = tasks[name].get("parent") or task.get("parent")
                task = {"trouble": f"there are two files for {name}", "parent": parent}
            tasks[name] = task
        self._relate(tasks)
        return tasks

    def _relate(self, tasks: Mapping[str, Mapping[str, Any]]) -> None:
        claimed = {each for task in tasks.values() for each in task.get("children", ())}
        for name, task in tasks.items():
            if task.get("parent"):
                self._children.setdefault(task["parent"], []).append(name)
            elif "trouble" in task and name not in claimed:
                self._troubles.append(task["trouble"])
        del self._troubles[MOST_TROUBLES:]

    def _task(self, path: str) -> Mapping[str, Any]:
        text = ""
        try:
            text = read_bounded(path, MOST_BYTES, follow=False).decode()
            return _checked(_toml(text) if path.endswith(".toml") else _markdown(text))
        except (SourceError, ValueError) as error:
            reason = str(error).removeprefix(f"{path} ")
            return {"trouble": f"{path}: {one_line(reason)}", "parent": _named_parent(text)}

    def _item(self, name: str, tasks: Mapping[str, Mapping[str, Any]]) -> Item:
        task = tasks[name]
        if "trouble" in task:
            return Item(name, trouble=task["trouble"])
        depends_on, children = task.get("depends_on", ()), list(task.get("children", ()))
        unknown = [each for each in (*depends_on, *children) if each not in tasks]
        if unknown:
            return Item(name, trouble=f"{name} names {unknown[0]}, which is not there")
        children += self._children.get(name, [])
        kind = task.get("kind") or (ItemKind.TREE if children else ItemKind.TASK)
        return Item(
            id=name,
            title=one_line(task.get("title") or name),
            state=ItemState(task.get("state", "open")),
            kind=ItemKind(kind),
            blockers=tuple(each for each in depends_on if tasks[each].get("state") != "closed"),
            children=tuple(dict.fromkeys(children)),
        )


def _named_parent(text: str) -> str | None:
    """The parent that a broken file names, as far as that can be seen."""
    front = _FRONT.match(text)
    named = _PARENT.search(front[2] if front else text)
    return named[1] if named and SUBJECT.fullmatch(named[1]) else None


def _toml(text: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(text)


def _markdown(text: str) -> dict[str, Any]:
    front = _FRONT.match(text)
    fields: dict[str, Any] = {}
    if front:
        fields = _toml(front[2]) if front[1] == "+++" else _yaml_like(front[2].splitlines())
    elif text.startswith(("---\n", "+++\n")):
        raise ValueError("its front matter does not end")
    heading = _HEADING.search(text, front.end() if front else 0)
    if "title" not in fields and heading:
        fields["title"] = heading[1]
    return fields


def _yaml_like(lines: Iterable[str]) -> dict[str, Any]:
    """`key: value`, `key: [a, b]`, and a list of `- a` lines: what front matter is made of. What
    is nested belongs to other programs."""
    fields: dict[str, Any] = {}
    key = None
    for line in lines:
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        if stripped.startswith("- ") or stripped == "-":
            if key is not None and not fields[key]:
                fields[key] = []
            if key is not None and isinstance(fields[key], list):
                fields[key].append(_scalar(stripped[1:]))
            continue
        entry = _ENTRY.fullmatch(stripped)
        if line[:1] in (" ", "\t") or entry is None:
            continue
        key = entry[1]
        fields[key] = _value(entry[2] or "")
    return fields


def _value(text: str) -> Any:
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return [_scalar(each) for each in text[1:-1].split(",") if each.strip()]
    return _scalar(text)


def _scalar(text: str) -> str:
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text.partition(" #")[0].rstrip()


def _checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Our fields; the others belong to other programs."""
    task: dict[str, Any] = {}
    for name in _WORDS:
        value = fields.get(name)
        if value is None or value == "":
            continue
        if not isinstance(value, str):
            raise ValueError(f"its {name} is no text")
        task[name] = value
    for name in _LISTS:
        value = fields.get(name) or []
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(
            isinstance(each, str) and SUBJECT.fullmatch(each) for each in listed
        ):
            raise ValueError(f"its {name} is no list of ids")
        task[name] = tuple(dict.fromkeys(listed))
    state = task.get("state", "open").replace("-", "_").lower()
    task["state"] = _DONE.get(state, state)
    for name, words in (("state", ItemState), ("kind", ItemKind)):
        if name in task and task[name] not in list(words):
            raise ValueError(f"its {name} {task[name]!r} is not one of {', '.join(words)}")
    return task
