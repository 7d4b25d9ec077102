"""One function host as its worker sees it: the calls it holds, its journal and its end.

A host's journal says what became of each call. What the journal leaves open, its end decides.
"""

import json
import os
import shutil
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple, Protocol

from headway.base.clock import SECOND
from headway.base.watchlist import Ready, Watching, Watchlist
from headway.core.model import Claim, Job, JobId, shown
from headway.core.outputs import returned_outputs
from headway.core.settle import Ending, Judgement, NeverRan, Outcome, Verdict
from headway.core.states import Status
from headway.functions.host.journal import NAME, STARTS, WELL, Journal, Reader, parse
from headway.store.records import Progress, RecordedStep
from headway.supervise import rescue
from headway.supervise.evidence import Evidence, OutcomeRecord
from headway.supervise.folder import Folder

LARGEST_WINDOW = 200
SETTINGS = "host.json"  # the file that a host reads at its start
_NOTHING_MORE = ",null,null,null]"  # no error, no wish, no log
AIM = 0.02  # seconds of work that may wait inside a host
AIM_BYTES = 4 << 20  # of arguments, likewise: a worker reads and sends them with many others


Descriptor = Literal["listener", "connection", "pidfd"]


class AppSettings(NamedTuple):
    """Whose functions are run here, and by how many processes and threads."""

    modules: tuple[str, ...] = ()
    processes: int = 1
    threads: int = 1


class HeldCall(Protocol):
    """A claim that was handed to a host."""

    @property
    def claim(self) -> Claim: ...

    @property
    def job(self) -> Job | None:
        """None: it has to be read from the store."""

    @property
    def params(self) -> Mapping[str, Any]: ...

    @property
    def job_id(self) -> JobId: ...

    @property
    def argument_bytes(self) -> int:
        """The size of its arguments; 0: not known."""

    def in_full(self) -> "ClaimedCall":
        """The same call, with everything that settles it by itself."""


class ClaimedCall(NamedTuple):
    """A held call with its claim and its parameters."""

    claim: Claim
    job: Job | None
    params: Mapping[str, Any]

    @property
    def job_id(self) -> JobId:
        return self.claim.job_id

    @property
    def argument_bytes(self) -> int:
        return 0

    def in_full(self) -> "ClaimedCall":
        return self


class CallEnd(NamedTuple):
    """What became of one call."""

    claim: Claim
    job: Job | None
    judgement: Judgement
    result: Any = None
    took: int = 0

    @property
    def settles(self) -> tuple[Claim, Judgement]:
        """For the settler: the outputs of a workflow's node are what its function returned."""
        judgement = self.judgement
        if isinstance(judgement, Verdict) and (self.job is None or self.job.workflow_run):
            judgement = judgement._replace(outputs=returned_outputs(self.result))
        return self.claim, judgement


class Returned(NamedTuple):
    """A call that returned. Its journal says nothing else about it."""

    call: HeldCall
    token: str
    finished_at: int
    result: Any = None

    def in_full(self) -> CallEnd:
        outcome = Outcome(Ending.EXITED, self.finished_at, exit_code=0)
        verdict = Verdict(outcome, tree_gone=True)
        return CallEnd(self.call.claim, self.call.job, verdict, self.result)


class News(NamedTuple):
    """What became of calls: those that only returned, and all others that ended."""

    returned: list[Returned]
    ended: list[CallEnd]


