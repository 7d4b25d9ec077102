"""Several hosts on one store: what makes another host is another id, and each home has its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import Bench
from headway.core.model import Claim

Hosts = Callable[..., Any]


def mine(bench: Bench) -> list[Claim]:
    with bench.store.read() as tx:
        return [each for each in tx.claims.live() if each.host_id == bench.client.context.host.id]


@contextmanager
def several(folder: Path, url: str) -> Iterator[Hosts]:
    made: list[Bench] = []

    def make(*names: str, **options: Any) -> tuple[Bench, ...]:
        for name in names or ("here", "there"):
            (folder / name).mkdir()
            made.append(Bench(folder / name, store_url=url, **options))
        return tuple(made)

    yield make
    for bench in made:
        bench.client.pause("the test is over")
        for other in made:  # what runs is ended by the host that runs it
            with other.store.read() as tx:
                running = [claim.job_id for claim in tx.claims.live()]
            if running:
                other.client.cancel(running)
    for bench in made:
        bench.engine.recover()  # also what no engine of its own has started, as one pass does
        bench.until(lambda bench=bench: not mine(bench), "its jobs to end")  # type: ignore[misc]
    for bench in made:
        bench.engine.close()
        bench.end_hosts()
        bench.store.close()
