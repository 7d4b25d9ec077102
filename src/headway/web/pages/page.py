"""A page: a template, and the values that it asks for.

A template extends `frame.html`. What is live stands in a *region*: a `<section data-region>` with
an id and topics, around a block of the same name. The script fetches a region again
(`?region=NAME`) when something of its topics has happened, and gets the same block. A region is
kept for a moment and shown to all readers of the same role. So it holds no CSRF value and no
reader's name: its buttons send the one form of the frame, `act`, which has both.
"""

import os
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import urlencode

import jinja2
from markupsafe import Markup, escape

from headway import __version__
from headway.core.principals import Role
from headway.web.calls import Handler, Reply, WebCall
from headway.web.pages import formats
from headway.web.pages.assets import ICON, SCRIPT, STYLE
from headway.web.pages.escapes import ansi, finalize
from headway.web.pages.timeline import timeline
from headway.web.problems import HttpProblem, ProblemAnswer

HTML = "text/html; charset=utf-8"
LIVE = "/ui/live"

# The pages that the head of each leads to: word, path, key after `g`.
PLACES = (
    ("Overview", "/ui/", "o"),
    ("Jobs", "/ui/jobs", "j"),
    ("Approvals", "/ui/approvals", "a"),
    ("Runs", "/ui/workflows", "w"),
    ("Schedules", "/ui/schedules", "s"),
    ("Groups", "/ui/groups", "p"),
    ("Graph", "/ui/graph", "d"),
    ("Limits", "/ui/limits", "l"),
    ("Hosts", "/ui/hosts", "h"),
    ("Events", "/ui/events", "e"),
    ("Webhooks", "/ui/webhooks", "b"),
    ("Settings", "/ui/settings", "t"),
    ("New", "/ui/new", "n"),
)


class WebPage:
    """What one template shows. Its properties are read when the template asks for them."""

    template: ClassVar[str]
    title: str = "Headway"
    place: ClassVar[str] = ""  # the path of PLACES that it belongs to

    def __init__(self, call: WebCall) -> None:
        self.call = call
        self.client = call.client
        self.now = call.now

    @property
    def here(self) -> str:
        """The path and query of this page, to come back to."""
        return self.call.here

    def with_query(self, **changes: Any) -> str:
        """This page with other words after the `?`; None takes one away."""
        words = {**self.call.query, "region": None, "said": None, **changes}
        listed = {
            name: ",".join(map(str, value)) if isinstance(value, list | tuple) else value
            for name, value in words.items()
            if value not in (None, (), [], "")
        }
        path = self.here.partition("?")[0]
        return f"{path}?{urlencode(listed)}" if listed else path

    def may(self, role: str) -> bool:
        return self.call.principal.role >= Role[role.upper()]

    @property
    def may_decide(self) -> bool:
        return self.may("operate") and self.call.principal.is_person

    def may_change(self, submitted_by: str | None) -> bool:
        """Whether the reader may cancel, edit or retry a job of this submitter."""
        principal = self.call.principal
        return principal.role >= Role.SUBMIT and principal.may_change(submitted_by)

    def ask(self, handler: Handler, query: Mapping[str, Any] | None = None, **path: str) -> Any:
        """The document that a route of the API answers this reader with: it knows what a role may
        see."""
        words = self.call._replace(query=query or {}, path={**self.call.path, **path})
        answer = handler(words)
        return answer.document if isinstance(answer, Reply) else None

    def bars_over_time(self, title: str, document: Mapping[str, Any]) -> Markup:
        """When each waited and ran, on the clock of this machine."""
        drawn = timeline(title, document, zone=formats.local_zone(), now=self.now)
        return Markup(drawn)  # noqa: S704 - it escapes what it is given

    # -- the head of every page ----------------------------------------------------------------

    @cached_property
    def status(self) -> dict[str, Any]:
        return self.client.scheduler.status()

    @cached_property
    def approvals_waiting(self) -> int:
        return sum(1 for each in self.client.jobs.approvals() if each["now"])


def shown(page: Callable[[WebCall], WebPage]) -> Handler:
    """The handler of a page, and of each of its regions."""

    def show(call: WebCall) -> Reply:
        made = page(call)
        name = call.query.get("region")
        text = _region(made, name) if name else _whole(made)
        return Reply(body=text.encode("utf-8", "replace"), media=HTML)

    return show


