"""`make openapi`: docs/openapi.json anew, and the tables of docs/http.md, from the route table.

v1 only grows. What programs may rely on is not taken away: a path, a parameter, an answer, a key of
a document, a word that was allowed; and nothing that could be left out becomes required. The script
writes nothing if that would happen, and names what is missing.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headway.web.openapi import SCHEMAS, document
from headway.web.problems import MEANINGS
from headway.web.route import Route
from headway.web.routes import API_ROUTES

PLACE = Path(__file__).with_name("openapi.json")
PAGE = Path(__file__).with_name("http.md")
OF_PEOPLE = frozenset({"description", "summary", "version", "title"})  # texts that may change


def text() -> str:
    return json.dumps(document(API_ROUTES), indent=1, ensure_ascii=False) + "\n"


def vanished(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What programs of before could rely on and those of now cannot, one line each."""
    promised, kept = set(_promises(before)), set(_promises(after))
    return sorted(promised - kept)


def _promises(value: Any, place: str = "", *, asked: bool = False) -> Iterator[str]:
    """The places of a document. `asked`: it describes what a caller sends."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key in OF_PEOPLE and not isinstance(each, dict):
                continue
            of_requests = place == "/components/schemas" and key not in SCHEMAS
            inside = asked or key == "requestBody" or of_requests
            if key == "parameters":
                for one in each:
                    name = f"{place}/{one['in']}:{one['name']}"
                    yield name
                    yield f"{name} {'required' if one['required'] else 'may be left out'}"
                    yield from _promises(one["schema"], name, asked=True)
            elif key == "required" and isinstance(each, list):
                yield from (f"{place}/{one} is always there" for one in each if not inside)
            elif key in ("enum", "type") and isinstance(each, str | list):
                words = [each] if isinstance(each, str) else each
                yield from (f"{place}/{key} {one}" for one in words)
            elif key == "operationId":
                yield f"{place}/operationId {each}"
            else:
                yield f"{place}/{key}"
                yield from _promises(each, f"{place}/{key}", asked=inside)
        if asked and "properties" in value:
            needed = value.get("required", ())
            free = (each for each in value["properties"] if each not in needed)
            yield from (f"{place}/{each} may be left out" for each in free)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _promises(each, f"{place}/{index}", asked=asked)


# -- docs/http.md ------------------------------------------------------------------------------

# Errors that are no exceptions of the library: title, code, what it means.
OF_HTTP = (
    ("bad-request", 400, "no HTTP, a header twice, a body where none belongs, a token in the URL"),
    ("bad-json", 400, "the body is no JSON that is read here"),
    ("unauthorized", 401, "no credential, or one that does not count"),
    ("forbidden", 403, "the role, another origin, or a person must decide"),
    ("login-refused", 403, "the code is used, too old, or of another address"),
    ("method-not-allowed", 405, "the path takes others, which `Allow` has"),
    ("log-elsewhere", 409, "another host has the log"),
    ("too-large", 413, "the body"),
    ("unsupported-media", 415, "the body is no `application/json`"),
    ("range-not-satisfiable", 416, "the bytes are not kept, or not yet there"),
    ("wrong-host", 421, "the server is not known by that name; `web.origins`"),
    ("revision-missing", 428, "say what was seen: `If-Match`"),
    ("too-many", 429, "of this token at once; `Retry-After`"),
    ("head-too-large", 431, "a head has 16 KiB"),
    ("not-ready", 503, "`/readyz`: somebody listens, and no event was read for 5 s; `Retry-After`"),
    ("too-busy", 503, "another body above 1 MiB is being read; `Retry-After`"),
    ("too-many-streams", 503, "of all; `Retry-After`"),
    ("unexpected", 500, "a mistake of the program; its log has the request's id"),
)


def routes_table() -> str:
    lines = ["| route | role | what it does | answers |", "|---|---|---|---|"]
    for route in API_ROUTES:
        codes = ", ".join(str(code) for code in route.answers)
        lines.append(
            f"| {route.method} `{route.path}` | {_role(route)} | {route.about} | {codes} |"
        )
    return "\n".join(lines)


def _role(route: Route) -> str:
    if route.right.public:
        return "none"
    more = [", own" * route.own, ", a person" * route.right.person]
    return route.right.role.word + "".join(more)


def errors_table() -> str:
    lines = ["| title | code | when |", "|---|---|---|"]
    known = list(OF_HTTP)
    for kind, meaning in MEANINGS.items():
        words = " ".join((kind.__doc__ or "").partition("\n\n")[0].split()).rstrip(".")
        again = "; `Retry-After`" if meaning.headers else ""
        known.append((meaning.title, meaning.status, words[:1].lower() + words[1:] + again))
    for title, code, when in sorted(known, key=lambda row: (row[1], row[0])):
        lines.append(f"| `{title}` | {code} | {when} |")
    return "\n".join(lines)


def page(before: str) -> str:
    """docs/http.md with its tables as they are now."""
    for name, table in (("routes", routes_table()), ("errors", errors_table())):
        marks = rf"(<!-- {name}: .*? -->\n).*?(<!-- end of {name} -->)"
        begin, end = re.split(marks, before, flags=re.S)[1:3]
        before = re.sub(marks, lambda _, new=f"{begin}{table}\n{end}": new, before, flags=re.S)
    return before


if __name__ == "__main__":
    made = text()
    if PLACE.exists() and (missing := vanished(json.loads(PLACE.read_text()), json.loads(made))):
        sys.exit("v1 only grows; these would be gone:\n" + "\n".join(missing))
    PLACE.write_text(made, encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {PLACE.name}: {len(json.loads(made)['paths'])} paths")
