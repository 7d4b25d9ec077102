"""When each job of a run, a group or a graph waited, on what, and ran, as bars over time. Pure.

It is drawn as `charts` draws: places in percent, no style of its own. The names stand beside the
picture as links, one line for each row. A wait is a thin bar and a run a thick one, with the reason
as its tooltip and in the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from headway.base.clock import SECOND
from headway.base.units import parse_instant, show_instant
from headway.schedules.timing.zones import Zone, zone_of
from headway.web.pages.charts import LOOKS, NOTHING_YET, OTHER, LinkedText, in_seconds, said, table

MOST_ROWS = 200
MOST_TICKS = 6
ROW = 24  # the height of a row, as in the style sheet
HEAD = 24
DAY = 86_400
STEPS = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10_800, 21_600, 43_200, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY),
)
LONGEST_REASON = 160
GONE_WELL = frozenset({"succeeded", "skipped"})


class ShownTime(NamedTuple):
    """The time that is shown, in seconds; as long as a second at least."""

    begin: float
    end: float

    def share(self, at: float) -> float:
        """Where an instant is, in percent of the width."""
        return 100 * (min(max(at, self.begin), self.end) - self.begin) / (self.end - self.begin)


class TimeTick(NamedTuple):
    at: float
    words: str


def timeline(title: str, document: Mapping[str, Any], *, zone: str = "UTC", now: int) -> str:
    """The document of `client.statistics.timeline_of_...`; `now`, in µs, is where what goes on
    ends. Of many rows those that went well and took the shortest time are folded into one."""
    rows = document["rows"]
    if not rows:
        return f'<p class="most">{said(title)}: {NOTHING_YET}</p>'
    clock = zone_of(zone)
    stretch = _stretch(rows, now)
    drawn, folded = _folded(rows, stretch)
    height = HEAD + ROW * (len(drawn) + bool(folded))
    marks = ticks(stretch, clock)
    lines = "".join(_line(each, stretch) for each in marks)
    words = "".join(_words(each, stretch, place % 2) for place, each in enumerate(marks))
    bars = "".join(_bars(row, place, stretch, clock) for place, row in enumerate(drawn))
    names = "".join(_name(row) for row in drawn)
    if folded:
        bars += _fold(folded, len(drawn), stretch)
        names += f"<li>{len(folded):,} more: {said(_counted(folded), LONGEST_REASON)}</li>"
    summary = f"{len(rows):,} rows: {_counted(rows)}"
    picture = (
        f'<svg role="img" width="100%" height="{height}">'
        f"<title>{said(title)}: {said(summary, LONGEST_REASON)}</title>"
        f"{lines}{words}{bars}</svg>"
    )
    more = _left_out(document)
    return (
        f'<figure class="timeline"><ol><li class="ends">{_zone(clock)}</li>{names}</ol>{picture}'
        f'<div class="after">{_legend()}{more}{_table(title, drawn, clock, stretch)}</div></figure>'
    )


def _stretch(rows: Sequence[Mapping[str, Any]], now: int) -> ShownTime:
    spans = [
        (
            _seconds(each["since"]),
            now / SECOND if each["until"] is None else _seconds(each["until"]),
        )
        for row in rows
        for each in row["intervals"]
    ]
    if not spans:
        return ShownTime(now / SECOND - 60, now / SECOND)
    begin, end = min(first for first, _ in spans), max(last for _, last in spans)
    return ShownTime(begin, max(end, begin + 1))


def _seconds(instant: str) -> float:
    return parse_instant(instant, 0) / SECOND


# -- rows --------------------------------------------------------------------------------------


def _folded(
    rows: Sequence[Mapping[str, Any]], stretch: ShownTime
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Those that are drawn, in their order, and the rest. First comes what did not go well, then
    what runs, what waits, and of the others what took longest."""
    if len(rows) <= MOST_ROWS:
        return list(rows), []

    def rank(place: int) -> tuple[int, float]:
        took = sum(
            (stretch.end if each["until"] is None else _seconds(each["until"]))
            - _seconds(each["since"])
            for each in rows[place]["intervals"]
        )
        state = rows[place]["state"]
        look = LOOKS.get(state, OTHER)
        return 3 if state in GONE_WELL else ("bad", "busy", OTHER).index(look), -took

    chosen = set(sorted(range(len(rows)), key=rank)[: MOST_ROWS - 1])
    drawn = [row for place, row in enumerate(rows) if place in chosen]
    return drawn, [row for place, row in enumerate(rows) if place not in chosen]


def _counted(rows: Sequence[Mapping[str, Any]]) -> str:
    counts = Counter(row["state"] for row in rows)
    return ", ".join(
        f"{number:,} {word.replace('_', ' ')}" for word, number in counts.most_common()
    )


def _name(row: Mapping[str, Any]) -> str:
    link = f'<a href="/ui/jobs/{escape(row["job"])}" title="{said(row["name"], 250)}">'
    return f"<li>{link}{said(row['name'])}</a></li>"


def _bars(row: Mapping[str, Any], place: int, stretch: ShownTime, clock: Zone) -> str:
    top = HEAD + ROW * place
    drawn = [f'<line class="row" x1="0" x2="100%" y1="{top + ROW}" y2="{top + ROW}"/>']
    for each in row["intervals"]:
        begin = _seconds(each["since"])
        end = stretch.end if each["until"] is None else _seconds(each["until"])
        left, right = stretch.share(begin), stretch.share(end)
        place_of = f'x="{left:.3f}%" width="{max(right - left, 0.15):.3f}%"'
        summary = (
            f"<title>{_tooltip(row, each, end - begin, _instant(begin, clock, stretch))}</title>"
        )
        if each["kind"] == "waiting":
            drawn.append(
                f'<rect class="wait" {place_of} y="{top + 10}" height="4">{summary}</rect>'
            )
            continue
        look = LOOKS.get(each["state"], OTHER)
        drawn.append(
            f'<rect class="bar {look}" {place_of} y="{top + 4}" height="16" rx="2">{summary}</rect>'
        )
        if look == "bad":
            drawn.append(_cross(right, top))
    last = row["intervals"][-1]["kind"] if row["intervals"] else None
    if last == "waiting" and LOOKS.get(row["state"]) == "bad":  # it ended without a run
        drawn.append(_cross(right, top))
    return "".join(drawn)


