"""One store by several spellings of its URL: in one home it has one folder and one worker."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import Bench, wait_for
from headway.admin.doctor import examine
from headway.base.clock import SystemClock
from headway.base.errors import WorkerPresentError
from headway.base.home import Home
from headway.base.new_home import make_home
from headway.base.store_folders import settle_in
from headway.base.worker_lock import START, STAYS, WorkerLock, worker_is_there
from headway.client import connect
from headway.core.model import Claim
from headway.core.states import Status
from headway.supervise.evidence import Evidence
from ready import open_ready

MakeBench = Callable[..., Bench]


def spelled_otherwise(url: str) -> list[str]:
    """With another scheme, in another order, with what goes without saying."""
    address, _, query = url.partition("?")
    parts = query.split("&")
    return [
        url.replace("postgresql://", "postgres://"),
        f"{address}?{'&'.join(reversed(parts))}",
        f"{url}&application_name=headway",
        f"{url}&connect_timeout=10",
    ]


@pytest.fixture
def spell(tmp_path: Path, postgres_url: str) -> Iterator[Callable[[str], Bench]]:
    made: list[Bench] = []

    def make(url: str) -> Bench:
        made.append(Bench(tmp_path, store_url=url, max_active=8))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


def as_before(folder: Path, url: str) -> Home:
    """The folders as they were named after the text of the URL."""
    home = Home(str(folder / ".headway"), url)
    for path in (home.path, home.stores, os.path.dirname(home.run), home.run, home.jobs):
        os.makedirs(path, 0o700, exist_ok=True)
    assert os.path.basename(os.path.dirname(home.run)) == home.spelling
    return home


def test_every_spelling_has_the_same_folder(
    spell: Callable[[str], Bench], postgres_url: str, tmp_path: Path
) -> None:
    first = spell(postgres_url)
    others = [spell(each) for each in spelled_otherwise(postgres_url)]
    assert {each.home.jobs for each in others} == {first.home.jobs}
    assert {each.home.worker_lock for each in others} == {first.home.worker_lock}
    folders = [each for each in os.scandir(first.home.stores) if each.is_dir(follow_symlinks=False)]
    assert [each.name for each in folders] == [first.store.name]
    assert not first.home.serves_several_stores()
    job = first.submit("echo", "hello")
    others[0].until_ended(job)
    assert Path(others[1].home.job(job), "stdout.log").read_text() == "hello\n"


def test_the_worker_of_another_spelling_is_in_the_way(
    spell: Callable[[str], Bench], postgres_url: str
) -> None:
    first, other = spell(postgres_url), spell(spelled_otherwise(postgres_url)[0])
    lock = WorkerLock(first.home.worker_lock)
    assert lock.take(START) and lock.take(STAYS)
    lock.write_pid()
    assert worker_is_there(other.home.worker_lock)
    newcomer = other.new_worker()
    with pytest.raises(WorkerPresentError, match=rf"\(pid {os.getpid()}\)"):
        newcomer._come_in()
    newcomer._lock.close()
    newcomer._engine.launches.watchlist.close()
    lock.close()


def test_many_who_come_first_at_once_have_one_folder(postgres_url: str, tmp_path: Path) -> None:
    store = open_ready(postgres_url, SystemClock())
    urls = [postgres_url, *spelled_otherwise(postgres_url)] * 6
    homes = [Home(str(tmp_path / ".headway"), url) for url in urls]

    def come(home: Home) -> str:
        make_home(home)
        settle_in(home, store)
        make_home(home)
        return home.jobs

    with ThreadPoolExecutor(len(homes)) as pool:
        found = set(pool.map(come, homes))
    assert len(found) == 1
    folders = [each for each in os.scandir(homes[0].stores) if each.is_dir(follow_symlinks=False)]
    assert store.name in [each.name for each in folders]
    for home in homes:  # who was overtaken is settled by the next one
        again = Home(home.path, home.store_url)
        settle_in(again, store)
        assert os.path.islink(os.path.join(home.stores, home.spelling))
    store.close()


def test_a_folder_that_gets_its_name_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(str(tmp_path / ".headway"), "postgresql:///x")
    make_home(home)
    spelled, named = (os.path.join(home.stores, each) for each in (home.spelling, "name"))
    mkdir = os.mkdir

    def overtaken(path: str, *options: int) -> None:
        """It finds the folder, which another process names before it looks at it."""
        try:
            mkdir(path, *options)
        except FileExistsError:
            if path == os.path.realpath(spelled) and not os.path.islink(spelled):
                os.rename(spelled, named)
                os.symlink("name", spelled)
            raise

    monkeypatch.setattr(os, "mkdir", overtaken)
    make_home(home)
    assert os.readlink(spelled) == "name" and os.path.isdir(home.run)


def test_another_store_at_the_same_url_gets_another_folder(
    spell: Callable[[str], Bench], postgres_url: str
) -> None:
    before = spell(postgres_url)
    before.store.database.execute(  # type: ignore[attr-defined]
        "update commits set token = 'anothername' where place = -3", {}
    )
    after = spell(postgres_url)
    assert after.store.name == "anothername" and after.home.jobs != before.home.jobs
    assert os.path.realpath(os.path.join(after.home.stores, after.home.spelling)).endswith(
        "/anothername"
    )


def test_a_folder_of_before_gets_its_name_and_all_is_found(
    spell: Callable[[str], Bench], postgres_url: str, tmp_path: Path
) -> None:
    old = as_before(tmp_path, postgres_url)
    Path(old.job(7)).mkdir(0o700)
    Path(old.job(7), "stdout.log").write_text("long ago\n")
    bench = spell(postgres_url)
    assert bench.home.store_name == bench.store.name != old.spelling
    assert Path(bench.home.job(7), "stdout.log").read_text() == "long ago\n"
    assert Path(old.job(7), "stdout.log").read_text() == "long ago\n", "rows may name it so"
    assert os.path.islink(os.path.join(old.stores, old.spelling))
    job = bench.submit("true")
    bench.until_ended(job)


def test_a_folder_of_before_is_kept_while_a_claim_in_it_is_live(
    spell: Callable[[str], Bench], postgres_url: str, tmp_path: Path
) -> None:
    bench = spell(postgres_url)
    running, claim = start(bench)
    waiting = bench.submit("true", after=(running,))
    old = back_to_before(bench, claim)
    bench.engine.launches._launcher.stop(kill=True)
    again, other = spell(postgres_url), spell(spelled_otherwise(postgres_url)[0])
    spelled = os.path.join(old.stores, old.spelling)
    assert not os.path.islink(spelled), "its row names it"
    for each in (again, other):
        assert os.path.realpath(each.home.run) == os.path.join(spelled, "run")
    again.engine.recover()
    assert again.kinds(running)[-1] == "readopted"
    (tmp_path / "gate").touch()
    again.until_ended(running, waiting)
    assert Path(other.home.job(running), "stdout.log").read_text() == "begun\n"
    later = spell(postgres_url)
    assert os.path.islink(spelled) and not os.path.islink(os.path.dirname(later.home.run))
    assert Path(later.home.job(running), "stdout.log").read_text() == "begun\n"


def test_a_folder_is_not_renamed_while_its_worker_lives(
    spell: Callable[[str], Bench], postgres_url: str, tmp_path: Path
) -> None:
    old = as_before(tmp_path, postgres_url)
    lock = WorkerLock(old.worker_lock)
    assert lock.take(START) and lock.take(STAYS)
    bench = spell(postgres_url)
    assert not os.path.islink(os.path.join(old.stores, old.spelling))
    assert worker_is_there(bench.home.worker_lock), "the worker of before is seen"
    other = spell(spelled_otherwise(postgres_url)[0])
    assert worker_is_there(other.home.worker_lock)
    lock.close()
    assert os.path.islink(os.path.join(spell(postgres_url).home.stores, old.spelling))


def test_two_folders_of_before_become_one(
    spell: Callable[[str], Bench], postgres_url: str, tmp_path: Path
) -> None:
    spellings = [postgres_url, spelled_otherwise(postgres_url)[0]]
    for number, url in enumerate(spellings, start=1):
        old = as_before(tmp_path, url)
        Path(old.job(number)).mkdir(0o700)
        Path(old.job(number), "stdout.log").write_text(f"{number}\n")
        Path(old.worker_log).write_text("up\n")
    benches = [spell(url) for url in spellings]
    for bench in benches:
        assert sorted(os.listdir(bench.home.jobs)) == ["1", "2"]
    assert os.path.samefile(benches[0].home.run, benches[1].home.run)


def test_a_command_with_another_spelling_asks_nothing_more(
    spell: Callable[[str], Bench], postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is called is read with the version of the schema, and its folder is a link."""
    bench = spell(postgres_url)
    import headway.base.store_folders

    monkeypatch.setattr(headway.base.store_folders, "name_folder", None)
    client = connect(home=bench.home.path, store_url=postgres_url, environ={}, actor="me")
    assert client.context.home.jobs == bench.home.jobs
    client.close()


