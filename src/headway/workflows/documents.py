"""What programs get of a workflow: its document, its manifest, what an audit finds. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from headway.core.model import Lock, LockMode
from headway.core.routes import ANY, EVERY_OUTCOME, NodeOutcome
from headway.workflows.compiler import (
    as_json,
    count_instances,
    instance_root,
    needs_without_producer,
    notes_of,
    policy_hash,
    roots_of,
    sinks_of,
)
from headway.workflows.locks import default_locks
from headway.workflows.matrices import NUMBER
from headway.workflows.mistakes import Mistake, unseen_mistakes
from headway.workflows.model import (
    MISSING,
    CompiledNode,
    Manifest,
    Param,
    Routes,
    Workflow,
    WorkflowNode,
)
from headway.workflows.references import Kind, Reference, written

Document = dict[str, Any]
RUN, REPOSITORY = "wf-N", "REPO"  # stand for what only a run knows


def mistake_document(mistake: Mistake) -> Document:
    line, column = mistake.place or (None, None)
    return {"text": mistake.words, "line": line, "column": column}


def workflow_document(workflow: Workflow, routes: Routes) -> Document:
    """All that the file says, with its edges as they are counted."""
    return {
        "name": workflow.name,
        "path": workflow.file,
        "version": workflow.version,
        "description": workflow.description,
        "policy_snapshot_hash": policy_hash(workflow),
        "inputs": list(workflow.inputs),
        "params": [_param(each) for each in workflow.params.values() if each.given is MISSING],
        "artifacts": {name: dict(each._asdict()) for name, each in workflow.artifacts.items()},
        "budget": dict(workflow.budget),
        "timeout": workflow.timeout,
        "finally": list(workflow.at_the_end),
        "nodes": [_node(each, routes) for each in workflow.nodes.values()],
        "sinks": sinks_of(workflow, routes),
        "notes": list(notes_of(workflow, routes)),
    }


def manifest_document(manifest: Manifest) -> Document:
    """All of each node, as it is compiled."""
    return {
        "workflow": manifest.workflow.name,
        "version": manifest.workflow.version,
        "policy_snapshot_hash": manifest.policy_hash,
        "params": dict(manifest.params),
        "nodes": [as_json(compiled_document(each)) for each in manifest.nodes],
        "notes": list(manifest.notes),
    }


def compiled_document(node: CompiledNode) -> Document:
    """All of a node as it is compiled, in the words of its file. It may have tuples."""
    each = node.each
    found = None if each is None else {"in": each.elements, "max": each.most}
    return {**node._asdict(), "each": found}


def _param(param: Param) -> Document:
    required = param.default is MISSING
    return {
        "name": param.name,
        "type": param.type,
        "required": required,
        "default": None if required else param.default,
        "choices": list(param.choices),
        "pattern": param.pattern,
        "help": param.help,
    }


def _node(node: WorkflowNode, routes: Routes) -> Document:
    rule = routes.rules[node.id]
    loop = node.loop
    return {
        "id": node.id,
        "uses": node.label.name,
        "executor_class": node.label.executor,
        "executor_operation": None if node.label.is_control else node.label.operation,
        "control_policy": node.label.operation if node.label.is_control else None,
        "instances": None if node.each else count_instances(node),
        "join": rule.join.value,
        "edges": [
            {
                "node": edge.source,
                "on": outcome_words(edge.accepts),
                "required": edge.required,
            }
            for edge in rule.edges
        ],
        "loop": loop
        and {"to": loop.to, "on": outcome_words(loop.on), "times": loop.times, "delay": loop.delay},
        "tolerate": outcome_words(node.tolerates),
        "when": list(node.when),
        "needs": list(map(_artifact, node.needs)),
        "produces": {word: list(map(_artifact, texts)) for word, texts in node.produces.items()},
        "outputs": list(node.outputs),
        "approval": node.approval,
    }


def outcome_words(outcomes: frozenset[NodeOutcome]) -> list[str]:
    if outcomes == EVERY_OUTCOME:
        return [ANY]
    return [each.value for each in NodeOutcome if each in outcomes]


# -- the audit ---------------------------------------------------------------------------------


def audit_document(workflow: Workflow, routes: Routes) -> Document:
    """What its nodes make and need, where they work, what they lock, and how far loops go back."""
    roots = {
        name: instance_root(workflow, root, _references(workflow.nodes[name].matrix))
        for name, root in roots_of(workflow, routes, unseen_mistakes()).items()
    }
    return {
        "name": workflow.name,
        "path": workflow.file,
        "produces": [
            {"node": node.id, "outcome": word, "artifact": _artifact(text)}
            for node in workflow.nodes.values()
            for word, texts in node.produces.items()
            for text in texts
        ],
        "untethered": [
            {"node": node, "artifact": text} for node, text in needs_without_producer(workflow)
        ],
        "loops": [
            {
                "head": head,
                "body": [name for name in workflow.nodes if name in body],
                "sources": [
                    {"node": each.source, "on": outcome_words(each.on), "times": each.times}
                    for each in routes.loops
                    if each.head == head
                ],
            }
            for head, body in routes.bodies.items()
        ],
        "locks": [
            {"node": node.id, "locks": locks, "declared": "locks" in node.job}
            for node, locks in _locks(workflow, roots)
        ],
        "roots": [{"node": name, "root": roots.get(name)} for name in workflow.nodes],
        "sinks": sinks_of(workflow, routes),
        "notes": list(notes_of(workflow, routes)),
    }


def _artifact(text: str) -> str:
    """As people read it: each instance of a node with several has one of its own."""
    return text.replace(NUMBER, "N")


def _references(matrix: Mapping[str, Any]) -> dict[str, str]:
    """What stands for the values of an instance."""
    return {key: written(Reference(Kind.MATRIX, key)) for key in matrix}


def _locks(
    workflow: Workflow, roots: Mapping[str, str | None]
) -> Iterator[tuple[WorkflowNode, list[str]]]:
    for node in workflow.nodes.values():
        if "locks" in node.job:
            yield node, list(node.job["locks"])
            continue
        found = default_locks(
            node.label,
            node.args,
            root=roots.get(node.id),
            run=RUN,
            repository=REPOSITORY,
        )
        yield node, [_shown(each) for each in found]


def _shown(lock: Lock) -> str:
    return f"{lock.key}:shared" if lock.mode is LockMode.SHARED else lock.key
