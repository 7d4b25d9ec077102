"""The goals of webhooks."""

from goals import Goal, Sense

WEBHOOK_GOALS = (
    Goal(
        "10,000 deliveries to a receiver on this machine",
        Sense.AT_LEAST,
        200,
        "/s",
        lambda figures: figures["webhooks.per_second"],
        "{webhooks.per_second:.0f}/s, {webhooks.cpu_ms:.2f} ms CPU each",
    ),
    Goal(
        "commands drained while each end is delivered, against without endpoints",
        Sense.AT_LEAST,
        0.9,
        "x",
        lambda figures: figures["webhooks.commands.with"] / figures["webhooks.commands.alone"],
        "{webhooks.commands.with:.0f}/s",
        "alone {webhooks.commands.alone:.0f}/s",
    ),
    Goal(
        "function calls drained while each end is delivered, against without endpoints",
        Sense.AT_LEAST,
        0.9,
        "x",
        lambda figures: figures["webhooks.calls.with"] / figures["webhooks.calls.alone"],
        "{webhooks.calls.with:.0f}/s",
        "alone {webhooks.calls.alone:.0f}/s",
    ),
)
