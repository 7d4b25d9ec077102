"""The prompts of a run: what is kept of each when the run starts, and its parts at the claim.

A prompt is text with references. They are filled in once, from left to right. So what a value
holds, as the tail of a log, is never read as a reference itself.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from headway.base.errors import InvalidInputError
from headway.core.conditions import as_text
from headway.integrations.git.questions import repository_of
from headway.jobs.prompts import read_prompt
from headway.workflows.labels import PROMPT_TEXT
from headway.workflows.model import CompiledNode
from headway.workflows.references import (
    OPEN,
    Kind,
    MalformedError,
    Reference,
    parse_reference,
    references_in,
    split_at_references,
)


class Unresolved(NamedTuple):
    """What stands between braces and names nothing that there is."""

    name: str


Part = str | Reference | Unresolved


def parts_of(text: str) -> Iterator[Part]:
    """The text in order. What is no reference is told when the prompt is resolved."""
    for each, is_reference in split_at_references(text):
        if not is_reference:
            yield each
            continue
        try:
            yield parse_reference(each)
        except MalformedError:
            yield Unresolved(each.strip())


def with_text(node: CompiledNode, folder: str) -> CompiledNode:
    """The node with the text of its prompt file. That is read once, when a run starts: a later edit
    changes no run."""
    if "prompt_file" not in node.args:
        return node
    text = read_prompt_file(str(node.args["prompt_file"]), folder)
    return node._replace(args={**node.args, "prompt_text": text})


def kept_prompt(node: CompiledNode, params: Mapping[str, Any]) -> dict[str, Any]:
    """What the job of a node keeps of its prompt: the text, and what its references stand for as
    far as that is known."""
    text = str(node.args["prompt_text"])
    known: dict[str, Mapping[str, Any]] = {
        Kind.PARAMS: params,
        Kind.MATRIX: node.matrix,
    }
    values = {
        each.text: known[each.kind][each.name]
        for each in parts_of(text)
        if isinstance(each, Reference) and each.name in known.get(each.kind, ())
    }
    return {"text": text, "values": values}


def read_prompt_file(path: str, folder: str) -> str:
    """The text of a prompt file, whose path counts from the folder that holds the home."""
    if OPEN in path:
        (first, *_) = references_in(path)
        raise InvalidInputError(f"prompt_file: {first.text} is not known when it is queued")
    bounds = repository_of(folder) or folder
    whole = os.path.realpath(os.path.join(folder, path))
    if os.path.commonpath([whole, os.path.realpath(bounds)]) != os.path.realpath(bounds):
        raise InvalidInputError(f"{path} is outside of the repository")
    try:
        return read_prompt(whole)
    except InvalidInputError as error:
        raise InvalidInputError(str(error).replace(whole, path)) from None


def other_args(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that the text of a prompt names."""
    return {key: value for key, value in args.items() if key not in ("prompt_text", "prompt_file")}


def nodes_in(prompt: Mapping[str, Any]) -> list[str]:
    """The nodes that a prompt tells of."""
    found = (each for each in parts_of(prompt["text"]) if isinstance(each, Reference))
    return [each.name for each in found if each.kind in (Kind.NODES, Kind.LAST)]


def filled_parts(
    prompt: Mapping[str, Any],
    args: Mapping[str, Any],
    look_up: Callable[[Reference], Any],
    nodes: Iterable[str],
) -> list[Any]:
    """The prompt as its process is given it: texts, files to be read there, and placeholders that
    name nothing. `args` have their values; `nodes` are those that the run has."""
    there = {*nodes}
    found: list[Any] = []
    for each in parts_of(prompt["text"]):
        match each:
            case str():
                found.append(each)
            case Unresolved(name):
                found.append({"unresolved": name})
            case Reference(kind=Kind.FILE):
                found.append({"file": each.name})
            case Reference(kind=Kind.NODES | Kind.LAST) if each.name not in there:
                found.append({"unresolved": each.text})
            case Reference(kind=Kind.NODES | Kind.LAST | Kind.RUN):
                found.append(as_text(look_up(each)))
            case Reference(kind=Kind.ARGS) if each.name in args:
                found.append(as_text(args[each.name]))
            case Reference() if each.text in prompt["values"]:
                found.append(as_text(prompt["values"][each.text]))
            case _:
                found.append({"unresolved": each.text})
    return found


def prompt_in(artifacts: Mapping[str, Any]) -> str | None:
    """The text of the one prompt among the artifacts that an agent needs."""
    for artifact, data in artifacts.items():
        if artifact.startswith(PROMPT_TEXT):
            text = data.get("text")
            return text if isinstance(text, str) else None
    return None
