"""Work items become runs of workflows: what reaches them, what is refused, what is held."""

import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from both_stores import on_a_file
from harness import Bench
from headway.base.errors import ConflictError, InvalidInputError, NotFoundError
from headway.base.trust import revoke
from headway.core.states import Status
from headway.core.targets import Target
from headway.jobs.context import Context
from headway.jobs.settings import Config
from headway.jobs.templates import add_template
from headway.store import open_store
from headway.workitems.sling import Slung, Wish, sling
from headway.workitems.status import Cleared, clear, scheduled
from headway.workitems.targets import add_target, target_document
from slung import Project, issue

CHANGE = """
[params]
slug = { type = "slug" }
title = "none"
mood = { type = "text", choices = ["calm", "wild"], default = "calm" }
args = "nothing"
[nodes.plan]
shell = 'echo "$HEADWAY_SUBJECT $HEADWAY_TARGET"'
[nodes.code]
argv = [
  "echo", "${{ params.slug }}", "${{ params.title }}", "${{ params.mood }}", "${{ params.args }}",
]
after = ["plan"]
"""


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench(max_active=10)


@pytest.fixture
def project(bench: Bench) -> Project:
    made = Project(
        bench,
        issue("gt-1"),
        issue("gt-2", ("gt-1", "blocks")),
        issue("gt-3"),
        issue("hq-1"),
        issue("gt-epic", issue_type="epic"),
        issue("gt-e1", ("gt-epic", "parent-child")),
        issue("hq-e2", ("gt-epic", "parent-child")),
    )
    write(bench, CHANGE)
    made.target("gas", prefix="gt-", workflow="change", params={"slug": "{subject}"})
    made.target("hall", "true", prefix="hq-")
    return made


def write(bench: Bench, text: str, name: str = "change") -> None:
    folder = Path(bench.home.path, "workflows")
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.toml").write_text(text)


def run_of(slung: Slung) -> int:
    [made] = slung.scheduled
    assert made.run is not None and made.job_id is None
    return made.run


def document(bench: Bench, run: int) -> dict[str, Any]:
    return bench.client.workflows.run(run)


def jobs_of(bench: Bench, run: int) -> dict[str, int]:
    nodes = document(bench, run)["nodes"]
    return {each["id"]: int(each["job"].removeprefix("job-")) for each in nodes}


def ended(bench: Bench, run: int) -> dict[str, Any]:
    bench.until(lambda: document(bench, run)["ended_at"], f"wf-{run} to end")
    return document(bench, run)


def nothing_is_there(bench: Bench) -> bool:
    return not bench.client.listing(everything=True) and not bench.client.workflows.runs()


# -- what is taken ------------------------------------------------------------------------------


@pytest.mark.req("G2", "G10", "G12", "G21")
def test_an_item_becomes_a_run_with_its_values(project: Project, bench: Bench) -> None:
    slung = project.sling("gt-1", args="be quick; $(x)", variables={"mood": "wild"}, priority=4)
    run = run_of(slung)
    assert slung.scheduled[0].workflow == "change"
    assert document(bench, run)["params"] == {
        "slug": "gt-1",
        "title": "Do gt-1",
        "mood": "wild",
        "args": "be quick; $(x)",
    }
    assert (document(bench, run)["subject"], document(bench, run)["target"]) == ("gt-1", "gas")
    for job_id in jobs_of(bench, run).values():
        job = bench.job(job_id)
        assert (job.subject, job.target, job.priority) == ("gt-1", "gas", 4)
        record = bench.client.document(job_id)["sling"]
        assert (record["item"], record["recipe"], record["vars"]) == (
            "gt-1",
            "workflow change",
            {"mood": "wild"},
        )
        assert record["group"] == "group-1"
    with bench.store.read() as tx:
        [told] = [each for each in tx.events.since(0, 100) if each.kind == "slung"]
    assert told.data == {"subject": "gt-1", "target": "gas", "run": "wf-1", "group": "group-1"}
    assert ended(bench, run)["state"] == "succeeded"
    log = {
        name: Path(bench.home.job(job), "stdout.log").read_text()
        for name, job in jobs_of(bench, run).items()
    }
    assert log == {"plan": "gt-1 gas\n", "code": "gt-1 Do gt-1 wild be quick; $(x)\n"}


