"""Whatever fits the API document, and what does not, gets an answer that fits it, too: schemathesis
makes requests up, for every operation of docs/openapi.json.

`make test` sends the same 2,000 each time. HEADWAY_CASES=100000 sends as many new ones; they take
longer than a test may, so give `-o faulthandler_timeout=0`. No worker is there, so nothing that is
submitted runs. Each group of routes has a home of its own, in which its requests leave what the
next ones find.
"""

import copy
import os
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from harness import Bench
from headway.base.errors import HeadwayError
from headway.client import Client
from headway.jobs.request import Request
from headway.web import routes
from headway.web.openapi import document
from headway.web.route import Route
from loopback import ServedHome

STATS = None
CASES = 2000
LONGEST = 20.0  # seconds for one answer, streams among them
LONGEST_HEAD = 15_000  # bytes
LEAST_THAT_SUCCEEDS = 0.6  # of the operations of a group: a request is about what is there
CHECKS = (
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.allow_header_conformance,
)

# It would send a request to wherever was made up.
LEFT_OUT = {"/api/v1/webhooks/{endpoint}/test"}

GROUPS = {
    name: getattr(routes, name)
    for name in (
        *("JOBS", "RUNS", "WORKFLOWS", "GROUPS", "SCHEDULES", "TEMPLATES", "SCHEDULER"),
        *("STATISTICS", "OTHERS", "WEBHOOKS", "LEGACY", "SIGN_IN"),
    )
}
WORKFLOW = """\
inputs = ["who"]
params.who = { type = "text" }

[nodes.greet]
shell = "echo hello"

[nodes.leave]
shell = "echo bye"
after = ["greet"]
"""


def wanted(group: str) -> list[Route]:
    return [each for each in GROUPS[group] if each.path not in LEFT_OUT]


def test_every_route_is_in_a_group() -> None:
    assert [route for group in GROUPS.values() for route in group] == list(routes.API_ROUTES)


# -- a home with something in it -----------------------------------------------------------------


def furnish(bench: Bench) -> None:
    """Some of everything: jobs in every state, and what belongs to them."""
    client = bench.client
    ended = [bench.submit("echo", "hello"), bench.submit("sh", "-c", "echo no >&2; exit 3")]
    bench.until_ended(*ended)
    client.scheduler.pause("so that nothing starts")
    waiting = bench.submit("true", name="next", labels={"team": "shop"})
    bench.submit("true", require_approval=True)
    bench.submit("true", require_approval=True)
    bench.submit("true", after=(waiting,))
    bench.submit("true", locks=("repo",), name="locked")
    client.cancel([bench.submit("true", name="unwanted")])
    client.templates.add("build", argv=["echo", "{what}"], params={"what": "all"})
    client.schedules.add(name="nightly", cron="0 3 * * *", template="build")
    client.groups.submit([Request(argv=("true",)), Request(argv=("true",))])
    folder = Path(bench.home.path) / "workflows"
    folder.mkdir()
    (folder / "hello.toml").write_text(WORKFLOW)
    client.workflows.start("hello", params={"who": "ada"})
    # By address, so no name is looked up; nobody delivers to it.
    client.webhooks.add("ci", "https://8.8.8.8/hook", types=("*",), schedule="quick")
    client.reservations.ask(note="tests", type=None, resources=(), target=None)
    bench.step()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ServedHome]:
    bench = Bench(tmp_path)
    furnish(bench)
    bench.close()
    served = ServedHome(bench.home)
    yield served
    served.close()


# -- what makes requests likely to be about something -------------------------------------------


# What the placeholders of paths may be called here; jobs get more as requests make them.
NAMES: dict[str, list[str]] = {
    "name": ["next", "true", "echo", "locked"],
    "job": [f"job-{number}" for number in range(1, 16)] + ["1", "2", "3"],
    "run": ["run-1", "run-2", "1", "wf-1"],
    "group": ["group-1"],
    "template": ["build"],
    "schedule": ["nightly"],
    "workflow": ["hello"],
    "runner": ["claude"],
    "reservation": ["direct-1", "direct-2"],
    "key": ["scheduler.max_active", "scheduler.batch_size", "web.port"],
    "stream": ["stdout", "stderr"],
    "endpoint": ["ci"],
    "delivery": ["1"],
}

