"""What each gate of the job graph says, word for word, and which of them speaks first."""

from typing import Any

import pytest
from given import NOW, facts, job, shared

from headway.core.artifacts import artifact_key
from headway.core.facts import Answer, ArtifactView, Facts, Producer
from headway.core.gates import graph as graphgates
from headway.core.model import (
    Approval,
    ApprovalState,
    Block,
    Job,
    Objection,
    PinnedHead,
    ProbeKind,
    Question,
    Wait,
)
from headway.core.plan import move_for
from headway.core.states import ACTIVE, TERMINAL, Status, after

REPO = "/srv/repo"
OID, OTHER = "a" * 40, "b" * 40
HEAD = Question(ProbeKind.HEAD, REPO)
MAIN = Question(ProbeKind.BRANCH, REPO, "main")
CLEAN = Question(ProbeKind.CLEAN, REPO)
SUCCEEDED, FAILED, RUNNING = (
    Producer(7, Status.SUCCEEDED),
    Producer(8, Status.FAILED),
    Producer(9, Status.RUNNING),
)
ABSENT = Answer()
BROKEN = Answer(trouble="fatal: bad object")


def known(answers: dict[Question, Answer] | None = None, **fields: Any) -> Facts:
    home = {"home": "/home/.headway", "jobs_folder": "/home/.headway/jobs"}
    return facts(answers=answers or {}, **(home | fields))


def said(objection: Objection | None) -> tuple[str, str, str] | None:
    """The contract's part of an objection: kind, detail and the status that shows it."""
    match objection:
        case Wait():
            return objection.kind, objection.detail, after(Status.QUEUED, move_for(objection))
        case Block():
            return objection.kind, objection.detail, objection.status
        case None:
            return None


# -- artifacts ------------------------------------------------------------------------------------

REPORT = "custom:report:june"


def needing(text: str, view: ArtifactView, **fields: Any) -> tuple[Job, Facts]:
    needy = job(1, needs=(text,), repo=REPO)
    return needy, known(artifacts={artifact_key(text, REPO): view}, **fields)


WAITING = ("dependencies", f"waiting on {REPORT}", "waiting_on_deps")
MISSING = ("dependencies", f"missing {REPORT}", "blocked_by_dependency")
LOST = ("dependencies", f"dependency failed for {REPORT}", "blocked_by_dependency")


@pytest.mark.req("V53", "V54", "V55", "V56", "V57", "V58", "V59")
@pytest.mark.parametrize(
    ("view", "answer"),
    [
        (ArtifactView(published=True), None),
        (ArtifactView(published=True, producers=(RUNNING,)), None),
        (ArtifactView(published=True, producers=(FAILED,)), None),
        (ArtifactView(published=True, withdrawn=True, producers=(FAILED,)), None),
        (ArtifactView(), MISSING),
        (ArtifactView(producers=(RUNNING,)), WAITING),
        (ArtifactView(producers=(SUCCEEDED, FAILED, RUNNING)), WAITING),
        (ArtifactView(producers=(FAILED, SUCCEEDED)), MISSING),
        (ArtifactView(producers=(SUCCEEDED,)), MISSING),
        (ArtifactView(producers=(FAILED,)), LOST),
        (ArtifactView(withdrawn=True, producers=(RUNNING,)), WAITING),
        (ArtifactView(withdrawn=True, producers=(SUCCEEDED,)), MISSING),
        (ArtifactView(withdrawn=True, producers=(FAILED,)), LOST),
    ],
)
def test_an_artifact_that_jobs_make(view: ArtifactView, answer: Any) -> None:
    objection = graphgates.artifacts_present(*needing(REPORT, view))
    assert said(objection) == answer
    if isinstance(objection, Wait):
        assert objection.topics == (f"artifact:{REPORT}",)
        assert objection.asks == () and objection.until is None
        assert objection.remedy == "it is made by job-9"


