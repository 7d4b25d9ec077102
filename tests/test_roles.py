"""Each role of the scheduler by itself: it needs none of the others to be used and tested.

CONTRIBUTING.md has the table of roles; a test here keeps it true.
"""

import ast
import os
import re
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.base.clock import SystemClock
from headway.base.home import Home
from headway.base.host import Host
from headway.core.facts import Capacity, Facts
from headway.core.model import Claim, Job, JobSpec, RetryPolicy
from headway.core.plan import Hold, Start, plan
from headway.core.settle import (
    ChainRetry,
    Ended,
    Ending,
    NeverRan,
    Outcome,
    Verdict,
    next_in_chain,
    settle,
)
from headway.core.states import Status
from headway.jobs.insert import Origin, add_jobs
from headway.jobs.request import Request
from headway.jobs.settings import Config
from headway.jobs.specification import specify
from headway.store.store import Store
from headway.supervise.evidence import Evidence
from headway.supervise.launcher import Launcher
from headway.testing.clock import FakeClock
from headway.worker.launch.command import command_specification as specification
from headway.worker.recovery import Recovery
from ready import open_ready

ROOT = Path(__file__).parents[1]
SECOND = 1_000_000
NOW = 1_700_000_000 * SECOND
HOST = Host("host", "boot", "/home")

# role: (the modules that are it, what must not come with them)
ROLES: dict[str, tuple[str, str]] = {
    "trigger": ("jobs.specification", "store supervise worker client"),
    "queue": ("jobs.insert", "supervise worker client core.plan core.settle"),
    "dispatcher": ("core.plan core.gates", "store supervise worker client core.settle"),
    "executor": (
        "worker.launch.command supervise.supervisor",
        "store worker.step client core.plan",
    ),
    "persistence": ("store store.sqlite", "supervise worker client core.plan core.settle"),
    "retry": ("core.settle core.backoff", "store supervise worker client core.plan"),
    "recovery": ("worker.recovery", "store.sqlite client worker.planner core.plan"),
}


def job(job_id: int, **fields: Any) -> Job:
    defaults: dict[str, Any] = {
        "name": "n",
        "type": "command",
        "status": Status.QUEUED,
        "priority": 0,
        "position": 100 * job_id,
        "params": {"argv": ["true"]},
        "created_at": NOW,
        "chain": job_id,
    }
    return Job(id=job_id, **(defaults | fields))


def claim(folder: Path, **fields: Any) -> Claim:
    return Claim(
        **{
            "job_id": 1,
            "token": "0" * 32,
            "slot": 1,
            "worker_id": "worker",
            "host_id": HOST.id,
            "home": HOST.home,
            "boot_id": HOST.boot_id,
            "folder": str(folder),
            "claimed_at": NOW,
            **fields,
        }
    )


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite://{tmp_path}/headway.db"


def opened(url: str) -> Store:
    return open_ready(url, FakeClock(NOW))


@pytest.mark.req("E2")
@pytest.mark.parametrize("role", ROLES)
def test_a_role_comes_without_the_others(role: str) -> None:
    own, others = ROLES[role]
    imports = "; ".join(f"import headway.{module}" for module in own.split())
    script = f"import sys; {imports}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    with_it = {
        name
        for name in loaded
        for other in others.split()
        if name == f"headway.{other}" or name.startswith(f"headway.{other}.")
    }
    # The words of the seam are shared; what speaks to a database is not.
    seam = ("headway.store.records", "headway.store.new_jobs")
    assert [name for name in sorted(with_it) if not name.startswith(seam)] == []


@pytest.mark.req("E2")
def test_the_page_for_contributors_names_the_modules_of_each_role() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page.split("## Roles\n")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| (\w+) \| ([^|]+) \|", table, re.M))
    for role, (modules, _) in ROLES.items():
        for module in modules.split():
            assert f"`{module}`" in rows[role], (role, module)
    for name in re.findall(r"`([a-z_.]+)`", " ".join(rows.values())):
        path = ROOT.joinpath("src", "headway", *name.split("."))
        assert path.is_dir() or path.with_suffix(".py").exists(), name


RULES = (
    *("backoff of retries", "fairness at locks", "log cap", "expiry of a direct call"),
    *("words of waits", "what keeps an ended job from gc", "idle exit of the worker"),
    *("failure of a group", "max_active", "recovery verdict", "cron and DST"),
    "approval from inside a job",
)


