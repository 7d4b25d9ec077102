"""Jobs over HTTP: submit, find, edit, retry, and what belongs to whom."""

import json
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from served import Served, on_both_stores

from headway.core.states import API_STATUS, Status
from headway.jobs.views import details

STATUSES = set(API_STATUS.values())


def number(document: dict[str, Any]) -> int:
    return int(document["id"].removeprefix("job-"))


def fails(served: Served, **entry: Any) -> int:
    """A job that has failed."""
    job = served.submit("false", **entry)
    served.bench.until_ended(job)
    return job


# -- submitting --------------------------------------------------------------------------------


@on_both_stores
def test_a_submitted_job_runs_as_its_document_says(served: Served) -> None:
    heard = served.post("jobs", {"argv": ["echo", "hi"], "name": "greet", "labels": {"a": "b"}})
    job = number(heard.json["job"])
    assert heard.status == 201 and heard.json["created"] is True
    assert heard.header("location") == f"/api/v1/jobs/job-{job}"
    assert heard.header("headway-worker") == "none"
    served.bench.until_ended(job)
    shown = served.get(f"jobs/{job}?include=chain,events")
    assert shown["job"]["state"] == "succeeded" and shown["job"]["run"]["exit_code"] == 0
    assert [each["id"] for each in shown["chain"]] == [f"job-{job}"]
    kinds = [each["kind"] for each in shown["events"]]
    assert kinds == ["submitted", "running", "succeeded"]
    assert shown["job"] == served.bench.client.document(job)


