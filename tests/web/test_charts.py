"""Charts and timelines are whole XML, harmless and right."""

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from headway.base.clock import SECOND
from headway.base.units import show_instant
from headway.schedules.timing.zones import zone_of
from headway.web.pages import charts
from headway.web.pages.charts import ChartSeries, StripRun, in_number, in_seconds
from headway.web.pages.timeline import MOST_ROWS, MOST_TICKS, ShownTime, ticks, timeline

HOSTILE = "<script>alert(1)</script>\"'&\u202e\x1b]8;;x\x07" + "x" * 200
NOON = 1_767_268_800  # 2026-01-01T12:00Z
LABELS = ["11:58", "11:59", "12:00"]


def parsed(markup: str) -> ElementTree.Element:
    """Well-formed, and with nothing that the policy of pages refuses."""
    tree = ElementTree.fromstring(f"<page>{markup}</page>")
    for each in tree.iter():
        assert each.tag not in ("style", "script", "foreignObject")
        assert not [name for name in each.attrib if name == "style" or name.startswith("on")]
    return tree


def all_of(tree: ElementTree.Element, tag: str, look: str = "") -> list[ElementTree.Element]:
    return [each for each in tree.iter(tag) if look in each.get("class", "").split() or not look]


def cells(tree: ElementTree.Element) -> list[list[str]]:
    return [["".join(cell.itertext()) for cell in row] for row in tree.iter("tr")]


def number(text: str | None) -> float:
    return float((text or "").rstrip("%"))


def stacked() -> list[ChartSeries]:
    return [
        ChartSeries("succeeded", [4, None, 1], "good"),
        ChartSeries("failed", [4, None, 0], "bad"),
    ]


def test_bars_stand_on_each_other_and_are_as_high_as_their_numbers() -> None:
    tree = parsed(charts.bars("Ended", LABELS, stacked()))
    good, bad = all_of(tree, "rect", "good"), all_of(tree, "rect", "bad")
    assert (len(good), len(bad)) == (2, 1)
    first, second = (number(each.get("height")) for each in good)
    assert first == number(bad[0].get("height")) == pytest.approx(4 * second)
    assert number(bad[0].get("y")) + number(bad[0].get("height")) == number(good[0].get("y"))
    assert number(good[0].get("x")) < 100 / 3 and number(good[1].get("x")) > 200 / 3
    titles = [each.text for each in all_of(tree, "title")]
    assert titles == ["Ended", "11:58: 4 succeeded, 4 failed", "12:00: 1 succeeded"]
    assert cells(tree) == [
        ["time", "succeeded", "failed"],
        ["11:58", "4", "4"],
        ["12:00", "1", "0"],
    ]
    assert "most 8" in "".join(tree.itertext())


def test_what_a_colour_says_a_pattern_says_as_well() -> None:
    tree = parsed(charts.bars("Ended", LABELS, stacked()))
    patterns = {each.get("id") for each in all_of(tree, "pattern")}
    (hatched,) = (each.get("fill") for each in all_of(tree, "rect") if each.get("fill"))
    assert hatched is not None and hatched.removeprefix("url(#bad").startswith("-")
    assert hatched[5:-1] in patterns
    other = parsed(charts.bars("Another", LABELS, stacked()))
    assert patterns.isdisjoint(each.get("id") for each in all_of(other, "pattern"))


def test_a_line_has_gaps_where_nothing_is_known() -> None:
    series = [ChartSeries("p50", [1.0, None, 2.0, 4.0], "line-1")]
    tree = parsed(charts.lines("Wait", ["a", "b", "c", "d"], series))
    lone, line = (each.get("points", "").split() for each in all_of(tree, "polyline"))
    assert lone[0] == lone[1], "a single point is seen"
    heights = [float(each.split(",")[1]) for each in line]
    assert heights == [48.0, 2.0]
    assert [row[1] for row in cells(tree)] == ["p50", "1s", "2s", "4s"]


def strip_of(*states: str) -> ElementTree.Element:
    runs = [
        StripRun(each, f"job-{at}", f"/ui/jobs/job-{at}", 10.0 * (at + 1), "noon")
        for at, each in enumerate(states)
    ]
    return parsed(charts.strip("Last runs", runs))


def test_a_strip_shows_how_each_run_ended_and_how_long_it_took() -> None:
    tree = strip_of("succeeded", "failed", "running", "cancelled", "succeeded")
    assert next(iter(tree.iter("title"))).text == (
        "Last runs: 2 succeeded, 1 failed, 1 running, 1 cancelled"
    )
    looks = [each.get("class") for each in all_of(tree, "rect", "bar")]
    assert looks == ["bar good", "bar bad", "bar busy", "bar other", "bar good"]
    assert len(all_of(tree, "path", "mark")) == 1, "a cross on what failed"
    heights = [number(each.get("height")) for each in all_of(tree, "rect", "bar")]
    assert heights[4] == pytest.approx(2 * heights[1] + heights[0] / heights[0] * 4.4, abs=1)
    links = [each.get("href") for each in tree.iter("a")]
    assert links == [f"/ui/jobs/job-{at}" for at in range(5)]
    assert cells(tree)[2] == ["job-1", "failed", "20s", "noon"]


