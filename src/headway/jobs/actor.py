"""The person behind a decision: the name, and whether it is a person at all."""

from __future__ import annotations

import os
from collections.abc import Mapping

from headway.base.errors import ConflictError
from headway.core.principals import PERSON
from headway.integrations.git.layout import repository_of
from headway.integrations.git.program import GitError, run
from headway.jobs.context import Context
from headway.supervise.inside import surrounding_claim

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


def require_person(context: Context, verb: str) -> None:
    """Refuse an agent, and a process inside a job. The latter is a guard against accident, not
    against malice, since a job may do what its owner may. Who asks through a server is judged by
    the process at the other end, and not by the server's."""
    if context.kind != PERSON:
        raise ConflictError(f"{context.actor} may not {verb}: a person decides")
    if context.config["approval.from_jobs"]:
        return
    if context.pid is None:
        return
    inside = surrounding_claim(context.environ, context.pid)
    if inside is None:
        return
    token, job = inside
    if job is None:
        with context.store.read() as tx:
            claim = tx.claims.by_token([token]).get(token)
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
