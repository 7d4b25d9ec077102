"""What trusting a folder would allow: each file, setting and program that counts only then.

Everything is read and nothing is run, imported or connected to.
"""

import os
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from headway.admin.modules import module_file
from headway.base.clock import SystemClock
from headway.base.errors import HeadwayError
from headway.base.home import Home, without_password
from headway.base.store_trust import came_with
from headway.base.trust import files_that_need_trust
from headway.jobs.approvals import what_it_runs
from headway.jobs.settings import SETTINGS, Config, Trust, read_config
from headway.schedules.jobsfile.model import COMMAND, FILE, SCRIPT, Entry

MOST_JOBS = 50  # of a store, that are told one by one


class TrustedPart(NamedTuple):
    kind: str
    name: str
    detail: str  # what it runs, or where it leads


def parts_of(home: Home) -> list[TrustedPart]:
    """All of them, in the order of the documentation. Raises if `config.toml` is broken."""
    config = read_config(home)
    return [*_settings(home, config), *_files(home), *_store(home)]


def _settings(home: Home, config: Config) -> Iterator[TrustedPart]:
    for key, value in config.values.items():
        if SETTINGS[key].trust is Trust.HARMLESS:
            continue
        if key == "app.modules":
            yield from (TrustedPart("module", name, _module(home, name)) for name in value)
        else:
            yield TrustedPart("setting", key, without_password(str(value)))
    yield from (TrustedPart("variable", name, value) for name, value in config.env.items())
    for name, words in config.conditions.items():
        yield TrustedPart("condition", name, f"runs {shlex.join(words)}")


def _module(home: Home, name: str) -> str:
    """Where it would be imported from, as far as that is in the project."""
    found = module_file(home, name)
    return f"imports {found}" if found else "imports it from the PYTHONPATH"


def _files(home: Home) -> Iterator[TrustedPart]:
    for name in files_that_need_trust(home.path):
        path = os.path.join(home.path, name)
        if name == FILE:
            yield from _entries(path)
        elif name.startswith("runners/"):
            yield TrustedPart("runner", name, _runner(path))
        else:
            yield TrustedPart("workflow", name, "its steps")


def _entries(path: str) -> Iterator[TrustedPart]:
    from headway.schedules.jobsfile.reader import file_content, read_jobs_file

    try:
        entries = read_jobs_file(file_content(path))
    except HeadwayError as error:
        yield TrustedPart("jobs file", FILE, f"broken: {error}")
        return
    if not entries:
        yield TrustedPart("jobs file", FILE, "has no entries")
    for entry in entries:
        yield TrustedPart("jobs file", entry.name, _what_runs(entry))


def _what_runs(entry: Entry) -> str:
    if entry.type == SCRIPT:
        what = f"calls {entry.run}"
    elif entry.type == COMMAND:
        what = f"runs {shlex.join(entry.argv)}"
    else:
        what = f"asks {entry.runner or 'an agent'}: {entry.prompt}"
    asked = [each for each in entry.conditions if each.startswith("command:")]
    return what + "".join(f"; first {each.removeprefix('command:')}" for each in asked)


def _runner(path: str) -> str:
    from headway.integrations.agents.files import read_runner

    try:
        runner = read_runner(path)
    except HeadwayError as error:
        return f"broken: {error}"
    words = [each if isinstance(each, str) else shlex.join(each) for each in runner.argv]
    return f"runs {' '.join(words)}"


def _store(home: Home) -> Iterator[TrustedPart]:
    others = [name for name in came_with(home) if name != "headway.db"]
    if others:
        yield TrustedPart("files", ", ".join(others), "files of a worker and of jobs, as they are")
    if "headway.db" not in came_with(home):
        return
    if os.path.islink(home.database):
        yield TrustedPart("store", "headway.db", f"is a link to {os.readlink(home.database)}")
        return
    from headway.store.inspect import inspect

    try:
        inspection = inspect(f"sqlite://{home.database}", SystemClock())
        try:
            with inspection.store.read() as tx:
                jobs = tx.jobs.active()
        finally:
            inspection.close()
    except HeadwayError as error:
        yield TrustedPart("store", "headway.db", f"cannot be read: {error}")
        return
    finding_detail = (
        f"{len(jobs)} jobs that have not ended, and what its schedules and targets make"
    )
    yield TrustedPart("store", "headway.db", finding_detail)
    for job in jobs[:MOST_JOBS]:
        yield TrustedPart("store", f"job-{job.id}", f"runs {what_it_runs(job.params)}")
