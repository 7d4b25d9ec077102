"""What the tests of the jobs file share: short ways to read one and to say what is wrong."""

import textwrap

from headway.schedules.jobsfile.model import Entry
from headway.schedules.jobsfile.reader import JobsFileError, read_jobs_file

ENOUGH = {
    "script": "type: script, run: tidy, interval: 60",
    "agent": "type: agent, prompt: Look around., interval: 60",
    "command": "type: command, run: make, interval: 60",
}


def read(text: str | bytes) -> list[Entry]:
    content = textwrap.dedent(text).encode() if isinstance(text, str) else text
    return read_jobs_file(content)


def problems(text: str | bytes) -> list[str]:
    """What is wrong, a line each; empty if the file is good."""
    try:
        read(text)
    except JobsFileError as error:
        return [str(each) for each in error.problems]
    return []


def one(kind: str, more: str = "") -> Entry:
    """The entry of a file with just one, on line 2."""
    [entry] = read(with_one(kind, more))
    return entry


def with_one(kind: str, more: str = "") -> str:
    return f"jobs:\n  it: {{{', '.join(part for part in (ENOUGH[kind], more) if part)}}}\n"
