"""Artifacts as people and jobs see them: publish one from inside a job, list them, show one.

Only a running job publishes, and only in its own name: the claim that it runs under is compared in
the transaction that writes, so one that was given up can no longer say anything.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway.base.errors import ConflictError, InvalidInputError, NotFoundError
from headway.base.units import show_instant
from headway.core.artifacts import (
    IN_REPOSITORY,
    ArtifactKey,
    ArtifactKind,
    artifact_key,
    parse_artifact,
    split_key,
)
from headway.core.facts import Answer, ArtifactView, Facts
from headway.core.gates.graph import where_to_look
from headway.core.model import Job, JobId, Question, shown
from headway.core.states import Status
from headway.integrations.git.layout import repository_of
from headway.integrations.probes import answers_to
from headway.jobs.context import Context
from headway.jobs.lifecycle import publish as mark
from headway.jobs.repository_gates import resolved_artifact
from headway.store.records import Marker
from headway.store.transaction import ReadTx, WriteTx

LARGEST_DATA = 1 << 20
MOST_LISTED = 1000
MOST_JOBS = 100  # of those that make or need one artifact


def publish(context: Context, type_: str, key: str, data: Any = None) -> tuple[str, JobId]:
    """Say that `custom:TYPE:KEY` is there, made by the job that this runs in; published again, it
    carries what is given now."""
    artifact = parse_artifact(f"{ArtifactKind.CUSTOM}:{type_}:{key}").text
    job_id, token = _surrounding(context)

    def write(tx: WriteTx) -> None:
        claim = tx.claims.of_job(job_id)
        if claim is None or claim.token != token:
            raise ConflictError(
                f"{shown(job_id)} no longer runs under this claim; {artifact} was not published"
            )
        chain = tx.jobs.by_id([job_id])[job_id].chain
        tx.graph.made_one_again(artifact, chain)
        mark(tx, [Marker(artifact, job_id, tx.now(), data)], actor=context.actor)

    context.store.transact(write)
    context.wake()
    return artifact, job_id


def _surrounding(context: Context) -> tuple[JobId, str]:
    environ = context.environ
    job, token = environ.get("HEADWAY_JOB_ID", ""), environ.get("HEADWAY_CLAIM")
    number = job.removeprefix("job-")
    if not token or not number.isdigit():
        raise InvalidInputError(
            "only a running command publishes, and this is not inside one: "
            "HEADWAY_JOB_ID and HEADWAY_CLAIM are not set"
        )
    if environ.get("HEADWAY_HOME") != context.home.path:
        raise InvalidInputError(
            f"{job} belongs to {environ.get('HEADWAY_HOME')}, not to {context.home.path}; "
            "leave out --home"
        )
    return int(number), token


def parse_data(content: bytes, where: str) -> Any:
    """The JSON that is to be published; whole, or an error that says where it is wrong."""
    if len(content) > LARGEST_DATA:
        raise InvalidInputError(f"{where} is larger than 1 MiB; publish where it is instead")
    try:
        value = json.loads(content, parse_constant=_refuse_constant)
        json.dumps(value, allow_nan=False)
    except json.JSONDecodeError as error:
        raise InvalidInputError(
            f"{where} is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{where} is not text: byte {error.start} is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{where} is not JSON: {error}") from None
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


def list_artifacts(context: Context) -> tuple[list[dict[str, Any]], int]:
    """The artifacts that were published, or that active jobs make or need; and how many are left
    out."""
    with context.store.read() as tx:
        marked = {each.artifact: each for each in tx.graph.newest_markers(MOST_LISTED + 1)}
        keys = list(dict.fromkeys([*marked, *tx.graph.declared_artifacts()]))
        listed = sorted(keys[:MOST_LISTED])
        views = tx.graph.artifact_views(listed)
        consumers = tx.graph.consumers(listed)
    states = _states(context, listed, views, marked)
    return [
        {
            **_named(key),
            **states[key],
            **_published(marked.get(key)),
            "producers": [shown(each.job_id) for each in views[key].producers[:MOST_JOBS]],
            "consumers": [shown(each) for each in consumers.get(key, ())[:MOST_JOBS]],
        }
        for key in listed
    ], len(keys) - len(listed)


def show_artifact(context: Context, text: str, folder: str) -> dict[str, Any]:
    """All about one artifact, as it is named in this folder."""
    resolved = resolved_artifact(text, folder)
    in_repository = parse_artifact(resolved).kind in IN_REPOSITORY
    key = artifact_key(resolved, repository_of(folder) if in_repository else None)
    with context.store.read() as tx:
        markers = sorted(
            tx.graph.markers([key]), key=lambda each: (each.at, each.job_id), reverse=True
        )
        view = tx.graph.artifact_views([key])[key]
        consumers = tx.graph.consumers([key]).get(key, [])
        if not markers and not view.producers and not consumers:
            raise NotFoundError(
                f"no job has published, makes or needs {resolved}; `headway artifacts list`"
            )
        newest = markers[0] if markers else None
        return {
            **_named(key),
            **_states(context, [key], {key: view}, {key: newest})[key],
            **_published(newest),
            "data": newest.data if newest else None,
            "published": [_published(each) for each in markers[:MOST_JOBS]],
            "producers": _jobs(tx, [each.job_id for each in view.producers]),
            "consumers": _jobs(tx, consumers),
        }


def without_producers(context: Context, job_ids: Sequence[JobId]) -> list[tuple[JobId, str]]:
    """What these jobs need, is not there, and no job makes; each with the first that needs it."""
    needed: dict[ArtifactKey, JobId] = {}
    with context.store.read() as tx:
        for job_id, job in tx.jobs.by_id(job_ids).items():
            for text in job.needs:
                needed.setdefault(artifact_key(text, job.repo), job_id)
        views = tx.graph.artifact_views(list(needed))
    alone = [key for key in needed if not views[key].producers]
    states = _states(context, alone, views, {}) if alone else {}
    missing = (key for key in alone if states[key]["state"] != "present")
    return [(needed[key], split_key(key)[0]) for key in missing]


def _named(key: ArtifactKey) -> dict[str, Any]:
    text, repo = split_key(key)
    return {"artifact": text, "kind": text.partition(":")[0], "repo": repo}


def _published(marker: Marker | None) -> dict[str, Any]:
    return {
        "published_by": shown(marker.job_id) if marker else None,
        "published_at": show_instant(marker.at) if marker else None,
        "withdrawn_at": show_instant(marker.withdrawn_at) if marker else None,
    }


def _jobs(tx: ReadTx, ids: Sequence[JobId]) -> list[dict[str, Any]]:
    jobs: Iterable[Job] = tx.jobs.readable(ids[:MOST_JOBS]).values()
    return [{"id": shown(job.id), "name": job.name, "state": job.status.value} for job in jobs]


def _states(
    context: Context,
    keys: Sequence[ArtifactKey],
    views: Mapping[ArtifactKey, ArtifactView],
    markers: Mapping[ArtifactKey, Marker | None],
) -> dict[ArtifactKey, dict[str, Any]]:
    """For each: whether it is there, by the rule of the gate, after a probe where one is needed."""
    facts = Facts(now=0, home=context.home.path, jobs_folder=context.home.jobs)
    asked: dict[ArtifactKey, Question] = {}
    for key in keys:
        text, repo = split_key(key)
        question = where_to_look(parse_artifact(text), repo, facts, views[key])
        if question is not None and not views[key].published and not views[key].withdrawn:
            asked[key] = question
    answers = answers_to(asked.values(), context.config.conditions)
    seen = {key: answers[question] for key, question in asked.items()}
    return {key: _state(key, views[key], markers.get(key), seen.get(key)) for key in keys}


def _state(
    key: ArtifactKey, view: ArtifactView, marker: Marker | None, answer: Answer | None
) -> dict[str, Any]:
    patch = key.startswith(f"{ArtifactKind.COMMAND_PATCH}:")
    made = patch and any(each.status is Status.SUCCEEDED for each in view.producers)
    if view.published or (answer is not None and answer.found) or (made and not view.withdrawn):
        return {"state": "present", "trouble": None}
    if view.withdrawn or (marker is not None and marker.withdrawn_at is not None):
        return {"state": "withdrawn", "trouble": None}
    return {"state": "missing", "trouble": answer.trouble if answer else None}


def read_data(name: str) -> bytes:
    """The content that `--data` names: a file, or `-` for standard input; never much more than is
    allowed."""
    try:
        with open(0 if name == "-" else name, "rb", closefd=name != "-") as file:
            return file.read(LARGEST_DATA + 1)
    except FileNotFoundError:
        raise NotFoundError(f"--data: there is no file {os.path.abspath(name)}") from None
    except OSError as error:
        raise InvalidInputError(f"--data {name}: {error.strerror}") from None
