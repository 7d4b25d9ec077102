"""Hosts die in every way: what ran is settled once and truly, the rest runs later, once."""

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shop import Shop

from harness import Bench, wait_for
from headway.base.proc import start_time
from headway.core.states import Status
from headway.functions.app import Handle
from headway.jobs.views.why import why
from headway.testing.clock import FakeClock
from headway.worker.functions import FunctionsPart

MakeShop = Callable[..., Shop]

WORK = """
@app.task
def work(number):
    note(str(number))
    return number
@app.task
def hold(number, gate="go"):
    note(str(number))
    until(gate)
    print("let go")
    return number
@app.task
def die(how):
    note(how)
    if how == "exit":
        os._exit(3)
    if how == "segfault":
        ctypes.string_at(0)
    os.kill(os.getpid(), 9)
@app.task
async def ahold(): await asyncio.sleep(60)
"""


def ran_once(shop: Shop, handles: list[Handle[Any]]) -> None:
    """Every job succeeded, was called once, and returned what it noted."""
    jobs = shop.ended(*handles)
    assert {job.status for job in jobs} == {Status.SUCCEEDED}
    noted = Counter(shop.ledger())
    for handle in handles:
        assert noted[str(handle.result())] == 1
        kinds = shop.bench.kinds(handle.job_id)
        assert kinds.count("succeeded") == 1
        assert shop.bench.client.jobs.chain(handle.job_id)[0]["attempt"] == 1


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("exit", "its host died: exit code 3"),
        ("segfault", "its host died: killed by SIGSEGV"),
        ("kill", "its host died: killed by SIGKILL"),
    ],
)
def test_a_function_that_ends_its_host_fails_alone(  # fault B1 B2
    make_shop: MakeShop, how: str, reason: str
) -> None:
    shop = make_shop(WORK, max_active=20)
    before = [shop.work.submit(number) for number in range(5)]
    shop.ended(*before)
    deadly = shop.die.submit(how)
    after = [shop.work.submit(number) for number in range(5, 10)]
    shop.ended(deadly)
    job = shop.bench.job(deadly.job_id)
    assert (job.status, job.reason) == (Status.FAILED, reason)
    document = shop.bench.client.document(deadly.job_id)
    assert document["run"]["exit_code"] == 1
    ran_once(shop, before + after)
    assert shop.ledger().count(how) == 1


@pytest.mark.parametrize("victim", ["host", "supervisor"])
def test_a_killed_host_fails_what_ran_and_nothing_else(  # fault A1
    make_shop: MakeShop, victim: str
) -> None:
    shop = make_shop(WORK, max_active=20)
    before = shop.work.submit(0)
    shop.ended(before)
    shop.let_wait()
    held = shop.hold.submit(1)
    shop.until_noted("1")
    queued = shop.work.submit(2)
    shop.bench.until(lambda: shop.bench.status(queued.job_id) is Status.RUNNING)
    old = shop.host_pid()
    began = start_time(old)
    os.kill(old if victim == "host" else shop.supervisor_pid(), signal.SIGKILL)
    shop.ended(held)
    job = shop.bench.job(held.job_id)
    killed = (
        "killed by SIGKILL" if victim == "host" else "it was killed together with its supervisor"
    )
    assert (job.status, job.reason) == (Status.FAILED, f"its host died: {killed}")
    assert start_time(old) != began, "it is gone before anyone says so"
    ran_once(shop, [before, queued])
    assert "unclaimed" in shop.bench.kinds(queued.job_id)
    assert shop.bench.kinds(held.job_id).count("failed") == 1


def test_hosts_go_on_without_their_parent(make_shop: MakeShop) -> None:
    shop = make_shop(WORK, max_active=20)
    held = shop.hold.submit(1)
    shop.until_noted("1")
    os.kill(shop.bench.engine.launches._launcher._process.pid, signal.SIGKILL)
    more = [shop.work.submit(number) for number in range(2, 5)]
    shop.touch("go")
    ran_once(shop, [held, *more])


def test_a_host_whose_parent_died_before_it_answered_is_found(make_shop: MakeShop) -> None:
    shop = make_shop(WORK)
    held = shop.hold.submit(1)
    shop.until_noted("1")
    pool, token = shop.bench.engine.pool, shop.host().token
    known = pool.processes.hosts[token]
    assert known.pidfd is not None
    pool.processes._watchlist.unregister(known.pidfd)
    os.close(known.pidfd)
    known.pidfd = None
    pool.processes.lost(token)
    assert known.pidfd is not None, "it lives, and is watched"
    shop.touch("go")
    ran_once(shop, [held])


