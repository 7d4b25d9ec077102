"""`headway artifacts` and `headway locks`."""

from commandline import CommandLine, wait_for


def test_artifacts_are_listed_and_shown(headway: CommandLine) -> None:
    assert "no job has published anything" in headway("artifacts", "list").stderr
    (headway.folder / "payload").write_text('{"rows": 3, "text": "\\u001b[2J"}')
    publish = headway.argv("artifacts", "publish", "report", "june", "--data", "payload")
    job = headway.submit("--produces", "custom:report:june", "--", *publish)
    consumer = headway.submit("--needs", "custom:report:june", "--", "true")
    headway("jobs", "wait", job, consumer)
    listed = headway("artifacts", "list").stdout.splitlines()
    assert listed[0].split() == ["Artifact", "State", "Made", "by", "Needed", "by", "Age"]
    assert listed[1].split()[:4] == ["custom:report:june", "present", job, consumer]
    assert all(len(line) <= 80 for line in listed)
    shown = headway("artifacts", "show", "custom:report:june").stdout
    assert shown.startswith("custom:report:june  present\n")
    assert f"made by    {job}" in shown and f"needed by  {consumer} true (succeeded)" in shown
    assert '"rows": 3' in shown and "\x1b" not in shown
    told = headway.json("artifacts", "show", "custom:report:june")
    assert told["data"] == {"rows": 3, "text": "\x1b[2J"}
    assert headway.json("artifacts", "list")["artifacts"][0]["state"] == "present"


def test_what_is_wrong_with_an_artifact_is_said(still: CommandLine) -> None:
    assert "no job has published" in still("artifacts", "show", "custom:a:b", code=3).stderr
    assert "not of a known kind" in still("artifacts", "show", "x", code=5).stderr
    outside = still("artifacts", "publish", "a", "b", code=5).stderr
    assert "only a running command publishes" in outside
    (still.folder / "bad").write_text('{"a": 1,\n "b": }')
    told = still("artifacts", "publish", "a", "b", "--data", "bad", code=5).stderr
    assert "--data bad is not JSON" in told and "(line 2, column 7)" in told
    still("artifacts", "publish", "a", "b", "--data", "none", code=3)
    still("artifacts", "publish", "a", "b", "--data", ".", code=5)


def test_locks_are_listed_with_holders_and_waiters(headway: CommandLine) -> None:
    assert "no lock is held" in headway("init").stderr + headway("locks").stderr
    headway("config", "set", "scheduler.max_active", "4")
    headway("submit", "--name", "n" * 100, "--lock", "k" * 90, "--", "sleep", "60")
    headway.until_running("1")
    headway("submit", "--lock", f"{'k' * 90}:shared", "--", "true")
    headway("submit", "--lock", "other", "--", "sleep", "60")
    headway.until_running("3")
    wait_for(lambda: headway.state("2") == "waiting_on_locks")
    lines = headway("locks").stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0].split() == ["Lock", "Job", "Name", "Mode", "Since"]
    assert "job-1" in lines[1] and "exclusive  holds it" in lines[1]
    assert "job-2" in lines[2] and "shared     1st in line" in lines[2]
    assert "job-3" in lines[3]
    told = headway.json("locks", "--job", "2")["locks"]
    assert [each["key"] for each in told] == ["k" * 90]
    assert told[0]["holders"][0]["job"] == "job-1"
    assert told[0]["waiters"][0]["reserves"] is True
    headway("locks", "--job", "9", code=3)