def _cross(right: float, top: int) -> str:
    """At the end of what failed, beside its colour."""
    at = f'x="{right:.3f}%" y="{top}" width="1" height="{ROW}" overflow="visible"'
    return f'<svg {at}><path class="cross" d="M3 8l8 8m0-8l-8 8"/></svg>'


def _tooltip(row: Mapping[str, Any], each: Mapping[str, Any], seconds: float, begin: str) -> str:
    """`build, job-7: waited 12s from 14:00:05 for lock repo, held by job-3`."""
    goes_on = each["until"] is None
    if each["kind"] == "waiting":
        verb = "waits" if goes_on else "waited"
        why = f": {each['on']}" if each["on"] else ""
    else:
        verb = "runs for" if goes_on else "ran"
        why = "" if goes_on else f", {each['state']}"
    name = said(f"{row['name']}, {each['job']}")
    return f"{name}: {verb} {in_seconds(seconds)} from {begin}{said(why, LONGEST_REASON)}"


def _fold(rows: Sequence[Mapping[str, Any]], place: int, stretch: ShownTime) -> str:
    """From the first start to the last end of those that are folded."""
    spans = [each for row in rows for each in row["intervals"]]
    if not spans:
        return ""
    left = stretch.share(min(_seconds(each["since"]) for each in spans))
    ends = [stretch.end if each["until"] is None else _seconds(each["until"]) for each in spans]
    width = max(stretch.share(max(ends)) - left, 0.15)
    top = HEAD + ROW * place + 8
    return (
        f'<rect class="bar other" x="{left:.3f}%" width="{width:.3f}%" y="{top}" height="8">'
        f"<title>{len(rows):,} more: {said(_counted(rows), LONGEST_REASON)}</title></rect>"
    )


def _legend() -> str:
    return (
        '<div class="keys"><span class="key wait">waiting, thin</span>'
        '<span class="key good">succeeded</span><span class="key bad">failed, with a cross</span>'
        '<span class="key busy">running</span><span class="key other">other</span></div>'
    )


def _left_out(document: Mapping[str, Any]) -> str:
    if not document["truncated"]:
        return ""
    return '<p class="most">It is too large to be shown whole: some of it is not here.</p>'


def _table(title: str, rows: Sequence[Mapping[str, Any]], clock: Zone, stretch: ShownTime) -> str:
    return table(
        title,
        ("job", "what", "from", "to", "why"),
        [
            (
                LinkedText(row["name"], f"/ui/jobs/{each['job']}"),
                each["kind"] if each["kind"] == "waiting" else each["state"],
                _instant(_seconds(each["since"]), clock, stretch),
                "" if each["until"] is None else _instant(_seconds(each["until"]), clock, stretch),
                each["on"] or "",
            )
            for row in rows
            for each in row["intervals"]
        ],
    )


# -- the axis ----------------------------------------------------------------------------------


def ticks(stretch: ShownTime, clock: Zone) -> list[TimeTick]:
    """Round times of the zone's clock, few enough to be read."""
    length = stretch.end - stretch.begin
    step = next((each for each in STEPS if length / each <= MOST_TICKS), STEPS[-1])
    while length / step > MOST_TICKS:
        step *= 2
    offset = clock.offset(int(stretch.begin))
    local = -(-(stretch.begin + offset) // step) * step
    found: list[TimeTick] = []
    while True:
        at = local - clock.offset(int(local - offset))
        if at > stretch.end:
            return found
        # An hour that the clock skips falls onto the one before.
        if at >= stretch.begin and (not found or at > found[-1].at):
            found.append(TimeTick(at, clock_time(at, clock, step)))
        local += step


def clock_time(at: float, clock: Zone, step: int) -> str:
    """What the zone's clock shows, at midnight the day; with seconds only if steps are shorter than
    a minute."""
    shown = _shown(at, clock)
    if step >= DAY or shown[11:19] == "00:00:00":
        return shown[5:10]
    return shown[11:19] if step < 60 else shown[11:16]


def _instant(at: float, clock: Zone, stretch: ShownTime) -> str:
    """The same to the second, with the day where more than one is shown."""
    shown = _shown(at, clock)
    return shown[11:19] if stretch.end - stretch.begin < DAY else f"{shown[5:10]} {shown[11:19]}"


def _shown(at: float, clock: Zone) -> str:
    return show_instant(int((at + clock.offset(int(at))) * SECOND)) or ""


def _line(tick: TimeTick, stretch: ShownTime) -> str:
    at = f"{stretch.share(tick.at):.3f}%"
    return f'<line class="grid" x1="{at}" x2="{at}" y1="{HEAD - 4}" y2="100%"/>'


def _words(tick: TimeTick, stretch: ShownTime, odd: int) -> str:
    """The first and the last stay within the picture; a narrow one leaves out every second."""
    share = stretch.share(tick.at)
    anchor = "start" if share < 6 else "end" if share > 94 else "middle"
    look = "tick odd" if odd else "tick"
    return (
        f'<text class="{look}" x="{share:.3f}%" y="14" text-anchor="{anchor}">{tick.words}</text>'
    )


def _zone(clock: Zone) -> str:
    return said(clock.name)
