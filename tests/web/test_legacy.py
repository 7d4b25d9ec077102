"""The routes of before: they work as they did, and say what has taken their place."""

from collections.abc import Callable
from typing import Any

import pytest
from served import Served

from headway.web.routes import LEGACY


@pytest.fixture(scope="module")
def old(shared: Served) -> Served:
    assert (
        shared.ask("PUT", "templates/t", {"argv": ["echo", "{x}"], "params": {"x": "1"}}).status
        == 201
    )
    return shared


def is_deprecated(heard: Any, successor: str) -> bool:
    assert heard.header("deprecation") == "true"
    assert heard.header("sunset").endswith("GMT")
    return bool(heard.header("link") == f'<{successor}>; rel="successor-version"')


@pytest.mark.req("D23")
def test_old_routes_work_and_say_that_they_are_old(old: Served) -> None:
    made = old.post("/jobs/t/trigger", {"params": {"x": 2}})
    assert made.status == 202 and is_deprecated(made, "/api/v1/jobs")
    job = made.json["job_id"]
    assert made.json["status"] == "QUEUED" and made.json["job"]["params"]["argv"] == ["echo", "2"]
    shown = old.ask("GET", f"/jobs/{job}")
    assert shown.json == old.get(f"jobs/{job}") and is_deprecated(shown, f"/api/v1/jobs/{job}")
    listed = old.ask("GET", "/jobs?limit=1")
    assert listed.json["jobs"][0]["id"] == job and is_deprecated(listed, "/api/v1/jobs")
    ended = old.post(f"/jobs/{job}/cancel", {})
    assert ended.status == 200 and is_deprecated(ended, f"/api/v1/jobs/{job}/cancel")


@pytest.mark.req("D23")
def test_an_old_batch_is_a_group(old: Served) -> None:
    made = old.post(
        "/jobs/batch/trigger",
        {"jobs": [{"template": "t"}, {"template": "t", "params": {"x": "9"}}]},
    )
    assert made.status == 202 and is_deprecated(made, "/api/v1/groups")
    group = made.json["group_id"]
    shown = old.ask("GET", f"/jobs/batch/{group}")
    assert shown.json == old.get(f"groups/{group}")
    assert is_deprecated(shown, f"/api/v1/groups/{group}")
    assert len(shown.json["group"]["members"]) == 2
    assert old.post("/jobs/batch/trigger", {"jobs": [{"template": "nothing"}]}).status == 404


@pytest.mark.req("D23")
def test_an_old_trigger_that_is_sent_twice_makes_one_job(old: Served) -> None:
    made = [old.post("/jobs/t/trigger", {}, idempotency_key="old") for _ in range(2)]
    assert [each.status for each in made] == [202, 202]
    assert made[0].json["job_id"] == made[1].json["job_id"]


def test_an_old_route_is_found_by_names_that_are_not_latin(old: Served) -> None:
    """What stands in a header is quoted."""
    made = old.post("groups", {"name": "größe-日本", "open": True})
    assert made.status == 201
    quoted = "gr%C3%B6%C3%9Fe-%E6%97%A5%E6%9C%AC"
    assert is_deprecated(old.ask("GET", f"/jobs/batch/{quoted}"), f"/api/v1/groups/{quoted}")
    job = old.submit("true")
    assert is_deprecated(old.ask("GET", f"/jobs/%23{job}"), f"/api/v1/jobs/%23{job}")


@pytest.mark.req("D23")
def test_without_the_setting_they_are_gone(serve: Callable[..., Served]) -> None:
    served = serve(**{"web.legacy": False})
    for each in LEGACY:
        path = each.path.replace("{template}", "t").replace("{job}", "1").replace("{group}", "1")
        assert served.ask(each.method, path).status == 404, path
    assert served.get("jobs")["jobs"] == []
