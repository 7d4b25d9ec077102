"""Put a backup in the place of the present store, and set right what the backup cannot know.

A restored store is older than the job folders beside it. What happened since then has left
evidence, so before the backup becomes the store it is told of it: a job that was started since is
made running again under the claim that its folder shows, and the next worker judges that claim as
any other (docs/protocols.md, section 6). Ids that were given out since are not given out again.
docs/backup.md says what this means for each state of a job.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from headway.base.crashpoints import reach
from headway.base.epoch import EARLIER, EPOCH, LAST_OF_EARLIER, new_epoch
from headway.base.errors import (
    ConflictError,
    HeadwayError,
    InvalidInputError,
    StoreBusyError,
)
from headway.base.home import Home
from headway.base.new_home import make_home
from headway.base.worker_lock import COMING, START, STAYS, WorkerLock
from headway.core.model import Claim, Job, JobId, Pause, shown
from headway.core.policies import BUILT_IN, keys_of
from headway.store.inspect import Inspection, Numbers
from headway.store.new_jobs import Event
from headway.store.records import HostRecord, Unclaim
from headway.store.transaction import WriteTx
from headway.supervise.evidence import Evidence
from headway.supervise.rescue import watch_supervisor

if TYPE_CHECKING:
    from headway.base.clock import Clock
    from headway.base.host import Host
    from headway.store.sqlite.database import SqliteDatabase

WORKER = "restore"
_COMPARED = 1000  # folders of the newest jobs, to see whether they are of the same store


class Restored(NamedTuple):
    jobs: int
    active: int
    taken_up: tuple[JobId, ...]  # started since the backup
    lost: int  # submitted since the backup, as far as can be known
    unknown: tuple[JobId, ...]  # of these, the ones whose folders are there
    unwatched: tuple[JobId, ...]  # of these, the ones that still run
    bare: tuple[JobId, ...]  # waiting, but the environment that they need is not in this home
    next_id: JobId
    replaced: Numbers | None
    kept: str | None  # where the replaced store is


class Surviving(NamedTuple):
    """What outlives the store that is to be replaced."""

    next_id: JobId
    pause: Pause | None


class Restorer:
    def __init__(
        self, home: Home, url: str, clock: Clock, *, actor: str, force: bool, unsafe_fs: bool
    ) -> None:
        self._home = home
        self._url = url
        self._clock = clock
        self._actor = actor
        self._force = force
        self._unsafe_fs = unsafe_fs
        self._path = url.removeprefix("sqlite://") if url.startswith("sqlite://") else None
        self._next_seen = 1
        self._replaced: Numbers | None = None
        self._kept: str | None = None

    def restore(self, file: str) -> Restored:
        """Check everything, then exchange. Until the very exchange nothing is changed."""
        from headway.store.copy import copy_of_backup, refuse_other_files

        refuse_other_files(file)
        own = self._path
        if own is not None and os.path.exists(own) and os.path.samefile(file, own):
            raise InvalidInputError(f"{file} is the store itself")
        self._find_folder()
        make_home(self._home)
        with _no_worker(self._home), self._scratch() as fresh:
            copy_of_backup(file, fresh)
            reach("restore.copied")
            restored = self._prepare(fresh, os.path.basename(file))
            reach("restore.prepared")
            if self._path is not None:
                from headway.store.sqlite.replace_file import exchange

                exchange(fresh, self._path, self._judge_file)
            else:
                self._pour(fresh)
            reach("restore.done")
        return restored._replace(replaced=self._replaced, kept=self._kept)

    def _find_folder(self) -> None:
        """Of a store on a server, however its URL is spelled; its worker must not be there."""
        from headway.store.inspect import inspect

        if self._path is not None or self._home.store_url is None:
            return
        inspection = inspect(self._url, self._clock)
        try:
            if inspection.schema():
                self._home.recognise(inspection.name())
        finally:
            inspection.close()

    @contextmanager
    def _scratch(self) -> Iterator[str]:
        """A new file beside the store; what killed restores left there goes first."""
        from headway.store.sqlite.files import remove_half_made
        from headway.store.sqlite.filesystems import file_system, refuse_network_file_system

        beside = self._path or self._home.database
        folder = os.path.dirname(beside)
        if not os.path.isdir(folder):
            raise InvalidInputError(f"there is no {folder}")
        if self._path is not None and not self._unsafe_fs:
            refuse_network_file_system(folder, file_system(folder))
        remove_half_made(beside)
        fresh = f"{beside}.{os.getpid()}.new"
        try:
            yield fresh
        finally:
            remove_half_made(beside)

    # -- what the backup cannot know -----------------------------------------------------------

    def _prepare(self, fresh: str, name: str) -> Restored:
        """Tell the copy what happened since it was made."""
        from headway.base.host import this_host
        from headway.store import open_store

        present = self._present()
        self._next_seen = present.next_id
        folders = job_folders(self._home)
        store = open_store(f"sqlite://{fresh}", self._clock, unsafe_fs=True)
        try:
            with store.write() as tx:
                last_event = tx.events.last()
                known = _known(tx, folders)
                _refuse_other_folders(tx, folders, known)
                unknown = tuple(sorted(set(folders) - known))
                unwatched = tuple(each for each in unknown if _lives(folders[each]))
                if unwatched and not self._force:
                    raise ConflictError(
                        f"{_listed(unwatched)} still run, and the backup does not know them; "
                        "cancel them first, or leave them unwatched with --force"
                    )
                host = this_host(self._home)
                taken_up = _take_up(tx, folders, host, self._actor)
                if self._path is not None:
                    _give_up_strangers(tx, host)
                _requeue(tx, host, shared=self._path is None)
                next_then = tx.settings.marks()["next_job_id"]
                next_id = max(next_then, present.next_id, *(each + 1 for each in folders), 1)
                tx.settings.set_mark("next_job_id", next_id)
                tx.settings.set_mark("crashes_forgiven_at", tx.now())
                begin_epoch(tx, last_event)
                if present.pause is not None:
                    tx.settings.pause(present.pause)
                detail = {"file": name, "taken_up": len(taken_up), "unknown": len(unknown)}
                tx.events.add([Event("restored", None, detail)], actor=self._actor)
                bare = _without_environment(tx, self._home)
                jobs = Inspection(store.database, self._clock).numbers_now()
            store.tidy()
        finally:
            store.close()
        return Restored(
            jobs=jobs.jobs,
            active=jobs.active,
            taken_up=taken_up,
            lost=max(len(unknown), present.next_id - next_then),
            unknown=unknown,
            unwatched=unwatched,
            bare=bare,
            next_id=next_id,
            replaced=None,
            kept=None,
        )

    def _present(self) -> Surviving:
        """Ids that were seen and a pause that was wanted hold on, if the old store can be read."""
        from headway.store.inspect import inspect

        nothing = Surviving(1, None)
        if self._path is not None and not os.path.exists(self._path):
            return nothing
        try:
            inspection = inspect(self._url, self._clock)
        except HeadwayError:
            if self._path is None:
                raise
            return nothing
        try:
            if inspection.schema() == 0:
                return nothing
            next_id = inspection.next_id()
            with suppress(HeadwayError), inspection.store.read() as tx:
                return Surviving(next_id, tx.settings.pause_in_force())
            return Surviving(next_id, None)
        except (HeadwayError, IndexError):
            return nothing
        finally:
            inspection.close()

    # -- the exchange --------------------------------------------------------------------------

    def _judge_file(self, old: SqliteDatabase | None) -> str | None:
        """With the old file's write lock held: may it be replaced, and where is it kept?"""
        return self._judge(None if old is None else Inspection(old, self._clock))

    def _judge(self, old: Inspection | None) -> str | None:
        numbers = None
        if old is not None:
            with suppress(HeadwayError):
                numbers = old.numbers_now()
        if old is not None and numbers is not None and old.next_id_now() > self._next_seen:
            raise StoreBusyError("a job was submitted in this very moment; try again")
        if numbers == Numbers(0, 0):
            return None
        if not self._force:
            raise ConflictError(
                "the present store cannot be read; --force moves it aside and restores all the same"
                if numbers is None
                else f"the present store holds {_counted(numbers.jobs)}, {numbers.active} of them "
                "active, which would be lost; --force keeps a copy and restores"
            )
        self._replaced = numbers
        self._kept = self._place()
        return self._kept

    def _place(self) -> str:
        from headway.base.units import show_instant

        instant = (show_instant(self._clock.now()) or "").replace(":", "").replace("-", "")
        return f"{self._path or self._home.database}.before-restore-{instant}"

    def _pour(self, fresh: str) -> None:
        from headway.store.postgres.admin import pour
        from headway.store.postgres.database import open_database
        from headway.store.sqlite.database import look

        source = look(fresh)
        target = open_database(self._url)
        try:
            pour(source, target, lambda: self._judge(Inspection(target, self._clock)))
        finally:
            target.close()
            source.close()


