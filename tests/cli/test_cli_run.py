"""`headway run`, and the commands about runs."""

import json
import re
from xml.etree import ElementTree

import pytest
from commandline import CommandLine, wait_for

FLOW = """\
description = "Say hello."
inputs = ["who"]
[params]
who = { type = "text", help = "whom to greet" }
times = 1
[nodes.hello]
argv = ["echo", "hello", "${{ params.who }}"]
[nodes.count]
shell = "exit $TIMES"
env.TIMES = "${{ params.times }}"
tolerate = ["failed"]
after = ["hello"]
[nodes.done]
uses = "control.terminal"
after = ["count"]
"""
BROKEN = '[nodes.a]\nargv = ["true"]\nafter = ["b"]\nretrys = 3\n'


@pytest.fixture
def flows(headway: CommandLine) -> CommandLine:
    folder = headway.home / "workflows"
    folder.mkdir()
    (folder / "hello.toml").write_text(FLOW)
    (folder / "broken.toml").write_text(BROKEN)
    (folder / "red.toml").write_text('[nodes.a]\nshell = "exit 3"\n')
    return headway


@pytest.mark.req("V3")
def test_a_run_is_followed_to_its_end(flows: CommandLine) -> None:
    done = flows("run", "hello", "ada", "--follow")
    assert done.stdout == "wf-1\n"
    said = done.stderr.splitlines()
    assert "headway: hello (job-1) started" in said
    assert any(each.startswith("headway: hello (job-1) succeeded in ") for each in said)
    assert any(
        each.startswith("headway: count (job-2) failed: exit code 1 (after ") for each in said
    )
    assert said[-1].startswith("headway: wf-1 succeeded in ")
    assert flows.out("logs", "job-1") == "hello ada"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--key", ""), "key '' must be 1 to 200 printable characters on one line"),
        (("--key", "k" * 201), "must be 1 to 200 printable characters on one line"),
        (("--subject", ""), "subject '' must be 1 to 200 printable characters on one line"),
        (("--priority", "9" * 30), "is not between -1000000 and 1000000"),
        (("--priority", "high"), "--priority 'high' is not a whole number"),
    ],
)
def test_an_option_is_what_a_submit_may_have(
    flows: CommandLine, options: tuple[str, str], words: str
) -> None:
    for command in (("run", "hello", "ada", *options), ("submit", *options, "--", "true")):
        assert words in flows(*command, code=5).stderr
    assert flows("run", "hello", "ada", "--check", *options, code=5)


def test_what_is_followed_may_be_one_document_at_its_end(flows: CommandLine) -> None:
    done = flows("run", "red", "--follow", "--json", code=1)
    assert "headway: a (job-1) started" in done.stderr
    ended = json.loads(done.stdout)["run"]
    assert (ended["id"], ended["state"]) == ("wf-1", "failed")


def test_a_key_is_of_one_run(flows: CommandLine) -> None:
    assert flows.out("run", "hello", "ada", "--key", "k") == "wf-1"
    assert flows.out("run", "hello", "--set", "who=ada", "--key", "k") == "wf-1"
    words = "key 'k' belongs to wf-1, which has another specification; use another key"
    for other in (["hello", "bob"], ["red"], ["hello", "ada", "--subject", "gt-1"]):
        assert words in flows("run", *other, "--key", "k", code=4).stderr
    (flows.home / "workflows" / "hello.toml").write_text(FLOW.replace('"hello",', '"bye",'))
    assert words in flows("run", "hello", "ada", "--key", "k", code=4).stderr
    flows("workflows", "wait", "wf-1")
    assert len(flows.json("workflows", "runs", "--all")["runs"]) == 1


