"""Nodes with `each`: a list that a run comes to is one job for each element."""

from pathlib import Path

import pytest
from started import Started

from harness import Bench
from headway.core.states import Status
from headway.workflows.runs import stop_run

FAN = """
[nodes.shards]
shell = 'echo "shards:=$LIST" >> "$HEADWAY_OUTPUTS"'
env = {{ LIST = '{given}' }}
outputs = ["shards"]
[nodes.slow]
shell = 'echo "item $ITEM"; echo "size=$ITEM$ITEM" >> "$HEADWAY_OUTPUTS"; test "$ITEM" != bad'
env = {{ ITEM = "${{{{ item }}}}" }}
labels = {{ shard = "is-${{{{ item }}}}" }}
each = {{ in = "${{{{ nodes.shards.outputs.shards }}}}", max = 3 }}
after = ["shards"]
outputs = ["size"]
{more}
[nodes.after]
argv = ["echo", "${{{{ nodes.slow.outputs.size }}}}"]
after = ["slow"]
[nodes.alarm]
argv = ["echo", "${{{{ last.slow.tail }}}}"]
after = [{{ node = "slow", on = ["failed"] }}]
"""


def fan(given: str, more: str = "") -> str:
    return FAN.format(given=given, more=more)


def test_a_list_is_one_job_for_each_element(bench: Bench) -> None:
    run = Started(bench, fan('["a", "b"]'))
    assert len(run.made.jobs) == 4  # the node is one job when the run starts
    assert run.ended()["state"] == "succeeded"
    assert run.outcomes() == {
        "shards": "succeeded",
        "slow": "succeeded",
        "after": "succeeded",
        "alarm": "skipped",
        "slow[0]": "succeeded",
        "slow[1]": "succeeded",
    }
    assert run.log("slow[1]") == "item b\n" and run.log("slow") == "2 instances\n"
    assert run.log("after") == '["aa", "bb"]\n'
    assert bench.job(run.job("slow[1]")).labels == {"shard": "is-b"}
    assert bench.client.document(run.job("slow[1]"))["workflow"]["item"] == "b"


def test_what_instances_left_is_in_their_order(bench: Bench, tmp_path: Path) -> None:
    """Of twelve, and without what the fan itself left."""
    text = f"""
    params.items = {{ type = "list", default = {[*range(12)]} }}
    [nodes.slow]
    shell = 'echo "size=$ITEM" >> "$HEADWAY_OUTPUTS"; echo "item $ITEM"; test $ITEM -lt 11 -o -e {tmp_path}/on'
    env = {{ ITEM = "${{{{ item }}}}", LAST = "${{{{ last.slow.outputs.size }}}} ${{{{ last.slow.outcome }}}}" }}
    each = {{ in = "${{{{ params.items }}}}" }}
    outputs = ["size"]
    on.ended = ["look"]
    [nodes.look]
    argv = ["echo", "${{{{ last.slow.outputs.size }}}}", "${{{{ last.slow.exit_code }}}}", "${{{{ last.slow.tail }}}}"]
    """
    run = Started(bench, text)
    assert run.ended()["state"] == "failed", run.document
    sizes = ", ".join(f'"{each}"' for each in range(12))
    assert run.log("look") == f"[{sizes}] [{'0, ' * 11}1] item 11\n"


def test_an_empty_list_is_a_success(bench: Bench) -> None:
    run = Started(bench, fan("[]"))
    assert run.ended()["state"] == "succeeded"
    assert run.outcomes()["slow"] == "succeeded" and run.log("after") == "[]\n"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ('["a", "b", "c", "d"]', "each.in has 4 elements, more than max = 3"),
        ('"abc"', "each.in is no list"),
        ("null", "each.in is no list"),
    ],
)
def test_what_is_no_list_or_too_long_fails_the_fan(  # fault J6
    bench: Bench, given: str, words: str
) -> None:
    run = Started(bench, fan(given))
    assert run.ended()["state"] == "failed"
    assert run.node("slow")["outcome"] == "failed" and run.node("slow")["reason"] == words
    assert run.outcomes()["after"] == "unreached" and run.outcomes()["alarm"] == "succeeded"


def test_one_failed_instance_fails_the_node(bench: Bench) -> None:
    run = Started(bench, fan('["a", "bad", "c"]'))
    assert run.ended()["state"] == "failed"
    outcomes = run.outcomes()
    assert outcomes["slow[0]"] == outcomes["slow[2]"] == "succeeded"
    assert outcomes["slow[1]"] == "failed" and outcomes["after"] == "unreached"
    assert outcomes["alarm"] == "succeeded" and run.log("alarm") == "item bad\n"


