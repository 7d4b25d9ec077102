"""A bench with a receiver and a courier, which makes its turns when a test says so."""

import os
from typing import Any

from receiver import Receiver

from harness import Bench, wait_for
from headway.client import Client
from headway.jobs.context import Context
from headway.jobs.part import Part
from headway.store.store import Store
from headway.testing.clock import FakeClock
from headway.webhooks.courier import Courier
from headway.webhooks.nouns import Webhooks
from headway.webhooks.part import WebhooksPart
from ready import open_ready


class Post:
    def __init__(self, bench: Bench, receiver: Receiver) -> None:
        self.bench = bench
        self.receiver = receiver
        self.without_process()
        self._contexts: list[Context] = []
        self.courier = self.new_courier()

    def new_courier(self) -> Courier:
        """With a line of its own to the store, as a process of its own would have."""
        home = self.bench.home
        url = home.store_url or f"sqlite://{home.database}"
        return self.courier_of(open_ready(url, self.bench.clock))

    def courier_of(self, store: Store) -> Courier:
        return Courier(self._context(store), chance=lambda: 0.0)

    def client_of(self, store: Store) -> Client:
        return Client(self._context(store))

    def _context(self, store: Store) -> Context:
        bench = self.bench
        context = Context(
            *(bench.home, bench.config, store, bench.clock), environ=os.environ, actor="courier"
        )
        self._contexts.append(context)
        return context

    def close(self) -> None:
        for each in self._contexts:
            each.close()

    def without_process(self) -> None:
        """The worker's step starts no courier: the test has its own."""
        part: Any = self.bench.engine.part(WebhooksPart)
        part.start = lambda: None
        assert isinstance(part, Part)

    @property
    def webhooks(self) -> Webhooks:
        return self.bench.client.webhooks

    @property
    def clock(self) -> FakeClock:
        assert isinstance(self.bench.clock, FakeClock)
        return self.bench.clock

    def add(self, name: str = "ci", *types: str, **options: Any) -> dict[str, Any]:
        return self.webhooks.add(name, self.receiver.url(f"/{name}"), types=types, **options)

    def run(self, *argv: str, **options: Any) -> int:
        """A job to its end."""
        job = self.bench.submit(*(argv or ("true",)), **options)
        self.bench.until_ended(job)
        return job

    def deliver(self, courier: Courier | None = None) -> None:
        """Turns, until all that is due was sent and written down."""
        courier = courier or self.courier
        idle = 0

        def is_done() -> bool:
            nonlocal idle
            courier.turn()
            idle = 0 if courier.is_busy or courier.is_behind else idle + 1
            return idle > 2

        wait_for(is_done, what="all that is due to be sent")

    def after(self, seconds: float) -> None:
        """Later: what is due by then is sent."""
        self.clock.advance(seconds)
        self.deliver()

    def states(self) -> dict[str, str]:
        return {each["id"]: each["state"] for each in self.webhooks.deliveries(limit=1_000)}

    def the_delivery(self) -> dict[str, Any]:
        (only,) = self.webhooks.deliveries()
        return only

    def events(self, kind: str) -> list[dict[str, Any]]:
        with self.bench.store.read() as tx:
            return [dict(e.data) for e in tx.events.since(0, 100_000) if e.kind == kind]

    def cursor(self) -> int:
        with self.bench.store.read() as tx:
            return tx.webhooks.cursor()
