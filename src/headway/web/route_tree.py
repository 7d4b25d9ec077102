"""The route of a path: every part decoded, and no path that means two routes. Pure."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from headway.web.problems import HttpProblem
from headway.web.route import Route


class Found(NamedTuple):
    route: Route
    words: Mapping[str, str]


class RouteTree:
    """Finds the route of a path. A literal part counts before a `{name}`."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self._root: dict[str | None, Any] = {}
        for route in routes:
            node = self._root
            for part in _parts(route.path):
                node = node.setdefault("{}" if part.startswith("{") else part, {})
            node.setdefault(None, {})[route.method] = route

    def methods(self, path: str) -> dict[str, Found]:
        """The routes of a path by their methods; none if there is no such path."""
        parts = _parts(path)
        leaf = _walk(self._root, parts, 0)
        found: dict[str, Found] = {}
        for method, route in (leaf or {}).items():
            pairs = zip(_parts(route.path), parts, strict=True)
            words = {name[1:-1]: _word(text) for name, text in pairs if name.startswith("{")}
            found[method] = Found(route, words)
        return found


def _parts(path: str) -> list[str]:
    return path.split("/")[1:]


def _walk(node: dict[Any, Any], parts: list[str], at: int) -> dict[str, Route] | None:
    if at == len(parts):
        leaf: dict[str, Route] | None = node.get(None)
        return leaf
    for word in (parts[at], "{}"):
        if word in node:
            found = _walk(node[word], parts, at + 1)
            if found is not None:
                return found
    return None


def _word(text: str) -> str:
    try:
        word = unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        raise HttpProblem(404, "not-found", "there is nothing of that name") from None
    if not word or not word.isprintable():
        raise HttpProblem(404, "not-found", "there is nothing of that name")
    return word
