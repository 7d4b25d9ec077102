"""A run of a workflow: its nodes are jobs, its edges are taken or missed, and it ends once."""

from pathlib import Path
from typing import Any

import pytest
from started import Started

from harness import Bench
from headway.base.errors import ConflictError, InvalidInputError, KeyReusedError
from headway.cli.run_view import next_step
from headway.core.states import Status
from headway.jobs.routes import output_key
from headway.workflows.documents import manifest_document
from headway.workflows.mistakes import WorkflowError
from headway.workflows.runs import exit_code, list_runs, stop_run

CHAIN = """
[nodes.a]
argv = ["echo", "one"]
on.succeeded = ["b"]
[nodes.b]
argv = ["echo", "two"]
[nodes.done]
uses = "control.terminal"
after = ["b"]
"""


@pytest.mark.req("V3", "V10", "V12")
def test_every_node_is_one_job_and_the_manifest_is_kept(bench: Bench) -> None:
    run = Started(bench, CHAIN)
    assert [each["id"] for each in run.document["nodes"]] == ["a", "b", "done"]
    assert len(set(run.made.jobs)) == 3
    ended = run.ended()
    assert ended["state"] == "succeeded" and ended["reason"] is None
    assert run.outcomes() == {"a": "succeeded", "b": "succeeded", "done": "succeeded"}
    with bench.store.read() as tx:
        kept = tx.workflows.manifest(run.run)
    assert [each["id"] for each in kept["nodes"]] == ["a", "b", "done"]
    document = bench.client.document(run.job("b"))["workflow"]
    assert document["run_id"] == "wf-1" and document["node_id"] == "b"
    assert document["outcome"] == "succeeded" and document["pass"] == 1
    assert document["template_id"] == "flow" and document["template_version"] == "1"
    assert document["executor_class"] == "environment.shell"
    assert document["executor_operation"] == "command.run" and document["control_policy"] is None
    assert document["policy_snapshot_hash"] == run.manifest.policy_hash
    assert document["payload_refs"] == ["custom:operation_output:b"]


@pytest.mark.req("V10")
def test_the_manifest_has_all_of_each_node_as_compiled(bench: Bench) -> None:
    text = """
        params.items = ["a"]
        [nodes.slow]
        argv = ["echo", "${{ item }}"]
        each = { in = "${{ params.items }}", max = 7 }
        [nodes.test]
        argv = ["echo", "${{ matrix.n }}"]
        matrix = { n = [1, 2] }
        labels = { run = "${{ run.name }}" }
        when = ["1 == 1"]
        """
    run = Started(bench, text)
    run.ended()
    with bench.store.read() as tx:
        kept = tx.workflows.manifest(run.run)["nodes"]
    assert kept == manifest_document(run.manifest)["nodes"], "what `show` says of the file"
    nodes = {each["id"]: each for each in kept}
    assert nodes["slow"]["each"] == {"in": ["a"], "max": 7}
    assert nodes["test[n=2]"]["argv"] == ["echo", "2"] and nodes["slow"]["job"] == {}
    assert nodes["test[n=1]"]["job"] == {"labels": {"run": "flow"}}


@pytest.mark.req("V4", "V22", "V25")
def test_a_control_is_no_executor(bench: Bench) -> None:
    run = Started(bench, CHAIN)
    run.ended()
    document = bench.client.document(run.job("done"))
    assert document["type"] == "gate"
    assert document["workflow"]["executor_class"] is None
    assert document["workflow"]["control_policy"] == "terminal"
    assert run.log("done") == "terminal sink reached\n"


@pytest.mark.req("V27")
def test_success_is_an_ordinary_edge(bench: Bench) -> None:
    run = Started(bench, CHAIN)
    assert bench.job(run.job("b")).after == (run.job("a"),)
    assert bench.client.document(run.job("b"))["after"] == [f"job-{run.job('a')}"]
    routes = Started(bench, ROUTES)
    assert bench.job(routes.job("fine")).after == (routes.job("a"),)
    for other in ("alarm", "quiet", "always"):  # what accepts more, or less, is a route
        assert bench.job(routes.job(other)).after == ()
    run.ended()
    routes.ended()


