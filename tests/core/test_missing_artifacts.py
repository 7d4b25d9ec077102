"""What is missing, word for word, and what is looked at once more before that is final."""

from typing import Any

import pytest
from given import facts, job

from headway.core.artifacts import artifact_key, artifact_topic
from headway.core.facts import Answer, ArtifactView, Producer
from headway.core.gates.graph import artifacts_present
from headway.core.model import Block, ProbeKind, Question, Wait, WaitKind
from headway.core.states import Status

FILE = "file:/srv/in"
LOOK = Question(ProbeKind.FILE, name="/srv/in")
KEY = artifact_key(FILE, None)
NEEDS = job(needs=(FILE,))


def said(*producers: Producer, **fields: Any) -> Wait | Block:
    view = ArtifactView(producers=producers)
    known = facts(answers={LOOK: Answer()}, artifacts={KEY: view}, **fields)
    objection = artifacts_present(NEEDS, known)
    assert objection is not None and objection.kind is WaitKind.DEPENDENCIES
    assert objection.asks == (LOOK,), "the look may be older than the end of who made it"
    return objection


RUNNING = [Producer(each, Status.RUNNING) for each in range(5, 10)]


@pytest.mark.parametrize(
    ("many", "makers"),
    [(1, "job-5"), (3, "job-5, job-6, job-7"), (5, "job-5, job-6, job-7")],
)
def test_it_is_waited_for_while_someone_may_make_it(many: int, makers: str) -> None:
    wait = said(*RUNNING[:many], Producer(1, Status.FAILED))
    assert isinstance(wait, Wait)
    assert (wait.detail, wait.remedy) == (f"waiting on {FILE}", f"it is made by {makers}")
    assert wait.topics == (artifact_topic(KEY), LOOK.topic)


def test_it_is_waited_for_without_a_producer_if_the_settings_say_so() -> None:
    wait = said(wait_for_producers=True)
    assert isinstance(wait, Wait)
    assert wait.remedy == "it is made by nobody yet"
    assert isinstance(said(Producer(1, Status.FAILED), wait_for_producers=True), Block)


@pytest.mark.parametrize(
    ("producers", "detail", "remedy"),
    [
        (
            [],
            f"missing {FILE}",
            "nobody produces it: submit its producer first, or set "
            "scheduler.missing_producer to wait",
        ),
        (
            [Producer(1, Status.FAILED), Producer(2, Status.SUCCEEDED)],
            f"missing {FILE}",
            "its producer succeeded without making it: correct that and retry it (job-2)",
        ),
        (
            [Producer(1, Status.FAILED), Producer(2, Status.CANCELLED)],
            f"dependency failed for {FILE}",
            "headway jobs retry job-1 (failed)",
        ),
    ],
)
def test_it_is_given_up_when_nobody_can_make_it(
    producers: list[Producer], detail: str, remedy: str
) -> None:
    block = said(*producers)
    assert isinstance(block, Block)
    assert (block.detail, block.remedy) == (detail, remedy)
