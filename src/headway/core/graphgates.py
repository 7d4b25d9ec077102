"""The gates of the job graph: artifacts, the pinned head, preconditions, approval.

What they need to know of the world outside (a branch, a file, a condition) is in `facts.answers`. A
gate that misses an answer says what to look up (`Wait.asks`); the look is made outside of any
transaction, and the gate is asked again. The words of the details are contract.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

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
    Question,
    Sight,
    Wait,
    WaitKind,
    shown,
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
            return _unseen(WaitKind.DEPENDENCIES, f"waiting on {text}", question)
        if answer.trouble is not None:
            return _troubled(WaitKind.DEPENDENCIES, f"waiting on {text}", question, answer)
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
        makers = ", ".join(shown(each) for each in active[:3]) if active else "nobody yet"
        return Wait(
            WaitKind.DEPENDENCIES,
            f"waiting on {text}",
            topics=(artifact_topic(key), *(each.topic for each in asks)),
            remedy=f"it is made by {makers}",
            asks=asks,
        )
    if not view.producers:
        return Block(
            WaitKind.DEPENDENCIES,
            f"missing {text}",
            remedy="nobody produces it: submit its producer first, or set "
            "scheduler.missing_producer to wait",
            asks=asks,
        )
    if any(each.status is Status.SUCCEEDED for each in view.producers):
        return Block(
            WaitKind.DEPENDENCIES,
            f"missing {text}",
            remedy="its producer succeeded without making it: correct that and retry it",
            asks=asks,
        )
    failed = view.producers[0]
    return Block(
        WaitKind.DEPENDENCIES,
        f"dependency failed for {text}",
        remedy=f"headway jobs retry {shown(failed.job_id)} ({failed.status})",
        asks=asks,
    )


def where_to_look(
    artifact: Artifact, repo: str | None, facts: Facts, view: ArtifactView
) -> Question | None:
    """What shows that an artifact is there; None for one that only its marker shows."""
    match artifact.kind:
        case ArtifactKind.CUSTOM:
            return None
        case ArtifactKind.FILE:
            return Question(Sight.FILE, name=artifact.name)
        case ArtifactKind.MERGE_SENTINEL:
            return Question(Sight.FILE, name=sentinel_path(facts.home, artifact.name))
        case ArtifactKind.COMMAND_PATCH:
            last = max((each.job_id for each in view.producers), default=artifact.job_id)
            return Question(Sight.FILE, name=f"{facts.jobs_folder}/{last}/command.patch")
        case ArtifactKind.PLAN_DOC:
            name = f"{artifact.branch}:{plan_document(artifact.name)}"
            return Question(Sight.FILE_ON_BRANCH, repo or "", name)
        case _:
            return Question(Sight.BRANCH, repo or "", artifact.branch or "")


def head_pinned(job: Job, facts: Facts) -> Objection | None:
    """The head is still at the commit that the job was pinned to."""
    pin = job.pinned_head
    if pin is None:
        return None

    def moved(found: str | None) -> str | None:
        if found == pin.oid:
            return None
        there = f"is at {found[:12]}" if found else "is gone"
        return (
            f"{pin.branch} {there}, not at {pin.oid[:12]}: move it back, "
            f"or headway jobs repin {shown(job.id)}"
        )

    detail = f"pinned head mismatch on {pin.branch}"
    look = _Look(WaitKind.PINNED_HEAD, _head(pin, job), f"looking at {pin.branch}", detail)
    return _seen(look, facts, moved)


def _head(pin: PinnedHead, job: Job) -> Question:
    if pin.head:
        return Question(Sight.HEAD, job.repo or "")
    return Question(Sight.BRANCH, job.repo or "", pin.branch)


def preconditions_hold(job: Job, facts: Facts) -> Objection | None:
    """The worktree is clean, the branch exists, registered conditions hold."""
    for text in job.preconditions:
        objection = _unheld(text, job, facts)
        if objection is not None:
            return objection
    return None


def _unheld(text: str, job: Job, facts: Facts) -> Objection | None:
    look = _look_for(text, job)
    if isinstance(look, Block):
        return look

    def lacking(found: str | None) -> str | None:
        match look.question.sight:
            case Sight.CLEAN:
                return found and f"commit or remove the changes in {job.repo}: {found}"
            case Sight.BRANCH:
                remedy = f"git branch {look.question.name}, in {job.repo}"
            case _:
                remedy = f"wait until {look.question.name} holds"
        return remedy if found is None else None

    return _seen(look, facts, lacking)


def _look_for(text: str, job: Job) -> "_Look | Block":
    """What shows whether a precondition holds, if it can be resolved."""
    custom = text.removeprefix(CUSTOM)  # which may name a built-in
    kind, _, argument = custom.partition(":")
    repo = job.repo or ""
    if kind == "clean_worktree":
        words = ("looking at the worktree", "worktree is not clean")
        return _Look(WaitKind.PRECONDITIONS, Question(Sight.CLEAN, repo), *words)
    if kind == "branch_exists":
        branches = _branches_meant(argument, job)
        if len(branches) != 1:
            which = ", ".join(branches) if branches else "none"
            return _invalid(
                f"branch_exists needs one branch, and there is {which}",
                "submit it again with --require branch_exists:BRANCH",
            )
        words = (f"looking for branch {branches[0]}", f"branch {branches[0]} does not exist")
        return _Look(WaitKind.PRECONDITIONS, Question(Sight.BRANCH, repo, branches[0]), *words)
    if text.startswith(CUSTOM):
        words = (f"asking condition {custom}", f"condition {custom} does not hold")
        return _Look(WaitKind.PRECONDITIONS, Question(Sight.CONDITION, repo, custom), *words)
    return _invalid(f"unknown precondition {text}", "submit it again without it")


def _branches_meant(named: str, job: Job) -> list[str]:
    """As it was given, else the pinned one, else that of the one lock on a branch."""
    if named:
        return [named]
    if job.pinned_head is not None and job.pinned_head.branch:
        return [job.pinned_head.branch]
    keys = (lock.key for lock in job.locks)
    return [key.removeprefix(BRANCH_LOCK) for key in keys if key.startswith(BRANCH_LOCK)]


class _Look(NamedTuple):
    """A question with the words for not having looked, and for an answer that is not as wished."""

    kind: WaitKind
    question: Question
    looking: str
    detail: str


def _seen(
    look: _Look, facts: Facts, lacking: Callable[[str | None], str | None]
) -> Objection | None:
    """What the look shows; `lacking` says what would clear the wait, or None if all is well."""
    answer = facts.answers.get(look.question)
    if answer is None:
        return _unseen(look.kind, look.looking, look.question)
    if answer.trouble is not None:
        return _troubled(look.kind, look.detail, look.question, answer)
    remedy = lacking(answer.found)
    if remedy is None:
        return None
    return Wait(
        look.kind,
        look.detail,
        topics=(look.question.topic,),
        remedy=remedy,
        asks=(look.question,),
    )


def too_old(job: Job, facts: Facts) -> Wait | None:
    """Of a job that passes every gate: what must be looked at once more before it starts, since
    the answers that it passes on are from before."""
    old = [
        (kind, question)
        for kind, question in _passed_on(job, facts)
        if question not in facts.answers or not facts.answers[question].fresh
    ]
    if not old:
        return None
    asks = tuple(dict.fromkeys(question for _, question in old))
    topics = tuple(question.topic for question in asks)
    return Wait(old[0][0], "looking once more", topics=topics, asks=asks)


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
        look = _look_for(text, job)
        if isinstance(look, _Look):
            yield WaitKind.PRECONDITIONS, look.question


def checked_at_start(job: Job) -> Job | None:
    """The job with only what is checked once more between its claim and its command: the pinned
    head, and preconditions about its repository. None: there is nothing of that. A registered
    condition is not asked twice: it runs a program of its own and may take long."""
    checked = tuple(text for text in job.preconditions if _is_about_repository(text, job))
    if job.pinned_head is None and not checked:
        return None
    return job._replace(preconditions=checked)


def _is_about_repository(text: str, job: Job) -> bool:
    look = _look_for(text, job)
    return isinstance(look, _Look) and look.question.sight is not Sight.CONDITION


def questions_at_start(job: Job) -> tuple[Question, ...]:
    """What must be looked up for that check."""
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
    return Wait(
        WaitKind.APPROVAL,
        "awaiting human approval",
        remedy=f"headway jobs approve {shown(job.id)}, or reject it; "
        f"asked for by {job.approval.requested_by or 'its submitter'}",
    )


def _unseen(kind: WaitKind, detail: str, question: Question) -> Wait:
    return Wait(kind, detail, topics=(question.topic,), asks=(question,), remedy="wait a moment")


def _troubled(kind: WaitKind, detail: str, question: Question, answer: Answer) -> Objection:
    """It could not be looked at. That concerns this job alone; it is tried again."""
    if answer.final:
        return Block(kind, f"{answer.trouble}", remedy="submit it again without that condition")
    return Wait(
        kind,
        detail,
        topics=(question.topic,),
        remedy=f"it could not be looked at: {answer.trouble}",
        asks=(question,),
    )


def _invalid(detail: str, remedy: str) -> Block:
    return Block(WaitKind.PRECONDITIONS, detail, remedy=remedy)