ROUTES = """
[nodes.a]
shell = "exit 3"
on.failed = ["alarm"]
on.succeeded = ["fine"]
[nodes.fine]
argv = ["echo", "fine"]
[nodes.after_fine]
argv = ["true"]
after = ["fine"]
[nodes.alarm]
argv = ["echo", "alarm"]
[nodes.quiet]
argv = ["true"]
after = [{ node = "a", on = ["succeeded", "skipped"] }]
[nodes.always]
argv = ["echo", "always"]
after = [{ node = "after_fine", on = ["ended"] }]
"""


@pytest.mark.req("V26")
def test_an_outcome_leads_where_it_is_routed(bench: Bench) -> None:
    run = Started(bench, ROUTES)
    ended = run.ended()
    assert run.outcomes() == {
        "a": "failed",
        "fine": "unreached",
        "after_fine": "unreached",
        "alarm": "succeeded",
        "quiet": "unreached",
        "always": "succeeded",
    }
    assert ended["state"] == "failed" and ended["reason"] == "a (job-1) failed: exit code 3"
    assert run.node("fine")["state"] == "blocked_by_dependency"
    assert run.node("fine")["reason"] == "dependency failed for job job-1 (failed)"


def test_what_is_led_past_is_skipped_and_so_on_downwards(bench: Bench) -> None:
    run = Started(
        bench,
        """
        [nodes.a]
        argv = ["true"]
        on.failed = ["alarm"]
        [nodes.alarm]
        argv = ["true"]
        [nodes.below]
        argv = ["true"]
        after = ["alarm"]
        [nodes.catches]
        argv = ["true"]
        after = [{ node = "below", on = ["skipped"] }]
        """,
    )
    assert run.ended()["state"] == "succeeded"
    assert run.outcomes() == {
        "a": "succeeded",
        "alarm": "skipped",
        "below": "skipped",
        "catches": "succeeded",
    }
    assert run.node("alarm")["reason"] == "skipped: a (job-1) succeeded"
    assert bench.status(run.job("alarm")) is Status.SKIPPED


def test_what_is_tolerated_counts_as_good(bench: Bench) -> None:
    run = Started(
        bench,
        """
        [nodes.lint]
        shell = "exit 1"
        tolerate = ["failed"]
        [nodes.publish]
        argv = ["true"]
        after = ["lint"]
        """,
    )
    assert run.ended()["state"] == "succeeded"
    assert run.outcomes() == {"lint": "failed", "publish": "succeeded"}


def test_any_joins_where_one_edge_is_enough(bench: Bench) -> None:
    run = Started(
        bench,
        """
        [nodes.one]
        shell = "exit 1"
        [nodes.other]
        argv = ["true"]
        [nodes.either]
        argv = ["true"]
        after = ["one", "other"]
        join = "any"
        [nodes.both]
        argv = ["true"]
        after = ["one", "other"]
        """,
    )
    run.ended()
    assert run.outcomes()["either"] == "succeeded" and run.outcomes()["both"] == "unreached"


OUTPUTS = """
params.who = { type = "text" }
[nodes.look]
shell = 'echo "full:=true" >> "$HEADWAY_OUTPUTS"; echo "name=$WHO" >> "$HEADWAY_OUTPUTS"'
outputs = ["full", "name"]
env = { WHO = "${{ params.who }}" }
[nodes.prune]
argv = ["echo", "<${{ nodes.look.outputs.name }}>"]
after = ["look"]
when = ["${{ nodes.look.outputs.full }} == true"]
[nodes.never]
argv = ["true"]
after = ["look"]
when = ["${{ nodes.look.outputs.full }} == false"]
[nodes.who]
shell = 'echo "$HEADWAY_WORKFLOW_RUN $HEADWAY_NODE $HEADWAY_PASS"'
"""
HOSTILE = 'x\'; "$(touch /tmp/no)" `id` ${{ run.id }} \\ ü'


