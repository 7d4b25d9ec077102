"""`headway webhooks`, as people and scripts use it.

In this process and without a worker; tests/webhooks tests what is sent.
"""

import io
import json
from typing import Any

import pytest
from commandline import Run

from harness import Site
from headway.cli.candidates import _deliveries, _webhooks
from headway.core.webhooks import ENDS
from headway.store.records import Try
from new_deliveries import new_delivery

URL = "https://203-0-113-9.example/hook"  # a name that nothing resolves


def document(said: Run, *argv: str) -> Any:
    done = said("webhooks", *argv, "--json")
    assert done.code == 0, done
    found = json.loads(done.out)
    assert found.pop("version") == 1
    return found


@pytest.fixture
def ci(said: Run) -> Run:
    assert said("webhooks", "add", "ci", URL).code == 0
    return said


def put(site: Site, number: int, *, ends: bool | None = None) -> str:
    """A delivery as a courier would leave it: pending, taken or failed."""
    made = new_delivery(number)
    with site.client.context.store.write() as tx:
        tx.webhooks.add_deliveries([made])
        if ends is not None:
            tx.webhooks.lease("endpoint-1", lease="x", until=tx.now() + 1, limit=1)
            if ends:
                tx.webhooks.record_delivered([Try(made.id, "x", 204, None)])
            else:
                tx.webhooks.record_failure(Try(made.id, "x", 500, "500 No"), None)
    return made.id


def test_an_endpoint_is_added_and_its_secret_printed_alone(said: Run) -> None:
    done = said("webhooks", "add", "ci", URL)
    assert done.out.startswith("whsec_") and done.out.count("\n") == 1
    assert f"ci gets {', '.join(ENDS)}" in done.err and "webhooks test ci" in done.err
    assert said("webhooks", "secret", "ci").out == done.out
    assert document(said, "secret", "ci") == {"secret": done.out.strip()}


def test_what_it_says_of_itself(ci: Run) -> None:
    (listed,) = document(ci, "list")["webhooks"]
    assert listed == document(ci, "show", "ci")["webhook"]
    assert (listed["name"], listed["url"], listed["types"]) == ("ci", URL, list(ENDS))
    shown = ci("webhooks", "show", "ci").out
    assert URL in shown and "0 pending, 0 delivered, 0 failed" in shown
    table = ci("webhooks", "list").out
    assert "203-0-113-9.example" in table and "/hook" not in table


def test_types_and_schedule_are_taken(said: Run) -> None:
    argv = ("--type", "job.*", "--type", "group.ended", "--schedule", "standard")
    made = document(said, "add", "ci", URL, *argv)["webhook"]
    assert (made["types"], made["schedule"]) == (["job.*", "group.ended"], "standard")
    assert made["secret"].startswith("whsec_")


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (("add", "ci", "http://10.0.0.1/"), 5, 'webhooks.allow = ["10.0.0.1:80"]'),
        (("add", "ci", "ftp://x/"), 5, "neither with https"),
        (("add", "ci", URL, "--type", "job.end"), 5, "no type 'job.end'"),
        (("add", "ci", URL, "--schedule", "slow"), 2, "--schedule"),
        (("add", "1", URL), 5, "cannot be the name"),
        (("show", "none"), 3, "webhooks list"),
        (("pause", "none"), 3, "webhooks list"),
        (("replay",), 2, "Give a DELIVERY, or --since TIME."),
        (("replay", "x", "--since", "1h"), 2, "Give a DELIVERY"),
        (("replay", "x"), 3, "webhooks deliveries"),
        (("replay", "--since", "9"), 5, "has no unit"),
        (("deliveries", "--state", "sent"), 2, "--state"),
        (("deliveries", "--limit", "0"), 5, "between 1 and 1000"),
        (("rotate", "--overlap", "40d"), 5, "longer than 30d"),
    ],
)
def test_what_is_wrong_is_said_with_its_code(
    said: Run, argv: tuple[str, ...], code: int, words: str
) -> None:
    done = said("webhooks", *argv)
    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert document(said, "list") == {"webhooks": []}


def test_a_name_is_taken_once(ci: Run) -> None:
    done = ci("webhooks", "add", "ci", URL)
    assert done.code == 4 and "there already" in done.err


def test_pausing_and_resuming(ci: Run) -> None:
    assert "ci is paused" in ci("webhooks", "pause", "ci").err
    assert "ci was already paused" in ci("webhooks", "pause", "ci").err
    assert document(ci, "show", "ci")["webhook"]["reason"] == "paused by ada"
    assert "ci is active" in ci("webhooks", "resume", "ci").err
    assert document(ci, "resume", "ci")["webhook"]["state"] == "active"
    assert document(ci, "pause", "ci")["webhook"]["state"] == "paused"