def _whole(page: WebPage) -> str:
    call = page.call
    said = call.query.get("said")
    return _template(page.template).render(
        page=page,
        reader=call.client.context.actor,
        role=call.principal.role.word,
        csrf=call.csrf or "",
        session=call.principal.session,
        said=None if said is None else said_of(said),
        places=PLACES,
    )


def _region(page: WebPage, name: str) -> str:
    """One block; of the page itself, or of the frame."""
    for template in (_template(page.template), _template("frame.html")):
        block = template.blocks.get(name)
        if block is not None and name in regions_of(template):
            return "".join(block(template.new_context({"page": page})))
    raise HttpProblem(404, "not-found", f"this page has no region {name[:40]!r}")


def problem_page(found: ProblemAnswer, *, signed_in: bool, there: str | None) -> Reply:
    """What is wrong, for one who reads HTML. `there`: the same page under the name of the home."""
    text = _template("problem.html").render(
        problem=found.document, signed_in=signed_in, there=there
    )
    return Reply(found.status, None, found.headers, text.encode(), HTML)


# What a page says after it has done something; the word and the thing stand in the query.
SAID: Mapping[str, str] = {
    "approved": "{} is approved.",
    "rejected": "{} is rejected.",
    "cancelled": "Cancelled, or asked to end: {}.",
    "retried": "{} will run again.",
    "moved": "{} has its new place.",
    "edited": "{} is changed.",
    "repinned": "{} has its new pin.",
    "submitted": "{} is submitted.",
    "started": "{} is started.",
    "stopped": "{} is asked to stop.",
    "paused": "Everything is paused. What runs goes on.",
    "resumed": "The pause is over.",
    "reset": "Launch failures are forgotten.",
    "closed": "{} is closed.",
    "enabled": "{} is enabled.",
    "disabled": "{} is disabled.",
    "triggered": "{} was triggered.",
    "replayed": "{} is sent again.",
    "set": "{} is set.",
    "removed": "{} is removed.",
    "drained": "{} gets no new jobs.",
}


_A_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,79}|[0-9]+ jobs")


def said_of(text: str) -> str | None:
    """The sentence of `WORD` or `WORD.THING`; words of others are never shown."""
    word, _, thing = text.partition(".")
    sentence = SAID.get(word)
    named = _A_NAME.fullmatch(thing) is not None
    return None if sentence is None else sentence.format(thing if named else "It")


# -- templates ---------------------------------------------------------------------------------


def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=_LOADER,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals |= {
        "style": STYLE.path,
        "script": SCRIPT.path,
        "icon": ICON.path,
        "live": LIVE,
        "version": __version__,
    }
    made.filters |= {
        "state": formats.state,
        "span": formats.span,
        "seconds": formats.seconds,
        "command": formats.command,
        "link_jobs": formats.link_jobs,
        "whole": formats.whole,
        "setting": formats.setting,
        "field": escape,  # as it is: what a form has, it sends again
        "ansi": ansi,
        "clock": formats.clock,
        "when": _timed(formats.when),
        "ago": _timed(formats.ago),
        "since": _timed(formats.since),
        "took": _timed(formats.took),
    }
    return made


def _timed(show: Callable[[Any, int], Markup | str]) -> Callable[..., Markup | str]:
    """A filter that has to know what time it is: that of the page."""

    @jinja2.pass_context
    def filtered(context: jinja2.runtime.Context, value: Any) -> Markup | str:
        return show(value, context["page"].now)

    return filtered


_LOADER = jinja2.FileSystemLoader(os.path.join(os.path.dirname(__file__), "templates"))
_ENVIRONMENT = _environment()


def _template(name: str) -> jinja2.Template:
    return _ENVIRONMENT.get_template(name)


_REGIONS: dict[str, frozenset[str]] = {}


def regions_of(template: jinja2.Template) -> frozenset[str]:
    """The blocks of a template that are regions: their sections say so in its text."""
    name = template.name or ""
    if name not in _REGIONS:
        source = _LOADER.get_source(_ENVIRONMENT, name)[0]
        found = re.findall(r'<\w+ id="(\w+)"[^>]*\bdata-region\b', source)
        _REGIONS[name] = frozenset(found)
    return _REGIONS[name]
