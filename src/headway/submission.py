"""Turn what a submitter asked for into a checked specification. Nothing is ever half-accepted.

Every check is made before anything is written; the error names the thing and the next step.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from headway.core.model import (
    AGENT,
    FUNCTION,
    NOTHING,
    JobId,
    JobSpec,
    Lock,
    LockMode,
    Rate,
    RetryPolicy,
)
from headway.errors import InvalidInputError, NotFoundError
from headway.units import LONGEST, parse_duration, parse_instant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from headway.config import Config
    from headway.gating import Gates
    from headway.home import Home

SLUG = re.compile(r"[A-Za-z0-9._-]{1,64}")
LABEL = re.compile(r"[A-Za-z0-9._/-]{1,64}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
JOB_ID = re.compile(r"(?:job-|#)?([1-9][0-9]{0,17})")
LAST_INSTANT = 253_402_300_799_000_000  # the end of the year 9999
LONGEST_NAME = 200
LARGEST_SPEC = 1 << 20
MOST_PRIORITY = 1_000_000
MOST_RETRIES = 100
_USUAL_GRACE = 10_000_000
RESERVED_TYPES = (FUNCTION, AGENT, "operation")  # those that have no command


class Request(NamedTuple):
    """A command to submit, as the CLI and the library take it. Durations are microseconds.

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
    locks: tuple[Lock, ...] = ()
    delay: int = 0
    at: int | None = None
    timeout: int | None = None
    grace: int = 10_000_000
    retries: int = 0
    retry_base: int = 10_000_000
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
    type: str | None = None  # a word that limits go by
    group: str | None = None  # by its id or its name
    last: bool = False  # no other joins that group after it
    position: int | None = None  # from 1, among those of its priority; None: the last
    resources: tuple[str, ...] = ()
    rates: tuple[Rate, ...] = ()
    target: str | None = None
    subject: str | None = None
    template: str | None = None  # whose defaults it took
    retry_cap: int = 3_600_000_000
    retry_jitter: float = 0.0
    agent: Mapping[str, Any] | None = None  # what `headway.runners.agent_request` puts together


_QUEUEING = Request._fields.index("type")
_USUAL = Request()[_QUEUEING:]


def parse_job_id(text: str) -> JobId:
    match = JOB_ID.fullmatch(text.strip())
    if not match:
        raise NotFoundError(f"{text!r} is not a job; write it like job-24 or 24")
    return int(match[1])


def refers_inside(requests: Iterable[Request]) -> bool:
    """Whether any of these has a name for others, or names another."""
    return any(
        request.local is not None
        or (request.after and any(isinstance(each, str) for each in request.after))
        for request in requests
    )


def check_local(name: str) -> None:
    """Whether a job may be called this by others of its submission."""
    _plain("the local name", name)
    if JOB_ID.fullmatch(name):
        raise InvalidInputError(
            f"the local name {name!r} looks like the id of a job; put a word before it"
        )


def parse_job_or_run(text: str) -> JobId:
    """A run has the number of its job."""
    return parse_job_id(text.strip().removeprefix("run-"))


def parse_lock(text: str) -> Lock:
    key, colon, mode = text.rpartition(":")
    if not colon or mode not in ("shared", "exclusive"):
        key, mode = text, "exclusive"
    _plain("lock", key)
    return Lock(key, LockMode(mode))


def when(delay: int, at: str | None, now: int) -> dict[str, Any]:
    """`--at +10m` is a delay: submitted again under its key it is the same request."""
    if at is None:
        return {"delay": delay}
    if at.strip().startswith("+") and not delay:
        return {"delay": parse_duration(at.strip()[1:], "--at")}
    return {"delay": delay, "at": parse_instant(at, now)}


def split_command(command: str | None, option: str = "--on-finish") -> tuple[str, ...]:
    """The words of a follow-up command, as a shell would split them."""
    if command is None:
        return ()
    import shlex

    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise InvalidInputError(f"{option} {command!r}: {error}") from None
    if not words:
        raise InvalidInputError(f"{option} is empty")
    return words


