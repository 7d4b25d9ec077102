"""A limit holds on every path by which work comes to run: rows are counted at every step."""

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import headway.jobs.facts
import headway.jobs.reservations
from headway.base.clock import SECOND
from headway.base.errors import ConflictError
from headway.core import capacity as admission
from headway.core.model import Lock
from headway.core.states import TERMINAL
from headway.core.targets import Target
from headway.jobs import groups as grouping
from headway.jobs.locks import release_locks
from headway.jobs.quotas import parse_rate
from headway.jobs.request import Request
from headway.jobs.reservations import granted, keys_taken, stand_in_line
from headway.jobs.submit import specify_all, submit_calls
from headway.jobs.templates import add_template, submit_template
from headway.store.records import Lending
from headway.workitems.sling import Wish, sling
from headway.workitems.targets import add_target
from simulation.running import in_file, on_server
from simulation.seams import installed
from yard import Yard

EXAMPLES = os.environ.get("HEADWAY_EXAMPLES")
A_NUMBER = st.integers(0, 1 << 16)
LIMITED = ("type.command", "type.build", "resource.gpu", "resource.net", "target.east")
WANTED = st.fixed_dictionaries(
    {
        "type": st.sampled_from(("command", "build")),
        "resources": st.sampled_from(((), ("gpu",), ("net",), ("gpu", "net"))),
        "target": st.sampled_from((None, None, "east")),
        "rates": st.sampled_from(((), (), ("api",), ("api=2/10s",))),
        "locks": st.sampled_from(((), (), (), ("k",))),
        "retries": st.sampled_from((0, 1)),
        "fails": st.sampled_from((False, False, True)),
        "on_finish": st.sampled_from(((), (), ("true",))),
    }
)
SUBJECTS = ("gt-1", "gt-2", "gt-3")


Opening = Callable[[], AbstractContextManager[Any]]


class Act(NamedTuple):
    tell: Callable[..., None]
    often: int
    arguments: dict[str, st.SearchStrategy[Any]]


ACTS: list[Act] = []