def test_the_doctor_finds_the_worker_whatever_the_spelling(
    spell: Callable[[str], Bench], postgres_url: str
) -> None:
    bench = spell(postgres_url)
    lock = WorkerLock(bench.home.worker_lock)
    assert lock.take(START) and lock.take(STAYS)
    before = sorted(os.listdir(bench.home.stores))
    for url in spelled_otherwise(postgres_url):
        findings = examine(bench.home.path, url, {}, "/")
        (about,) = [each for each in findings if each.check == "worker"]
        assert about.detail == "there"
    assert sorted(os.listdir(bench.home.stores)) == before, "it changes nothing"
    lock.close()


def test_a_file_is_the_same_one_by_any_path(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "link").symlink_to(elsewhere)
    urls = [f"sqlite://{tmp_path}/{each}/x.db" for each in ("elsewhere", "link", "link/../link")]
    benches = [Bench(tmp_path, store_url=url) for url in urls]
    assert len({each.home.worker_lock for each in benches}) == 1
    own = Home(str(tmp_path / ".headway"), f"sqlite://{tmp_path}/./.headway/headway.db")
    assert own.store_url is None
    for bench in benches:
        bench.close()


def start(bench: Bench) -> tuple[int, Claim]:
    gate = bench.folder / "gate"
    job = bench.submit(shell=f"echo begun; until test -e {gate}; do sleep 0.02; done")
    bench.step()
    (claim,) = bench.engine.launches.claims
    evidence = Evidence(claim.folder, claim.token)
    wait_for(lambda: evidence.read_started() is not None, what="the start record")
    return job, claim


def back_to_before(bench: Bench, claim: Claim) -> Home:
    """The folder and the rows as they were when folders were named after the text of the URL."""
    old = Home(bench.home.path, bench.home.store_url)
    spelled = os.path.join(old.stores, old.spelling)
    os.unlink(spelled)
    os.rename(os.path.dirname(bench.home.run), spelled)
    database = bench.store.database  # type: ignore[attr-defined]
    given = {"folder": old.job(claim.job_id), "token": claim.token}
    database.execute("update claims set folder = %(folder)s where token = %(token)s", given)
    assert bench.status(claim.job_id) is Status.RUNNING
    return old
