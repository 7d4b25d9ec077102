"""What a submitter asks for, before it is checked."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headway.core.model import NOTHING, JobId

# What a program may give. Once a request is read it has what stands first.
GivenDuration = Any  # microseconds, a timedelta, or a text like "5m"
GivenInstant = Any  # µs UTC, a datetime, or a text like "2026-11-15T22:30"
GivenLock = Any  # a `core.model.Lock`, or a text like "db:shared"
GivenRate = Any  # a `core.model.Rate`, or a text like "claude=10/min"


class Request(NamedTuple):
    """A command to submit, as the CLI and the library take it. A duration is a text like "5m", a
    timedelta, or a whole number of microseconds. `request_values` reads what a program gives.

    Requests that are submitted together may refer to each other: `local` is the name of this one
    among them, and `after` may have such names beside ids.
    """

    argv: tuple[str, ...] = ()
    shell: str | None = None
    name: str | None = None
    slug: str | None = None
    labels: Mapping[str, str] = NOTHING
    priority: int = 0
    after: tuple[JobId | str, ...] = ()
    locks: Sequence[GivenLock] = ()
    delay: GivenDuration = 0
    at: GivenInstant = None
    timeout: GivenDuration = None
    grace: GivenDuration = 10_000_000
    retries: int = 0
    retry_base: GivenDuration = 10_000_000
    retry_on: tuple[str, ...] = ()
    skip_exit_codes: tuple[int, ...] = ()
    env: Mapping[str, str] = NOTHING
    cwd: str | None = None
    stdin: str | None = None
    key: str | None = None
    on_finish: tuple[str, ...] = ()
    any_host: bool = False
    check: bool = True
    needs: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    require: tuple[str, ...] = ()  # preconditions
    require_approval: bool = False
    pin_head: str | None = None  # a branch, or "" for what is checked out
    worktree: str | None = None  # a base, or "" for what is checked out
    save_patch: bool = False
    local: str | None = None
    input: bytes | None = None  # what it reads, kept with the job; `stdin` is a file instead
    # From here on: what most requests say nothing of. A specification has it under the same name.
    type: str | None = None  # a word that limits go by
    group: str | None = None  # by its id or its name
    last: bool = False  # no other joins that group after it
    position: int | None = None  # from 1, among those of its priority; None: the last
    resources: tuple[str, ...] = ()
    rates: Sequence[GivenRate] = ()
    webhooks: tuple[str, ...] = ()  # URLs that are told of its end
    target: str | None = None
    subject: str | None = None
    template: str | None = None  # whose defaults it took
    retry_cap: GivenDuration = 3_600_000_000
    retry_jitter: float = 0.0
    idle_timeout: GivenDuration = None  # how long it may write nothing
    agent: Mapping[str, Any] | None = None  # what `headway.jobs.agents.agent_request` puts together


_NOTHING_ELSE = Request()[1:]


def is_plain(request: Request) -> bool:
    """Whether it is a command of texts and nothing else, as most are: nothing has to be read."""
    return (
        isinstance(request, Request)
        and isinstance(request.argv, tuple)
        and all(isinstance(each, str) for each in request.argv)
        and request[1:] == _NOTHING_ELSE
    )


def find_program(argv: Sequence[str], cwd: str, path: str) -> bool:
    """Whether what these words begin with can be executed there."""
    folders = [""] if "/" in argv[0] else path.split(os.pathsep)
    places = (os.path.join(cwd, folder, argv[0]) for folder in folders)
    return any(os.access(place, os.X_OK) and os.path.isfile(place) for place in places)
