"""Workflows that are declared in Python: the same document, reader and compiler as files have."""

import os
import tomllib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from shop import Shop

import headway
from harness import Bench
from headway.base.errors import InvalidInputError, NotFoundError, TimedOutError
from headway.base.trust import record, revoke
from headway.functions.run_handle import RunHandle
from headway.jobs.views.why import why
from headway.testing import drain, using
from headway.workflows.compiler import compile_text
from headway.workflows.mistakes import WorkflowError

MakeShop = Callable[..., Shop]

RELEASE = r"""
release = app.workflow(
    "release",
    inputs=["version"],
    params={"version": {"type": "text", "pattern": r"\d+\.\d+"}, "loud": False},
    timeout="1h",
    finally_=["tidy"],
    defaults={"priority": 2},
)
release.command("build", argv=["sh", "-c", "echo sum=abc >> $HEADWAY_OUTPUTS"], outputs=["sum"])

@release.node(
    after=["build"],
    arguments={"version": "${{ params.version }}", "digest": "${{ nodes.build.outputs.sum }}"},
    outputs=["notes"],
)
def report(version: str, digest: str) -> dict:
    note(f"report-{version}-{digest}")
    return {"notes": f"{version} is {digest}"}

@release.node(
    name="check", after=[report], arguments={"words": ["a", "b"]}, timeout=timedelta(minutes=1)
)
def check_words(words: list[str]) -> int:
    return len(words)

release.add("done", uses="control.terminal", after=["check"])
release.command("tidy", shell="echo tidied")
"""

SAME = r"""
inputs = ["version"]
timeout = "1h"
finally = ["tidy"]
defaults = { priority = 2 }
[params]
version = { type = "text", pattern = '\d+\.\d+' }
loud = false
[nodes.build]
argv = ["sh", "-c", "echo sum=abc >> $HEADWAY_OUTPUTS"]
outputs = ["sum"]
[nodes.report]
task = "shop_tasks.report"
args.arguments = { version = "${{ params.version }}", digest = "${{ nodes.build.outputs.sum }}" }
after = ["build"]
outputs = ["notes"]
[nodes.check]
task = "shop_tasks.check_words"
args.arguments = { words = ["a", "b"] }
after = ["report"]
timeout = "1m"
[nodes.done]
uses = "control.terminal"
after = ["check"]
[nodes.tidy]
shell = "echo tidied"
"""


def test_it_is_the_document_that_a_file_is_read_as(make_shop: MakeShop) -> None:
    shop = make_shop("from datetime import timedelta\n" + RELEASE)
    document = shop.release.document()
    assert document == tomllib.loads(SAME)
    given, where = {"version": "1.2"}, {"name": "release", "file": "release", "limit": 100}
    made = compile_text(document, given, **where)  # type: ignore[arg-type]
    assert made == compile_text(SAME, given, **where)  # type: ignore[arg-type]


def test_it_runs_like_a_file(make_shop: MakeShop) -> None:
    shop = make_shop("from datetime import timedelta\n" + RELEASE)
    handle = shop.release.start(version="1.2")
    assert (handle.id, handle.state, handle.done()) == ("wf-1", "running", False)
    shop.bench.until(handle.done, "the run to end")
    document = handle.wait(timeout=1)
    assert document["state"] == handle.state == "succeeded"
    assert document["workflow"] == "release" and document["params"]["version"] == "1.2"
    assert shop.ledger() == ["report-1.2-abc"]
    assert handle == RunHandle(shop.module.app, "wf-1") and repr(handle) == "<wf-1>"
    shop.bench.until_ended(*(int(each["job"][4:]) for each in document["nodes"]))


def test_its_functions_are_tasks_of_the_app(make_shop: MakeShop) -> None:
    shop = make_shop("from datetime import timedelta\n" + RELEASE)
    assert {"shop_tasks.report", "shop_tasks.check_words"} <= shop.module.app.tasks.keys()
    assert shop.check_words(["x"]) == 1
    handle = shop.check_words.submit(["x", "y"])
    shop.ended(handle)
    assert handle.result() == 2


