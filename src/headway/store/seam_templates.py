"""The part of the seam that is about templates, and about what could not be launched."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from headway.core.model import HostTrouble, Job, JobId, WaitKind


class Template(NamedTuple):
    """A stored specification. `document` is what was checked when it was added; jobs have copies
    of it, so no change of a template reaches a job."""

    name: str
    document: Mapping[str, Any]
    created_at: int
    created_by: str
    archived_at: int | None = None


class OpenBreaker(NamedTuple):
    """Why a host starts nothing but probes, and since when."""

    host_id: str
    trouble: HostTrouble
    opened_at: int


class ReadsTemplates(Protocol):
    def templates(self, names: Sequence[str]) -> dict[str, Template]: ...
    def all_templates(self) -> list[Template]: ...
    def open_breakers(self) -> list[OpenBreaker]: ...
    def struck_jobs(self, limit: int) -> tuple[int, list[Job]]:
        """How many wait after a failed launch, and the first of them."""

    def circuit_broken(self, since: int, limit: int) -> tuple[int, list[Job]]:
        """How many ended since then because they could not be launched, and the latest."""


class WritesTemplates(ReadsTemplates, Protocol):
    def put_template(self, template: Template) -> None:
        """In the place of one of the same name, if there is one."""

    def archive_template(self, name: str) -> bool: ...
    def strike_out(self, job_id: JobId, token: str, failures: int, cause: str) -> None:
        """Count the failed launch that ends a running job; nothing, if its claim has ended."""

    def cool_down(self, job_id: JobId, kind: WaitKind, cause: str) -> None:
        """Say of a job that waits for its time that it does so after launches that failed."""
