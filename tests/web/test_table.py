"""The route table keeps up with the client, and the table of problems with the exceptions."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import headway.web
from headway.base import errors
from headway.client import Client
from headway.web.problems import MEANINGS, HttpProblem, problem_of
from headway.web.route import API
from headway.web.route_tree import RouteTree
from headway.web.routes import ROUTES, UNROUTED

WEB = Path(headway.web.__file__).parent
PATH = re.compile(r"(?<![\w}])/(?:api|login|healthz|readyz|metrics|jobs)[\w./-]*")
NO_VERBS = {"close", "now", "acting"}  # of the client itself, not of what is in the store


def verbs() -> Iterator[str]:
    """All methods of a client and of its nouns."""
    for name, member in vars(Client).items():
        if name.startswith("_") or name in NO_VERBS:
            continue
        if inspect.isfunction(member):
            yield name
        elif hasattr(member, "func"):  # a noun
            noun = inspect.signature(member.func).return_annotation
            module = next(
                line.split()[1]
                for line in inspect.getsource(member.func).splitlines()
                if line.strip().startswith("from ")
            )
            found = getattr(__import__(module, fromlist=[noun]), noun)
            for each, _ in inspect.getmembers(found, inspect.isfunction):
                if not each.startswith("_"):
                    yield f"{name}.{each}"


def test_every_verb_has_a_route_or_a_line_that_says_why_not() -> None:
    there = set(verbs())
    assert {"submit", "jobs.approve", "tokens.add", "workflows.start"} <= there
    routed = {verb for route in ROUTES for verb in route.verbs}
    assert there - routed - set(UNROUTED) == set()
    assert (routed | set(UNROUTED)) - there == set()
    assert not routed & set(UNROUTED)
    assert all(UNROUTED.values())


def texts(module: Path) -> Iterator[str]:
    """What is written in a module, with `x` for what is put in."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.JoinedStr):
            parts = (
                str(each.value) if isinstance(each, ast.Constant) else "x" for each in node.values
            )
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            yield node.value if isinstance(node.value, str) else node.value.decode()


def test_every_path_that_is_written_elsewhere_is_of_the_table() -> None:
    """Where something was made, what has taken its place, where a form goes."""
    modules = [each for each in WEB.rglob("*.py") if each.name != "routes.py"]
    words = (word for module in modules for text in texts(module) for word in PATH.findall(text))
    written = {word.rstrip("/") for word in words} - {API}
    assert {f"{API}/jobs/x", f"{API}/groups", "/login.js", "/healthz"} <= written
    tree = RouteTree(ROUTES)
    assert {path for path in written if not tree.methods(path)} == set()


def tree(root: type[Exception]) -> Iterator[type[Exception]]:
    yield root
    for each in root.__subclasses__():
        yield from tree(each)


def made(kind: type[Exception]) -> Exception:
    """One of that class, whatever it is made of."""
    error = kind.__new__(kind)
    Exception.__init__(error, "why")
    return error


OURS = [
    each
    for each in tree(errors.HeadwayError)
    if each.__module__.startswith("headway.") and not issubclass(each, HttpProblem)
]


@pytest.mark.parametrize("kind", OURS, ids=lambda kind: kind.__name__)
def test_every_exception_has_a_meaning_over_http(kind: type[errors.HeadwayError]) -> None:
    nearest = next(each for each in kind.__mro__ if each in MEANINGS)
    # What the command line tells apart by its exit code, HTTP tells apart as well.
    plain = nearest is errors.HeadwayError
    assert not plain or kind.exit_code == errors.HeadwayError.exit_code, kind
    error = made(kind)
    if hasattr(kind, "mistakes") or kind.__name__ == "WrongRequestError":
        error.mistakes = []  # type: ignore[attr-defined]
    answer = problem_of(error, "id")
    assert answer.status == MEANINGS[nearest].status
    assert answer.document["exit_code"] == kind.exit_code


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (errors.NotFoundError, 404), (errors.ConflictError, 409), (errors.InvalidInputError, 400),
        (errors.KeyReusedError, 422), (errors.ChangedMeanwhileError, 412),
        (errors.StoreBusyError, 503), (errors.StoreUndoneError, 503),
        (errors.StoreFullError, 507), (errors.StoreError, 503),
        (errors.StoreReadOnlyError, 503), (errors.DataError, 500), (errors.TimedOutError, 504),
        (errors.ReservationLostError, 409), (errors.SchemaTooNewError, 503),
    ],
)  # fmt: skip
def test_errors_have_the_codes_of_the_design(kind: type[errors.HeadwayError], status: int) -> None:
    answer = problem_of(made(kind), "id")
    assert answer.status == status
    assert ("Retry-After" in answer.headers) == (status == 503)


def test_an_error_of_nobody_says_nothing() -> None:
    answer = problem_of(ValueError("canary"), "id")
    assert answer.status == 500 and "canary" not in str(answer.document)