def test_one_instance_can_be_retried_like_any_job(bench: Bench, tmp_path: Path) -> None:
    text = fan('["a", "b"]').replace('test "$ITEM" != bad', f"test -e {tmp_path}/mended")
    run = Started(bench, text)
    assert run.ended()["state"] == "failed"
    (tmp_path / "mended").touch()
    for name in ("slow[0]", "slow[1]"):
        bench.client.jobs.retry(run.job(name))
    assert run.ended()["state"] == "succeeded"
    assert run.node("slow[0]")["pass"] == 2 and run.node("slow")["pass"] == 1
    assert run.outcomes()["after"] == "succeeded" and run.outcomes()["alarm"] == "skipped"


def test_a_fan_that_runs_again_makes_new_instances(bench: Bench, tmp_path: Path) -> None:
    given = tmp_path / "list"
    given.write_text('["a", "b", "c"]')
    text = fan("").replace("$LIST", f"$(cat {given})")
    run = Started(bench, text)
    assert run.ended()["state"] == "succeeded"
    first = run.job("slow[0]")
    given.write_text('["x"]')
    bench.client.jobs.repeat(run.job("shards"))
    assert run.ended()["state"] == "succeeded"
    assert [name for name in run.outcomes() if name.startswith("slow")] == ["slow", "slow[0]"]
    assert run.log("slow[0]") == "item x\n" and run.log("after") == '["xx"]\n'
    assert run.job("slow[0]") != first and bench.job(first).status is Status.SUCCEEDED


def test_conditions_about_the_item_are_of_the_instance(bench: Bench) -> None:
    run = Started(bench, fan('["a", "b"]', 'when = ["${{ item }} == b"]'))
    assert run.ended()["state"] == "succeeded"
    assert run.outcomes()["slow[0]"] == "skipped" and run.outcomes()["slow[1]"] == "succeeded"
    assert run.outcomes()["after"] == "succeeded"
    assert run.log("after") == '[null, "bb"]\n'


def test_a_fan_in_a_loop_is_expanded_anew_in_each_pass(bench: Bench, tmp_path: Path) -> None:
    text = f"""
    [nodes.shards]
    shell = 'echo x >> {tmp_path}/n; echo "shards:=$LIST" >> "$HEADWAY_OUTPUTS"'
    env = {{ LIST = '["a", "b"]' }}
    outputs = ["shards"]
    [nodes.slow]
    shell = 'test $(wc -l < {tmp_path}/n) -ge 3'
    each = {{ in = "${{{{ nodes.shards.outputs.shards }}}}" }}
    after = ["shards"]
    loop = {{ to = "shards", times = 5 }}
    [nodes.done]
    argv = ["true"]
    after = ["slow"]
    """
    run = Started(bench, text)
    assert run.ended()["state"] == "succeeded"
    assert run.node("slow")["pass"] == 3 and run.node("slow[1]")["pass"] == 3
    assert run.node("done")["pass"] == 1
    assert (tmp_path / "n").read_text() == "x\n" * 3


def test_a_stop_reaches_the_instances(bench: Bench) -> None:
    text = fan('["a", "b"]').replace('echo "item $ITEM"', "exec sleep 60")
    run = Started(bench, text)
    bench.until(lambda: "slow[1]" in run.outcomes(), "the instances")
    stop_run(bench.client.context, run.run)
    assert run.ended()["state"] == "cancelled"
    assert run.outcomes()["slow[1]"] == "cancelled" and run.outcomes()["after"] == "cancelled"


def test_what_a_longer_list_left_is_not_handed_on(bench: Bench, tmp_path: Path) -> None:
    given = tmp_path / "list"
    given.write_text('["bad", "bad"]')
    text = fan("").replace("$LIST", f"$(cat {given})")
    run = Started(bench, text)
    assert run.ended()["state"] == "failed" and run.log("alarm") == "item bad\nitem bad\n"
    given.write_text('["bad"]')
    bench.client.jobs.repeat(run.job("shards"))
    bench.until(lambda: run.node("alarm")["pass"] == 2, "the second pass")
    assert run.ended()["state"] == "failed"
    assert run.log("alarm") == "item bad\n"


def test_instances_have_artifacts_and_locks_of_their_run(bench: Bench) -> None:
    text = """
    artifacts.part.version = "1"
    params.items = { type = "list", default = ["x", "y"] }
    [nodes.make]
    argv = ["true"]
    each = { in = "${{ params.items }}" }
    produces = ["custom:part:${{ item }}"]
    locks = ["part-${{ run.id }}-${{ item }}"]
    [nodes.take]
    argv = ["true"]
    after = ["make"]
    needs = ["custom:part:x", "custom:part:y"]
    """
    run = Started(bench, text)
    assert run.ended()["state"] == "succeeded", run.document["reason"]
    made = bench.job(run.job("make[1]"))
    assert [lock.key for lock in made.locks] == [f"part-wf-{run.run}-y"]
    assert made.produces == (f"custom:part:y wf-{run.run}",)
    assert run.outcomes()["take"] == "succeeded"
