"""The schema for editors and the reader agree: about every key, and about values if it can."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from written import wrong_with

from headway.workflows.labels import LABELS, RunsCommand
from headway.workflows.reader import (
    DEFAULT_KEYS,
    NODE_KEYS,
    TOP_KEYS,
)
from headway.workflows.schema import DIALECT, schema_document
from smallschema import Validator

SCHEMA = Validator(schema_document())
EXAMPLES = sorted((Path(__file__).parent / "examples").glob("*.toml"))
VALUES: list[Any] = [
    *(True, False, 0, 1, -1, 101, 0.5, "", "x", "5m", "soon", "a b", [], [""], ["a"], ["a", "a"]),
    *([1], [True], [{}], {}, {"a": 1}, {"a": "b"}, {"a": []}, {"a": ["b"]}, "all", ["failed"]),
    *(["skipped"], {"to": "n", "times": 1}, {"to": "n", "times": 101}, {"to": "n"}, {"in": "x"}),
    *({"in": "x", "max": 0}, {"failed": ["n"]}, {"ended": ["n"]}, {"succeeded": ["n", "n"]}),
    *([{"node": "n"}], [{"node": "n", "on": ["failed"]}], [{"on": ["x"]}], [{"node": "n", "x": 1}]),
    *({"usd": 1}, {"usd": 0}, {"tokens": 1.5}, {"report": {"scope": "run"}}, {"report": 1}),
    *({"prompt_text": {}}, {"x": {"type": "int"}}, {"x": {"typ": "int"}}, {"a b": 1}, {"x": 3}),
]
# What is seen only by reading texts, or by looking at several nodes together.
BEYOND = (
    *("names no node", "is no reference", "is not LEFT OP RIGHT", "fits none", "must be 1 to 200"),
    *("does not come before it", "is not a duration", "give a duration", "is no worktree.prepare"),
    *(
        "a circle: ",
        "which [artifacts] does not declare",
        "must need exactly one",
        "is no artifact",
    ),
    *("must produce exactly one", "names no parameter", "is led to, or leads on", "rate "),
    *(
        "leaves nothing",
        "twice",
        "never leads to",
        "a terminal leads nowhere",
        "an artifact",
        "artifact",
    ),
    *("is not an exit code", "--require", "may have letters", "is empty", "is not the name of"),
    *("is not a model", "is not a list of at least one tool"),
)


def toml(value: Any) -> str:
    """A value as TOML writes it; tables are inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def agree(document: dict[str, Any]) -> None:
    text = "".join(f"{json.dumps(key)} = {toml(value)}\n" for key, value in document.items())
    assert tomllib.loads(text) == document
    words = wrong_with(text)
    if SCHEMA.valid(document):
        left = [each for each in words if not any(word in each for word in BEYOND)]
        assert left == [], document
    else:
        assert words, document


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_valid(path: Path) -> None:
    assert SCHEMA.valid(tomllib.loads(path.read_text()))


@pytest.mark.parametrize("key", [key for key in TOP_KEYS if key != "nodes"])
def test_they_agree_about_every_key_of_a_file(key: str) -> None:
    for value in VALUES:
        agree({key: value, "nodes": {"n": {"argv": ["x"]}}})


@pytest.mark.parametrize("key", NODE_KEYS)
def test_they_agree_about_every_key_of_a_node(key: str) -> None:
    for value in (*VALUES, *LABELS):
        agree({"nodes": {"n": {"argv": ["x"], key: value}, "m": {"argv": ["x"]}}})
        agree({"nodes": {"n": {key: value}}})
        if key in DEFAULT_KEYS:
            agree({"defaults": {key: value}, "nodes": {"n": {"argv": ["x"]}}})


@pytest.mark.parametrize("name", LABELS)
def test_they_agree_about_every_label(name: str) -> None:
    label = LABELS[name]
    runs = {"argv": ["x"]} if label.command is RunsCommand.MUST else {}
    every = dict.fromkeys((*label.arguments, "other"), "x")
    for args in ({}, *({key: "x"} for key in every), every):
        node: dict[str, Any] = {"uses": name, "args": args, **runs}
        agree({"nodes": {"n": node}})
        for key in ("argv", "shell", "prompt", "prompt_file", "task"):
            value = ["x"] if key == "argv" else "x"
            agree({"nodes": {"n": {**node, key: value}}})


@pytest.mark.parametrize("name", LABELS)
def test_they_agree_about_the_arguments_of_every_label(name: str) -> None:
    label = LABELS[name]
    runs = {"argv": ["x"]} if label.command is RunsCommand.MUST else {}
    needed = dict.fromkeys(label.one_of[:1], "x")
    for key in label.arguments:
        for value in (*VALUES, "${{ params.p }}"):
            args = {**needed, key: value}
            document = {"nodes": {"n": {"uses": name, "args": args, **runs}}}
            agree({"params": {"p": "x"}, **document})


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"nodes": {}},
        {"nodes": 1},
        {"nodes": {"A": {"argv": ["x"]}}},
        {"nodes": {"n": {}}},
        {"nodes": {"n": {"argv": ["x"], "shell": "x"}}},
        {"nodes": {"n": {"prompt": "x", "prompt_file": "x"}}},
        {"nodes": {"n": {"prompt": "x", "argv": ["x"]}}},
        {"nodes": {"n": {"task": "x", "prompt": "x"}}},
        {"nodes": {"n": {"prompt": "x", "args": {"command": "rm"}}}},
        {"nodes": {"n": {"argv": ["x"], "unknown": 1}}},
        {"nodes": {"n": {"uses": "make"}}},
        {"nodes": {"n": {"argv": ["x"]}}, "other": 1},
    ],
)
def test_both_refuse_it(document: dict[str, Any]) -> None:
    assert not SCHEMA.valid(document)
    agree(document)


def test_the_schema_offers_each_key_with_its_meaning() -> None:
    document = json.loads(json.dumps(schema_document()))
    assert document["$schema"] == DIALECT
    assert list(document["properties"]) == list(TOP_KEYS)
    offered = document["$defs"]["node"]["properties"]
    assert list(offered) == list(NODE_KEYS)
    assert all(
        each["description"] for each in (*document["properties"].values(), *offered.values())
    )
