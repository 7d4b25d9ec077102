"""Do what a key asked for, by the verb of the client with the same name.

A verb that refuses has changed nothing; its words are the message. A person decides by the name
that `headway approve` would use.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from headway.base.errors import HeadwayError
from headway.cli.panes.model import (
    Action,
    Approve,
    CancelNow,
    Leave,
    PreviewOfRetry,
    Reject,
    RetryNow,
    ScreenQuestion,
    SendAgain,
    SetPaused,
    retrying,
)
from headway.cli.render import counted
from headway.cli.scope import Scope
from headway.cli.step_wait import listed
from headway.client import Client
from headway.core.model import shown
from headway.workflows.runs import run_id

_OF_A_RUN = "wf-"


class ActionOutcome(NamedTuple):
    """What to tell, or what to ask next."""

    message: str
    question: ScreenQuestion | None = None


def do(scope: Scope, action: Action) -> ActionOutcome:
    """Never raises what a verb refuses with: that is shown."""
    connect: Callable[[], Client] = scope.connect_to_change
    if isinstance(action, PreviewOfRetry):
        connect = scope.connect
    elif isinstance(action, Approve | Reject):
        connect = scope.connect_as_person
    try:
        with connect() as client:
            return _do(client, action)
    except HeadwayError as error:
        return ActionOutcome(f"refused: {error}")


def _do(client: Client, action: Action) -> ActionOutcome:
    match action:
        case Approve(job, revision):
            client.jobs.approve(job, revision=revision)
            return ActionOutcome(f"approved {job} as {client.context.actor}")
        case Reject(job, revision):
            rejected = client.jobs.reject(job, revision=revision)
            return ActionOutcome(f"{job} is {rejected.reason}")
        case PreviewOfRetry(about):
            return ActionOutcome("", _preview(client, about))
        case RetryNow(about):
            return ActionOutcome(_retry(client, about))
        case CancelNow(about):
            return ActionOutcome(_cancel(client, about))
        case SendAgain(endpoint, deliveries):
            return ActionOutcome(f"{endpoint}: {_send_again(client, deliveries)}")
        case SetPaused(True):
            paused = client.pause(None)
            return ActionOutcome(f"paused by {paused.actor}; what runs goes on")
        case SetPaused(False):
            return ActionOutcome("resumed" if client.resume() else "it was not paused")
        case Leave():
            return ActionOutcome("")
    raise AssertionError(action)


def _preview(client: Client, about: str) -> ScreenQuestion:
    if about.startswith(_OF_A_RUN):
        number = run_id(about)
        planned = client.workflows.retry(number, dry_run=True)
        name = client.workflows.run(number)["workflow"]
        return retrying(about, name, [*planned.nodes], _notes(planned.document([])))
    rewound = client.jobs.preview_retry(about)
    again = [f"{shown(each)}" for each in rewound.members]
    document = rewound.document([])
    return retrying(about, client.jobs.get(about).name, again, _notes(document))


def _notes(document: dict[str, object]) -> list[str]:
    """A retry does not touch the nodes before it, so what blocked it blocks it again."""
    before = document.get("blocked_by")
    return [f"It is blocked again, by {before}: retry that one instead."] if before else []


def _retry(client: Client, about: str) -> str:
    if about.startswith(_OF_A_RUN):
        again = list(client.workflows.retry(run_id(about)).nodes)
    else:
        again = [shown(each) for each in client.jobs.retry(about).reset]
    return f"queued again: {listed(again)}"


def _send_again(client: Client, deliveries: Sequence[str]) -> str:
    """Each by itself: one that somebody else has sent again is pending, and stays so."""
    sent, refused = 0, ""
    for each in deliveries:
        try:
            client.webhooks.replay(each)
            sent += 1
        except HeadwayError as error:
            refused = f"; refused: {error}"
    return f"{counted(sent, 'request')} sent again{refused}"


def _cancel(client: Client, about: str) -> str:
    if about.startswith(_OF_A_RUN):
        client.workflows.stop(run_id(about))
        return f"{about} is stopped"
    done = client.cancel([about])
    said = [
        f"{shown(each.job_id)} {'is told to end' if each.was_running else 'is cancelled'}"
        for each in done
    ]
    return "; ".join(said)
