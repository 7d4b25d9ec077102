"""`headway groups` as people use it, on both stores."""

import json
import re
from typing import Any

from harness import Site

HOUR = 3_600_000_000


def document(site: Site, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(site.run(*words, "--json").stdout)
    assert found["version"] == 1
    return found


def test_a_group_is_made_filled_closed_and_shown(site: Site) -> None:
    assert site.run("groups", "create", "--name", "nightly").stdout == "group-1\n"
    one = site.run("submit", "--group", "nightly", "--delay", "1h", "--", "true").stdout.strip()
    two = site.run("submit", "--group", "1", "--", "true").stdout.strip()
    told = document(site, "groups", "show", "group-1")["group"]
    assert (told["id"], told["name"], told["status"]) == ("group-1", "nightly", "RUNNING")
    assert (told["mode"], told["on_failure"], told["closed_at"]) == ("sequential", "stop", None)
    assert (told["done"], told["total"], told["counts"]) == (0, 2, {"queued": 2})
    assert [(each["sequence_number"], each["job"]) for each in told["members"]] == [
        (1, one),
        (2, two),
    ]
    assert document(site, "jobs", "show", two)["job"]["group_id"] == "group-1"
    shown = site.run("groups", "show", "nightly").stdout
    assert "0 of 2 done: 2 queued" in shown and "others may join" in shown
    assert re.search(rf"^2  {two}  queued  true", shown, re.M)
    assert "RUNNING (open)  0 of 2" in site.run("groups", "list").stdout
    assert "group-1 is closed; it is RUNNING" in site.run("groups", "close", "nightly").stderr
    assert "is closed already" in site.run("groups", "close", "nightly").stderr
    assert document(site, "groups", "list")["groups"][0]["closed_at"] is not None


def test_a_group_is_cancelled_as_a_whole(site: Site) -> None:
    site.run("groups", "create", "--mode", "parallel")
    for _ in range(2):
        site.run("submit", "--group", "1", "--", "true")
    assert "cancelled 2 jobs of group-1" in site.run("groups", "cancel", "1").stderr
    found = document(site, "groups", "show", "1")["group"]
    assert (found["status"], found["counts"]) == ("CANCELLED", {"cancelled": 2})
    again = site.run("groups", "cancel", "1", check=False)
    assert again.returncode == 4 and "group-1 has already ended (CANCELLED)" in again.stderr
    assert "CANCELLED" in site.run("groups", "list").stdout


def test_jobs_that_wait_become_a_group(site: Site) -> None:
    one, two = (f"job-{site.submit('true', delay=HOUR)}" for _ in range(2))
    words = ("groups", "create", "--on-failure", "skip", "--jobs", two, one)
    made = document(site, *words)["group"]
    assert [each["job"] for each in made["members"]] == [two, one]
    assert made["closed_at"] is not None and made["on_failure"] == "skip"
    third = f"job-{site.submit('true', delay=HOUR)}"
    assert (
        document(site, "groups", "create", "--open", "--jobs", third)["group"]["closed_at"] is None
    )


def test_the_jobs_of_a_file_become_a_group(site: Site) -> None:
    (site.folder / "g.json").write_text(
        '[{"id": "a", "argv": ["true"]}, {"id": "b", "argv": ["true"]}]'
    )
    made = document(site, "groups", "create", "--name", "whole", "--graph", "g.json")["group"]
    assert [each["name"] for each in made["members"]] == ["a", "b"]
    assert made["closed_at"] is not None
    listed = document(site, "jobs", "list", "--group", "whole")["jobs"]
    assert [each["sequence_number"] for each in listed] == [1, 2]


def test_a_file_may_name_the_group_of_its_jobs(site: Site) -> None:
    site.run("groups", "create", "--name", "g")
    (site.folder / "g.json").write_text(
        '[{"id": "a", "argv": ["true"], "group": "g"},'
        ' {"id": "b", "argv": ["true"], "group": "group-1", "last": true}]'
    )
    site.run("submit", "--graph", "g.json")
    told = document(site, "groups", "show", "g")["group"]
    assert [each["name"] for each in told["members"]] == ["a", "b"]
    assert told["closed_at"] is not None


def test_jobs_are_listed_by_their_group(site: Site) -> None:
    site.run("groups", "create", "--name", "g")
    inside = site.submit("true", group="g")
    site.submit("true")
    for text in ("g", "1", "group-1"):
        found = document(site, "jobs", "list", "--group", text)["jobs"]
        assert [each["id"] for each in found] == [f"job-{inside}"]
    unknown = site.run("jobs", "list", "--group", "h", check=False)
    assert unknown.returncode == 3 and "there is no group 'h'" in unknown.stderr


WRONG: tuple[tuple[tuple[str, ...], int, str], ...] = (
    (("groups", "show", "nope"), 3, "there is no group 'nope'"),
    (("groups", "show", "9"), 3, "there is no group-9"),
    (("groups", "cancel", "9"), 3, "there is no group-9"),
    (("groups", "close", "nope"), 3, "there is no group 'nope'"),
    (("groups", "create", "--name", "7"), 5, "looks like the id of a group"),
    (("groups", "create", "--name", ""), 5, "printable characters"),
    (("groups", "create", "--mode", "both"), 2, "'both' is not one of"),
    (("groups", "create", "--on-failure", "cry"), 2, "'cry' is not one of"),
    (("groups", "create", "--jobs"), 2, "Name the jobs"),
    (("groups", "create", "job-1"), 2, "Name the jobs"),
    (("groups", "create", "--open"), 2, "--open goes with --jobs"),
    (("groups", "create", "--jobs", "job-9"), 3, "there is no job-9"),
    (("groups", "create", "--jobs", "x"), 3, "'x' is not a job"),
    (("groups", "create", "--jobs", "1", "--graph", "f"), 2, "not both"),
    (("groups", "create", "--graph", "none.json"), 5, "none.json"),
    (("submit", "--group", "g", "--", "true"), 3, "there is no group 'g'"),
    (("submit", "--last", "--", "true"), 5, "--last is about a group"),
    (("submit", "--group", "", "--", "true"), 5, "group"),
)


def test_what_is_wrong_is_said_in_one_line_and_nothing_is_made(file_site: Site) -> None:
    site = file_site
    for words, code, told in WRONG:
        done = site.run(*words, check=False)
        assert done.returncode == code, (words, done.stderr)
        assert told in done.stderr and "Traceback" not in done.stderr
        assert code == 2 or done.stderr.count("\n") == 1
    assert document(site, "groups", "list", "--all")["groups"] == []
    assert document(site, "jobs", "list", "--all")["jobs"] == []


def test_why_jobs_of_a_group_stay_is_said_until_it_has_ended(site: Site) -> None:
    site.run("groups", "create", "--name", "g")
    job = site.submit("true", group="g")
    site.run("jobs", "cancel", str(job))
    told = site.run("jobs", "gc", "--days", "0").stderr
    assert "kept 1: its group has not ended" in told
    refused = site.run("jobs", "clean", str(job), check=False)
    assert refused.returncode == 4 and "its group has not ended" in refused.stderr
    site.run("groups", "close", "g")
    assert "removed 1 job" in site.run("jobs", "gc", "--days", "0").stderr
    assert document(site, "groups", "list", "--all")["groups"] == []


def test_a_failed_member_is_said_to_have_stopped_an_open_group(site: Site) -> None:
    site.run("groups", "create", "--name", "g")
    one, _ = (site.submit("true", group="g") for _ in range(2))
    site.run("jobs", "cancel", str(one))
    told = document(site, "groups", "show", "g")["group"]
    assert (told["status"], told["stopped_by"]) == ("RUNNING", f"job-{one}")
    assert "RUNNING (stopped)  2 of 2" in site.run("groups", "list").stdout
    shown = site.run("groups", "show", "g").stdout
    assert "status      RUNNING (stopped)" in shown
    assert f"stopped     job-{one} did not succeed; headway jobs retry job-{one}" in shown
    assert "nobody joins while it is stopped" in shown and "others may join" not in shown
    waited = site.run("groups", "wait", "g", check=False)
    assert f"group-1 has stopped, nobody joins it; headway jobs retry job-{one}" in waited.stderr
    assert "others may join" not in waited.stderr
    site.run("groups", "close", "g")
    closed = document(site, "groups", "list")["groups"][0]
    assert (closed["status"], closed["stopped_by"]) == ("CANCELLED", None)


def test_a_group_that_goes_on_after_failures_is_not_stopped(site: Site) -> None:
    site.run("groups", "create", "--name", "g", "--on-failure", "continue")
    site.run("jobs", "cancel", str(site.submit("true", group="g")))
    assert document(site, "groups", "show", "g")["group"]["stopped_by"] is None
    assert "RUNNING (open)" in site.run("groups", "list").stdout


def test_nothing_runs_over_eighty_columns(site: Site) -> None:
    site.run("groups", "create", "--name", "n" * 200)
    site.submit("true", group="1", name="m" * 150)
    site.submit("true", group="1", name="m" * 150)
    for words in (("groups", "list"), ("groups", "show", "1")):
        lines = site.run(*words).stdout.splitlines()
        assert all(len(line) <= 80 for line in lines[1:]), lines
