"""A transaction and its nouns: `tx.claims.begin(...)`, `tx.groups.members(...)`.

`with store.write() as tx:` is one transaction. Only one write transaction exists at a time, so
within it facts do not move. Every change of a claimed job is fenced by the claim's token.

A noun is loaded when it is first asked for, so a submit loads only what it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from headway.store.access import Access

if TYPE_CHECKING:
    from collections.abc import Callable

    from headway.core.model import JobId
    from headway.store.bulk.calls import Calls, CallsReader
    from headway.store.bulk.insert import BulkInsert
    from headway.store.database import Statements
    from headway.store.queries import Queries
    from headway.store.records import Remembered
    from headway.store.tables.claims import ClaimsReader, ClaimsTable
    from headway.store.tables.events import EventsReader, EventsTable
    from headway.store.tables.graph import GraphReader, GraphTable
    from headway.store.tables.groups import GroupsReader, GroupsTable
    from headway.store.tables.hosts import HostsReader, HostsTable
    from headway.store.tables.jobs import JobsReader, JobsTable
    from headway.store.tables.jobsfile import JobsFilesReader, JobsFilesTable
    from headway.store.tables.limits import LimitsReader, LimitsTable
    from headway.store.tables.queue_order import QueueOrderReader, QueueOrderTable
    from headway.store.tables.reservations import ReservationsReader, ReservationsTable
    from headway.store.tables.retention import RetentionReader, RetentionTable
    from headway.store.tables.runners import RunnersReader, RunnersTable
    from headway.store.tables.schedules import SchedulesReader, SchedulesTable
    from headway.store.tables.search import SearchReader
    from headway.store.tables.settings import SettingsReader, SettingsTable
    from headway.store.tables.statistics import StatisticsReader
    from headway.store.tables.steps import StepsReader, StepsTable
    from headway.store.tables.templates import TemplatesReader, TemplatesTable
    from headway.store.tables.waits import WaitsReader, WaitsTable
    from headway.store.tables.webhooks import WebhooksReader, WebhooksTable
    from headway.store.tables.workflows import WorkflowsReader, WorkflowsTable
    from headway.store.tables.workitems import WorkItemsReader, WorkItemsTable


T_co = TypeVar("T_co", covariant=True)


class Noun(Generic[T_co]):
    """A noun of a transaction. Its module is loaded when any transaction first asks for it; each
    transaction makes its own once."""

    def __init__(self, module: str, name: str) -> None:
        self._module = f"headway.store.{module}"
        self._name = name
        self._attribute = ""
        self._make: Callable[[Access], Any] | None = None

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = name

    def load(self) -> Callable[[Access], Any]:
        """What makes it."""
        if self._make is None:
            self._make = getattr(__import__(self._module, fromlist=[self._name]), self._name)
        return self._make

    def __get__(self, tx: ReadTx, owner: type) -> T_co:
        noun: T_co = (self._make or self.load())(tx._db)
        tx.__dict__[self._attribute] = noun
        return noun


class ReadTx:
    """A read transaction: all that it shows is of one moment."""

    jobs: Noun[JobsReader] = Noun("tables.jobs", "JobsReader")
    events: Noun[EventsReader] = Noun("tables.events", "EventsReader")
    settings: Noun[SettingsReader] = Noun("tables.settings", "SettingsReader")
    hosts: Noun[HostsReader] = Noun("tables.hosts", "HostsReader")
    claims: Noun[ClaimsReader] = Noun("tables.claims", "ClaimsReader")
    waits: Noun[WaitsReader] = Noun("tables.waits", "WaitsReader")
    graph: Noun[GraphReader] = Noun("tables.graph", "GraphReader")
    groups: Noun[GroupsReader] = Noun("tables.groups", "GroupsReader")
    limits: Noun[LimitsReader] = Noun("tables.limits", "LimitsReader")
    queue_order: Noun[QueueOrderReader] = Noun("tables.queue_order", "QueueOrderReader")
    reservations: Noun[ReservationsReader] = Noun("tables.reservations", "ReservationsReader")
    schedules: Noun[SchedulesReader] = Noun("tables.schedules", "SchedulesReader")
    templates: Noun[TemplatesReader] = Noun("tables.templates", "TemplatesReader")
    search: Noun[SearchReader] = Noun("tables.search", "SearchReader")
    statistics: Noun[StatisticsReader] = Noun("tables.statistics", "StatisticsReader")
    jobsfile: Noun[JobsFilesReader] = Noun("tables.jobsfile", "JobsFilesReader")
    workitems: Noun[WorkItemsReader] = Noun("tables.workitems", "WorkItemsReader")
    steps: Noun[StepsReader] = Noun("tables.steps", "StepsReader")
    workflows: Noun[WorkflowsReader] = Noun("tables.workflows", "WorkflowsReader")
    runners: Noun[RunnersReader] = Noun("tables.runners", "RunnersReader")
    webhooks: Noun[WebhooksReader] = Noun("tables.webhooks", "WebhooksReader")
    retention: Noun[RetentionReader] = Noun("tables.retention", "RetentionReader")
    calls: Noun[CallsReader] = Noun("bulk.calls", "CallsReader")

    def __init__(
        self, database: Statements, queries: Queries, now: int | Callable[[], int]
    ) -> None:
        self._db = Access(database, queries, now)

    def now(self) -> int:
        """The instant of this transaction; every row that it writes carries the same."""
        return self._db.now

    def unreadable(self) -> dict[JobId, str]:
        """The rows that listings of this transaction met and could not read, with the error."""
        return self._db.unreadable


class WriteTx(ReadTx):
    """A write transaction: all that can be read, and changes."""

    jobs: Noun[JobsTable] = Noun("tables.jobs", "JobsTable")
    events: Noun[EventsTable] = Noun("tables.events", "EventsTable")
    settings: Noun[SettingsTable] = Noun("tables.settings", "SettingsTable")
    hosts: Noun[HostsTable] = Noun("tables.hosts", "HostsTable")
    claims: Noun[ClaimsTable] = Noun("tables.claims", "ClaimsTable")
    waits: Noun[WaitsTable] = Noun("tables.waits", "WaitsTable")
    graph: Noun[GraphTable] = Noun("tables.graph", "GraphTable")
    groups: Noun[GroupsTable] = Noun("tables.groups", "GroupsTable")
    limits: Noun[LimitsTable] = Noun("tables.limits", "LimitsTable")
    queue_order: Noun[QueueOrderTable] = Noun("tables.queue_order", "QueueOrderTable")
    reservations: Noun[ReservationsTable] = Noun("tables.reservations", "ReservationsTable")
    schedules: Noun[SchedulesTable] = Noun("tables.schedules", "SchedulesTable")
    templates: Noun[TemplatesTable] = Noun("tables.templates", "TemplatesTable")
    search: Noun[SearchReader] = Noun("tables.search", "SearchReader")
    statistics: Noun[StatisticsReader] = Noun("tables.statistics", "StatisticsReader")
    jobsfile: Noun[JobsFilesTable] = Noun("tables.jobsfile", "JobsFilesTable")
    workitems: Noun[WorkItemsTable] = Noun("tables.workitems", "WorkItemsTable")
    steps: Noun[StepsTable] = Noun("tables.steps", "StepsTable")
    workflows: Noun[WorkflowsTable] = Noun("tables.workflows", "WorkflowsTable")
    runners: Noun[RunnersTable] = Noun("tables.runners", "RunnersTable")
    webhooks: Noun[WebhooksTable] = Noun("tables.webhooks", "WebhooksTable")
    retention: Noun[RetentionTable] = Noun("tables.retention", "RetentionTable")
    calls: Noun[Calls] = Noun("bulk.calls", "Calls")
    bulk: Noun[BulkInsert] = Noun("bulk.insert", "BulkInsert")

    def others_wrote(self) -> bool:
        """Whether anyone but this process may have committed since the last write transaction in
        which this was asked."""
        return self._db.database.others_wrote()

    def remember(self) -> Remembered | None:
        """The state that this transaction knows, for a later one in which nobody else can have
        changed it; None: not enough."""
        from headway.store.records import Remembered

        cache = self._db.cache
        if cache.state is None or cache.presence is None:
            return None
        return Remembered((self._db.database.undone, cache.state, cache.presence))

    def recall(self, known: Remembered) -> None:
        """At the beginning: know this, as if it had been asked. It is refused if a transaction of
        this process was undone since: perhaps the one that remembers it, and it never was so."""
        from headway.base.errors import OthersWroteError

        cache = self._db.cache
        undone, cache.state, cache.presence = known.known
        if undone != self._db.database.undone:
            raise OthersWroteError("a change was undone since this was remembered; look again")