def test_a_sparkline_says_its_last_and_its_most() -> None:
    tree = parsed(charts.sparkline("Ended per minute", [1, None, 9, 3]))
    assert next(iter(tree.iter("title"))).text == "Ended per minute: 3 now, 9 at most"
    assert len(all_of(tree, "polyline")) == 2


@pytest.mark.parametrize(
    "markup",
    [
        charts.bars("Ended", [], [ChartSeries("a", [], "good")]),
        charts.bars("Ended", LABELS, [ChartSeries("a", [0, 0, None], "good")]),
        charts.lines("Wait", LABELS, [ChartSeries("a", [None] * 3, "line-1")]),
        charts.strip("Last runs", []),
        charts.sparkline("Ended", []),
        timeline("Run", {"rows": [], "truncated": False}, now=NOON * SECOND),
    ],
)
def test_where_nothing_is_there_it_says_so(markup: str) -> None:
    tree = parsed(markup)
    assert "nothing yet" in "".join(tree.itertext())
    assert not all_of(tree, "rect", "bar") and not all_of(tree, "polyline")[1:]


def test_texts_of_others_do_no_harm() -> None:
    series = [ChartSeries(HOSTILE, [1, 2, 3], "good")]
    for markup in (
        charts.bars(HOSTILE, [HOSTILE] * 3, series),
        charts.lines(HOSTILE, [HOSTILE] * 3, series),
        charts.strip(HOSTILE, [StripRun(HOSTILE, HOSTILE, f"/ui/{HOSTILE}", 1.0, HOSTILE)]),
        charts.sparkline(HOSTILE, [1.0]),
        timeline(HOSTILE, document(1, name=HOSTILE, on=HOSTILE, state=HOSTILE), now=NOON * SECOND),
    ):
        words = "".join(parsed(markup).itertext())
        assert "<script>" in words and "<script>" not in markup
        assert "\u202e" not in words and "\x1b" not in words


def test_a_long_name_is_cut() -> None:
    tree = parsed(charts.sparkline("n" * 200, [1.0]))
    title = next(iter(tree.iter("title"))).text or ""
    assert len(title) < 90 and "..." in title


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0.0, "0s"), (0.004, "0s"), (0.25, "0.25s"), (3.14, "3.1s"), (9.96, "10s"), (59.6, "1m")),
        *((60, "1m"), (125, "2m 5s"), (3600, "1h"), (7320, "2h 2m"), (90_000, "1d 1h")),
    ],
)
def test_seconds_are_said_as_people_say_them(seconds: float, text: str) -> None:
    assert in_seconds(seconds) == text


def test_numbers_have_no_rest_of_zeros() -> None:
    assert [*map(in_number, (0, 3.0, 1.25, 0.1, 1234.5, 1_000_000, 0.004))] == [
        *("0", "3", "1.25", "0.1", "1,234", "1,000,000", "under 0.01")
    ]


# -- timelines -------------------------------------------------------------------------------------


def instant(seconds: float) -> str | None:
    return show_instant(int((NOON + seconds) * SECOND))


def document(
    count: int, *, name: str = "build", on: str = "lock repo", state: str = "succeeded"
) -> dict[str, Any]:
    """Each waits for a minute and runs for as many seconds as its number, and one more."""
    rows = []
    for at in range(count):
        job = f"job-{at}"
        rows.append(
            {
                "name": f"{name}-{at}" if count > 1 else name,
                "job": job,
                "state": state,
                "intervals": [
                    {
                        "job": job,
                        "kind": "waiting",
                        "on": on,
                        "state": state,
                        "since": instant(0),
                        "until": instant(60),
                    },
                    {
                        "job": job,
                        "kind": "running",
                        "on": None,
                        "state": state,
                        "since": instant(60),
                        "until": instant(61 + at),
                    },
                ],
            }
        )
    return {"of": "wf-1", "rows": rows, "truncated": False}


def drawn(found: dict[str, Any], zone: str = "UTC", now: float = 240) -> ElementTree.Element:
    return parsed(timeline("Run", found, zone=zone, now=int((NOON + now) * SECOND)))