@pytest.mark.req("V56")
@pytest.mark.parametrize("status", sorted(ACTIVE))
def test_every_active_producer_is_worth_waiting_for(status: Status) -> None:
    view = ArtifactView(producers=(Producer(7, status), FAILED))
    assert said(graphgates.artifacts_present(*needing(REPORT, view))) == WAITING


@pytest.mark.req("V58", "V59")
@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_no_ended_producer_is_worth_waiting_for(status: Status) -> None:
    view = ArtifactView(producers=(Producer(7, status),))
    block = graphgates.artifacts_present(*needing(REPORT, view))
    assert said(block) == (MISSING if status is Status.SUCCEEDED else LOST)
    if status is not Status.SUCCEEDED:
        assert block is not None and block.remedy == f"headway jobs retry job-7 ({status.value})"


def test_an_artifact_that_nobody_makes_is_waited_for_if_that_is_the_policy() -> None:
    lone = needing(REPORT, ArtifactView(), wait_for_producers=True)
    wait = graphgates.artifacts_present(*lone)
    assert said(wait) == WAITING
    assert isinstance(wait, Wait) and wait.topics == (f"artifact:{REPORT}",)
    assert wait.remedy == "it is made by nobody yet"
    failed = needing(REPORT, ArtifactView(producers=(FAILED,)), wait_for_producers=True)
    assert said(graphgates.artifacts_present(*failed)) == LOST
    made = needing(REPORT, ArtifactView(producers=(SUCCEEDED,)), wait_for_producers=True)
    assert said(graphgates.artifacts_present(*made)) == MISSING


@pytest.mark.req("V52")
def test_artifacts_are_looked_at_as_listed_and_the_first_unmet_decides() -> None:
    views = {
        "custom:a:there": ArtifactView(published=True),
        "custom:b:made": ArtifactView(producers=(RUNNING,)),
        "custom:c:lost": ArtifactView(producers=(FAILED,)),
    }

    def first(*needs: str) -> str | None:
        objection = graphgates.artifacts_present(job(1, needs=needs), known(artifacts=views))
        return None if objection is None else objection.detail

    assert first("custom:a:there", "custom:b:made", "custom:c:lost") == "waiting on custom:b:made"
    assert (
        first("custom:c:lost", "custom:b:made", "custom:a:there")
        == "dependency failed for custom:c:lost"
    )
    assert first("custom:a:there") is None and first() is None


PLAN = Question(ProbeKind.BRANCH, REPO, "draft/login")
DOCUMENT = Question(ProbeKind.FILE_ON_BRANCH, REPO, "draft/login:.headway/plans/login.md")
SENTINEL = Question(ProbeKind.FILE, name="/home/.headway/merge-conflicts/login.json")
PATCH = Question(ProbeKind.FILE, name="/home/.headway/jobs/4/command.patch")
LOOKED_UP = [
    ("plan_branch:login", PLAN),
    ("plan_doc:login", DOCUMENT),
    ("plan_commits:login", PLAN),
    ("target_branch:main", MAIN),
    ("merge_sentinel:login", SENTINEL),
    ("command_patch:job-4", PATCH),
    ("file:/srv/data.csv", Question(ProbeKind.FILE, name="/srv/data.csv")),
]


@pytest.mark.req("V53", "V54", "V75")
@pytest.mark.parametrize(("text", "question"), LOOKED_UP)
@pytest.mark.parametrize("producers", [(), (FAILED,), (RUNNING,)])
def test_an_artifact_outside_of_the_store_is_there_if_a_look_shows_it(
    text: str, question: Question, producers: Any
) -> None:
    if text.startswith("command_patch") and producers:
        question = question._replace(
            name=f"/home/.headway/jobs/{producers[0].job_id}/command.patch"
        )
    view = ArtifactView(producers=producers)
    waiting = ("dependencies", f"waiting on {text}", "waiting_on_deps")
    unseen = graphgates.artifacts_present(*needing(text, view))
    assert said(unseen) == waiting
    assert isinstance(unseen, Wait) and unseen.asks == (question,)
    assert unseen.topics == (question.topic,)

    def look(answer: Answer) -> Objection | None:
        return graphgates.artifacts_present(*needing(text, view, answers={question: answer}))

    assert look(Answer("it is there")) is None
    absent = look(ABSENT)
    match producers:
        case ():
            blocked = ("dependencies", f"missing {text}", "blocked_by_dependency")
        case (Producer(status=Status.FAILED),):
            blocked = ("dependencies", f"dependency failed for {text}", "blocked_by_dependency")
        case _:
            assert isinstance(absent, Wait) and absent.asks == (question,)
            key = artifact_key(text, REPO)
            assert absent.topics == (f"artifact:{key}", question.topic)
            blocked = waiting
    assert said(absent) == blocked
    troubled = look(BROKEN)
    assert said(troubled) == waiting
    assert isinstance(troubled, Wait) and troubled.asks == (question,)
    assert troubled.remedy == "it could not be looked at: fatal: bad object"


