"""Runs of workflows over HTTP."""

from pathlib import Path
from typing import Any

import pytest
from served import Served, on_both_stores

HELLO = """\
inputs = ["who"]
params.who = { type = "text" }

[nodes.greet]
argv = ["echo", "hello", "${{ params.who }}"]
"""


def add_workflow(served: Served, name: str = "hello") -> None:
    folder = Path(served.bench.home.path) / "workflows"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.toml").write_text(HELLO)


@pytest.fixture(scope="module")
def flows(shared: Served) -> Served:
    add_workflow(shared)
    add_workflow(shared, "other")
    return shared


def start(served: Served, who: str = "ada", *, workflow: str = "hello", **options: Any) -> Any:
    return served.post(f"workflows/{workflow}/runs", {"params": {"who": who}}, **options)


@on_both_stores
def test_a_run_is_started_looked_at_and_ends(served: Served) -> None:
    add_workflow(served)
    assert [each["name"] for each in served.get("workflows")["workflows"]] == ["hello"]
    assert served.get("workflows/hello")["workflow"]["nodes"][0]["id"] == "greet"
    made = start(served)
    assert (made.status, made.json["created"]) == (201, True)
    run = made.json["run"]["id"]
    assert run == "wf-1" and made.header("location") == "/api/v1/workflow-runs/wf-1"
    assert [each["id"] for each in served.get("workflow-runs")["runs"]] == [run]
    job = served.get(f"jobs?run={run}")["jobs"][0]["id"]
    served.bench.until_ended(int(job.removeprefix("job-")))
    served.bench.step()
    shown = served.get(f"workflow-runs/{run}?include=manifest")
    assert shown["run"]["state"] == "succeeded" and shown["manifest"]
    assert served.get(f"workflow-runs/{run}/why")


def test_a_run_that_is_asked_for_twice_is_started_once(flows: Served) -> None:  # fault G3
    first, again = (start(flows, idempotency_key="monday") for _ in range(2))
    assert (first.status, again.status) == (201, 200)
    assert (first.json["created"], again.json["created"]) == (True, False)
    assert again.json["run"]["id"] == first.json["run"]["id"]
    assert again.header("location") == first.header("location")
    for other in (
        start(flows, "bob", idempotency_key="monday"),
        start(flows, workflow="other", idempotency_key="monday"),
    ):
        assert (other.status, other.json["title"]) == (422, "key-reused")
        assert first.json["run"]["id"] in other.json["detail"]


@pytest.mark.parametrize("verb", ["stop", "retry"])
def test_a_submit_token_stops_and_retries_its_own_runs_alone(flows: Served, verb: str) -> None:
    mine, other = flows.token("submit", name="mine"), flows.token("submit", name="theirs")

    def ask(token: str, run: str) -> int:
        return flows.ask_as(token, "POST", f"workflow-runs/{run}/{verb}", {}).status

    made = flows.ask_as(other, "POST", "workflows/hello/runs", {"params": {"who": "ada"}})
    run = made.json["run"]["id"]
    if verb == "retry":
        assert flows.ask_as(other, "POST", f"workflow-runs/{run}/stop", {}).status == 202
    before = flows.bench.client.events.last()
    assert ask(mine, run) == 403
    assert flows.bench.client.events.last() == before
    assert ask(other, run) in (201, 202)
    again = start(flows).json["run"]["id"]
    if verb == "retry":
        assert flows.post(f"workflow-runs/{again}/stop", {}).status == 202
    assert ask(flows.token("operate"), again) in (201, 202)


def test_a_token_of_a_template_starts_no_run(flows: Served) -> None:
    assert flows.ask("PUT", "templates/t", {"argv": ["true"]}).status == 201
    bound = flows.token("submit", name="bound", templates=("t",))
    before = flows.bench.client.events.last()
    heard = flows.ask_as(bound, "POST", "workflows/hello/runs", {"params": {"who": "ada"}})
    assert heard.status == 403 and flows.bench.client.events.last() == before


@pytest.mark.parametrize(
    ("body", "code"),
    [({}, 400), ({"params": {"who": "ada", "x": "y"}}, 400), ({"params": []}, 400),
     ({"params": {"who": "ada"}, "after": ["job-999"]}, 404),
     ({"params": {"who": "ada"}, "unknown": 1}, 400)],
)  # fmt: skip
def test_what_a_workflow_does_not_take_is_refused(
    flows: Served, body: dict[str, Any], code: int
) -> None:
    before = flows.bench.client.events.last()
    assert flows.post("workflows/hello/runs", body).status == code
    assert flows.bench.client.events.last() == before
