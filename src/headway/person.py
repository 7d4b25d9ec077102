"""Who decides, where a person is asked: by which name, and whether it is a person at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headway.errors import ConflictError
from headway.git.layout import repository_of
from headway.git.program import GitError, run
from headway.supervise.inside import surrounding_claim

if TYPE_CHECKING:
    from headway.client import Client

LONGEST_NAME = 200


def who_decides(environ: Mapping[str, str], folder: str) -> str | None:
    """`HEADWAY_ACTOR`, else the job that this runs in, else the git identity here; None: the login
    is all that is known. A job has no name of its own, so it never acts by its owner's."""
    if environ.get("HEADWAY_ACTOR"):
        return environ["HEADWAY_ACTOR"]
    inside = surrounding_claim(environ)
    if inside is not None:
        return inside[1] or "a job"
    return git_identity(folder)


def git_identity(folder: str) -> str | None:
    """`Ada <ada@example.org>`, as commits made in this folder's repository would be signed."""
    repo = repository_of(folder)
    if repo is None:
        return None
    try:
        answer = run(repo, "config", "--get-regexp", "-z", r"^user\.(name|email)$")
    except GitError:
        return None
    found = {}
    for entry in os.fsdecode(answer.out).split("\0"):
        name, _, value = entry.partition("\n")
        found[name] = _tidy(value)  # the last one counts, as it does for git
    name, email = found.get("user.name", ""), found.get("user.email", "")
    return f"{name} <{email}>" if name and email else name or email or None


def _tidy(text: str) -> str:
    kept = "".join(char for char in text if char.isprintable())
    return kept.strip()[:LONGEST_NAME]


def require_person(client: Client, verb: str) -> None:
    """Refuse a process inside a job: a guard against accident, not against malice, since a job may
    do what its owner may."""
    if client.config["approval.from_jobs"]:
        return
    inside = surrounding_claim(client.environ)
    if inside is None:
        return
    token, job = inside
    if job is None:
        with client.store.read() as tx:
            claim = tx.claims([token]).get(token)
        job = f"job-{claim.job_id}" if claim is not None else "a job"
    raise ConflictError(
        f"this runs inside {job}, and a job may not {verb}: a person decides. "
        "To allow it: headway config set approval.from_jobs true"
    )


def refuse_inside_job(environ: Mapping[str, str], verb: str) -> None:
    """The same for what no setting allows."""
    inside = surrounding_claim(environ)
    if inside is not None:
        job = inside[1] or "a job"
        raise ConflictError(f"this runs inside {job}, and a job may not {verb}: a person decides")
