"""What the doctor says of the jobs file."""

import os
from collections.abc import Iterator

from headway.checkup.finding import GREEN, YELLOW, Finding, Place
from headway.errors import HeadwayError, NotFoundError
from headway.home import Home
from headway.jobsfile.model import FILE


def jobs_file(place: Place) -> Iterator[Finding]:
    """A broken one is no error of the store: its last good set runs on."""
    from headway.jobsfile.reading import JobsFileError, file_content, read_jobs_file

    if FILE in place.config.untrusted:  # another finding tells
        return
    try:
        entries = read_jobs_file(file_content(_path(place.home)))
    except NotFoundError:
        return
    except JobsFileError as error:
        first, more = error.problems[0], len(error.problems) - 1
        told = f"line {first.line}: {first.text}" + (f", and {more} more" if more else "")
        yield _broken(told)
    except HeadwayError as error:
        yield _broken(str(error))
    else:
        enabled = sum(entry.enabled for entry in entries)
        yield Finding("jobs file", GREEN, f"{enabled} of {len(entries)} entries are enabled")


def has_jobs_file(home: Home) -> bool:
    return os.path.exists(_path(home))


def _path(home: Home) -> str:
    return os.path.join(home.path, FILE)


def _broken(told: str) -> Finding:
    told = f"{FILE} is broken, and the last good set runs on: {told}"
    return Finding("jobs file", YELLOW, told, "headway jobsfile check")