def test_a_host_that_was_never_started_is_replaced(make_shop: MakeShop) -> None:
    shop = make_shop(WORK)
    bench = shop.bench
    launcher = bench.engine.launches._launcher
    os.kill(launcher._process.pid, signal.SIGSTOP)
    bench.engine.step()
    (lost,) = bench.engine.pool.processes.hosts
    os.kill(launcher._process.pid, signal.SIGKILL)
    handle = shop.work.submit(1)
    bench.until(
        lambda: lost not in bench.engine.pool.processes.hosts, "the lost one to be forgotten"
    )
    bench.engine.pool.processes._next_start = 0.0
    ran_once(shop, [handle])


def test_a_host_outlives_its_worker(make_shop: MakeShop) -> None:  # fault A2
    shop = make_shop(WORK, max_active=20)
    shop.let_wait()
    held = shop.hold.submit(1)
    shop.until_noted("1")
    queued = [shop.work.submit(number) for number in range(2, 8)]
    shop.bench.until(lambda: shop.bench.status(queued[0].job_id) is Status.RUNNING)
    old = shop.host_pid()
    bench = shop.bench
    bench.crash()
    bench.engine.recover()
    assert bench.status(held.job_id) is Status.RUNNING
    assert start_time(old) is not None
    ran_once(shop, queued)
    assert bench.status(held.job_id) is Status.RUNNING
    shop.touch("go")
    ran_once(shop, [held])
    assert shop.log(held) == "let go\n"
    assert "unclaimed" not in bench.kinds(held.job_id)
    bench.until(lambda: start_time(old) is None, "the old host to leave")
    bench.until(lambda: len(bench.hosts()) == 1, "its folder to go")


def test_what_ended_while_no_worker_was_there_is_taken_in(make_shop: MakeShop) -> None:
    shop = make_shop(WORK, max_active=20)
    held = shop.hold.submit(1)
    shop.until_noted("1")
    old = shop.host_pid()
    shop.bench.crash()
    shop.touch("go")
    wait_for(lambda: start_time(old) is None, what="the host to leave")
    shop.bench.engine.recover()
    assert shop.bench.status(held.job_id) in (Status.RUNNING, Status.SUCCEEDED)
    ran_once(shop, [held])