# Bodies that are accepted, to which a case adds a key or two.
BODIES: dict[str, dict[str, Any]] = {
    "POST /api/v1/jobs": {"argv": ["true"]},
    "POST /api/v1/graphs": {"jobs": [{"id": "a", "argv": ["true"]}]},
    "PUT /api/v1/templates/{template}": {"argv": ["true"]},
    "POST /api/v1/schedules": {
        "name": "nightly",
        "every": "1h",
        "template": "build",
        "replace": True,
    },
    "PUT /api/v1/queue": {"order": ["job-3", "job-4"]},
    "POST /api/v1/workflows/{workflow}/runs": {"params": {"who": "ada"}},
    "POST /jobs/batch/trigger": {"jobs": [{"template": "build"}]},
    "PUT /api/v1/settings/{key}": {"value": 3},
    "POST /login": {"code": "x"},
    "POST /api/v1/webhooks": {"name": "ci", "url": "https://8.8.8.8/hook"},
    "POST /api/v1/deliveries/replay": {"since": "24h"},
}


def made_likely(case: Case, route: Route, client: Client, chance: random.Random) -> None:
    """Let most cases be about what is there, with a body that is nearly right."""
    for word in case.path_parameters or {}:
        if chance.random() < 0.8:
            case.path_parameters[word] = chance.choice(NAMES[word])
    job = (case.path_parameters or {}).get("job", "")
    if "If-Match" in route.headers and chance.random() < 0.7:
        with suppress(HeadwayError):
            seen = client.jobs.revision(job) if job else client.jobs.queue_revision()
            case.headers["If-Match"] = f'"{seen}"'
    if route.stream and case.path_parameters:
        case.path_parameters["job"] = chance.choice(["job-1", "job-2", "9999"])
        case.query["this"] = True  # of a job that has ended, so the stream has an end
    if not isinstance(case.body, dict) or chance.random() < 0.3:
        return
    whole = copy.deepcopy(BODIES.get(f"{route.method} {route.path}", {}))
    kept = [key for key in case.body if key not in whole]
    for key in chance.sample(kept, max(0, len(kept) - chance.randrange(3))):
        del case.body[key]
    case.body.update(whole)


# -- the requests --------------------------------------------------------------------------------


def is_cut(case: Case) -> bool:
    """Whether a word of the query cannot be sent: of an empty list or object nothing is left, so
    the request may have no mistake."""
    return any(each in ({}, []) for each in (case.query or {}).values())


class BoundedSession(requests.Session):
    """Sends nothing that has a longer head than the server reads: it hangs up on that."""

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        lines = [request.url or "", *(f"{name}{value}" for name, value in request.headers.items())]
        assume(sum(len(line) for line in lines) < LONGEST_HEAD)
        return super().send(request, **options)


@pytest.mark.long
@pytest.mark.parametrize("group", GROUPS)
def test_every_answer_fits_the_document(home: ServedHome, group: str) -> None:
    found = wanted(group)
    if not found:
        return
    chance = random.Random(group)
    asked = int(os.environ.get("HEADWAY_CASES", CASES))
    schema = schemathesis.openapi.from_dict(document(routes.API_ROUTES))
    ways = []
    for route in found:
        operation = schema[route.path][route.method]
        fitting = operation.as_strategy(headers=home.headers)
        ways.append(st.tuples(st.just(route), fitting, st.just(True)))
        fixed = {word: NAMES[word][0] for word in re.findall(r"\{(\w+)\}", route.path)}
        others = operation.as_strategy(
            GenerationMode.NEGATIVE,
            headers=home.headers,
            path_parameters=fixed,
            query={"this": "true"} if route.stream and fixed else None,
        )
        ways.append(st.tuples(st.just(route), others, st.just(False)))
    wrong: dict[tuple[str, str], str] = {}
    succeeded: set[str] = set()
    count = max(1, asked * len(found) // len(routes.API_ROUTES))

    with BoundedSession() as session:

        @settings(
            max_examples=count,
            derandomize="HEADWAY_CASES" not in os.environ,
            database=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        @given(st.one_of(ways))
        def ask(one: tuple[Route, Case, bool]) -> None:
            route, case, fits = one
            if fits:
                made_likely(case, route, home.client, chance)
            else:
                assume(not is_cut(case))
            answer = case.call(
                base_url=home.url, session=session, timeout=LONGEST, allow_redirects=False
            )
            if answer.status_code < 400:
                succeeded.add(f"{route.method} {route.path}")
            # That a body is too large is said before it is looked at.
            left_out = {checks.negative_data_rejection} if answer.status_code == 413 else set()
            try:
                case.validate_response(answer, checks=[*set(CHECKS) - left_out])
            except FailureGroup as group:
                for each in group.exceptions:
                    place = (f"{route.method} {route.path}", str(each).splitlines()[0])
                    wrong.setdefault(place, f"{each}\n{case.as_curl_command()}\n{answer.text}")

        ask()
    assert not wrong, "\n\n".join(f"{place}: {text}" for place, text in wrong.items())
    assert len(succeeded) >= len(found) * LEAST_THAT_SUCCEEDS, "too few are about what is there"
