"""A part of a worker's step, and what all parts share.

A step is one write transaction, with work before and after it. Each thing that a worker does has
its own part: outcomes, probes, schedules, dispatch. `worker/step.py` holds the tuple of all parts.
A feature derives its part from `Part` in its own room, so that the worker knows no more of it.
"""

from collections.abc import Callable

from headway.base.clock import Clock
from headway.base.home import Home
from headway.base.host import Host
from headway.base.watchlist import Watchlist
from headway.core.model import JobId
from headway.core.plan import Batch
from headway.jobs.settings import Config
from headway.store.store import Store
from headway.store.transaction import WriteTx

Say = Callable[[str], None]


class StepContext:
    """What the parts have in common: the worker's surroundings, and the state of the present step.

    `in_thread`: work that takes long is done in threads, as in a worker; else at once.
    """

    def __init__(
        self,
        store: Store,
        home: Home,
        config: Config,
        host: Host,
        clock: Clock,
        *,
        worker_id: str,
        watchlist: Watchlist,
        say: Say,
        in_thread: bool,
    ) -> None:
        self.store = store
        self.home = home
        self.config = config
        self.host = host
        self.clock = clock
        self.worker_id = worker_id
        self.watchlist = watchlist
        self.say = say
        self.in_thread = in_thread
        self.dispatching = True  # whether jobs may be started at all
        self.granted_until = 0  # after a suspend nothing expires before this instant
        self.makers: list[str | None] = []  # of jobs that ended, until a part takes note of them
        self.begin(None)

    def begin(self, limit: int | Batch | None) -> None:
        """A step begins that starts at most `limit` jobs."""
        self.now = self.clock.monotonic()
        self.limit = limit
        self.has_duties = False  # a part has more to write than the ends of calls
        self.planned = False  # jobs were planned
        self.more = False  # another step could go on at once
        self.started: list[JobId] = []
        self.served: set[str] = set()  # targets that jobs were started for
        self.cancelling: set[JobId] = set()  # running jobs that were cancelled


class Part:
    """One part of a step. A part overrides what it needs; these do nothing."""

    def take_in(self) -> None:
        """Before the transaction: collect what has happened since the last step."""

    def step(self, tx: WriteTx) -> None:
        """In the transaction: write what was collected, and decide what follows."""

    def undo(self) -> None:
        """The transaction was rolled back: what was taken in is still to be written."""

    def committed(self) -> None:
        """The transaction was committed: do what must not happen before."""

    def delay(self) -> float | None:
        """The seconds until this part needs another step. None: not before it is woken."""

    def close(self) -> None:
        """The worker leaves: let go of everything."""