@on_a_file
@pytest.mark.parametrize(
    ("params", "wish", "given"),
    [
        ({"slug": "s"}, {}, {"slug": "s", "title": "Do gt-1", "mood": "calm", "args": "nothing"}),
        (
            {"slug": "a-{subject}", "title": "{target}: {title}", "args": "{{args}} {x}"},
            {"variables": {"x": "y"}},
            {"slug": "a-gt-1", "title": "gas: Do gt-1", "mood": "calm", "args": "{args} y"},
        ),
        (
            {"slug": "s", "mood": "wild", "title": "fixed"},
            {"variables": {"slug": "t", "mood": "calm"}, "args": "now"},
            {"slug": "t", "title": "fixed", "mood": "calm", "args": "now"},
        ),
        (
            {},
            {"variables": {"slug": "v", "mood": ""}},
            {"slug": "v", "title": "Do gt-1", "mood": "calm", "args": "nothing"},
        ),
    ],
)
def test_values_of_the_target_of_the_item_and_of_the_sling(
    project: Project, bench: Bench, params: dict[str, str], wish: dict[str, Any], given: Any
) -> None:
    project.target("gas", prefix="gt-", workflow="change", params=params)
    assert document(bench, run_of(project.sling("gt-1", **wish)))["params"] == given


@pytest.mark.req("G2", "G20", "G23")
def test_a_tree_becomes_jobs_and_runs_in_one_group(project: Project, bench: Bench) -> None:
    slung = project.sling("gt-epic")
    first, second = slung.scheduled
    assert (first.subject, first.run, first.job_id) == ("gt-e1", 1, None)
    assert (second.subject, second.run) == ("hq-e2", None)
    members = [*jobs_of(bench, 1).values(), second.job_id or 0]
    assert {bench.job(each).group_id for each in members} == set(slung.groups)
    assert sorted(bench.job(each).sequence_number or 0 for each in members) == [1, 2, 3]
    bench.until(lambda: bench.client.groups.show("group-1")["status"] == "COMPLETED")


def test_a_rehearsal_says_so_and_writes_nothing(project: Project, bench: Bench) -> None:
    [would] = project.sling("gt-1", rehearse=True).scheduled
    assert (would.subject, would.target, would.workflow, would.run) == (
        "gt-1",
        "gas",
        "change",
        None,
    )
    assert nothing_is_there(bench)


@on_a_file
@pytest.mark.req("G14")
def test_a_template_is_run_instead_of_the_workflow(project: Project, bench: Bench) -> None:
    argv, params = ["echo", "{subject}"], {"subject": None}
    add_template(bench.client.context, "greet", argv=argv, params=params)
    job = bench.job(project.job_of(project.sling("gt-1", on="greet")))
    assert (job.params["argv"], job.workflow_run) == (["echo", "gt-1"], None)


@on_a_file
def test_the_file_counts_as_it_is_when_it_is_slung(project: Project, bench: Bench) -> None:
    write(bench, '[params]\nslug = ""\n[nodes.only]\nargv = ["true"]\n')
    assert [*jobs_of(bench, run_of(project.sling("gt-1")))] == ["only"]


# -- what is refused ----------------------------------------------------------------------------


@on_a_file
@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"workflow": "chang"}, NotFoundError, "there is no workflow 'chang'; did you mean"),
        ({"workflow": "wrong"}, InvalidInputError, "wrong.toml: node 'a': say what it does"),
        ({"params": {"slog": "x"}}, InvalidInputError, "is no parameter 'slog'; there are slug"),
        ({"params": {"slog": "{title}"}}, InvalidInputError, "there is no parameter 'slog'"),
        ({"params": {"mood": "sad"}}, InvalidInputError, "parameter 'mood' is \"sad\"; give "),
        ({"argv": ("true",)}, InvalidInputError, "give --workflow or a command, not both"),
        ({"timeout": 5, "locks": ("x",)}, InvalidInputError, "locks: the workflow says it itself"),
        ({"helper": ("no-such-program",)}, InvalidInputError, "'no-such-program' was not found"),
        ({"workflow": None, "argv": ("true",), "params": {"a": "b"}}, InvalidInputError, "--set"),
        ({"workflow": "base", "params": {"base": "x"}}, InvalidInputError, "node 'tree': "),
    ],
)
def test_a_wrong_target_is_refused_when_it_is_added(
    project: Project, bench: Bench, fields: dict[str, Any], error: type[Exception], words: str
) -> None:
    write(bench, "[nodes.a]\n", "wrong")
    tree = "[params]\nbase = { type = 'text' }\n[nodes.tree]\n"
    tree += "uses = 'cap.env.builtin.worktree.prepare'\nargs.branch = 'b'\n"
    write(bench, tree + "args.base = '${{ params.base }}'\n", "base")
    with pytest.raises(error) as refusal:
        wanted = {"argv": (), "workflow": "change", **fields}
        add_target(bench.client.context, Target("new", **wanted))
    assert words in str(refusal.value)
    assert [each.name for each in bench.client.targets.list()] == ["gas", "hall"]
    if "base" in fields.get("params", {}):  # what only an item decides is checked later
        project.target("new", workflow="base", params={"base": "{subject}"})


