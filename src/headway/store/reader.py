"""All that can be read, in one class."""

from headway.store.calling import CallReadTx
from headway.store.entering import EntryReadTx
from headway.store.governor import GovernorReadTx
from headway.store.limiting import LimitReadTx
from headway.store.ordering import OrderReadTx
from headway.store.removing import RetentionReadTx
from headway.store.reserving import ReservingReadTx
from headway.store.scheduling import ScheduleReadTx
from headway.store.templating import TemplateReadTx


class SqlReader(
    RetentionReadTx,
    LimitReadTx,
    OrderReadTx,
    TemplateReadTx,
    ReservingReadTx,
    GovernorReadTx,
    EntryReadTx,
    ScheduleReadTx,
    CallReadTx,
):
    """A read transaction."""
