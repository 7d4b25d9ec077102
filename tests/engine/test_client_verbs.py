"""All that the command line can do with the queue, a program can: by methods of the client."""

from collections.abc import Callable
from pathlib import Path

from harness import Bench
from headway.core.order import Place, Side
from headway.core.states import Status
from headway.core.targets import Target
from headway.grouping import Plan
from headway.slinging import Wish
from headway.submission import Request


def test_the_queue_is_steered_by_methods_of_the_client(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=1)
    client = bench.client
    client.pause("to look at it")
    first, second = bench.submit("true"), bench.submit("true")
    client.move(second, Place(Side.FRONT))
    assert client.dry_run(5).to_dispatch == ()
    client.reorder([first, second])
    made = client.create_group(Plan(mode="parallel"), [first, second])
    whole, (third,) = client.submit_group([Request(argv=("true",))], Plan())
    assert [each["id"] for each in client.groups()] == [
        f"group-{made.group}",
        f"group-{whole.group}",
    ]
    client.cancel_group(f"group-{whole.group}")
    assert bench.status(third.job_id) is Status.CANCELLED
    client.add_template("nothing", argv=["true"])
    fourth = client.submit_template("nothing").job_id
    assert client.archive_template("nothing")
    assert client.status()["queued_total"] == 3
    client.resume()
    bench.until_ended(fourth)
    assert client.group(f"group-{made.group}")["status"] == "COMPLETED"
    assert client.close_group(f"group-{made.group}")[1] == "COMPLETED"


def test_work_items_are_slung_by_methods_of_the_client(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_active=1)
    client = bench.client
    tasks = Path(bench.home.path) / "tasks"
    tasks.mkdir()
    (tasks / "aa-1.toml").write_text('title = "one"\n')
    client.add_target(Target(name="here", prefix="aa-", argv=("true", "{subject}")))
    assert client.sling(Wish(words=("aa-1",)), rehearse=True).scheduled
    client.pause("not yet")
    client.sling(Wish(words=("aa-1",)))
    (told,) = client.scheduled()
    assert (told["target"], [each["subject"] for each in told["jobs"]]) == ("here", ["aa-1"])
    assert len(client.clear("aa-1").cleared) == 1
    client.remove_target("here")
    assert client.scheduled() == []
