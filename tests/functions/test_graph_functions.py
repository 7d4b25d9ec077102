"""Functions pass the gates of the graph like any other job."""

from collections.abc import Callable

import pytest
from shop import Shop

from headway.base.errors import InvalidInputError
from headway.core.states import Status
from headway.jobs.approvals import approve

MakeShop = Callable[..., Shop]
TASK = "@app.task\ndef note(word='x'): return word\n"


@pytest.mark.req("V56")
def test_a_function_waits_for_what_another_makes(make_shop: MakeShop) -> None:
    shop = make_shop(TASK)
    shop.bench.client.pause("hold")
    producer = shop.note.submit("made", produces=["custom:report:june"])
    consumer = shop.note.submit("read", needs=["custom:report:june"])
    shop.bench.client.resume()
    shop.ended(producer, consumer)
    first, second = (shop.bench.job(each.job_id) for each in (producer, consumer))
    assert (first.status, second.status) == (Status.SUCCEEDED, Status.SUCCEEDED)
    assert (first.finished_at or 0) <= (second.started_at or 0)


@pytest.mark.req("V66")
def test_a_function_waits_for_a_person(make_shop: MakeShop) -> None:
    shop = make_shop(TASK)
    handle = shop.note.submit(require_approval=True)
    shop.bench.until(lambda: shop.bench.status(handle.job_id) is Status.WAITING_ON_APPROVAL)
    approve(shop.bench.client.context, handle.job_id)
    shop.ended(handle)
    assert handle.result() == "x"


def test_what_is_no_artifact_is_refused(make_shop: MakeShop) -> None:
    shop = make_shop(TASK)
    with pytest.raises(InvalidInputError, match="custom:TYPE:KEY"):
        shop.note.submit(needs=["custom:report"])
    with pytest.raises(InvalidInputError, match="give a list"):
        shop.note.submit(needs="custom:report:june")
