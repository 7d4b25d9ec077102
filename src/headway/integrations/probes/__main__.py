"""The small process that checks, between a job's claim and its command, whether what its gates have
seen of its repository is still so: the same probes, judged by the same gates.

    check  {"job", "repo", "pin", "preconditions", "locks"}

Exit 0: it is; 76 with the gate's words: it is not; else as `headway.integrations.git`.
"""

import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from headway.core.gates.graph import objection_at_start, questions_at_start
from headway.integrations.git.__main__ import run, say
from headway.integrations.probes import answers_to
from headway.integrations.probes.start_checks import CHANGED, job_of


def main() -> NoReturn:
    run({"check": check})


def check(request: Mapping[str, Any]) -> None:
    job = job_of(request)
    objection = objection_at_start(job, answers_to(questions_at_start(job), {}))
    if objection is not None:
        say(objection.detail)
        sys.exit(CHANGED)


if __name__ == "__main__":
    main()
