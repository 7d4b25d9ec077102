"""The schema for editors and the reader agree: about every key, and about values if it can."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jobsfiles import problems

from headway.schedules.jobsfile.keys import KEYS, TYPES, default_of
from headway.schedules.jobsfile.model import Entry
from headway.schedules.jobsfile.schema import DIALECT, schema_document
from smallschema import Validator

SCHEMA = Validator(schema_document())
ENOUGH: dict[str, dict[str, Any]] = {
    "script": {"type": "script", "run": "tidy", "interval": 60},
    "agent": {"type": "agent", "prompt": "Look around.", "interval": 60},
    "command": {"type": "command", "run": ["make"], "interval": 60},
    "workflow": {"type": "workflow", "workflow": "nightly", "interval": 60},
}
GOOD: dict[str, Any] = {
    "type": None,  # as the entry's own
    "interval": "5m",
    "interval_active": 1,
    "interval_idle": "1h30m",
    "cron": "30 0 * * *",
    "timezone": "Europe/Berlin",
    "run": None,
    "workflow": "ci/nightly.toml",
    "params": ["keep=14", "x="],
    "prompt": "{{ x }}\n",
    "runner": "claude",
    "model": "sonnet[1m]",
    "max_turns": 3,
    "allowed_tools": ["Read", "Bash(git log:*)"],
    "group": "local",
    "conditions": ["no_agents_running", "command:true", "file_exists:a/b"],
    "enabled": False,
    "timeout": 5,
    "priority": -1,
    "resources": ["disk"],
}
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 10, 100_001, 2_000_000, 10**10, "", " ", "x", "10", "5m", "0s"),
    *("500ms", "1h 30m", "5300w", "a b", "a\n", "../x", ".x", "-x", "x" * 65, "x" * 201, "mod:f"),
    *("mod:f.g", "a.b:c", ":f", "local", "script", "agent", "UTC", "Mars/Olympus", "@daily"),
    *("0 0 31 2 *", "make 'x", "make x", "yes", "ä", [], [""], ["a"], [1], [None], ["a"] * 21),
    *(
        ["a"] * 101,
        ["-a"],
        ["a b"],
        ["command:"],
        ["command:a 'b"],
        ["command: x"],
        ["file_exists:"],
    ),
    *(
        ["file_exists:/x"],
        ["file_exists:a/../b"],
        ["file_exists:..a"],
        ["other:x"],
        ["file_exists:"],
        {},
    ),
    *({"a": 1}, ["", "x"], ["file_exists:a\n/../b"], ["a\n"]),
]
BEYOND = (  # what no schema can say
    *("is less than a second", "longer than a hundred years", "the words cannot be told apart"),
    *("the program has no name", ".cron: ", ".timezone: ", "is given twice"),
)


def agree(document: Any) -> None:
    told = problems(json.dumps(document).encode())
    valid = SCHEMA.valid(document)
    if valid:
        assert all(any(word in each for word in BEYOND) for each in told), (document, told)
    else:
        assert told, document


def entry(kind: str, **more: Any) -> dict[str, Any]:
    made = {**ENOUGH[kind], **more}
    if "cron" in made or "timezone" in made:
        del made["interval"]
        made.setdefault("cron", "@daily")
    return made


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("key", KEYS)
def test_the_schema_and_the_reader_agree_about_every_key(kind: str, key: str) -> None:
    good = ENOUGH[kind].get(key, GOOD[key])
    belongs = kind in KEYS[key].forms
    document = {"jobs": {"it": entry(kind, **{key: "x" if good is None else good})}}
    assert SCHEMA.valid(document) is belongs
    assert (problems(json.dumps(document).encode()) == []) is belongs
    longer = ["x" * 100_000, "x" * 100_001] if key in ("prompt", "run") else []
    for value in (*VALUES, *longer):
        agree({"jobs": {"it": entry(kind, **{key: value})}})


@pytest.mark.parametrize("kind", TYPES)
def test_what_is_missing_is_missing_for_both(kind: str) -> None:
    for key in ENOUGH[kind]:
        lacking = {word: value for word, value in ENOUGH[kind].items() if word != key}
        document = {"jobs": {"it": lacking}}
        assert not SCHEMA.valid(document) and problems(json.dumps(document).encode())


@pytest.mark.parametrize(
    "document",
    [
        *(
            {},
            [],
            None,
            "x",
            {"jobs": None},
            {"jobs": []},
            {"jobs": {}, "x": 1},
            {"jobs": {"a": 1}},
        ),
        {"jobs": {"a": {}}},
        {"jobs": {"it": {**ENOUGH["script"], "cron": "@daily"}}},
        {"jobs": {"it": {**ENOUGH["script"], "timezone": "UTC"}}},
        {"jobs": {"it": {"type": "script", "run": "x", "interval_active": 1}}},
        {"jobs": {"it": {"type": "script", "run": "x", "cron": "@daily", "interval_idle": 1}}},
        {"jobs": {"it": {**ENOUGH["script"], "type": "skript"}}},
        {"jobs": {"it": {**ENOUGH["script"], "unknown": 1}}},
        *({"jobs": {name: ENOUGH["script"]}} for name in ("", "a b", ".a", "-a", "x" * 65, "a\n")),
        {"jobs": {f"n{number}": ENOUGH["script"] for number in range(1001)}},
    ],
)
def test_both_refuse_it(document: Any) -> None:
    assert not SCHEMA.valid(document) and problems(json.dumps(document).encode())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.dictionaries(
        st.sampled_from(["a", "b.c", "-d", "e f"]),
        st.dictionaries(
            st.sampled_from([*KEYS, "other"]),
            st.sampled_from([*VALUES, *GOOD.values(), "script", "agent", "command"]),
        ),
        max_size=2,
    )
)
def test_they_agree_about_anything(jobs: dict[str, Any]) -> None:
    agree({"jobs": jobs})


def test_the_schema_offers_each_key_with_its_meaning_and_default() -> None:
    document = json.loads(json.dumps(schema_document()))
    assert document["$schema"] == DIALECT
    for kind in TYPES:
        offered = document["$defs"][kind]["properties"]
        assert list(offered) == [key for key in KEYS if kind in KEYS[key].forms]
        for key, told in offered.items():
            assert told["description"] and told.get("default") == default_of(key)


def test_every_field_of_an_entry_has_its_key() -> None:
    """But its name and line; `argv` is a command's `run`."""
    assert set(KEYS) == set(Entry._fields) - {"name", "line", "argv"}
