"""How long a process waits: for its turn to write to a file, and for a server.

A worker that is busy writes nearly all the time, and from one commit to its next transaction there
is less than a tenth of a millisecond. A writer that polls more and more rarely, as SQLite itself
does, finds that gap after a second or so, and every submit waits for it.

A server may hang, or be cut off without a word. People get an error that says so in less than a
minute. A worker must obey signals meanwhile, and tries again anyway. It waits for two seconds, and
after a signal to leave no longer than its grace.
"""

from time import monotonic, sleep

SECONDS = 10.0
WORKERS_SECONDS = 2.0
_PAUSES = ((0.00005, 20), (0.00025, 36), (0.001, 990), (0.005, 1800))  # and how many of each
_MOST = sum(number for _, number in _PAUSES)


def wait(tries: int) -> bool:
    """Before the next try, after so many; False if it is not worth another one."""
    if tries >= _MOST:
        return False
    for pause, number in _PAUSES:
        if tries < number:
            sleep(pause)
            break
        tries -= number
    return True


class Patience:
    """Of one process with its store, in seconds. It may change at any time, by a signal too."""

    __slots__ = ("again", "answer", "connect", "ends_at", "is_interruptible", "turn")

    def __init__(self) -> None:
        self.connect = 10.0  # to each address of the server
        self.answer = 5.0  # from a question until it is asked otherwise whether the server lives
        self.again = 30.0  # until a lost connection is given up
        self.turn: float | None = None  # to write, on a server; None: as long as people wait
        self.ends_at: float | None = None  # nothing is waited for after that instant
        self.is_interruptible = False  # whether that may come to be set

    def be_a_workers(self) -> None:
        self.connect = self.answer = self.again = self.turn = WORKERS_SECONDS
        self.is_interruptible = True

    def end_within(self, seconds: float) -> None:
        """Called by a writer that has to leave."""
        self.ends_at = monotonic() + seconds

    def have_time(self) -> None:
        self.ends_at = None

    @property
    def is_over(self) -> bool:
        return self.ends_at is not None and monotonic() >= self.ends_at

    def until(self, seconds: float) -> float:
        """The instant so far from now, but for the end."""
        at = monotonic() + seconds
        return at if self.ends_at is None else min(at, self.ends_at)
