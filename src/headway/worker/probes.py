"""Probes: what the planner's gates ask of the world, answered outside of its transactions.

A gate that misses an answer parks its job under the question. The probe is made in a thread, since
a repository may take long to answer. It wakes those jobs when its answer differs from the one
before. While jobs wait for another answer it is made again, ever more rarely. An answer is fresh
for a moment only: what was clean a minute ago may not be so now. So a job that has waited for
something else since then needs one more probe when its turn comes. Until that its slot is kept.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from headway.base.clock import Clock
from headway.base.wake_up import WakeUp
from headway.core.facts import Answer
from headway.core.model import JobId, ProbeKind, Question

FRESH_SECONDS = 1.0
FIRST_AGAIN = 0.5
LONGEST_AGAIN = 10.0
MOST_REMEMBERED = 10_000

Ask = Callable[[Collection[Question]], Mapping[Question, Answer]]


@dataclass(slots=True)
class _Watched:
    """One question; `missed` means that a gate had to do without a fresh answer."""

    next_at: float
    again: float = FIRST_AGAIN
    answer: Answer | None = None
    seen_at: float = 0.0
    missed: bool = True
    under_way: bool = False
    begun: int = 0  # counted, not timed: which came first must be certain


@dataclass(slots=True)
class _Refuted:
    """An answer on which a job was claimed, and that held no longer when it was to start."""

    answer: Answer | None
    since: int  # counted as probes are: only those that began later say anything
    pause: float = 0.0
    look_at: float = 0.0  # not before


class _KnownAnswers(Mapping[Question, Answer]):
    """Every answer that is remembered, each with the word whether it is fresh."""

    def __init__(self, seen: Mapping[Question, tuple[Answer, float]], since: float) -> None:
        self._seen = seen
        self._since = since

    def __getitem__(self, question: Question) -> Answer:
        answer, at = self._seen[question]
        return answer if at >= self._since else answer._replace(fresh=False)

    def __iter__(self) -> Iterator[Question]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)


class Probes:
    """`in_thread` is for workers; others probe at once and wait."""

    def __init__(self, ask: Ask, clock: Clock, *, in_thread: bool) -> None:
        self._ask = ask
        self._clock = clock
        self._in_thread = in_thread
        self._watched: dict[Question, _Watched] = {}
        self._seen: list[tuple[Mapping[Question, Answer], float, int]] = []
        self._put_back: list[str] = []
        self._remembered: dict[Question, tuple[Answer, float]] = {}
        self._expected: dict[JobId, set[Question]] = {}
        self._kept: dict[JobId, tuple[str, ...]] = {}
        self._doubts: dict[
            JobId, dict[Question, int]
        ] = {}  # by job: questions in doubt, since when
        self._refuted: dict[Question, _Refuted] = {}
        self.wake_up = WakeUp()  # sent when a probe was made
        self._count = 0

    def answers(self) -> Mapping[Question, Answer]:
        return _KnownAnswers(self._remembered, self._clock.monotonic() - FRESH_SECONDS)

    def expect(
        self, job_id: JobId, questions: Collection[Question], keys: Collection[str] = ()
    ) -> None:
        """The job starts if these probes give the same answers as the last. Until then its slot is
        kept, and what it needs of the limits."""
        self.want(questions)
        self._expected[job_id] = set(questions)
        self._kept[job_id] = tuple(keys)

    def expected(self) -> int:
        """How many slots are kept for jobs that a probe will let start."""
        return len(self._expected)

    def expects(self, job_id: JobId) -> bool:
        """Whether a place is kept for this job until one more probe was made for it."""
        return job_id in self._expected

    def kept_keys(self) -> list[str]:
        """The keys of limits that are kept, once for each job."""
        return [key for keys in self._kept.values() for key in keys]

    def _settle(self, question: Question) -> None:
        """A probe was made, or no job waits for it: no slot is kept for its sake."""
        for job_id, awaited in list(self._expected.items()):
            if question in awaited:
                del self._expected[job_id], self._kept[job_id]

    def want(self, questions: Iterable[Question]) -> None:
        """A job was held back by these: probe now where there is no fresh answer, else later."""
        now = self._clock.monotonic()
        for question in questions:
            watched = self._watched.get(question)
            if watched is None:
                self._watched[question] = _Watched(next_at=self._soonest(question, now))
            elif watched.answer is None or watched.seen_at < now - FRESH_SECONDS:
                watched.missed = True
                watched.next_at = self._soonest(question, now)

    def refute(self, questions: Iterable[Question]) -> None:
        """A job was claimed on the answers to these, which held no longer when it was to start.
        None of these answers counts any more, nor that of a probe which is under way.

        The probe and the check at the start may go on to disagree. So a question that is refuted
        again with the same answer is probed later and later.
        """
        self._count += 1
        now = self._clock.monotonic()
        for question in questions:
            answer, _ = self._remembered.pop(question, (None, 0.0))
            before = self._refuted.get(question)
            pause = 0.0
            if before is not None and before.answer == answer:
                pause = min(max(FIRST_AGAIN, 2 * before.pause), LONGEST_AGAIN)
            self._refuted[question] = _Refuted(answer, self._count, pause, now + pause)
            watched = self._watched.get(question)
            if watched is not None:
                watched.answer, watched.missed, watched.next_at = None, True, now + pause

    def _soonest(self, question: Question, now: float) -> float:
        refuted = self._refuted.get(question)
        return now if refuted is None else max(now, refuted.look_at)

    def take_over(self, questions: Iterable[Question]) -> None:
        """Jobs wait for other answers to these, too: the worker that probed may be gone."""
        now = self._clock.monotonic()
        for question in questions:
            self._watched.setdefault(question, _Watched(next_at=now))

    def doubt(self, job_id: JobId, questions: Iterable[Question]) -> tuple[Question, ...]:
        """Of these, the ones that must be probed again before the job may be ended for their
        answers. The probe has to begin after the job was found to be without hope."""
        now = self._clock.monotonic()
        doubts = self._doubts.setdefault(job_id, {})
        doubtful = []
        for question in questions:
            watched = self._watched.setdefault(question, _Watched(next_at=now))
            since = doubts.get(question)
            if since is not None and since < watched.begun and not watched.under_way:
                continue
            if since is None:
                self._count += 1
                doubts[question] = self._count
            watched.missed = True
            watched.next_at = now
            doubtful.append(question)
        if not doubtful:
            del self._doubts[job_id]
        return tuple(doubtful)

    def give_hope(self, job_id: JobId) -> None:
        """The job has something to wait for: should it lose that, it is another doubt."""
        self._doubts.pop(job_id, None)

    def due(self) -> list[Question]:
        now = self._clock.monotonic()
        return [
            question
            for question, watched in self._watched.items()
            if not watched.under_way and watched.next_at <= now
        ]

    def drop(self, questions: Iterable[Question]) -> None:
        """Nobody waits for another answer to these."""
        for question in questions:
            self._watched.pop(question, None)
            self._refuted.pop(question, None)
            self._settle(question)
            for job_id in [each for each, doubts in self._doubts.items() if question in doubts]:
                del self._doubts[job_id]

    def go(self) -> None:
        """Begin the probes that are due."""
        due = self.due()
        self._count += 1
        for question in due:
            self._watched[question].under_way = True
            self._watched[question].begun = self._count
        if not due:
            return
        if not self._in_thread:
            self._probe(due, self._count)
            return
        for together in _by_place(due):
            args = (together, self._count)
            threading.Thread(target=self._probe, args=args, daemon=True).start()

    def _probe(self, questions: Collection[Question], begun: int) -> None:
        try:
            answers = self._ask(questions)
        except Exception as error:  # one that is not foreseen must not silence the others
            trouble = f"unexpected {type(error).__name__}: {error}"
            answers = dict.fromkeys(questions, Answer(trouble=trouble))
        self._seen.append((answers, self._clock.monotonic(), begun))
        self.wake_up.wake()

    def probe_now(self, questions: Collection[Question]) -> Mapping[Question, Answer]:
        """Probe and wait for the answers. They count for the next steps, too."""
        answers = self._ask(questions)
        at = self._clock.monotonic()
        for question, answer in answers.items():
            self._remember(question, answer, at)
        return answers

    def take_in(self) -> list[str]:
        """Take in the answers. Returns the topics whose jobs are to be planned again."""
        topics, self._put_back = self._put_back, []
        while self._seen:
            answers, at, begun = self._seen.pop(0)
            for question, answer in answers.items():
                watched = self._watched.get(question)
                if self._is_refuted(question, begun):
                    if watched is not None:
                        watched.under_way = False
                    continue
                self._remember(question, answer, at)
                self._settle(question)
                if watched is not None and self._note(watched, answer, at):
                    topics.append(question.topic)
        return topics

    def _is_refuted(self, question: Question, begun: int) -> bool:
        """Whether a probe began before its answer was refuted."""
        refuted = self._refuted.get(question)
        return refuted is not None and begun < refuted.since

    def put_back(self, topics: list[str]) -> None:
        """The transaction that was to wake the jobs of these topics was undone."""
        self._put_back += topics

    def _remember(self, question: Question, answer: Answer, at: float) -> None:
        refuted = self._refuted.get(question)
        if refuted is not None and refuted.answer != answer:
            del self._refuted[question]
        self._remembered.pop(question, None)  # the last seen is the last to be forgotten
        self._remembered[question] = (answer, at)
        if len(self._remembered) > MOST_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]

    def _note(self, watched: _Watched, answer: Answer, at: float) -> bool:
        changed = watched.missed or answer != watched.answer
        watched.again = FIRST_AGAIN if changed else min(2 * watched.again, LONGEST_AGAIN)
        watched.answer, watched.seen_at = answer, at
        watched.next_at = self._clock.monotonic() + watched.again
        watched.missed = watched.under_way = False
        return changed

    def unsure(self) -> bool:
        """Whether a gate waits for the first answer to something."""
        return bool(self._seen) or any(watched.missed for watched in self._watched.values())

    def next_in(self) -> float | None:
        """The seconds until the next probe, if one is to be made."""
        if self._seen or self._put_back:
            return 0.0
        times = [each.next_at for each in self._watched.values() if not each.under_way]
        return max(0.0, min(times) - self._clock.monotonic()) if times else None

    def close(self) -> None:
        self.wake_up.close()


def _by_place(questions: Iterable[Question]) -> Iterable[list[Question]]:
    """Those of one repository together; a condition by itself, since it may hang."""
    places: dict[tuple[str, str], list[Question]] = {}
    for each in questions:
        alone = each.name if each.kind is ProbeKind.CONDITION else ""
        places.setdefault((each.repo, alone), []).append(each)
    return places.values()
