"""The two records a supervisor leaves behind: that it started, and how it ended.

An outcome carries its version, its token and a checksum over all of its fields; whatever does not
add up is no outcome. A start record that is there but unreadable still says that something started.
"""

from __future__ import annotations

import json
import zlib

VERSION = 1
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False)
_LATER = (
    "changed",
    "outputs",
    "patch",
    "unmade",
    "verdict",
)  # unknown to the first release, and only there if needed
REASONS = ("exited", "signalled", "timed_out", "cancelled", "log_full", "spawn_error")

_NONE = type(None)
_FORM_OF_A_START: dict[str, tuple[type, ...]] = {
    "boot_id": (str,),
    "supervisor_pid": (int,),
    "supervisor_start": (int,),
    "child_pid": (int,),
    "child_start": (int,),
    "cgroup": (str, _NONE),
    "started_at": (int,),
}
_FORM_OF_AN_OUTCOME: dict[str, tuple[type, ...]] = {
    "exit_code": (int, _NONE),
    "signal": (str, _NONE),
    "wait_status": (int, _NONE),
    "errno": (int, _NONE),
    "error": (str, _NONE),
    "started_at": (int,),
    "finished_at": (int,),
    "usage": (dict,),
    "logs": (dict,),
    "tree": (str,),
    "outputs": (dict, _NONE),
    "patch": (dict, _NONE),
    "unmade": (list, _NONE),
    "verdict": (dict, _NONE),
}
_FORM_OF_A_LOG: dict[str, tuple[type, ...]] = {"bytes": (int,), "dropped": (int,)}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Started:
    """The processes of a claim, written before the command is let go."""

    __slots__ = (
        "boot_id",
        "cgroup",
        "child_pid",
        "child_start",
        "started_at",
        "supervisor_pid",
        "supervisor_start",
    )

    def __init__(
        self,
        *,
        boot_id: str,
        supervisor_pid: int,
        supervisor_start: int,
        child_pid: int,
        child_start: int,
        cgroup: str | None,
        started_at: int,
    ) -> None:
        self.boot_id = boot_id
        self.supervisor_pid = supervisor_pid
        self.supervisor_start = supervisor_start
        self.child_pid = child_pid
        self.child_start = child_start
        self.cgroup = cgroup
        self.started_at = started_at

    def to_json(self) -> bytes:
        return _encode({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_json(cls, content: bytes) -> Started:
        """The record; a damaged one names no process, but still says that one was started."""
        try:
            fields = json.loads(content)
            _refuse_other_forms(fields, _FORM_OF_A_START)
            return cls(**{name: fields[name] for name in cls.__slots__})
        except (ValueError, KeyError, TypeError, RecursionError):
            return cls(
                boot_id="",
                supervisor_pid=0,
                supervisor_start=0,
                child_pid=0,
                child_start=0,
                cgroup=None,
                started_at=0,
            )


class OutcomeRecord:
    """How a claim ended. Times are µs UTC; the bytes of a log count also those dropped."""

    __slots__ = (
        "changed",
        "core_dumped",
        "errno",
        "error",
        "exit_code",
        "finished_at",
        "job",
        "logs",
        "outputs",
        "patch",
        "reason",
        "signal",
        "started_at",
        "token",
        "tree",
        "unmade",
        "usage",
        "verdict",
        "wait_status",
    )

    def __init__(
        self,
        *,
        token: str,
        job: int,
        reason: str,
        exit_code: int | None = None,
        signal: str | None = None,
        wait_status: int | None = None,
        errno: int | None = None,
        error: str | None = None,
        started_at: int,
        finished_at: int,
        usage: dict[str, float],
        logs: dict[str, dict[str, int]],
        tree: str,
        core_dumped: bool = False,
        patch: dict[str, Any] | None = None,
        verdict: dict[str, Any] | None = None,
        changed: bool | None = None,
        unmade: list[str] | None = None,
        outputs: dict[str, int] | None = None,
    ) -> None:
        self.token = token
        self.job = job
        self.reason = reason
        self.exit_code = exit_code
        self.signal = signal
        self.wait_status = wait_status
        self.errno = errno
        self.error = error
        self.started_at = started_at
        self.finished_at = finished_at
        self.usage = usage
        self.logs = logs
        self.tree = tree
        self.core_dumped = core_dumped
        self.patch = patch  # whether it was saved, for a job that asked for one
        self.changed = changed  # of a spawn_error: nothing failed, its gates would object now
        self.outputs = outputs  # size and checksum of the file of outputs, of a workflow's node
        self.unmade = unmade  # of a success: files that it was to make, and that are not there
        self.verdict = verdict  # why it failed, of a job whose main process says so

    def to_json(self) -> bytes:
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        for name in _LATER:
            if fields[name] is None:
                del fields[name]
        fields["version"] = VERSION
        fields["checksum"] = _checksum(fields)
        return _encode(fields)

    @classmethod
    def from_json(cls, content: bytes, *, token: str) -> OutcomeRecord | None:
        """The outcome of that token; None if torn, damaged, foreign or of an unknown version."""
        try:
            fields = json.loads(content)
            if fields.pop("checksum") != _checksum(fields):
                return None
            if fields.pop("version") != VERSION or fields["token"] != token:
                return None
            if fields["reason"] not in REASONS:
                return None
            for name in _LATER:
                fields.setdefault(name, None)
            _refuse_other_forms(fields, _FORM_OF_AN_OUTCOME)
            for log in fields["logs"].values():
                _refuse_other_forms(log, _FORM_OF_A_LOG)
            return cls(**{name: fields[name] for name in cls.__slots__})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


def _refuse_other_forms(fields: dict[str, Any], form: dict[str, tuple[type, ...]]) -> None:
    """The job itself can write into its folder: what is not of our form is not ours, and nobody is
    to stumble over it later."""
    for name, types in form.items():
        if type(fields[name]) not in types:
            raise TypeError(name)


def _checksum(fields: dict[str, Any]) -> str:
    return f"crc32:{zlib.crc32(_encode(fields)):08x}"


def _encode(fields: dict[str, Any]) -> bytes:
    return _ENCODER.encode(fields).encode()
