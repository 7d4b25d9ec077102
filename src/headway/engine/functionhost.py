"""One function host as its worker sees it, and what its journal and its end mean for each call."""

import json
import os
import shutil
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from headway.clock import SECOND
from headway.core.model import Claim, Job, JobId, shown
from headway.core.plaincalls import OCCUPIES, PlainCall, PlainEnd
from headway.core.settle import Ending, Outcome
from headway.core.states import Status
from headway.engine.settling import Judgement, NeverRan, Verdict
from headway.engine.watchlist import Heard, Watching, Watchlist
from headway.functions.journal import NAME, STARTS, WELL, Journal, Reader, parse
from headway.store.base import Progress
from headway.store.seam_calls import Claimant, TakenCall
from headway.supervise import rescue
from headway.supervise.evidence import Evidence
from headway.supervise.evidence import Outcome as Written
from headway.supervise.folder import Folder

LARGEST_WINDOW = 200
SETTINGS = "host.json"  # what a host is told by a file
_NOTHING_MORE = ",null,null,null]"  # no error, no wish, no log
AIM = 0.02  # seconds of work that may wait inside a host
AIM_BYTES = 4 << 20  # of arguments, likewise: a worker reads and sends them with many others


Descriptor = Literal["listener", "connection", "pidfd"]


class AppSettings(NamedTuple):
    """Whose functions are run here, and by how many processes and threads."""

    modules: tuple[str, ...] = ()
    processes: int = 1
    threads: int = 1


class Call(NamedTuple):
    """A claim that was handed to a host. Of a plain call the job is not known as a whole."""

    claim: Claim
    job: Job | None
    params: Mapping[str, Any]


class Told(NamedTuple):
    """What became of one call."""

    claim: Claim
    job: Job | None
    judgement: Judgement
    result: Any = None
    took: int = 0


class News(NamedTuple):
    """What became of calls: the plain ones that returned, and all others."""

    ends: list[PlainEnd]
    told: list[Told]


class Returned(NamedTuple):
    """How a plain call did, and the end of the journal that says so."""

    finished_at: int
    took: int
    result: Any
    content: bytes


