"""Nodes of a workflow that call functions: filled arguments, outputs, outcomes, and crashes."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from shop import Shop
from started import Started

from headway.core.states import Status
from headway.jobs.routes import output_key
from headway.workflows.mistakes import WorkflowError
from headway.workflows.runs import stop_run

MakeShop = Callable[..., Shop]

TASKS = """
@app.task
def count(words, factor=1):
    note(f"count-{len(words)}")
    print("counted", words)
    return {"total": len(words) * factor, "words": words}
@app.task
def plain(value): return value
@app.task
def nothing(**given): return None
@app.task
def where():
    job = current()
    return {"run": job.workflow_run, "node": job.node, "pass": job.node_pass}
@app.task
def skips(): raise Skip("nothing to do")
@app.task
def fails(): raise ValueError("no such thing")
@app.task
def flaky():
    note("flaky")
    if current().attempt < 3:
        raise OSError("not yet")
    return {"tries": current().attempt}
@app.task
def hold(name):
    note(name)
    until("go")
    return {"held": name}
@app.task
def patient():
    note("patient")
    while not current().cancelled():
        time.sleep(0.005)
    raise RuntimeError("asked to end")
@app.task
def die():
    note("die")
    os.kill(os.getpid(), 9)
"""


def left(run: Started, node: str) -> dict[str, Any]:
    """What a node left, besides its job."""
    with run.bench.store.read() as tx:
        (marker,) = tx.graph.markers([output_key(node, run.run)])
    return dict(marker.data or {})


@pytest.mark.req("V12")
def test_a_node_calls_a_function_with_filled_arguments(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    run = Started(
        shop.bench,
        """
        params.factor = 3
        [nodes.list]
        shell = 'echo "words:=[\\"a\\", \\"b\\"]" >> "$HEADWAY_OUTPUTS"'
        outputs = ["words"]
        [nodes.count]
        task = "shop_tasks.count"
        args.arguments.words = "${{ nodes.list.outputs.words }}"
        args.arguments.factor = "${{ params.factor }}"
        after = ["list"]
        outputs = ["total", "words"]
        [nodes.told]
        argv = ["echo", "${{ nodes.count.outputs.total }} of ${{ nodes.count.outputs.words }}"]
        after = ["count"]
        """,
    )
    assert run.ended()["state"] == "succeeded"
    assert run.log("told") == '6 of ["a", "b"]\n'
    document = shop.bench.client.document(run.job("count"))
    assert document["type"] == "function" and document["run"]["result"]["total"] == 6
    assert document["workflow"]["executor_class"] == "environment.builtin"
    assert document["workflow"]["executor_operation"] == "function.call"
    assert left(run, "count")["outputs"] == {"total": 6, "words": ["a", "b"]}
    assert left(run, "count")["tail"] == "counted ['a', 'b']"


@pytest.mark.parametrize(
    ("call", "outputs"),
    [
        ('{ task = "shop_tasks.plain", arguments = { value = [1, 2] } }', {"result": [1, 2]}),
        ('{ task = "shop_tasks.plain", arguments = { value = {} } }', {}),
        ('{ task = "shop_tasks.nothing" }', {}),
        (
            '{ task = "shop_tasks.where" }',
            {"run": "wf-1", "node": "a", "pass": 1},
        ),
    ],
)
def test_what_it_returns_are_its_outputs(
    make_shop: MakeShop, call: str, outputs: dict[str, Any]
) -> None:
    shop = make_shop(TASKS)
    text = f'[nodes.a]\nuses = "cap.env.builtin.function.call"\nargs = {call}\n'
    run = Started(shop.bench, text)
    assert run.ended()["state"] == "succeeded"
    assert left(run, "a")["outputs"] == outputs


def test_an_output_that_is_declared_and_missing_fails_it(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    run = Started(shop.bench, '[nodes.a]\ntask = "shop_tasks.nothing"\noutputs = ["x"]\n')
    assert run.ended()["state"] == "failed"
    assert run.node("a")["reason"] == "it did not set output 'x'"


ENDS = """
[nodes.a]
task = "shop_tasks.{task}"
on.failed = ["alarm"]
on.skipped = ["quiet"]
on.succeeded = ["fine"]
[nodes.alarm]
argv = ["echo", "${{{{ last.a.summary }}}}"]
[nodes.quiet]
argv = ["true"]
[nodes.fine]
argv = ["true"]
"""


def test_its_exception_is_a_failure_and_leads_on(make_shop: MakeShop) -> None:
    run = Started(make_shop(TASKS).bench, ENDS.format(task="fails"))
    assert run.ended()["state"] == "failed"
    assert run.outcomes()["a"] == "failed" and run.outcomes()["alarm"] == "succeeded"
    assert run.log("alarm") == "ValueError: no such thing\n"


def test_its_skip_is_its_outcome(make_shop: MakeShop) -> None:
    run = Started(make_shop(TASKS).bench, ENDS.format(task="skips"))
    assert run.ended()["state"] == "succeeded"
    assert run.outcomes() == {
        "a": "skipped",
        "alarm": "skipped",
        "quiet": "succeeded",
        "fine": "skipped",
    }


def test_it_has_no_retries_unless_its_file_says_so(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    run = Started(shop.bench, '[nodes.a]\ntask = "shop_tasks.flaky"\n')
    assert run.ended()["state"] == "failed" and shop.ledger() == ["flaky"]
    text = '[nodes.a]\ntask = "shop_tasks.flaky"\nretries = 5\nretry_base = "0s"\n'
    again = Started(shop.bench, text)
    assert again.ended()["state"] == "succeeded" and shop.ledger() == ["flaky"] * 4
    assert left(again, "a")["outputs"] == {"tries": 3}
    assert left(again, "a")["attempt"] == 3 and left(again, "a")["pass"] == 1


def test_its_timeout_ends_it(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    text = '[nodes.a]\ntask = "shop_tasks.hold"\nargs.arguments.name = "x"\ntimeout = "1s"\n'
    run = Started(shop.bench, text)
    assert run.ended()["state"] == "failed"
    assert run.node("a")["reason"] == "timed out after 1 s"


def test_a_stopped_run_asks_its_function_to_end(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    text = '[nodes.a]\ntask = "shop_tasks.patient"\n[nodes.b]\nargv = ["true"]\nafter = ["a"]\n'
    run = Started(shop.bench, text)
    shop.until_noted("patient")
    stop_run(shop.bench.client.context, run.run)
    assert run.ended()["state"] == "cancelled"
    assert run.outcomes() == {"a": "cancelled", "b": "cancelled"}


def test_a_value_that_was_never_set_fails_it_before_its_call(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    run = Started(
        shop.bench,
        """
        [nodes.a]
        argv = ["true"]
        when = ["1 == 2"]
        outputs = ["x"]
        [nodes.b]
        task = "shop_tasks.count"
        args.arguments = { words = "${{ nodes.a.outputs.x }}" }
        after = [{ node = "a", on = ["ended"] }]
        [nodes.c]
        task = "shop_tasks.count"
        args.arguments = "${{ nodes.d.outputs.odd }}"
        after = ["d"]
        [nodes.d]
        shell = 'echo "odd:=[1]" >> "$HEADWAY_OUTPUTS"'
        outputs = ["odd"]
        """,
    )
    assert run.ended()["state"] == "failed"
    assert run.node("b")["reason"] == "nodes.a.outputs.x: 'a' (job-1) is skipped"
    assert run.node("c")["reason"] == "arguments is [1]; give a table"
    assert shop.ledger() == []
    assert shop.bench.engine.pool.running() == 0


def test_values_that_look_like_references_stay_values(make_shop: MakeShop) -> None:  # fault J5
    shop = make_shop(TASKS)
    text = """
    params.odd = { type = "text" }
    [nodes.a]
    task = "shop_tasks.plain"
    args.arguments = { value = "${{ params.odd }}" }
    """
    run = Started(shop.bench, text, odd="${{ run.id }} $(true) \"'")
    assert run.ended()["state"] == "succeeded"
    assert left(run, "a")["outputs"] == {"result": "${{ run.id }} $(true) \"'"}


def test_each_instance_of_a_matrix_is_a_call(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS, max_active=4)
    run = Started(
        shop.bench,
        """
        [nodes.a]
        task = "shop_tasks.${{ matrix.verb }}"
        args.arguments = { value = "${{ matrix.n }}" }
        matrix = { n = [1, 2, 3], verb = ["plain"] }
        outputs = ["result"]
        [nodes.b]
        task = "shop_tasks.plain"
        args.arguments = { value = "${{ nodes.a.outputs.result }}" }
        after = ["a"]
        """,
    )
    assert run.ended()["state"] == "succeeded"
    assert left(run, "b")["outputs"] == {"result": [1, 2, 3]}


def test_functions_go_round_in_loops(make_shop: MakeShop) -> None:
    shop = make_shop(
        """
