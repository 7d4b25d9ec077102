"""Script jobs of a jobs file as the processes that they are."""

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from harness import Bench, wait_for
from headway.core.model import Job
from headway.core.states import TERMINAL, Status
from headway.jobs.settings import load_config
from headway.supervise.evidence import Evidence
from headway.worker.one_pass import single_step

SHOP = """
    import headway
    from headway import JobContext, Skip, condition, job, poll

    @poll
    def fetch():
        return {"open_prs": [7]}

    @job("count")
    def count(ctx: JobContext) -> None:
        ctx.state["runs"] = ctx.state.get("runs", 0) + 1
        ctx.log(f"run {ctx.state['runs']} saw {ctx.poll_data}")

    @job("local")
    def local(ctx: JobContext) -> None:
        ctx.log(f"saw {ctx.poll_data}")

    @job("fails")
    def fails(ctx: JobContext) -> None:
        ctx.state["tried"] = True
        raise RuntimeError("the broom is gone")

    @job("skips")
    def skips(ctx: JobContext) -> None:
        raise Skip("nothing to do")

    @job("too_much")
    def too_much(ctx: JobContext) -> None:
        ctx.state["all"] = "x" * (1 << 20)

    def submits(ctx: JobContext) -> None:
        from headway.jobs.request import Request
        ctx.log(ctx.client.submit(Request(argv=("true",), name="made inside")).job_id)
    """
JOBS = """
    jobs:
      count: {type: script, run: count, interval: 1s, conditions: [has_open_prs]}
      local: {type: script, run: local, interval: 1h, group: local}
      fails: {type: script, run: fails, interval: 1h}
      skips: {type: script, run: skips, interval: 1h}
      too_much: {type: script, run: too_much, interval: 1h}
      submits: {type: script, run: "shop:submits", interval: 1h}
      echo: {type: command, run: [sh, -c, "echo $COLOUR; pwd"], interval: 1h}
      lost: {type: script, run: lost, interval: 1h}
    """
PASS = """\
jobs:
  echo: {type: command, run: [/bin/true], interval: 1h, conditions: ["file_exists:shop.py"]}
  local: {type: script, run: local, interval: 1h, group: local}
"""
CONFIG = """
    [app]
    modules = ["shop"]
    [env]
    COLOUR = "blue"
    [worker]
    autostart = false  # a script that submits would start one beside the bench
    """


@pytest.fixture
def bench(make_bench: Callable[..., Bench], tmp_path: Path) -> Bench:
    made = make_bench(max_active=8)
    (tmp_path / "shop.py").write_text(dedent(SHOP))
    (tmp_path / ".headway" / "config.toml").write_text(dedent(CONFIG))
    (tmp_path / ".headway" / "jobs.yaml").write_text(dedent(JOBS))
    made.config.env = {"COLOUR": "blue"}
    made.engine.rounds.asking.modules = ("shop",)
    return made


def ended(bench: Bench, name: str) -> list[Job]:
    with bench.store.read() as tx:
        ids = list(range(1, tx.settings.marks()["next_job_id"]))
        found = [
            job for job in tx.jobs.by_id(ids).values() if job.schedule_id == f"jobs.yaml:{name}"
        ]
    in_order = sorted(found, key=lambda job: job.id)
    return [job for job in in_order if job.status in TERMINAL]


def log(bench: Bench, job: Job, stream: str = "stdout") -> str:
    return (Path(bench.home.job(job.id)) / f"{stream}.log").read_text()


def state(bench: Bench, name: str) -> object:
    with bench.store.read() as tx:
        return tx.jobsfile.entry_state(bench.client.context.host.id, name)


def test_a_pass_without_a_worker_makes_a_round(bench: Bench) -> None:
    (bench.folder / ".headway" / "jobs.yaml").write_text(PASS)
    host = bench.client.context.host
    config = load_config(bench.home)
    started = single_step(bench.store, bench.home, config, host, bench.clock, limit=5)
    assert [bench.job(each).schedule_id for each in started] == [
        "jobs.yaml:echo",
        "jobs.yaml:local",
    ]
    with bench.store.read() as tx:
        begun = [Evidence(each.folder, each.token) for each in tx.claims.live()]
    for each in begun:  # one that has not begun may be undone, and started anew
        wait_for(each.read_started, what="the start of what was launched")
    assert single_step(bench.store, bench.home, config, host, bench.clock, limit=5) == []
    bench.engine.recover()  # as the next worker takes over what a pass has started
    bench.until_ended(*started)


@pytest.mark.req("O2", "O8", "O12", "O15", "O16", "O21", "O22")
def test_functions_run_as_jobs_with_their_context(bench: Bench) -> None:
    others = ("local", "fails", "skips", "too_much", "submits", "echo")
    bench.until(
        lambda: len(ended(bench, "count")) >= 2 and all(ended(bench, name) for name in others)
    )
    first, second, *_ = ended(bench, "count")
    assert first.status is Status.SUCCEEDED and first.type == "script"
    assert log(bench, first) == "run 1 saw {'open_prs': [7]}\n"
    assert log(bench, second) == "run 2 saw {'open_prs': [7]}\n"
    assert log(bench, ended(bench, "local")[0]) == "saw None\n"
    failed = ended(bench, "fails")[0]
    assert (failed.status, failed.reason) == (
        Status.FAILED,
        "RuntimeError: the broom is gone",
    )
    trace = log(bench, failed, "stderr").splitlines()
    assert trace[-1] == "RuntimeError: the broom is gone"
    assert "shop.py" in trace[1], "it begins with the user's own code"
    assert state(bench, "fails") == {"tried": True}
    skipped = ended(bench, "skips")[0]
    assert (skipped.status, skipped.reason) == (Status.SKIPPED, "nothing to do")
    assert log(bench, skipped, "stderr") == "skipped: nothing to do\n"
    much = ended(bench, "too_much")[0]
    assert much.status is Status.FAILED and state(bench, "too_much") is None
    assert "the state of too_much has 1,048,587 bytes" in log(bench, much, "stderr")
    made = bench.job(int(log(bench, ended(bench, "submits")[0])))
    assert made.name == "made inside" and made.submitted_by.startswith("job-")
    assert log(bench, ended(bench, "echo")[0]) == f"blue\n{bench.folder}\n"
    with bench.store.read() as tx:
        records = tx.jobsfile.entries(bench.client.context.host.id)
    assert records["fails"].last_status == "failed"
    assert records["lost"].last_job is None and "'lost' is registered" in str(records["lost"].held)
    json.dumps(records["count"]._asdict())