class FunctionHost:
    """One host, from the making of its folder until its journal is in the store."""

    def __init__(self, folder: str, token: str, now: float) -> None:
        self.folder = folder
        self.token = token
        self.calls: dict[str, Call] = {}
        self.plain: dict[str, TakenCall] = {}  # other calls, about which there is less to know
        self.claimant: Claimant | None = None  # of the plain ones
        self.begun: set[str] = set()  # of these, those that its journal says were started
        self.ready = False
        self.tasks: frozenset[str] = frozenset()  # that it knows, once it is ready
        self.leaving = False
        self.dismissed = False  # it was told to leave
        self.adopted = False  # of an earlier worker
        self.broken = False  # it said why it could not import
        self.lent = 0  # calls that wait for other jobs, whose threads may make others
        self.window = 1
        self.asked_back: float | None = None  # when it was told to give back what it has not begun
        self.deaf = False  # it did not hear that; a function may hold the interpreter
        self.pidfd: int | None = None
        self.listener: socket.socket | None = None
        self.connection: socket.socket | None = None
        self.reader: Reader | None = None
        self._watchings: dict[Descriptor, Watching] = {}
        self.born = now
        self.read_at = self.born
        self._received = b""
        self._unsent = bytearray()

    def room(self, threads: int) -> int:
        if not self.ready or self.leaving or self.deaf:
            return 0
        return max(0, max(threads, self.window) + self.lent - self.held)

    def watch(self, watchlist: Watchlist, which: Descriptor, heard: Heard) -> None:
        """Wait for one of its descriptors, for as long as there is one."""
        self._watchings[which] = watchlist.watch(getattr(self, which), heard)

    def drop(self, which: Descriptor) -> None:
        """Nobody waits for it any more, and it is closed."""
        watching = self._watchings.pop(which, None)
        if watching is not None:
            watching.end()
        source = getattr(self, which)
        setattr(self, which, None)
        if isinstance(source, int):
            os.close(source)
        elif source is not None:
            source.close()

    def want_room(self, wanted: bool) -> None:
        """Hear of it, too, when more can be sent."""
        if "connection" in self._watchings:
            self._watchings["connection"].also_for_room(wanted)

    def close(self) -> None:
        """Let go of all its descriptors and of its journal."""
        self.drop("listener")
        self.drop("connection")
        self.drop("pidfd")
        if self.reader is not None:
            self.reader.close()

    @property
    def answers_soon(self) -> bool:
        """Whether it is busy, and calls take it no time."""
        return bool(self.held and self.window == LARGEST_WINDOW and self.connection is not None)

    @property
    def held(self) -> int:
        """How many calls it has that are not settled."""
        return len(self.calls) + len(self.plain)

    def take(self, claim: Claim, job: Job) -> Claim:
        """Hold a place for this call."""
        mine = claim._replace(function_host=self.token)
        running = job._replace(status=Status.RUNNING, stage=None, started_at=claim.claimed_at)
        self.calls[claim.token] = Call(mine, running, job.params)
        return mine

    def unfold(self) -> None:
        """Plain calls are not so plain any more: something happened to their host, or to one."""
        for token in list(self.plain):
            self._unfold(token)

    def _unfold(self, token: str) -> Call:
        each, claimant = self.plain.pop(token), self.claimant
        assert claimant is not None  # noqa: S101
        claim = Claim(
            job_id=each.call.job_id,
            token=token,
            slot=each.slot,
            claimed_at=each.claimed_at,
            occupies=OCCUPIES,
            **claimant._asdict(),
        )
        call = self.calls[token] = Call(claim, None, _readable(each.call.params))
        return call

    def send(self, message: Mapping[str, Any]) -> None:
        """Without waiting: a function may hold the interpreter, and with it those who listen."""
        self.send_lines(json.dumps(message) + "\n")

    def send_lines(self, lines: str) -> None:
        self.send_bytes(lines.encode())

    def send_bytes(self, lines: bytes) -> None:
        self._unsent += lines
        self.flush()

    @property
    def has_unsent(self) -> bool:
        return bool(self._unsent)

    def flush(self) -> bool:
        """Send what there is room for; whether something is left. A host that cannot be reached
        is about to be found dead, or to leave."""
        if self.connection is None:
            self._unsent.clear()
        elif self._unsent:
            try:
                done = self.connection.send(self._unsent, socket.MSG_DONTWAIT)
            except BlockingIOError:
                done = 0
            except OSError:
                done = len(self._unsent)
            del self._unsent[:done]
        return bool(self._unsent)

    def read(self, now: float) -> tuple[News, dict[JobId, Progress]]:
        """What was added to its journal; of calls that are settled already, nothing."""
        news, progress = News([], []), dict[JobId, Progress]()
        self.read_into(news, progress, now)
        return news, progress

    def read_into(self, news: News, progress: dict[JobId, Progress], now: float) -> None:
        """The same, added to what is known. If it fails in the middle that is kept, and all that
        was added is read again the next time: of what was told, it tells nothing twice."""
        assert self.reader is not None  # noqa: S101
        content = self.reader.peek()
        self._take_in(content, news, progress, now)
        self.reader.skip(content)

    def _take_in(
        self, added: bytes, news: News, progress: dict[JobId, Progress], now: float
    ) -> None:
        took: list[int] = []
        size, before = 0, len(news.told)
        plain, begun = self.plain, self.begun
        for kind, token, content in parse(added):
            held = plain.get(token)
            if kind in STARTS:
                if held is not None or token in self.calls:
                    begun.add(token)
                continue
            if kind == "e" and held is not None:
                when, _, more = content.partition(" ")
                lasted, _, more = more.partition(" ")
                only, result = (True, None) if more == WELL else only_returned(more)
                if only and when.isdigit() and lasted.isdigit():  # else it is torn
                    (job_id, attempt, chain, _, params), _, slot, began = held
                    end = PlainEnd(job_id, token, slot, attempt, chain, int(when), result, began)
                    news.ends.append(end)
                    del plain[token]
                    begun.discard(token)
                    took.append(int(lasted))
                    size += len(params)
                    continue
            self._read_other(kind, token, content, news.told, progress)
        # What was given back says nothing about how quick it is.
        told = news.told[before:]
        took += [each.took for each in told if isinstance(each.judgement, Verdict)]
        if took:
            self._widen(sum(took) / len(took) / SECOND, size // len(took))
            self.read_at = now

    def returned(self, call: TakenCall) -> Returned | None:
        """How this one did, once its journal says so; it says so again until it was passed on.
        MoreToTellError: it says something else."""
        assert self.reader is not None  # noqa: S101
        content = self.reader.peek()
        ended = None
        for kind, token, more in parse(content):
            if token != call.token or ended is not None or kind not in (*STARTS, "e"):
                raise MoreToTellError
            ended = more if kind == "e" else None
        if ended is None:
            return None
        when, _, more = ended.partition(" ")
        took, _, more = more.partition(" ")
        only, result = (True, None) if more == WELL else only_returned(more)
        if not only:  # or torn
            raise MoreToTellError
        return Returned(int(when), int(took), result, content)

    def pass_on(self, returned: Returned, call: TakenCall) -> None:
        """The one that it was making is settled, and this one was claimed in its place."""
        assert self.reader is not None  # noqa: S101
        self.reader.skip(returned.content)
        self.begun.clear()
        self.plain.clear()
        self.plain[call.token] = call

    def _read_other(
        self, kind: str, token: str, content: str, told: list[Told], progress: dict[JobId, Progress]
    ) -> None:
        call = self._unfold(token) if token in self.plain else self.calls.get(token)
        if call is None:
            return
        if kind == "v":
            if token not in self.begun:  # else it came too late to take anything back
                told.append(Told(call.claim, call.job, NeverRan("its host did not come to it")))
                del self.calls[token]
            return
        with suppress(ValueError, TypeError):  # a line torn by a full disk is written again
            if kind == "e":
                told.append(how_it_ended(call, content))
                del self.calls[token]
                self.begun.discard(token)
            elif kind == "p":
                job_id = call.claim.job_id
                progress[job_id] = Progress(job_id, *json.loads(content))

    def _widen(self, took: float, size: int) -> None:
        """As many calls may wait inside a host as it makes in an instant, so that long ones do not
        stand behind each other while another host is idle; and fewer of large ones."""
        wanted = int(AIM / took) if took > 0 else LARGEST_WINDOW
        if size:
            wanted = min(wanted, AIM_BYTES // size)
        self.window = max(1, min(LARGEST_WINDOW, wanted, self.window * 2))
        self.asked_back = None

    def make_sure_of_its_end(self) -> None:
        """What its journal says must be its last word. A supervisor that wrote an outcome has seen
        to it; one that was killed has not, and the host may live a moment longer."""
        outcome, _ = self.how_it_ended()
        if outcome is None:
            rescue.end_claim(Evidence(self.folder, self.token))

    def how_it_ended(self) -> tuple[Written | None, str]:
        """What its supervisor wrote, if that can be believed, and in words."""
        try:
            outcome = Evidence(self.folder, self.token).read_outcome()
        except OSError as error:
            return None, f"how is not known: {error}"
        return outcome, in_words(outcome)

    def take_back(self, tokens: list[str]) -> set[str]:
        """Those calls that are proven never to begin. Without room to say so there are none: they
        are taken back when the host has ended."""
        try:
            with Folder(self.folder) as folder:
                journal = Journal(f"/proc/self/fd/{folder.fd}/{NAME}")
            try:
                return journal.void(tokens)
            finally:
                journal.close()
        except OSError:
            return set()

    def hear(self) -> list[dict[str, Any]]:
        """What it said; empty lines are hints that the journal has grown."""
        if self.connection is None:
            return []
        try:
            data = self.connection.recv(1 << 16, socket.MSG_DONTWAIT)
            gone = not data
        except OSError as error:
            data, gone = b"", not isinstance(error, BlockingIOError)
        lines = (self._received + data).split(b"\n")
        self._received = lines.pop()
        heard: list[dict[str, Any]] = [json.loads(line) for line in lines if line]
        return [*heard, {"gone": True}] if gone else heard

    def hinted(self) -> bool:
        """Whether it hints at its journal, and says nothing else, which would still be to be heard.
        MoreToTellError: it does."""
        if self.connection is None:
            raise MoreToTellError
        try:
            data = self.connection.recv(1 << 10, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError as error:
            raise MoreToTellError from error
        self._received += data if self._received else data.lstrip(b"\n")
        if self._received or not data:
            raise MoreToTellError
        return True


class MoreToTellError(Exception):
    """Something has happened to a host, or to its call, beside that it returned."""


def order_of(call: PlainCall, token: str) -> str:
    """What a host is told."""
    job_id, attempt, _, _, params = call
    return f"r {token} {job_id} {attempt} {params}\n"


def _readable(params: str) -> Mapping[str, Any]:
    """Nobody has read all of them; what is damaged must not keep a call from its end."""
    try:
        found = json.loads(params)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def rebooted(claim: Claim, job: Job, now: int) -> Told:
    """What was not settled before the machine went down cannot be known: its journal was never
    synced, so a start may be missing from it."""
    lost = Outcome(Ending.HOST_REBOOTED, now)
    return Told(claim, job, Verdict(lost, tree_gone=True))


def only_returned(more: str) -> tuple[bool, Any]:
    """Whether a call has returned and there is no more to say of it, and what."""
    if not more.startswith("[0,") or not more.endswith(_NOTHING_MORE):
        return False, None
    try:
        return True, json.loads(more[3 : -len(_NOTHING_MORE)])
    except ValueError:  # torn by a full disk
        return False, None


def how_it_ended(call: Call, content: str) -> Told:
    when, took, more = content.split(" ", 2)
    finished_at = int(when)
    if more == WELL:
        outcome = Outcome(Ending.EXITED, finished_at, exit_code=0)
        return Told(call.claim, call.job, Verdict(outcome, tree_gone=True), took=int(took))
    code, result, error, then, logs = json.loads(more)
    after = None
    if then == "skip":
        ending = Ending.SKIPPED
    elif then == "cancelled":
        ending = Ending.CANCELLED
    elif isinstance(then, int):
        ending, after = Ending.ASKED_AGAIN, then
    else:
        ending = Ending.EXITED if error is None else Ending.RAISED
    classes = tuple(then) if isinstance(then, list) else ()
    outcome = Outcome(
        ending, finished_at, exit_code=code, error=error, after=after, classes=classes
    )
    document = None if logs is None else {"logs": logs}
    verdict = Verdict(outcome, tree_gone=True, document=document)
    return Told(call.claim, call.job, verdict, result, took=int(took))


def left_open(
    call: Call,
    outcome: Written | None,
    culprit: Call | None,
    *,
    begun: bool,
    now: int,
    words: str | None = None,
) -> Judgement:
    if not begun:
        return NeverRan("its host ended before it began")
    finished_at = outcome.finished_at if outcome else now
    if culprit is None:
        how = words or in_words(outcome)
        ended = Outcome(Ending.HOST_DIED, finished_at, exit_code=1, error=how)
    elif culprit.claim.token != call.claim.token:
        ended = Outcome(
            Ending.HOST_KILLED, finished_at, exit_code=1, error=shown(culprit.claim.job_id)
        )
    elif outcome is not None and outcome.reason == "timed_out":
        ended = Outcome(Ending.TIMED_OUT, finished_at)
    else:
        ended = Outcome(Ending.CANCELLED, finished_at, exit_code=143)
    return Verdict(ended, tree_gone=True)


def in_words(outcome: Written | None) -> str:
    """How a host ended, in words."""
    if outcome is None:
        return "it was killed together with its supervisor"
    if outcome.signal is not None:
        return f"killed by {outcome.signal}"
    if outcome.error is not None:
        return outcome.error
    return f"exit code {outcome.exit_code}"


def listen(folder: str) -> socket.socket:
    at = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(f"/proc/self/fd/{at}/socket")
        os.chmod("socket", 0o600, dir_fd=at)
        listener.listen(1)
        return listener
    finally:
        os.close(at)


def close_to_others(folder: str) -> None:
    """A host that an older Headway started may have left its settings readable by all."""
    with suppress(OSError):
        os.chmod(os.path.join(folder, SETTINGS), 0o600)


def remove_if_ended(folder: str, token: str) -> None:
    """A folder whose lock nobody holds is no living host's; what cannot be removed may stay."""
    with suppress(OSError):
        lock = Evidence(folder, token).try_lock()
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