class FunctionHost:
    """One host, from the making of its folder until its journal is in the store."""

    def __init__(self, folder: str, token: str, now: float) -> None:
        self.folder = folder
        self.token = token
        self.calls: dict[str, HeldCall] = {}  # by their tokens
        self.begun: set[str] = set()  # of these, those that its journal says were started
        self.ready = False
        self.tasks: frozenset[str] = frozenset()  # that it knows, once it is ready
        self.leaving = False
        self.dismissed = False  # it was asked to leave
        self.adopted = False  # of an earlier worker
        self.broken = False  # it said why it could not import
        self.lent = 0  # calls that wait for other jobs, whose threads may make others
        self.window = 1
        self.asked_back: float | None = None  # when it was asked to give back what it has not begun
        self.deaf = False  # it did not answer that; a function may hold the interpreter
        self.pidfd: int | None = None
        self.listener: socket.socket | None = None
        self.connection: socket.socket | None = None
        self.reader: Reader | None = None
        self._watchings: dict[Descriptor, Watching] = {}
        self.born = now
        self.read_at = self.born
        self.steps: list[RecordedStep] = []  # that were read and not yet taken
        self._received = b""
        self._unsent = bytearray()

    def room(self, threads: int) -> int:
        if not self.ready or self.leaving or self.deaf:
            return 0
        return max(0, max(threads, self.window) + self.lent - self.held)

    def watch(self, watchlist: Watchlist, which: Descriptor, ready: Ready) -> None:
        """Wait for one of its descriptors, for as long as there is one."""
        self._watchings[which] = watchlist.watch(getattr(self, which), ready)

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
        """Also be woken when more can be sent."""
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
        return len(self.calls)

    def take(self, claim: Claim, job: Job, params: Mapping[str, Any]) -> Claim:
        """Hold a place for this call, which is made with these parameters."""
        mine = claim._replace(function_host=self.token)
        running = job._replace(status=Status.RUNNING, stage=None, started_at=claim.claimed_at)
        self.calls[claim.token] = ClaimedCall(mine, running, params)
        return mine

    def settle_in_full(self) -> None:
        """Something happened to the host, or to one of its calls: each is settled by itself."""
        self.calls = {token: call.in_full() for token, call in self.calls.items()}

    def send(self, message: Mapping[str, Any]) -> None:
        """Send without waiting: a function may hold the interpreter, and with it the reader."""
        self.send_lines(json.dumps(message) + "\n")

    def send_lines(self, lines: str) -> None:
        self._unsent += lines.encode()
        self.flush()

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
        was added is read again the next time: a call whose end is known has left `calls`."""
        assert self.reader is not None  # noqa: S101
        content = self.reader.peek()
        self._take_in(content, news, progress, now)
        self.reader.skip(content)

    def _take_in(
        self, added: bytes, news: News, progress: dict[JobId, Progress], now: float
    ) -> None:
        took: list[int] = []
        size, before = 0, len(news.ended)
        calls, begun = self.calls, self.begun
        for kind, token, content in parse(added):
            call = calls.get(token)
            if call is None:
                continue
            if kind in STARTS:
                begun.add(token)
                continue
            if kind == "e":
                when, _, more = content.partition(" ")
                lasted, _, more = more.partition(" ")
                only, result = (True, None) if more == WELL else only_returned(more)
                if only and when.isdigit() and lasted.isdigit():  # else it is torn
                    news.returned.append(Returned(call, token, int(when), result))
                    del calls[token]
                    begun.discard(token)
                    took.append(int(lasted))
                    size += call.argument_bytes
                    continue
            self._read_other(call, kind, token, content, news.ended, progress)
        # Calls that were given back say nothing about how fast the host is.
        ended = news.ended[before:]
        took += [each.took for each in ended if isinstance(each.judgement, Verdict)]
        if took:
            self._widen(sum(took) / len(took) / SECOND, size // len(took))
            self.read_at = now

    def _read_other(
        self,
        held: HeldCall,
        kind: str,
        token: str,
        content: str,
        ended: list[CallEnd],
        progress: dict[JobId, Progress],
    ) -> None:
        call = self.calls[token] = held.in_full()
        if kind == "v":
            if token not in self.begun:  # else it came too late to take anything back
                ended.append(CallEnd(call.claim, call.job, NeverRan("its host did not come to it")))
                del self.calls[token]
            return
        with suppress(ValueError, TypeError):  # a line torn by a full disk is written again
            if kind == "e":
                ended.append(how_it_ended(call, content))
                del self.calls[token]
                self.begun.discard(token)
            elif kind == "p":
                progress[call.job_id] = Progress(call.job_id, *json.loads(content))
            elif kind == "c":
                self.steps.append(step_of(call, content))

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

    def how_it_ended(self) -> tuple[OutcomeRecord | None, str]:
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

    def receive(self) -> list[dict[str, Any]]:
        """Its messages. Empty lines are hints that the journal has grown."""
        if self.connection is None:
            return []
        try:
            data = self.connection.recv(1 << 16, socket.MSG_DONTWAIT)
            gone = not data
        except OSError as error:
            data, gone = b"", not isinstance(error, BlockingIOError)
        lines = (self._received + data).split(b"\n")
        self._received = lines.pop()
        received: list[dict[str, Any]] = [json.loads(line) for line in lines if line]
        return [*received, {"gone": True}] if gone else received


def step_of(call: HeldCall, content: str) -> RecordedStep:
    """A step, by the content of its entry."""
    key, value = json.loads(content)
    node_pass = call.job.node_pass if call.job is not None else 0
    return RecordedStep(call.job_id, node_pass, key, value)


def rebooted(claim: Claim, job: Job, now: int) -> CallEnd:
    """What was not settled before the machine went down cannot be known: its journal was never
    synced, so a start may be missing from it."""
    lost = Outcome(Ending.HOST_REBOOTED, now)
    return CallEnd(claim, job, Verdict(lost, tree_gone=True))


def steps_in(claim: Claim, job: Job) -> list[RecordedStep]:
    """What a call of before the reboot recorded: steps are synced, whatever else is not."""
    found: list[RecordedStep] = []
    with suppress(OSError), Folder(claim.folder) as folder:
        os.close(folder.open(NAME, os.O_RDONLY))  # it is no link
        reader = Reader(f"/proc/self/fd/{folder.fd}/{NAME}")
        try:
            entries = list(parse(reader.read()))
        finally:
            reader.close()
        for kind, token, content in entries:
            if kind == "c" and token == claim.token:
                with suppress(ValueError, TypeError):  # torn
                    found.append(step_of(ClaimedCall(claim, job, job.params), content))
    return found


def only_returned(more: str) -> tuple[bool, Any]:
    """Whether a call has returned and there is no more to say of it, and what."""
    if not more.startswith("[0,") or not more.endswith(_NOTHING_MORE):
        return False, None
    try:
        return True, json.loads(more[3 : -len(_NOTHING_MORE)])
    except ValueError:  # torn by a full disk
        return False, None


def how_it_ended(call: HeldCall, content: str) -> CallEnd:
    when, took, more = content.split(" ", 2)
    finished_at = int(when)
    if more == WELL:
        outcome = Outcome(Ending.EXITED, finished_at, exit_code=0)
        return CallEnd(call.claim, call.job, Verdict(outcome, tree_gone=True), took=int(took))
    code, result, error, then, logs, *unmade = json.loads(more)
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
    if unmade:
        document = {"logs": logs or {}, "unmade": unmade[0]}
    verdict = Verdict(outcome, tree_gone=True, document=document)
    return CallEnd(call.claim, call.job, verdict, result, took=int(took))


def left_open(
    call: HeldCall,
    outcome: OutcomeRecord | None,
    culprit: HeldCall | None,
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


def in_words(outcome: OutcomeRecord | None) -> str:
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
    """Remove the folder of a host that is gone, whose lock nobody holds; or leave it."""
    with suppress(OSError):
        lock = Evidence(folder, token).try_lock()
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
