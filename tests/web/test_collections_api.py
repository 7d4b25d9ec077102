"""Groups, schedules, templates, settings and reservations over HTTP."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from served import Served, on_both_stores

from harness import Bench


def test_a_group_is_made_joined_closed_and_cancelled(shared: Served) -> None:
    made = shared.post("groups", {"name": "release", "open": True, "on_failure": "continue"})
    group = made.json["group"]["id"]
    assert made.status == 201 and made.header("location") == f"/api/v1/groups/{group}"
    job = shared.submit("true", group=group, require_approval=True)
    shown = shared.get(f"groups/{group}")["group"]
    assert [each["job"] for each in shown["members"]] == [f"job-{job}"]
    assert shared.get("groups/release")["group"]["id"] == group
    assert group in [each["id"] for each in shared.get("groups")["groups"]]
    assert shared.post(f"groups/{group}/close", {}).status == 200
    assert shared.post("jobs", {"argv": ["true"], "group": group}).status == 409
    heard = shared.post(f"groups/{group}/cancel", {})
    assert heard.status == 200 and heard.json["cancelled"] == [f"job-{job}"]
    assert shared.get(f"jobs/{job}")["job"]["state"] == "cancelled"


def test_a_group_is_made_of_waiting_jobs(shared: Served) -> None:
    jobs = [f"job-{shared.submit('true', require_approval=True)}" for _ in range(2)]
    group = shared.post("groups", {"jobs": jobs}).json["group"]
    assert [each["job"] for each in group["members"]] == jobs
    assert shared.post("groups", {"jobs": jobs}).status == 409
    assert shared.post("groups", {"mode": "odd"}).status == 400


@on_both_stores
def test_a_schedule_is_added_looked_at_triggered_and_removed(served: Served) -> None:
    body = {"name": "nightly", "cron": "30 0 * * *", "timezone": "UTC", "job": {"argv": ["true"]}}
    made = served.post("schedules", body)
    assert made.status == 201 and made.header("location") == "/api/v1/schedules/schedule-1"
    assert served.get("schedules/nightly")["schedule"]["enabled"] is True
    assert [each["name"] for each in served.get("schedules")["schedules"]] == ["nightly"]
    assert len(served.get("schedules/upcoming")["slots"]) == 1
    assert served.get("schedules/nightly/slots")["slots"] == []
    assert served.post("schedules/nightly/disable", {}).json["schedule"]["enabled"] is False
    assert served.post("schedules/nightly/enable", {}).json["schedule"]["enabled"] is True
    fired = served.post("schedules/nightly/trigger", {})
    assert fired.status == 201 and fired.json["job"]["schedule_id"]
    assert served.post("schedules/nightly/trigger", {}).status == 409, "it is still active"
    assert served.ask("DELETE", "schedules/nightly").status == 204
    assert served.ask("GET", "schedules/nightly").status == 404


@on_both_stores
def test_a_trigger_that_is_sent_twice_makes_one_job(served: Served) -> None:
    for name in ("one", "two"):
        body = {"name": name, "every": "1h", "job": {"argv": ["true"]}}
        assert served.post("schedules", body).status == 201
    first, second = (
        served.post("schedules/one/trigger", {}, idempotency_key="monday") for _ in range(2)
    )
    assert (first.status, second.status) == (201, 200)
    assert (first.json["created"], second.json["created"]) == (True, False)
    assert second.json | {"created": True} == first.json
    assert second.header("location") == first.header("location") == "/api/v1/jobs/job-1"
    other = served.post("schedules/two/trigger", {}, idempotency_key="monday")
    assert (other.status, other.json["title"]) == (422, "key-reused")
    assert len(served.get("jobs")["jobs"]) == 1


@pytest.mark.parametrize(
    "query",
    ["from=x", "until=2020-01-01T00:00Z&from=2020-01-02T00:00Z",
     "from=2026-01-01T00:00Z&until=2026-04-04T00:00Z", "limit=0"],
)  # fmt: skip
def test_what_is_to_come_is_asked_for_within_92_days(shared: Served, query: str) -> None:
    assert shared.ask("GET", f"schedules/upcoming?{query}").status == 400


def test_a_schedule_is_of_one_thing(shared: Served) -> None:
    both = {"cron": "* * * * *", "template": "t", "job": {"argv": ["true"]}}
    assert shared.post("schedules", both).status == 400
    assert shared.post("schedules", {"cron": "x", "job": {"argv": ["true"]}}).status == 400
    assert shared.post("schedules", {"job": {"argv": ["true"]}}).status == 400


def test_a_template_is_kept_used_replaced_and_archived(shared: Served) -> None:
    body = {"argv": ["make", "{what}"], "params": {"what": None}}
    assert shared.ask("PUT", "templates/build", body).status == 201
    assert shared.get("templates/build")["template"]["params"] == {"what": None}
    assert shared.post("jobs", {"template": "build"}).status == 400  # `what` must be given
    made = shared.post("jobs", {"template": "build", "params": {"what": "all"}})
    assert made.status == 201 and made.json["job"]["params"]["argv"] == ["make", "all"]
    body["params"] = {"what": "docs"}
    assert shared.ask("PUT", "templates/build", body).status == 200
    assert shared.post("jobs", {"template": "build"}).json["job"]["params"]["argv"][1] == "docs"
    assert shared.ask("DELETE", "templates/build").status == 204
    assert shared.post("jobs", {"template": "build"}).status == 409
    assert "build" not in [each["name"] for each in shared.get("templates")["templates"]]
    assert "build" in [each["name"] for each in shared.get("templates?all=true")["templates"]]


# -- settings ----------------------------------------------------------------------------------


def test_a_setting_of_the_store_is_changed_and_has_its_default_again(served: Served) -> None:
    def value() -> Any:
        found = served.get("settings")["settings"]
        return next(each["value"] for each in found if each["key"] == "scheduler.max_active")

    assert served.ask("PUT", "settings/scheduler.max_active", {"value": 7}).status == 200
    assert value() == 7
    assert served.ask("PUT", "settings/scheduler.max_active", {"value": None}).status == 200
    assert value() == 1
    for wrong in ("many", [], {}, 1.5, True):
        assert served.ask("PUT", "settings/scheduler.max_active", {"value": wrong}).status == 400
    assert served.ask("PUT", "settings/scheduler.nothing", {"value": 1}).status in (400, 404)


@pytest.mark.parametrize(
    "key", ["store.url", "web.origins", "web.socket_role", "approval.from_jobs", "agent.model",
            "worker.autostart"],
)  # fmt: skip
def test_settings_of_the_file_are_not_changed_over_http(shared: Served, key: str) -> None:
    """They may run code, or let others in."""
    heard = shared.ask("PUT", f"settings/{key}", {"value": "x"})
    assert heard.status == 403 and "config.toml" in heard.json["detail"]


def test_the_scheduler_is_paused_and_resumed(served: Served) -> None:
    assert served.post("scheduler/pause", {"reason": "lunch"}).json["paused"] is True
    assert served.get("scheduler")["paused_reason"] == "lunch"
    assert served.post("scheduler/resume", {}).json["paused"] is False
    assert served.post("scheduler/reset", {}).json == {"breakers": [], "jobs": []}
    assert served.get("scheduler/plan")["would_start"] == []


# -- reservations ------------------------------------------------------------------------------


@pytest.fixture
def one_slot(serve: Callable[..., Served], make_bench: Callable[..., Bench]) -> Served:
    return serve(make_bench(max_active=1))


@on_both_stores
def test_a_slot_is_held_waited_for_and_given_back(one_slot: Served) -> None:
    first = one_slot.post("reservations", {"note": "first"})
    assert first.status == 201 and first.json["reservation"]["state"] == "running"
    second = one_slot.post("reservations", {"note": "second"})
    assert second.status == 202 and second.json["reservation"]["state"] == "waiting"
    name = second.json["reservation"]["id"]
    heard = one_slot.post(f"reservations/{name}/renew", {})
    assert heard.status == 200 and heard.json["reservation"]["state"] == "waiting"
    assert one_slot.ask("DELETE", f"reservations/{first.json['reservation']['id']}").status == 204
    heard = one_slot.post(f"reservations/{name}/renew", {})
    assert heard.json["reservation"]["state"] == "running"
    assert one_slot.ask("DELETE", f"reservations/{name}").status == 204
    assert one_slot.ask("DELETE", f"reservations/{name}").status == 404
    assert one_slot.post(f"reservations/{name}/renew", {}).status == 404


def test_one_who_waits_for_a_slot_gets_it_when_it_is_free(one_slot: Served) -> None:
    first = one_slot.post("reservations", {}).json["reservation"]["id"]
    heard: list[Any] = []

    def ask() -> None:
        heard.append(one_slot.post("reservations", {"note": "next"}, prefer="wait=60"))

    waiting = threading.Thread(target=ask)
    waiting.start()
    one_slot.bench.until(lambda: len(one_slot.get("limits")["reservations"]) == 2)
    assert one_slot.ask("DELETE", f"reservations/{first}").status == 204
    waiting.join()
    assert heard[0].status == 201 and heard[0].json["reservation"]["state"] == "running"


def test_a_slot_that_nobody_renews_is_free_again(one_slot: Served) -> None:
    one_slot.ask("PUT", "settings/scheduler.reservation_expiry", {"value": "1s"})
    name = one_slot.post("reservations", {}).json["reservation"]["id"]
    job = one_slot.submit("true")
    one_slot.bench.until_ended(job)
    assert one_slot.post(f"reservations/{name}/renew", {}).status in (404, 409)


def test_a_slot_is_renewed_and_given_back_by_its_holder_alone(shared: Served) -> None:
    mine, other = shared.token("submit", name="mine"), shared.token("submit", name="theirs")
    made = shared.ask_as(mine, "POST", "reservations", {"note": "mine"}).json["reservation"]
    assert made["holder"] == "token:mine"
    path = f"reservations/{made['id']}"
    assert shared.ask_as(other, "POST", f"{path}/renew", {}).status == 403
    assert shared.ask_as(other, "DELETE", path).status == 403
    assert shared.ask_as(mine, "POST", f"{path}/renew", {}).status == 200
    assert shared.ask_as(mine, "DELETE", path).status == 204
    assert shared.post("reservations", {"note": "x" * 201}).status == 400
