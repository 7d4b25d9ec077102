"""The routes of the forms on pages: a form does what the API does, and then leads back to a page.

Each row is made of a row of the API and has its handler, its right and its words. A form also says
which page to go back to, and which revision its reader saw.
"""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from headway.base.shapes import TEXT, Schema
from headway.web.calls import Reply, WebCall
from headway.web.route import API, Route

OF_FORMS: Mapping[str, Schema] = {
    "csrf": TEXT,
    "back": {**TEXT, "pattern": r"^/ui/"},
    "revision": TEXT,
}
_OURS = re.compile(r"/ui/[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*")


def form_of(schema: Schema | None) -> Schema:
    """The body of a form that asks for what this body of the API asks for."""
    known = {} if schema is None else dict(schema["properties"])
    made = {"type": "object", "additionalProperties": False, "properties": {**known, **OF_FORMS}}
    required = [] if schema is None else schema.get("required", [])
    return {**made, "required": required} if required else made


def act(route: Route, said: str) -> Route:
    """The page's row of a change of the API."""

    def perform(call: WebCall) -> Reply:
        body = {name: value for name, value in call.body.items() if name not in OF_FORMS}
        headers = dict(call.headers)
        if "revision" in call.body:
            headers["if-match"] = f'"{call.body["revision"]}"'
        done = route.handler(call._replace(body=body, headers=headers))
        thing = next(iter(call.path.values()), "")
        if isinstance(done, Reply) and "Location" in done.headers:
            thing = done.headers["Location"].rpartition("/")[2]
        return back(call, said, thing)

    return Route(
        "POST",
        "/ui/" + route.path.removeprefix(API + "/"),
        route.right,
        perform,
        route.about,
        {303: ""},
        body=form_of(route.body),
        own=route.own,
        form=True,
        page=True,
    )


def back(call: WebCall, said: str, thing: str = "") -> Reply:
    """To the page that the form says, with a word about what was done."""
    where = str(call.body.get("back") or "/ui/")
    path, _, query = where.partition("?")
    words = [
        each for each in query.split("&") if each and not each.startswith(("said=", "region="))
    ]
    words.append(urlencode({"said": f"{said}.{thing}" if thing else said}))
    target = f"{path}?{'&'.join(words)}"
    if _OURS.fullmatch(target) is None or target.startswith("/ui//"):
        target = "/ui/"
    return Reply(303, None, {"Location": target})


def acts(routes: Sequence[Route], words: Mapping[str, str]) -> tuple[Route, ...]:
    """The rows of these changes: `POST path` of the API and the word that the page says then."""
    found = {each.path: each for each in routes if each.method == "POST"}
    return tuple(act(found[API + path], said) for path, said in words.items())