@on_a_file
def test_a_path_is_kept_whole(
    project: Project, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.folder / "own.toml").write_text('[nodes.a]\nargv = ["true"]\n')
    monkeypatch.chdir(bench.folder)
    made = add_target(bench.client.context, Target("own", workflow="./own.toml"))
    assert made.workflow == str(bench.folder / "own.toml")
    shown = target_document(bench.client.targets.show("gas"))
    assert (shown["workflow"], shown["params"]) == ("change", {"slug": "{subject}"})
    assert (shown["command"], shown["placeholders"]) == ([], ["subject"])
    assert run_of(project.sling("hq-1", "own")) == 1


@on_a_file
@pytest.mark.req("G19")
@pytest.mark.parametrize(
    ("text", "wish", "words"),
    [
        (None, {}, "gt-1 cannot be slung to target gas: there is no workflow 'change'"),
        ("[nodes.a]\n", {}, "target gas: .*change.toml: node 'a': say what it does"),
        ("[nodes", {}, "change.toml: line 1, column"),
        (CHANGE.replace('"slug" }', '"int" }'), {}, "parameter 'slug' is \"gt-1\"; give "),
        (CHANGE.replace("slug =", "slog =").replace(".slug", ".slog"), {}, "give --var slog=VALUE"),
        (CHANGE.replace('"echo"', '"no-such"'), {}, "node 'code': .*'no-such' was not found"),
        (CHANGE, {"variables": {"moo": "x"}}, "--var moo: no recipe has {moo} for it"),
        (CHANGE, {"variables": {"mood": "sad"}}, "parameter 'mood' is \"sad\""),
        (CHANGE.replace("args", "more"), {"args": "x"}, "--args: no recipe has {args} for it"),
    ],
)
def test_what_cannot_run_is_refused_when_it_is_slung(
    project: Project, bench: Bench, text: str | None, wish: dict[str, Any], words: str
) -> None:
    if text is None:
        Path(bench.home.path, "workflows", "change.toml").unlink()
    else:
        write(bench, text)
    with pytest.raises(InvalidInputError, match=words):
        project.sling("gt-1", **wish)
    assert nothing_is_there(bench)


@on_a_file
def test_text_of_others_is_never_run(project: Project, bench: Bench) -> None:
    """# fault J5"""
    text = """
params.title = "x"
[nodes.a]
argv = ["%s", "-c", "echo ${{ params.title }}"]
"""
    write(bench, text % "echo")
    project.target("gas", prefix="gt-", workflow="change")
    write(bench, text % "sh")
    for act in (
        lambda: project.target("gas", prefix="gt-", workflow="change"),
        lambda: project.sling("gt-1"),
    ):
        with pytest.raises(InvalidInputError, match="node 'a': shell takes no"):
            act()
    assert nothing_is_there(bench)


@on_a_file
def test_a_file_that_is_not_trusted_is_no_recipe(project: Project, bench: Bench) -> None:
    revoke(bench.home.path)
    with pytest.raises(InvalidInputError, match=r"change\.toml is not trusted; "):
        project.sling("gt-1")
    with pytest.raises(InvalidInputError, match=r"change\.toml is not trusted; "):
        project.target("new", workflow="change")
    assert nothing_is_there(bench)


