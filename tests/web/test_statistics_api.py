"""Numbers over time over HTTP."""

from served import Served, on_both_stores


@on_both_stores
def test_numbers_over_time_are_served(served: Served) -> None:
    job = served.submit("true", require_approval=True, name="build")
    found = served.get("statistics/load?span=5m")
    assert len(found["buckets"]) == 5 and found["buckets"][-1]["waiting"] == 1
    assert len(served.get("statistics/load")["buckets"]) == 60
    assert [each["job"] for each in served.get("statistics/jobs/build")["runs"]] == [f"job-{job}"]
    assert served.get("statistics/workflows/nightly")["runs"] == []
    assert len(served.get("statistics/spend?days=7")["days"]) == 7
    assert served.ask("GET", "statistics/load?span=1y").status == 400
    assert served.ask("GET", "statistics/schedules/nightly").status == 404
    body = {"name": "nightly", "every": "1h", "job": {"argv": ["true"]}}
    assert served.post("schedules", body).status == 201
    assert served.get("statistics/schedules/nightly")["runs"] == []


def test_timelines_are_served(shared: Served) -> None:
    group = shared.post("groups", {"name": "release", "open": True}).json["group"]["id"]
    job = shared.submit("true", group=group, require_approval=True)
    for path in (f"jobs/{job}/timeline", f"groups/{group}/timeline"):
        (row,) = shared.get(path)["rows"]
        assert row["job"] == f"job-{job}" and row["intervals"][-1]["until"] is None
    assert shared.ask("GET", "workflow-runs/wf-99/timeline").status == 404
    assert shared.ask("GET", "workflow-runs/99/timeline").status == 404
