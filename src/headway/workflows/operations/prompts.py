"""The operation `prompt.resolve`: the text of a prompt, of parts that the claim has, or of what a
command prints."""

import os
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from headway.integrations.agents.model import LARGEST_PROMPT
from headway.workflows.operations.model import Done, FailedError, NodeTask


def resolve(task: NodeTask) -> Done:
    """Nothing is kept between tries: it is made anew."""
    if task.command is not None:
        text = _printed(task.command)
    else:
        text = text_of_parts(task.args["prompt"], task)
    size = len(text.encode(errors="replace"))
    if size > LARGEST_PROMPT:
        raise _too_large()
    if not text.strip():
        raise FailedError("prompt.resolve: the prompt is empty")
    if "\0" in text:
        raise FailedError("prompt.resolve: the prompt has a NUL in it")
    return Done(f"a prompt of {size:,} bytes", {"text": text})


def text_of_parts(parts: Iterable[Any], task: NodeTask) -> str:
    """The text of a prompt as the claim has it."""
    return "".join(_part(each, task) for each in parts)


def _part(each: Any, task: NodeTask) -> str:
    if isinstance(each, str):
        return each
    if "file" in each:
        return _file(each["file"], task)
    raise FailedError(f"prompt.resolve unresolved placeholder `${{{{ {each['unresolved']} }}}}`")


def _file(path: str, task: NodeTask) -> str:
    """A file of the folder where the node works, or of the repository around that."""
    folder = os.path.realpath(task.directory or os.getcwd())
    bounds = {folder, os.path.realpath(task.repository or folder)}
    whole = os.path.realpath(os.path.join(folder, path))
    if not any(os.path.commonpath([whole, each]) == each for each in bounds):
        raise FailedError(f"{path} is outside of the repository")
    try:
        with open(whole, "rb") as file:
            content = file.read(LARGEST_PROMPT + 1)
        return content.decode("utf-8")
    except OSError as error:
        raise FailedError(f"prompt.resolve: {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FailedError(f"prompt.resolve: {path} is not UTF-8") from None


def _printed(argv: list[str]) -> str:
    """What it prints is logged as well. It is ended when it has printed more than a prompt may
    have."""
    try:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise FailedError(f"{argv[0]}: {error.strerror}") from None
    with process:
        printed = process.stdout.read(LARGEST_PROMPT + 1) if process.stdout is not None else b""
        sys.stdout.buffer.write(printed)
        sys.stdout.flush()
        if len(printed) > LARGEST_PROMPT:
            process.kill()
            raise _too_large()
    code = process.returncode
    if code:
        raise FailedError(f"prompt.resolve failed (exit {128 - code if code < 0 else code})")
    try:
        return printed.decode("utf-8")
    except UnicodeDecodeError:
        raise FailedError("prompt.resolve: what the command prints is not UTF-8") from None


def _too_large() -> FailedError:
    return FailedError("prompt.resolve: the prompt is larger than 512 KiB")