@pytest.mark.parametrize(("text", "question"), LOOKED_UP)
def test_a_withdrawn_artifact_does_not_count_whatever_a_look_shows(
    text: str, question: Question
) -> None:
    view = ArtifactView(withdrawn=True, producers=(RUNNING,))
    wait = graphgates.artifacts_present(*needing(text, view, answers={question: Answer("there")}))
    assert said(wait) == ("dependencies", f"waiting on {text}", "waiting_on_deps")
    assert isinstance(wait, Wait) and wait.asks == ()
    assert wait.topics == (f"artifact:{artifact_key(text, REPO)}",)


@pytest.mark.req("V75")
@pytest.mark.parametrize(
    ("view", "detail"),
    [
        (ArtifactView(producers=(Producer(4, Status.SUCCEEDED),)), None),
        (ArtifactView(producers=(FAILED, Producer(4, Status.SUCCEEDED))), None),
        (
            ArtifactView(withdrawn=True, producers=(Producer(4, Status.SUCCEEDED),)),
            "missing command_patch:job-4",
        ),
        (ArtifactView(producers=(Producer(4, Status.RUNNING),)), "waiting on command_patch:job-4"),
        (
            ArtifactView(producers=(Producer(4, Status.FAILED),)),
            "dependency failed for command_patch:job-4",
        ),
        (ArtifactView(), "missing command_patch:job-4"),
    ],
)
def test_a_patch_is_there_when_its_job_succeeded(view: ArtifactView, detail: str | None) -> None:
    objection = graphgates.artifacts_present(
        *needing("command_patch:job-4", view, answers={PATCH: ABSENT})
    )
    assert (objection.detail if objection else None) == detail


def test_the_patch_of_a_chain_is_looked_for_where_its_last_job_leaves_it() -> None:
    view = ArtifactView(producers=(Producer(4, Status.FAILED), Producer(6, Status.RUNNING)))
    wait = graphgates.artifacts_present(*needing("command_patch:job-4", view))
    assert isinstance(wait, Wait)
    assert [each.name for each in wait.asks] == ["/home/.headway/jobs/6/command.patch"]


def test_the_same_artifact_of_another_repository_is_another_one() -> None:
    text = "plan_branch:login"
    elsewhere = known(
        artifacts={artifact_key(text, "/srv/other"): ArtifactView(published=True)},
        answers={PLAN._replace(repo="/srv/other"): Answer(OID), PLAN: ABSENT},
    )
    block = graphgates.artifacts_present(job(1, needs=(text,), repo=REPO), elsewhere)
    assert said(block) == ("dependencies", f"missing {text}", "blocked_by_dependency")


# -- the pinned head ------------------------------------------------------------------------------

MISMATCH = ("pinned_head", "pinned head mismatch on main", "waiting_on_deps")


