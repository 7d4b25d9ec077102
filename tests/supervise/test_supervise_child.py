"""What a command is given before it is executed: where it is searched for, and its variables."""

import pytest

from headway.supervise import child

SPEC = {"token": "t", "home": "/h", "job": 7, "attempt": 2, "env": {"A": "spec", "B": "spec"}}
OWN = {
    b"HEADWAY_CLAIM": b"t",
    b"HEADWAY_HOME": b"/h",
    b"HEADWAY_JOB_ID": b"job-7",
    b"HEADWAY_RUN_ID": b"run-7",
    b"HEADWAY_ATTEMPT": b"2",
}


@pytest.mark.parametrize(
    ("path", "searched"),
    [
        (b"/bin:/usr/bin", [b"/bin/x", b"/usr/bin/x"]),
        (b":/bin", [b"./x", b"/bin/x"]),
        (b"/bin:", [b"/bin/x", b"./x"]),
    ],
)
def test_a_program_is_searched_for_as_execvp_does(path: bytes, searched: list[bytes]) -> None:
    assert child._candidates([b"x"], {b"PATH": path}) == searched
    assert child._candidates([b"./x"], {b"PATH": path}) == [b"./x"]


def test_what_headway_says_of_a_job_goes_before_what_anybody_else_says() -> None:
    submitted = {"env": {"A": "theirs", "C": "theirs", "D": "theirs", "HEADWAY_CLAIM": "forged"}}
    spec = {**SPEC, "env": {**SPEC["env"], "HEADWAY_JOB_ID": "job-1"}, "unset": ["D"]}
    given = {b"A": b"spec", b"B": b"spec", b"C": b"theirs"}
    assert child._environment(spec, submitted) == {**given, **OWN}
    assert b"HEADWAY_JOB_ID" not in child._environment({**SPEC, "job": 0}, {})