@app.task
def work(last): note(f"work-{current().node_pass}-{last}"); return {"made": current().node_pass}
@app.task
def check(made):
    if made < 3:
        raise ValueError(f"only {made}")
"""
    )
    run = Started(
        shop.bench,
        """
        [nodes.work]
        task = "shop_tasks.work"
        args.arguments = { last = "${{ last.check.outcome }}" }
        outputs = ["made"]
        [nodes.check]
        task = "shop_tasks.check"
        args.arguments = { made = "${{ nodes.work.outputs.made }}" }
        after = ["work"]
        loop = { to = "work", times = 5 }
        """,
    )
    assert run.ended()["state"] == "succeeded"
    assert shop.ledger() == ["work-1-", "work-2-failed", "work-3-failed"]


def test_a_worker_that_is_killed_while_it_runs_loses_and_repeats_nothing(
    make_shop: MakeShop,
) -> None:  # fault A1
    shop = make_shop(TASKS)
    run = Started(
        shop.bench,
        """
        [nodes.a]
        task = "shop_tasks.hold"
        args.arguments = { name = "${{ run.id }}" }
        outputs = ["held"]
        [nodes.b]
        argv = ["echo", "${{ nodes.a.outputs.held }}"]
        after = ["a"]
        """,
    )
    shop.until_noted("wf-1")
    shop.bench.crash()
    shop.bench.engine.recover()
    shop.touch("go")
    assert run.ended()["state"] == "succeeded"
    assert run.log("b") == "wf-1\n" and shop.ledger() == ["wf-1"]


@pytest.mark.parametrize("retries", [0, 1])
def test_a_host_that_is_killed_fails_its_node_and_the_run_goes_on(
    make_shop: MakeShop, retries: int
) -> None:  # fault A1
    shop = make_shop(TASKS)
    run = Started(
        shop.bench,
        f"""
        [nodes.a]
        task = "shop_tasks.hold"
        args.arguments = {{ name = "x" }}
        retries = {retries}
        retry_base = "0s"
        on.failed = ["alarm"]
        [nodes.alarm]
        argv = ["true"]
        """,
    )
    shop.until_noted("x")
    os.kill(shop.host_pid(), signal.SIGKILL)
    shop.touch("go")
    ended = run.ended()
    assert ended["state"] == ("succeeded" if retries else "failed")
    if not retries:
        assert run.node("a")["reason"] == "its host died: killed by SIGKILL"
        assert run.outcomes() == {"a": "failed", "alarm": "succeeded"}
    assert shop.ledger() == ["x"] * (1 + retries)


def test_jobs_of_a_run_never_take_the_bulk_path(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS, max_active=20)
    text = '[nodes.a]\ntask = "shop_tasks.plain"\nargs.arguments.value = 1\n'
    calls = [shop.plain.submit(number) for number in range(10)]
    runs = [Started(shop.bench, text) for _ in range(3)]
    with shop.bench.store.read() as tx:
        heads, _ = tx.calls.head(100)
    assert {each.job_id for each in heads} <= {each.job_id for each in calls}
    shop.ended(*calls)
    for run in runs:
        assert run.ended()["state"] == "succeeded"
        assert left(run, "a")["outputs"] == {"result": 1}


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ("env = { A = 'b' }", "cap.env.builtin.function.call takes no env"),
        ("cwd = 'x'", "cap.env.builtin.function.call takes no cwd"),
        ("idle_timeout = '1m'", "cap.env.builtin.function.call takes no idle_timeout"),
        ("args.arguments = [1]", "arguments is [1]; give a table"),
        ("args.argument = {}", "function.call has no argument 'argument'"),
        ("retry_on = ['exit:7x']", "retry_on"),
    ],
)
def test_what_a_function_does_not_take_is_refused_and_nothing_is_written(
    make_shop: MakeShop, node: str, words: str
) -> None:
    shop = make_shop(TASKS)
    with pytest.raises(WorkflowError) as refused:
        Started(shop.bench, f'[nodes.a]\ntask = "shop_tasks.plain"\n{node}\n')
    assert words in str(refused.value)
    with shop.bench.store.read() as tx:
        assert tx.jobs.active() == []


def test_the_name_of_the_function_is_known_when_it_is_queued(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    text = '[nodes.a]\nargv = ["true"]\noutputs = ["x"]\n[nodes.b]\ntask = "{}"\nafter = ["a"]\n'
    with pytest.raises(WorkflowError) as refused:
        Started(shop.bench, text.format("${{ nodes.a.outputs.x }}"))
    words = "node 'b': task: nodes.a.outputs.x is not known when it is queued"
    assert [each.words for each in refused.value.mistakes] == [words]
    run = Started(
        shop.bench,
        'params.verb = "nothing"\n' + text.format("shop_tasks.${{ params.verb }}"),
    )
    shop.bench.until(lambda: run.node("b")["state"] == "blocked_by_dependency")
    assert shop.bench.job(run.job("b")).params["task"] == "shop_tasks.nothing"


def test_defaults_about_commands_do_not_count_for_functions(make_shop: MakeShop) -> None:
    shop = make_shop(TASKS)
    run = Started(
        shop.bench,
        """
        defaults = { env = { A = "b" }, timeout = "5m" }
        [nodes.a]
        task = "shop_tasks.plain"
        args.arguments.value = 1
        """,
    )
    assert run.ended()["state"] == "succeeded"
    params = shop.bench.job(run.job("a")).params
    assert params["timeout_seconds"] == 300 and "env" not in params
    assert shop.bench.status(run.job("a")) is Status.SUCCEEDED
