"""How people write which job they mean: an id in several spellings, or a slug."""

import re
from collections.abc import Iterable

from headway.base.errors import InvalidInputError, NotFoundError
from headway.core.model import JobId

SLUG = re.compile(r"[A-Za-z0-9._-]{1,64}")
JOB_ID = re.compile(r"(?:job-|#)?([1-9][0-9]{0,17})")
RUN_ID = re.compile(r"wf-([1-9][0-9]{0,17})")  # of a workflow


def check_slug(slug: str) -> None:
    """Whether a job may get this slug: no command may take it for an id or an option."""
    if JOB_ID.fullmatch(job_of_run(slug)):
        raise InvalidInputError(
            f"slug {slug!r} looks like the id of a job; put a word before it, as build-{slug}"
        )
    if RUN_ID.fullmatch(slug):
        raise InvalidInputError(f"slug {slug!r} looks like a run of a workflow; use another word")
    if not SLUG.fullmatch(slug) or slug.startswith("-"):
        raise InvalidInputError(
            f"slug {slug!r} may have letters, digits, '.', '_', '-', at most 64 of them, and does "
            "not begin with '-'"
        )


def parse_job_id(text: str) -> JobId:
    match = JOB_ID.fullmatch(text.strip())
    if not match:
        raise NotFoundError(f"{text!r} is not a job; write it like job-24 or 24")
    return int(match[1])


def parse_reference(text: str) -> JobId | str:
    """The id of a job, or a slug, which is a name that only a store can find."""
    text = text.strip()
    return text if SLUG.fullmatch(text) and not JOB_ID.fullmatch(text) else parse_job_id(text)


def runs_among(references: Iterable[JobId | str]) -> tuple[int, ...]:
    """The workflow runs among what a job is to follow: `wf-7` is the whole of it."""
    texts = (each.strip() for each in references if isinstance(each, str))
    found = (RUN_ID.fullmatch(each) for each in texts)
    return tuple(dict.fromkeys(int(each[1]) for each in found if each))


def job_of_run(text: str) -> str:
    """How the job is called that a run or a job is named for: a run has its number."""
    number = text.strip().removeprefix("run-")
    return number if JOB_ID.fullmatch(number) else text
