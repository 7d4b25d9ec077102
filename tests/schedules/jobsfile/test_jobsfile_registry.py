"""What modules may register, and the context that their functions get."""

from typing import Any

import pytest

import headway
from headway.base.errors import InvalidInputError
from headway.schedules.jobsfile.registry import JobContext, Registry, call_with


def some(ctx: JobContext) -> None: ...
def other(ctx: JobContext) -> None: ...
async def later(ctx: JobContext) -> None: ...


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.mark.req("O16")
def test_functions_are_found_by_their_names(registry: Registry) -> None:
    assert registry.job("sweep")(some) is some
    registry.job("sweep")(some)  # its module was imported again
    assert registry.condition("quiet")(other) is other and registry.poll(some) is some
    assert (registry.jobs, registry.conditions) == ({"sweep": some}, {"quiet": other})
    assert registry.fetch is some


@pytest.mark.parametrize(
    ("register", "words"),
    [
        (lambda r: [r.job("a")(some), r.job("a")(other)], "two of job 'a'.*some and.*other"),
        (lambda r: [r.poll(some), r.poll(other)], "two polls.*some and.*other"),
        (lambda r: r.condition("has_open_prs"), "'has_open_prs' is built in"),
        (lambda r: r.job("a")(later), "async"),
        (lambda r: r.job(some), "needs a name"),
        (lambda r: r.job("clean up"), "no jobs file can name job 'clean up'"),
        (lambda r: r.job("a")(3), "not a function"),
    ],
)
def test_what_would_be_ambiguous_is_refused(registry: Registry, register: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        register(registry)


@pytest.mark.req("O15")
def test_a_context_opens_and_fetches_when_it_is_first_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fetched = []
    context = JobContext(fetch=lambda: fetched.append(1) or {"a": 1})
    assert fetched == []
    assert context.poll_data == {"a": 1} == context.poll_data and fetched == [1]
    assert context.state == {}
    context.log("a line")
    assert capsys.readouterr().out == "a line\n"
    with pytest.raises(InvalidInputError):
        _ = headway.JobContext().client


def test_a_function_may_leave_out_the_context() -> None:
    context = JobContext()
    assert call_with(lambda: 1, context) == 1
    assert call_with(lambda ctx: ctx, context) is context
    assert call_with(bool, context) is True

    def wrong() -> None:
        raise TypeError("its own")

    with pytest.raises(TypeError, match="its own"):
        call_with(wrong, context)