def test_inputs_options_and_keys_of_a_start(make_shop: MakeShop) -> None:
    shop = make_shop("from datetime import timedelta\n" + RELEASE)
    held = shop.bench.submit("true", require_approval=True)
    release = shop.release
    first = release.start("1.2", key="monday", priority=7, after=[f"job-{held}"])
    assert release.start("1.2", key="monday") == first, "the same key starts one run"
    root = shop.bench.job(int(first.document()["nodes"][0]["job"][4:]))
    assert root.after == (held,) and root.priority == 2, "what its file says goes first"
    assert first.stop()["state"] == "cancelled" or first.stop(everything=True)
    shop.bench.until(first.done, "the stopped run to end")
    assert first.state == "cancelled"
    with pytest.raises(TimedOutError, match="wf-2 is still running"):
        release.start("1.3", after=held).wait(timeout=0.01)
    shop.bench.client.cancel([held])
    shop.bench.until(RunHandle(shop.module.app, 2).done, "the second to end")


def test_an_option_that_is_a_parameter_is_one(make_shop: MakeShop) -> None:
    shop = make_shop(
        """
flow = app.workflow("flow", params={"key": "x"})
flow.command("a", ["echo", "${{ params.key }}"])
"""
    )
    handle = shop.flow.start(key="y")
    shop.bench.until(handle.done, "the run to end")
    assert handle.document()["params"] == {"key": "y"}


def test_an_option_is_what_a_job_of_it_may_have(make_shop: MakeShop) -> None:
    shop = make_shop('flow = app.workflow("flow")\nflow.command("a", ["true"])\n')
    for options, words in (
        ({"priority": "high"}, "priority is 'high', not a whole number"),
        ({"require_approval": "no"}, "require_approval is 'no', not True or False"),
        ({"key": 3}, "key is 3, not a text"),
        ({"subject": 3}, "subject is 3, not a text"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            shop.flow.start(**options)
    handle = shop.flow.start(priority=None, key=None, after=None)  # as if it was not given
    shop.bench.until(handle.done, "the run to end")
    assert handle.state == "succeeded"


def test_all_that_is_wrong_is_told_when_it_starts(make_shop: MakeShop) -> None:
    shop = make_shop(
        """
flow = app.workflow("flow", params={"x": {"type": "number"}})
flow.command("a", ["true"], after=["b"])
flow.add("c", uses="cap.env.builtin.git.comit")
"""
    )
    with pytest.raises(WorkflowError) as refused:
        shop.flow.start()
    words = str(refused.value)
    assert "flow: node 'a': after 'b' names no node" in words
    assert "flow: node 'c': uses unknown label 'cap.env.builtin.git.comit'" in words
    assert "flow: parameter 'x' has no value" in words
    with shop.bench.store.read() as tx:
        assert tx.jobs.active() == []


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        ("flow.command('a', ['true'])", "flow: there are two nodes 'a'; rename one"),
        ("flow.command('b', ['true'], env={'A': object()})", "flow: node 'b': env ['A'] is an obj"),
        ("flow.command(7, ['true'])", "7 is no name of a node; give a text"),
        ("flow.command('b', ['true'], timeout=-1)", "flow: node 'b': timeout is -1"),
        ("flow.node(lambda x: x)", "missing a required argument: 'x'; give arguments={...}"),
        ("flow.node(arguments={'x': 1, 'y': 2})(given)", "unexpected keyword argument 'y'"),
        ("flow.node(arguments={'x': 'one'})(given)", "argument x is a str, not an int"),
        ("app.workflow('')", "'' is no name of a workflow"),
        ("flow.command('b', ['true'], after=[other]); flow.document()", "is no node of it"),
    ],
)
def test_what_is_wrong_in_a_declaration_is_told_there(declare: str, words: str) -> None:
    app = headway.App()
    flow = app.workflow("flow")
    flow.command("a", ["true"])

    def given(x: int) -> int:
        return x

    @app.task
    def other() -> None: ...

    with pytest.raises(InvalidInputError) as refused:
        exec(declare, {"app": app, "flow": flow, "given": given, "other": other})
    assert words in str(refused.value)


def test_a_reference_is_no_wrong_argument() -> None:
    flow = headway.App().workflow("flow")

    @flow.node(arguments={"x": "${{ params.x }}"}, retry_on=[OSError, "timeout"])
    def given(x: int) -> int:
        return x

    node = flow.document()["nodes"]["given"]
    assert node["args"] == {"arguments": {"x": "${{ params.x }}"}}
    assert node["retry_on"] == ["builtins.OSError", "timeout"]


