"""How the output of an agent job is told to people."""

import sys

from headway.base.errors import InvalidInputError, NotFoundError
from headway.cli.render import width
from headway.client import Client
from headway.core.model import Job
from headway.integrations.agents.files import load_runner
from headway.integrations.agents.transcript import FORMATS, Transcript

LONGEST_DETAIL = 200  # of a tool, without a terminal


def transcript_of(client: Client, job: Job) -> Transcript | None:
    """What tells its stream to people; None where that is text, or its runner is not there any
    more: then the stream is shown as it is."""
    try:
        runner = load_runner(job.params["agent"]["runner"], client.home.path)
    except (NotFoundError, InvalidInputError):
        return None
    if runner.parser not in FORMATS:
        return None
    return Transcript(runner.parser, width() - 1 if sys.stdout.isatty() else LONGEST_DETAIL)
