"""Other workflows as parts of one: the nodes of an import `X` become `X.node`. Pure, but for what
`load` reads.

This comes before the checks, so that they see one workflow. A parameter of the imported file
becomes `X.param`. It has the value that `imports.X.params` gives. If that refers to parameters of
the importing file, it is bound to them; else it may be set from outside. Timeouts, budgets and
inputs are of the file that is started; those of an imported one do not count.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from headway.base.errors import InvalidInputError
from headway.core.routes import OUTCOME_WORDS, NodeOutcome
from headway.workflows.checks import routes_of
from headway.workflows.labels import PROMPT_TEXT
from headway.workflows.mistakes import Mistakes, WorkflowError, short
from headway.workflows.model import (
    MISSING,
    NO_TREE,
    After,
    EachKey,
    ImportKey,
    Param,
    Workflow,
    WorkflowFile,
    WorkflowNode,
)
from headway.workflows.reader import MOST_AT_THE_END, Draft, misfit_of
from headway.workflows.references import (
    Kind,
    MalformedError,
    Reference,
    fill,
    references_in,
    written,
)

MOST_IMPORTS = 100  # also those of what is imported
Load = Callable[[str], WorkflowFile | None]


def with_imports(workflow: Workflow, problems: Mistakes, load: Load | None) -> Workflow:
    """The workflow with the nodes of all that it imports; what is wrong is added to `problems`."""
    return _Importer(load).flattened(workflow, problems, (workflow,))


class _Importer:
    def __init__(self, load: Load | None) -> None:
        self._load = load
        self._count = 0

    def flattened(
        self, workflow: Workflow, problems: Mistakes, chain: tuple[Workflow, ...]
    ) -> Workflow:
        """`chain` are the workflows that led here, and this one."""
        parts: dict[str, Workflow] = {}
        for each in workflow.imports.values():
            if each.name in workflow.nodes:
                _say(problems, each, "a node has this name, too")
            part = self._imported(each, problems, chain)
            if part is not None:
                parts[each.name] = _prefixed(part, each.name)
        for each in workflow.imports.values():
            if each.name in parts:
                part = _bound(each, parts[each.name], workflow, problems)
                parts[each.name] = _behind(each, part, parts, workflow, problems)
        joined = _joined(workflow, parts)
        if len(joined.at_the_end) > MOST_AT_THE_END:
            words = f"finally names {len(joined.at_the_end):,} nodes, more than {MOST_AT_THE_END}"
            problems.add(words, ("finally",))
            return joined._replace(at_the_end=())
        return joined

    def _imported(
        self, each: ImportKey, problems: Mistakes, chain: tuple[Workflow, ...]
    ) -> Workflow | None:
        self._count += 1
        if self._count > MOST_IMPORTS:
            if self._count == MOST_IMPORTS + 1:
                _say(problems, each, f"there are more than {MOST_IMPORTS} imports")
            return None
        try:
            file = self._load(each.workflow) if self._load is not None else None
            if file is None:
                _say(problems, each, f"there is no workflow '{each.workflow}'")
                return None
            files = [other.file for other in chain]
            if file.path in files:
                names = [other.name for other in chain[files.index(file.path) :]]
                ring = " -> ".join([*names, file.name])
                _say(problems, each, f"a workflow imports itself: {ring}")
                return None
            draft = Draft(file.text, name=file.name, file=file.path)
        except WorkflowError as error:
            for mistake in error.mistakes:
                _say(problems, each, f"{error.file}: {mistake.placed}")
            return None
        except InvalidInputError as error:
            _say(problems, each, str(error))
            return None
        part = self.flattened(draft.workflow, draft.problems, (*chain, draft.workflow))
        for mistake in draft.problems.mistakes:
            _say(problems, each, f"{file.path}: {mistake.placed}")
        return None if draft.problems.count else part


def _say(problems: Mistakes, each: ImportKey, words: str) -> None:
    problems.add(f"imports {each.name}: {words}", ("imports", each.name))


# -- names -------------------------------------------------------------------------------------


def _prefixed(workflow: Workflow, name: str) -> Workflow:
    """All names with that of the import before them."""
    lead = f"{name}."
    nodes = (_prefixed_node(each, lead) for each in workflow.nodes.values())
    params = (
        each._replace(name=lead + each.name, given=_renamed(each.given, lead))
        for each in workflow.params.values()
    )
    return workflow._replace(
        nodes={each.id: each for each in nodes},
        params={each.name: each for each in params},
        at_the_end=tuple(lead + each for each in workflow.at_the_end),
    )


def _prefixed_node(node: WorkflowNode, lead: str) -> WorkflowNode:
    produces = {
        word: tuple(_artifact(text, lead) for text in texts)
        for word, texts in node.produces.items()
    }
    return node._replace(
        id=lead + node.id,
        args=_renamed(node.args, lead),
        argv=tuple(_renamed(each, lead) for each in node.argv),
        after=tuple(each._replace(node=lead + each.node) for each in node.after),
        on={word: tuple(lead + each for each in names) for word, names in node.on.items()},
        loop=node.loop and node.loop._replace(to=lead + node.loop.to),
        when=tuple(_renamed(each, lead) for each in node.when),
        each=node.each and EachKey(_renamed(node.each.elements, lead), node.each.most),
        needs=tuple(_artifact(text, lead) for text in node.needs),
        produces=produces,
        root=node.root if node.root in (None, NO_TREE) else f"{lead}{node.root}",
        job={key: _renamed(value, lead) for key, value in node.job.items()},
    )


def _artifact(text: str, lead: str) -> str:
    """The prompts of two imports of one file are two; all other artifacts keep their names."""
    if text.startswith(PROMPT_TEXT):
        text = PROMPT_TEXT + lead + text.removeprefix(PROMPT_TEXT)
    return str(_renamed(text, lead))


def _renamed(value: Any, lead: str) -> Any:
    """With references to nodes and parameters as they are called now."""

    def look_up(each: Reference) -> str:
        if each.kind in (Kind.PARAMS, Kind.NODES, Kind.LAST):
            return written(each._replace(name=lead + each.name))
        return written(each)

    try:
        return value if value is MISSING else fill(value, look_up)
    except MalformedError:
        return value  # the checks say so


# -- parameters and edges ----------------------------------------------------------------------


def _bound(each: ImportKey, part: Workflow, workflow: Workflow, problems: Mistakes) -> Workflow:
    """With the values that the importing file gives."""
    lead = f"{each.name}."
    own = {name.removeprefix(lead) for name in part.params}
    params = dict(part.params)
    for name, value in each.params.items():
        if name not in own:
            there = ", ".join(sorted(own)) or "none"
            _say(problems, each, f"there is no parameter '{name}'; there are {there}")
            continue
        param = params[lead + name]
        wrong = [*_wrong_references(value, workflow)]
        if not wrong and not [*references_in(value)]:
            misfit = misfit_of(param, value)
            wrong = [f"parameter '{name}' is {short(value)}; {misfit}"] if misfit else []
            params[lead + name] = param._replace(default=value)
        else:
            params[lead + name] = param._replace(given=value)
        for words in wrong:
            _say(problems, each, words)
    return part._replace(params=params)


def _wrong_references(value: Any, workflow: Workflow) -> Iterator[str]:
    """A run must know its parameters when it starts, so they come from parameters alone."""
    try:
        for each in references_in(value):
            if each.kind != Kind.PARAMS:
                yield f"params: {each.text} is not known when it is queued"
            elif each.name not in workflow.params:
                yield f"{each.text}: there is no parameter '{each.name}'"
    except MalformedError as error:
        yield error.reason


def _behind(
    each: ImportKey,
    part: Workflow,
    parts: Mapping[str, Workflow],
    workflow: Workflow,
    problems: Mistakes,
) -> Workflow:
    """With what it is `after`: the nodes that nothing leads to wait for the success of these nodes,
    or for these imports as a whole, as `--after wf-7` waits for a run: what is skipped is good."""
    sources: dict[str, frozenset[NodeOutcome]] = {}
    for name in each.after:
        if name in parts:
            sinks = routes_of(parts[name]).sinks()
            sources |= dict.fromkeys(sinks, OUTCOME_WORDS["succeeded"] | OUTCOME_WORDS["skipped"])
        elif name in workflow.nodes or _is_imported(name, parts):
            sources[name] = OUTCOME_WORDS["succeeded"]
        elif name not in workflow.imports:
            _say(problems, each, f"after '{name}' names no node")
    waits = tuple(After(name, accepts) for name, accepts in sources.items())
    rules = routes_of(part).rules
    nodes = {
        name: node._replace(after=(*node.after, *waits))
        if not rules[name].edges and not rules[name].at_the_end
        else node
        for name, node in part.nodes.items()
    }
    return part._replace(nodes=nodes)


def _is_imported(name: str, parts: Mapping[str, Workflow]) -> bool:
    return any(name in part.nodes for part in parts.values())


def _joined(workflow: Workflow, parts: Mapping[str, Workflow]) -> Workflow:
    """One workflow: its own nodes first, then those of its imports in the order of the file."""
    nodes, params = dict(workflow.nodes), dict[str, Param](workflow.params)
    artifacts, at_the_end = dict(workflow.artifacts), workflow.at_the_end
    for part in parts.values():
        nodes |= part.nodes
        params |= part.params
        artifacts = {**part.artifacts, **artifacts}
        at_the_end += part.at_the_end
    return workflow._replace(
        nodes=nodes, params=params, artifacts=artifacts, at_the_end=at_the_end, imports={}
    )
