"""Turn what a submitter asked for into a checked specification. Nothing is ever half-accepted.

Every check is made before anything is written; the error names the thing and the next step.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from headway.base.errors import InvalidInputError
from headway.base.units import LONGEST, parse_duration, parse_instant
from headway.core.model import (
    AGENT,
    FIELDS,
    FUNCTION,
    JobId,
    JobSpec,
    Lock,
    LockMode,
    RetryPolicy,
)
from headway.jobs.references import JOB_ID, RUN_ID, check_slug
from headway.jobs.request import Request, find_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from headway.base.home import Home
    from headway.jobs.repository_gates import Gates
    from headway.jobs.settings import Config

LABEL = re.compile(r"[A-Za-z0-9._/-]{1,64}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
LAST_INSTANT = 253_402_300_799_000_000  # the end of the year 9999
LONGEST_NAME = 200
LARGEST_SPEC = 1 << 20
MOST_PRIORITY = 1_000_000
MOST_RETRIES = 100
_USUAL_GRACE = 10_000_000
RESERVED_TYPES = (FUNCTION, AGENT, "operation")  # those that have no command


MODES = tuple(mode.value for mode in LockMode)
_LIKE_MODES = {
    "shared": {"shared", "share", "read", "reader", "readonly", "ro"},
    "exclusive": {"exclusive", "excl", "write", "writer", "rw"},
}

_QUEUEING = Request._fields.index("type")
_USUAL = Request()[_QUEUEING:]
_TAKEN = tuple(name for name in Request._fields[_QUEUEING:] if name in JobSpec._fields)
_TEXTS = ("group", *(each.name for each in FIELDS if each.word == "text" and each.name in _TAKEN))


def check_local(name: str) -> None:
    """Whether a job may be called this by others of its submission."""
    check_name("the local name", name)
    if JOB_ID.fullmatch(name):
        raise InvalidInputError(
            f"the local name {name!r} looks like the id of a job; put a word before it"
        )
    if RUN_ID.fullmatch(name):
        raise InvalidInputError(
            f"the local name {name!r} looks like a run of a workflow; use another word"
        )


def parse_lock(text: str) -> Lock:
    """`KEY`, `KEY:shared` or `KEY:exclusive`. Another word that people use for a mode is refused:
    it would be part of the key, and so another lock."""
    key, colon, mode = text.rpartition(":")
    if colon and key and mode not in MODES:
        meant = next((each for each, words in _LIKE_MODES.items() if mode.lower() in words), None)
        if meant is not None:
            raise InvalidInputError(
                f"lock {text!r}: {mode!r} is not a mode; did you mean '{key}:{meant}'? "
                f"For a key of that name write '{text}:exclusive'"
            )
    if not colon or mode not in MODES:
        key, mode = text, "exclusive"
    check_name("lock", key)
    return Lock(key, LockMode(mode))


def when(delay: int, at: str | None, now: int, what: str = "at") -> dict[str, Any]:
    """`--at +10m` is a delay: submitted again under its key it is the same request."""
    if at is None:
        return {"delay": delay}
    if at.strip().startswith("+") and not delay:
        return {"delay": parse_duration(at.strip()[1:], what)}
    return {"delay": delay, "at": parse_instant(at, now, what=what)}


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
    remedy: str | None = None,
    no_check: str | None = None,
    place: "tuple[Home, Config] | None" = None,
) -> JobSpec:
    """The checked specification. Raises InvalidInputError on the first thing that is wrong.

    `found` remembers which programs and folders are there, for callers with many requests;
    `remedy` is what to do about a program that is not; `no_check` is what the caller has to say if
    nobody is to look, where that is possible; `place` is where runners of agents, and settings,
    are found.
    """
    agent = None
    skip = f"{no_check} skips this" if no_check else None
    remedies = "; ".join(filter(None, (remedy, skip)))
    _check_words(request)
    if request.agent is not None:
        from headway.jobs.agents import ask

        agent, request = ask(request, environ, working_directory, place, remedies)
    elif bool(request.argv) == (request.shell is not None):
        raise InvalidInputError("give a command after --, or --shell STRING, and not both")
    if request.retry_on:
        from headway.core.retry_causes import check_causes, check_causes_of_agent

        (check_causes if agent is None else check_causes_of_agent)(request.retry_on)
    _check_numbers(request)
    if request.webhooks and place is not None:
        from headway.jobs.webhook_urls import check_addresses

        check_addresses(request.webhooks, place[1])
    cwd = working_directory
    if request.cwd:
        cwd = os.path.abspath(os.path.join(working_directory, request.cwd))
    stdin = os.path.join(working_directory, request.stdin) if request.stdin else None
    if request.check:
        known = {} if found is None else found
        _check_files(request, environ, cwd, stdin, known, (_hint(remedies), _hint(skip)))
    gates = _gates(request, cwd)
    params = {"agent": agent, **_params(request, cwd, stdin, gates)}
    if request.input:
        from headway.jobs.inputs import described

        params["input"] = described(request)
    name = request.name or request.local or default_name(request)
    spec = _spec(request, params, name, gates)
    if agent is not None:
        spec = spec._replace(type=AGENT)
    if _may_be_too_large(spec):
        asked = (spec.params, spec.labels, spec.on_finish)
        if sum(len(json.dumps(each)) for each in asked) > LARGEST_SPEC:
            raise InvalidInputError("the command and its options are larger than 1 MiB; use a file")
    return spec


def check_values(request: Request) -> None:
    """What can be said of a request by itself: not whether there are a program and a repository,
    nor the causes for a retry, which depend on who does the work."""
    _check_words(request)
    _check_numbers(request)
    _check_limits(request)
    if request.require:
        from headway.jobs.repository_gates import check_precondition

        for each in request.require:
            check_precondition(each)


def _params(request: Request, cwd: str, stdin: str | None, gates: "Gates | None") -> dict[str, Any]:
    """The parameters for its supervisor; None where there is no value."""
    return {
        "argv": list(request.argv) or None,
        "shell": request.shell,
        "cwd": cwd if request.cwd else None,
        "stdin": stdin,
        "env": dict(request.env) or None,
        "timeout_seconds": request.timeout / 1e6 if request.timeout is not None else None,
        "idle_seconds": request.idle_timeout / 1e6 if request.idle_timeout is not None else None,
        "grace_seconds": request.grace / 1e6,
        "skip_exit_codes": list(request.skip_exit_codes) or None,
        "any_host": request.any_host or None,
        "worktree": gates.worktree if gates else None,
        "save_patch": request.save_patch or None,
    }


def function_spec(
    request: Request, task: str, arguments: Mapping[str, Any], *, folder: str | None = None
) -> JobSpec:
    """The checked specification of a call; of the request, what is not about a command. Paths of
    artifacts are from `folder`."""
    _check_words(request)
    if request.retry_on:
        from headway.core.retry_causes import check_causes_of_call

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
    asked = request.needs or request.produces
    gates = _gates(request, folder or os.getcwd()) if asked else None
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
    from headway.jobs.repository_gates import gates_of

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
        after_runs=_runs(request.after),
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


def _check_limits(request: Request) -> None:
    """Whether the words are right by which limits go."""
    from headway.jobs.quotas import check_word

    for what, word in (("type", request.type), ("target", request.target)):
        if word is not None:
            check_word(what, word)
    if request.type in RESERVED_TYPES:
        raise InvalidInputError(f"type {request.type!r} means something else; use another word")
    for word in request.resources:
        check_word("resource", word)


def _queueing(request: Request, spec: JobSpec) -> JobSpec:
    """The fields that most requests leave out: its place in the order, and the limits it takes."""
    _check_limits(request)
    if request.webhooks:
        from headway.jobs.webhook_urls import check_urls

        check_urls(request.webhooks)
    if request.position is not None and request.position < 1:
        raise InvalidInputError(f"position {request.position} is less than 1, which is the first")
    if request.last and request.group is None:
        raise InvalidInputError("--last is about a group; name it with --group")
    taken = {name: getattr(request, name) for name in _TAKEN}
    for name in _TEXTS:
        if taken[name] is not None:
            check_name(name, taken[name])
    taken |= {
        "type": request.type or spec.type,
        "template_id": request.template,
        "resources": tuple(dict.fromkeys(request.resources)),
        "rates": tuple({rate.key: rate for rate in request.rates}.values()),
        "webhooks": tuple(dict.fromkeys(request.webhooks)),
        "place": request.position,
    }
    return spec._replace(**taken)


def _ids(after: Sequence[JobId | str]) -> tuple[JobId, ...]:
    """Those that are known by now; names are put in where they are resolved (`linking`)."""
    if not after:
        return ()
    return tuple(dict.fromkeys(each for each in after if not isinstance(each, str)))


def _runs(after: Sequence[JobId | str]) -> tuple[int, ...]:
    if not any(isinstance(each, str) for each in after):
        return ()
    from headway.jobs.references import runs_among

    return runs_among(after)


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
    if request.argv and not request.argv[0].strip():
        raise InvalidInputError("the program's name is empty")
    if request.shell is not None and not request.shell.strip():
        raise InvalidInputError("the line for the shell (--shell) is empty")
    for option, path in (("--cwd", request.cwd), ("--stdin", request.stdin)):
        if path == "":
            raise InvalidInputError(f"{option} is empty; leave it out, or give a path")
    if request.name is not None:
        check_name("name", request.name)
    if request.key is not None:
        check_name("key", request.key)
    if request.slug is not None:
        check_slug(request.slug)
    for label, value in request.labels.items():
        if not LABEL.fullmatch(label):
            raise InvalidInputError(f"label {label!r} may have letters, digits and . _ / -")
        check_name(f"label {label}", value or " ")
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


def check_name(what: str, text: str) -> None:
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
    for name, given in (("timeout", request.timeout), ("idle-timeout", request.idle_timeout)):
        if given is not None and not 0 < given <= LONGEST:
            words = "must be longer than 0 s and shorter than a hundred years"
            raise InvalidInputError(f"{name} {words}")
    if request.at is not None and not 0 <= request.at <= LAST_INSTANT:
        raise InvalidInputError("at is not between the years 1970 and 9999")
    if request.delay and request.at is not None:
        raise InvalidInputError("give --delay or --at, not both")
    for code in request.skip_exit_codes:
        if not 1 <= code <= 255:
            raise InvalidInputError(f"--skip-exit-code {code} is not between 1 and 255")


def _hint(words: str | None) -> str:
    return f" ({words})" if words else ""


def _check_files(
    request: Request,
    environ: Mapping[str, str],
    cwd: str,
    stdin: str | None,
    found: dict[str, bool],
    hints: tuple[str, str],
) -> None:
    """`hints` end what is said of a program, and of a folder or file."""
    of_program, of_path = hints
    if cwd not in found:
        found[cwd] = os.path.isdir(cwd)
    if not found[cwd]:
        raise InvalidInputError(f"there is no directory {cwd}{of_path}")
    if stdin is not None and (os.path.isdir(stdin) or not os.access(stdin, os.R_OK)):
        raise InvalidInputError(f"--stdin {stdin} cannot be read{of_path}")
    path = (request.env if "PATH" in request.env else environ).get("PATH", os.defpath)
    for argv in (request.argv, request.on_finish):
        if not argv:
            continue
        sought = "\0".join((argv[0], cwd, path))
        if sought not in found:
            found[sought] = find_program(argv, cwd, path)
        if not found[sought]:
            raise InvalidInputError(
                f"program {argv[0]!r} was not found, or may not be executed{of_program}"
                + _meant_line(argv)
            )


def _meant_line(argv: Sequence[str]) -> str:
    """For one word with spaces, which is most often a line for a shell."""
    line = argv[0].strip()
    if len(argv) != 1 or len(line.split()) < 2:
        return ""
    from shlex import quote

    # As separate words it would be for the shell that one types in, with all of these.
    split = "" if re.search(r"[|&;<>()$`*?\[\]{}~#'\"\\\n]", line) else f", or -- {line}"
    return f"; for a line of several words write --shell {quote(line)}{split}"


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
