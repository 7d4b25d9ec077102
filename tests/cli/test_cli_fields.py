"""`jobs list` and `jobs show` with chosen fields and formats, and the filters of the list."""

import json
from pathlib import Path

import pytest
from commandline import CommandLine

from harness import Site
from headway.jobs.views.fields import COMPUTED, FIELDS, OF_THE_PRESENT

OF_THE_GRAPH = (
    "after,dependencies,locks,approval_required,approval_state,approval_decided_by,wait,waited_on,"
    "pinned_head,artifacts,workflow,workflow_template,workflow_node,execution_root"
)


@pytest.fixture
def gated(still: CommandLine) -> CommandLine:
    """A job that uses everything a job of the graph can have."""
    still("submit", "--name", "first", "--label", "team=a", "--", "true")
    still(
        *("submit", "--name", "second", "--after", "1", "--needs", "custom:a:b"),
        *("--produces", "custom:c:d", "--lock", "repo:shared", "--require-approval"),
        *("--label", "team=b", "--", "true"),
    )
    return still


@pytest.mark.req("V82")
def test_every_field_of_the_graph_is_shown(gated: CommandLine) -> None:
    shown = gated.out("jobs", "show", "2", "--fields", OF_THE_GRAPH).splitlines()
    told = dict(line.strip().split("  ", 1) for line in shown[1:])
    assert {name: value.strip() for name, value in told.items() if name != "wait"} == {
        "after": "job-1",
        "dependencies": "custom:a:b",
        "locks": "repo:shared",
        "approval required": "yes",
        "approval state": "pending",
        "artifacts": "custom:c:d",
        "waited on": "dependencies",
    }
    whole = gated.out("jobs", "show", "2")
    for line in ("after      job-1", "needs      custom:a:b", "produces   custom:c:d"):
        assert line in whole
    assert "approval   pending" in whole and "locks      repo:shared" in whole
    (listed,) = json.loads(
        gated.out("jobs", "list", "--format", "json", "--name", "s*", "--fields", OF_THE_GRAPH)
    )["jobs"]
    assert list(listed) == OF_THE_GRAPH.split(",")
    assert listed["dependencies"] == ["custom:a:b"] and listed["approval_decided_by"] is None


@pytest.mark.req("V82", "V83")
@pytest.mark.parametrize("form", ["block", "table", "json"])
def test_every_field_can_be_shown_in_every_format(headway: CommandLine, form: str) -> None:
    headway("exec", "--lock", "x", "--env", "A=b", "--", "true")
    headway("submit", "--delay", "1h", "--after", "1", "--", "true")
    for verb in (["jobs", "list"], ["jobs", "show", "1"], ["jobs", "show", "2"]):
        done = headway(*verb, "--format", form, "--fields", ",".join(FIELDS))
        assert done.stdout
        if form == "json":
            document = json.loads(done.stdout)
            found = document["jobs"][0] if "jobs" in document else document["job"]
            assert set(found) == set(FIELDS)


@pytest.mark.req("V83")
def test_the_table_and_the_block_have_the_chosen_fields(gated: CommandLine) -> None:
    table = gated("jobs", "list", "--fields", "id,labels,approval_state").stdout.splitlines()
    assert table[0].split("  ") == ["Job", "", "Labels", "Approval state"]
    assert table[2].split() == ["job-2", "team=b", "pending"]
    block = gated("jobs", "list", "--format", "block", "--fields", "id,labels").stdout
    assert block == "job-1\n  labels  team=a\n\njob-2\n  labels  team=b\n"


@pytest.mark.req("V83")
def test_fields_and_format_of_each_view_are_configured_for_themselves(gated: CommandLine) -> None:
    gated("config", "set", "display.lists.jobs.fields", "id, labels")
    assert gated.out("jobs", "list").splitlines()[0].split() == ["Job", "Labels"]
    gated("config", "set", "display.lists.jobs.format", "block")
    assert gated.out("jobs", "list").startswith("job-1\n  labels  team=a")
    assert "Events" in gated.out("jobs", "show", "1"), "the other view is as it was"
    gated("config", "set", "display.lists.jobs_show.fields", "name")
    assert gated.out("jobs", "show", "1") == "job-1\n  name  first"
    gated("config", "set", "display.lists.jobs_show.format", "json")
    assert json.loads(gated.out("jobs", "show", "1")) == {"version": 1, "job": {"name": "first"}}
    assert gated.out("jobs", "show", "1", "--format", "block", "--fields", "slug,name") == (
        "job-1\n  name  first"
    )
    assert gated.out("jobs", "list", "--format", "table", "--fields", "name").split() == [
        *("Name", "first", "second"),
    ]


@pytest.mark.req("V83")
def test_json_is_whole_whatever_is_configured(gated: CommandLine) -> None:
    before = gated.json("jobs", "show", "1"), gated.json("jobs", "list")["jobs"]
    for view in ("jobs", "jobs_show"):
        gated("config", "set", f"display.lists.{view}.fields", "id")
        gated("config", "set", f"display.lists.{view}.format", "block")
    assert (gated.json("jobs", "show", "1"), gated.json("jobs", "list")["jobs"]) == before
    assert gated.json("jobs", "list", "--fields", "id")["jobs"][0] == {"id": "job-1"}


