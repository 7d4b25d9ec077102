"""What an error is over HTTP: one table over the tree of exceptions (RFC 9457).

`detail` is the message that the command line prints, and `exit_code` the code that it would exit
with. A program's own mistake gives only the id of the request; the log has the rest.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from headway.base import errors
from headway.base.shapes import WrongRequestError

PREFIX = "urn:headway:problem:"  # docs/http.md has the list


class HttpProblem(errors.HeadwayError):
    """A refusal that only HTTP knows."""

    def __init__(
        self, status: int, title: str, detail: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title
        self.headers = dict(headers or {})


class ForbiddenError(HttpProblem):
    """The caller is known and may not do this."""

    def __init__(self, detail: str) -> None:
        super().__init__(403, "forbidden", detail)


class _Meaning(NamedTuple):
    status: int
    title: str
    headers: tuple[tuple[str, str], ...] = ()


_AGAIN = (("Retry-After", "1"),)

# The first class of an error's own line of ancestors that stands here counts.
MEANINGS: Mapping[type[Exception], _Meaning] = {
    errors.NotFoundError: _Meaning(404, "not-found"),
    errors.KeyReusedError: _Meaning(422, "key-reused"),
    errors.ChangedMeanwhileError: _Meaning(412, "changed-meanwhile"),
    errors.ConflictError: _Meaning(409, "conflict"),
    errors.InvalidInputError: _Meaning(400, "invalid-input"),
    errors.StoreBusyError: _Meaning(503, "store-busy", _AGAIN),
    errors.StoreFullError: _Meaning(507, "store-full"),
    errors.StoreError: _Meaning(503, "store-unavailable", _AGAIN),
    errors.SourceError: _Meaning(503, "source-unavailable", _AGAIN),
    errors.DataError: _Meaning(500, "damaged-data"),
    errors.TimedOutError: _Meaning(504, "timed-out"),
    errors.CannotLaunchError: _Meaning(503, "cannot-launch", _AGAIN),
    errors.HeadwayError: _Meaning(500, "error"),
}
UNEXPECTED = _Meaning(500, "unexpected")


class ProblemAnswer(NamedTuple):
    """An answer that says what is wrong."""

    status: int
    document: Mapping[str, Any]
    headers: Mapping[str, str]


def problem_of(error: Exception, request_id: str) -> ProblemAnswer:
    if isinstance(error, HttpProblem):
        return problem(error.status, error.title, str(error), request_id, headers=error.headers)
    if not isinstance(error, errors.HeadwayError):
        said = f"something unexpected went wrong; the server's log has request {request_id}"
        return problem(UNEXPECTED.status, UNEXPECTED.title, said, request_id)
    meaning = next(MEANINGS[each] for each in type(error).__mro__ if each in MEANINGS)
    more: dict[str, Any] = {"exit_code": error.exit_code}
    if isinstance(error, WrongRequestError):
        more["errors"] = [each._asdict() for each in error.mistakes]
    return problem(
        meaning.status,
        meaning.title,
        str(error),
        request_id,
        headers=dict(meaning.headers),
        more=more,
    )


def problem(
    status: int,
    title: str,
    detail: str,
    request_id: str,
    *,
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
) -> ProblemAnswer:
    document = {
        "type": f"{PREFIX}{title}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": request_id,
        **(more or {}),
    }
    return ProblemAnswer(status, document, headers or {})


def new_request_id() -> str:
    return os.urandom(8).hex()
