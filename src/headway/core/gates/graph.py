"""The gates of the job graph: artifacts, the pinned head, preconditions, approval.

What they need to know of the world outside (a branch, a file, a condition) is in `facts.answers`. A
gate that misses an answer says what to probe (`Wait.asks`). The probe runs outside of any
transaction, and the gate is asked again. `wait_words` has the words.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from headway.core import wait_words as say
from headway.core.approvals import approval_rule
from headway.core.artifacts import (
    Artifact,
    ArtifactKind,
    artifact_key,
    artifact_topic,
    parse_artifact,
    plan_document,
    sentinel_path,
)
from headway.core.facts import Answer, ArtifactView, Facts
from headway.core.model import (
    ApprovalState,
    Block,
    Job,
    Objection,
    PinnedHead,
    ProbeKind,
    Question,
    Wait,
    WaitKind,
)
from headway.core.states import ACTIVE, Status
from headway.core.subjects import subject_question

BRANCH_LOCK = "branch:"  # a lock with such a key is about that branch
CUSTOM = "custom:"


def artifacts_present(job: Job, facts: Facts) -> Objection | None:
    """Every artifact that it needs is there; the first that is not decides."""
    for text in job.needs:
        objection = lacking(text, job, facts)
        if objection is not None:
            return objection
    return None


def lacking(text: str, job: Job, facts: Facts) -> Objection | None:
    """Why this one artifact is not there for the job; None if it is."""
    key = artifact_key(text, job.repo)
    view = facts.artifacts.get(key, ArtifactView())
    if view.published:
        return None
    artifact = parse_artifact(text)
    if _made_by_success(text, view):
        return None
    question = where_to_look(artifact, job.repo, facts, view)
    asks: tuple[Question, ...] = ()
    if question is not None and not view.withdrawn:
        answer = facts.answers.get(question)
        if answer is None:
            return _unseen(WaitKind.DEPENDENCIES, say.waits_on_artifact(text).detail, question)
        if answer.trouble is not None:
            detail = say.waits_on_artifact(text).detail
            return _troubled(WaitKind.DEPENDENCIES, detail, question, answer)
        if answer.found is not None:
            return None
        asks = (question,)
    return _missing(text, key, view, asks, facts)


def _made_by_success(text: str, view: ArtifactView) -> bool:
    """A patch is there when its job has succeeded, whether it changed anything or not."""
    made = any(each.status is Status.SUCCEEDED for each in view.producers)
    return made and not view.withdrawn and text.startswith(f"{ArtifactKind.COMMAND_PATCH}:")


def _missing(
    text: str, key: str, view: ArtifactView, asks: tuple[Question, ...], facts: Facts
) -> Objection:
    """It is not there: whether it is worth waiting for is up to those who make it."""
    active = [each.job_id for each in view.producers if each.status in ACTIVE]
    if active or (not view.producers and facts.wait_for_producers):
        words = say.waits_on_artifact(text, active)
        return Wait(
            WaitKind.DEPENDENCIES,
            words.detail,
            topics=(artifact_topic(key), *(each.topic for each in asks)),
            remedy=words.remedy,
            asks=asks,
        )
    if not view.producers:
        words = say.without_producer(text)
    elif good := [each for each in view.producers if each.status is Status.SUCCEEDED]:
        words = say.not_produced(text, good[0].job_id)
    else:
        words = say.failed_producer(text, view.producers[0].job_id, view.producers[0].status)
    return Block(WaitKind.DEPENDENCIES, words.detail, remedy=words.remedy, asks=asks)


def where_to_look(
    artifact: Artifact, repo: str | None, facts: Facts, view: ArtifactView
) -> Question | None:
    """The question whether an artifact is there; None for one that only the store knows."""
    match artifact.kind:
        case ArtifactKind.CUSTOM:
            return None
        case ArtifactKind.FILE:
            return Question(ProbeKind.FILE, name=artifact.name)
        case ArtifactKind.MERGE_SENTINEL:
            return Question(ProbeKind.FILE, name=sentinel_path(facts.home, artifact.name))
        case ArtifactKind.COMMAND_PATCH:
            last = max((each.job_id for each in view.producers), default=artifact.job_id)
            return Question(ProbeKind.FILE, name=f"{facts.jobs_folder}/{last}/command.patch")
        case ArtifactKind.PLAN_DOC:
            name = f"{artifact.branch}:{plan_document(artifact.name)}"
            return Question(ProbeKind.FILE_ON_BRANCH, repo or "", name)
        case _:
            return Question(ProbeKind.BRANCH, repo or "", artifact.branch or "")


def head_pinned(job: Job, facts: Facts) -> Objection | None:
    """The head is still at the commit that the job was pinned to."""
    pin = job.pinned_head
    if pin is None:
        return None

    def moved(found: str | None) -> str | None:
        return None if found == pin.oid else say.moved_head(pin, found, job)

    probe = _Probe(WaitKind.PINNED_HEAD, _head(pin, job), *say.head(pin))
    return _seen(probe, facts, moved)


def _head(pin: PinnedHead, job: Job) -> Question:
    if pin.head:
        return Question(ProbeKind.HEAD, job.repo or "")
    return Question(ProbeKind.BRANCH, job.repo or "", pin.branch)


def preconditions_hold(job: Job, facts: Facts) -> Objection | None:
    """The worktree is clean, the branch exists, registered conditions hold."""
    for text in job.preconditions:
        objection = _unheld(text, job, facts)
        if objection is not None:
            return objection
    return None


def _unheld(text: str, job: Job, facts: Facts) -> Objection | None:
    probe = _probe_for(text, job)
    if isinstance(probe, Block):
        return probe

    def lacking(found: str | None) -> str | None:
        match probe.question.kind:
            case ProbeKind.CLEAN:
                return found and say.unclean(job.repo, found)
            case ProbeKind.BRANCH:
                remedy = say.make_branch(probe.question.name, job.repo)
            case _:
                remedy = say.let_it_hold(probe.question.name)
        return remedy if found is None else None

    return _seen(probe, facts, lacking)


def _probe_for(text: str, job: Job) -> "_Probe | Block":
    """The question whether a precondition holds, if it can be resolved."""
    custom = text.removeprefix(CUSTOM)  # which may name a built-in
    kind, _, argument = custom.partition(":")
    repo = job.repo or ""
    if kind == "clean_worktree":
        words = say.CLEAN_WORKTREE
        return _Probe(WaitKind.PRECONDITIONS, Question(ProbeKind.CLEAN, repo), *words)
    if kind == "branch_exists":
        branches = _branches_meant(argument, job)
        if len(branches) != 1:
            return _invalid(say.unclear_branch(branches))
        words = say.branch_exists(branches[0])
        return _Probe(WaitKind.PRECONDITIONS, Question(ProbeKind.BRANCH, repo, branches[0]), *words)
    if text.startswith(CUSTOM):
        words = say.condition(custom)
        return _Probe(WaitKind.PRECONDITIONS, Question(ProbeKind.CONDITION, repo, custom), *words)
    return _invalid(say.unknown_precondition(text))


def _branches_meant(named: str, job: Job) -> list[str]:
    """As it was given, else the pinned one, else that of the one lock on a branch."""
    if named:
        return [named]
    if job.pinned_head is not None and job.pinned_head.branch:
        return [job.pinned_head.branch]
    keys = (lock.key for lock in job.locks)
    return [key.removeprefix(BRANCH_LOCK) for key in keys if key.startswith(BRANCH_LOCK)]


class _Probe(NamedTuple):
    """A question with the words for a missing answer, and for one that holds the job back."""

    kind: WaitKind
    question: Question
    looking: str
    detail: str


def _seen(
    probe: _Probe, facts: Facts, lacking: Callable[[str | None], str | None]
) -> Objection | None:
    """The wait by its answer; `lacking` says what would clear it, or None if all is well."""
    answer = facts.answers.get(probe.question)
    if answer is None:
        return _unseen(probe.kind, probe.looking, probe.question)
    if answer.trouble is not None:
        return _troubled(probe.kind, probe.detail, probe.question, answer)
    remedy = lacking(answer.found)
    if remedy is None:
        return None
    return Wait(
        probe.kind,
        probe.detail,
        topics=(probe.question.topic,),
        remedy=remedy,
        asks=(probe.question,),
    )


def too_old(job: Job, facts: Facts) -> Wait | None:
    """The questions that must be probed once more before a job that passes every gate starts, since
    its answers are old."""
    old = [
        (kind, question)
        for kind, question in _passed_on(job, facts)
        if question not in facts.answers or not facts.answers[question].fresh
    ]
    if not old:
        return None
    asks = tuple(dict.fromkeys(question for _, question in old))
    topics = tuple(question.topic for question in asks)
    return Wait(old[0][0], say.LOOKING_AGAIN, topics=topics, asks=asks)


def _passed_on(job: Job, facts: Facts) -> Iterator[tuple[WaitKind, Question]]:
    for text in job.needs:
        view = facts.artifacts.get(artifact_key(text, job.repo), ArtifactView())
        if view.published or _made_by_success(text, view):
            continue
        question = where_to_look(parse_artifact(text), job.repo, facts, view)
        if question is not None:
            yield WaitKind.DEPENDENCIES, question
    about = subject_question(job)
    if about is not None:
        yield WaitKind.SUBJECT, about
    yield from _asked_for(job)


def _asked_for(job: Job) -> Iterator[tuple[WaitKind, Question]]:
    """What the job itself asks of the world: its pinned head and its preconditions."""
    if job.pinned_head is not None:
        yield WaitKind.PINNED_HEAD, _head(job.pinned_head, job)
    for text in job.preconditions:
        probe = _probe_for(text, job)
        if isinstance(probe, _Probe):
            yield WaitKind.PRECONDITIONS, probe.question


def checked_at_start(job: Job) -> Job | None:
    """The job with only what is checked once more between its claim and its command: the pinned
    head, and preconditions about its repository. None: there is nothing of that. A registered
    condition is not asked twice: it runs a program of its own and may take long."""
    checked = tuple(text for text in job.preconditions if _is_about_repository(text, job))
    if job.pinned_head is None and not checked:
        return None
    return job._replace(preconditions=checked)


def _is_about_repository(text: str, job: Job) -> bool:
    probe = _probe_for(text, job)
    return isinstance(probe, _Probe) and probe.question.kind is not ProbeKind.CONDITION


def questions_at_start(job: Job) -> tuple[Question, ...]:
    """The questions of that check."""
    checked = checked_at_start(job)
    asked = () if checked is None else _asked_for(checked)
    return tuple(dict.fromkeys(question for _, question in asked))


def objection_at_start(checked: Job, answers: Mapping[Question, Answer]) -> Objection | None:
    """Why a job, of which `checked_at_start` gave this, must not start after all: what its gates
    say now."""
    facts = Facts(now=0, answers=answers)
    return head_pinned(checked, facts) or preconditions_hold(checked, facts)


def approved(job: Job, facts: Facts) -> Objection | None:
    """A person has agreed, if one is to be asked."""
    if job.approval is None or job.approval.state is ApprovalState.APPROVED:
        return None
    until = _expires_at(job, facts)
    if until is not None and until <= facts.now:
        words = say.approval_expired(job, approval_rule(job).expires or 0)
        status = Status.BLOCKED_BY_APPROVAL
        return Block(WaitKind.APPROVAL, words.detail, status, remedy=words.remedy)
    words = say.not_approved(job, job.approval)
    return Wait(WaitKind.APPROVAL, words.detail, until=until, remedy=words.remedy)


def _expires_at(job: Job, facts: Facts) -> int | None:
    """Counted from when its turn came: when it was asked for, or the last node before it ended."""
    expires = approval_rule(job).expires
    if expires is None or job.approval is None:
        return None
    view = facts.runs.get(job.id)
    turn = view.turn_at if view is not None else None
    return max(job.approval.requested_at, turn or 0) + expires


def _unseen(kind: WaitKind, detail: str, question: Question) -> Wait:
    return Wait(kind, detail, topics=(question.topic,), asks=(question,), remedy=say.UNSEEN)


def _troubled(kind: WaitKind, detail: str, question: Question, answer: Answer) -> Objection:
    """The probe failed. That concerns this job alone; it is tried again."""
    if answer.final:
        return Block(kind, f"{answer.trouble}", remedy=say.FINAL_TROUBLE)
    return Wait(
        kind,
        detail,
        topics=(question.topic,),
        remedy=say.trouble_of_probe(answer.trouble),
        asks=(question,),
    )


def _invalid(words: say.Words) -> Block:
    return Block(WaitKind.PRECONDITIONS, words.detail, remedy=words.remedy)
