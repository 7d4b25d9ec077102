"""The few verbs of a submit, with which a write transaction begins.

Asked for any other it becomes the whole one, SqlWriteTx, and only then are the parts of that one
loaded. So a new part of the store costs a submit nothing, and its user sees no difference.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from headway.core.model import POSITION_GAP, Stage
from headway.core.states import Status
from headway.store.rows import dump, dump_job, dump_pairs, load, written
from headway.store.seam_adding import Places
from headway.store.transaction import Telling

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from headway.core.model import Job, JobId
    from headway.store.seam_adding import Alike, Event

MANY = 6  # jobs that are alike, from which on they are added together
_SIMPLE = frozenset({str, int})


class AddingTx(Telling):
    _ahead_of_id: int | None = None  # how far new jobs stand, if nothing but their ids says where
    _place_after: tuple[int, int] | None = None  # of the next job, after those that were added

    if TYPE_CHECKING:  # of the whole

        def _add_edges(self, jobs: Sequence[Job]) -> None: ...
        def _add_topics(self, jobs: Iterable[Job]) -> None: ...
        def _add_graph(self, jobs: Sequence[Job]) -> None: ...
    else:

        def __getattr__(self, name: str) -> Any:
            """Called for what is not found here."""
            from headway.store.writing import SqlWriteTx

            if isinstance(self, SqlWriteTx):
                raise AttributeError(f"a transaction has no {name!r}")
            self.__class__ = SqlWriteTx
            return getattr(self, name)

    def take_ids(self, count: int) -> int:
        return int(self._all("take_ids", count=count)[0][0])

    def next_places(self, after: Sequence[JobId] = ()) -> Places:
        ends: list[tuple[Any, ...]] = []
        supposed = self._database.supposed_place() if after else None
        if supposed is not None:
            return self._suppose(*supposed, after)
        if after:
            ids = self._database.json(after)
            rows, ends = self._ask({"next_places": {}, "ends_of_chains": {"ids": ids}})
        else:
            rows = self._all("next_places")
        first, ahead, ageing = rows[0]
        said = load(ageing, "setting scheduler.ageing") if ageing is not None else None
        known = {job_id: (chain, Status(status)) for job_id, chain, status in ends}
        self._ahead_of_id = ahead if said is None else None
        return Places(int(first), POSITION_GAP * first + ahead, said, known)

    def _suppose(self, first: int, ahead: int, after: Sequence[JobId]) -> Places:
        """Without a question: that this is the place, and that all the jobs which are waited for
        are as they were when they were submitted, first of their chains, which have not ended. If
        it is not so nothing of this transaction is done."""
        ids = self._database.json(after)
        self._tell("suppose_place", first=first, ahead=ahead, ids=ids, count=len(after))
        self._ahead_of_id = ahead
        ends = {each: (each, Status.QUEUED) for each in after}
        return Places(first, POSITION_GAP * first + ahead, None, ends)

    def add_jobs(self, jobs: Sequence[Job]) -> None:
        self._many("add_jobs", map(dump_job, jobs))
        self._state = None  # its mark of the next id is another now
        if jobs and self._ahead_of_id is not None:
            self._place_after = jobs[-1].id + 1, self._ahead_of_id
        if any(job.after for job in jobs):
            self._add_edges(jobs)
        filed = [job for job in jobs if job.stage is Stage.FILED]
        if filed:
            self._add_topics(filed)
        if any(job.needs or job.produces or "worktree" in job.params for job in jobs):
            self._add_graph(jobs)

    def wakes_nobody(self) -> None:
        self._database.wake_nobody(self._place_after)

    def add_alike(self, kinds: Sequence[Alike]) -> int | None:
        first, position, ageing, _ = self.next_places()
        if ageing is not None:
            return None
        if sum(len(each.params) for each in kinds) < MANY:
            self._add_few(kinds, first, position)
        else:
            self._add_many(kinds, first, position)
        self._state = None  # its mark of the next id is another now
        return first

    def _add_few(self, kinds: Sequence[Alike], first: int, position: int) -> None:
        """A statement for each job."""
        now = self._now
        jobs = [
            {
                **written(model),
                "id": first + place,
                "chain": first + place,
                "position": position + POSITION_GAP * place,
                "created_at": now,
                "params": dump(each),
            }
            for model, params in kinds
            for place, each in params.items()
        ]
        self._many("add_jobs", jobs)
        self._tell_submitted(kinds, first)

    def _add_many(self, kinds: Sequence[Alike], first: int, position: int) -> None:
        """A statement for each kind."""
        for model, params in kinds:
            # A text in a text: not every database takes in every letter that one may have.
            rows = [(place, dump(each)) for place, each in params.items()]
            places = {"first": first, "position": position, "gap": POSITION_GAP, "at": self._now}
            given = {**written(model), **places, **self._listed(("place", "params"), rows)}
            self._tell("add_alike", **given)
        if len(kinds) == 1:
            model, params = kinds[0]
            self._tell("tell_alike", data=written(model)["told"], first=first, count=len(params))
        else:
            self._tell_submitted(kinds, first)

    def _tell_submitted(self, kinds: Sequence[Alike], first: int) -> None:
        """In the order of the jobs, as all events are."""
        now = self._now
        told = [
            {
                "at": now,
                "actor": model.job.submitted_by,
                "kind": "submitted",
                "job_id": first + place,
                "data": written(model)["told"],
            }
            for model, params in kinds
            for place in params
        ]
        if len(kinds) > 1:
            told.sort(key=itemgetter("job_id"))
        self._many("add_events", told)

    def add_events(self, events: Iterable[Event], *, actor: str) -> None:
        rows = (
            {
                "at": self._now,
                "actor": event.actor or actor,
                "kind": event.kind,
                "job_id": event.job_id,
                "data": _data(event.data) if event.data else "{}",
            }
            for event in events
        )
        self._many("add_events", rows)


def all_of(kind: Alike, at: int | None) -> dict[str, Any]:
    """The parameters of `add_alike_at_once`; `at` is None where the database tells the time."""
    model, params = kind
    return {
        **written(model),
        "at": at,
        "gap": POSITION_GAP,
        "given_place": list(params),
        "given_params": [dump(each) for each in params.values()],
    }


def _data(data: Mapping[str, Any]) -> str:
    for value in data.values():
        if type(value) not in _SIMPLE:  # True and 1 are equal, and not the same
            return dump(data)
    return dump_pairs(tuple(data.items()))
