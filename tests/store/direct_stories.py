"""What direct callers do beside the queue."""

from direct_model import EXPIRY, Call
from hypothesis import note
from hypothesis import strategies as st
from queue_stories import QueueStories
from stories import RESOURCES
from storytelling import A_NUMBER, act

from headway.consequences import expire_reservations
from headway.reserving import Asking, keys_taken


class DirectStories(QueueStories):
    """All that may happen to a store: to its jobs, to its queue, and beside it."""

    @act(
        3,
        resources=st.lists(st.sampled_from(RESOURCES), max_size=2, unique=True),
        target=st.sampled_from((None, None, "t")),
        inside=st.none() | A_NUMBER,
    )
    def call(self, resources: list[str], target: str | None, inside: int | None) -> None:
        """From outside, or from inside of a running job."""
        keys = keys_taken(None, resources, target)
        claim = self.live[inside % len(self.live)] if inside is not None and self.live else None
        if claim is not None:
            self._record_start(claim)
        made = self.model.call({*keys}, claim.job_id if claim else None)
        with self.inside(claim):
            asking = Asking(self.caller, "because", keys)
        asking.ask()
        note(f"direct-{made.id} inside of {made.inside}: {keys}, granted {made.granted}")
        self.asking[made.id] = asking
        assert asking.reservation.id == made.id
        assert asking.reservation.waits is not made.granted

    def _call(self, which: int) -> Call:
        ids = sorted(self.model.calls)
        return self.model.calls[ids[which % len(ids)]]

    @act(6, when=lambda self: self.model.in_line(), which=A_NUMBER)
    def look(self, which: int) -> None:
        """A caller in line looks whether it is its turn."""
        waiting = self.model.in_line()
        call = waiting[which % len(waiting)]
        asking = self.asking[call.id]
        asking.look()
        note(f"direct-{call.id} looks")
        assert asking.reservation.waits is not self.model.look(call)

    @act(2, when=lambda self: self.model.calls, which=A_NUMBER)
    def renew(self, which: int) -> None:
        call = self._call(which)
        assert self.asking[call.id].renew() == (True, EXPIRY)
        call.until = self.clock.now() + EXPIRY

    @act(5, when=lambda self: self.model.calls, which=A_NUMBER)
    def release(self, which: int) -> None:
        """Also one that is still in line."""
        call = self._call(which)
        note(f"direct-{call.id} is over")
        assert self.asking[call.id].release()
        self.model.release(call)
        assert not self.asking[call.id].release(), "it is gone"

    @act(2, when=lambda self: self.model.calls)
    def expire(self) -> None:
        """What nobody has renewed is gone."""
        with self.store.write() as tx:
            expire_reservations(tx, "worker")
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
