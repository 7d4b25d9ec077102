"""Which events become which types, and what follows from each reply."""

import re
from pathlib import Path

import pytest

from headway.core.states import TERMINAL
from headway.core.webhooks import (
    ALL_TYPES,
    DAY,
    ENDS,
    HOUR,
    SCHEDULES,
    SECOND,
    TYPES,
    Again,
    DeliveryState,
    Endpoint,
    EndpointState,
    GivenUp,
    Health,
    HookReply,
    delivery_id,
    health_after,
    is_wanted,
    judge,
    unknown_types,
)

EVENTS = Path(__file__).parents[2] / "docs" / "events.md"
ACTIVE, PAUSED, DISABLED = EndpointState
NOW = 1_000 * DAY


def endpoint(**changes: object) -> Endpoint:
    usual = Endpoint(
        id=3,
        name="ci",
        url="https://ci.example.org/hook",
        types=("*",),
        schedule="quick",
        state=ACTIVE,
        reason=None,
        since=0,
        fingerprint="sha256:0",
        old_fingerprint=None,
        overlap_until=None,
        holders=frozenset(),
        failures=0,
        failing_since=None,
        held_until=None,
        created_at=0,
        created_by="ada",
        changed_at=0,
    )
    return usual._replace(**changes)  # type: ignore[arg-type]


# -- types -------------------------------------------------------------------------------------


def test_every_kind_of_the_documentation_is_in_the_table_and_no_other() -> None:
    documented = set(re.findall(r"^\| `(\w+)` \|", EVENTS.read_text(), re.M))
    assert len(documented) > 60
    assert set(TYPES) == documented


@pytest.mark.req("E8")
def test_each_way_to_end_is_exactly_one_type_that_says_so() -> None:
    """The kind of an end is the state, so there is one event of it; no other kind has the type."""
    of_ends = {kind for kind, type_ in TYPES.items() if type_ in ENDS}
    assert of_ends == {each.value for each in TERMINAL}


def test_the_types_are_those_of_the_documentation_made_of_the_same_events() -> None:
    page = (EVENTS.parent / "webhooks.md").read_text().split("## Types")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `([a-z]+\.[a-z]+)` \| ([^|]+) \|$", page, re.M)
    documented = {kind: type_ for type_, text in rows for kind in re.findall(r"`([a-z_]+)`", text)}
    assert documented == {kind: type_ for kind, type_ in TYPES.items() if type_ is not None}
    assert [type_ for type_, _ in rows if type_ not in ALL_TYPES] == []


@pytest.mark.parametrize(
    ("type_", "wanted", "is_so"),
    [
        ("job.failed", ["job.failed"], True),
        ("job.failed", ["job.completed"], False),
        ("job.failed", ["*"], True),
        ("job.failed", ["job.*"], True),
        ("jobs.failed", ["job.*"], False),
        ("group.ended", ["job.*", "group.ended"], True),
        ("job.failed", [], False),
    ],
)
def test_a_type_is_wanted_by_name_by_family_or_with_all(
    type_: str, wanted: list[str], is_so: bool
) -> None:
    assert is_wanted(type_, wanted) is is_so


def test_a_wish_that_fits_no_type_is_found() -> None:
    assert unknown_types(["job.failed", "job.*", "*", "job.fail", "j.*"]) == ["job.fail", "j.*"]


def test_an_id_has_no_full_stop_and_is_another_for_each_receiver() -> None:
    ids = {
        delivery_id("9f3c", 7, 1, None, 0),
        delivery_id("9f3c", 7, 2, None, 0),
        delivery_id("9f3c", 7, 0, 5, 0),
        delivery_id("9f3c", 7, 0, 5, 1),
        delivery_id("9f3d", 7, 1, None, 0),
        delivery_id("9f3c", 8, 1, None, 0),
    }
    assert len(ids) == 6 and not any("." in each for each in ids)
    assert delivery_id("9f3c", 1812, 3, 24, 0) == "9f3c-1812-3"


# -- replies -----------------------------------------------------------------------------------

QUICK = (30 * SECOND, 60 * SECOND, 120 * SECOND)