def specify(
    request: Request,
    *,
    environ: Mapping[str, str],
    working_directory: str,
    found: dict[str, bool] | None = None,
    remedy: str = "--no-check skips this",
    place: "tuple[Home, Config] | None" = None,
) -> JobSpec:
    """The checked specification. Raises InvalidInputError on the first thing that is wrong.

    `found` remembers which programs and folders are there, for callers with many requests;
    `remedy` is what to do about one that is not; `place` is where runners of agents are found.
    """
    agent = None
    _check_words(request)
    if request.agent is not None:
        from headway.runners.asking import ask

        agent, request = ask(request, environ, place, remedy)
    elif bool(request.argv) == (request.shell is not None):
        raise InvalidInputError("give a command after --, or --shell STRING, and not both")
    if request.retry_on:
        from headway.retrying import check_causes, check_causes_of_agent

        (check_causes if agent is None else check_causes_of_agent)(request.retry_on)
    _check_numbers(request)
    cwd = working_directory
    if request.cwd:
        cwd = os.path.abspath(os.path.join(working_directory, request.cwd))
    stdin = os.path.join(working_directory, request.stdin) if request.stdin else None
    if request.check:
        _check_files(request, environ, cwd, stdin, {} if found is None else found, remedy)
    gates = _gates(request, cwd)
    params = {"agent": agent, **_params(request, cwd, stdin, gates)}
    name = request.name or request.local or default_name(request)
    spec = _spec(request, params, name, gates)
    if agent is not None:
        spec = spec._replace(type=AGENT)
    if _may_be_too_large(spec):
        asked = (spec.params, spec.labels, spec.on_finish)
        if sum(len(json.dumps(each)) for each in asked) > LARGEST_SPEC:
            raise InvalidInputError("the command and its options are larger than 1 MiB; use a file")
    return spec


def _params(request: Request, cwd: str, stdin: str | None, gates: "Gates | None") -> dict[str, Any]:
    """What a supervisor is told of it; None where there is nothing to tell."""
    return {
        "argv": list(request.argv) or None,
        "shell": request.shell,
        "cwd": cwd if request.cwd else None,
        "stdin": stdin,
        "env": dict(request.env) or None,
        "timeout_seconds": request.timeout / 1e6 if request.timeout is not None else None,
        "grace_seconds": request.grace / 1e6,
        "skip_exit_codes": list(request.skip_exit_codes) or None,
        "any_host": request.any_host or None,
        "worktree": gates.worktree if gates else None,
        "save_patch": request.save_patch or None,
    }


def function_spec(request: Request, task: str, arguments: Mapping[str, Any]) -> JobSpec:
    """The checked specification of a call; of the request, what is not about a command."""
    _check_words(request)
    if request.retry_on:
        from headway.retrying import check_causes_of_call

        check_causes_of_call(request.retry_on)
    _check_numbers(request)
    if request.pin_head is not None or request.require or request.worktree is not None:
        raise InvalidInputError(f"{task}: a function has no repository of its own to look at")
    params: dict[str, Any] = {
        "task": task,
        "args": {},
        "timeout_seconds": request.timeout / 1e6 if request.timeout is not None else None,
        "grace_seconds": request.grace / 1e6 if request.grace != _USUAL_GRACE else None,
    }
    gates = _gates(request, os.getcwd()) if request.needs or request.produces else None
    spec = _spec(request, params, request.name or task, gates)._replace(type=FUNCTION)
    return with_arguments(spec, arguments)


def with_arguments(spec: JobSpec, arguments: Mapping[str, Any]) -> JobSpec:
    """The same call with these arguments."""
    return spec._replace(params=params_of_call(spec.params, arguments))