@contextmanager
def _no_worker(home: Home) -> Iterator[None]:
    """Hold every byte of the worker lock: nobody starts a process, and nobody comes up."""
    lock = WorkerLock(home.worker_lock)
    try:
        for byte in (COMING, STAYS, START):
            if not lock.take(byte):
                raise lock.occupied()
        lock.write_pid()
        yield
    finally:
        lock.close()


def begin_epoch(tx: WriteTx, last_event: int) -> None:
    """The numbers of events after this one are given a second time. Those of the backup keep their
    epoch: what was delivered of them before the restore has the same id again."""
    tx.settings.set_mark(EARLIER, tx.settings.marks()[EPOCH])
    tx.settings.set_mark(LAST_OF_EARLIER, last_event)
    tx.settings.set_mark(EPOCH, new_epoch())


# -- job folders ----------------------------------------------------------------------------------


def job_folders(home: Home) -> dict[JobId, str]:
    try:
        names = os.listdir(home.jobs)
    except FileNotFoundError:
        return {}
    return {int(each): os.path.join(home.jobs, each) for each in names if each.isdigit()}


def _known(tx: WriteTx, folders: Mapping[JobId, str]) -> set[JobId]:
    known: set[JobId] = set()
    ids = sorted(folders)
    for first in range(0, len(ids), 500):
        some = ids[first : first + 500]
        known |= set(tx.jobs.running(some))  # also those whose rows cannot be read
    return known


