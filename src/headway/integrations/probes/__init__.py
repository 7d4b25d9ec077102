"""Probes of the world outside of the store: I/O that turns the questions of gates into answers.

A repository is probed once for all that is asked about it. A failure (a repository that is gone, a
git that fails, a condition that hangs) becomes an answer with the trouble in words. It affects only
the jobs that asked.
"""

import os
from collections.abc import Iterable, Mapping, Sequence

from headway.core.facts import Answer
from headway.core.model import ProbeKind, Question
from headway.core.subjects import seen_text

MOST_NAMED = 3
_OF_REPOSITORY = (ProbeKind.HEAD, ProbeKind.BRANCH, ProbeKind.CLEAN, ProbeKind.FILE_ON_BRANCH)


def answers_to(
    questions: Iterable[Question], conditions: Mapping[str, Sequence[str]]
) -> dict[Question, Answer]:
    """Answer each question; `conditions` are the commands of the configuration."""
    answers: dict[Question, Answer] = {}
    repositories: dict[str, list[Question]] = {}
    sources: dict[str, list[Question]] = {}
    for question in dict.fromkeys(questions):
        if question.kind in _OF_REPOSITORY:
            repositories.setdefault(question.repo, []).append(question)
        elif question.kind is ProbeKind.FILE:
            answers[question] = _file(question.name)
        elif question.kind is ProbeKind.SUBJECT:
            sources.setdefault(question.repo, []).append(question)
        else:
            from headway.integrations.probes.conditions import ask

            answers[question] = ask(question.name, question.repo, conditions)
    for repo, asked in repositories.items():
        answers |= _repository(repo, asked)
    for place, asked in sources.items():
        answers |= _subjects(place, asked)
    return answers


def _subjects(place: str, asked: Sequence[Question]) -> dict[Question, Answer]:
    """One probe of a source for all that is asked about its items."""
    from headway.base.errors import SourceError
    from headway.integrations.trackers import SourcePlace, open_source

    name, _, path = place.partition(":")
    try:
        items = open_source(SourcePlace(name, path)).look([each.name for each in asked]).items
    except SourceError as error:
        return dict.fromkeys(asked, Answer(trouble=str(error)))
    answers = {}
    for question in asked:
        item = items.get(question.name)
        if item is None:
            answers[question] = Answer()
        elif item.trouble is not None:
            answers[question] = Answer(trouble=item.trouble)
        else:
            answers[question] = Answer(seen_text(item))
    return answers


def _file(path: str) -> Answer:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return Answer()
    except (OSError, ValueError) as error:
        return Answer(trouble=f"{path}: {getattr(error, 'strerror', None) or error}")
    return Answer(path)


def _repository(repo: str, asked: Sequence[Question]) -> dict[Question, Answer]:
    from headway.integrations.git.program import GitError
    from headway.integrations.git.questions import RepositoryAnswers, Wants, probe

    names = {kind: [each.name for each in asked if each.kind is kind] for kind in ProbeKind}
    wants = Wants(
        head=bool(names[ProbeKind.HEAD]),
        branches=frozenset(names[ProbeKind.BRANCH]),
        clean=bool(names[ProbeKind.CLEAN]),
        files=frozenset(_on_branch(name) for name in names[ProbeKind.FILE_ON_BRANCH]),
    )
    try:
        seen = probe(repo, wants)
    except GitError as error:
        return dict.fromkeys(asked, Answer(trouble=str(error)))

    def answer(question: Question, seen: RepositoryAnswers) -> Answer:
        match question.kind:
            case ProbeKind.HEAD:
                return Answer(seen.head_oid)
            case ProbeKind.BRANCH:
                return Answer(seen.branches.get(question.name))
            case ProbeKind.CLEAN:
                return Answer(_some(seen.dirty))
            case _:
                there = seen.files.get(_on_branch(question.name), False)
                return Answer(question.name if there else None)

    return {question: answer(question, seen) for question in asked}


def _on_branch(name: str) -> tuple[str, str]:
    branch, _, path = name.partition(":")
    return branch, path


def _some(paths: Sequence[str]) -> str | None:
    """The first few of the changed files, or None if there are none."""
    if not paths:
        return None
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return ", ".join(paths[:MOST_NAMED]) + more
