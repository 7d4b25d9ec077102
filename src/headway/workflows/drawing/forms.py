"""The forms of a drawing. A form is loaded when one is asked for. Pure."""

from collections.abc import Iterator

from headway.workflows.drawing.model import Drawing

FORMATS = ("text", "svg", "mermaid", "dot")


def draw(drawing: Drawing, form: str, *, width: int = 80) -> Iterator[str]:
    """Its lines, in one of FORMATS; `width` is that of a terminal."""
    match form:
        case "svg":
            from headway.workflows.drawing.svg import svg

            return svg(drawing)
        case "mermaid":
            from headway.workflows.drawing.languages import mermaid

            return mermaid(drawing)
        case "dot":
            from headway.workflows.drawing.languages import dot

            return dot(drawing)
        case _:
            from headway.workflows.drawing.text import text

            return text(drawing, width)
