"""docs/openapi.json is what the server says of itself, is OpenAPI 3.1, and only grows."""

import copy
import importlib.util
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import schemathesis

from headway.web.openapi import document
from headway.web.routes import API_ROUTES

DOCS = Path(__file__).parents[2] / "docs"

_found = importlib.util.spec_from_file_location("openapi_file", DOCS / "openapi.py")
assert _found is not None and _found.loader is not None
script = importlib.util.module_from_spec(_found)
_found.loader.exec_module(script)


def checked_in() -> dict[str, Any]:
    made: dict[str, Any] = json.loads((DOCS / "openapi.json").read_text(encoding="utf-8"))
    return made


def test_nothing_that_programs_rely_on_has_vanished() -> None:
    assert script.vanished(checked_in(), document(API_ROUTES)) == []


def test_the_file_is_what_the_server_says() -> None:
    same = (DOCS / "openapi.json").read_text(encoding="utf-8") == script.text()
    assert same, "it is not; `make openapi` writes it anew"


def test_it_is_openapi_3_1() -> None:
    schemathesis.openapi.from_dict(checked_in()).validate()


def test_it_is_refused_if_it_is_not() -> None:
    broken = checked_in()
    broken["paths"]["/api/v1/jobs"]["get"]["parameters"][0]["in"] = "nowhere"
    with pytest.raises(Exception, match="nowhere"):
        schemathesis.openapi.from_dict(broken).validate()


def references(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*(references(each) for each in value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_every_reference_leads_somewhere_and_every_shape_is_used() -> None:
    found = checked_in()
    named = {
        f"#/components/{kind}/{name}"
        for kind in ("schemas", "responses")
        for name in found["components"][kind]
    }
    assert references(found) == named


def test_every_operation_has_an_id_of_its_own_and_all_parameters_of_its_path() -> None:
    seen: set[str] = set()
    for path, methods in checked_in()["paths"].items():
        for operation in methods.values():
            assert operation["operationId"] not in seen
            seen.add(operation["operationId"])
            inside = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
            assert inside == set(re.findall(r"\{(\w+)\}", path)), path
    assert len(seen) == len(API_ROUTES)


JOBS = ("paths", "/api/v1/jobs")
Change = Callable[[dict[str, Any]], Any]


def _at(*place: Any) -> Callable[[dict[str, Any]], Any]:
    def find(found: Any) -> Any:
        for key in place:
            found = found[key]
        return found

    return find


GONE: dict[str, tuple[Change, str]] = {
    "a path": (lambda it: it["paths"].pop("/api/v1/jobs"), "/paths//api/v1/jobs"),
    "a method": (lambda it: _at(*JOBS)(it).pop("post"), "/paths//api/v1/jobs/post"),
    "a query word": (
        lambda it: _at(*JOBS, "get", "parameters")(it).pop(0),
        "/paths//api/v1/jobs/get/query:state",
    ),
    "an answer": (
        lambda it: _at(*JOBS, "post", "responses")(it).pop("201"),
        "/paths//api/v1/jobs/post/responses/201",
    ),
    "a key of an answer": (
        lambda it: _at("components", "schemas", "Job", "properties")(it).pop("run"),
        "/components/schemas/Job/properties/run",
    ),
    "a key that was always there": (
        lambda it: _at("components", "schemas", "Job", "required")(it).remove("run"),
        "/components/schemas/Job/run is always there",
    ),
    "a key of a request": (
        lambda it: _at("components", "schemas", "NewJob", "properties")(it).pop("labels"),
        "/components/schemas/NewJob/properties/labels",
    ),
    "a word that was allowed": (
        lambda it: _at(*JOBS, "get", "parameters", 0, "schema", "items", "enum")(it).pop(0),
        "/paths//api/v1/jobs/get/query:state/items/enum queued",
    ),
    "a key that could be left out": (
        lambda it: _at("components", "schemas", "NewJob")(it).update(required=["labels"]),
        "/components/schemas/NewJob/labels may be left out",
    ),
    "a header that could be left out": (
        lambda it: _at(*JOBS, "post", "parameters", 0)(it).update(required=True),
        "/paths//api/v1/jobs/post/header:Idempotency-Key may be left out",
    ),
    "a name of an operation": (
        lambda it: _at(*JOBS, "get")(it).update(operationId="jobs"),
        "/paths//api/v1/jobs/get/operationId get_jobs",
    ),
}


@pytest.mark.parametrize("what", GONE)
def test_what_vanishes_is_named(what: str) -> None:
    before, change = checked_in(), GONE[what][0]
    after = copy.deepcopy(before)
    change(after)
    assert GONE[what][1] in script.vanished(before, after)


def test_what_is_added_or_said_in_other_words_is_no_loss() -> None:
    before = checked_in()
    after = copy.deepcopy(before)
    after["paths"]["/api/v1/more"] = {"get": {}}
    after["components"]["schemas"]["Job"]["properties"]["colour"] = {"type": "string"}
    after["components"]["schemas"]["Job"]["required"].append("colour")
    after["components"]["schemas"]["NewJob"]["properties"]["colour"] = {"type": "string"}
    after["paths"]["/api/v1/jobs"]["get"]["summary"] = "Jobs."
    after["info"]["version"] = "9"
    assert script.vanished(before, after) == []