def test_a_job_gets_nothing_of_the_servers_own_environment(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_SERVER", "canary")
    served = serve()
    job = served.submit("sh", "-c", "env; pwd; umask")
    served.bench.until_ended(job)
    said = served.bench.client.jobs.log(job, "stdout").data.decode()
    assert "canary" not in said and "OF_THE_SERVER" not in said
    assert str(served.bench.folder) in said.splitlines() and "0077" in said.splitlines()


@pytest.mark.parametrize("entry", [{"argv": ["nosuch"]}, {"argv": ["true"], "cwd": "nosuch"}])
def test_what_is_not_there_is_refused_without_an_option_of_commands(
    shared: Served, entry: dict[str, Any]
) -> None:
    heard = shared.post("jobs", entry)
    assert heard.status == 400 and "nosuch" in heard.json["detail"]
    assert "no-check" not in heard.json["detail"]


def test_a_key_that_was_seen_makes_no_second_job(shared: Served) -> None:  # fault G3
    body = {"argv": ["true"], "name": "once"}
    first = shared.post("jobs", body, idempotency_key="k1")
    again = shared.post("jobs", body, idempotency_key="k1")
    assert (first.status, again.status) == (201, 200)
    assert again.json["created"] is False and again.json["job"]["id"] == first.json["job"]["id"]
    other = shared.post("jobs", {**body, "argv": ["false"]}, idempotency_key="k1")
    assert other.status == 422 and other.json["title"] == "key-reused"
    assert shared.post("jobs", {**body, "key": "k2"}, idempotency_key="k1").status == 400
    assert shared.post("jobs", {**body, "key": "k1"}, idempotency_key="k1").status == 200


@on_both_stores
def test_a_key_that_is_sent_many_times_at_once_makes_one_job(served: Served) -> None:  # fault G3
    served.token("admin")
    heard: list[Any] = []

    def send() -> None:
        heard.append(served.post("jobs", {"argv": ["true"]}, idempotency_key="same"))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(each.status for each in heard) == [*[200] * 7, 201]
    assert len({each.json["job"]["id"] for each in heard}) == 1


def test_the_jobs_of_a_graph_have_numbered_keys(shared: Served) -> None:  # fault G3
    graph = {"jobs": [{"id": "a", "argv": ["true"]}, {"id": "b", "argv": ["true"], "after": ["a"]}]}
    first = shared.post("graphs", graph, idempotency_key="g")
    again = shared.post("graphs", graph, idempotency_key="g")
    assert (first.status, again.status) == (201, 200)
    ids = [each["id"] for each in first.json["jobs"]]
    assert [each["id"] for each in again.json["jobs"]] == ids
    single = shared.post("jobs", {"argv": ["false"]}, idempotency_key="g/1")
    assert single.status == 422 and f"{ids[0]}," in single.json["detail"]
    assert shared.get(f"jobs/{ids[1]}")["job"]["after"] == [ids[0]]


def test_the_jobs_of_a_large_graph_are_described_together(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one, 5,000 took ten seconds, in one of the four threads that all share."""
    asked = []
    present_facts = details.present_facts

    def counted(*given: Any) -> Any:
        asked.append(given)
        return present_facts(*given)

    monkeypatch.setattr(details, "present_facts", counted)
    heard = served.post(
        "graphs", {"jobs": [{"id": f"n{n}", "argv": ["true"]} for n in range(1200)]}
    )
    assert heard.status == 201 and 0 < len(asked) < 10
    jobs = heard.json["jobs"]
    for each in (jobs[0], jobs[700], jobs[-1]):
        assert each == served.bench.client.document(each["id"])
    assert [each["id"] for each in jobs] == [f"job-{n}" for n in range(1, 1201)]


def test_a_graph_is_submitted_whole_or_not_at_all(shared: Served) -> None:
    before = shared.bench.client.events.last()
    for jobs in (
        [{"id": "a", "argv": ["true"]}, {"id": "b", "argv": ["true"], "after": ["c"]}],
        [{"id": "a", "argv": ["true"], "after": ["b"]}, {"id": "b", "argv": ["x"], "after": ["a"]}],
        [{"id": "a", "argv": ["true"]}, {"id": "a", "argv": ["true"]}],
        [],
    ):
        assert shared.post("graphs", {"jobs": jobs}).status == 400
    assert shared.bench.client.events.last() == before


def test_one_who_waits_gets_the_end_or_what_there_is(served: Served) -> None:
    heard: list[Any] = []

    def ask(seconds: int) -> None:
        heard.append(served.post("jobs", {"argv": ["true"]}, prefer=f"wait={seconds}"))

    ask(1)  # nothing runs meanwhile
    assert heard[0].status == 202 and heard[0].json["job"]["state"] == "queued"
    waiting = threading.Thread(target=ask, args=(60,))
    waiting.start()
    served.bench.until(lambda: not waiting.is_alive())
    assert heard[1].status == 200 and heard[1].json["job"]["state"] == "succeeded"


# -- finding -----------------------------------------------------------------------------------


@on_both_stores
def test_pages_show_every_job_once_the_newest_first(served: Served) -> None:
    jobs = [served.submit("true", name=f"n{each}") for each in range(7)]
    seen: list[int] = []
    path = "jobs?limit=3&name=n*"
    while True:
        heard = served.ask("GET", path)
        seen += [number(each) for each in heard.json["jobs"]]
        if heard.json["next"] is None:
            assert "link" not in heard.headers
            break
        link, _, rel = heard.header("link").partition("; ")
        assert rel == 'rel="next"' and link.startswith("</api/v1/jobs?")
        path = link[1:-1]
        served.submit("true", name="n-later")  # what is new is before the first page
    assert seen == jobs[::-1]


def test_a_cursor_is_of_its_own_question(shared: Served) -> None:
    for _ in range(3):
        shared.submit("true", name="paged")
    cursor = shared.get("jobs?limit=1&name=paged")["next"]
    assert shared.ask("GET", f"jobs?limit=1&name=paged&cursor={cursor}").status == 200
    assert shared.ask("GET", f"jobs?limit=2&name=paged&cursor={cursor}").status == 200
    for query in (f"limit=1&cursor={cursor}", f"name=other&cursor={cursor}", f"cursor={cursor}x"):
        assert shared.ask("GET", f"jobs?{query}").status == 400


def test_jobs_are_found_by_what_is_said_of_them(shared: Served) -> None:
    job = shared.submit("true", name="found", labels={"team": "a", "env": "x"})
    shared.submit("true", name="found", labels={"team": "b"})

    def found(query: str) -> list[int]:
        return [number(each) for each in shared.get(f"jobs?name=found&{query}")["jobs"]]

    assert found("label=team=a") == [job]
    assert found("label=team=a,env=x") == [job]
    assert found("label=team=a,env=y") == []
    assert len(found("state=queued")) == 2 and found("state=running,failed") == []
    assert len(found("status=QUEUED&since=1h")) == 2 and found("status=COMPLETED") == []


def test_a_graph_has_a_bound_and_says_what_is_beyond(served: Served) -> None:
    first = served.submit("true", name="first")
    last = served.submit("true", name="last", after=[f"job-{first}"])
    served.submit("true", name="beside")
    whole = served.get("graph")
    assert [each["job_id"] for each in whole["jobs"]] == ["job-1", "job-2", "job-3"]
    assert whole["more"] is False and len(whole["edges"]) == 1
    cut = served.get("graph?top=2")
    assert [each["job_id"] for each in cut["jobs"]] == ["job-1", "job-2"] and cut["more"] is True
    near = served.get(f"graph?job={last}&top=1")
    assert [each["job_id"] for each in near["jobs"]] == [f"job-{last}"] and near["more"] is True
    for wrong in ("0", "10001"):
        assert served.ask("GET", f"graph?top={wrong}").status == 400
    for form, begin in (("svg", b"<svg"), ("dot", b"digraph"), ("mermaid", b"flowchart")):
        heard = served.ask("GET", f"graph?format={form}")
        assert begin in heard.body[:200], heard


# -- one vocabulary ----------------------------------------------------------------------------


@pytest.mark.req("D12")
def test_every_answer_has_the_same_words_for_a_status(served: Served) -> None:
    """`status` is the word of the API; `state` is that of the store; nowhere is there a third."""
    served.bench.until_ended(served.submit("true", name="ok"))
    fails(served, name="bad")
    served.submit("true", name="asks", require_approval=True)
    served.submit("true", name="after", after=[f"job-{served.submit('true', name='first')}"])
    cancelled = served.submit("true", name="off")
    served.post(f"jobs/{cancelled}/cancel", {})
    served.ask("PUT", "templates/t", {"argv": ["true"]})
    answers = [
        served.get("jobs?limit=1000"), served.get("queue"), served.get("graph"), served.get("runs"),
        served.get("approvals"), served.get("/jobs"), served.get("scheduler"), served.get("events"),
        served.post("/jobs/t/trigger", {}).json, served.post("jobs", {"argv": ["true"]}).json,
    ]  # fmt: skip
    for each in served.get("jobs")["jobs"]:
        answers.append(served.get(f"jobs/{each['id']}?include=chain,events"))
    seen: dict[str, set[str]] = {"status": set(), "state": set()}
    for key, value in (pair for each in answers for pair in _pairs(each)):
        if key in seen and isinstance(value, str):
            seen[key].add(value)
    states = {str(each) for each in Status}
    assert seen["status"] <= STATUSES | states, seen["status"]  # of events it is the stored word
    assert {"QUEUED", "COMPLETED", "FAILED", "CANCELLED"} <= seen["status"]
    of_jobs = [job for each in answers for job in _jobs(each)]
    assert of_jobs
    for job in of_jobs:
        assert job["status"] == API_STATUS[Status(job["state"])], job["id"]
    text = json.dumps(answers)
    assert '"status": "succeeded"' not in json.dumps(of_jobs)
    assert '"dispatched"' not in text and '"status": "error"' not in text


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    for each in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from _pairs(each)


def _jobs(value: Any) -> Iterator[dict[str, Any]]:
    """The documents of jobs in an answer, wherever they stand."""
    if isinstance(value, dict) and {"id", "status", "state"} <= set(value):
        yield value
    for each in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from _jobs(each)


# -- changing ----------------------------------------------------------------------------------


def test_an_edit_names_what_it_was_decided_by(shared: Served) -> None:  # fault G4
    job = shared.submit("true", labels={"a": "1", "b": "2"})
    seen = shared.ask("GET", f"jobs/{job}").header("etag")
    heard = shared.ask("PATCH", f"jobs/{job}", {"name": "new", "labels": {"a": "3"}}, if_match=seen)
    assert heard.status == 200 and heard.header("etag") != seen
    assert heard.json["job"]["name"] == "new"
    assert heard.json["job"]["labels"] == {"a": "3", "b": "2"}
    assert shared.ask("PATCH", f"jobs/{job}", {"name": "old"}, if_match=seen).status == 412
    assert shared.get(f"jobs/{job}")["job"]["name"] == "new"
    assert shared.ask("PATCH", f"jobs/{job}", {}).status == 400


def test_what_has_ended_is_not_changed(shared: Served) -> None:
    job = fails(shared)
    heard = shared.ask("PATCH", f"jobs/{job}", {"argv": ["true"]})
    assert heard.status == 409 and "Cannot modify params" in heard.json["detail"]
    assert shared.post(f"jobs/{job}/cancel", {}).status == 409


def test_the_order_of_the_queue_is_changed_by_what_was_seen(served: Served) -> None:  # fault G4
    jobs = [f"job-{served.submit('true')}" for _ in range(3)]
    seen = served.ask("GET", "queue").header("etag")
    order = {"order": jobs[::-1]}
    assert served.ask("PUT", "queue", order).status == 428
    assert served.ask("PUT", "queue", order, if_match=seen).status == 200
    assert [each["id"] for each in served.get("queue")["jobs"]] == jobs[::-1]
    assert served.ask("PUT", "queue", order, if_match=seen).status == 412
    assert served.post(f"jobs/{jobs[0]}/move", {"front": True}).status == 200
    assert served.get("queue")["jobs"][0]["id"] == jobs[0]
    assert served.post(f"jobs/{jobs[0]}/move", {}).status == 400


def test_a_cancel_says_whether_it_must_still_end(served: Served) -> None:
    os.mkfifo(served.bench.folder / "go")
    running = served.submit("sh", "-c", "read x < go", cwd=str(served.bench.folder))
    served.bench.until(lambda: served.get(f"jobs/{running}")["job"]["state"] == "running")
    waiting = served.submit("true", require_approval=True)
    assert served.post(f"jobs/{waiting}/cancel", {}).status == 200
    assert served.post(f"jobs/{running}/cancel", {}).status == 202
    served.bench.until_ended(running)


def test_an_ended_job_is_removed_unless_others_refer_to_it(shared: Served) -> None:
    job = fails(shared)
    other = shared.submit("true", after=[f"job-{shared.submit('true', require_approval=True)}"])
    assert shared.ask("DELETE", f"jobs/{job}").status == 204
    assert shared.ask("GET", f"jobs/{job}").status == 404
    assert shared.ask("DELETE", f"jobs/{other}").status == 409


# -- again -------------------------------------------------------------------------------------


@pytest.mark.req("E20")
@pytest.mark.parametrize("path", ["/api/v1/runs/run-{}/retry", "/api/job-runs/{}/retry"])
def test_a_run_is_retried_by_its_id_however_often_it_was_tried(shared: Served, path: str) -> None:
    job = fails(shared, retries=0)
    for _ in range(3):
        heard = shared.post(path.format(job), {})
        assert heard.status == 201, heard
        again = number(heard.json["job"])
        assert again > job and heard.json["job"]["retry_of"] == f"job-{job}"
        assert heard.header("location") == f"/api/v1/jobs/job-{again}"
        shared.bench.until_ended(again)
        job = again
    assert shared.get(f"runs/{job}")["job"] == f"job-{job}"


@pytest.mark.req("E20")
def test_a_job_that_never_ran_has_no_run_to_retry(shared: Served) -> None:
    job = shared.submit("true", require_approval=True)
    assert shared.post(f"runs/{job}/retry", {}).status == 404


def test_a_retry_says_first_what_it_would_do(shared: Served) -> None:
    job = fails(shared)
    before = shared.bench.client.events.last()
    heard = shared.post(f"jobs/{job}/retry", {"dry_run": True})
    assert heard.status == 200 and heard.json["retry_set"] == [f"job-{job}"]
    assert shared.bench.client.events.last() == before
    done = shared.submit("true")
    shared.bench.until_ended(done)
    assert shared.post(f"jobs/{done}/retry", {}).status == 409
    assert shared.post(f"jobs/{done}/retry", {"again": True}).status == 201


# -- whose -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "jobs/{}", {"name": "mine"}), ("POST", "jobs/{}/cancel", {}),
        ("POST", "jobs/{}/cancel", {"downstream": True}), ("POST", "jobs/{}/retry", {}),
        ("POST", "jobs/{}/retry", {"dry_run": True}), ("POST", "runs/{}/retry", {}),
        ("POST", "/api/job-runs/{}/retry", {}), ("POST", "/jobs/{}/cancel", {}),
        ("POST", "groups", {"jobs": ["{}"]}),
    ],
)  # fmt: skip
def test_a_submit_token_changes_its_own_jobs_alone(
    shared: Served, method: str, path: str, body: dict[str, Any]
) -> None:
    mine, other = shared.token("submit", name="mine"), shared.token("submit", name="theirs")

    def job_of(token: str) -> int:
        made = shared.ask_as(token, "POST", "jobs", {"argv": ["false"]})
        job = number(made.json["job"])
        if "retry" in path:
            shared.bench.until_ended(job)
        return job

    def ask(token: str, job: int) -> int:
        given = json.loads(json.dumps(body).replace("{}", str(job)) if body else "{}")
        return shared.ask_as(token, method, path.format(job), given).status

    theirs = job_of(other)
    before = shared.bench.client.events.last()
    assert ask(mine, theirs) == 403
    assert shared.bench.client.events.last() == before
    assert ask(mine, job_of(mine)) in (200, 201)
    assert ask(shared.token("operate"), theirs) in (200, 201)


def test_a_cancel_of_all_that_follows_asks_for_all_of_it(shared: Served) -> None:
    mine, other = shared.token("submit", name="mine"), shared.token("submit", name="theirs")
    first = shared.ask_as(mine, "POST", "jobs", {"argv": ["true"], "require_approval": True})
    job = first.json["job"]["id"]
    shared.ask_as(other, "POST", "jobs", {"argv": ["true"], "after": [job]})
    assert shared.ask_as(mine, "POST", f"jobs/{job}/cancel", {"downstream": True}).status == 403
    assert shared.ask_as(mine, "POST", f"jobs/{job}/cancel", {}).status == 200