def act(
    often: int = 1, **arguments: st.SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Not a rule each: hypothesis leaves some rules out of each example."""

    def add(tell: Callable[..., None]) -> Callable[..., None]:
        ACTS.append(Act(tell, often, arguments))
        return tell

    return add


class Paths(RuleBasedStateMachine):
    """Every act brings in work in another way, or changes what may run."""

    def __init__(self, opening: Opening) -> None:
        super().__init__()
        self.open = ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="headway-yard-"))
        self.open.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.yard = Yard(self.folder, self.open.enter_context(opening()))
        self.open.callback(self.yard.close)
        self.client, self.store = self.yard.client, self.yard.store
        self.loans = 0
        for kind in LIMITED:
            self.client.set_setting(f"scheduler.limits.{kind}", 1)
        self.client.set_setting("scheduler.limits.rate.api", "3/20s")
        self.client.set_setting("scheduler.max_active", 3)
        add_target(self.client.context, Target("east", ("true",), prefix="gt-", resources=("gpu",)))
        tasks = self.folder / ".headway" / "tasks"
        tasks.mkdir()
        for subject in SUBJECTS:
            (tasks / f"{subject}.md").write_text("---\nstate: open\n---\n")
        add_template(
            self.client.context,
            "build",
            argv=["true"],
            type="build",
            resources=["net"],
            rates=["api"],
        )

    def teardown(self) -> None:
        with self.open:
            self._come_to_an_end()

    def _request(
        self, *, fails: bool, rates: tuple[str, ...], locks: Any, **wanted: Any
    ) -> Request:
        return Request(
            argv=("true",),
            rates=tuple(parse_rate(each) for each in rates),
            locks=tuple(Lock(each) for each in locks),
            retry_base=2 * SECOND,
            check=False,
            **wanted,
        )

    def _made(self, ids: list[int], fails: bool = False) -> None:
        """Jobs are there: some of them will fail at their first try."""
        self.yard.fails |= {*ids} if fails else set()
        note(f"made {ids}")
        self.yard.step()

    def _known(self) -> list[int]:
        with self.store.read() as tx:
            return list(range(1, tx.settings.marks()["next_job_id"]))

    @rule(data=st.data())
    def something_happens(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from([each for each in ACTS for _ in range(each.often)]))
        arguments = data.draw(st.fixed_dictionaries(chosen.arguments))
        note(f"{chosen.tell.__name__} {arguments}")
        chosen.tell(self, **arguments)

    # -- paths ---------------------------------------------------------------------------------

    @initialize(wanted=st.lists(WANTED, min_size=2, max_size=4))
    def submit_some(self, wanted: list[dict[str, Any]]) -> None:
        for each in wanted:
            self.submit(each)

    @act(wanted=WANTED)
    def submit(self, wanted: dict[str, Any]) -> None:
        made = self.client.submit(self._request(**wanted)).job_id
        self._made([made], wanted["fails"])

    @act(wanted=WANTED, which=A_NUMBER)
    def submit_after(self, wanted: dict[str, Any], which: int) -> None:
        known = self._known()
        request = self._request(**wanted)._replace(after=(known[which % len(known)],))
        self._made([self.client.submit(request).job_id], wanted["fails"])

    @act(wanted=st.lists(WANTED, min_size=2, max_size=4))
    def submit_graph(self, wanted: list[dict[str, Any]]) -> None:
        """The first, and the others after it, in one transaction."""
        specs = specify_all(self.client.context, [self._request(**each) for each in wanted])
        specs = [specs[0], *(spec._replace(after=(~0,)) for spec in specs[1:])]
        self._made([each.job_id for each in submit_calls(self.client.context, specs)])

    @act(
        mode=st.sampled_from(("sequential", "parallel")),
        wanted=st.lists(WANTED, min_size=2, max_size=4),
    )
    def submit_group(self, mode: str, wanted: list[dict[str, Any]]) -> None:
        requests = [self._request(**each) for each in wanted]
        made, _ = grouping.submit_group(
            self.client.context, requests, grouping.Plan(mode, "continue")
        )
        self._made(list(made.jobs), wanted[0]["fails"])

    @act()
    def submit_from_template(self) -> None:
        self._made([submit_template(self.client.context, "build").job_id])

    @act(
        overlap=st.sampled_from(("skip", "queue", "replace")),
        resources=st.sampled_from(((), ("gpu",), ("net",))),
        target=st.sampled_from((None, "east")),
    )
    def schedule(self, overlap: str, resources: tuple[str, ...], target: str | None) -> None:
        """What makes jobs from now on, whenever a step finds that it is time."""
        self.client.schedules.add(
            name=f"and-{overlap}",
            every="20s" if overlap == "queue" else "5s",
            argv=["true"],
            type="build",
            resources=list(resources),
            target=target,
            rates=[] if overlap == "queue" else ["api"],
            overlap=overlap,
            replace=True,
        )
        self.yard.step()

    @act(which=A_NUMBER, verb=st.sampled_from(("trigger", "enable", "disable", "remove")))
    def steer_a_schedule(self, which: int, verb: str) -> None:
        known = [each["name"] for each in self.client.schedules.list()]
        if known:
            with suppress(ConflictError):
                getattr(self.client.schedules, verb)(known[which % len(known)])
        self.yard.step()

    @act(which=A_NUMBER)
    def retry_with_all_that_follows(self, which: int) -> None:
        known = self._known()
        with suppress(ConflictError):
            self.client.retry(known[which % len(known)])
        self.yard.step()

    @act(subjects=st.lists(st.sampled_from(SUBJECTS), min_size=1, max_size=3, unique=True))
    def sling(self, subjects: list[str]) -> None:
        slung = sling(self.client.context, Wish(tuple(subjects)))
        self._made([each.job_id for each in slung.scheduled if each.job_id])

    @act(
        resources=st.sampled_from(((), ("gpu",), ("net",))),
        inside=st.none() | A_NUMBER,
    )
    def call(self, resources: tuple[str, ...], inside: int | None) -> None:
        live = self.yard.live()
        job = live[inside % len(live)].job_id if inside is not None and live else None
        with self.store.write() as tx:
            made = stand_in_line(
                self.client.context, tx, "", keys_taken("build", resources, None), job
            )
            tx.reservations.renew(made.token, tx.now() + 1000 * SECOND)
        self._look_for_slots()

    def _look_for_slots(self) -> None:
        """Those in line look, the last first."""
        with self.store.read() as tx:
            asking = [each for each in tx.reservations.all() if each.waits]
        for each in reversed(asking):
            with self.store.write() as tx:
                granted(self.client.context, tx, each)
            self.yard.counted.check()
        self.yard.step()

    @act(which=A_NUMBER)
    def hang_up(self, which: int) -> None:
        with self.store.write() as tx:
            calls = tx.reservations.all()
            if calls:
                tx.reservations.release(calls[which % len(calls)])
        self._look_for_slots()

    @act(which=A_NUMBER, awaited=A_NUMBER)
    def wait_inside_of_a_job(self, which: int, awaited: int) -> None:
        """It lends what it holds to the other."""
        live = self.yard.live()
        with self.store.write() as tx:
            waiting = [job for job in tx.jobs.active() if job.stage is not None]
            if live and waiting:
                self.loans += 1
                lender, job = live[which % len(live)], waiting[awaited % len(waiting)]
                until = tx.now() + 30 * SECOND
                tx.claims.lend(f"loan-{self.loans}", Lending(lender.job_id, job.chain, until))
                tx.waits.wake_chains([job.chain])
        self.yard.step()

    # -- what else happens -----------------------------------------------------------------------

    @act(after=st.integers(1, 12), reboot=st.sampled_from((False, False, True)), now=st.booleans())
    def crash(self, after: int, reboot: bool, now: bool) -> None:
        """At once, or in the middle of the next steps: with claims that nobody has launched yet."""
        note(f"crash {after} {now}")
        if now:
            self.yard.crash(reboot=reboot)
        else:
            self.yard.fuse = after
        self.yard.step()

    @act(6, seconds=st.sampled_from((0.5, 1, 3, 12)))
    def pass_time(self, seconds: float) -> None:
        self.yard.pass_time(seconds)

    @act(pause=st.booleans())
    def pause_or_resume(self, pause: bool) -> None:
        if pause:
            self.client.pause(None)
        else:
            self.client.resume()
        self.yard.step()

    @act(key=st.sampled_from((*LIMITED, "max_active")), value=st.sampled_from((0, 1, 2, 3)))
    def change_limit(self, key: str, value: int) -> None:
        """Also below what runs: that goes on, and nothing else starts."""
        setting = f"scheduler.limits.{key}" if key != "max_active" else "scheduler.max_active"
        self.client.set_setting(setting, value)
        self.yard.counted.changed()
        note(f"{key}: {value}")
        self.yard.step()

    @act(text=st.sampled_from(("1/10s", "3/20s", None)))
    def change_rate(self, text: str | None) -> None:
        self.client.set_setting("scheduler.limits.rate.api", text)
        self.yard.step()

    @act(which=A_NUMBER)
    def cancel(self, which: int) -> None:
        active = self.yard.active()
        if active:
            self.client.cancel([active[which % len(active)]])
        self.yard.step()

    def _come_to_an_end(self) -> None:
        """Nothing is in the way any more but the limits themselves: all that may run has run."""
        self.yard.fuse = -1
        self.client.resume()
        self.client.scheduler.reset()
        self._check_slots()
        for key in LIMITED:
            self.client.set_setting(f"scheduler.limits.{key}", 1)
        self.client.set_setting("scheduler.max_active", 2)
        self.yard.counted.changed()
        with self.store.write() as tx:
            for call in tx.reservations.all():
                tx.reservations.release(call)
            for claim in tx.claims.unproven():
                tx.claims.prove_gone(claim.token)
                release_locks(tx, [claim.job_id])
        for _ in range(200):
            if not self.yard.active():
                break
            self.yard.pass_time(5)
        with self.store.read() as tx:
            left = [(job.id, job.status, job.wait) for job in tx.jobs.active()]
            ended = tx.jobs.by_id(list(range(1, tx.settings.marks()["next_job_id"])))
        assert not left, f"never came to its end: {left}"
        assert all(job.status in TERMINAL for job in ended.values())
        for job in ended.values():
            assert job.status != "succeeded" or job.id in self.yard.counted.seen

    def _check_slots(self) -> None:
        """Each slot once, and no more of them; each that fired has a job of its own."""
        for each in self.client.schedules.list():
            slots = self.client.schedules.slots(each["name"], 1000)
            spans = sorted((slot["slot"], slot["last_slot"]) for slot in slots)
            assert all(one[1] < other[0] for one, other in pairwise(spans)), spans
            jobs = [slot["job"] for slot in slots if slot["outcome"] == "fired"]
            assert None not in jobs and len(set(jobs)) == len(jobs)
            self.client.schedules.remove(each["name"])


def tell(opening: Opening, examples: int, phases: Sequence[Phase] = tuple(Phase)) -> None:
    with installed(Random(1), lambda point: None):
        run_state_machine_as_test(
            lambda: Paths(opening),
            settings=settings(
                max_examples=int(EXAMPLES or examples),
                phases=phases,
                stateful_step_count=30,
                derandomize=EXAMPLES is None,
                database=None,
                deadline=None,
                print_blob=True,
                suppress_health_check=list(HealthCheck),
            ),
        )


@pytest.mark.long
@pytest.mark.req("E2")
def test_no_limit_is_exceeded_on_any_path_on_a_file() -> None:
    tell(lambda: nullcontext(in_file), 30)


def test_no_limit_is_exceeded_on_any_path_on_a_server(postgres_server: str) -> None:
    tell(lambda: on_server(postgres_server), 6)


BROKEN = {
    "what others hold is not counted": (headway.jobs.facts, "occupied", lambda *given: {"slot": 0}),
    "nobody looks at the limits": (admission, "_no_unit", lambda job, capacity: None),
    "calls are not counted": (headway.jobs.facts, "_with_calls", lambda claims, *given: claims),
    "calls do not ask": (headway.jobs.reservations, "direct_objection", lambda *given: None),
    "any lender will do": (admission, "_lacking", lambda job, capacity: ()),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_path_around_the_limits_is_found_out(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*BROKEN[what])
    with pytest.raises(AssertionError, match=r"hold|started within"):
        tell(lambda: nullcontext(in_file), 60, phases=(Phase.generate,))
