"""The files of the modules that app.modules names; nothing is imported to find them."""

import json
import os

from headway.base.home import Home
from headway.functions.pool.host import SETTINGS


def module_file(home: Home, name: str) -> str | None:
    """Where it would be imported from, as far as that is in the project."""
    path = os.path.join(os.path.dirname(home.path), *name.split("."))
    found = [each for each in (f"{path}.py", f"{path}/__init__.py") if os.path.exists(each)]
    return found[0] if found else None


def changed_modules(home: Home) -> list[str]:
    """The modules whose files are newer than the last host of functions that imported them. What
    they import themselves is not known here. An older host may finish what it has begun."""
    imported: dict[str, float] = {}
    for token in _hosts(home):
        try:
            with open(os.path.join(home.host(token), SETTINGS), encoding="utf-8") as file:
                since = os.fstat(file.fileno()).st_mtime
                for name in json.load(file)["modules"]:
                    imported[name] = max(since, imported.get(name, 0.0))
        except (OSError, ValueError, KeyError):
            continue  # it is made or removed in this moment
    return sorted(name for name, since in imported.items() if _changed_at(home, name) > since)


def _hosts(home: Home) -> list[str]:
    try:
        return os.listdir(home.hosts)
    except FileNotFoundError:
        return []


def _changed_at(home: Home, module: str) -> float:
    path = module_file(home, module)
    try:
        return os.stat(path).st_mtime if path is not None else 0.0
    except FileNotFoundError:
        return 0.0