def test_a_file_that_is_edited_or_deleted_changes_no_run(flows: CommandLine) -> None:  # fault J7
    file = flows.home / "workflows" / "later.toml"
    text = """
        [nodes.asks]
        uses = "control.gate.approval"
        [nodes.says]
        argv = ["echo", "as it was"]
        after = ["asks"]
        loop = { to = "says", on = ["succeeded"], times = 1 }
        """
    file.write_text(text)
    flows("run", "later")
    wait_for(lambda: "waiting_on_approval" in flows.out("jobs", "show", "job-1"))
    file.write_text(text.replace("as it was", "as it is now"))
    flows("approve", "job-1")
    flows("workflows", "wait", "wf-1", code=10)
    file.unlink()
    flows("workflows", "retry", "wf-1", "--from", "says")
    flows("workflows", "wait", "wf-1", code=10)
    says = flows.json("jobs", "list", "--run", "wf-1")["jobs"]
    jobs = [each["id"] for each in says if each["name"] == "says"]
    assert len(jobs) == 4 and {flows.out("logs", each) for each in jobs} == {"as it was"}


def test_a_failed_run_says_why_and_what_to_do(flows: CommandLine) -> None:
    done = flows("run", "red", "--follow", code=1)
    *_, how, following = done.stderr.splitlines()
    assert how.startswith("headway: wf-1 failed after ")
    assert how.endswith("s: a (job-1) failed: exit code 3")
    assert following == "headway: next: headway workflows retry wf-1 --from a"
    assert flows("workflows", "wait", "wf-1", code=1).stderr.endswith("exit code 3\n")
    shown = flows.out("workflows", "show", "wf-1")
    assert "a (job-1) failed: exit code 3" in shown
    assert "next     headway workflows retry wf-1 --from a" in shown
    listed = flows.out("workflows", "runs")
    assert "wf-1" in listed and "red" in listed and "failed" in listed
    assert flows.json("workflows", "runs", "--state", "succeeded")["runs"] == []


@pytest.mark.req("V10", "V12")
def test_the_documents_of_a_run(flows: CommandLine) -> None:
    started = flows.json("run", "hello", "ada", "--set", "times=0")["run"]
    assert started["id"] == "wf-1" and started["params"] == {"who": "ada", "times": 0}
    ended = flows.json("workflows", "wait", "wf-1")["run"]
    assert ended["state"] == "succeeded" and ended["reason"] is None
    assert [each["id"] for each in ended["nodes"]] == ["hello", "count", "done"]
    shown = flows.json("workflows", "show", "wf-1")["run"]
    assert [each["id"] for each in shown["manifest"]["nodes"]] == ["hello", "count", "done"]
    job = json.loads(flows.out("jobs", "show", "job-1", "--json"))["job"]
    assert job["workflow"]["run_id"] == "wf-1" and "workflow" not in job["params"]


def test_a_run_may_be_about_a_subject(flows: CommandLine) -> None:
    started = flows.json("run", "hello", "ada", "--subject", "gt-1")["run"]
    assert (started["subject"], started["target"]) == ("gt-1", None)
    flows("workflows", "wait", "wf-1")
    assert re.search(r"^  subject  gt-1$", flows.out("workflows", "show", "wf-1"), re.M)
    header, row = flows.out("workflows", "runs").splitlines()
    assert header.split()[-1] == "Subject" and row.split()[-1] == "gt-1"
    assert flows.out("jobs", "list", "--subject", "gt-1", "--fields", "subject").count("gt-1") > 1
    said = flows("run", "hello", "ada", "--subject", "x", "--repeat", "2", code=5).stderr
    assert "one run at a time may be about a subject; leave one of the two out" in said


