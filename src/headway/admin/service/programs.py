"""The system's own programs, asked for a bounded time and without a shell."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from headway.base.errors import HeadwayError

ANSWER_SECONDS = 10.0
START_SECONDS = 150.0  # longer than systemd waits for a worker's end


class ServiceResult(NamedTuple):
    code: int
    out: str
    err: str

    def why(self) -> str:
        """Its last words, for an error of ours."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return lines[-1] if lines else f"exit code {self.code}"


def is_there(program: str) -> bool:
    return shutil.which(program) is not None


def ask(
    program: str, words: Sequence[str], *, given: str = "", seconds: float = ANSWER_SECONDS
) -> ServiceResult:
    """What it says; a program that is missing, or does not answer in time, has failed."""
    found = shutil.which(program)
    if found is None:
        return ServiceResult(127, "", f"there is no {program}")
    try:
        done = subprocess.run(
            [found, *words],
            input=given.encode(errors="surrogateescape"),
            capture_output=True,
            timeout=seconds,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        return ServiceResult(124, "", f"{program} does not answer")
    except OSError as error:
        return ServiceResult(126, "", f"{found}: {error.strerror}")
    out, err = (each.decode(errors="surrogateescape") for each in (done.stdout, done.stderr))
    return ServiceResult(done.returncode, out, err)


def demand(
    program: str, words: Sequence[str], *, given: str = "", seconds: float = ANSWER_SECONDS
) -> ServiceResult:
    """The same where it must work."""
    answer = ask(program, words, given=given, seconds=seconds)
    if answer.code != 0:
        raise HeadwayError(f"{' '.join([program, *words])}: {answer.why()}")
    return answer