@pytest.mark.req("V83")
def test_an_unknown_field_is_refused_and_reported(gated: CommandLine) -> None:
    for argv in (
        ["jobs", "list", "--fields", "id,nope"],
        ["jobs", "show", "1", "--fields", "nope"],
        ["config", "set", "display.lists.jobs.fields", "id,nope"],
        ["config", "set", "display.lists.jobs.format", "nope"],
        ["jobs", "list", "--format", "nope"],
        ["jobs", "show", "1", "--format", "table", "--json"],
    ):
        assert "nope" in gated(*argv, code=5).stderr or "--json" in argv
    with (gated.home / "config.toml").open("a") as file:
        file.write('[display.lists.jobs]\nfields = ["id", "nope"]\n')
    findings = gated.json("doctor", code=1)["findings"]
    (red,) = [each["detail"] for each in findings if each["level"] == "red"]
    assert "display.lists.jobs.fields: 'nope' is no field of a job" in red


def test_every_field_is_documented_and_is_in_the_document(gated: CommandLine) -> None:
    docs = Path(__file__).parents[2] / "docs"
    views = (docs / "views.md").read_text()
    assert all(f"`{name}`" in views for name in (*COMPUTED, *OF_THE_PRESENT))
    document = gated.json("jobs", "show", "1")["job"]
    assert set(FIELDS) == set(document) | set(COMPUTED) | set(OF_THE_PRESENT)


# -- filters --------------------------------------------------------------------------------------


def ids(line: CommandLine, *argv: str) -> list[str]:
    return [job["id"] for job in line.json("jobs", "list", *argv)["jobs"]]


def test_jobs_are_listed_by_their_name(still: CommandLine) -> None:
    for name in ("build api", "build web", "Build", "100%", "b_ild", "[x]"):
        still("submit", "--name", name, "--", "true")
    assert ids(still, "--name", "build*") == ["job-1", "job-2"]
    assert ids(still, "--name", "*[aw]*") == ["job-1", "job-2"]
    assert ids(still, "--name", "?uild") == ["job-3"]
    assert ids(still, "--name", "b_*") == ["job-5"]
    assert ids(still, "--name", "100%") == ["job-4"]
    assert ids(still, "--name", "[[]x]") == ["job-6"]
    assert "no such jobs" in still("jobs", "list", "--name", "nope").stderr


def test_jobs_are_listed_by_when_they_were_submitted(still: CommandLine) -> None:
    still("submit", "--", "true")
    time = still.json("jobs", "show", "1")["job"]["created_at"]
    still("submit", "--", "true")
    assert ids(still, "--since", "1h") == ["job-1", "job-2"]
    assert ids(still, "--since", time) == ["job-1", "job-2"]
    later = still.json("jobs", "show", "2")["job"]["created_at"]
    assert ids(still, "--since", later) == ["job-2"]
    assert ids(still, "--since", "2100-01-01") == []
    assert "later" in still("jobs", "list", "--since", "later", code=5).stderr


def test_jobs_about_nothing_are_not_listed_by_a_subject(still: CommandLine) -> None:
    still("submit", "--", "true")
    assert ids(still, "--subject", "x") == []


def test_a_group_to_list_must_be_there(still: CommandLine) -> None:
    still("submit", "--", "true")
    assert "no group" in still("jobs", "list", "--group", "x", code=3).stderr


def test_filters_hold_together(gated: CommandLine) -> None:
    waiting = ("--state", "waiting_on_deps")
    assert ids(gated, "--label", "team=b", *waiting, "--name", "s*") == ["job-2"]
    assert ids(gated, "--label", "team=b", "--name", "f*") == []
    assert ids(gated, "--label", "team=b", "--label", "x=y") == []
    assert ids(gated, "--state", "queued", "--status", "RUNNING") == []
    assert ids(gated, "--status", "QUEUED", "--status", "RUNNING") == ["job-1", "job-2"]


def test_a_limit_that_cuts_something_off_says_so(gated: CommandLine) -> None:
    for form in ([], ["--format", "block"], ["--json"]):
        done = gated("jobs", "list", "--limit", "1", *form)
        assert "job-2" in done.stdout
        assert "older jobs are not shown (--limit 1)" in done.stderr
        assert "older jobs" not in gated("jobs", "list", "--limit", "2", *form).stderr
    assert ids(gated, "--limit", "1", "--label", "team=a") == ["job-1"]


def test_filters_on_both_stores(site: Site) -> None:
    for number in range(250):  # more than one page
        site.submit("true", name=f"job {number:03}", labels={"odd": str(number % 2)})
    found, more, *_ = site.client.jobs.list(labels={"odd": "1"}, name="job 2*", limit=5)
    assert [each["name"] for each in found] == [f"job {each}" for each in range(241, 250, 2)]
    assert more
    found, more, *_ = site.client.jobs.list(labels={"odd": "1"})
    assert len(found) == 125 and not more
    assert site.client.listing(states=["running"]) == []
    assert len(site.client.listing(statuses=["QUEUED"], name="*[05]")) == 50
