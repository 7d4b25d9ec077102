"""Jobs of functions without worker, hosts or processes: what `headway.testing.drain` does.

It stands where a worker stands: with a connection of its own it plans a step, makes the call that
was started, and settles it, by the planner and the settler of the worker. Only the function hosts
are replaced, by a plain call.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

from headway.base.clock import SECOND, Clock
from headway.base.current import become, leave
from headway.base.errors import HeadwayError, InvalidInputError, TimedOutError
from headway.core.artifacts import paths_of_files
from headway.core.facts import TaskView
from headway.core.model import TASKS_TOPIC, Claim, Job, shown
from headway.core.states import Status
from headway.functions.app import App
from headway.functions.current import NO_NODE, NOTHING, Current
from headway.functions.handle import Handle
from headway.functions.host.call import Caller, not_made
from headway.functions.host.journal import parse
from headway.functions.pool.calls import HostPool
from headway.functions.pool.host import CallEnd, ClaimedCall, how_it_ended, step_of
from headway.integrations.probes import answers_to
from headway.jobs.facts import next_pass
from headway.jobs.loops import settle_runs
from headway.jobs.routes import ENDS_CAME, UNSETTLED_RUNS
from headway.store import open_store
from headway.store.records import Progress, RecordedStep
from headway.testing.clock import FakeClock
from headway.worker.planner import Planner
from headway.worker.probes import Probes
from headway.worker.settler import Settler

WORKER = "drain"
MOST_LOOKS = 50

Keep = Callable[[Progress | RecordedStep], None]


def drained(app: App, *, limit: int) -> list[Handle[Any]]:
    if not isinstance(app, App):
        raise InvalidInputError(f"drain takes an app, not {app!r}")
    with Drain(app).opened() as drain:
        drain.run(limit)
    return [Handle(app, job.id) for job in drain.ran]


class Drain:
    """The worker of one test."""

    def __init__(self, app: App) -> None:
        context = app.context
        clock = context.clock
        if isinstance(clock, Stepping) and clock.busy:
            raise HeadwayError("drain() is already running; inside a task call result() instead")
        if context.config["worker.autostart"]:
            raise InvalidInputError(
                f"drain() is for tests, and a worker may run the jobs of {context.home.path}; "
                "use headway.testing.using(app, home=tmp_path)"
            )
        self._context = context
        self._clock = clock.clock if isinstance(clock, Stepping) else clock
        self._app = app
        self._caller = DirectCaller(app)
        self._settler = Settler(context.host, WORKER)
        self._probes = Probes(
            lambda questions: answers_to(questions, context.config.conditions),
            self._clock,
            in_thread=False,
        )
        self._planner = Planner(
            context.host,
            WORKER,
            self._settler,
            specify=_no_commands,
            log_budget=context.config.bytes("logs.budget"),
            home=context.home,
            probes=self._probes,
            queues=(),
            pool=cast(HostPool, self._caller),
        )
        url = context.home.store_url or f"sqlite://{context.home.database}"
        self._store = open_store(url, self._clock)
        self.ran: list[Job] = []
        self._took_over = False
        self._looked_in_vain = 0  # at the world, since the last start

    @contextmanager
    def opened(self) -> Iterator[Drain]:
        """While it is open, those who wait for a job let it step instead of sleeping."""
        before = self._context.clock
        self._context.clock = Stepping(self._clock, self._step_or_wait, busy=True)
        try:
            with self._store.write() as tx:
                tx.hosts.know_tasks(self._context.host.id, sorted(self._app.tasks), None)
                tx.waits.wake_topics([TASKS_TOPIC])
            yield self
        finally:
            self._context.clock = before
            self._store.close()

    def run(self, limit: int) -> None:
        while len(self.ran) < limit and self._step_or_wait():
            pass

    def _step_or_wait(self) -> bool:
        return self._step() or self._take_over() or self._wait()

    def _step(self) -> bool:
        """Start one job, if one may start, and bring it to its end; False if none may."""
        self._probes.go()
        with self._store.write() as tx:
            tx.waits.wake_topics(self._probes.take_in())
            if tx.settings.marks()[UNSETTLED_RUNS]:
                settle_runs(tx, actor=WORKER)
            step = self._planner.step(tx, limit=1)
            self._planner.chosen.clear()
            more = step.more or tx.settings.marks()[UNSETTLED_RUNS] == ENDS_CAME
        for claim in step.started:
            self._looked_in_vain = 0
            self._call(claim)
        return bool(step.started) or more or self._probes.unsure()

    def _take_over(self) -> bool:
        """Once: ask what jobs wait to see in the world that an earlier drain has looked at."""
        if self._took_over:
            return False
        self._took_over = True
        with self._store.write() as tx:
            self._planner.sweep(tx, tx.now() + 1)
        return True

    def _wait(self) -> bool:
        """Move a fake clock to the next instant that may bring something; False if none does: a
        delay or a backoff is over, a rate has room, the next pass is due, the host is tried again,
        the world is looked at again. The world may stay as it is, so it is not looked at for ever.
        """
        if not isinstance(self._clock, FakeClock):
            return False
        with self._store.read() as tx:
            now = tx.now()
            trouble = tx.hosts.trouble(self._context.host.id)
            if not tx.jobs.anything_active():
                return False
            instants = [tx.waits.next_wake(), self._planner.look_again_at, next_pass(tx)]
        instants.append(None if trouble is None else trouble.probe_at)
        next_look = self._probes.next_in()
        answers_to = None if next_look is None else now + int(next_look * SECOND) + 1
        if self._looked_in_vain < MOST_LOOKS:
            instants.append(answers_to)
        ahead = [each for each in instants if each is not None and each > now]
        if not ahead:
            return False
        self._looked_in_vain += min(ahead) == answers_to
        self._clock.advance((min(ahead) - now + 1) / SECOND)
        return True

    def _call(self, claim: Claim) -> None:
        call = self._caller.chosen.pop(claim.token)
        self.ran.append(call.job)
        end = self._caller.call(call, keep=self._keep, now=self._clock.now)
        with self._store.write() as tx:
            ended = self._settler.apply(tx, [end.settles])
            if ended and end.result is not None:
                tx.jobs.keep_results([(claim.job_id, end.result)])

    def _keep(self, said: Progress | RecordedStep) -> None:
        with self._store.write() as tx:
            if isinstance(said, Progress):
                tx.jobs.keep_progress([said])
            else:
                tx.steps.keep([said])


class RunningCall(NamedTuple):
    """A claimed call with the parameters that it is made with."""

    claim: Claim
    job: Job
    params: Mapping[str, Any]


class DirectCaller:
    """In the place of the host pool and of a function host: it calls at once, as a host does. A
    traceback goes where the test's own output goes."""

    def __init__(self, app: App) -> None:
        self.folder = os.path.join(app.context.home.hosts, WORKER)
        self._functions = {task.name: task.function for task in app.tasks.values()}
        self.chosen: dict[str, RunningCall] = {}

    is_known = True

    def places(self) -> int:
        return 1

    def view(self) -> TaskView:
        return TaskView(frozenset(self._functions))

    def choose(self) -> DirectCaller:
        return self

    def take(self, claim: Claim, job: Job, params: Mapping[str, Any]) -> Claim:
        running = job._replace(status=Status.RUNNING, started_at=claim.claimed_at)
        mine = claim._replace(function_host=WORKER)
        self.chosen[claim.token] = RunningCall(mine, running, params)
        return mine

    def call(self, call: RunningCall, *, keep: Keep, now: Callable[[], int]) -> CallEnd:
        claim, job, params = call

        def add(lines: str) -> None:
            for kind, _, content in parse(lines.encode()):
                if kind == "c":
                    keep(step_of(ClaimedCall(claim, job, params), content))
                else:
                    keep(Progress(job.id, *json.loads(content)))

        arguments = json.loads(json.dumps(params["args"]))
        current = Current(
            *(job.id, job.attempt, claim.token, add),
            of_node=params.get("node", NO_NODE),
            record=add,
            steps=params.get("steps", NOTHING),
        )
        caller = Caller(self._functions, sys.stderr.write)
        before = become(current)
        try:
            outcome = caller.call(params["task"], arguments, current)
        finally:
            leave(before)
            caller.close()
        unmade = not_made(outcome, paths_of_files(job.produces))
        line = f"{now()} 0 {json.dumps([*outcome, None, *([unmade] if unmade else [])])}"
        return how_it_ended(ClaimedCall(claim, job, params), line)


class Stepping:
    """The clock of a client in a test: a caller that waits for a job lets others run meanwhile."""

    runs_jobs = True

    def __init__(self, clock: Clock, step: Callable[[], bool], *, busy: bool = False) -> None:
        self.clock = clock
        self.busy = busy
        self._step = step

    def now(self) -> int:
        return self.clock.now()

    def monotonic(self) -> float:
        return self.clock.monotonic()

    def since_boot(self) -> float:
        return self.clock.since_boot()

    def sleep(self, seconds: float) -> None:
        if not self._step():
            raise TimedOutError("nothing more may run, so it would be waited for without end")


def let_waiters_drain(app: App) -> None:
    """From now on `result()` runs what it waits for."""
    context = app.context
    context.clock = Stepping(context.clock, lambda: bool(drained(app, limit=1)))


def _no_commands(job: Job, claim: Claim) -> dict[str, Any]:
    raise HeadwayError(f"{shown(job.id)} is a command; there are no processes in drain()")
