"""Subjects: outside work items that jobs are about, and the gate that holds a job until its subject
may be worked on. Pure; items are read elsewhere and never written anywhere.

A job has such a gate only if it was slung, which is when the source of its subject is written down
in its parameters. A subject of a plain submit is a reference and nothing more. Of a slung workflow
run those nodes have it that begin the run, in their first pass: what is under way is not held up.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from headway.core import wait_words as say
from headway.core.agents import OF_NODE
from headway.core.facts import Facts
from headway.core.model import Block, Job, Objection, ProbeKind, Question, Wait, WaitKind
from headway.core.states import Status

# It stands in command lines, so it never looks like an option and never has a space.
SUBJECT = re.compile(r"[A-Za-z0-9][!-~]{0,199}")
SLING = "sling"  # the parameter that holds the record
# Variables that the record has a field for, whether the recipe uses them or not.
RECORDED = ("merge", "base_branch", "no_merge", "account", "agent", "raw", "owned", "mode")
MERGES = ("direct", "mr", "local")  # what `merge` may be
YES_OR_NO = frozenset({"no_merge", "raw", "owned"})
_SWITCHED = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class ItemState(StrEnum):
    OPEN = "open"
    IN_PROGRESS = "in_progress"
    CLOSED = "closed"


class ItemKind(StrEnum):
    TASK = "task"
    GROUP = "group"  # it tracks others
    TREE = "tree"  # it is the parent of others


class Item(NamedTuple):
    """A work item as its source describes it.

    `blockers` are those that must be closed first and are not; `hold` says what else keeps it from
    being worked on, `trouble` why it cannot be understood.
    """

    id: str
    title: str = ""
    state: ItemState = ItemState.OPEN
    kind: ItemKind = ItemKind.TASK
    blockers: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    hold: str | None = None
    trouble: str | None = None

    @property
    def prefix(self) -> str:
        """`gt-` of gt-abc; nothing if it has none."""
        head, dash, _ = self.id.partition("-")
        return head + dash if dash else ""


def wrong_value(name: str, value: str) -> str | None:
    """Why a field of the record cannot be this; None: it can, or it is no such field."""
    if name == "merge" and value not in MERGES:
        return f"{value!r} is not one of {', '.join(MERGES)}"
    if name in YES_OR_NO and value.lower() not in _SWITCHED:
        return f"{value!r} is not true or false"
    return None


def recorded_value(name: str, given: Mapping[str, str]) -> str | bool | None:
    """What a field of the record is, out of the variables that were given."""
    value = given.get(name)
    return value if value is None or name not in YES_OR_NO else _SWITCHED.get(value.lower(), value)


def subject_question(job: Job) -> Question | None:
    """The question about the state of a slung job's subject."""
    if job.subject is None or SLING not in job.params or _is_under_way(job):
        return None
    record = job.params[SLING]
    return Question(ProbeKind.SUBJECT, f"{record['source']}:{record['place']}", job.subject)


def _is_under_way(job: Job) -> bool:
    """Whether a workflow run has begun before it comes to this node."""
    if job.workflow_run is None:
        return False
    return job.node_pass > 1 or bool(job.params[OF_NODE]["edges"])


def seen_text(item: Item) -> str:
    """An item as the answer to that question: its state, what holds it, its blockers."""
    return "\n".join((item.state, item.hold or "", " ".join(item.blockers)))


def subject_ready(job: Job, facts: Facts) -> Objection | None:
    """Nothing that must come before its subject is still open."""
    question = subject_question(job)
    if question is None:
        return None
    subject, answer = job.subject, facts.answers.get(question)
    if answer is None:
        return _held(question, say.looks_at_subject(subject))
    if answer.trouble is not None:
        return _held(question, say.unseen_subject(subject, answer.trouble))
    if answer.found is None:
        where = question.repo.partition(":")[2]
        return _held(question, say.lost_subject(subject, where))
    state, hold, blockers = answer.found.split("\n")
    if state == ItemState.CLOSED:
        words = say.closed_subject(subject)
        return Block(
            WaitKind.SUBJECT,
            words.detail,
            status=Status.CANCELLED,
            remedy=words.remedy,
            asks=(question,),
        )
    if blockers:
        return _held(question, say.blocked_subject(blockers.split()))
    if hold:
        return _held(question, say.held_subject(subject, hold))
    return None


def _held(question: Question, words: say.Words) -> Wait:
    topics, asks = (question.topic,), (question,)
    return Wait(WaitKind.SUBJECT, words.detail, topics=topics, remedy=words.remedy, asks=asks)