@pytest.mark.req("V60")
@pytest.mark.parametrize(("head", "question"), [(True, HEAD), (False, MAIN)])
@pytest.mark.parametrize(
    ("answer", "words", "remedy"),
    [
        (Answer(OID), None, ""),
        (Answer(OTHER), MISMATCH, f"main is at {OTHER[:12]}, not at {OID[:12]}: move it back, "),
        (ABSENT, MISMATCH, f"main is gone, not at {OID[:12]}: move it back, "),
        (BROKEN, MISMATCH, "it could not be looked at: fatal: bad object"),
        (None, ("pinned_head", "looking at main", "waiting_on_deps"), "wait a moment"),
    ],
)
def test_a_pinned_head(
    head: bool, question: Question, answer: Answer | None, words: Any, remedy: str
) -> None:
    pinned = job(1, pinned_head=PinnedHead("main", OID, head), repo=REPO)
    wait = graphgates.head_pinned(pinned, known({question: answer} if answer else {}))
    assert said(wait) == words
    if wait is None:
        return
    assert isinstance(wait, Wait) and wait.remedy.startswith(remedy)
    assert wait.asks == (question,) and wait.topics == (question.topic,)


def test_a_job_without_a_pin_asks_nothing() -> None:
    assert graphgates.head_pinned(job(1, repo=REPO), known()) is None


# -- preconditions --------------------------------------------------------------------------------


def condition(name: str) -> Question:
    return Question(ProbeKind.CONDITION, REPO, name)


def unmet(detail: str) -> tuple[str, str, str]:
    return ("preconditions", detail, "waiting_on_deps")


def refused(detail: str) -> tuple[str, str, str]:
    return ("preconditions", detail, "blocked_by_dependency")


DIRTY = Answer("a.txt, b.txt")
UNKNOWN = Answer(trouble="unknown custom precondition tests_pass", final=True)


@pytest.mark.req("V61", "V62", "V63", "V64")
@pytest.mark.parametrize(
    ("text", "question", "answer", "words"),
    [
        ("clean_worktree", CLEAN, ABSENT, None),
        ("clean_worktree", CLEAN, DIRTY, unmet("worktree is not clean")),
        ("clean_worktree", CLEAN, BROKEN, unmet("worktree is not clean")),
        ("clean_worktree", CLEAN, None, unmet("looking at the worktree")),
        ("custom:clean_worktree", CLEAN, DIRTY, unmet("worktree is not clean")),
        ("branch_exists:main", MAIN, Answer(OID), None),
        ("branch_exists:main", MAIN, ABSENT, unmet("branch main does not exist")),
        ("branch_exists:main", MAIN, BROKEN, unmet("branch main does not exist")),
        ("branch_exists:main", MAIN, None, unmet("looking for branch main")),
        ("custom:branch_exists:main", MAIN, ABSENT, unmet("branch main does not exist")),
        ("custom:tests_pass", condition("tests_pass"), Answer("tests_pass"), None),
        (
            "custom:tests_pass",
            condition("tests_pass"),
            ABSENT,
            unmet("condition tests_pass does not hold"),
        ),
        (
            "custom:tests_pass",
            condition("tests_pass"),
            BROKEN,
            unmet("condition tests_pass does not hold"),
        ),
        ("custom:tests_pass", condition("tests_pass"), None, unmet("asking condition tests_pass")),
        (
            "custom:tests_pass",
            condition("tests_pass"),
            UNKNOWN,
            refused("unknown custom precondition tests_pass"),
        ),
        ("full_moon", None, None, refused("unknown precondition full_moon")),
        ("", None, None, refused("unknown precondition ")),
        (
            "branch_exists",
            None,
            None,
            refused("branch_exists needs one branch, and there is none"),
        ),
    ],
)
def test_a_precondition(
    text: str, question: Question | None, answer: Answer | None, words: Any
) -> None:
    answers = {question: answer} if question and answer else {}
    objection = graphgates.preconditions_hold(
        job(1, preconditions=(text,), repo=REPO), known(answers)
    )
    assert said(objection) == words
    if isinstance(objection, Wait):
        assert objection.asks == (question,)
        assert question is not None and objection.topics == (question.topic,)
        assert objection.remedy


