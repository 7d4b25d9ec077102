"""A receiver on this machine, and a bench whose courier is stepped by hand."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from post import Post
from receiver import Receiver

from both_stores import hosts, store_url
from harness import Bench
from headway.base.clock import SystemClock
from headway.testing.clock import FakeClock

__all__ = ["hosts", "store_url"]

ALLOWED = {"webhooks.allow": ("127.0.0.1",)}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


@pytest.fixture
def post(make_bench: Callable[..., Bench], receiver: Receiver) -> Iterator[Post]:
    """With a clock that the test moves, from now on: ends of jobs are by the real one."""
    with closing(
        Post(make_bench(clock=FakeClock(SystemClock().now()), settings=ALLOWED), receiver)
    ) as made:
        yield made


@pytest.fixture
def real_post(make_bench: Callable[..., Bench], receiver: Receiver) -> Iterator[Post]:
    """With the time of day, by which receivers check a signature."""
    with closing(Post(make_bench(settings=ALLOWED), receiver)) as made:
        yield made