@pytest.mark.req("G23")
def test_of_a_tree_only_the_items_of_a_wrong_file_are_left_out(
    project: Project, bench: Bench
) -> None:
    write(bench, "[nodes.a]\n")
    slung = project.sling("gt-epic")
    assert [each.subject for each in slung.scheduled] == ["hq-e2"]
    [skipped] = slung.skipped
    assert skipped.subject == "gt-e1" and "target gas: " in skipped.reason
    Path(bench.home.path, "workflows", "change.toml").unlink()
    assert "there is no workflow" in project.sling("gt-epic", rehearse=True).skipped[0].reason


# -- never twice --------------------------------------------------------------------------------


@pytest.mark.req("G17")
def test_an_open_run_is_kept_whatever_the_target_and_the_force(
    project: Project, bench: Bench
) -> None:
    run = run_of(project.sling("gt-1"))
    project.target("any", "true")
    for words in (["gt-1"], ["gt-1", "any"]):
        again = project.sling(*words, force=True)
        assert again.scheduled == ()
        [held] = again.already
        assert (held.shown, held.target, held.workflow) == (f"wf-{run}", "gas", "change")
    with pytest.raises(ConflictError, match=f"^wf-{run} is about gt-1"):
        bench.submit("true", subject="gt-1")
    ended(bench, run)
    job = project.job_of(project.sling("gt-1", "any"))
    [held] = project.sling("gt-1").already
    assert (held.shown, held.target, held.workflow) == (f"job-{job}", "any", None)


@pytest.mark.req("G17")
def test_many_who_sling_at_once_start_one_run(project: Project, bench: Bench) -> None:
    """Some to a workflow, some to a command: one of all starts."""
    project.target("any", "true")
    found: list[Slung] = []
    ready = threading.Barrier(4)

    def race(words: tuple[str, ...]) -> None:
        url = bench.home.store_url or f"sqlite://{bench.home.database}"
        with closing(open_store(url, bench.clock)) as store:
            context = Context(
                bench.home,
                Config({"worker.autostart": False}),
                store,
                bench.clock,
                environ=bench.client.context.environ,
                actor="racer",
            )
            ready.wait()
            found.append(sling(context, Wish(words)))

    wishes = [("gt-1",), ("gt-1", "any"), ("gt-1", "gas"), ("gt-1", "any")]
    racers = [threading.Thread(target=race, args=(each,)) for each in wishes]
    for each in racers:
        each.start()
    for each in racers:
        each.join()
    assert len(found) == 4 and sum(len(each.scheduled) for each in found) == 1
    assert len({(*each.scheduled, *each.already)[0].shown for each in found}) == 1
    made = bench.client.listing(everything=True)
    runs = bench.client.workflows.runs(everything=True)
    assert (len(made), len(runs)) in ((2, 1), (1, 0))


# -- the gate -----------------------------------------------------------------------------------


@pytest.mark.req("G27")
def test_a_blocked_item_holds_the_beginning_of_its_run(project: Project, bench: Bench) -> None:
    run = run_of(project.sling("gt-2"))
    plan = jobs_of(bench, run)["plan"]
    bench.until(lambda: (bench.job(plan).wait or ("", ""))[1] == "blocked by gt-1")
    project.change("gt-1", status="closed")
    bench.until_ended(plan)
    assert bench.status(plan) is Status.SUCCEEDED
    assert ended(bench, run)["state"] == "succeeded"


def test_an_item_that_is_closed_before_it_begins_ends_its_run(
    project: Project, bench: Bench
) -> None:
    run = run_of(project.sling("gt-2"))
    bench.until(lambda: bench.status(jobs_of(bench, run)["plan"]) is Status.WAITING_ON_DEPS)
    project.change("gt-2", status="closed")
    found = ended(bench, run)
    assert (found["state"], found["reason"]) == (
        "cancelled",
        "plan (job-1) cancelled: subject gt-2 is closed",
    )


GREEN_AT_TWO = """
[nodes.code]
shell = 'rm -f {export}; cp {closed} {export}; echo "$HEADWAY_PASS" >> {folder}/n'
[nodes.ci]
shell = 'test $(wc -l < {folder}/n) -ge 2'
after = ["code"]
loop = {{ to = "code", on = ["failed"], times = 2 }}
"""