@pytest.mark.req("V62", "V63")
@pytest.mark.parametrize(
    ("text", "fields", "branch"),
    [
        ("branch_exists:given", {"pinned": "pinned", "locks": ("branch:locked",)}, "given"),
        ("branch_exists", {"pinned": "pinned", "locks": ("branch:locked",)}, "pinned"),
        ("branch_exists", {"locks": ("branch:locked", "other")}, "locked"),
        ("branch_exists", {"locks": ("branch:one", "branch:two")}, None),
        ("branch_exists", {"locks": ("other",)}, None),
        ("branch_exists", {}, None),
    ],
)
def test_the_branch_is_the_given_one_else_the_pinned_one_else_that_of_the_only_lock(
    text: str, fields: dict[str, Any], branch: str | None
) -> None:
    pinned = fields.get("pinned")
    asking = job(
        1,
        preconditions=(text,),
        repo=REPO,
        pinned_head=PinnedHead(pinned, OID) if pinned else None,
        locks=tuple(shared(key) for key in fields.get("locks", ())),
    )
    objection = graphgates.preconditions_hold(asking, known())
    if branch is None:
        keys = [key for key in fields.get("locks", ()) if key.startswith("branch:")]
        there = ", ".join(key.removeprefix("branch:") for key in keys) or "none"
        assert said(objection) == refused(f"branch_exists needs one branch, and there is {there}")
    else:
        assert isinstance(objection, Wait)
        assert objection.asks == (Question(ProbeKind.BRANCH, REPO, branch),)


def test_preconditions_are_asked_as_listed_and_the_first_unmet_decides() -> None:
    both = job(1, preconditions=("clean_worktree", "branch_exists:main"), repo=REPO)

    def first(clean: Answer, main: Answer) -> str | None:
        objection = graphgates.preconditions_hold(both, known({CLEAN: clean, MAIN: main}))
        return objection.detail if objection else None

    assert first(DIRTY, ABSENT) == "worktree is not clean"
    assert first(ABSENT, ABSENT) == "branch main does not exist"
    assert first(ABSENT, Answer(OID)) is None


# -- approval -------------------------------------------------------------------------------------


@pytest.mark.req("V65", "V66")
@pytest.mark.parametrize("state", list(ApprovalState))
def test_a_person_is_waited_for_until_they_agree(state: ApprovalState) -> None:
    asking = job(3, approval=Approval(state, NOW, "ann"))
    wait = graphgates.approved(asking, known())
    if state is ApprovalState.APPROVED:
        assert wait is None
        return
    assert said(wait) == ("approval", "awaiting human approval", "waiting_on_approval")
    assert isinstance(wait, Wait) and not wait.topics and not wait.asks and wait.until is None
    assert wait.remedy == "headway jobs approve job-3, or reject it; asked for by ann"


def test_a_job_that_asks_nobody_waits_for_nobody() -> None:
    assert graphgates.approved(job(1), known()) is None


def test_a_patch_that_its_job_made_needs_no_fresh_look() -> None:
    made = ArtifactView(producers=(Producer(4, Status.SUCCEEDED),))
    assert graphgates.too_old(*needing("command_patch:job-4", made)) is None
    under_way = ArtifactView(producers=(Producer(4, Status.RUNNING),))
    again = graphgates.too_old(*needing("command_patch:job-4", under_way))
    assert again is not None and again.asks == (PATCH,)


# -- once more, between the claim and the command --------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({}, ()),
        ({"pinned_head": PinnedHead("main", OID)}, (MAIN,)),
        ({"preconditions": ("clean_worktree",)}, (CLEAN,)),
        ({"preconditions": ("custom:quiet",)}, ()),
        ({"preconditions": ("custom:quiet", "branch_exists:main")}, (MAIN,)),
        ({"pinned_head": PinnedHead("main", OID), "preconditions": ("custom:quiet",)}, (MAIN,)),
    ],
)
def test_only_what_is_about_the_repository_is_asked_once_more_at_the_start(
    fields: dict[str, Any], asked: tuple[Question, ...]
) -> None:
    assert graphgates.questions_at_start(job(repo=REPO, **fields)) == asked
