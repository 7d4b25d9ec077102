"""Functions pass the gates of the graph like any other job."""

from collections.abc import Callable

import pytest
from shop import Shop

from headway.base.errors import InvalidInputError
from headway.core.states import Status
from headway.jobs.approvals import approve

MakeShop = Callable[..., Shop]
TASK = "@app.task\ndef note(word='x'): return word\n"


@pytest.mark.req("V56")
def test_a_function_waits_for_what_another_makes(make_shop: MakeShop) -> None:
    shop = make_shop(TASK)
    shop.bench.client.pause("hold")
    producer = shop.note.submit("made", produces=["custom:report:june"])
    consumer = shop.note.submit("read", needs=["custom:report:june"])
    shop.bench.client.resume()
    shop.ended(producer, consumer)
    first, second = (shop.bench.job(each.job_id) for each in (producer, consumer))
    assert (first.status, second.status) == (Status.SUCCEEDED, Status.SUCCEEDED)
    assert (first.finished_at or 0) <= (second.started_at or 0)


@pytest.mark.req("V99")
def test_a_function_waits_for_a_whole_workflow_run(make_shop: MakeShop) -> None:
    shop = make_shop(TASK)
    folder = shop.bench.folder / ".headway" / "workflows"
    folder.mkdir()
    (folder / "flow.toml").write_text(
        '[nodes.a]\nargv = ["true"]\non.failed = ["b"]\n[nodes.b]\nargv = ["true"]\n'
    )
    first = shop.bench.client.workflows.start("flow")
    second = shop.bench.client.workflows.start("flow", after=[f"wf-{first}"])
    handle = shop.note.options(after=[f"wf-{second}"]).submit()
    assert shop.bench.job(handle.job_id).after_runs == (second,)
    shop.ended(handle)
    assert shop.bench.job(handle.job_id).status is Status.SUCCEEDED, "b is skipped"
    assert shop.bench.client.workflows.run(second)["state"] == "succeeded"


MAKES = """
@app.task
def make(path, there=False, fails=False, skips=False):
    if there:
        open(path, "w").close()
    if fails:
        raise ValueError("no")
    if skips:
        raise Skip("no need")
    return 7
@app.task
def silent():
    pass
"""


@pytest.mark.parametrize(
    ("given", "unmade"), [({}, True), ({"there": True}, False), ({"skips": True}, False)]
)
def test_a_success_without_its_file_says_so(
    make_shop: MakeShop, given: dict[str, bool], unmade: bool
) -> None:
    shop = make_shop(MAKES)
    path = str(shop.bench.folder / "plan.md")
    handle = shop.make.submit(path, **given, produces=[f"file:{path}", "custom:plan:a"])
    shop.ended(handle)
    said = [f"file:{path}"] if unmade else []
    document = shop.bench.client.document(handle.job_id)
    assert document["run"]["not_produced"] == said
    events = shop.bench.client.jobs.history(handle.job_id)
    told = [each.data["artifacts"] for each in events if each.kind == "not_produced"]
    assert told == ([said] if unmade else [])
    if not given.get("skips"):
        assert handle.result() == 7


def test_a_failure_of_a_function_says_only_that(make_shop: MakeShop) -> None:
    shop = make_shop(MAKES)
    path = str(shop.bench.folder / "plan.md")
    handle = shop.make.submit(path, fails=True, produces=[f"file:{path}"])
    shop.ended(handle)
    assert "not_produced" not in shop.bench.kinds(handle.job_id)


def test_a_function_that_returns_nothing_says_what_it_did_not_make(make_shop: MakeShop) -> None:
    shop = make_shop(MAKES)
    path = str(shop.bench.folder / "plan.md")
    handle = shop.silent.submit(produces=[f"file:{path}"])
    shop.ended(handle)
    document = shop.bench.client.document(handle.job_id)
    assert document["run"]["not_produced"] == [f"file:{path}"]


@pytest.mark.req("V66")
def test_a_function_waits_for_a_person(make_shop: MakeShop) -> None:
    shop = make_shop(TASK)
    handle = shop.note.submit(require_approval=True)
    shop.bench.until(lambda: shop.bench.status(handle.job_id) is Status.WAITING_ON_APPROVAL)
    approve(shop.bench.client.context, handle.job_id)
    shop.ended(handle)
    assert handle.result() == "x"


def test_what_is_no_artifact_is_refused(make_shop: MakeShop) -> None:
    shop = make_shop(TASK)
    with pytest.raises(InvalidInputError, match="custom:TYPE:KEY"):
        shop.note.submit(needs=["custom:report"])
    with pytest.raises(InvalidInputError, match="give a list"):
        shop.note.submit(needs="custom:report:june")
