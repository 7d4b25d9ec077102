"""Import the user's modules, with the folder of the project first on the path."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

from headway.base.errors import NotFoundError
from headway.schedules.jobsfile.model import LONGEST_ERROR
from headway.schedules.jobsfile.registry import REGISTRY


def use_folder(home: str) -> None:
    """Let modules of the project that this home is in be found."""
    folder = os.path.dirname(home)
    if folder in sys.path:
        sys.path.remove(folder)
    sys.path.insert(0, folder)


def try_import(module: str) -> str | None:
    """Why it cannot be imported, if so; one that exits is no reason to exit, either."""
    try:
        importlib.import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"module {module} cannot be imported: {last_words(error)}"
    return None


def is_path(run: str) -> bool:
    """Whether it is `module:function`, and not a registered name."""
    return ":" in run


def find_function(run: str) -> Callable[..., Any]:
    """The function that `run:` names, once the modules were imported. Raises NotFoundError."""
    if not is_path(run):
        if run not in REGISTRY.jobs:
            raise NotFoundError(
                f'no job {run!r} is registered: no module of app.modules has @headway.job("{run}")'
            )
        return REGISTRY.jobs[run]
    module, _, path = run.partition(":")
    trouble = try_import(module)
    if trouble is not None:
        raise NotFoundError(trouble)
    found: Any = sys.modules[module]
    for name in path.split("."):
        found = getattr(found, name, None)
    if not callable(found):
        raise NotFoundError(f"module {module} has no function {path!r}")
    function: Callable[..., Any] = found
    return function


def last_words(error: BaseException) -> str:
    words = "".join(traceback.format_exception_only(error)).strip()
    line = words.splitlines()[-1] if words else type(error).__name__
    return line[:LONGEST_ERROR].encode("utf-8", "backslashreplace").decode()
