"""The worker as a unit of the user's own systemd.

A unit file is ours if it begins with our mark; another one at its place is never touched.
"""

import os
from contextlib import suppress
from typing import NamedTuple

from headway.admin.service.plan import MARK, ServicePlan, unit_text
from headway.admin.service.programs import START_SECONDS, ask, demand
from headway.base.errors import ConflictError, HeadwayError
from headway.base.whole_file import write_whole

_ABSENT = ("", "offline", "unknown")


class UnitState(NamedTuple):
    path: str
    current: bool  # what would be written now, but for the PATH, is what stands there
    enabled: bool
    active: str  # in systemd's words
    result: str  # why it is not active, in systemd's words
    lingers: bool | None  # None: nobody can say


def manager_is_there() -> bool:
    """Whether this user has a systemd of their own that answers."""
    return ask("systemctl", ["--user", "is-system-running"]).out.strip() not in _ABSENT


def unit_path(plan: ServicePlan) -> str:
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    base = configured if os.path.isabs(configured) else os.path.expanduser("~/.config")
    return os.path.join(base, "systemd", "user", plan.unit)


def state(plan: ServicePlan) -> UnitState | None:
    """How the unit stands; None if there is none of ours."""
    path = unit_path(plan)
    text = _read(path)
    if text is None or not text.startswith(MARK):
        return None
    return UnitState(
        path,
        _compared(text) == _compared(unit_text(plan)),
        ask("systemctl", ["--user", "is-enabled", plan.unit]).out.strip() == "enabled",
        ask("systemctl", ["--user", "is-active", plan.unit]).out.strip() or "unknown",
        _shown(["--user", "show", "--property=Result", "--value", plan.unit]),
        lingers(),
    )


def install(plan: ServicePlan) -> bool:
    """Have the unit there, enabled and running; False if it was so already."""
    path, text = unit_path(plan), unit_text(plan)
    before = _read(path)
    if before is not None and not before.startswith(MARK):
        raise ConflictError(f"{path} is there and not ours; move it away")
    found = state(plan)
    if before == text and found and found.enabled and found.active == "active":
        return False
    if before != text:
        _write(path, text)
    try:
        demand("systemctl", ["--user", "daemon-reload"])
        demand("systemctl", ["--user", "enable", plan.unit])
    except HeadwayError:
        if before is None:
            _take_away(plan)
        elif before != text:
            _write(path, before)
        raise
    # Also one that runs already: it may have been started by another text. Jobs go on.
    demand("systemctl", ["--user", "restart", plan.unit], seconds=START_SECONDS)
    return True


def remove(plan: ServicePlan) -> bool:
    """Stop the worker, whose jobs go on, and take the unit away; False if there was none."""
    path = unit_path(plan)
    text = _read(path)
    if text is None:
        return False
    if not text.startswith(MARK):
        raise ConflictError(f"{path} is not ours; it is left as it is")
    if manager_is_there():
        demand("systemctl", ["--user", "disable", "--now", plan.unit], seconds=START_SECONDS)
    _take_away(plan)
    return True


def _take_away(plan: ServicePlan) -> None:
    path = unit_path(plan)
    wanted = os.path.join(os.path.dirname(path), "default.target.wants", plan.unit)
    for each in (path, wanted):
        with suppress(FileNotFoundError):
            os.unlink(each)
    ask("systemctl", ["--user", "daemon-reload"])


def _compared(text: str) -> list[str]:
    """Without the PATH, which is another one in many a shell."""
    return [line for line in text.splitlines() if "PATH=" not in line]


def lingers() -> bool | None:
    """Whether this user's systemd lives while they are logged out; None: nobody can say."""
    answer = _shown(["show-user", str(os.getuid()), "--property=Linger", "--value"], "loginctl")
    return {"yes": True, "no": False}.get(answer)


def _shown(words: list[str], program: str = "systemctl") -> str:
    answer = ask(program, words)
    return answer.out.strip() if answer.code == 0 else ""


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HeadwayError(f"cannot read {path}: {error.strerror}") from error


def _write(path: str, text: str) -> None:
    """Readable by all, as units are: there is no secret in it."""
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        write_whole(path, text, mode=0o644)
    except OSError as error:
        raise HeadwayError(f"cannot write {path}: {error.strerror}") from error
