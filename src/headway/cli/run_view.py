"""How people see a run of a workflow: what to do next, and each node with its outcome and time."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from headway.base.text import plain
from headway.base.units import show_duration
from headway.cli.render import brief, emit, fields, instant, moment, paint, table
from headway.client import Client
from headway.core.conditions import as_text
from headway.core.routes import NodeOutcome, RunState
from headway.core.states import TERMINAL, Status
from headway.core.wait_words import more_budget
from headway.jobs.references import parse_job_id
from headway.workflows.operations.model import retry_of_root
from headway.workflows.runs import BAD, run_id
from headway.workflows.why import retry_before

COLOURS = {
    "succeeded": "green",
    "failed": "red",
    "blocked": "red",
    "running": "bold",
    **dict.fromkeys(("cancelled", "skipped", "unreached"), "dim"),
}
MOST_BAD = 5  # instances that did not go well, each on a line of its own


def _spent(document: Mapping[str, Any]) -> str | None:
    """What the agents of a run used, beside what they may use."""
    spent, budget = document["spent"], document["budget"] or {}
    if not (spent["usd"] or spent["tokens"] or budget):
        return None
    usd = f"${spent['usd']:.2f}" + (f" of ${budget['usd']:.2f}" if budget.get("usd") else "")
    limit = f" of {budget['tokens']:,}" if budget.get("tokens") else ""
    return f"{usd}, {spent['tokens']:,}{limit} tokens"


def how_run_ended(document: Mapping[str, Any], now: int) -> str:
    """`wf-7 failed after 2m: ci (job-31) failed: exit code 1`"""
    why = f": {document['reason']}" if document["reason"] else ""
    begun, ended = instant(document["created_at"]), instant(document["ended_at"])
    time = took((ended or now) - (begun or now))
    after = "in" if document["state"] == RunState.SUCCEEDED else "after"
    return f"{document['id']} {document['state']} {after} {time}{why}"


def show_run(client: Client, run: str, *, as_json: bool) -> None:
    """A run and its nodes; the first cause of a failure stands at the top."""
    number = run_id(run)
    document = client.workflows.run(number)
    if as_json:
        emit({"run": {**document, "manifest": client.workflows.manifest(number)}})
        return
    now = client.now()
    print(paint(f"{document['id']}  {plain(document['workflow'])}", "bold"))
    params = ", ".join(f"{name}={as_text(value)}" for name, value in document["params"].items())
    entries = [
        ("state", _state(document, now)),
        ("cause" if document["ended_at"] else "trouble", document["reason"]),
        ("next", next_step(client, document)),
        ("params", params or None),
        ("subject", document["subject"]),
        ("target", document["target"]),
        ("spent", _spent(document)),
        ("started", f"{moment(document['created_at'], now)} by {document['created_by']}"),
        ("deadline", moment(document["deadline"], now) if not document["ended_at"] else None),
        ("ended", moment(document["ended_at"], now)),
    ]
    print("\n".join(fields(entries)))
    lines = [_line(client, each, now) for each in folded(document["nodes"])]
    passes = any(each.passes > 1 for each in lines)
    header = ["Node", "Job", "State", *(["Pass"] if passes else []), "Time", "Wait/Result"]
    rows = [
        [
            each.name,
            each.job,
            each.state,
            *([str(each.passes) if each.passes > 1 else ""] if passes else []),
            each.time,
            each.said,
        ]
        for each in lines
    ]
    last = len(header) - 1
    colours = [COLOURS.get(each.state) for each in lines]
    for line in table(
        header,
        rows,
        flexible=(0, last),
        favoured=last,
        reluctant=(2,),
        colours=colours,
        coloured=2,
    ):
        print(line)


class _Line(NamedTuple):
    """A line about a node, or about all of its instances."""

    name: str
    job: str
    state: str
    passes: int
    time: str
    said: str


def _state(document: Mapping[str, Any], now: int) -> str:
    begun = instant(document["created_at"]) or now
    if document["ended_at"] is None:
        return f"{document['state']}, {progress(document)}"
    return f"{document['state']} after {took((instant(document['ended_at']) or now) - begun)}"


def next_step(client: Client, document: Mapping[str, Any]) -> str | None:
    """The command that lets a run go on: of one that did not go well, or that asks a person."""
    asks = [each for each in document["nodes"] if each["state"] == Status.WAITING_ON_APPROVAL]
    if document["ended_at"] is None:
        return f"headway jobs approve {asks[0]['job']}, or reject it" if asks else None
    if document["state"] == RunState.SUCCEEDED or not any(map(_to_repeat, document["nodes"])):
        return None
    bad = [each for each in document["nodes"] if each["outcome"] in ("failed", "blocked")]
    again = f"headway workflows retry {document['id']}"
    run = run_id(document["id"])
    for each in bad:
        more = more_budget(run, each["reason"]) or retry_of_root(each["reason"])
        if more is None and each["state"] == Status.BLOCKED_BY_DEPENDENCY:
            more = retry_before(client.context, parse_job_id(each["job"]))
        if more is not None:
            return more
    alone = len({each["id"] for each in bad}) == 1 and bad[0]["id"] == bad[0]["node"]
    if alone and document["stopped_by"] is None and bad[0]["node"] in document["reason"]:
        return f"{again} --from {bad[0]['node']}"
    return again


def _to_repeat(node: Mapping[str, Any]) -> bool:
    return node["outcome"] in BAD


class Folded(NamedTuple):
    """A node, or all instances of one."""

    node: Mapping[str, Any]
    instances: Sequence[Mapping[str, Any]] = ()


def folded(nodes: Sequence[Mapping[str, Any]]) -> Iterator[Folded]:
    """A node with several instances is one line with counts; those that did not go well follow."""
    by_node: dict[str, list[Mapping[str, Any]]] = {}
    for each in nodes:
        by_node.setdefault(each["node"], []).append(each)
    for inside in by_node.values():
        made = [each for each in inside if not each["fan"]] or inside
        if len(inside) == 1:
            yield Folded(inside[0])
            continue
        yield Folded(inside[0], made)
        bad = [each for each in made if each["outcome"] in ("failed", "blocked")]
        for each in bad[:MOST_BAD]:
            yield Folded({**each, "id": f"  {each['id']}"})


# What several instances come to together: the first of these that one of them is.
_FIRST = (
    *(Status.RUNNING, NodeOutcome.FAILED, NodeOutcome.BLOCKED, Status.WAITING_ON_APPROVAL),
    *(Status.QUEUED, Status.WAITING_ON_LOCKS, Status.WAITING_ON_DEPS, NodeOutcome.CANCELLED),
    *(NodeOutcome.UNREACHED, NodeOutcome.SUCCEEDED, NodeOutcome.SKIPPED),
)


def _stands(node: Mapping[str, Any]) -> str:
    """Its outcome, or its state while it has none."""
    return str(node["outcome"] or node["state"])


def _line(client: Client, folded: Folded, now: int) -> _Line:
    node, inside = folded
    if not inside:
        time = _time([node], now)
        return _Line(
            node["id"], node["job"], _stands(node), node["pass"], time, _said(client, node)
        )
    states = Counter(_stands(each) for each in inside)
    return _Line(
        f"{node['node']} x{len(inside)}",
        f"{inside[0]['job']} ..." if len(inside) > 1 else inside[0]["job"],
        next(each.value for each in _FIRST if each in states),
        max(each["pass"] for each in inside),
        _time(inside, now),
        ", ".join(f"{states[each]} {each.value}" for each in _FIRST if each in states),
    )


def _time(nodes: Sequence[Mapping[str, Any]], now: int) -> str:
    """How long it runs or ran; of several from the first start to the last end."""
    starts = [at for each in nodes if (at := instant(each["started_at"])) is not None]
    if not starts:
        return ""
    ends = [instant(each["finished_at"]) or now for each in nodes if each["started_at"]]
    return took(max(0, max(ends) - min(starts)))


def took(time: int) -> str:
    """A duration as people read it: whole seconds from ten on, tenths below."""
    step = next(each for each in (1_000_000, 100_000, 1_000) if time >= 10 * each or each == 1_000)
    return show_duration(time - time % step)


def _said(client: Client, node: Mapping[str, Any]) -> str:
    """Why it waits, the last line of what runs, or how it ended."""
    if node["state"] == Status.RUNNING:
        from headway.cli.jobs.last_line import last_line

        found = last_line(client.home.job(int(node["job"].removeprefix("job-"))))
        return found.text if found else ""
    if node["wait"] and node["outcome"] is None:
        return brief(node["wait"]["detail"])
    return brief(node["reason"] or "").removeprefix(f"{node['outcome']}: ")


def progress(document: Mapping[str, Any]) -> str:
    """`3 of 10 ended, 2 running`; what went wrong is told, too."""
    counts = document["counts"]
    ended = sum(count for state, count in counts.items() if state in TERMINAL)
    words = [f"{ended} of {sum(counts.values())} ended"]
    for state in (Status.RUNNING, Status.WAITING_ON_APPROVAL, Status.FAILED):
        if state in counts:
            words.append(f"{counts[state]} {state.value.replace('_', ' ')}")
    return ", ".join(words)