def test_a_recovery_that_did_not_commit_is_made_again(
    make_shop: MakeShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = make_shop(WORK, max_active=20)
    shop.let_wait()
    held = shop.hold.submit(1)
    shop.until_noted("1")
    queued = shop.work.submit(2)
    shop.bench.until(lambda: shop.bench.status(queued.job_id) is Status.RUNNING)
    old = shop.host_pid()
    engine = shop.bench.crash()
    shop.touch("go")
    wait_for(lambda: start_time(old) is None, what="the host to leave")

    def no_commit(*_: object) -> None:
        raise OSError("no commit")

    with monkeypatch.context() as patch:
        patch.setattr(engine.part(FunctionsPart), "_settle", no_commit)
        with pytest.raises(OSError, match="no commit"):
            engine.recover()
    engine.recover()
    ran_once(shop, [held, queued])


def test_a_host_that_died_with_its_worker_is_judged(make_shop: MakeShop) -> None:
    shop = make_shop(WORK, max_active=20)
    shop.let_wait()
    held = shop.hold.submit(1)
    shop.until_noted("1")
    queued = shop.work.submit(2)
    shop.bench.until(lambda: shop.bench.status(queued.job_id) is Status.RUNNING)
    host, supervisor = shop.host_pid(), shop.supervisor_pid()
    shop.bench.crash()
    os.kill(supervisor, signal.SIGKILL)
    os.kill(host, signal.SIGKILL) if start_time(host) else None
    wait_for(lambda: start_time(supervisor) is None)
    shop.bench.engine.recover()
    shop.ended(held)
    job = shop.bench.job(held.job_id)
    assert (job.status, job.reason) == (
        Status.FAILED,
        "its host died: it was killed together with its supervisor",
    )
    ran_once(shop, [queued])


def test_a_folder_without_its_journal_fails_what_ran_there(make_shop: MakeShop) -> None:
    shop = make_shop(WORK, max_active=20)
    held = shop.hold.submit(1)
    shop.until_noted("1")
    folder = Path(shop.host().folder)
    shop.bench.crash()
    (folder / "journal").unlink()
    shop.bench.engine.recover()
    shop.ended(held)
    assert "journal is gone" in (shop.bench.job(held.job_id).reason or "")


@pytest.mark.parametrize("when", ["at its end", "by the next worker"])
def test_a_hosts_folder_that_others_can_write_to_fails_what_ran_there_alone(  # fault H7
    make_shop: MakeShop, when: str
) -> None:
    shop = make_shop(WORK, max_active=20)
    held = shop.hold.submit(1)
    shop.until_noted("1")
    host, folder = shop.host_pid(), shop.host().folder
    os.chmod(folder, 0o777)
    if when == "at its end":
        os.kill(host, signal.SIGKILL)
    else:
        shop.bench.crash()
        shop.bench.engine.recover()
    command = shop.bench.submit("true")
    shop.bench.until_ended(command)
    shop.ended(held)
    job = shop.bench.job(held.job_id)
    assert job.status is Status.FAILED and folder in (job.reason or "")
    wait_for(lambda: start_time(host) is None, what="the host to be gone")
    ran_once(shop, [shop.work.submit(2)])


@pytest.mark.parametrize("store_url", [None], ids=["sqlite"])  # another is not copied with a home
def test_calls_that_a_copied_home_came_with_are_over_there_and_go_on_here(
    make_shop: MakeShop, tmp_path: Path
) -> None:
    shop = make_shop(WORK, max_active=2)
    held = [shop.hold.submit(1), shop.hold.submit(2)]
    shop.until_noted("1")
    host, folder = shop.host_pid(), tmp_path / "copy"
    folder.mkdir()
    subprocess.run(["cp", "-a", shop.bench.home.path, str(folder)], check=True)
    copy = Bench(folder)
    copy.engine.recover()
    settled = copy.job(held[0].job_id)
    assert settled.status is Status.FAILED and "outcome_unknown" in (settled.reason or "")
    copy.until_ended(copy.submit("true", priority=5))
    with copy.store.read() as tx:
        assert tx.claims.live() == []
    copy.client.cancel([held[1].job_id]) if copy.job(held[1].job_id).finished_at is None else None
    copy.close()
    assert start_time(host) is not None, "the original's host lives"
    (shop.bench.folder / "go").touch()
    ran_once(shop, held)


def test_folders_of_old_hosts_are_cleared_away(bench: Bench) -> None:
    hosts = Path(bench.home.hosts)
    (hosts / ("a" * 32)).mkdir(parents=True)
    (hosts / "file").write_text("")
    (hosts / "odd name").mkdir()
    bench.engine.recover()
    assert sorted(each.name for each in hosts.iterdir()) == ["file"]


def test_a_host_whose_journal_is_large_makes_room_for_another(
    make_shop: MakeShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headway.functions.pool import calls as pool
    from headway.functions.pool import processes as hosting

    monkeypatch.setattr(hosting, "LARGEST_JOURNAL", 2000)
    monkeypatch.setattr(pool, "SHORTEST_LIFE", 0.0)
    shop = make_shop(WORK, max_active=20)
    first = shop.work.submit(-1)
    shop.ended(first)
    old = shop.host_pid()
    handles = [shop.work.submit(number) for number in range(40)]
    ran_once(shop, handles)
    shop.bench.until(lambda: start_time(old) is None, "the first host to leave")


def test_a_worker_is_not_held_up_by_a_host_that_does_not_listen(make_shop: MakeShop) -> None:
    shop = make_shop(WORK + "@app.task\ndef take(text): note('taken')\n", max_active=50)
    shop.ended(shop.work.submit(0))
    pid = shop.host_pid()
    shop.let_wait()
    os.kill(pid, signal.SIGSTOP)
    handles = [shop.take.submit("x" * 100_000) for _ in range(20)]
    command = shop.bench.submit("true")
    shop.bench.until_ended(command)
    os.kill(pid, signal.SIGCONT)
    jobs = shop.ended(*handles)
    assert {job.status for job in jobs} == {Status.SUCCEEDED}
    assert shop.ledger().count("taken") == 20


def test_a_worker_that_dies_in_the_middle_of_a_message_is_noticed(make_shop: MakeShop) -> None:
    shop = make_shop(WORK)
    shop.ended(shop.work.submit(0))
    pid = shop.host_pid()
    known = shop.bench.engine.pool.processes.hosts[shop.host().token]
    assert known.connection is not None
    known.connection.sendall(b'{"run": [["')
    shop.bench.crash()
    wait_for(lambda: start_time(pid) is None, what="the host to leave")


def test_a_short_function_is_settled_while_the_next_takes_its_time(make_shop: MakeShop) -> None:
    shop = make_shop(WORK, max_active=20)
    shop.ended(shop.work.submit(0))
    handles = [shop.work.submit(number) for number in range(1, 3)]
    held = shop.hold.submit(9)
    ran_once(shop, handles)
    assert shop.bench.status(held.job_id) in (Status.QUEUED, Status.RUNNING)
    shop.touch("go")
    ran_once(shop, [held])


def test_no_more_run_than_may(make_shop: MakeShop) -> None:
    shop = make_shop(
        "@app.task\ndef nap(): time.sleep(0.002)\n", max_active=3, processes=2, threads=2
    )
    handles = [shop.nap.submit() for _ in range(60)]
    most = 0

    def drained() -> bool:
        nonlocal most
        with shop.bench.store.read() as tx:
            most = max(most, len(tx.claims.live()))
        return all(shop.bench.status(each.job_id) is Status.SUCCEEDED for each in handles[-3:])

    shop.bench.until(drained)
    jobs = shop.ended(*handles)
    assert {job.status for job in jobs} == {Status.SUCCEEDED}
    assert 1 < most <= 3


def test_what_waits_behind_a_slow_function_is_given_back_once(
    make_shop: MakeShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headway.functions.pool import processes as hosting

    shop = make_shop(WORK, max_active=20)
    monkeypatch.setattr(hosting, "STUCK", 0.1)
    shop.let_wait()
    held = shop.hold.submit(0)
    shop.until_noted("0")
    queued = [shop.work.submit(number) for number in range(1, 6)]
    shop.bench.until(lambda: shop.bench.status(queued[-1].job_id) is Status.RUNNING)
    shop.bench.until(lambda: "unclaimed" in shop.bench.kinds(queued[-1].job_id))
    give_up_at = time.monotonic() + 1.0
    shop.bench.until(lambda: time.monotonic() > give_up_at)
    for handle in queued:
        assert shop.bench.kinds(handle.job_id).count("unclaimed") == 1, "and not ever again"
    shop.touch("go")
    ran_once(shop, [held, *queued])


def test_that_a_call_holds_up_others_is_seen_without_a_hint(
    make_shop: MakeShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody hints at a start, so whoever wonders what a host is doing reads its journal."""
    from headway.functions.pool import processes as hosting

    shop = make_shop(WORK, max_active=20, clock=FakeClock())
    bench = shop.bench
    shop.let_wait()
    monkeypatch.setattr(hosting, "STUCK", -1.0)
    handles = [shop.hold.submit(0), shop.work.submit(1)]
    bench.step()
    wait_for(lambda: shop.ledger() == ["0"])
    bench.step()
    bench.step()
    (host,) = bench.engine.pool.processes.hosts.values()
    assert host.asked_back
    bench.until(lambda: "unclaimed" in bench.kinds(handles[1].job_id))
    shop.touch("go")
    ran_once(shop, handles)


def test_a_host_that_cannot_be_started_keeps_nothing_else_from_its_end(  # fault A10 A12
    make_shop: MakeShop,
) -> None:
    shop = make_shop(WORK, max_active=4)
    bench, pool = shop.bench, shop.bench.engine.pool
    command = bench.submit("sh", "-c", f"until [ -e {bench.folder}/go ]; do sleep 0.01; done")
    shop.ended(shop.work.submit(1))
    os.kill(shop.host_pid(), signal.SIGKILL)
    pool.processes._next_start = float("inf")
    bench.until(lambda: not pool.processes.hosts, "the host to be gone")
    hosts = Path(bench.home.hosts)
    hosts.rmdir()
    hosts.write_text("no folder can be made here")
    waiting = shop.work.submit(2)
    pool.processes._next_start = 0.0
    shop.touch("go")
    assert bench.until_ended(command)[0].status is Status.SUCCEEDED
    told = why(bench.client.context, waiting.job_id)["objections"][0]
    assert (told["kind"], told["detail"]) == ("task", "its host cannot be started: Not a directory")
    assert pool.processes.keep_up(bench.clock.monotonic()), "it is tried again"
    hosts.unlink()
    pool.processes._next_start = 0.0
    ran_once(shop, [waiting])


def test_a_function_that_only_some_hosts_know_is_handed_to_none(make_shop: MakeShop) -> None:
    """After a change of the code a host that was started anew has another."""
    shop = make_shop(WORK, processes=2, max_active=8)
    bench, pool = shop.bench, shop.bench.engine.pool
    bench.until(lambda: pool.places() == 2, "both to be ready")
    new = WORK.replace("def work(", "def renamed(")
    shop.write(new)
    pool.processes._next_start = 0.0
    shop.ended(shop.die.submit("exit"))
    bench.until(lambda: pool.places() == 2, "another to be ready")
    lost = [shop.work.submit(number) for number in range(4)]
    bench.until(lambda: all(bench.job(each.job_id).wait for each in lost), "all to wait")
    assert why(bench.client.context, lost[0].job_id)["objections"][0]["kind"] == "task"
    assert "shop_tasks.renamed" not in pool.tasks
    bench.until(lambda: _leave(shop), "all to have the new code")


def _leave(shop: Shop) -> bool:
    pool = shop.bench.engine.pool
    for host in pool.processes.hosts.values():
        if "shop_tasks.work" in host.tasks:
            pool.processes._let_go(host)
    pool.processes._next_start = 0.0
    return "shop_tasks.renamed" in pool.tasks


def test_a_host_that_is_ready_when_its_worker_leaves_is_no_trouble(make_shop: MakeShop) -> None:
    shop = make_shop(WORK)
    bench, pool = shop.bench, shop.bench.engine.pool
    bench.until(
        lambda: any(each.connection for each in pool.processes.hosts.values()), "it to connect"
    )
    (host,) = pool.processes.hosts.values()
    host.leaving = True
    bench.engine.dispatching = False
    host.receive = lambda: [{"ready": ["shop_tasks.work"]}]  # type: ignore[method-assign]
    pool.processes.receive(host)
    assert host.ready and pool.places() == 0


DEAF = """
@app.task
def seize():
    note("seized")
    ctypes.PyDLL(None).usleep(1500000)
@app.task
def work(number):
    note(str(number))
    return number
"""


def test_a_function_that_holds_the_interpreter_holds_up_nobody_else(
    make_shop: MakeShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its host hears nothing, so what it has not begun is taken back without it."""
    from headway.functions.pool import processes as hosting

    shop = make_shop(DEAF, max_active=20, processes=2)
    bench, pool = shop.bench, shop.bench.engine.pool
    bench.until(lambda: pool.places() == 2, "both to be ready")
    monkeypatch.setattr(hosting, "STUCK", 0.1)
    for host in pool.processes.hosts.values():
        host.window = 10
    seizing = shop.seize.submit()
    behind = [shop.work.submit(number) for number in range(6)]
    ran = shop.ended(*behind)
    assert bench.status(seizing.job_id) is Status.RUNNING
    assert any("unclaimed" in bench.kinds(job.id) for job in ran)
    assert sum(host.room(1) > 0 for host in pool.processes.hosts.values()) == 1, (
        "nothing more for it"
    )
    shop.ended(seizing)
    bench.until(
        lambda: all(host.room(1) for host in pool.processes.hosts.values()), "it to be heard again"
    )
    ran_once(shop, behind)


def test_a_cancelled_call_ends_that_a_stopped_host_has_not_begun(make_shop: MakeShop) -> None:
    shop = make_shop(WORK, max_active=20)
    bench = shop.bench
    shop.let_wait()
    os.kill(shop.host_pid(), signal.SIGSTOP)
    handle = shop.work.options(grace="0s").submit(1)
    bench.until(lambda: bench.status(handle.job_id) is Status.RUNNING)
    handle.cancel()
    (job,) = shop.ended(handle)
    assert job.status is Status.CANCELLED
    os.kill(shop.host_pid(), signal.SIGCONT)
    after = shop.work.submit(2)
    ran_once(shop, [after])
    assert shop.ledger() == ["2"], "and is never made"