def test_outputs_are_compared_and_handed_on(bench: Bench) -> None:  # faults H5, H6, J5
    run = Started(bench, OUTPUTS, who=HOSTILE)
    assert run.ended()["state"] == "succeeded"
    assert run.log("prune") == f"<{HOSTILE}>\n"
    assert run.outcomes()["never"] == "skipped"
    assert run.node("never")["reason"] == "skipped: full == false does not hold, it is true"
    assert run.log("who") == "wf-1 who 1\n"
    with bench.store.read() as tx:
        (marker,) = tx.graph.markers([output_key("look", run.run)])
    assert marker.data is not None
    assert marker.data["outputs"] == {"full": True, "name": HOSTILE}
    assert (marker.data["run"], marker.data["outcome"]) == ("wf-1", "succeeded")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("true", "it did not set output 'x'"),
        ('echo nonsense >> "$HEADWAY_OUTPUTS"', "line 1 of its outputs is not name=text"),
        ("echo x:=nope >> $HEADWAY_OUTPUTS", "line 1 of its outputs has no JSON after :="),
        ("head -c 1100000 /dev/zero >> $HEADWAY_OUTPUTS", "its outputs are larger than 1 MiB"),
    ],
)
def test_a_node_without_its_outputs_has_failed(bench: Bench, line: str, words: str) -> None:
    run = Started(bench, f"[nodes.a]\nshell = '{line}'\noutputs = ['x']\n")
    assert run.ended()["state"] == "failed"
    assert words in run.node("a")["reason"]


def test_what_was_never_set_fails_whoever_needs_it(bench: Bench) -> None:
    run = Started(
        bench,
        """
        [nodes.a]
        shell = "exit 1"
        outputs = ["x"]
        [nodes.b]
        argv = ["echo", "${{ nodes.a.outputs.x }}"]
        after = [{ node = "a", on = ["ended"] }]
        [nodes.c]
        argv = ["echo", "<${{ last.a.outputs.x }}>"]
        after = [{ node = "a", on = ["ended"] }]
        """,
    )
    run.ended()
    assert run.node("b")["reason"] == "nodes.a.outputs.x: 'a' (job-1) is failed"
    assert run.outcomes()["b"] == "failed" and run.log("c") == "<>\n"


def test_a_matrix_is_one_node_to_its_edges(bench: Bench) -> None:
    text = """
        [nodes.test]
        shell = 'echo "n=$N" >> "$HEADWAY_OUTPUTS"; exit $((N == 3 ? 99 : 0))'
        env = { N = "${{ matrix.n }}" }
        matrix = { n = [1, 2, 3] }
        outputs = ["n"]
        skip_exit_codes = [99]
        [nodes.after]
        argv = ["echo", "${{ nodes.test.outputs.n }}"]
        after = ["test"]
        """
    run = Started(bench, text)
    assert run.ended()["state"] == "succeeded"
    assert run.outcomes() == {
        "test[n=1]": "succeeded",
        "test[n=2]": "succeeded",
        "test[n=3]": "skipped",
        "after": "succeeded",
    }
    assert run.log("after") == '["1", "2", "3"]\n'


def test_one_failed_instance_blocks_what_follows(bench: Bench) -> None:
    text = """
        [nodes.test]
        shell = 'exit "$N"'
        env = { N = "${{ matrix.n }}" }
        matrix = { n = [0, 1] }
        [nodes.after]
        argv = ["true"]
        after = ["test"]
        """
    run = Started(bench, text)
    assert run.ended()["state"] == "failed"
    assert run.outcomes()["after"] == "unreached"
    assert run.node("after")["reason"] == "dependency failed for job job-2 (failed)"


FINALLY = """
finally = ["report"]
[nodes.a]
shell = "exit 1"
[nodes.b]
argv = ["true"]
after = ["a"]
[nodes.report]
argv = ["echo", "${{ run.id }}", "${{ run.name }}", "${{ run.state }}"]
"""


def test_finally_runs_when_all_others_have_ended(bench: Bench) -> None:
    run = Started(bench, FINALLY)
    assert run.ended()["state"] == "failed"
    assert run.log("report") == "wf-1 flow failed\n"


APPROVAL = """
[nodes.plan]
argv = ["true"]
on.succeeded = ["agree"]
[nodes.agree]
uses = "control.gate.approval"
args = { question = "Build it?" }
on.succeeded = ["build"]
on.blocked = ["give_up"]
[nodes.build]
argv = ["true"]
[nodes.give_up]
argv = ["true"]
"""


