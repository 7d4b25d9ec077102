"""The body of a delivery: what happened, and the document of the job as `jobs show` has it."""

import json
from collections.abc import Mapping
from typing import Any

from headway.base.units import show_instant
from headway.store.new_jobs import Event

LARGEST = 256 << 10
_ALWAYS = ("id", "name", "state", "status")


def body_of(type_: str, event: Event, epoch: str, job: Mapping[str, Any] | None) -> str:
    """ASCII, so that it is as many bytes as letters, and the same at every try."""
    document = _document(type_, event, epoch, job)
    text = _dump(document)
    if len(text) <= LARGEST:
        return text
    text = _dump(_without_details(document, job))
    if len(text) <= LARGEST:
        return text
    return _dump(_without_job(document, job))


def _document(
    type_: str, event: Event, epoch: str, job: Mapping[str, Any] | None
) -> dict[str, Any]:
    about = {"kind": event.kind, "actor": event.actor, "data": dict(event.data)}
    return {
        "type": type_,
        "timestamp": show_instant(event.at),
        "epoch": epoch,
        "sequence": event.seq,
        "data": {"job": job, "event": about},
    }


def _without_details(document: dict[str, Any], job: Mapping[str, Any] | None) -> dict[str, Any]:
    """Without what its submitter or its function may have made large."""
    short = dict(job or {})
    truncated = ["params"]
    short["params"] = None
    if short.get("run"):
        short["run"] = {**short["run"], "params_snapshot": None, "result": None}
        truncated += ["run.params_snapshot", "run.result"]
    data = {**document["data"], "job": short if job is not None else None}
    return {**document, "truncated": truncated, "data": data}


def _without_job(document: dict[str, Any], job: Mapping[str, Any] | None) -> dict[str, Any]:
    event = {**document["data"]["event"], "data": {}}
    short = {key: job.get(key) for key in _ALWAYS} if job is not None else None
    return {**document, "truncated": ["job", "event"], "data": {"job": short, "event": event}}


def _dump(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=True, separators=(",", ":"))
