"""Deliveries as a courier makes them, without an event and a courier."""

from headway.store.records import NewDelivery
from headway.store.tables.webhooks import receiver_of


def new_delivery(number: int, endpoint: int = 1) -> NewDelivery:
    return NewDelivery(
        id=f"e-{number}-{endpoint}",
        endpoint=endpoint,
        receiver=receiver_of(endpoint),
        url=None,
        type="job.completed",
        seq=number,
        job_id=None,
        chain=None,
        body='{"n":1}',
    )
