"""The files of workflows: where they are, which there are, and their texts."""

import os
import re

from headway.base.errors import InvalidInputError, NotFoundError
from headway.base.home import Home
from headway.base.toml_file import read_content
from headway.base.trust import NEXT_STEP, is_trusted
from headway.workflows.mistakes import perhaps
from headway.workflows.model import WorkflowFile
from headway.workflows.reader import LARGEST_FILE

FOLDER = "workflows"
ENDING = ".toml"
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def workflows_folder(home: Home) -> str:
    return os.path.join(home.path, FOLDER)


def shown_path(home: Home, name: str) -> str:
    """The path of a workflow's file, as messages have it."""
    return os.path.join(os.path.basename(home.path), FOLDER, name + ENDING)


def workflow_names(home: Home) -> list[str]:
    """The workflows of a home, by name."""
    try:
        found = os.listdir(workflows_folder(home))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InvalidInputError(f"{workflows_folder(home)}: {error.strerror}") from None
    names = (each.removesuffix(ENDING) for each in found if each.endswith(ENDING))
    return sorted(name for name in names if FILE_NAME.fullmatch(name))


def read_file(home: Home, word: str, folder: str) -> WorkflowFile:
    """The workflow that a word names; one with `/` or ending in `.toml` is a path, from `folder`.

    Raises NotFoundError if there is none, with the names that there are."""
    if "/" in word or word.endswith(ENDING):
        path = os.path.normpath(os.path.join(folder, word))
        content = read_content(path, largest=LARGEST_FILE)
        if content is None:
            raise NotFoundError(f"there is no file {word}")
        name = os.path.basename(path).removesuffix(ENDING)
        return WorkflowFile(name, word, _text_of(word, content))
    path = os.path.join(workflows_folder(home), word + ENDING)
    content = read_content(path, largest=LARGEST_FILE) if FILE_NAME.fullmatch(word) else None
    if content is None:
        raise _unknown(home, word)
    shown = shown_path(home, word)
    return WorkflowFile(word, shown, _text_of(shown, content), is_of_home=True)


def refuse_untrusted(home: Home, file: WorkflowFile) -> None:
    """A workflow that came with a checkout runs nothing before its user trusts that. A file that
    the user named by its path is the user's own word."""
    if file.is_of_home and not is_trusted(home.path):
        raise InvalidInputError(f"{file.path} is not trusted; {NEXT_STEP}")


def _text_of(path: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")  # some editors begin a file with a mark
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"{path}: it is not UTF-8: {error.reason}") from None


def _unknown(home: Home, word: str) -> NotFoundError:
    names = workflow_names(home)
    if not names:
        return NotFoundError(
            f"there is no workflow '{word}': {workflows_folder(home)} has none; "
            f"`headway workflows init {word}` writes one"
        )
    hint = perhaps(word, names) or f"; there are {', '.join(names[:20])}"
    return NotFoundError(f"there is no workflow '{word}'{hint}")
