"""Values that a shell would run: references in the script of `sh -c` in a node's command. Pure.

The author of a workflow may put values of the author's own there. What somebody else wrote must
never stand there, as the title of a work item.
"""

from collections.abc import Collection, Iterable
from typing import Any

from headway.base.shells import scripts
from headway.workflows.model import MISSING, CompiledNode, Workflow, WorkflowNode
from headway.workflows.references import Kind, Reference, references_in


def run_by_shell(
    workflow: Workflow, names: Collection[str], compiled: Iterable[CompiledNode] = ()
) -> str | None:
    """Why the values of these parameters cannot be used: a shell would run one. The search is
    repeated in the commands of `compiled` nodes, because a value may be the shell."""
    names = _with_imports(workflow, names)
    filled: dict[str, list[CompiledNode]] = {}
    for each in compiled:
        filled.setdefault(each.node, []).append(each)
    for node in workflow.nodes.values():
        commands = [node.argv, *(each.argv for each in filled.get(node.id, ()))]
        places = {place: shell for words in commands for place, shell in _scripts(words).items()}
        for place, shell in sorted(places.items()):
            for reference in references_in(node.argv[place]):
                if _has(node, reference, names):
                    return (
                        f"node '{node.id}': ${{{{ {reference.text} }}}} stands in the script of "
                        f"{shell} -c, which would run its value as code; put it into env"
                    )
    return None


def _with_imports(workflow: Workflow, names: Collection[str]) -> frozenset[str]:
    """With the parameters of imports that have the values of these."""
    found = {*names}
    for name, param in workflow.params.items():  # its sources come before it
        if param.given is not MISSING and _refers_to(param.given, found):
            found.add(name)
    return frozenset(found)


def _scripts(words: Iterable[Any]) -> dict[int, str]:
    return scripts([str(word) for word in words])


def _has(node: WorkflowNode, reference: Reference, names: Collection[str]) -> bool:
    """Whether the value of one of these parameters is, or may be, in what it stands for."""
    match reference.kind:
        case Kind.PARAMS:
            return reference.name in names
        case Kind.ARGS:
            return _refers_to(node.args, names)
        case Kind.ITEM:
            return node.each is not None and _refers_to(node.each.elements, names)
        case _:
            return False


def _refers_to(value: Any, names: Collection[str]) -> bool:
    return any(each.kind == Kind.PARAMS and each.name in names for each in references_in(value))