@pytest.mark.req("V22", "V26")
@pytest.mark.parametrize("agreed", [True, False])
def test_an_approval_decides_the_way(bench: Bench, agreed: bool) -> None:
    run = Started(bench, APPROVAL)
    bench.until(lambda: run.node("agree")["state"] == "waiting_on_approval", "to be asked")
    decide = bench.client.jobs.approve if agreed else bench.client.jobs.reject
    decide(run.job("agree"))
    run.ended()
    ways = {"build": "succeeded", "give_up": "skipped"}
    if not agreed:
        ways = {"build": "unreached", "give_up": "succeeded"}
    assert {name: run.outcomes()[name] for name in ways} == ways
    assert run.document["state"] == ("succeeded" if agreed else "blocked")


@pytest.mark.req("V22", "V26")
@pytest.mark.parametrize(
    ("policy", "command", "outcome", "words"),
    [
        ("stop_condition", "argv = ['true']", "succeeded", "stop-condition passed on attempt 1"),
        ("stop_condition", "shell = 'exit 7'", "failed", "stop-condition failed on attempt 1"),
        (
            "stop_condition",
            "",
            "succeeded",
            "stop-condition gate skipped (no script configured)",
        ),
        ("cicd", "argv = ['true']", "succeeded", "cicd gate passed on attempt 1"),
        ("cicd", "shell = 'exit 7'", "failed", "cicd gate failed on attempt 1 (exit 7)"),
    ],
)
def test_a_gate_says_what_it_decided(
    bench: Bench, policy: str, command: str, outcome: str, words: str
) -> None:
    run = Started(bench, f"[nodes.g]\nuses = 'control.gate.{policy}'\n{command}\n")
    run.ended()
    assert run.outcomes() == {"g": outcome}
    assert run.log("g") == f"{words}\n"
    if outcome == "failed":
        assert run.node("g")["reason"] == words


