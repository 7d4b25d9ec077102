"""Targets as people manage them: add, show, remove. Jobs that were slung before keep their
recipe."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from headway.base.errors import ConflictError, InvalidInputError, NotFoundError
from headway.base.shells import as_code
from headway.base.units import show_duration, show_instant
from headway.core.targets import Target, filled, placeholders, run_as_code
from headway.jobs.context import Context
from headway.jobs.quotas import check_word
from headway.jobs.request import Request
from headway.jobs.specification import parse_lock, specify
from headway.store.new_jobs import Event
from headway.store.transaction import ReadTx, WriteTx

LONGEST_PREFIX = 64
REMEDY = "a target can only be made of what is there"


def add_target(context: Context, target: Target, *, replace: bool = False) -> Target:
    """Store a target; one of that name is only replaced if that is asked for."""
    here = context.folder
    if target.workflow is not None:
        from headway.workflows.prepared import kept_name

        target = target._replace(workflow=kept_name(target.workflow, here))
    if target.cwd is not None:
        target = target._replace(cwd=os.path.abspath(os.path.join(here, target.cwd)))
    _check(context, target)
    if target.helper:
        target = target._replace(helper=(_where(context, target), *target.helper[1:]))

    def transaction(tx: WriteTx) -> Target:
        made = target._replace(created_at=tx.now(), created_by=context.actor)
        known = tx.workitems.targets()
        if made.name in known:
            if not replace:
                raise ConflictError(
                    f"there is a target {made.name}; --replace gives it another recipe"
                )
            tx.workitems.remove_target(made.name)
        for other in known.values():
            if made.prefix is not None and other.prefix == made.prefix and other.name != made.name:
                raise ConflictError(f"prefix {made.prefix} belongs to target {other.name}")
        tx.workitems.add_target(made)
        tx.events.add([Event("target_added", None, {"target": made.name})], actor=context.actor)
        return made

    return context.store.transact(transaction)


def remove_target(context: Context, name: str) -> None:
    def transaction(tx: WriteTx) -> None:
        require_target(tx, name)
        tx.workitems.remove_target(name)
        tx.events.add([Event("target_removed", None, {"target": name})], actor=context.actor)

    context.store.transact(transaction)


def targets(context: Context) -> list[Target]:
    with context.store.read() as tx:
        return list(tx.workitems.targets().values())


def find_target(context: Context, name: str) -> Target:
    with context.store.read() as tx:
        return require_target(tx, name)


def require_target(tx: ReadTx, name: str) -> Target:
    known = tx.workitems.targets()
    if name not in known:
        known_ones = f"there are {', '.join(sorted(known)[:10])}" if known else "there is none yet"
        raise NotFoundError(
            f"there is no target {name!r}; {known_ones}; headway targets add makes one"
        )
    return known[name]


def request_for(context: Context, target: Target, argv: tuple[str, ...], **more: Any) -> Request:
    """The request that a target's recipe comes to; it runs in the project unless it says where."""
    return Request(
        argv=argv,
        cwd=target.cwd or os.path.dirname(context.home.path),
        resources=target.resources,
        locks=tuple(parse_lock(each) for each in target.locks),
        timeout=target.timeout,
        retries=target.retries,
        target=target.name,
        **{"env": target.env, **more},
    )


def refuse_code(words: Sequence[str], values: Mapping[str, str]) -> None:
    """Refuse a recipe in which a shell would run what somebody else wrote."""
    exposed = run_as_code(words, values)
    if exposed is not None:
        raise InvalidInputError(as_code(*exposed))


def target_document(target: Target) -> dict[str, Any]:
    return {
        "name": target.name,
        "prefix": target.prefix,
        "command": list(target.argv),
        "workflow": target.workflow,
        "params": dict(target.params),
        "placeholders": sorted(placeholders((*target.argv, *target.params.values()))),
        "cwd": target.cwd,
        "env": sorted(target.env),
        "resources": list(target.resources),
        "locks": list(target.locks),
        "timeout": show_duration(target.timeout) if target.timeout is not None else None,
        "retries": target.retries,
        "helper": list(target.helper) or None,
        "created_at": show_instant(target.created_at),
        "created_by": target.created_by,
    }


def _check(context: Context, target: Target) -> None:
    """As the recipe of a job would be; what only a subject decides is checked when it is slung."""
    check_word("target", target.name)
    prefix = target.prefix
    if prefix is not None and not _is_prefix(prefix):
        raise InvalidInputError(
            f"prefix {prefix!r} must be the beginning of ids, as gt- is of gt-abc"
        )
    if target.workflow is not None:
        _check_workflow(context, target)
        return
    if not target.argv:
        raise InvalidInputError("what is to run? Give a command after --, as in -- make {subject}")
    if target.params:
        raise InvalidInputError("--set is about a workflow; name it with --workflow")
    stand_ins: Mapping[str, str] = dict.fromkeys(placeholders(target.argv), "x")
    refuse_code(target.argv, stand_ins)
    request = request_for(context, target, filled(target.argv, stand_ins))
    request = request._replace(check=not placeholders(target.argv[:1]))
    requests = [request]
    if target.helper:
        requests.append(request._replace(argv=target.helper, check=True))
    for each in requests:
        specify(each, environ=context.environ, working_directory=context.folder, remedy=REMEDY)


# What a workflow says of its jobs itself, as options have it.
_OF_JOBS = ("cwd", "env", "resources", "locks", "timeout", "retries")


def _check_workflow(context: Context, target: Target) -> None:
    """The file must be right, and what is given must fit it. Values with placeholders, and those
    that nobody gives here, are checked when something is slung."""
    from headway.workflows.prepared import check_run

    wrong = ["give --workflow or a command, not both"] if target.argv else []
    wrong += [
        f"{word}: the workflow says it itself; take it out"
        for word in _OF_JOBS
        if getattr(target, word)
    ]
    if wrong:
        raise InvalidInputError("; ".join(wrong))
    later = [name for name, value in target.params.items() if placeholders([value])]
    fixed = {name: value for name, value in target.params.items() if name not in later}
    given = dict(zip(fixed, filled(fixed.values(), {}), strict=True))
    with context.store.read() as tx:
        name = target.workflow or ""
        check_run(tx, context.home, context.config, name, given, later)
    if target.helper:
        helper = Request(argv=target.helper, cwd=os.path.dirname(context.home.path))
        specify(helper, environ=context.environ, working_directory=context.folder, remedy=REMEDY)


def _where(context: Context, target: Target) -> str:
    """The helper's program by its whole path: a worker has another environment than we."""
    import shutil

    program, folder = target.helper[0], target.cwd or os.path.dirname(context.home.path)
    if "/" in program:
        return os.path.abspath(os.path.join(folder, program))
    return shutil.which(program, path=context.environ.get("PATH")) or program


def _is_prefix(text: str) -> bool:
    return (
        0 < len(text) <= LONGEST_PREFIX
        and text[0].isalnum()
        and text.isascii()
        and text.isprintable()
        and " " not in text
    )