def params_of_call(params: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the same call with these arguments."""
    if len(repr(arguments)) > LARGEST_SPEC // 12 and len(json.dumps(arguments)) > LARGEST_SPEC:
        task = params["task"]
        raise InvalidInputError(f"{task}: the arguments are larger than 1 MiB; use a file")
    return {**params, "args": arguments}


def _gates(request: Request, cwd: str) -> "Gates | None":
    """Most requests ask for nothing of the graph, and must not pay for it."""
    asked = (
        request.needs,
        request.produces,
        request.require,
        request.save_patch,
        request.pin_head is not None,
        request.worktree is not None,
    )
    if not any(asked):
        return None
    from headway.gating import gates_of

    return gates_of(request, cwd)


def _spec(
    request: Request, params: Mapping[str, Any], name: str, gates: "Gates | None" = None
) -> JobSpec:
    spec = JobSpec(
        params={key: value for key, value in params.items() if value is not None},
        name=name,
        slug=request.slug,
        labels=dict(request.labels),
        priority=request.priority,
        after=_ids(request.after),
        locks=_merged(request.locks),
        delay=request.delay,
        at=request.at,
        retry=RetryPolicy(
            max_attempts=request.retries,
            base=request.retry_base,
            cap=request.retry_cap,
            jitter=request.retry_jitter,
            on=request.retry_on,
        ),
        key=request.key,
        on_finish=request.on_finish,
        require_approval=request.require_approval,
    )
    if request[_QUEUEING:] != _USUAL:
        spec = _queueing(request, spec)
    if gates is None:
        return spec
    return spec._replace(
        needs=gates.needs,
        produces=gates.produces,
        pinned_head=gates.pinned_head,
        preconditions=gates.preconditions,
        repo=gates.repo,
    )


def _queueing(request: Request, spec: JobSpec) -> JobSpec:
    """What most requests say nothing of: where it stands, and what it takes of limits."""
    from headway.quotas import check_word

    for what, word in (("type", request.type), ("target", request.target)):
        if word is not None:
            check_word(what, word)
    if request.type in RESERVED_TYPES:
        raise InvalidInputError(f"type {request.type!r} means something else; use another word")
    for word in request.resources:
        check_word("resource", word)
    if request.position is not None and request.position < 1:
        raise InvalidInputError(f"position {request.position} is less than 1, which is the first")
    if request.last and request.group is None:
        raise InvalidInputError("--last is about a group; name it with --group")
    for what, text in (("group", request.group), ("subject", request.subject)):
        if text is not None:
            _plain(what, text)
    return spec._replace(
        type=request.type or spec.type,
        group=request.group,
        last=request.last,
        subject=request.subject,
        target=request.target,
        template_id=request.template,
        resources=tuple(dict.fromkeys(request.resources)),
        rates=tuple({rate.key: rate for rate in request.rates}.values()),
        place=request.position,
    )


def _ids(after: Sequence[JobId | str]) -> tuple[JobId, ...]:
    """Those that are known by now; names are put in where they are resolved (`linking`)."""
    if not after:
        return ()
    return tuple(dict.fromkeys(each for each in after if not isinstance(each, str)))


def _may_be_too_large(spec: JobSpec) -> bool:
    """Quicker than to write it all down: JSON needs at most 12 letters for one."""
    params = spec.params
    words = [*spec.on_finish, *params.get("argv", ())]
    if "agent" in params:
        words += [params["agent"]["prompt"], *params["agent"].get("argv", ())]
    words += [params[name] for name in ("shell", "cwd", "stdin") if name in params]
    for named in (spec.labels, params.get("env")):
        if named:
            words += [*named, *named.values()]
    numbers = len(params.get("skip_exit_codes", ()))
    return 12 * sum(map(len, words)) + 6 * (len(words) + numbers) > LARGEST_SPEC - 1000


def default_name(request: Request) -> str:
    words = request.shell or " ".join(
        [os.path.basename(request.argv[0]) or request.argv[0], *request.argv[1:]]
    )
    cleaned = words
    if not words.isprintable():
        cleaned = "".join(char if char.isprintable() else " " for char in words)
    name = " ".join(cleaned.split()) or "command"
    return name if len(name) <= 60 else name[:57] + "..."


def _check_words(request: Request) -> None:
    for word in (*request.argv, request.shell or "", *request.on_finish):
        _passable("the command", word)
    if request.cwd or request.stdin:
        _passable("--cwd", request.cwd or "")
        _passable("--stdin", request.stdin or "")
    for each in request.after:
        if not isinstance(each, str) and each < 1:
            raise InvalidInputError(f"after {each} is not a job; the first is 1")
    if request.argv and not request.argv[0]:
        raise InvalidInputError("the program's name is empty")
    if request.name is not None:
        _plain("name", request.name)
    if request.key is not None:
        _plain("key", request.key)
    if request.slug is not None and not SLUG.fullmatch(request.slug):
        raise InvalidInputError(
            f"slug {request.slug!r} may have letters, digits, '.', '_', '-', at most 64 of them"
        )
    for label, value in request.labels.items():
        if not LABEL.fullmatch(label):
            raise InvalidInputError(f"label {label!r} may have letters, digits and . _ / -")
        _plain(f"label {label}", value or " ")
    for variable, value in request.env.items():
        if not VARIABLE.fullmatch(variable):
            raise InvalidInputError(f"{variable!r} is not the name of an environment variable")
        _passable(f"the value of {variable}", value)


def _passable(what: str, text: str) -> None:
    """Whether the kernel can be handed this text at all."""
    if text.isascii() and "\0" not in text:
        return
    try:
        passed = os.fsencode(text)
    except UnicodeEncodeError:
        raise InvalidInputError(
            f"{what} contains a character that cannot be passed to a program"
        ) from None
    if b"\0" in passed:
        raise InvalidInputError(f"{what} contains a NUL byte")


def _plain(what: str, text: str) -> None:
    if not text or len(text) > LONGEST_NAME or not text.isprintable():
        raise InvalidInputError(
            f"{what} {text[:40]!r} must be 1 to {LONGEST_NAME} printable characters on one line"
        )


def _check_numbers(request: Request) -> None:
    bounds = (
        ("priority", request.priority, -MOST_PRIORITY, MOST_PRIORITY),
        ("retries", request.retries, 0, MOST_RETRIES),
        ("delay", request.delay, 0, LONGEST),
        ("retry-base", request.retry_base, 0, LONGEST),
        ("retry-cap", request.retry_cap, 0, LONGEST),
        ("retry-jitter", request.retry_jitter, 0, 1),
        ("grace", request.grace, 0, LONGEST),
    )
    for name, value, least, most in bounds:
        if not least <= value <= most:
            raise InvalidInputError(f"{name} {value} is not between {least} and {most}")
    if request.timeout is not None and not 0 < request.timeout <= LONGEST:
        raise InvalidInputError("timeout must be longer than 0 s and shorter than a hundred years")
    if request.at is not None and not 0 <= request.at <= LAST_INSTANT:
        raise InvalidInputError("at is not between the years 1970 and 9999")
    if request.delay and request.at is not None:
        raise InvalidInputError("give --delay or --at, not both")
    for code in request.skip_exit_codes:
        if not 1 <= code <= 255:
            raise InvalidInputError(f"--skip-exit-code {code} is not between 1 and 255")


def _check_files(
    request: Request,
    environ: Mapping[str, str],
    cwd: str,
    stdin: str | None,
    found: dict[str, bool],
    remedy: str,
) -> None:
    if cwd not in found:
        found[cwd] = os.path.isdir(cwd)
    if not found[cwd]:
        raise InvalidInputError(f"there is no directory {cwd} (--no-check skips this)")
    if stdin is not None and (os.path.isdir(stdin) or not os.access(stdin, os.R_OK)):
        raise InvalidInputError(f"--stdin {stdin} cannot be read (--no-check skips this)")
    path = (request.env if "PATH" in request.env else environ).get("PATH", os.defpath)
    for argv in (request.argv, request.on_finish):
        if not argv:
            continue
        sought = "\0".join((argv[0], cwd, path))
        if sought not in found:
            found[sought] = find_program(argv, cwd, path)
        if not found[sought]:
            raise InvalidInputError(
                f"program {argv[0]!r} was not found, or may not be executed ({remedy})"
            )


def find_program(argv: Sequence[str], cwd: str, path: str) -> bool:
    """Whether what these words begin with can be executed there."""
    folders = [""] if "/" in argv[0] else path.split(os.pathsep)
    places = (os.path.join(cwd, folder, argv[0]) for folder in folders)
    return any(os.access(place, os.X_OK) and os.path.isfile(place) for place in places)


def _merged(locks: Sequence[Lock]) -> tuple[Lock, ...]:
    """One entry per key; exclusive wins where both were asked for."""
    if not locks:
        return ()
    merged: dict[str, Lock] = {}
    for lock in locks:
        known = merged.get(lock.key)
        if known is None or lock.mode is LockMode.EXCLUSIVE:
            merged[lock.key] = lock
    return tuple(merged[key] for key in sorted(merged))