def test_a_workflow_may_not_be_started_by_an_import(make_shop: MakeShop) -> None:
    shop = make_shop(
        """
@app.task
def work(): pass
flow = app.workflow("flow")
flow.command("a", ["true"])
if __spec__: flow.start()
"""
    )
    handle, bench = shop.work.submit(), shop.bench
    words = "flow is started when its module is imported"
    bench.until(
        lambda: words in str(why(bench.client.context, handle.job_id)), "the trouble to be known"
    )
    with bench.store.read() as tx:
        assert tx.workflows.since(0, 10) == []
    handle.cancel()


# -- files ---------------------------------------------------------------------------------------

FILE = """
inputs = ["slug"]
params.slug = { type = "slug" }
params.key = "none"
[nodes.a]
argv = ["echo", "${{ params.slug }} ${{ params.key }}"]
"""


@pytest.fixture
def app(bench: Bench) -> headway.App:
    folder = Path(bench.home.path, "workflows")
    folder.mkdir()
    (folder / "change.toml").write_text(FILE)
    record(bench.home.path)
    app = headway.App()
    app._context, app._pid = bench.client.context, os.getpid()
    return app


def test_an_app_runs_a_file(bench: Bench, app: headway.App) -> None:
    handles = [app.run("change", slug="x"), app.run("change", "y", key="k", priority=3)]
    for handle in handles:
        bench.until(handle.done, "the run to end")
    assert [each.state for each in handles] == ["succeeded"] * 2
    about = app.run("change", slug="z", subject="gt-1")
    assert about.document()["subject"] == "gt-1" and "subject" not in about.document()["params"]
    second = handles[1].document()
    assert second["params"] == {"slug": "y", "key": "k"}
    assert bench.job(int(second["nodes"][0]["job"][4:])).priority == 3
    with pytest.raises(NotFoundError, match="there is no workflow 'chang'; did you mean"):
        app.run("chang", slug="x")
    with pytest.raises(WorkflowError, match="there is no parameter 'slog'; there are slug, key"):
        app.run("change", "x", slog="x")


def test_a_file_that_is_not_trusted_is_not_run_by_its_name(bench: Bench, app: headway.App) -> None:
    revoke(bench.home.path)
    with pytest.raises(InvalidInputError, match="is not trusted"):
        app.run("change", slug="x")
    # What a program declares is the word of who runs it, but what it imports is not.
    flow = app.workflow("flow", imports={"part": {"workflow": "change"}})
    with pytest.raises(InvalidInputError, match="is not trusted"):
        flow.start()
    own = app.workflow("own")
    own.command("a", ["true"])
    handle = own.start()
    bench.until(handle.done, "the run to end")
    assert handle.state == "succeeded"


# -- waiting -------------------------------------------------------------------------------------


def test_a_task_that_waits_for_a_run_lends_its_only_slot(make_shop: MakeShop) -> None:
    shop = make_shop(
        """
flow = app.workflow("flow")
flow.command("a", ["true"])
@flow.node(after=["a"])
def b(): return 1
flow.command("c", ["true"], after=[b])
@app.task
def outer():
    return flow.start().wait()["state"]
""",
        max_active=1,
    )
    handle = shop.outer.submit()
    shop.ended(handle)
    assert handle.result() == "succeeded"


def test_a_drain_runs_a_workflow_of_functions(tmp_path: Path) -> None:
    app, noted = headway.App(), list[Any]()
    flow = app.workflow("flow", params={"n": 2})

    @flow.node(arguments={"n": "${{ params.n }}"}, outputs=["double"])
    def first(n: int) -> dict[str, int]:
        noted.append(n)
        return {"double": 2 * n}

    @flow.node(
        after=[first],
        arguments={"n": "${{ nodes.first.outputs.double }}"},
        loop={"to": "first", "times": 3, "delay": timedelta(minutes=1)},
    )
    def second(n: int) -> None:
        noted.append(n)
        if len(noted) < 6:
            raise ValueError("once more")

    with using(app, home=tmp_path):
        handle = flow.start(n=5)
        drain(app)
        assert handle.wait()["state"] == "succeeded"
        assert noted == [5, 10] * 3


def test_a_drain_leaves_no_run_that_has_only_to_be_ended(tmp_path: Path) -> None:
    app = headway.App()
    flow = app.workflow("flow")

    @flow.node(retries=1, retry_base="1m")
    def first() -> None:
        raise ValueError("no")

    @flow.node(after=[first])
    def second() -> None: ...

    @flow.node(after=[second], loop={"to": "second", "times": 1})
    def third() -> None: ...

    with using(app, home=tmp_path):
        handle = flow.start()
        drain(app)
        assert handle.done() and handle.state == "failed"
