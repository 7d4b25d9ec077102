"""Artifacts: how they are written, and the keys by which they are known."""

import pytest

from headway.base.errors import InvalidInputError
from headway.core.artifacts import LONGEST, artifact_key, parse_artifact, split_key


@pytest.mark.parametrize(
    ("text", "repo", "key"),
    [
        ("target_branch:main", "/repo", "target_branch:main /repo"),
        ("plan_doc:login", None, "plan_doc:login"),
        ("custom:report:june", "/repo", "custom:report:june"),
        ("file:/srv/a b", "/repo", "file:/srv/a b"),
    ],
)
def test_only_what_is_in_a_repository_is_known_by_it(text: str, repo: str | None, key: str) -> None:
    assert artifact_key(text, repo) == key
    there = repo if key != text else None
    assert split_key(key) == (text, there)


@pytest.mark.parametrize(
    "text",
    [
        "file:a\x07b",
        "file:a\nb",
        "file:\u202etxt",
        f"file:{'x' * LONGEST}",
        "file:",
        "file",
        "plan_doc:-x",
        "command_patch:job-0",
    ],
)
def test_what_no_line_could_show_or_nobody_could_name_is_no_artifact(text: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_artifact(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("nothere.txt", "; did you mean file:nothere.txt?"),
        ("branch:x", "; did you mean plan_branch:x or target_branch:x?"),
        ("doc:login", "; did you mean plan_doc:login?"),
        ("sentinel:login", "; did you mean merge_sentinel:login?"),
        ("colour:red", "custom, file"),
    ],
)
def test_an_unknown_kind_is_answered_with_what_was_meant(text: str, meant: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_artifact(text)
    assert str(refused.value).endswith(meant)
