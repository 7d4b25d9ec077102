"""What direct callers do beside the queue."""

from direct_model import EXPIRY, Call
from hypothesis import note
from hypothesis import strategies as st
from queue_stories import QueueStories
from stories import RESOURCES
from storytelling import A_NUMBER, act

from headway.core.reservations import Reservation
from headway.jobs.expiry import remove_expired
from headway.jobs.reservations import granted, keys_taken, stand_in_line, why_not
from headway.store.transaction import ReadTx


class DirectStories(QueueStories):
    """All that may happen to a store: to its jobs, to its queue, and beside it."""

    @act(
        3,
        resources=st.lists(st.sampled_from(RESOURCES), max_size=2, unique=True),
        target=st.sampled_from((None, None, "t")),
        inside=st.none() | A_NUMBER,
        tight=st.booleans(),
    )
    def call(
        self, resources: list[str], target: str | None, inside: int | None, tight: bool
    ) -> None:
        """From outside, or from inside of a running job; it has its slot at once or, most often,
        stands in line."""
        if tight and self.model.occupied():
            self.steer(self.model.occupied())
        keys = keys_taken(None, resources, target)
        job = self.live[inside % len(self.live)].job_id if inside and self.live else None
        with self.store.write() as tx:
            made = stand_in_line(self.client.context, tx, "because", keys, job)
        note(f"{made.name} inside of {job}: {keys}")
        call = self.model.call({*keys}, job)
        assert call.id == made.id
        self._look_for_slot(call)

    def _call(self, which: int) -> Call:
        ids = sorted(self.model.calls)
        return self.model.calls[ids[which % len(ids)]]

    @act(6, when=lambda self: self.model.in_line(), which=A_NUMBER)
    def look_for_slot(self, which: int) -> None:
        """Those in line look when they like, not in their order."""
        line = self.model.in_line()
        self._look_for_slot(line[which % len(line)])

    def _look_for_slot(self, call: Call) -> None:
        places = self.model.place_of(call)
        with self.store.write() as tx:
            asking = _reservation(tx, call)
            why = why_not(self.client.context, tx, asking)
            after = granted(self.client.context, tx, asking)
        note(f"{asking.name}: {why or after.inside}")
        assert (why is None) == (not after.waits) == bool(places)
        assert why or after.inside in places
        if why is None:
            call.granted, call.inside = True, after.inside

    @act(2, when=lambda self: self.model.calls, which=A_NUMBER)
    def renew(self, which: int) -> None:
        call = self._call(which)
        call.until = self.clock.now() + EXPIRY
        with self.store.write() as tx:
            assert tx.reservations.renew(_reservation(tx, call).token, call.until)

    @act(4, when=lambda self: self.model.calls, which=A_NUMBER)
    def hang_up(self, which: int) -> None:
        """Also one that is still in line."""
        call = self._call(which)
        note(f"direct-{call.id} is over")
        with self.store.write() as tx:
            gone = _reservation(tx, call)
            assert tx.reservations.release(gone) and not tx.reservations.release(gone)
            assert not tx.reservations.renew(gone.token, self.clock.now())
        self.model.release(call)

    @act(2, when=lambda self: self.model.calls)
    def expire(self) -> None:
        """What nobody has renewed is gone, as soon as a worker looks for it."""
        with self.store.write() as tx:
            remove_expired(tx, tx.reservations.all(), actor="worker")
        self.model.expire()

    @act(
        when=lambda self: self.model.granted() and self.waiting(),
        which=A_NUMBER,
        awaited=A_NUMBER,
    )
    def lend_from_call(self, which: int, awaited: int) -> None:
        """A direct call waits for a job, and lends it what it holds."""
        granted, waiting = self.model.granted(), self.waiting()
        call, job = granted[which % len(granted)], waiting[awaited % len(waiting)]
        self._lend(-call.id, job.chain, 1000)


def _reservation(tx: ReadTx, call: Call) -> Reservation:
    return next(each for each in tx.reservations.all() if each.id == call.id)