@pytest.mark.req("D15")
@pytest.mark.parametrize(  # fault F9, fault F2
    ("reply", "tries", "schedule", "then"),
    [
        (HookReply(200), 1, "quick", DeliveryState.DELIVERED),
        (HookReply(204), 4, "quick", DeliveryState.DELIVERED),
        (HookReply(500, "500"), 1, "quick", Again(QUICK[0])),
        (HookReply(500, "500"), 2, "quick", Again(QUICK[1])),
        (HookReply(500, "500"), 3, "quick", Again(QUICK[2])),
        (HookReply(500, "500"), 4, "quick", GivenUp()),
        (HookReply(302, "302"), 1, "quick", Again(QUICK[0])),
        (HookReply(None, "it took too long"), 1, "quick", Again(QUICK[0])),
        (HookReply(200, "cut off"), 1, "quick", Again(QUICK[0])),
        (HookReply(410, "410"), 1, "quick", GivenUp(gone=True)),
        (HookReply(410, "410"), 4, "quick", GivenUp(gone=True)),
        (HookReply(429, "429", 7 * SECOND), 1, "quick", Again(7 * SECOND, all_wait=True)),
        (HookReply(503, "503", 3 * DAY), 1, "quick", Again(DAY, all_wait=True)),
        (HookReply(503, "503", 7 * SECOND), 4, "quick", GivenUp()),
        (HookReply(503, "503"), 1, "quick", Again(QUICK[0])),
        (HookReply(500, "500", 7 * SECOND), 1, "quick", Again(QUICK[0])),
        (HookReply(500, "500"), 9, "standard", Again(24 * HOUR)),
        (HookReply(500, "500"), 10, "standard", GivenUp()),
    ],
)
def test_what_follows_from_a_reply(
    reply: HookReply, tries: int, schedule: str, then: DeliveryState | Again | GivenUp
) -> None:
    assert judge(reply, tries=tries, schedule=schedule, jitter=0.0) == then


def test_the_standard_schedule_is_ten_tries_in_75_hours() -> None:
    pauses = SCHEDULES["standard"]
    assert len(pauses) + 1 == 10
    assert 75 * HOUR < sum(pauses) < 76 * HOUR


def test_jitter_makes_a_pause_longer_by_a_fifth_at_most() -> None:
    assert judge(HookReply(500, "x"), tries=1, schedule="quick", jitter=1.0) == Again(36 * SECOND)


# -- the health of an endpoint -----------------------------------------------------------------

BAD, GOOD, NO_MORE = HookReply(500, "500"), HookReply(200), HookReply(410, "410")


@pytest.mark.parametrize(
    ("before", "reply", "after"),
    [
        ({}, GOOD, Health(ACTIVE, 0, None, None)),
        ({}, BAD, Health(ACTIVE, 1, NOW, None)),
        ({"failures": 5, "failing_since": 7}, BAD, Health(ACTIVE, 6, 7, None)),
        ({"failures": 5, "failing_since": 7}, GOOD, Health(ACTIVE, 0, None, None)),
        # Twenty in a row, but within less than an hour; an hour, but not so many; both.
        (
            {"failures": 40, "failing_since": NOW - HOUR + 1},
            BAD,
            Health(ACTIVE, 41, NOW - HOUR + 1, None),
        ),
        ({"failures": 18, "failing_since": 7}, BAD, Health(ACTIVE, 19, 7, None)),
        (
            {"failures": 19, "failing_since": NOW - HOUR},
            BAD,
            Health(PAUSED, 20, NOW - HOUR, NOW + HOUR),
        ),
        # One that paused itself has a trial an hour, and goes on with the first that succeeds.
        (
            {"state": PAUSED, "held_until": NOW, "failures": 20, "failing_since": 7},
            BAD,
            Health(PAUSED, 21, 7, NOW + HOUR),
        ),
        (
            {"state": PAUSED, "held_until": NOW, "failures": 20, "failing_since": 7},
            GOOD,
            Health(ACTIVE, 0, None, None),
        ),
        # One that a person paused stays so, whatever was still on its way.
        ({"state": PAUSED}, GOOD, Health(PAUSED, 0, None, None)),
        ({"state": PAUSED}, BAD, Health(PAUSED, 0, None, None)),
        ({"state": DISABLED}, GOOD, Health(DISABLED, 0, None, None)),
        ({}, NO_MORE, Health(DISABLED, 1, NOW, None)),
        # It had asked to be left alone until then; what was on its way changes nothing of that.
        ({"held_until": NOW + 9}, GOOD, Health(ACTIVE, 0, None, NOW + 9)),
    ],
)
def test_the_health_of_an_endpoint(
    before: dict[str, object], reply: HookReply, after: Health
) -> None:
    assert health_after(endpoint(**before), reply, NOW) == after


@pytest.mark.parametrize(
    ("changes", "send_at", "on_trial"),
    [
        ({}, 0, False),
        ({"held_until": 9}, 9, False),
        ({"state": PAUSED}, None, False),
        ({"state": PAUSED, "held_until": 9}, 9, True),
        ({"state": DISABLED, "held_until": 9}, None, False),
    ],
)
def test_when_an_endpoint_may_be_sent_to(
    changes: dict[str, object], send_at: int | None, on_trial: bool
) -> None:
    found = endpoint(**changes)
    assert (found.send_at, found.on_trial) == (send_at, on_trial)
