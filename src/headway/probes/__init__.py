"""Looks at the world outside of the store: I/O that turns the questions of gates into answers.

A repository is looked at once for all that is asked about it. What goes wrong (a repository that is
gone, a git that fails, a condition that hangs) becomes an answer with the trouble in words: it
concerns the jobs that asked, and nobody else.
"""

import os
from collections.abc import Iterable, Mapping, Sequence

from headway.core.facts import Answer
from headway.core.model import Question, Sight
from headway.core.subjects import seen_text

MOST_NAMED = 3
_OF_REPOSITORY = (Sight.HEAD, Sight.BRANCH, Sight.CLEAN, Sight.FILE_ON_BRANCH)


def look_at(
    questions: Iterable[Question], conditions: Mapping[str, Sequence[str]]
) -> dict[Question, Answer]:
    """Answer each question; `conditions` are the commands of the configuration."""
    answers: dict[Question, Answer] = {}
    repositories: dict[str, list[Question]] = {}
    sources: dict[str, list[Question]] = {}
    for question in dict.fromkeys(questions):
        if question.sight in _OF_REPOSITORY:
            repositories.setdefault(question.repo, []).append(question)
        elif question.sight is Sight.FILE:
            answers[question] = _file(question.name)
        elif question.sight is Sight.SUBJECT:
            sources.setdefault(question.repo, []).append(question)
        else:
            from headway.probes.conditions import ask

            answers[question] = ask(question.name, question.repo, conditions)
    for repo, asked in repositories.items():
        answers |= _repository(repo, asked)
    for place, asked in sources.items():
        answers |= _subjects(place, asked)
    return answers


def _subjects(place: str, asked: Sequence[Question]) -> dict[Question, Answer]:
    """One look at a source for all that is asked about its items."""
    from headway.errors import SourceError
    from headway.sources import Place, open_source

    name, _, path = place.partition(":")
    try:
        items = open_source(Place(name, path)).look([each.name for each in asked]).items
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
    from headway.git.looking import Looks, Wants, look
    from headway.git.program import GitError

    names = {sight: [each.name for each in asked if each.sight is sight] for sight in Sight}
    wants = Wants(
        head=bool(names[Sight.HEAD]),
        branches=frozenset(names[Sight.BRANCH]),
        clean=bool(names[Sight.CLEAN]),
        files=frozenset(_on_branch(name) for name in names[Sight.FILE_ON_BRANCH]),
    )
    try:
        looks = look(repo, wants)
    except GitError as error:
        return dict.fromkeys(asked, Answer(trouble=str(error)))

    def answer(question: Question, looks: Looks) -> Answer:
        match question.sight:
            case Sight.HEAD:
                return Answer(looks.head_oid)
            case Sight.BRANCH:
                return Answer(looks.branches.get(question.name))
            case Sight.CLEAN:
                return Answer(_some(looks.dirty))
            case _:
                there = looks.files.get(_on_branch(question.name), False)
                return Answer(question.name if there else None)

    return {question: answer(question, looks) for question in asked}


def _on_branch(name: str) -> tuple[str, str]:
    branch, _, path = name.partition(":")
    return branch, path


def _some(paths: Sequence[str]) -> str | None:
    """The first few of the changed files, or None if there are none."""
    if not paths:
        return None
    more = f" and {len(paths) - MOST_NAMED} more" if len(paths) > MOST_NAMED else ""
    return ", ".join(paths[:MOST_NAMED]) + more