def test_rotating_prints_the_new_secret_alone(ci: Run) -> None:
    before = ci("webhooks", "secret", "ci").out
    done = ci("webhooks", "rotate", "ci", "--overlap", "1h")
    assert done.out.startswith("whsec_") and done.out != before
    assert "signs as well until" in done.err
    assert "signs as well until" in ci("webhooks", "show", "ci").out
    rotated = document(ci, "rotate", "ci", "--overlap", "0s")["rotated"]
    assert rotated["overlap_until"] is None and rotated["name"] == "ci"
    assert ci("webhooks", "rotate").out.startswith("whsec_")


def test_a_secret_goes_from_home_to_home_by_standard_input(
    ci: Run, file_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = ci("webhooks", "secret", "ci").out
    from headway.webhooks.secret_file import SecretFile, fingerprint_of, new_secret

    SecretFile(file_site.home).forget(fingerprint_of(secret))
    assert ci("webhooks", "secret", "ci").code == 3
    assert "no secret here" in ci("webhooks", "list").out
    monkeypatch.setattr("sys.stdin", io.StringIO(new_secret()))
    assert ci("webhooks", "import", "ci").code == 5
    monkeypatch.setattr("sys.stdin", io.StringIO(secret))
    assert "this home signs for ci now" in ci("webhooks", "import", "ci").err
    monkeypatch.setattr("sys.stdin", io.StringIO(secret))
    assert document(ci, "import", "ci")["imported"]["name"] == "ci"
    assert ci("webhooks", "secret", "ci").out == secret


def test_deliveries_and_their_replay(ci: Run, file_site: Site) -> None:
    assert "no such deliveries" in ci("webhooks", "deliveries").err
    taken, failed = put(file_site, 1, ends=True), put(file_site, 2, ends=False)
    waiting = put(file_site, 3)
    assert [each["id"] for each in document(ci, "deliveries")["deliveries"]] == [
        waiting,
        failed,
        taken,
    ]
    (only,) = document(ci, "deliveries", "--state", "failed", "--since", "1h")["deliveries"]
    assert (only["id"], only["error"], only["endpoint"]) == (failed, "500 No", "ci")
    table = ci("webhooks", "deliveries").out
    assert "204, 0s ago" in table and "500 No" in table and "not sent yet; again" in table
    client = file_site.client
    assert [word for word, _ in _deliveries(client)] == [failed, taken]
    assert [word for word, _ in _webhooks(client)] == ["ci"]
    assert f"{failed} will be sent again" in ci("webhooks", "replay", failed).err
    assert ci("webhooks", "replay", failed).code == 4
    assert document(ci, "replay", taken)["delivery"]["state"] == "pending"
    client.webhooks.pause("ci")
    with client.context.store.write() as tx:
        assert tx.webhooks.fail_all("endpoint-1", "no") == 3
    assert client.webhooks.replay(failed)["state"] == "pending"
    assert "2 deliveries will be sent again" in ci("webhooks", "replay", "--since", "1h").err
    assert document(ci, "replay", "--since", "1h") == {"replayed": 0}
    assert "3 deliveries will not be sent" in ci("webhooks", "remove", "ci").err
    assert document(ci, "list") == {"webhooks": []}


def test_a_test_that_nobody_takes_is_exit_1(ci: Run) -> None:
    done = ci("webhooks", "test", "ci")
    assert done.code == 1 and "ci did not take it: 203-0-113-9.example" in done.err
    failed = ci("webhooks", "test", "ci", "--json")
    assert failed.code == 1 and json.loads(failed.out)["test"]["delivered"] is False


def test_removing_says_what_was(ci: Run) -> None:
    assert document(ci, "remove", "ci")["webhook"]["name"] == "ci"


def test_a_job_brings_urls_along(said: Run) -> None:
    said("submit", "--webhook", URL, "--webhook", "https://two.example/x", "--", "true")
    shown = json.loads(said("jobs", "show", "job-1", "--json").out)["job"]
    assert shown["webhooks"] == ["https://203-0-113-9.example", "https://two.example"]
    assert "https://two.example" in said("jobs", "show", "job-1").out
    refused = said("submit", "--webhook", "http://127.0.0.1:9000/", "--", "true")
    assert refused.code == 5 and 'webhooks.allow = ["127.0.0.1:9000"]' in refused.err
