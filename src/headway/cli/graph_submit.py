"""`headway submit --graph FILE`: queue a whole graph of jobs, or nothing."""

import gc
import os
import sys
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from headway.base.clock import SystemClock
from headway.base.errors import InvalidInputError, NotFoundError
from headway.base.home import find_home
from headway.cli.missing_producers import needing_others, say_what_nobody_makes
from headway.cli.render import emit, say
from headway.cli.scope import Scope
from headway.jobs.graph import Drafts, GraphError
from headway.jobs.graph_file import read_graph
from headway.jobs.submit import drafts as drafts_of

if TYPE_CHECKING:
    from headway.client import Client
    from headway.core.model import JobSpec
    from headway.jobs.insert import Submitted

NO_CHECK = "no_check"  # of an entry
SMALL = 10_000  # jobs of which nobody wants to hear how far they are


def submit_graph(scope: Scope, path: str, *, as_json: bool) -> int:
    client, drafts, specs = read_graph_file(scope, path)
    _print_progress(f"storing {len(specs):,} jobs" if len(specs) > SMALL else "")
    submitted = client.jobs.submit_specifications(specs)
    _print_progress("")
    say_what_nobody_makes(client, needing_others(specs, submitted))
    client.close()
    _show(drafts, submitted, as_json=as_json, keyed=any(spec.key is not None for spec in specs))
    return 0


def read_graph_file(scope: Scope, path: str) -> "tuple[Client, Drafts, list[JobSpec]]":
    """The checked jobs of the file, and the client to submit them with."""
    gc.disable()  # what is read is kept to the end: looking through it frees nothing
    here = os.getcwd()
    if find_home(scope.home, os.environ, here)[1]:
        client = scope.connect_or_create()
        drafts = drafts_of(client.context, NO_CHECK)
        return client, drafts, _read(path, drafts)
    drafts = _drafts_without_a_home(here)
    specs = _read(path, drafts)
    _refuse_strangers(specs)
    return scope.connect_or_create(), drafts, specs


def _drafts_without_a_home(here: str) -> Drafts:
    """A first submit that is refused leaves nothing behind, not even the folder."""
    from headway.jobs.settings import SETTINGS
    from headway.jobs.specification import specify

    found: dict[str, bool] = {}
    return Drafts(
        partial(
            specify,
            environ=os.environ,
            working_directory=here,
            found=found,
            no_check=NO_CHECK,
        ),
        limit=SETTINGS["scheduler.graph_limit"].default,
    )


def _refuse_strangers(specs: "list[JobSpec]") -> None:
    for spec in specs:
        for run in spec.after_runs:
            raise NotFoundError(f"there is no wf-{run}; nothing was ever submitted here")
        for each in spec.after:
            if each > 0:
                raise NotFoundError(f"there is no job-{each}; nothing was ever submitted here")


def _read(path: str, drafts: Drafts) -> "list[JobSpec]":
    """The jobs of the file. Everything that is wrong with it is told, a line each."""
    name = "stdin" if path == "-" else path
    try:
        with _opened(path) as stream:
            read_graph(stream, drafts, now=SystemClock().now(), progress=_print_count)
        specs = drafts.linked()
    except OSError as error:
        raise InvalidInputError(f"cannot read {name}: {error.strerror or error}") from None
    except GraphError as error:
        _print_progress("")
        if error.count == 1:
            raise InvalidInputError(f"{name}: {error}") from None
        for problem in error.problems:
            say(f"{name}: {problem}")
        more = (
            f", the first {len(error.problems)} above" if error.count > len(error.problems) else ""
        )
        raise InvalidInputError(
            f"{name}: {error.count} things are wrong{more}; nothing was submitted"
        ) from None
    except InvalidInputError as error:
        _print_progress("")
        raise InvalidInputError(f"{name}: {error}") from None
    return specs


def _opened(path: str) -> "nullcontext[BinaryIO] | BinaryIO":
    return nullcontext(sys.stdin.buffer) if path == "-" else open(path, "rb")


def _print_count(count: int) -> None:
    _print_progress(f"read {count:,} jobs")


def _print_progress(progress: str) -> None:
    """How far it is, on one line of a terminal; nothing wipes the line."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{progress}")
        sys.stderr.flush()


def _show(drafts: Drafts, submitted: "list[Submitted]", *, as_json: bool, keyed: bool) -> None:
    if not as_json:
        for each in submitted:
            print(f"job-{each.job_id}")
        return
    document: dict[str, object] = {
        "jobs": {name: f"job-{submitted[at].job_id}" for name, at in drafts.places.items()}
    }
    if keyed:
        document["created"] = {name: submitted[at].created for name, at in drafts.places.items()}
    emit(document)