@pytest.mark.req("V100")
def test_a_check_writes_nothing(flows: CommandLine) -> None:
    done = flows("run", "hello", "ada", "--check")
    assert done.stdout == "" and "nothing is wrong; 3 jobs" in done.stderr
    said = flows.json("run", "hello", "ada", "--check")
    assert (said["valid"], said["workflow"]["jobs"]) == (True, 3)
    said = json.loads(flows("run", "hello", "--check", "--json", code=5).stdout)
    assert not said["valid"] and said["workflow"]["mistakes"] == [
        {
            "text": "parameter 'who' has no value; give --set who=VALUE",
            "line": None,
            "column": None,
        }
    ]
    flows("run", "broken", "--check", code=5)
    missing = flows.home / "workflows" / "missing.toml"
    missing.write_text('[nodes.a]\nargv = ["./no-program"]\n')
    refused = flows("run", "missing", "--check", code=5).stderr
    assert "node 'a': program './no-program' was not found" in refused, "as a start would"
    lines = '[nodes.a]\nargv = ["${{ matrix.x }}"]\nmatrix = { x = '
    missing.write_text(f'{lines}["true", "./no", "./no-no"] }}\n[nodes.b]{lines[9:]}["./a"] }}\n')
    said = flows("run", "missing", "--check", code=5).stderr
    missing.write_text('[nodes.a]\nargv = ["./no"]\nmatrix = { x = [1, 2] }\n')
    refused = flows("run", "missing", "--check", code=5).stderr
    assert "node 'a[x=./no]': program './no'" in said and "things" not in refused
    assert "node 'b': program './a' was" in said and "node 'a': program './no' was" in refused
    assert flows.json("jobs", "list", "--all")["jobs"] == []
    assert flows.json("workflows", "runs")["runs"] == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["hello"], 5, "parameter 'who' has no value; give --set who=VALUE"),
        (["hello", "a", "b"], 5, "hello takes 1 input (who); 2 are given"),
        (["hello", "a", "--set", "who=b"], 5, "parameter 'who' is given twice"),
        (
            ["hello", "a", "--set", "time=2"],
            5,
            "no parameter 'time'; there are who, times",
        ),
        (["hello", "a", "--set", "times=two"], 5, "'times' is \"two\"; give a whole number"),
        (["hello", "a", "--set", "times"], 5, "--set 'times' is not K=V"),
        (["helo", "a"], 3, "there is no workflow 'helo'; did you mean 'hello'?"),
        (["./none.toml"], 3, "there is no file ./none.toml"),
        (["broken"], 5, "node 'a': after 'b' names no node"),
        (["broken"], 5, "node 'a': unknown key 'retrys'; did you mean 'retries'?"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_runs(
    flows: CommandLine, words: list[str], code: int, said: str
) -> None:
    assert said in flows("run", *words, code=code).stderr
    assert flows.json("jobs", "list", "--all")["jobs"] == []


def test_a_run_is_stopped(flows: CommandLine) -> None:
    (flows.home / "workflows" / "long.toml").write_text('[nodes.a]\nargv = ["sleep", "60"]\n')
    flows("run", "long")
    assert "wf-1 is stopped" in flows("workflows", "stop", "wf-1").stderr
    flows("workflows", "wait", "wf-1", code=143)
    assert "wf-1 cancelled" in flows("workflows", "stop", "wf-1").stderr
    assert "there is no wf-9" in flows("workflows", "stop", "wf-9", code=3).stderr
    assert "write one like wf-7" in flows("workflows", "wait", "x", code=5).stderr


@pytest.mark.parametrize("lines", ['argv = ["nosuch"]', 'argv = ["true"]\ncwd = "nosuch"'])
def test_what_is_not_there_is_refused_without_an_option_that_no_run_has(
    flows: CommandLine, lines: str
) -> None:
    (flows.home / "workflows" / "lost.toml").write_text(f"[nodes.a]\n{lines}\n")
    refused = flows("run", "lost", code=5).stderr
    assert "nosuch" in refused and "no-check" not in refused


def test_a_run_waits_for_a_job_and_has_a_key(flows: CommandLine) -> None:
    flows("submit", "--require-approval", "--", "true")
    assert flows.out("run", "hello", "ada", "--after", "job-1", "--key", "k") == "wf-1"
    assert flows.out("run", "hello", "ada", "--after", "job-1", "--key", "k") == "wf-1"
    assert "waiting on job job-1" in flows.out("why", "job-2")
    flows("approve", "job-1")
    flows("workflows", "wait", "wf-1")


LOOP = """\
inputs = ["folder"]
params.folder = { type = "path" }
[nodes.code]
argv = ["true"]
on.succeeded = ["ci"]
[nodes.ci]
shell = 'test -e "$FOLDER/green" || { touch "$FOLDER/green"; exit 1; }'
env = { FOLDER = "${{ params.folder }}" }
loop = { to = "code", on = ["failed"], times = 3 }
"""


ROUTES = """\
[nodes.a]
shell = "exit 3"
on.failed = ["alarm"]
on.succeeded = ["b"]
[nodes.alarm]
argv = ["true"]
[nodes.b]
argv = ["true"]
[nodes.c]
argv = ["true"]
after = ["b"]
[nodes.asks]
uses = "control.gate.approval"
after = ["alarm"]
"""


def test_why_names_the_first_cause_and_each_edge(flows: CommandLine) -> None:
    (flows.home / "workflows" / "routes.toml").write_text(ROUTES)
    flows("run", "routes")
    wait_for(lambda: "asks (job-5): awaiting human approval" in flows.out("why", "wf-1"))
    running = flows.out("why", "wf-1")
    assert "wf-1 is running" in running
    assert "trouble  a (job-1) failed: exit code 3" in running
    flows("approve", "job-5")
    flows("workflows", "wait", "wf-1", code=1)
    ended = flows.out("why", "wf-1")
    assert ended.startswith("wf-1 has ended: failed:\n  cause  a (job-1) failed: exit code 3")
    assert "headway workflows retry" in ended
    assert flows.json("why", "wf-1")["node"] == "a"
    assert "edge  a (job-1) failed; on succeeded: not taken" in flows.out("why", "job-3")
    assert "edge  a (job-1) failed; on failed: taken" in flows.out("why", "job-2")
    assert "headway jobs retry job-1" in flows.out("why", "job-4"), "the root, not job-3"
    assert flows.json("why", "job-2")["edges"] == [
        {
            "node": "a",
            "jobs": ["job-1"],
            "accepts": ["failed"],
            "required": False,
            "outcome": "failed",
            "taken": True,
        }
    ]


def test_a_run_is_drawn_with_its_states(flows: CommandLine) -> None:
    (flows.home / "workflows" / "loop.toml").write_text(LOOP)
    flows("run", "loop", str(flows.folder), "--follow")
    (flows.home / "workflows" / "loop.toml").unlink()  # the manifest counts
    drawn = flows.out("workflows", "graph", "wf-1")
    assert drawn.splitlines() == [
        "code  succeeded, pass 2",
        "ci    succeeded, pass 2  back x3 to code on failed",
    ]
    picture = flows.out("workflows", "graph", "wf-1", "--format", "svg")
    assert "back x3" in picture and "succeeded, pass 2" in picture
    boxes = [
        each for each in ElementTree.fromstring(picture).iter() if "node" in each.get("class", "")
    ]
    assert {each.get("class") for each in boxes} == {"node command succeeded"}
    flows("run", "red", "--follow", code=1)
    for form, red in (
        ("svg", 'class="node command failed"'),
        ("mermaid", ":::failed"),
        ("dot", "#fbc9c6"),
    ):
        assert red in flows.out("workflows", "graph", "wf-2", "--format", form)


def test_a_job_that_waits_for_a_run_lends_its_slot(flows: CommandLine) -> None:
    """There is one slot, which the job has that waits."""
    done = flows("exec", "--", *flows.argv("run", "hello", "ada", "--follow"))
    assert done.stdout == "wf-1\n" and "wf-1 succeeded in " in done.stderr


def test_the_jobs_of_a_run_are_listed(flows: CommandLine) -> None:
    flows("exec", "--", "true")
    flows("run", "hello", "ada", "--follow")
    listed = flows.json("jobs", "list", "--run", "wf-1")["jobs"]
    assert [each["name"] for each in listed] == ["hello", "count", "done"]
    failed = flows.json("jobs", "list", "--run", "wf-1", "--state", "failed")["jobs"]
    assert [each["name"] for each in failed] == ["count"]
    drawn = flows.out("jobs", "schedule", "--run", "wf-1")
    assert all(name in drawn for name in ("hello", "count", "done")) and "job-1" not in drawn
    assert "there is no wf-9" in flows("jobs", "list", "--run", "wf-9", code=3).stderr
    assert "write one like wf-7" in flows("jobs", "schedule", "--run", "x", code=5).stderr


@pytest.mark.req("V12")
def test_a_job_says_what_it_is_of_its_run(flows: CommandLine) -> None:
    (flows.home / "workflows" / "loop.toml").write_text(LOOP)
    flows("run", "loop", str(flows.folder), "--follow")
    first, last = (flows.json("jobs", "show", job)["job"]["workflow"] for job in ("job-2", "job-4"))
    assert (first["outcome"], first["pass"]) == ("failed", 1)
    assert (last["outcome"], last["pass"]) == ("succeeded", 2)
    assert last["loops"] == [{"to": "code", "on": ["failed"], "times": 3, "delay": 0}]
    assert last["routes"] == [{"source": "code", "accepts": ["succeeded"], "required": True}]
    assert last["item"] is None and set(last["gates"]) == {
        *("approval", "require", "pin_head", "when")
    }
    assert "workflow   wf-1 (loop), node ci, pass 2, succeeded" in flows.out(
        "jobs", "show", "job-4"
    )
    run = flows.json("workflows", "show", "wf-1")["run"]
    assert run["status"] == "COMPLETED" and run["manifest"]["sinks"] == ["ci"]


def test_jobs_and_runs_wait_for_a_run(flows: CommandLine) -> None:
    done = flows("run", "hello", "ada", "--repeat", "2", "--follow")
    assert done.stdout == "wf-1\nwf-2\n"
    assert "headway: wf-2 succeeded in " in done.stderr
    assert flows.out("submit", "--after", "wf-2", "--", "true") == "job-7"
    flows("wait", "job-7")
    assert flows.out("run", "hello", "bob", "--after", "wf-2", "--after", "job-7") == "wf-3"
    flows("workflows", "wait", "wf-3")
    for words in (["submit", "--after", "wf-9", "--", "true"], ["run", "red", "--after", "wf-9"]):
        assert "there is no wf-9" in flows(*words, code=3).stderr
    assert "--repeat 0 is not between" in flows("run", "red", "--repeat", "0", code=5).stderr
    taken = flows("submit", "--slug", "wf-3", "--", "true", code=5).stderr
    assert "looks like a run of a workflow" in taken


def test_following_tells_how_a_loop_goes_back(flows: CommandLine) -> None:
    (flows.home / "workflows" / "loop.toml").write_text(LOOP)
    said = flows("run", "loop", str(flows.folder), "--follow").stderr
    assert "headway: ci (job-2) failed: exit code 1; back to code, 1 of 3 (after " in said
    assert "headway: code (job-3) started, pass 2" in said
    shown = flows.out("workflows", "show", "wf-1").splitlines()
    header = next(each for each in shown if each.startswith("Node"))
    assert header.split() == ["Node", "Job", "State", "Pass", "Time", "Wait/Result"]
    assert shown[-1].split()[:4] == ["ci", "job-4", "succeeded", "2"]


def test_waiting_for_a_run_says_that_the_scheduler_is_paused(flows: CommandLine) -> None:
    flows("scheduler", "pause", "--reason", "they died")
    flows("run", "hello", "ada")
    done = flows("workflows", "wait", "wf-1", "--timeout", "4s", code=124)
    said = "waits: paused by "
    lines = [each for each in done.stderr.splitlines() if said in each]
    assert len(lines) == 1 and lines[0].startswith("headway: wf-1 waits: paused by ")
    assert lines[0].endswith(": they died (headway scheduler resume)")
    done = flows("jobs", "wait", "job-1", "job-2", "--timeout", "3s", code=124)
    lines = [each for each in done.stderr.splitlines() if said in each]
    assert len(lines) == 1 and lines[0].startswith("headway: job-1 waits: paused by ")


EACH = """\
[nodes.list]
argv = ["sh", "-c", "echo 'x:=[1, 2]' >> $HEADWAY_OUTPUTS"]
outputs = ["x"]
[nodes.t]
argv = ["test", "${{ item }}", "-gt", "1"]
after = ["list"]
each = { in = "${{ nodes.list.outputs.x }}" }
loop = { to = "list", on = ["failed"], times = 1 }
"""


def test_following_tells_of_a_node_with_instances_that_it_goes_back(flows: CommandLine) -> None:
    (flows.home / "workflows" / "each.toml").write_text(EACH)
    said = flows("run", "each", "--follow", code=10).stderr.splitlines()
    assert "headway: t: back to list, 1 of 1" in said
    assert sum("back to" in each for each in said) == 1


MATRIX = """\
[nodes.test]
shell = 'test "$N" != 3'
env = { N = "${{ matrix.n }}" }
matrix = { n = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] }
[nodes.publish]
argv = ["true"]
after = ["test"]
"""


@pytest.mark.parametrize("columns", ["60", "200"])
def test_a_matrix_is_one_line_with_counts(flows: CommandLine, columns: str) -> None:
    (flows.home / "workflows" / "matrix.toml").write_text(MATRIX)
    said = flows("run", "matrix", "--follow", code=1).stderr
    assert "headway: test x10 ended: 1 failed, 9 succeeded" in said
    assert "headway: test[n=3] (job-3) failed: exit code 1" in said and "test[n=4]" not in said
    shown = flows("workflows", "show", "wf-1", env={"COLUMNS": columns}).stdout.splitlines()
    assert all(len(each) <= int(columns) for each in shown)
    test, bad, publish = shown[-3:]
    assert test.split()[:5] == ["test", "x10", "job-1", "...", "failed"]
    assert test.endswith("1 failed, 9 succeeded") or columns == "60"
    assert bad.lstrip().startswith("test") and "job-3" in bad
    assert publish.split()[:3] == ["publish", "job-11", "unreached"]
    assert "  next     headway workflows retry wf-1" in shown


def test_a_run_that_took_too_long_exits_with_its_own_code(flows: CommandLine) -> None:
    text = 'timeout = "100ms"\n[nodes.a]\nargv = ["sleep", "60"]\n'
    (flows.home / "workflows" / "slow.toml").write_text(text)
    said = flows("run", "slow", "--follow", code=124).stderr
    assert "timed out after 100ms" in said
    flows("workflows", "wait", "wf-1", code=124)


def test_a_run_is_retried_from_where_it_failed(flows: CommandLine) -> None:
    text = '[nodes.a]\nshell = "test -e green"\n[nodes.b]\nargv = ["true"]\nafter = ["a"]\n'
    (flows.home / "workflows" / "again.toml").write_text(text)
    flows("run", "again", "--follow", code=1)
    planned = flows("workflows", "retry", "wf-1", "--dry-run")
    assert planned.stdout == "a\nb\n" and "would run again: a, b" in planned.stderr
    assert flows.json("workflows", "show", "wf-1")["run"]["state"] == "failed"
    (flows.folder / "green").touch()
    done = flows("workflows", "retry", "wf-1", "--follow")
    assert done.stdout == "wf-1\n" and "a (job-3) started, pass 2" in done.stderr
    refused = flows("workflows", "retry", "wf-1", code=4)
    assert "wf-1 succeeded; there is nothing to retry" in refused.stderr
    document = flows.json("workflows", "retry", "wf-1", "--from", "b")
    assert document["run"] == "wf-1" and document["nodes"] == ["b"] and document["from"] == ["b"]
    flows("workflows", "wait", "wf-1")
    near = flows("workflows", "retry", "wf-1", "--from", "c", code=3)
    assert "wf-1 has no node 'c'; there are a, b" in near.stderr


def test_parameters_are_shown_as_they_are_given(flows: CommandLine) -> None:
    text = '[params]\npublish = false\nnames = ["a"]\n[nodes.a]\nargv = ["true"]\n'
    (flows.home / "workflows" / "given.toml").write_text(text)
    flows("run", "given", "--set", "publish=true", "--follow")
    assert 'names=["a"], publish=true' in flows.out("workflows", "show", "wf-1")
