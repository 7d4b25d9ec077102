"""Whatever happens to clocks, workers and a schedule: every slot is told of once, and fires once.

The schedule means every minute, so a small model can name the slots by itself: it counts minutes.
"""

import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from headway.base.clock import SECOND
from headway.base.errors import ConflictError
from headway.base.home import Home
from headway.base.new_home import make_home
from headway.client import Client
from headway.core.fire import SlotOutcome, jitter_of
from headway.jobs.context import Context
from headway.jobs.settings import Config
from headway.schedules.timekeeper import Timekeeper
from keeping import MINUTE, Wall
from ready import open_ready

EXAMPLES = os.environ.get("HEADWAY_EXAMPLES")
NAME = "minutely"


class Slots(RuleBasedStateMachine):
    """`known` are the minutes that must be on record, and `since` is from when on they count."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="headway-slots-"))
        home = Home(str(self.folder / ".headway"))
        make_home(home)
        self.clock = Wall()
        self.store = open_ready(f"sqlite://{home.database}", self.clock)
        self.store.database.execute("pragma synchronous = off", {})  # type: ignore[attr-defined]
        config = Config({"worker.autostart": False})
        self.client = Client(
            Context(home, config, self.store, self.clock, environ={"PATH": "/bin"}, actor="ann")
        )
        self.triggered = 0
        self.known: set[int] = set()
        self.enabled = True
        self.begin_anew()
        self.write_down()

    def teardown(self) -> None:
        self.settle()
        self.client.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- what happens --------------------------------------------------------------------------

    @rule()
    def begin_anew(self) -> None:
        """Another worker, which knows nothing."""
        self.keeper = Timekeeper(self.client.context.home, self.clock, shared=False, actor="worker")

    @rule(
        overlap=st.sampled_from(("skip", "queue", "replace")),
        catch_up=st.sampled_from(("latest", "none")),
        window=st.sampled_from(("5s", "2m", "1h")),
        jitter=st.sampled_from((0, 0, 10, 59)),
    )
    def write_down(
        self, overlap: str = "skip", catch_up: str = "latest", window: str = "1h", jitter: int = 0
    ) -> None:
        said = {"overlap": overlap, "catch_up": catch_up, "window": window}
        self._put(said, jitter)

    @rule(window=st.sampled_from(("5s", "2m", "1h")), jitter=st.sampled_from((0, 59)))
    def write_down_all(self, window: str, jitter: int) -> None:
        self._put({"catch_up": "all", "window": window}, jitter)

    def _put(self, said: dict[str, str], jitter: int) -> None:
        self.client.schedules.add(
            name=NAME,
            cron="* * * * *",
            argv=["true"],
            replace=True,
            enabled=self.enabled,
            jitter=f"{jitter}s",
            **said,
        )
        self.jitter = jitter * SECOND
        self.since = self.clock.now()
        self._forget_what_is_ahead()

    @rule(enabled=st.booleans())
    def switch(self, enabled: bool) -> None:
        verb = self.client.schedules.enable if enabled else self.client.schedules.disable
        if verb(NAME):
            self.since = self.clock.now()
            self._forget_what_is_ahead()
        self.enabled = enabled

    @rule(seconds=st.sampled_from((1, 30, 60, 61, 200, 5000)))
    def let_time_pass(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(
        seconds=st.sampled_from((60, 61, 60, 125)),
        fate=st.sampled_from(("works", "fails", "dies")),
    )
    def work(self, seconds: int, fate: str) -> None:
        """A worker looks in time; or its work is not stored, and it goes on, or dies of that."""
        self.clock.advance(seconds)
        if fate != "works":
            self._step_in_vain()
        if fate == "dies":
            self.begin_anew()
        self.settle()

    def _step_in_vain(self) -> None:
        try:
            with self.store.write() as tx:
                self.keeper.step(tx)
                raise InterruptedError
        except InterruptedError:
            pass

    @rule(
        minutes=st.sampled_from((-600, -61, -3, -1, 2, 61, 600)),
        seconds=st.integers(0, 59),
        in_vain=st.booleans(),
    )
    def jump(self, minutes: int, seconds: int, in_vain: bool) -> None:
        self.settle()
        self.clock.jump(minutes * MINUTE + seconds * SECOND)
        if minutes < 0 and self.enabled:
            self.since = min(self.since, self.clock.now())
            self._forget_what_is_ahead()
        if in_vain:
            self._step_in_vain()
        self.settle()

    def _forget_what_is_ahead(self) -> None:
        """What was only skipped, and comes again."""
        now, fired = self.clock.now(), self._fired()
        self.known = {each for each in self.known if each <= now or each in fired}

    @precondition(lambda self: self._active())
    @rule()
    def end_a_job(self) -> None:
        self.client.cancel([self._active()[0]])

    @rule()
    def trigger(self) -> None:
        try:
            self.client.schedules.trigger(NAME)
            self.triggered += 1
        except ConflictError:
            assert self._active()

    # -- what must be so -----------------------------------------------------------------------

    @rule()
    def settle(self) -> None:
        """A worker works until nothing is due. Then every minute that has passed is on record."""
        more = True
        while more:
            with self.store.write() as tx:
                more = self.keeper.step(tx) or 0 < tx.settings.marks()["next_fire_at"] <= tx.now()
            self.keeper.committed()
        if self.enabled:
            now = self.clock.now()
            passed = range((self.since // MINUTE + 1) * MINUTE, now + 1, MINUTE)
            self.known |= {each for each in passed if each + self._delay(each) <= now}
        told = Counter(self._told())
        twice = [each for each, count in told.items() if count > 1]
        assert not twice, f"told of twice: {twice}"
        assert told.keys() == self.known, f"{sorted(told.keys() ^ self.known)}"
        fired = self._fired()
        assert len(set(fired.values())) == len(fired), "each slot has a job of its own"
        with self.store.read() as tx:
            made = tx.settings.marks()["next_job_id"] - 1
        assert made == len(fired) + self.triggered, "and no job is of none"

    def _delay(self, slot: int) -> int:
        return jitter_of(1, slot, self.jitter)

    def _told(self) -> list[int]:
        with self.store.read() as tx:
            rows = tx.schedules.firings(1, 10_000)
        note(str([(row.outcome.value, row.slots) for row in rows][:5]))
        for row in rows:
            assert row.slots == (row.last_slot - row.slot) // MINUTE + 1
        return [slot for row in rows for slot in range(row.slot, row.last_slot + 1, MINUTE)]

    def _fired(self) -> dict[int, int | None]:
        with self.store.read() as tx:
            rows = tx.schedules.firings(1, 10_000)
        return {row.slot: row.job_id for row in rows if row.outcome is SlotOutcome.FIRED}

    def _active(self) -> list[int]:
        with self.store.read() as tx:
            return [job.id for job in tx.jobs.active()]


def test_every_slot_is_told_of_once_whatever_happens() -> None:  # fault E5, E7
    run_state_machine_as_test(
        Slots,
        settings=settings(
            max_examples=int(EXAMPLES or 60),
            stateful_step_count=20,
            derandomize=EXAMPLES is None,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