def _refuse_other_folders(tx: WriteTx, folders: Mapping[JobId, str], known: set[JobId]) -> None:
    """A backup of another store would give the folders of other jobs to its own."""
    newest = sorted(known)[-_COMPARED:]
    jobs = tx.jobs.readable(newest)
    for job in jobs.values():
        for token in _tokens(folders[job.id]):
            if not _is_of(Evidence(folders[job.id], token), job):
                raise ConflictError(
                    f"{folders[job.id]} has the files of another {shown(job.id)}: the backup is of "
                    "another store. Use another --home, or move the folder with all jobs away"
                )


def _is_of(evidence: Evidence, job: Job) -> bool:
    """Whether the claim's file speaks of this very job; one that cannot be read might."""
    try:
        spec = evidence.read_spec()
        shell = job.params.get("shell")
        argv = ["/bin/sh", "-c", shell] if isinstance(shell, str) else job.params.get("argv")
        if "agent" in job.params:  # its main process is the same for all; its prompt is not
            same = spec["agent"]["prompt"] == job.params["agent"]["prompt"]
            argv = spec["argv"] if same else None
        if job.workflow_run is not None:  # its claim has the values of references, and the prompt
            argv = spec["argv"]
        environment = os.path.basename(spec["env_file"] or "") or None
        return bool(
            (spec["argv"], spec["attempt"], environment) == (argv, job.attempt, job.env_digest)
        )
    except (OSError, ValueError, KeyError, TypeError):
        return True


def _take_up(
    tx: WriteTx, folders: Mapping[JobId, str], host: Host, actor: str
) -> tuple[JobId, ...]:
    """Make those jobs running whose folders show a claim that the backup does not know.

    A claim is taken back only where nothing was started, and then its file is removed or it is
    void. So one whose file is there and that is not void is the job's last one, and what became
    of it is for recovery to say.
    """
    live = {claim.job_id: claim for claim in tx.claims.live()}
    used = {claim.slot for claim in live.values()}
    taken = []
    for job in tx.jobs.active():
        folder = folders.get(job.id)
        known = live.get(job.id)
        found = _last_claim(folder, known) if folder else None
        if folder is None or found is None:
            continue
        if known is not None:
            undone = Unclaim(known.token, job.id, "taken back since the backup", None, 0, None)
            tx.claims.undo([undone])
            tx.claims.release_locks([job.id])
            job = tx.jobs.by_id([job.id])[job.id]
        slot = min(used | {0}) - 1 if job.is_entry else max(used | {0}) + 1
        used.add(slot)
        claim = _claim(job, found, slot, host)
        tx.claims.begin([(job, claim)])
        tx.events.add([Event("running", job.id, {"slot": slot})], actor=actor)
        taken.append(job.id)
    return tuple(taken)