def test_the_one_place_of_each_rule_is_there() -> None:
    """Each file of the table is there, and has the functions and tables that stand behind it."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page.split("## Where each rule lives\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([^|`]+) \| ([^|]*) \| ([^|]*) \|$", table, re.M)[1:]
    assert {rule for rule, _, _ in rows} >= set(RULES)
    for rule, *cells in rows:
        place, *_ = re.findall(r"`([^`]+)`", cells[0])
        assert place.endswith(".py"), rule
        for cell in cells:
            names: set[str] = set()
            for word in re.findall(r"`([^`]+)`", cell):
                if "/" in word:
                    file = ROOT / "src" / "headway" / word
                    names = names_in(file) if file.suffix == ".py" else set()
                    assert file.exists(), (rule, word)
                elif re.fullmatch(r"[a-z_]+\.[a-z_.]*\w+", word):
                    module, _, name = word.rpartition(".")
                    folder = ROOT.joinpath("src", "headway", *module.split("."))
                    assert name in names_in(folder.with_suffix(".py")), (rule, word)
                else:
                    assert word in names, (rule, word)


def names_in(file: Path) -> set[str]:
    """What a module defines, methods as `Class.method`."""
    found: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                found.add(node.name)
                methods = (each for each in node.body if isinstance(each, ast.FunctionDef))
                found |= {f"{node.name}.{each.name}" for each in methods}
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {each.id for each in targets if isinstance(each, ast.Name)}
    return found


def test_the_architecture_stays_on_one_page() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split()) <= 1400


@pytest.mark.req("E2")
def test_the_trigger_makes_a_specification_of_a_request() -> None:
    request = Request(argv=("true",), retries=2, priority=3)
    spec = specify(request, environ={"PATH": os.environ["PATH"]}, working_directory="/")
    assert spec.params["argv"] == ["true"]
    assert (spec.retry.max_attempts, spec.priority) == (2, 3)


@pytest.mark.req("E2", "E1")
def test_the_queue_gives_each_job_an_id_and_a_place(url: str) -> None:
    store = opened(url)
    specs = [JobSpec({"argv": ["true"]}, f"n{level}", priority=level) for level in (0, 5, 0)]
    with store.write() as tx:
        added = add_jobs(tx, specs, Origin("ann", "/worktrees"))
    assert [each.job_id for each in added] == [1, 2, 3]
    with store.read() as tx:
        assert [each.id for each in sorted(tx.jobs.active(), key=lambda each: each.order)] == [
            *(2, 1, 3)
        ]
        assert {each.status for each in tx.jobs.active()} == {Status.QUEUED}
    store.close()


@pytest.mark.req("E2")
def test_the_dispatcher_decides_by_facts_alone() -> None:
    facts = Facts(now=NOW, capacity=Capacity(max_active=1), types=frozenset({"command"}))
    later = job(1, not_before=NOW + SECOND)
    planned = plan([later, job(2), job(3)], facts, limit=9)
    decided = {each.job.id: type(each.decision) for each in planned}
    assert (decided[1], decided[2]) == (Hold, Start)
    assert decided.get(3) in (None, Hold), "one slot is one job"


@pytest.mark.req("E2")
def test_the_executor_runs_a_command_without_a_store(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    (tmp_path / "run").mkdir()
    one = claim(tmp_path / "jobs" / "1")
    echo = job(1, params={"argv": ["sh", "-c", "echo $HEADWAY_JOB_ID; exit 7"]})
    evidence = Evidence(one.folder, one.token)
    evidence.prepare(specification(echo, one, home, Config(), {"argv": None}))
    launcher = Launcher()
    launcher.start()
    try:
        launcher.launch(one.folder, one.token)
        select.select([launcher], [], [], 20)
        [ack] = launcher.acks()
        assert ack.pidfd is not None
        ready, _, _ = select.select([ack.pidfd], [], [], 20)
        os.close(ack.pidfd)
        assert ready
    finally:
        launcher.stop()
    outcome = evidence.read_outcome()
    assert outcome is not None and (outcome.reason, outcome.exit_code) == ("exited", 7)
    assert Path(one.folder, "stdout.log").read_text() == "job-1\n"


@pytest.mark.req("E2")
def test_persistence_gives_back_what_was_stored(url: str) -> None:
    stored = job(1, labels={"a": "b"}, retry=RetryPolicy(3))
    first = opened(url)
    with first.write() as tx:
        tx.jobs.add([stored])
    first.close()
    second = opened(url)
    with second.read() as tx:
        found = tx.jobs.by_id([1])[1]
    assert found._replace(level=None) == stored, "and the level is its priority"
    assert found.dispatch_level == stored.priority
    second.close()


@pytest.mark.req("E2", "E17")
def test_retry_decides_by_the_outcome_alone() -> None:
    failed = job(1, status=Status.RUNNING, stage=None, retry=RetryPolicy(3))
    ended = settle(failed, Outcome(Ending.EXITED, NOW, exit_code=1))
    assert isinstance(ended, Ended) and ended.retry == ChainRetry(NOW + 10 * SECOND, 1)
    following = next_in_chain(failed, ended.retry, new_id=2, now=NOW)
    assert (following.retry_of, following.not_before) == (1, NOW + 10 * SECOND)


@pytest.mark.req("E2", "E25")
def test_recovery_judges_by_the_evidence_alone_and_twice_the_same(tmp_path: Path) -> None:
    recovery = Recovery(HOST, "worker", SystemClock())
    lost = claim(tmp_path / "lost", boot_id="another")
    unstarted = claim(tmp_path / "unstarted", token="1" * 32)
    Evidence(unstarted.folder, unstarted.token).prepare({"token": unstarted.token})
    for _ in range(2):
        found = recovery.judge(lost)
        assert found is not None and isinstance(found.judgement, Verdict)
        assert found.judgement.outcome.ending is Ending.HOST_REBOOTED
        found.release()
        found = recovery.judge(unstarted)
        assert found is not None and isinstance(found.judgement, NeverRan)
        found.release()
