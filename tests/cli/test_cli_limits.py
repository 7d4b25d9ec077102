"""Limits on the command line: set, shown, refused, changed while a worker runs."""

import pytest
from commandline import CommandLine, wait_for

GPU = "scheduler.limits.resource.gpu"
POLICY = """
class PerCustomer:
    name = "customer"

    def keys(self, job):
        if "broken" in job.labels:
            raise RuntimeError("no idea")
        return (f"customer:{job.labels['customer']}",) if "customer" in job.labels else ()
"""


def test_a_limit_is_set_shown_listed_and_taken_away(still: CommandLine) -> None:
    assert still.out("config", "get", GPU) == "none"
    still("config", "set", GPU, "1")
    assert still.out("config", "get", GPU) == "1"
    assert f"{GPU} = 1  (from the store)" in still.out("config", "list")
    still("config", "set", "scheduler.limits.rate.claude", "10/min")
    still("submit", "--resource", "gpu", "--rate", "claude", "--", "sleep", "60")
    lines = still.out("scheduler", "status").splitlines()
    assert [line.split(None, 1)[1] for line in lines if line.startswith(("limit", "rate"))] == [
        "resource gpu: 0 of 1 used",
        "claude: 0 of 10/min used",
    ]
    still("config", "set", GPU, "none")
    assert still.json("config", "get", GPU)["value"] is None
    assert still.json("scheduler", "status")["limits"] == []


@pytest.mark.parametrize(
    ("key", "value", "code", "message"),
    [
        (GPU, "-1", 5, "too small"),
        (GPU, "lots", 5, "not a whole number"),
        ("scheduler.limits.rate.x", "5", 5, "write it like 10/min"),
        ("scheduler.limits.resource.a b", "1", 5, "may have letters, digits"),
        ("scheduler.limits.colour.red", "1", 3, "there is no setting"),
        ("scheduler.limits.resource", "1", 3, "there is no setting"),
        ("scheduler.pressure.load", "high", 5, "not a number"),
        ("scheduler.pressure.memory", "some", 5, "not a size"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_in_one_line(
    still: CommandLine, key: str, value: str, code: int, message: str
) -> None:
    before = still.json("config", "list")
    done = still("config", "set", key, value, code=code)
    assert message in done.stderr and len(done.stderr.splitlines()) == 1
    assert still.json("config", "list") == before


@pytest.mark.req("G8", "D21")
def test_a_limit_is_obeyed_by_the_next_start_of_a_running_worker(headway: CommandLine) -> None:
    headway("config", "set", "scheduler.max_active", "10")
    for _ in range(2):
        headway("submit", "--resource", "gpu", "--", "sleep", "60")
    headway.until_running("1")
    headway.until_running("2")
    headway("config", "set", GPU, "2")
    headway("submit", "--resource", "gpu", "--", "sleep", "60")
    headway("submit", "--", "sleep", "60")
    headway.until_running("4")
    assert headway.state("3") == "queued"
    assert "all 2 of resource gpu are in use" in headway.out("why", "3")
    headway("config", "set", GPU, "3")
    headway.until_running("3")


@pytest.mark.req("E28")
def test_a_package_brings_a_policy_of_its_own(headway: CommandLine) -> None:
    site = headway.folder / "site"
    info = site / "mine-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "mine.py").write_text(POLICY)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[headway.policies]\ncustomer = mine:PerCustomer\n")
    headway.env["PYTHONPATH"] = f"{site}:{headway.env['PYTHONPATH']}"
    headway("config", "set", "scheduler.max_active", "10")
    headway("submit", "--label", "customer=acme", "--", "sleep", "60")
    headway.until_running("1")
    headway("config", "set", "scheduler.limits.customer.acme", "1")
    headway("submit", "--label", "customer=acme", "--", "sleep", "60")
    headway("submit", "--label", "customer=other", "--", "sleep", "60")
    headway("submit", "--label", "broken=yes", "--", "sleep", "60")
    headway.until_running("3")
    headway.until_running("4")
    assert "customer acme is in use" in headway.out("why", "2")
    assert headway.state("2") == "queued", "the one that ran before the limit was set counts"
    headway("jobs", "cancel", "1")
    wait_for(lambda: headway.state("2") == "running")


def test_a_limit_of_a_policy_that_is_gone_is_still_listed(still: CommandLine) -> None:
    still("config", "set", GPU, "1")
    from headway.client import connect

    client = connect(home=str(still.home), environ=still.env)
    with client.context.store.write() as tx:  # as a host that has the policy does
        tx.settings.set("scheduler.limits.customer.acme", 1, by="another host")
    client.close()
    assert "a policy that is not installed" in still.out("config", "list")
    assert "customer acme: 0 of 1 used" in still.out("scheduler", "status")


def test_a_stored_value_that_cannot_be_used_is_told_and_removed(still: CommandLine) -> None:
    still("config", "set", "scheduler.max_active", "2")
    from headway.client import connect

    client = connect(home=str(still.home), environ=still.env)
    with client.context.store.write() as tx:  # as a program of before did
        tx.settings.set("scheduler.max_active", "three", by="earlier")
        tx.settings.set("scheduler.maxactive", 3, by="earlier")
    client.close()
    assert "scheduler.max_active = 1" in still.out("config", "list").splitlines()
    for command in (("status",), ("scheduler", "status")):
        told = " ".join(still.out(*command).split())
        assert "'three' is not a whole number; 1 counts" in told
        assert "headway config unset scheduler.maxactive" in told
    assert "is removed" in still("config", "unset", "scheduler.maxactive").stderr
    still("config", "set", "scheduler.max_active", "2")
    assert "setting" not in still.out("scheduler", "status")