def test_a_wait_is_thin_a_run_is_thick_and_both_are_where_they_were() -> None:
    tree = drawn(document(60))
    waits, runs = all_of(tree, "rect", "wait"), all_of(tree, "rect", "good")
    assert len(waits) == len(runs) == 60
    assert number(waits[0].get("height")) < number(runs[0].get("height"))
    # From 0 to 120 s.
    assert (number(waits[7].get("x")), number(waits[7].get("width"))) == (0.0, 50.0)
    assert (number(runs[59].get("x")), number(runs[59].get("width"))) == (50.0, 50.0)
    assert number(runs[29].get("width")) == 25.0
    tops = [number(each.get("y")) for each in runs]
    assert tops == sorted(set(tops)), "a row for each"
    assert waits[3][0].text == "build-3, job-3: waited 1m from 12:00:00: lock repo"
    assert runs[3][0].text == "build-3, job-3: ran 4s from 12:01:00, succeeded"
    links = [each.get("href") for each in tree.iter("ol") for each in each.iter("a")]
    assert links == [f"/ui/jobs/job-{at}" for at in range(60)]
    assert cells(tree)[1:3] == [
        ["build-0", "waiting", "12:00:00", "12:01:00", "lock repo"],
        ["build-0", "succeeded", "12:01:00", "12:01:01", ""],
    ]


def test_what_goes_on_ends_now() -> None:
    found = document(1, state="running")
    found["rows"][0]["intervals"][1]["until"] = None
    tree = drawn(found, now=120)
    (run,) = all_of(tree, "rect", "busy")
    assert (number(run.get("x")), number(run.get("width"))) == (50.0, 50.0)
    assert run[0].text == "build, job-0: runs for 1m from 12:01:00"
    assert cells(tree)[2][3] == ""


@pytest.mark.parametrize("ran", [True, False])
def test_what_went_wrong_has_a_cross(ran: bool) -> None:
    found = document(1, state="failed" if ran else "blocked_by_dependency")
    if not ran:
        del found["rows"][0]["intervals"][1]
    assert len(all_of(drawn(found), "path", "cross")) == 1
    assert not all_of(drawn(document(1)), "path", "cross")


def test_many_rows_are_folded_but_not_what_went_wrong() -> None:
    found = document(3000)
    found["rows"][5]["state"] = "failed"
    tree = drawn(found)
    names = ["".join(each.itertext()) for each in tree.iter("li")]
    assert len(names) == MOST_ROWS + 1
    assert names[1:3] == ["build-5", "build-2802"], "what failed, and what took longest"
    assert names[-1] == "2,801 more: 2,801 succeeded"
    assert len(drawn(document(MOST_ROWS)).findall(".//li")) == MOST_ROWS + 1
    assert "3,000 rows" in (next(iter(tree.iter("title"))).text or "")


def test_a_short_failure_is_drawn_before_hundreds_that_wait_for_long() -> None:
    found = document(400)
    for row in found["rows"]:
        row["state"] = "queued"
    found["rows"][5]["state"], found["rows"][6]["state"] = "failed", "running"
    names = ["".join(each.itertext()) for each in drawn(found).iter("li")]
    assert names[1:4] == ["build-5", "build-6", "build-203"]
    assert names[-1] == "201 more: 201 queued"


def test_what_is_left_out_is_said() -> None:
    found = {**document(1), "truncated": True}
    assert "too large" in "".join(drawn(found).itertext())
    assert "too large" not in "".join(drawn(document(1)).itertext())


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu"])
@pytest.mark.parametrize("length", [1, 7, 59, 60, 600, 5_000, 86_400, 200_000, 3e6, 4e7])
def test_ticks_are_few_and_at_round_times_of_the_zone(zone: str, length: float) -> None:
    clock = zone_of(zone)
    begin = NOON + 17.5
    found = ticks(ShownTime(begin, begin + length), clock)
    assert (length < 2 or found) and len(found) <= MOST_TICKS + 1
    assert all(begin <= each.at <= begin + length for each in found)
    shown = [each.words for each in found]
    assert length == 200_000 or len({*shown}) == len(found)
    form = r"\d\d-\d\d" if length > 500_000 else r"\d\d:\d\d(:\d\d)?|01-0[234]"
    assert all(re.fullmatch(form, each) for each in shown)
    if 600 <= length < 500_000:
        assert all((each.at + clock.offset(int(each.at))) % 60 == 0 for each in found)


def test_a_clock_that_is_changed_meanwhile_shows_its_own_time() -> None:
    """In Berlin the clock goes from 2 to 3 on 2026-03-29, at 01:00 UTC."""
    change = 1_774_746_000
    found = ticks(ShownTime(change - 7200, change + 7200), zone_of("Europe/Berlin"))
    assert [(each.at - change, each.words) for each in found] == [
        *((-7200, "03-29"), (-3600, "01:00"), (0, "03:00"), (3600, "04:00"), (7200, "05:00"))
    ]
