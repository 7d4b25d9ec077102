"""The table of a job's fields: whole, without contradictions, and read by everything that follows
it."""

from collections import Counter

import pytest

from headway.core.model import FIELDS, Field, Job, JobSpec, of_job, of_spec

ROWS = {field.name: field for field in FIELDS if field.name}


def test_every_field_of_a_job_and_of_a_specification_has_one_row() -> None:
    assert {*ROWS} == {*Job._fields, *JobSpec._fields}
    assert all(count == 1 for name, count in Counter(each.name for each in FIELDS).items() if name)
    keys = [field.shown for field in FIELDS if field.shown]
    assert len(keys) == len({*keys})


@pytest.mark.parametrize("field", ROWS.values(), ids=ROWS)
def test_a_row_says_what_can_be(field: Field) -> None:
    assert bool(field.column) == (field.name in Job._fields), "a job is stored as a whole"
    assert not field.asked or {field.name} <= {*Job._fields} & {*JobSpec._fields}
    assert not field.digest or field.name in JobSpec._fields, "a digest is of what was asked for"
    assert not field.alike or field.asked
    assert not (field.later and field.asked), "what was asked for is stored at once"
    assert field.word in ("", "text", "texts", "whole", "flag")
    assert not field.word or field.name in JobSpec._fields


def test_what_shares_a_column_stands_behind_what_has_its_own() -> None:
    shares = ["." in ROWS[name].column for name in Job._fields]
    assert shares == sorted(shares)


def test_names_are_told_apart_by_where_they_are_fields() -> None:
    rows = (ROWS["approval"], ROWS["require_approval"], ROWS["name"])
    assert of_job(rows) == ("approval", "name")
    assert of_spec(rows) == ("require_approval", "name")
