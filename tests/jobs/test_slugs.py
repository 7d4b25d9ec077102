"""A job is called by its id or by its slug: the one active job that has it, else the last."""

import pytest

from harness import Bench
from headway.base.errors import ConflictError, InvalidInputError, NotFoundError
from headway.core.states import Status
from headway.functions.app import App
from headway.jobs.graph import GraphError
from headway.jobs.request import Request


def test_an_id_in_any_spelling_is_that_job(bench: Bench) -> None:
    job = bench.submit("true", slug="build")
    assert {bench.client.jobs.find(each) for each in (f"{job}", f"#{job}", f" job-{job} ")} == {job}


def test_the_active_job_with_a_slug_goes_before_those_that_ended(bench: Bench) -> None:
    ended = bench.submit("true", slug="build")
    bench.until_ended(ended)
    assert bench.client.jobs.find("build") == ended
    later = bench.submit("true", slug="build")
    assert bench.client.jobs.find("build") == later
    bench.until_ended(later)
    assert bench.client.jobs.find("build") == later, "the one that ended last"


def test_the_one_that_ended_last_need_not_be_the_newest(bench: Bench) -> None:
    first, second = bench.submit("true", slug="build"), bench.submit("true", slug="build")
    bench.client.cancel([second])
    bench.until_ended(first)
    assert bench.client.jobs.find("build") == first


def test_several_active_jobs_with_a_slug_are_listed_and_none_is_taken(bench: Bench) -> None:
    ids = [bench.submit("true", slug="build") for _ in range(12)]
    with pytest.raises(ConflictError) as caught:
        bench.client.jobs.find("build")
    assert f"job-{ids[0]} (queued), job-{ids[1]} (queued)" in str(caught.value)
    assert f"job-{ids[9]} (queued) and more; name one by its id" in str(caught.value)


def test_a_slug_that_no_job_has_and_a_text_that_is_none_are_refused(bench: Bench) -> None:
    for text in ("nothing", "two words", "", "job-0"):
        with pytest.raises(NotFoundError, match="is not a job; write it like job-24 or 24"):
            bench.client.jobs.find(text)


def test_a_retried_job_keeps_its_slug_and_is_found_by_it(bench: Bench) -> None:
    job = bench.submit("false", slug="build")
    bench.until_ended(job)
    again = bench.client.retry(job)
    assert bench.client.jobs.find("build") == again.id != job


def test_jobs_wait_for_one_that_is_named_by_its_slug(bench: Bench) -> None:
    build = bench.submit("true", slug="build")
    test = bench.submit("true", after=("build",))
    assert bench.job(test).after == (build,)
    (in_graph,) = bench.client.submit_many([Request(argv=("true",), local="x", after=("build",))])
    assert bench.job(in_graph.job_id).after == (build,)


def test_a_name_inside_a_graph_goes_before_a_slug_outside(bench: Bench) -> None:
    bench.submit("true", slug="build")
    inner, test = bench.client.submit_many(
        [
            Request(argv=("true",), local="build"),
            Request(argv=("true",), local="test", after=("build",)),
        ]
    )
    assert bench.job(test.job_id).after == (inner.job_id,)


def test_a_job_after_an_unknown_or_ambiguous_slug_is_not_stored(bench: Bench) -> None:
    with pytest.raises(NotFoundError, match="'build' is not a job"):
        bench.submit("true", after=("build",))
    with pytest.raises(GraphError, match="after 'build' names no job of this graph"):
        bench.client.submit_many([Request(argv=("true",), local="x", after=("build",))])
    for _ in range(2):
        bench.submit("true", slug="build")
    with pytest.raises(ConflictError, match="several active jobs have the slug 'build'"):
        bench.submit("true", after=("build",))
    with pytest.raises(GraphError, match="several active jobs have the slug 'build'"):
        bench.client.submit_many([Request(argv=("true",), local="x", after=("build",))])
    assert len(bench.client.jobs.list().documents) == 2


def test_functions_and_templates_name_jobs_by_their_slugs(bench: Bench) -> None:
    build = bench.submit("true", slug="build")
    bench.client.templates.add("check", argv=["true"])
    checked = bench.client.templates.submit("check", after=["build"])
    assert bench.job(checked.job_id).after == (build,)
    app = App(bench.home.store_url, home=bench.home.path)
    assert app.handle("build").job_id == build

    @app.task
    def report() -> None:
        """Says nothing."""

    after = app.submit(report.options(after=["build"]).call())
    assert bench.job(after.job_id).after == (build,)
    app.close()
    assert bench.status(build) is Status.QUEUED


@pytest.mark.parametrize("slug", ["12", "job-3", "run-3", "#4", "-", "--", "-x", "a b", ""])
def test_a_slug_that_a_command_would_take_for_something_else_is_refused(
    slug: str, bench: Bench
) -> None:
    with pytest.raises(InvalidInputError, match="slug"):
        bench.submit("true", slug=slug)
    waiting = bench.submit("true", slug="build")
    with pytest.raises(InvalidInputError, match="slug"):
        bench.client.jobs.edit(waiting, slug=slug)


@pytest.mark.parametrize("slug", ["v1", "1st", "job-", "jobs-3", "2.0", ".hidden", "_x"])
def test_a_slug_may_have_digits_among_others(slug: str, bench: Bench) -> None:
    job = bench.submit("true", slug=slug)
    assert bench.client.jobs.find(slug) == job
