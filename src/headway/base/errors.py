"""The exception tree. Each class carries the exit code of the command that meets it.

A message says what is wrong, with which thing, and what to do next.
"""


class HeadwayError(Exception):
    """Anything Headway refuses or cannot do."""

    exit_code = 1


class NotFoundError(HeadwayError):
    """The named job, setting or file does not exist."""

    exit_code = 3


class ConflictError(HeadwayError):
    """The request contradicts the present state."""

    exit_code = 4


class ChangedMeanwhileError(ConflictError):
    """What the request was decided by has changed since; nothing was changed by it."""


class InvalidOperationError(ConflictError):
    """A change that the state of its object forbids."""


class KeyReusedError(ConflictError):
    """The key of a request belongs to another specification."""


class InvalidTransitionError(InvalidOperationError):
    """A move that the status table does not allow."""


class WorkerPresentError(ConflictError):
    """A worker is already there."""


class InvalidInputError(HeadwayError):
    """The request itself is wrong; nothing was changed."""

    exit_code = 5


class DataError(HeadwayError):
    """A stored row cannot be read."""

    exit_code = 6


class CannotLaunchError(HeadwayError):
    """Something that a job needs to be started is missing; it may be there later."""


class StoreError(HeadwayError):
    """The store is unavailable or unreadable."""

    exit_code = 6


class StoreBusyError(StoreError):
    """Another process kept the store locked for too long."""


class StoreUndoneError(StoreBusyError):
    """Others were in the way, or the line was lost; it is certain that nothing was changed."""


class OthersWroteError(StoreBusyError):
    """It was written for a state that is not so any more; nothing was changed."""


class StoreFullError(StoreError):
    """The disk, quota or file size limit is used up; the transaction was rolled back."""


class StoreReadOnlyError(StoreError):
    """The store can be read but not written."""


class StoreCorruptError(StoreError):
    """The file is damaged or not a database; it was left as it is."""


class StoreFailedError(StoreError):
    """The disk has failed; the last writes may be lost."""


class StoreReplacedError(StoreError):
    """The file was deleted or exchanged while it was in use."""


class SchemaTooNewError(StoreError):
    """The store was written by a newer Headway."""


class SourceError(HeadwayError):
    """A source of subjects cannot be read."""

    exit_code = 6


class ReservationLostError(ConflictError):
    """A slot that was held had not been renewed in time, so that others could have it."""


class WaitDeadlockError(ConflictError):
    """A job waits for another one that needs a lock the waiter holds."""


class TimedOutError(HeadwayError):
    """The caller's own deadline passed."""

    exit_code = 124
