"""One step of everything: take in what ended, settle it, start what may start, launch it.

Ended jobs are settled and the next ones claimed in one transaction. What touches processes happens
after the commit: a crash in between leaves a claim without a start record, which recovery undoes.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from headway.clock import SECOND, Clock
from headway.config import Config, store_setting
from headway.consequences import trees_gone
from headway.copies import copied
from headway.core.graphgates import questions_at_start
from headway.core.model import TASKS_TOPIC, Claim, JobId, WaitKind
from headway.core.plan import Batch
from headway.core.pressure import Measured
from headway.core.settle import Ending
from headway.crashpoints import reach
from headway.documents import job_documents, write_job_files
from headway.engine.crew import Crew
from headway.engine.directcalls import DirectCalls
from headway.engine.doing import do_all
from headway.engine.finisher import Finisher
from headway.engine.functionhost import AppSettings, News
from headway.engine.groupsleft import GroupsLeft
from headway.engine.helpers import Helpers
from headway.engine.janitor import put_back_environments
from headway.engine.lane import MOST_AT_ONCE, Lane, QuickSteps, Quiet
from headway.engine.looks import Looks
from headway.engine.memory import Memory
from headway.engine.onebyone import OneByOne
from headway.engine.planner import Planner
from headway.engine.rescuer import Judged, Rescuer
from headway.engine.rounds import Rounds
from headway.engine.settling import Judgement, Settler, Verdict, has_changed
from headway.engine.storetime import StoreTime
from headway.engine.timekeeper import Timekeeper
from headway.errors import OthersWroteError
from headway.executors import specification
from headway.executors.command import how_to_reach_a_worker
from headway.executors.function import host_specification
from headway.expiring import remove_expired
from headway.gather import next_pass, spacing, strain_of
from headway.home import Home
from headway.host import Host, queues_of
from headway.policies import all_policies
from headway.probes import look_at
from headway.probes.pressure import measure
from headway.store.base import HostRecord, ReadTx, Store, WriteTx
from headway.supervise.evidence import Evidence
from headway.supervise.launcher import Launcher
from headway.supervise.rescue import forget_cgroup, tell_to_cancel

RESCUE_EVERY = 30.0
SWEEP_EVERY = 10.0
LOOK_AGAIN = 1.0
STRAINED_AGAIN = 3.0
LENDING_PERIOD = 5 * SECOND
LEASE = 20 * SECOND
RENEW_EVERY = 5.0
TELL_EVERY = 10.0
JUDGED_AT_ONCE = 200  # each holds a lock until its verdict is committed
MOST_UNANSWERED = 500  # launches that the parent may owe an answer for

Documents = dict[int, dict[str, Any]]


class Engine:
    def __init__(
        self,
        store: Store,
        home: Home,
        config: Config,
        host: Host,
        clock: Clock,
        *,
        worker_id: str,
        launcher: Launcher,
        report: Callable[[dict[str, Any]], None] = lambda document: None,
        say: Callable[[str], None] = lambda text: None,
        descriptors: int | None = None,
        look_in_thread: bool = False,
        measure: Callable[[], Measured] = measure,
    ) -> None:
        home.settle_in(store)
        self.store = store
        self.worker_id = worker_id
        self.dispatching = True
        self.started: list[JobId] = []  # by the last step
        self.more = False  # whether the last step left jobs that it could have looked at
        self._clock = clock
        self.home = home
        self._host = host
        self._report = report
        self._times = StoreTime(store, clock)
        settler = Settler(host, worker_id, times=self._times)
        self._settler = settler
        self._groups = GroupsLeft(home)
        self._rescuer = Rescuer(host, worker_id, clock, left=self._groups.of_claim)
        self.finisher = Finisher(launcher, self._rescuer)
        worker = how_to_reach_a_worker(home, config)
        self.crew = Crew(
            home,
            AppSettings(config["app.modules"], config["app.processes"], config["app.threads"]),
            launcher,
            self.finisher.selector,
            specify=lambda token, folder, argv: host_specification(
                token, folder, argv, home, config, worker
            ),
            boot_id=host.boot_id,
            clock=clock,
            logs={"head_bytes": config.bytes("logs.head"), "tail_bytes": config.bytes("logs.tail")},
            say=say,
        )
        self.finisher.crew = self.crew
        self.helpers = Helpers(home, config, clock)
        self.timekeeper = Timekeeper(home, clock, shared=store.shared, actor=worker_id)
        self.rounds = Rounds(
            home,
            config,
            host,
            clock,
            worker_id=worker_id,
            shared=store.shared,
            in_thread=look_in_thread,
            say=say,
        )
        self.looks = Looks(
            lambda questions: look_at(questions, config.conditions),
            clock,
            in_thread=look_in_thread,
        )
        if look_in_thread:
            for bell in (self.looks.bell, self.rounds.beside.bell):
                bell.hang(self.finisher.selector)
        lease = LEASE if store.shared else None
        self._lane = Lane(host, worker_id, self.crew, lease)
        one_by_one = OneByOne(store, self.crew, self.finisher.selector, clock)
        self._quick = QuickSteps(store, self.crew, self._lane, one_by_one, worker_id, self._times)
        self.planner = Planner(
            host,
            worker_id,
            settler,
            specify=lambda job, claim: {
                **specification(job, claim, home, config, worker),
                "descriptors": descriptors,
            },
            log_budget=config.bytes("logs.budget"),
            home=home,
            looks=self.looks,
            queues=queues_of(store.shared, host),
            lease=lease,
            crew=self.crew,
            lane=self._lane,
            policies=all_policies(say),
            strain=lambda settings: strain_of(settings, measure),
        )
        now = clock.monotonic()
        self._next_rescue = now + RESCUE_EVERY
        self._next_sweep = now + SWEEP_EVERY
        self._next_look = now
        self._next_renewal = now
        self._next_told = now  # which functions are known here
        self._told: set[str] = set()  # claims whose supervisors were passed a cancel
        self._unproven: list[Claim] = []
        self._last_step = clock.now()
        self._expected_delay = RESCUE_EVERY
        self._grant_until = 0
        self._direct = DirectCalls(store, host.id)
        self._memory = Memory(store, self.looks)

    def recover(self) -> None:
        """Judge every claim of this host and home; before anything is dispatched."""
        put_back_environments(self.home)
        self._groups.remove()
        with self.store.read() as tx:
            live, unproven = tx.live_claims(), tx.unproven_claims()
            self._unproven = self._rescuer.mine(unproven)
            self._direct.remember(tx.reservations())
        copies = self._copied(live)
        mine = [*self._rescuer.mine(live), *self._settle_copies(copies, live)]
        self._adopt([claim for claim in mine if claim.function_host])
        unknown = [
            claim for claim in mine if not claim.function_host and not self.finisher.watches(claim)
        ]
        for first in range(0, len(unknown), JUDGED_AT_ONCE):
            self._judge(unknown[first : first + JUDGED_AT_ONCE])
        known = {claim.token for claim in copies}
        others = [] if self.store.shared else [each for each in live if each.token not in known]
        lost = self._rescuer.rebooted(others)
        with self.store.write() as tx:
            documents = self._settle(tx, lost)
            trees_gone(tx, self._copied(unproven), actor=self.worker_id)  # none of them is here
            tx.know_host(HostRecord(self._host.id, self._host.name, self._host.home))
            tx.wake_everything()
        reach("engine.woken")
        self._after_settling(lost, documents)
        self.crew.clear_away()

    def _copied(self, claims: list[Claim]) -> list[Claim]:
        """Of these claims those that only the home can own that this one is a copy of."""
        return [] if self.store.shared else copied(claims, self._host, self.home)

    def _settle_copies(self, copies: list[Claim], live: list[Claim]) -> list[Claim]:
        """Settle what came with a copy of a home; returns calls whose host lives here after all."""
        originals = {claim.token: claim.home for claim in live}

        def judge(claim: Claim) -> Judged | None:
            return self._rescuer.judge_copy(claim, originals[claim.token])

        living = [each for each in copies if each.function_host and judge(each) is None]
        over = [each for each in copies if each not in living]
        for first in range(0, len(over), JUDGED_AT_ONCE):
            self._judge(over[first : first + JUDGED_AT_ONCE], judge)
        return [each._replace(host_id=self._host.id) for each in living]

    def _adopt(self, claims: list[Claim]) -> None:
        """Take up the function calls of an earlier worker."""
        if not claims:
            return
        with self.store.write() as tx:
            jobs = tx.running_jobs([claim.job_id for claim in claims])
            self._settle_calls(tx, self.crew.adopt([(each, jobs[each.job_id]) for each in claims]))
        self.crew.committed()

    def step(self, *, limit: int | Batch | None = None, only_calls: bool = False) -> float:
        """Do what there is to do now; returns the seconds until time itself brings more. At most
        `limit` jobs are started, and with 0 none is looked at. With `only_calls` nothing is known
        to have happened but that functions may have returned."""
        delay = self._quick_step() if only_calls and self.dispatching else None
        if delay is not None:
            return delay
        try:
            return self._whole_step(limit, only_calls=only_calls)
        except OthersWroteError:
            self._memory.was_wrong()
            return self._whole_step(limit)

    def _quick_step(self) -> float | None:
        now = self._clock.monotonic()
        self.crew.keep_up(now)
        delay = self._quick.step(now)
        if delay is not None:
            self._last_step = self._clock.now()
            self._expected_delay = delay
            self.started = self._quick.started
        return delay

    def _whole_step(self, limit: int | Batch | None, *, only_calls: bool = False) -> float:
        self._notice_suspend()
        overdue = self._direct.end_overdue(self._grant_until)
        self.rounds.notice()
        now = self._clock.monotonic()
        again = self.crew.keep_up(now) if self.dispatching else None
        judged, news, topics = self.finisher.take_in(), News([], []), list[str]()
        started: tuple[Claim, ...] = ()
        quiet: Quiet | None = None
        before = self._next_renewal, self._next_sweep, self._quick.last
        self._quick.stop()
        self._lane.begin()
        self.planner.begin()
        try:
            news = self.crew.take_in()
            # Whatever else there is to do is rare, or could not be done twice.
            only_told = only_calls and bool(news.told) and not (judged or overdue or self.crew.news)
            duty = self._must_renew(now) or now >= self._next_sweep or self._quick.last is not None
            duty = duty or self._must_tell(now)
            with self._memory.write(usable=only_told and not duty) as tx:
                self._memory.recall(tx)
                if self.store.shared and self.dispatching and not (judged or self.crew.news):
                    calls = min(self.crew.places(), MOST_AT_ONCE)
                    (tx.look_at_calls if any(news) else tx.look_around)(calls)
                documents = self._settle(tx, judged)
                self._settle_calls(tx, news)
                topics = self.looks.take_in()
                tx.wake_topics(topics)
                self._settler.look_at_probes(tx, self.finisher.claims)
                self._end_expired_lendings(tx)
                if overdue:
                    remove_expired(tx, overdue, actor=self.worker_id)
                self._renew_leases(tx, now)
                self._tell_again(tx, now)
                more = self.dispatching and self.timekeeper.step(tx)
                if self.dispatching:
                    self.rounds.step(tx)
                cancelling = tx.cancelling_jobs() if self._busy() else set()
                limit = self._limit(tx, limit)
                planning = self.dispatching and limit != 0 and self._parent_is_there(tx)
                if planning:
                    step = self.planner.step(tx, limit=limit)
                    started = step.started
                    if self._quick.last and not started and not self._lane.taken:
                        tx.note_dispatch(*self._quick.last)
                    self._quick.last = None
                    more = self._sweep(tx, now) or step.more or more
                self.helpers.note_failures(tx, actor=self.worker_id)
                self._unproven = self._rescuer.mine(tx.unproven_claims())
                delay = self._delay(tx, now, planning=planning)
                if planning and not more and not spacing(tx):
                    quiet = self._seen_quiet(tx)
                self._memory.keep(tx)
                reach("engine.planned")
        except BaseException:
            self.finisher.put_back(judged)
            self.crew.put_back(news)
            self.looks.put_back(topics)
            self.planner.undo()
            self._lane.undo()
            self._memory.forget()
            self._next_renewal, self._next_sweep, self._quick.last = before
            raise
        reach("engine.claimed")
        self.started = [claim.job_id for claim in started]
        self.started += [each.call.job_id for each in self._lane.taken]
        self._lane.committed()
        helped: float | None = None

        def help_targets() -> None:
            nonlocal helped
            helped = self.helpers.run_for(self.planner.served, self.store)

        # It is committed: whatever is wrong with one of these, the others must follow.
        do_all(
            (
                self.timekeeper.committed,
                self.rounds.committed,
                self._lane.send,
                lambda: self.crew.send([each for each in started if each.function_host]),
                lambda: self.finisher.launch([each for each in started if not each.function_host]),
                lambda: self._judge(self.planner.restored),
                self.crew.committed,
                lambda: self._after_settling(judged, documents),
                lambda: self._pass_on_cancels(cancelling),
                lambda: self._rescue(now),
                self._look_around,
                help_targets,
            )
        )
        rounds = self.rounds.next_in() if self.dispatching else None
        soon = (delay, again, helped, self.looks.next_in(), rounds)
        delay = min(each for each in soon if each is not None)
        self.more = more
        self._expected_delay = 0.0 if more else delay
        self._quick.go_on(quiet, now=now, delay=delay)
        return self._expected_delay

    def _seen_quiet(self, tx: WriteTx) -> Quiet | None:
        """What the next steps may go by, if there will be only calls to settle and to start."""
        if self.looks.next_in() is not None or not tx.only_calls_wait(self.planner.queues):
            return None
        if self.planner.leaves_some:  # what is ours is not at the head
            return None
        return self._quick.seen(tx, self.planner.door(tx))

    def _look_around(self) -> None:
        """Look at what waiting jobs want to know; what nobody asks any more is let go."""
        due = self.looks.due()
        if not due or not self.dispatching:
            return
        with self.store.read() as tx:
            waited_for = tx.topics_waited_for([each.topic for each in due])
        self.looks.drop(each for each in due if each.topic not in waited_for)
        self.looks.go()

    def _settle_calls(self, tx: WriteTx, news: News) -> None:
        """Settle what became of function calls, and keep what they returned and reported."""
        if self.crew.news:
            self._tell_tasks(tx)
            tx.wake_topics([TASKS_TOPIC])
        if self.crew.progress:
            tx.keep_progress(list(self.crew.progress.values()))
        if news.ends:
            awaited = tx.anyone_awaits()
            ends = self._times.of_ends(tx, news.ends)
            tx.finish_calls(ends, actor=self.worker_id, awaited=awaited)
        told = news.told
        if not told:
            return
        cancelling = tx.cancelling_jobs()
        known = {
            each.job.id: each.job
            for each in told
            if each.job is not None and each.job.id not in cancelling
        }
        ended = self._settler.apply(tx, [(each.claim, each.judgement) for each in told], known)
        results = {each.claim.token: each.result for each in told if each.result is not None}
        if results:
            tx.keep_results([(c.job_id, results[c.token]) for c, _ in ended if c.token in results])

    def _tell_tasks(self, tx: WriteTx) -> None:
        self._next_told = self._clock.monotonic() + TELL_EVERY
        tx.know_tasks(self._host.id, sorted(self.crew.tasks), self.crew.trouble)

    def _must_tell(self, now: float) -> bool:
        """That this host is up and knows its functions: others leave them to it meanwhile."""
        return self.store.shared and self.crew.wanted and now >= self._next_told

    def _tell_again(self, tx: WriteTx, now: float) -> None:
        if not self._must_tell(now):
            return
        mine = [each for each in tx.tasks_told() if each.host_id == self._host.id]
        if not all(each.is_up for each in mine):  # others may have filed away what we know
            tx.wake_topics([TASKS_TOPIC])
        self._tell_tasks(tx)

    def _settle(self, tx: WriteTx, judged: list[Judged]) -> Documents:
        if not judged:
            return {}
        ended = self._settler.apply(tx, [(each.claim, each.judgement) for each in judged])
        self._look_anew(tx, [each.claim.job_id for each in judged if has_changed(each.judgement)])
        documents = job_documents(tx, [claim.job_id for claim, _ in ended], self.home)
        self.rounds.ended(each["schedule_id"] for each in documents.values())
        return documents

    def _look_anew(self, tx: ReadTx, job_ids: list[JobId]) -> None:
        """What these were claimed on held no longer when they were to start."""
        if job_ids:
            for job in tx.jobs(job_ids).values():
                self.looks.refute(questions_at_start(job))

    def _after_settling(self, judged: list[Judged], documents: Documents) -> None:
        if not judged:
            return
        reach("engine.settled")
        do_all(partial(self._forget, each) for each in judged)
        do_all(partial(self._document, each.claim, documents) for each in judged)

    def _forget(self, judged: Judged) -> None:
        """A lock that stays held would make its dead supervisor look alive."""
        self.finisher.forget(judged.claim.token)
        judged.release()
        self._clear_away(judged.claim, judged.judgement)

    def _clear_away(self, claim: Claim, judgement: Judgement) -> None:
        """What a claim leaves behind: files that only a start needs, and its control group."""
        if claim.host_id != self._host.id:  # the groups of a home that was copied are its own
            return
        if isinstance(judgement, Verdict) and not has_changed(judgement):
            if judgement.outcome.ending is Ending.SPAWN_ERROR or judgement.left:
                self._groups.of_claim(claim)
            return
        if not forget_cgroup(claim.token):
            self._groups.of_claim(claim)
        with suppress(OSError):
            Evidence(claim.folder, claim.token).shed()

    def _document(self, claim: Claim, documents: Documents) -> None:
        document = documents.get(claim.job_id)
        if document is not None:
            write_job_files(claim, document)
            reach("engine.documented")
            self._report(document)

    def _judge(
        self, claims: Sequence[Claim], judge: Callable[[Claim], Judged | None] | None = None
    ) -> None:
        """Settle the claims whose supervisors are gone; watch the others."""
        if not claims:
            return
        judge = judge or self._rescuer.judge
        judged, living = [], []
        try:
            for claim in claims:
                verdict = judge(claim)
                if verdict is None:
                    living.append(claim._replace(host_id=self._host.id))
                else:
                    judged.append(verdict)
            with self.store.write() as tx:
                adopted = [claim for claim in living if not self.finisher.watches(claim)]
                self._rescuer.readopted(tx, adopted)
                documents = self._settle(tx, judged)
                reach("engine.judged")
        except BaseException:
            for each in judged:  # a lock still held would make a dead supervisor look alive
                each.release()
            raise
        reach("engine.recovered")
        for claim in living:
            self.finisher.watch(claim)
        self._after_settling(judged, documents)

    def _limit(self, tx: ReadTx, limit: int | Batch | None) -> int | Batch | None:
        """With a spawn delay a worker makes one pass per delay; else all that there are."""
        if limit is not None:
            return limit
        if not spacing(tx):
            return max(0, MOST_UNANSWERED - self.finisher.unanswered())
        most = int(store_setting(tx.settings(), "scheduler.batch_size"))
        return Batch(most, most)

    def _parent_is_there(self, tx: WriteTx) -> bool:
        """Without a parent nothing can be started, which is the host's trouble and no job's."""
        trouble = self.finisher.parent_trouble
        if trouble is not None and tx.host_trouble(self._host.id) is None:
            self._settler.host_failed(tx, WaitKind.PRESSURE, trouble)
        return trouble is None

    def _delay(self, tx: ReadTx, now: float, *, planning: bool) -> float:
        times = [max(self._next_rescue, self._next_look) - now]
        instants = [tx.next_wake(), self.planner.look_again_at, next_pass(tx)] if planning else []
        if self.dispatching:
            instants.append(tx.marks()["next_fire_at"] or None)
        if planning and self.planner.strained and tx.anything_active():
            times.append(STRAINED_AGAIN)
        trouble = tx.host_trouble(self._host.id)
        if trouble is not None:
            instants.append(trouble.probe_at if trouble.probe_at > tx.now() else None)
            times.append(LOOK_AGAIN)
        if tx.lendings() or self._unproven or self.finisher.unseen():
            times.append(LOOK_AGAIN)
        times += self._direct.look(tx, self._grant_until)
        if self.crew.needs_a_look:
            times.append(LOOK_AGAIN / 2)
        if self._next_renewal > now:
            times.append(self._next_renewal - now)
        if self.store.shared and self.crew.wanted:
            times.append(max(0.0, self._next_told - now))
        if planning and tx.anything_active():
            times.append(max(0.0, self._next_sweep - now))
        times += [max(0, each - tx.now()) / SECOND for each in instants if each is not None]
        return max(0.0, min(times))

    def _sweep(self, tx: WriteTx, now: float) -> bool:
        if now < self._next_sweep:
            return False
        self._next_sweep = now + SWEEP_EVERY
        return bool(self.planner.sweep(tx, tx.now() - int(SWEEP_EVERY * SECOND)))

    def _notice_suspend(self) -> None:
        """After a suspend nobody could renew: grant one period before anything expires."""
        now = self._clock.now()
        late = now - self._last_step - int(self._expected_delay * SECOND)
        if late > LENDING_PERIOD:
            self._grant_until = self.store.present() + LENDING_PERIOD
        self._last_step = now

    def _end_expired_lendings(self, tx: WriteTx) -> None:
        if tx.now() >= self._grant_until and tx.lendings():
            tx.end_expired_lendings(tx.now())

    def _renew_leases(self, tx: WriteTx, now: float) -> None:
        """Other hosts see by it that this one's claims are looked after."""
        if self._must_renew(now):
            self._next_renewal = now + RENEW_EVERY
            tx.renew_leases(self._host.id, tx.now() + LEASE)

    def _must_renew(self, now: float) -> bool:
        return self.store.shared and now >= self._next_renewal and self._busy()

    def _busy(self) -> bool:
        return bool(self.finisher.claims or self.crew.running())

    def _pass_on_cancels(self, cancelling: set[JobId]) -> None:
        """Tell the supervisors of cancelled jobs: who cancelled may be on another host, or may
        have died before telling them."""
        if not cancelling:
            self._told.clear()
            return
        self.crew.cancel(cancelling, self._clock.monotonic())
        for claim in self.finisher.claims:
            if claim.job_id in cancelling and claim.token not in self._told:
                with suppress(OSError):  # no room to tell it now; the next step tries again
                    tell_to_cancel(Evidence(claim.folder, claim.token))
                    self._told.add(claim.token)

    def _rescue(self, now: float) -> None:
        """Look after trees that are not yet gone, and claims whose supervisor is silent."""
        if now < self._next_look:
            return
        self._next_look = now + LOOK_AGAIN
        self.crew.look()
        self._prove_trees_gone()
        claims = self.finisher.unseen()
        if now >= self._next_rescue:
            self._next_rescue = now + RESCUE_EVERY
            with self.store.read() as tx:
                mine = self._rescuer.mine(tx.live_claims())
            claims = self.finisher.judgeable([each for each in mine if not each.function_host])
        self._judge(claims + self._ended_by_force())

    def _ended_by_force(self) -> list[Claim]:
        """Supervisors that answer neither a cancel nor a deadline are ended from outside."""
        if not self.finisher.claims:
            return []
        with self.store.read() as tx:
            silent = self._rescuer.unanswered(tx, self.finisher.claims)
        for claim in silent:
            self.finisher.end_supervisor(claim)
            reach("engine.forced")
        return silent

    def _prove_trees_gone(self) -> None:
        proven = self._rescuer.prove_gone(self._unproven)
        if not proven:
            return
        with self.store.write() as tx:
            trees_gone(tx, proven, actor=self.worker_id)
        reach("engine.proved_gone")
        for claim in proven:
            self._groups.of_claim(claim)
