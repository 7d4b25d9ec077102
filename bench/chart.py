"""The results as one SVG: a bar for each goal, on one scale where 1 is the goal itself.

Written by hand so that nothing has to be installed. Paper and ink follow the reader's light or dark
setting; side, length and the written word say again what the colour says.
"""

import math
from collections.abc import Sequence
from html import escape

from goals import Answer

WIDTH, LEFT, RIGHT = 1040, 480, 150
ROW, BAR, TOP = 34, 16, 74
LOW, HIGH = 0.02, 50.0
TICKS = (0.02, 0.1, 0.5, 1, 2, 10, 50)

STYLE = """
  .paper { fill: #ffffff; }
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-size: 16px; font-weight: 600; }
  .small { font-size: 11px; fill: #59636e; }
  .grid { stroke: #d1d9e0; } .goal { stroke: #1f2328; stroke-width: 1.5; }
  .met { fill: #1a7f8c; } .missed { fill: #c2571a; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; }
    text { fill: #e6edf3; } .small { fill: #9198a1; }
    .grid { stroke: #3d444d; } .goal { stroke: #e6edf3; }
    .met { fill: #4fb8c6; } .missed { fill: #f0883e; }
  }
"""


def draw(answers: Sequence[Answer], subtitle: str) -> str:
    measured = [each for each in answers if each.score is not None]
    height = TOP + ROW * len(measured) + 30
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'width="{WIDTH}" height="{height}">',
        "<title>Headway against its goals</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
        _text(16, 24, "Headway against its goals", "title"),
        _text(16, 44, subtitle, "small"),
        *_grid(height),
    ]
    for number, each in enumerate(measured):
        lines += _row(each, TOP + ROW * number)
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


def _row(answer: Answer, top: int) -> list[str]:
    assert answer.score is not None
    assert answer.value is not None
    kind = "met" if answer.met else "missed"
    end, start = _x(answer.score), _x(1.0)
    middle = top + ROW / 2
    value = f"{answer.value:.2f} {answer.goal.unit}, {answer.verdict}"
    left, right = min(start, end), max(start, end)
    return [
        _text(16, middle + 4, answer.goal.title.replace("`", "")),
        f'<rect class="{kind}" x="{left:.1f}" y="{middle - BAR / 2}" '
        f'width="{max(right - left, 1.5):.1f}" height="{BAR}" rx="2"/>',
        _text(WIDTH - RIGHT + 14, middle + 1, value),
        _text(
            WIDTH - RIGHT + 14,
            middle + 14,
            f"{answer.goal.sense} {answer.goal.bound:g} {answer.goal.unit}",
            "small",
        ),
    ]


def _grid(height: int) -> list[str]:
    lines = []
    for tick in TICKS:
        x = _x(tick)
        kind = "goal" if tick == 1 else "grid"
        lines.append(
            f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{height - 26}"/>'
        )
        label = "goal" if tick == 1 else f"{tick:g} x"
        lines.append(_text(x, TOP - 10, label, "small", anchor="middle"))
    lines.append(_text(LEFT, height - 8, "worse than the goal", "small"))
    lines.append(
        _text(WIDTH - RIGHT, height - 8, "better than the goal (log scale)", "small", anchor="end")
    )
    return lines


def _x(score: float) -> float:
    """Where this score is on the logarithmic scale."""
    share = math.log(min(max(score, LOW), HIGH) / LOW) / math.log(HIGH / LOW)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _text(x: float, y: float, words: str, kind: str = "", *, anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape(words)}</text>'
