"""Charts as SVG for pages. Pure: numbers in, markup out.

The pages' policy refuses styles within markup, so colours come from the style sheet (`charts.css`)
by classes. Places are percentages of the width. So a chart is as wide as the page, and its words,
which stand beside the picture, are as large as others. A screen reader gets a picture as one image,
and its numbers as a table below. A pattern or a word repeats what a colour says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import NamedTuple
from zlib import crc32

from headway.base.text import plain, shortened

HEIGHT = 96  # of a chart, as in the style sheet
CELL = 24  # of a strip
LONGEST_WORD = 60
LONGEST_SUMMARY = 200
MOST_ROWS = 200  # of a table
NOTHING_YET = "nothing yet"

# What the end of a job looks like: its class, and its shape in a strip.
LOOKS = {
    "succeeded": "good",
    "failed": "bad",
    "blocked": "bad",
    "blocked_by_dependency": "bad",
    "blocked_by_approval": "bad",
    "running": "busy",
}
OTHER = "other"


class ChartSeries(NamedTuple):
    """Numbers over time under a name. `look` is a class of the style sheet: good, bad, other, rest,
    line-1, line-2. None: nothing is known, or there was nothing."""

    name: str
    numbers: Sequence[float | None]
    look: str


class LinkedText(NamedTuple):
    """A cell of a table that leads somewhere."""

    text: str
    link: str


class StripRun(NamedTuple):
    """One of the last runs: its state, what to call it, where it is, how long it took."""

    state: str
    name: str
    link: str | None = None
    seconds: float | None = None
    at: str = ""


Show = Callable[[float], str]


def said(text: str, room: int = LONGEST_WORD) -> str:
    """Text of others for a page: cut, on one line, escaped; control characters are spelt out."""
    return escape(shortened(plain(text), room))


def in_number(number: float) -> str:
    """`1,200`, `0.4`, without a rest of zeros."""
    if abs(number) >= 100 or number == int(number):
        return f"{number:,.0f}"
    if 0 < number < 0.01:
        return "under 0.01"
    return f"{number:.2f}".rstrip("0").rstrip(".")


def in_seconds(seconds: float) -> str:
    """`0.4s`, `12s`, `2m 5s`, `3h 4m`."""
    if seconds < 10:
        return f"{in_number(round(seconds, 2 if seconds < 1 else 1))}s"
    whole = round(seconds)
    for unit, size, small, part in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60)):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size}{unit}" + (f" {rest}{small}" if rest else "")
    if whole >= 60:
        return f"{whole // 60}m" + (f" {whole % 60}s" if whole % 60 else "")
    return f"{whole}s"


def bars(
    title: str, labels: Sequence[str], series: Sequence[ChartSeries], show: Show = in_number
) -> str:
    """Stacked bars over time: the first series is at the bottom."""
    most = max(
        (sum(each.numbers[at] or 0 for each in series) for at in range(len(labels))), default=0
    )
    top = most or 1
    key = f"{crc32(title.encode()):08x}"
    drawn: list[str] = []
    for at, label in enumerate(labels):
        width, base = 100 / len(labels), float(HEIGHT)
        words, rects = [], []
        for each in series:
            number = each.numbers[at]
            if not number:
                continue
            height = max(1.0, (HEIGHT - 2) * number / top)
            base -= height
            words.append(f"{escape(show(number))} {said(each.name)}")
            rects.append(_bar(each.look, key, at * width, width, base, height))
        if rects:
            title_of = f"<title>{said(label)}: {', '.join(words)}</title>"
            drawn.append(f"<g>{title_of}{''.join(rects)}</g>")
    picture = f"{_patterns(key)}{_grid()}{''.join(drawn)}"
    return _figure(title, labels, series, show, picture, most)


def _bar(look: str, key: str, left: float, width: float, top: float, height: float) -> str:
    place = f'x="{_p(left + width * 0.1)}" width="{_p(width * 0.8)}" '
    place += f'y="{_n(top)}" height="{_n(height)}"'
    bar = f'<rect class="bar {escape(look)}" {place}/>'
    pattern = f'<rect fill="url(#{look}-{key})" {place}/>' if look in _PATTERNS else ""
    return bar + pattern


# The second mark of a kind, beside its colour. What is good has none.
_PATTERNS = {
    "bad": '<path class="mark" d="M0 4 4 0M-1 1 1-1M3 5 5 3"/>',
    "other": '<path class="mark" d="M0 2H4"/>',
    "rest": '<path class="mark" d="M1 0V4"/>',
}


def _patterns(key: str) -> str:
    made = (
        f'<pattern id="{look}-{key}" width="4" height="4" patternUnits="userSpaceOnUse">{mark}'
        "</pattern>"
        for look, mark in _PATTERNS.items()
    )
    return f"<defs>{''.join(made)}</defs>"


def lines(
    title: str, labels: Sequence[str], series: Sequence[ChartSeries], show: Show = in_seconds
) -> str:
    """Lines over time; where nothing is known there is none."""
    known = [number for each in series for number in each.numbers if number is not None]
    most = max(known, default=0)
    drawn = "".join(
        f'<polyline class="{escape(each.look)}" points="{points}"/>'
        for each in series
        for points in _points(each.numbers, most or 1)
    )
    box = f'viewBox="0 0 100 {HEIGHT}" preserveAspectRatio="none" width="100%" height="{HEIGHT}"'
    picture = f"{_grid()}<svg {box}>{drawn}</svg>"
    return _figure(title, labels, series, show, picture, most)


def _points(numbers: Sequence[float | None], top: float) -> Iterator[str]:
    """Each stretch without gaps; a single point is there twice, so that it is seen."""
    step = 100 / max(1, len(numbers))
    for known, some in groupby(enumerate(numbers), key=lambda each: each[1] is not None):
        if known:
            points = [
                f"{_n((at + 0.5) * step)},{_n(HEIGHT - 2 - (HEIGHT - 4) * (number or 0) / top)}"
                for at, number in some
            ]
            yield " ".join(points if len(points) > 1 else points * 2)


def _grid() -> str:
    return "".join(
        f'<line class="grid" x1="0" x2="100%" y1="{y}" y2="{y}"/>'
        for y in (0.5, HEIGHT / 2, HEIGHT - 0.5)
    )


def _figure(
    title: str,
    labels: Sequence[str],
    series: Sequence[ChartSeries],
    show: Show,
    picture: str,
    most: float,
) -> str:
    empty = not any(number for each in series for number in each.numbers)
    svg = (
        f'<svg role="img" width="100%" height="{HEIGHT}"><title>{said(title)}'
        f"{f': {NOTHING_YET}' if empty else ''}</title>{picture}</svg>"
    )
    ends = [said(labels[at]) for at in (0, -1)] if labels else ["", ""]
    legend = "".join(
        f'<span class="key {escape(each.look)}">{said(each.name)}</span>' for each in series
    )
    top = NOTHING_YET if empty else f"most {escape(show(most))}"
    return (
        f'<figure class="chart"><figcaption><b>{said(title)}</b> <span class="most">{top}</span>'
        f'</figcaption>{svg}<div class="ends"><span>{ends[0]}</span><span>{ends[1]}</span></div>'
        f'<div class="keys">{legend}</div>{_numbers(title, labels, series, show)}</figure>'
    )


def _numbers(title: str, labels: Sequence[str], series: Sequence[ChartSeries], show: Show) -> str:
    """Only the times at which there was something; an empty line would say nothing."""
    rows = [
        (
            label,
            *("" if each.numbers[at] is None else show(each.numbers[at] or 0) for each in series),
        )
        for at, label in enumerate(labels)
        if any(each.numbers[at] for each in series)
    ]
    return table(title, ("time", *(each.name for each in series)), rows)


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str | LinkedText]]) -> str:
    """The numbers of a picture, folded away."""
    head = "".join(f'<th scope="col">{said(each)}</th>' for each in heads)
    body = "".join(map(_row, rows[:MOST_ROWS]))
    more = len(rows) - MOST_ROWS
    if more > 0 or not rows:
        words = f"and {more:,} more" if rows else NOTHING_YET
        body += f'<tr><td colspan="{len(heads)}">{words}</td></tr>'
    scroll = f'<div class="scroll" role="group" tabindex="0" aria-label="{said(title)}">'
    return (
        f'<details class="numbers"><summary>Numbers</summary>{scroll}<table>'
        f"<caption>{said(title)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        "</table></div></details>"
    )


def _row(cells: Sequence[str | LinkedText]) -> str:
    first, *rest = map(_in_cell, cells)
    return f'<tr><th scope="row">{first}</th>{"".join(f"<td>{each}</td>" for each in rest)}</tr>'


def _in_cell(cell: str | LinkedText) -> str:
    if isinstance(cell, LinkedText):
        return f'<a href="{escape(plain(cell.link))}">{said(cell.text)}</a>'
    return said(cell)


def strip(title: str, runs: Sequence[StripRun]) -> str:
    """The last runs, the oldest first, each as tall as it took long; what went wrong has a cross.
    Links are in the table: a picture has none for keys and readers of screens."""
    if not runs:
        name = f'<span class="unseen">{said(title)}: </span>'
        return f'<div class="chart runs most">{name}{NOTHING_YET}</div>'
    longest = max(each.seconds or 0 for each in runs) or 1
    drawn = "".join(_cell(each, at, len(runs), longest) for at, each in enumerate(runs))
    summary = _in_words(each.state for each in runs)
    svg = (
        f'<svg class="cells" role="img" width="{9 * len(runs)}" height="{CELL}">'
        f"<title>{said(title)}: {said(summary, LONGEST_SUMMARY)}</title>{drawn}</svg>"
    )
    rows = [
        (
            each.name if each.link is None else LinkedText(each.name, each.link),
            each.state,
            "" if each.seconds is None else in_seconds(each.seconds),
            each.at,
        )
        for each in runs
    ]
    numbers = table(title, ("run", "state", "took", "when"), rows)
    return f'<div class="chart runs">{svg}{numbers}</div>'


def _cell(run: StripRun, at: int, count: int, longest: float) -> str:
    look = LOOKS.get(run.state, OTHER)
    took = "" if run.seconds is None else f", {in_seconds(run.seconds)}"
    height = max(5.0, (CELL - 2) * (run.seconds or 0) / longest)
    left, top = at * 9 + 1, CELL - 1 - height
    shape = f'<rect class="bar {look}" x="{left}" y="{_n(top)}" width="7" height="{_n(height)}"/>'
    if look == "bad":
        shape += f'<path class="mark" d="M{left + 1} {CELL - 6}l5 4m0-4l-5 4"/>'
    when = f", {run.at}" if run.at else ""
    words = f"<title>{said(run.name)}: {said(run.state)}{took}{said(when)}</title>"
    return f"<g>{words}{shape}</g>"


def _in_words(states: Iterable[str]) -> str:
    """`28 succeeded, 2 failed`."""
    counts: dict[str, int] = {}
    for each in states:
        counts[each] = counts.get(each, 0) + 1
    return ", ".join(f"{number} {word}" for word, number in counts.items()) or NOTHING_YET


def sparkline(title: str, numbers: Sequence[float | None], show: Show = in_number) -> str:
    """A small line beside a number, without axes; its words say the last and the most."""
    known = [each for each in numbers if each is not None]
    most, last = max(known, default=0), known[-1] if known else 0
    summary = f"{show(last)} now, {show(most)} at most" if any(known) else NOTHING_YET
    drawn = "".join(
        f'<polyline class="line-1" points="{points}"/>' for points in _points(numbers, most or 1)
    )
    return (
        f'<svg class="spark" role="img" width="96" height="24" viewBox="0 0 100 {HEIGHT}" '
        f'preserveAspectRatio="none"><title>{said(title)}: {escape(summary)}</title>{drawn}</svg>'
    )


def _p(number: float) -> str:
    return f"{_n(number)}%"


def _n(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
