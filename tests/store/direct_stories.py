"""What may happen to direct calls, beside all that happens to jobs."""

from hypothesis import note
from hypothesis import strategies as st
from small_model import SECOND, Call
from storytelling import Told, act

from headway.reserving import granted, stand_in_line

A_NUMBER = st.integers(0, 1 << 16)


class Calls(Told):
    """Callers outside of the queue, and commands inside of running jobs."""

    @act(
        4,
        which=A_NUMBER,
        inside=st.sampled_from((None, None, "job", "call")),
        seconds=st.sampled_from((3, 1000)),
        tight=st.sampled_from((True, True, False)),
    )
    def call(self, which: int, inside: str | None, seconds: int, tight: bool) -> None:
        """Somebody asks for a slot, and has it at once or, most often, stands in line."""
        if tight and self.model.occupied():
            self.steer(self.model.occupied())
        jobs = [each.job_id for each in self.live]
        calls = [-call.id for call in self.model.calls.values() if call.granted]
        makers = {"job": jobs, "call": calls}.get(inside or "", [])
        maker = makers[which % len(makers)] if makers else None
        until = self.clock.now() + seconds * SECOND
        with self.store.write() as tx:
            made = stand_in_line(self.client, tx, "", (), maker)
            tx.renew_reservation(made.token, until)
        self.model.calls[made.id] = Call(made.id, maker, until)
        note(f"{made.name} asks, inside {maker}")
        self._look_at(made.id)

    @act(2, when=lambda self: self.model.in_line(), which=A_NUMBER)
    def look_for_a_slot(self, which: int) -> None:
        """Those in line look when they like, not in their order."""
        line = self.model.in_line()
        self._look_at(line[which % len(line)].id)

    def _look_at(self, number: int) -> None:
        with self.store.write() as tx:
            asking = next(each for each in tx.reservations() if each.id == number)
            after = granted(self.client, tx, asking)
        call = self.model.calls[number]
        slots = self.model.slot_for_call(call)
        note(f"{asking.name} has {None if after.waits else after.inside}: {slots}")
        assert after.waits is not bool(slots)
        if slots:
            assert after.inside in slots
            call.granted, call.inside = True, after.inside

    @act(2, when=lambda self: self.model.calls, which=A_NUMBER)
    def hang_up(self, which: int) -> None:
        number = sorted(self.model.calls)[which % len(self.model.calls)]
        with self.store.write() as tx:
            assert tx.release(next(each for each in tx.reservations() if each.id == number))
        del self.model.calls[number]
