"""What the doctor says of the jobs file."""

import os
from collections.abc import Iterator, Sequence

from headway.admin.doctor.finding import GREEN, YELLOW, CheckedHome, Finding
from headway.base.errors import HeadwayError, NotFoundError
from headway.base.home import Home
from headway.schedules.jobsfile.model import FILE
from headway.schedules.jobsfile.problems import Problem


def jobs_file(place: CheckedHome) -> Iterator[Finding]:
    """A broken one is no error of the store: its last good set runs on."""
    from headway.schedules.jobsfile.absences import absences
    from headway.schedules.jobsfile.reader import JobsFileError, file_content, read_jobs_file

    if FILE in place.config.untrusted:  # another finding tells
        return
    try:
        content = file_content(_path(place.home))
        entries = read_jobs_file(content)
        missing = absences(content, place.home, place.config)
    except NotFoundError:
        return
    except JobsFileError as error:
        yield _broken(_listed(error.problems))
    except HeadwayError as error:
        yield _broken(str(error))
    else:
        enabled = sum(entry.enabled for entry in entries)
        counted = f"{enabled} of {len(entries)} entries are enabled"
        if missing:
            detail = f"{counted}, and not all can run: {_listed(missing)}"
            yield Finding("jobs file", YELLOW, detail, "headway jobsfile check")
        else:
            yield Finding("jobs file", GREEN, counted)


def _listed(problems: Sequence[Problem]) -> str:
    """The first, as `jobsfile check` says it, and how many more there are."""
    more = len(problems) - 1
    return f"{problems[0]}" + (f", and {more} more" if more else "")


def has_jobs_file(home: Home) -> bool:
    return os.path.exists(_path(home))


def _path(home: Home) -> str:
    return os.path.join(home.path, FILE)


def _broken(detail: str) -> Finding:
    detail = f"{FILE} is broken, and the last good set runs on: {detail}"
    return Finding("jobs file", YELLOW, detail, "headway jobsfile check")
