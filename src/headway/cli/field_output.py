"""Jobs as blocks, tables or documents of chosen fields, for `jobs list` and `jobs show`."""

from collections.abc import Sequence
from typing import Any

from headway.base.errors import InvalidInputError
from headway.cli.render import (
    USUAL_WIDTH,
    age,
    brief,
    fields,
    moment,
    paint,
    result,
    state_colour,
    table,
    width,
)
from headway.jobs.views.fields import FORMATS, NARROW, parse_fields, title_of, value_of, written

TIMES = ("created_at", "not_before", "started_at", "finished_at", "cancel_requested_at")


def chosen_fields(given: str | None, configured: tuple[str, ...]) -> tuple[str, ...]:
    """What `--fields` says, else the setting."""
    if given is None:
        return configured
    try:
        return parse_fields(given)
    except InvalidInputError as error:
        raise InvalidInputError(f"--fields: {error}") from None


def chosen_format(given: str | None, configured: str, *, as_json: bool) -> str:
    """What `--json` or `--format` says, else the setting."""
    if given is not None and given not in FORMATS:
        raise InvalidInputError(f"--format {given!r} is not one of {', '.join(FORMATS)}")
    if as_json and given not in (None, "json"):
        raise InvalidInputError(f"--json and --format {given} exclude each other; give one")
    return "json" if as_json else given or configured


def as_document(document: dict[str, Any], names: Sequence[str], now: int) -> dict[str, Any]:
    """These fields alone; all of them if none is named."""
    return {name: _value(name, document, now) for name in names} if names else document


def as_table(documents: Sequence[dict[str, Any]], names: Sequence[str], now: int) -> list[str]:
    rows = [[_short(name, each, now) for name in names] for each in documents]
    if "name" in names and "slug" not in names:
        for row, each in zip(rows, documents, strict=True):
            row[names.index("name")] = _called(each)
    state = names.index("state") if "state" in names else None
    colours = [state_colour(each["state"]) for each in documents] if state is not None else []
    wide = [at for at, name in enumerate(names) if name not in NARROW and name not in TIMES]
    header = [title_of(name) for name in names]
    favoured = names.index("result") if "result" in names else None
    return table(
        header,
        rows,
        flexible=wide,
        favoured=favoured,
        reluctant=() if state is None else (state,),
        colours=colours,
        coloured=state or 0,
    )


def as_block(document: dict[str, Any], names: Sequence[str], now: int) -> list[str]:
    """The fields that have something to say, one per line."""
    lines = [f"{paint(document['id'], 'bold')}"]
    entries = [(title_of(name).lower(), _text(name, document, now)) for name in names]
    return lines + fields([entry for entry in entries if entry[0] != "job"])


def _value(name: str, document: dict[str, Any], now: int) -> Any:
    match name:
        case "result":
            return result(document)
        case "age":
            return age(document["created_at"], now)
    return value_of(name, document)


def _called(document: dict[str, Any]) -> str:
    """By its slug, too: that is what one types."""
    name, slug = str(document["name"]), document["slug"]
    return f"{slug}: {name}" if slug and slug != name else name


def _short(name: str, document: dict[str, Any], now: int) -> str:
    """For a narrow column: a time without its distance."""
    text = _text(name, document, now) or ""
    if name == "result" and width() < USUAL_WIDTH:
        return brief(text)
    return text.partition(" (")[0] if name in TIMES else text


def _text(name: str, document: dict[str, Any], now: int) -> str | None:
    value = _value(name, document, now)
    return moment(value, now) if name in TIMES else written(name, value)