def test_an_item_that_its_own_run_closes_holds_nothing_up(
    project: Project, bench: Bench, tmp_path: Path
) -> None:
    """Neither the nodes after it nor another pass."""
    closed = tmp_path / "closed.jsonl"
    closed.write_text('{"id": "gt-3", "title": "x", "status": "closed"}\n')
    text = GREEN_AT_TWO.format(export=project.export, closed=closed, folder=tmp_path)
    write(bench, text)
    project.target("gas", prefix="gt-", workflow="change")
    run = run_of(project.sling("gt-3"))
    assert ended(bench, run)["state"] == "succeeded"
    assert (tmp_path / "n").read_text() == "1\n2\n"


# -- groups, the list, clearing -----------------------------------------------------------------

LOOP_AT_THE_END = """
[nodes.list]
shell = 'echo "shards:=[1,2]" >> "$HEADWAY_OUTPUTS"'
outputs = ["shards"]
[nodes.each]
shell = 'echo x >> {folder}/n; test $(wc -l < {folder}/n) -ge 3'
after = ["list"]
each = {{ in = "${{{{ nodes.list.outputs.shards }}}}", max = 3 }}
loop = {{ to = "list", on = ["failed"], times = 3 }}
"""


@pytest.mark.req("G20")
def test_a_group_ends_when_loops_and_fans_of_its_runs_are_over(
    project: Project, bench: Bench, tmp_path: Path
) -> None:
    write(bench, LOOP_AT_THE_END.format(folder=tmp_path))
    project.target("gas", prefix="gt-", workflow="change")
    run = run_of(project.sling("gt-1"))
    assert ended(bench, run)["state"] == "succeeded"
    with bench.store.read() as tx:
        told = [each.data for each in tx.events.since(0, 1000) if each.kind == "group_ended"]
    assert [(each["status"], each["members"]) for each in told] == [("COMPLETED", 4)]
    assert bench.client.groups.show("group-1")["counts"] == {"succeeded": 4}


@pytest.mark.req("G41")
def test_the_list_has_a_run_as_one_entry(project: Project, bench: Bench) -> None:
    bench.client.scheduler.pause()
    bench.client.workflows.start("change", params={"slug": "s"}, subject="a reference")
    project.sling("gt-1", "gt-2", "gas")
    project.sling("hq-1")
    found = {each["target"]: each["jobs"] for each in scheduled(bench.client.context)}
    assert [*found] == ["gas", "hall"]
    first, second = found["gas"]
    assert (first["subject"], first["run"], first["title"]) == ("gt-1", "wf-2", "Do gt-1")
    assert (first["job"], first["blocked"], first["place"]) == ("job-3", False, 2)
    assert (second["run"], second["blocked"], second["reason"]) == (
        "wf-3",
        True,
        "blocked by gt-1",
    )
    assert found["hall"][0]["run"] is None
    bench.client.scheduler.resume()
    ended(bench, 2)
    assert [each["run"] for each in scheduled(bench.client.context)[0]["jobs"]] == ["wf-3"]


@pytest.mark.req("G39", "G9")
def test_clear_takes_back_runs_that_have_not_begun(
    project: Project, bench: Bench, tmp_path: Path
) -> None:
    text = "[nodes.a]\nargv = ['true']\n[nodes.b]\nafter = ['a']\nloop = { to = 'b', times = 1 }\n"
    write(bench, f"{text}shell = 'until test -e {tmp_path}/go; do sleep 0.02; done'\n")
    project.target("gas", prefix="gt-", workflow="change")
    begun = run_of(project.sling("gt-1"))
    bench.until(lambda: bench.status(jobs_of(bench, begun)["b"]) is Status.RUNNING)
    bench.client.scheduler.pause()
    waiting = run_of(project.sling("gt-2"))
    reference = bench.client.workflows.start("change", subject="a reference")
    assert clear(bench.client.context, "gt-3") == Cleared()
    done = clear(bench.client.context)
    assert done == Cleared(cleared_runs=(waiting,), running_runs=(begun,))
    found = ended(bench, waiting)
    assert (found["state"], found["reason"]) == ("cancelled", "a (job-3) cancelled: cleared")
    assert document(bench, reference)["state"] == "running"
    project.sling("gt-2")
    (tmp_path / "go").touch()
    assert ended(bench, begun)["state"] == "succeeded"