def _requeue(tx: WriteTx, host: Host, *, shared: bool) -> None:
    """Between stores of one host and of several: in the one a job belongs to nobody in particular,
    in the other to the host on which its environment is."""
    active = tx.jobs.active()
    if not shared:
        tx.waits.requeue([job.id for job in active if job.queue], "")
        return
    own = [job.id for job in active if not job.queue and not job.params.get("any_host")]
    if own:
        tx.hosts.know(HostRecord(host.id, host.name, host.home))
        tx.waits.requeue(own, host.id)


def _give_up_strangers(tx: WriteTx, host: Host) -> None:
    """Claims of another home, in a store that is of this home alone: nobody here can judge them,
    and their home's own store does. They are marked as of another boot, which is over."""
    for claim in tx.claims.live():
        foreign = claim.host_id != host.id and claim.boot_id == host.boot_id
        if foreign and tx.jobs.readable([claim.job_id]):
            tx.claims.begin([(_unclaimed(tx, claim), claim._replace(boot_id=""))])


def _unclaimed(tx: WriteTx, claim: Claim) -> Job:
    """The job without this claim, in the midst of getting another."""
    tx.claims.undo([Unclaim(claim.token, claim.job_id, "restored", None, 0, None)])
    tx.claims.release_locks([claim.job_id])
    return tx.jobs.by_id([claim.job_id])[claim.job_id]


def _last_claim(folder: str, known: Claim | None) -> Evidence | None:
    """The claim in this folder that counts, unless it is the one that the backup knows."""
    if known is not None and _counts(Evidence(folder, known.token)):
        return None
    others = [Evidence(folder, token) for token in _tokens(folder)]
    if known is not None:
        others = [each for each in others if each.token != known.token]
    counting = [each for each in others if _counts(each)]
    if not counting:
        return None
    # Of several, those without a start were killed before they were committed.
    return max(counting, key=lambda each: (each.read_started() is not None, _made_at(each)))


def _counts(evidence: Evidence) -> bool:
    return evidence.exists() and not evidence.is_void()


def _claim(job: Job, evidence: Evidence, slot: int, host: Host) -> Claim:
    started = evidence.read_started()
    made_at = _made_at(evidence)
    if started is not None:
        boot = started.boot_id or host.boot_id
    else:  # the start record is not synced: after a reboot its absence says nothing
        boot = host.boot_id if made_at >= _booted_at() else ""
    return Claim(
        job_id=job.id,
        token=evidence.token,
        slot=slot,
        worker_id=WORKER,
        host_id=host.id,
        home=host.home,
        boot_id=boot,
        folder=evidence.folder,
        claimed_at=(started.started_at if started is not None else 0) or made_at,
        occupies=keys_of(job, BUILT_IN),
    )


def _without_environment(tx: WriteTx, home: Home) -> tuple[JobId, ...]:
    digests = {job.id: job.env_digest for job in tx.jobs.active() if job.stage is not None}
    return tuple(
        sorted(
            job_id
            for job_id, digest in digests.items()
            if digest and not os.path.exists(os.path.join(home.environments, digest))
        )
    )


def _tokens(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(each.removeprefix("claim.") for each in names if each.startswith("claim."))


def _made_at(evidence: Evidence) -> int:
    try:
        return os.stat(evidence.claim, follow_symlinks=False).st_mtime_ns // 1000
    except OSError:
        return 0


def _booted_at() -> int:
    """Microseconds UTC."""
    with open("/proc/stat", encoding="ascii") as file:
        for line in file:
            if line.startswith("btime "):
                return int(line.split()[1]) * 1_000_000
    return 0


def _lives(folder: str) -> bool:
    """Whether a supervisor of this folder still runs."""
    for token in _tokens(folder):
        fd = None
        with suppress(OSError):
            fd = watch_supervisor(Evidence(folder, token))
        if fd is not None:
            os.close(fd)
            return True
    return False


def _counted(jobs: int) -> str:
    return "1 job" if jobs == 1 else f"{jobs} jobs"


def _listed(ids: tuple[JobId, ...]) -> str:
    names = [shown(each) for each in ids[:5]]
    return ", ".join(names) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