def test_retries_come_before_the_outcome(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    run = Started(
        bench,
        f"""
        [nodes.a]
        shell = 'test -e {mark} || {{ touch {mark}; exit 1; }}'
        retries = 1
        retry_base = "0s"
        on.failed = ["alarm"]
        on.succeeded = ["b"]
        [nodes.b]
        argv = ["true"]
        [nodes.alarm]
        argv = ["true"]
        """,
    )
    assert run.ended()["state"] == "succeeded"
    assert run.outcomes() == {"a": "succeeded", "b": "succeeded", "alarm": "skipped"}
    assert bench.last(1).attempt == 2 and bench.last(1).node == "a"


def test_a_stopped_run_runs_only_finally(bench: Bench) -> None:
    run = Started(
        bench,
        """
        finally = ["report"]
        [nodes.a]
        argv = ["sleep", "60"]
        [nodes.b]
        argv = ["true"]
        after = ["a"]
        [nodes.report]
        argv = ["echo", "${{ run.state }}"]
        """,
    )
    bench.until(lambda: run.node("a")["state"] == "running", "it to run")
    stop_run(bench.client.context, run.run)
    ended = run.ended()
    assert ended["state"] == "cancelled" and ended["stopped_by"] == "tester"
    assert run.outcomes() == {"a": "cancelled", "b": "cancelled", "report": "succeeded"}


def test_a_run_that_takes_too_long_is_stopped(bench: Bench) -> None:  # fault J1
    run = Started(bench, 'timeout = "1s"\n[nodes.a]\nargv = ["sleep", "60"]\n')
    ended = run.ended()
    assert ended["state"] == "failed" and ended["reason"] == "timed out after 1s"


def test_a_timeout_that_passes_while_only_the_last_nodes_run_stops_nothing(
    bench: Bench, tmp_path: Path
) -> None:
    run = Started(
        bench,
        f"""
        timeout = "1s"
        finally = ["f"]
        [nodes.a]
        argv = ["test", "-e", "{tmp_path}/there"]
        [nodes.f]
        argv = ["sleep", "1.5"]
        """,
    )
    assert run.ended()["state"] == "failed"
    assert run.document["stopped_by"] is None and run.document["deadline"] is None
    (tmp_path / "there").touch()
    bench.client.workflows.retry(run.run)
    assert run.document["deadline"], "the time counts anew"
    ended = run.ended()
    assert ended["state"] == "succeeded" and exit_code(ended) == 0
    with pytest.raises(ConflictError, match="wf-1 succeeded; there is nothing to retry"):
        bench.client.workflows.retry(run.run)


def test_a_stop_that_comes_when_all_went_well_leaves_nothing_to_retry(bench: Bench) -> None:
    run = Started(
        bench,
        """
        finally = ["f"]
        [nodes.a]
        argv = ["true"]
        [nodes.f]
        argv = ["sleep", "0.3"]
        """,
    )
    bench.until(lambda: run.node("f")["state"] == "running", "the last to run")
    stop_run(bench.client.context, run.run)
    assert run.ended()["state"] == "cancelled" and next_step(bench.client, run.document) is None
    with pytest.raises(ConflictError, match="wf-1 cancelled; there is nothing to retry"):
        bench.client.workflows.retry(run.run)


def test_a_run_waits_for_jobs_and_a_key_starts_one(bench: Bench) -> None:
    gate = bench.submit("true", require_approval=True)
    run = Started(bench, CHAIN, after=(gate,), key="once")  # type: ignore[arg-type]
    bench.step()
    assert run.node("a")["state"] == "waiting_on_deps"
    again = Started(bench, CHAIN, key="once")
    assert again.run == run.run and not again.made.created
    with pytest.raises(KeyReusedError, match="'once' belongs to wf-1"):
        Started(bench, 'params.n = { type = "int", default = 1 }\n' + CHAIN, key="once")
    bench.client.jobs.approve(gate)
    assert run.ended()["state"] == "succeeded"
    assert len(list_runs(bench.client.context)) == 1


def test_a_failed_node_can_be_retried_and_its_run_goes_on(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    run = Started(
        bench,
        f"""
        [nodes.a]
        shell = 'test -e {mark}'
        [nodes.b]
        argv = ["true"]
        after = ["a"]
        """,
    )
    assert run.ended()["state"] == "failed"
    mark.touch()
    bench.client.jobs.retry(run.job("a"))
    assert run.document["state"] == "running"
    assert run.ended()["state"] == "succeeded"
    assert run.outcomes() == {"a": "succeeded", "b": "succeeded"}


def test_a_retry_reaches_whatever_follows_by_any_outcome(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    run = Started(
        bench,
        f"""
        finally = ["report"]
        [nodes.a]
        shell = 'test -e {mark}'
        on.failed = ["alarm"]
        [nodes.alarm]
        argv = ["true"]
        [nodes.either]
        argv = ["true"]
        after = [{{ node = "a", on = ["succeeded", "skipped"] }}]
        [nodes.report]
        argv = ["echo", "${{{{ run.state }}}}"]
        """,
    )
    assert run.ended()["state"] == "failed"
    before = {"a": "failed", "alarm": "succeeded", "either": "unreached", "report": "succeeded"}
    assert run.outcomes() == before
    mark.touch()
    bench.client.jobs.retry(run.job("a"))
    assert run.ended()["state"] == "succeeded"
    after = {"a": "succeeded", "alarm": "skipped", "either": "succeeded", "report": "succeeded"}
    assert run.outcomes() == after and run.log("report") == "succeeded\n"


def test_a_run_goes_on_after_a_crash(bench: Bench) -> None:
    run = Started(bench, ROUTES)
    while not run.document["ended_at"]:
        bench.turn()
        bench.crash()
        bench.engine.recover()
    assert run.outcomes()["alarm"] == "succeeded"
    assert run.outcomes()["always"] == "succeeded"


@pytest.mark.req("V15", "V16", "V100")
def test_a_wrong_file_writes_nothing(bench: Bench) -> None:
    with pytest.raises(WorkflowError) as refused:
        Started(bench, '[nodes.a]\nargv = ["true"]\nafter = ["b"]\non.failed = ["c"]\n')
    assert [each.words for each in refused.value.mistakes] == [
        "node 'a': after 'b' names no node",
        "node 'a': on.failed 'c' names no node",
    ]
    with bench.store.read() as tx:
        assert tx.jobs.active() == [] and tx.workflows.since(0, 10) == []


ONE = '[nodes.a]\nargv = ["true"]\n'
PRINTABLE = "must be 1 to 200 printable characters on one line"


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("priority", "high", "priority is 'high', not a whole number"),
        ("priority", 1.5, "priority is 1.5, not a whole number"),
        ("priority", True, "priority is True, not a whole number"),
        ("priority", 10**30, f"priority {10**30} is not between -1000000 and 1000000"),
        ("priority", -1_000_001, "priority -1000001 is not between -1000000 and 1000000"),
        ("require_approval", "no", "require_approval is 'no', not True or False"),
        ("key", 3, "key is 3, not a text"),
        ("key", ["a"], "key is ['a'], not a text"),
        ("key", "", f"key '' {PRINTABLE}"),
        ("key", "a\nb", f"key 'a\\nb' {PRINTABLE}"),
        ("key", "k" * 500, f"key '{'k' * 40}' {PRINTABLE}"),
        ("subject", 3, "subject is 3, not a text"),
        ("subject", "", f"subject '' {PRINTABLE}"),
        ("after", 3, "after is 3; give a list"),
        ("after", "job-1", "after is 'job-1'; give a list"),
        ("after", [1.5], "after[0] is 1.5, not the id, the slug or the local name of a job"),
        ("after", [0], "after 0 is not a job; the first is 1"),
    ],
)
def test_a_wrong_option_starts_no_run(bench: Bench, option: str, value: Any, words: str) -> None:
    """What its jobs could not have either; a worker could not order them."""
    document = {"nodes": {"a": {"argv": ["true"]}}}
    (Path(bench.home.path) / "workflows").mkdir()
    (Path(bench.home.path) / "workflows" / "one.toml").write_text(ONE)
    workflows = bench.client.workflows
    given: dict[str, Any] = {option: value}
    for start in (
        lambda: workflows.start("one", **given),
        lambda: workflows.start_document(document, name="flow", **given),
    ):
        with pytest.raises(InvalidInputError) as refused:
            start()
        assert str(refused.value) == words
    with bench.store.read() as tx:
        assert tx.jobs.active() == [] and tx.workflows.since(0, 10) == []


def test_a_run_goes_with_its_last_job(bench: Bench) -> None:
    run = Started(bench, CHAIN)
    run.ended()
    with bench.store.read() as tx:
        ids = [each.job_id for each in tx.workflows.nodes(run.run)]
    for job_id in ids:
        bench.client.jobs.clean(job_id)
    with bench.store.read() as tx:
        assert tx.workflows.since(0, 10) == [] and tx.workflows.nodes(run.run) == []


@pytest.mark.parametrize(
    ("command", "state", "passed", "words"),
    [
        ("argv = ['true']", "succeeded", "True", None),
        ("shell = 'exit 7'", "failed", "False", "cicd.run failed (exit 7)"),
        ("shell = 'exit 10'", "failed", "False", "cicd.run failed (exit 10)"),
        ("shell = 'kill -9 $$'", "failed", "False", "killed by SIGKILL"),
        ("shell = 'exit 99'", "skipped", "False", "skipped: exit code 99"),
        (
            """shell = 'echo passed:=7 >> "$HEADWAY_OUTPUTS"; exit 1'""",
            *("failed", "False", "cicd.run failed (exit 1)"),
        ),
    ],
)
def test_checks_say_whether_they_passed(
    bench: Bench, command: str, state: str, passed: str, words: str | None
) -> None:
    run = Started(
        bench,
        f"""
        [nodes.ci]
        uses = "cap.env.shell.cicd.run"
        {command}
        outputs = ["passed"]
        skip_exit_codes = [99]
        [nodes.tell]
        argv = ["echo", "${{{{ nodes.ci.outputs.passed }}}}"]
        after = [{{ node = "ci", on = ["ended"] }}]
        """,
    )
    run.ended()
    assert (run.outcomes()["ci"], run.node("ci")["reason"]) == (state, words)
    assert run.log("tell") == f"{passed.lower()}\n"
