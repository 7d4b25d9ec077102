"""Read a workflow from TOML: every key known, every value of the right form. Pure.

All mistakes of form are told together, with their places. What the nodes say about each other is
for `checks`.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from headway.base.errors import InvalidInputError
from headway.base.toml_file import refuse_excess
from headway.base.units import parse_duration
from headway.core.artifacts import wrong_slug
from headway.core.retry_causes import (
    HOST,
    check_causes,
    check_causes_of_agent,
    check_causes_of_call,
)
from headway.core.routes import ANY, OUTCOME_WORDS, Join, NodeOutcome
from headway.jobs.agents import wrong_word
from headway.jobs.graph_file import FORMS
from headway.jobs.request import Request
from headway.jobs.specification import check_values
from headway.workflows.labels import (
    AGENT_INVOKE,
    CICD_RUN,
    COMMAND_RUN,
    FAMILIES,
    FUNCTION_CALL,
    LABELS,
    PROMPT_RESOLVE,
    PROMPT_TEXT,
    Label,
    RunsCommand,
    renamed,
)
from headway.workflows.matrices import NUMBER
from headway.workflows.mistakes import Mistake, Mistakes, WorkflowError, listed, perhaps, short
from headway.workflows.model import (
    MISSING,
    After,
    ArtifactContract,
    EachKey,
    ImportKey,
    LoopKey,
    Param,
    Source,
    Workflow,
    WorkflowNode,
)
from headway.workflows.places import Path, TextPlaces
from headway.workflows.references import OPEN, texts_in

LARGEST_FILE = 1 << 20
MOST_KEYS = 100_000
MOST_TIMES = 100
MOST_ELEMENTS = 10_000
MOST_APPROVERS = 100
MOST_AT_THE_END = 100
NODE_ID = re.compile(r"[a-z][a-z0-9_]{0,47}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")  # of a parameter
OUTPUT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
PARAM_TYPES = ("text", "slug", "int", "number", "bool", "path", "list")
SCOPES = ("run", "global")
OF_HEADWAY = ("prompt_text", "operation_output")  # artifact types that exist by themselves
JOB_KEYS = (
    *("env", "labels", "locks", "resources", "rates", "priority", "timeout", "idle_timeout"),
    *("grace", "retries", "retry_base", "retry_cap", "retry_jitter", "retry_on"),
    *("skip_exit_codes", "require", "pin_head", "target", "any_host", "cwd"),
)
# What a job that calls a function has no use for: it has neither a command nor a checkout.
NOT_OF_CALLS = (
    *("env", "idle_timeout", "skip_exit_codes", "require", "pin_head", "any_host", "cwd"),
)
WHAT_IT_DOES = ("uses", "argv", "shell", "prompt", "prompt_file", "task")
LOOP_ON = (NodeOutcome.SUCCEEDED, NodeOutcome.FAILED, NodeOutcome.BLOCKED)
TOLERABLE = (NodeOutcome.FAILED, NodeOutcome.BLOCKED, NodeOutcome.CANCELLED)
# What files of other programs call it.
_OF_OTHERS = {
    **dict.fromkeys(("depends_on", "dependsOn", "requires", "depends"), "after"),
    **dict.fromkeys(("command", "cmd", "exec"), "argv"),
    **dict.fromkeys(("run", "script", "bash"), "shell"),
    **dict.fromkeys(("if", "condition"), "when"),
    **dict.fromkeys(("steps", "jobs", "tasks", "stages"), "nodes"),
    **dict.fromkeys(("working_directory", "workdir", "dir"), "cwd"),
    **dict.fromkeys(("environment", "variables"), "env"),
    **dict.fromkeys(("retry", "attempts", "max_retries"), "retries"),
}
_OUTCOMES_OF_OTHERS = {
    **dict.fromkeys(("success", "ok", "passed", "done"), "succeeded"),
    **dict.fromkeys(("failure", "error"), "failed"),
    **dict.fromkeys(("always", "any", "completed"), ANY),
}
_ON = re.compile(r"on[_-]([a-z]+)")  # as others write `on.failed`
_TIMES = frozenset({"cron", "schedule", "every"})
_LINE = re.compile(r"(.*) \(at (line \d+, column \d+)\)|(.*) \(at end of document\)", re.DOTALL)

Table = Mapping[str, Any]


class ValueForm(NamedTuple):
    """How a value is written, in words and as a check."""

    says: str
    fits: Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _is_plain(value: Any) -> bool:
    """A text, or a number that is read as one."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_duration(value: Any) -> bool:
    try:
        return _is_text(value) and parse_duration(value, "") >= 0
    except InvalidInputError:
        return False


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_table, value))


def _are_lists(value: Any) -> bool:
    return _is_table(value) and all(isinstance(each, list) and each for each in value.values())


def _are_afters(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str | dict) for each in value)


def _are_targets(value: Any) -> bool:
    return _is_table(value) and all(map(_are_texts, value.values()))


def _are_products(value: Any) -> bool:
    return _are_texts(value) or _are_targets(value)


def _is_command(value: Any) -> bool:
    return _are_texts(value) and bool(value)


def _are_outputs(value: Any) -> bool:
    return _are_texts(value) and all(map(OUTPUT_NAME.fullmatch, value))


def _is_expression(value: Any) -> bool:
    try:
        return _is_text(value) and bool(re.compile(value))
    except (re.error, RecursionError, OverflowError):
        return False


TEXT = ValueForm("a text", _is_text)
TEXTS = ValueForm("a list of texts", _are_texts)
TABLE = ValueForm("a table", _is_table)
FLAG = ValueForm("true or false", _is_flag)
DURATION = ValueForm('a duration like "5m"', _is_text)

TOP_KEYS: Mapping[str, ValueForm] = {
    "version": TEXT,
    "description": TEXT,
    "inputs": TEXTS,
    "params": TABLE,
    "artifacts": TABLE,
    "budget": TABLE,
    "timeout": DURATION,
    "finally": TEXTS,
    "defaults": TABLE,
    "imports": TABLE,
    "nodes": TABLE,
}
IMPORT_KEYS: Mapping[str, ValueForm] = {"workflow": TEXT, "params": TABLE, "after": TEXTS}
NODE_KEYS: Mapping[str, ValueForm] = {
    "uses": TEXT,
    "args": TABLE,
    "argv": ValueForm("a list of texts, not empty", _is_command),
    "shell": TEXT,
    "prompt": TEXT,
    "prompt_file": TEXT,
    "task": TEXT,
    "after": ValueForm("a list of nodes, or of { node, on }", _are_afters),
    "on": ValueForm("a table of lists of nodes, by outcome", _are_targets),
    "join": ValueForm('"all" or "any"', lambda value: value in tuple(Join)),
    "loop": TABLE,
    "tolerate": TEXTS,
    "when": TEXTS,
    "matrix": ValueForm("a table of lists that are not empty", _are_lists),
    "exclude": ValueForm("a list of tables", _are_tables),
    "each": TABLE,
    "needs": TEXTS,
    "produces": ValueForm("a list of artifacts, or a table of them by outcome", _are_products),
    "outputs": ValueForm("a list of names of letters, digits, _ and -", _are_outputs),
    "root": TEXT,
    "approval": FLAG,
    **{key: ValueForm(FORMS[key].says, FORMS[key].fits) for key in JOB_KEYS},
}
DEFAULT_KEYS = (*JOB_KEYS, "join", "tolerate", "root", "approval")
PARAM_KEYS: Mapping[str, ValueForm] = {
    "type": ValueForm(listed([f'"{each}"' for each in PARAM_TYPES]), lambda v: v in PARAM_TYPES),
    "default": ValueForm("a value of its type", lambda value: True),
    "choices": ValueForm("a list", lambda value: isinstance(value, list)),
    "pattern": ValueForm("a regular expression", _is_expression),
    "help": TEXT,
}
CONTRACT_KEYS: Mapping[str, ValueForm] = {
    "version": TEXT,
    "scope": ValueForm('"run" or "global"', lambda value: value in SCOPES),
}
BUDGET_KEYS: Mapping[str, ValueForm] = {
    "usd": ValueForm("a number above 0", _is_amount),
    "tokens": ValueForm("a whole number above 0", lambda v: _is_whole(v) and v > 0),
}
LOOP_KEYS: Mapping[str, ValueForm] = {
    "to": TEXT,
    "on": TEXTS,
    "times": ValueForm(
        f"a whole number from 1 to {MOST_TIMES}", lambda v: _is_whole(v) and 1 <= v <= MOST_TIMES
    ),
    "delay": DURATION,
}
EACH_KEYS: Mapping[str, ValueForm] = {
    "in": TEXT,
    "max": ValueForm(
        f"a whole number from 1 to {MOST_ELEMENTS}",
        lambda v: _is_whole(v) and 1 <= v <= MOST_ELEMENTS,
    ),
}
AFTER_KEYS: Mapping[str, ValueForm] = {"node": TEXT, "on": TEXTS}
OF_AGENT = ("runner", "model", "max_turns", "allowed_tools", "budget_usd", "max_tokens")
SLUGS = ("slug", "plan")  # arguments that are one
_WORDS = ValueForm("a text or a number", _is_plain)
_PATHS = ValueForm("a path, or a list of paths", lambda v: _is_text(v) or _is_command(v))
# The arguments of labels, by their names: one name has one meaning.
ARGUMENTS: Mapping[str, ValueForm] = {
    **dict.fromkeys(("always", "auto_resolve", "delete_branch", "squash"), FLAG),
    **dict.fromkeys(("branch", "slug", "plan", "base", "source", "target", "from"), _WORDS),
    **dict.fromkeys(("spec_text", "spec_file", "prompt_text", "prompt_file"), _WORDS),
    **dict.fromkeys(("build_id", "step_key", "message"), _WORDS),
    **dict.fromkeys(("files", "paths"), _PATHS),
    "question": TEXT,
    "task": TEXT,
    "arguments": TABLE,
    "approvers": ValueForm("a list of names", lambda v: _is_text(v) or _are_texts(v)),
    "required": ValueForm(
        f"a whole number from 1 to {MOST_APPROVERS}",
        lambda v: _is_whole(v) and 1 <= v <= MOST_APPROVERS,
    ),
    "expires": ValueForm('a duration like "5m"', _is_duration),
    **{key: ValueForm(FORMS[key].says, FORMS[key].fits) for key in OF_AGENT},
}


def misfit_argument(key: str, value: Any) -> str | None:
    """What is wrong with an argument of a label. One with a reference is not known yet."""
    form = ARGUMENTS.get(key)
    if form is None or (_is_text(value) and OPEN in value):
        return None
    if not form.fits(value):
        return f"{key} is {short(value)}; give {form.says}"
    if key in SLUGS and isinstance(value, str) and value:
        return wrong_slug(value)
    return wrong_word(key, value) if key in OF_AGENT and OPEN not in str(value) else None


def read_workflow(text: Source, *, name: str, file: str) -> Workflow:
    """The workflow of a text; raises WorkflowError with all that is wrong with its form."""
    return Draft(text, name=name, file=file).finished()


class Draft:
    """A workflow that is being read, and what is wrong with it so far."""

    def __init__(self, text: Source, *, name: str, file: str) -> None:
        self._name = name
        self._document = _parsed(text, file) if isinstance(text, str) else _made(text, file)
        self.problems = Mistakes(file, TextPlaces(text if isinstance(text, str) else ""))
        self.workflow = self._workflow()

    def finished(self) -> Workflow:
        self.problems.raise_if_any()
        return self.workflow

    def _workflow(self) -> Workflow:
        top = self._fitting(self._document, TOP_KEYS, ())
        self._refuse_unstorable(self._document, ())
        nodes = self._nodes(top.get("nodes", {}), top.get("defaults", {}))
        return Workflow(
            name=self._name,
            file=self.problems.file,
            nodes=nodes,
            version=top.get("version", "1"),
            description=top.get("description", ""),
            inputs=self._once("inputs", top.get("inputs", ())),
            params=self._params(top.get("params", {})),
            artifacts=self._artifacts(top.get("artifacts", {})),
            budget=self._fitting(top.get("budget", {}), BUDGET_KEYS, ("budget",)),
            timeout=self._duration(top.get("timeout"), ("timeout",)),
            at_the_end=self._at_the_end(top.get("finally", ()), nodes),
            imports=self._imports(top.get("imports", {})),
        )

    # -- parts ---------------------------------------------------------------------------------

    def _refuse_unstorable(self, value: Any, path: Path) -> None:
        """No program takes a text with a NUL, and JSON knows no number that is none."""
        if isinstance(value, dict):
            for key, each in value.items():
                self._refuse_unstorable(each, (*path, key))
        elif isinstance(value, list):
            for each in value:
                self._refuse_unstorable(each, path)
        elif isinstance(value, str) and "\0" in value:
            self.problems.add(f"{path[-1]} has a NUL character; take it out", path)
        elif isinstance(value, float) and not isfinite(value):
            self.problems.add(f"{path[-1]} is {value}; give a number", path)

    def _once(self, key: str, names: Sequence[str]) -> tuple[str, ...]:
        for name in _twice(names):
            self.problems.add(f"{key} names '{name}' twice", (key,))
        return tuple(dict.fromkeys(names))

    def _at_the_end(
        self, names: Sequence[str], nodes: Mapping[str, WorkflowNode]
    ) -> tuple[str, ...]:
        """With the nodes of their prompts. Each has an edge from all others, so they are few."""
        if len(names) > MOST_AT_THE_END:
            words = f"finally names {len(names):,} nodes, more than {MOST_AT_THE_END}"
            self.problems.add(words, ("finally",))
            return ()
        known = self._once("finally", names)
        with_prompts = (each for name in known for each in (f"{name}.prompt", name))
        return tuple(each for each in with_prompts if each in nodes or each in known)

    def _fitting(self, table: Table, forms: Mapping[str, ValueForm], path: Path) -> dict[str, Any]:
        """The keys that are known and have a value of their form; all others are mistakes."""
        found = {}
        for key, value in table.items():
            form = forms.get(key)
            if form is None:
                words = f"unknown key '{_within(path, key)}'{_meant(key, forms)}"
                self.problems.add(words, (*path, key))
            elif not form.fits(value):
                self._misfit(_within(path, key), value, form, (*path, key))
            else:
                found[key] = value
        return found

    def _misfit(self, key: str, value: Any, form: ValueForm, path: Path) -> None:
        self.problems.add(f"{key} is {short(value)}; give {form.says}", path)

    def _duration(self, text: str | None, path: Path) -> int | None:
        if text is None:
            return None
        try:
            time = parse_duration(text, path[-1])
        except InvalidInputError:
            self._misfit(path[-1], text, DURATION, path)
            return None
        wrong = wrong_job_value("timeout", text)  # of a run as of a job
        if wrong is not None:
            self.problems.add(wrong, path)
        return time

    def _params(self, table: Table) -> dict[str, Param]:
        found = {}
        for name, said in table.items():
            if not NAME.fullmatch(name):
                words = "may have letters, digits, '_', '.' and '-', and begins with a letter or _"
                self.problems.add(f"parameter '{name}' {words}", ("params", name))
            if not isinstance(said, dict):
                found[name] = Param(name, type_of(said), said)
                continue
            given = self._fitting(said, PARAM_KEYS, ("params", name))
            default = given.get("default", MISSING)
            kind = given.get("type") or ("text" if default is MISSING else type_of(default))
            param = Param(
                name,
                kind,
                default,
                tuple(given.get("choices", ())),
                given.get("pattern"),
                given.get("help", ""),
            )
            found[name] = param
            if default is not MISSING and (wrong := misfit_of(param, default)) is not None:
                self.problems.add(
                    f"parameter '{name}' is {short(default)}; {wrong}", ("params", name)
                )
        return found

    def _artifacts(self, table: Table) -> dict[str, ArtifactContract]:
        found = {}
        for name, said in table.items():
            path = ("artifacts", name)
            if name in OF_HEADWAY:
                self.problems.add(f"[artifacts] {name} is made by Headway; take it out", path)
            elif not isinstance(said, dict):
                self._misfit(name, said, TABLE, path)
            else:
                found[name] = ArtifactContract(**self._fitting(said, CONTRACT_KEYS, path))
        return found

    def _imports(self, table: Table) -> dict[str, ImportKey]:
        found = {}
        for name, said in table.items():
            path = ("imports", name)
            if not NODE_ID.fullmatch(name):
                words = "may have small letters, digits and _, and begins with a letter"
                self.problems.add(f"imports '{name}' {words}", path)
            if not isinstance(said, dict):
                self._misfit(name, said, TABLE, path)
                continue
            given = self._fitting(said, IMPORT_KEYS, path)
            if "workflow" not in said:
                self.problems.add(f"imports {name}: say which workflow", path)
            elif "workflow" in given:
                params, after = given.get("params", {}), tuple(given.get("after", ()))
                found[name] = ImportKey(name, given["workflow"], params, after)
        return found

    def _nodes(self, table: Table, defaults: Table) -> dict[str, WorkflowNode]:
        allowed = {key: NODE_KEYS[key] for key in DEFAULT_KEYS}
        common = self._fitting(defaults, allowed, ("defaults",))
        for key in [key for key in common if key in JOB_KEYS]:
            wrong = wrong_job_value(key, common[key])
            if wrong is not None:
                self.problems.add(wrong, ("defaults", key))
                del common[key]
        if not self._document.get("nodes", {}) and not self._document.get("imports"):
            self.problems.add("it has no nodes")
        found: dict[str, WorkflowNode] = {}
        for name, said in table.items():
            path = ("nodes", name)
            if not NODE_ID.fullmatch(name):
                words = "may have small letters, digits and _, and begins with a letter"
                self.problems.add_of_file(f"node '{name}' {words}", path)
            if not isinstance(said, dict):
                self._misfit(name, said, TABLE, path)
                continue
            given = self._fitting(said, NODE_KEYS, path)
            known = {**{k: v for k, v in common.items() if k not in said}, **given}
            for node in _Nodes(self.problems, name, said, known).made():
                found[node.id] = node
        return found


class _Nodes:
    """What one table of `[nodes]` stands for: a node, or an agent with the node of its prompt."""

    def __init__(self, problems: Mistakes, name: str, said: Table, given: Table) -> None:
        self._problems = problems
        self._name = name
        self._said = said  # also what does not fit
        self._given = given
        self._path = ("nodes", name)

    def made(self) -> list[WorkflowNode]:
        label = self._label()
        if label is None:
            return [self._node(LABELS[COMMAND_RUN])]  # for what others say of it
        if label.name == AGENT_INVOKE and "uses" not in self._given:
            return self._agent_with_prompt(label)
        return [self._node(label)]

    def _say(self, words: str, *key: str) -> None:
        self._problems.add(words, (*self._path, *key))

    def _label(self) -> Label | None:
        said = [key for key in WHAT_IT_DOES if key in self._said]
        if not said:
            self._say("say what it does: uses, argv, shell, prompt, prompt_file or task")
            return None
        if "uses" in said:
            return self._used(self._given.get("uses"))
        if "task" in said:
            return self._taking(LABELS[FUNCTION_CALL], ("task",))
        if "prompt" in said or "prompt_file" in said:
            return self._taking(LABELS[AGENT_INVOKE], ("prompt", "prompt_file"))
        return self._taking(LABELS[COMMAND_RUN], ("argv", "shell"))

    def _used(self, name: str | None) -> Label | None:
        if name is None:
            return None
        label = LABELS.get(name)
        if label is None:
            now = renamed(name)
            if now is not None:
                self._say(f"uses old label '{name}'; write '{now}'", "uses")
            else:
                near = perhaps(name, list(LABELS))
                self._say(f"uses unknown label '{name}'; there are {FAMILIES}{near}", "uses")
            return None
        runs = ("argv", "shell") if label.command is not RunsCommand.NEVER else ()
        return self._taking(label, runs)

    def _taking(self, label: Label, words: tuple[str, ...]) -> Label:
        """Refuse what such a node does not take, and see that it has what it needs."""
        for key in WHAT_IT_DOES[1:]:
            if key in self._said and key not in words:
                self._say(f"{label.name} takes no {key}", key)
        both = [key for key in words if key in self._said]
        if len(both) > 1:
            self._say(f"give {both[0]} or {both[1]}, not both", both[1])
        if label.command is RunsCommand.MUST and not both:
            self._say(f"{label.operation} needs argv or shell", "uses")
        self._check_arguments(label)
        return label

    def _check_arguments(self, label: Label) -> None:
        args = self._given.get("args", {})
        if not label.free:
            for key in args:
                if key not in label.arguments:
                    words = f"{label.operation} has no argument '{key}'"
                    there = ", ".join(label.arguments) or "none"
                    self._say(f"{words}; there are {there}", "args", key)
        for key in label.arguments:
            if key in args and (wrong := misfit_argument(key, args[key])) is not None:
                self._say(wrong, "args", key)
        named = {*args, *(["task"] if "task" in self._said else [])}
        if label.one_of and not named & {*label.one_of}:
            self._say(f"{label.operation} needs {listed(label.one_of)}", "args")
        for key in NOT_OF_CALLS if label.name == FUNCTION_CALL else ():
            if key in self._said:
                self._say(f"{label.name} takes no {key}", key)

    def _agent_with_prompt(self, label: Label) -> list[WorkflowNode]:
        """The short form: a node before it resolves the prompt, and all that led to it leads
        there."""
        name = f"{self._name}.prompt"
        node = self._node(label)
        artifact = f"{PROMPT_TEXT}{self._name}"
        if node.matrix or node.each is not None:
            artifact += f"[{NUMBER}]"  # one an instance, whatever its values are
        text = "prompt" if "prompt" in self._said else "prompt_file"
        prompt = WorkflowNode(
            name,
            LABELS[PROMPT_RESOLVE],
            args={"prompt_text" if text == "prompt" else text: self._given.get(text, "")},
            after=node.after,
            on={"succeeded": (self._name,)},
            join=node.join,
            when=node.when,
            matrix=node.matrix,
            exclude=node.exclude,
            each=node.each,
            produces={"succeeded": (artifact,)},
            root=node.root,
            job={"locks": []},
        )
        waits = After(name, OUTCOME_WORDS["succeeded"])
        when = node.when if node.each is not None else ()  # each instance is skipped by itself
        agent = node._replace(after=(waits,), needs=(*node.needs, artifact), when=when)
        return [prompt, agent]

    def _node(self, label: Label) -> WorkflowNode:
        given = self._given
        unused = NOT_OF_CALLS if label.name == FUNCTION_CALL else ()
        job = {key: given[key] for key in JOB_KEYS if key in given and key not in unused}
        for key, value in job.items():
            self._check_job_key(key, value)
        for key in ("argv", "shell"):
            if key in given:
                self._check_job_key(key, given[key])
        wrong = wrong_causes(label, job.get("retry_on", ()))
        if wrong is not None:
            self._say(wrong, "retry_on")
        args = dict(given.get("args", {}))
        if "task" in given:
            args["task"] = given["task"]
        self._exclude_each_other("matrix", "each")
        return WorkflowNode(
            self._name,
            label,
            args,
            tuple(given.get("argv", ())),
            given.get("shell"),
            tuple(self._afters(given.get("after", ()))),
            self._on(given.get("on", {})),
            Join(given.get("join", Join.ALL)),
            self._loop(given.get("loop")),
            self._outcomes("tolerate", given.get("tolerate", ()), TOLERABLE),
            tuple(given.get("when", ())),
            {key: tuple(values) for key, values in given.get("matrix", {}).items()},
            tuple(given.get("exclude", ())),
            self._each(given.get("each")),
            tuple(given.get("needs", ())),
            self._products(given.get("produces", ())),
            tuple(given.get("outputs", ())),
            given.get("root"),
            given.get("approval", False),
            job,
        )

    def _check_job_key(self, key: str, value: Any) -> None:
        """Also where it comes from the defaults, which were checked before."""
        wrong = wrong_job_value(key, value) if key in self._said else None
        if wrong is not None:
            self._say(wrong, key)

    def _exclude_each_other(self, one: str, other: str) -> None:
        if one in self._said and other in self._said:
            self._say(f"{one} and {other} exclude each other", other)

    def _afters(self, said: Any) -> list[After]:
        found = []
        for each in said:
            if isinstance(each, str):
                found.append(After(each, OUTCOME_WORDS["succeeded"]))
                continue
            given = self._inner(each, AFTER_KEYS, "after")
            if "node" not in given:
                self._say(f"after is {short(each)}; give a node, or {{ node, on }}", "after")
            else:
                words = given.get("on", ["succeeded"])
                accepts = self._accepted("after", words)
                found.append(After(given["node"], accepts))
        return found

    def _on(self, said: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
        found = {}
        for word, targets in said.items():
            if word not in OUTCOME_WORDS:
                there, meant = ", ".join(OUTCOME_WORDS), _meant_outcome(word)
                words = f"on.{word} is no outcome; there are {there}{meant}"
                self._say(words, "on", word)
                continue
            for target in _twice(targets):
                self._say(f"on.{word} names '{target}' twice", "on", word)
            found[word] = tuple(dict.fromkeys(targets))
        return found

    def _inner(self, said: Table, forms: Mapping[str, ValueForm], *key: str) -> dict[str, Any]:
        """The keys of a table within the node, as `Draft._fitting`."""
        found = {}
        for name, value in said.items():
            form = forms.get(name)
            if form is None:
                self._say(f"unknown key '{'.'.join(key)}.{name}'{perhaps(name, list(forms))}", *key)
            elif not form.fits(value):
                self._say(f"{'.'.join(key)}.{name} is {short(value)}; give {form.says}", *key)
            else:
                found[name] = value
        return found

    def _accepted(self, key: str, words: list[str]) -> frozenset[NodeOutcome]:
        found: set[NodeOutcome] = set()
        for word in words:
            if word not in OUTCOME_WORDS:
                there, meant = ", ".join(OUTCOME_WORDS), _meant_outcome(word)
                self._say(f"{key}.on '{word}' is no outcome; there are {there}{meant}", key)
            else:
                found |= OUTCOME_WORDS[word]
        return frozenset(found) or OUTCOME_WORDS["succeeded"]

    def _outcomes(
        self, key: str, given: Any, allowed: tuple[NodeOutcome, ...]
    ) -> frozenset[NodeOutcome]:
        for word in given:
            if word not in allowed:
                words = f"{key} is {short(word)}; give {listed(list(allowed))}"
                self._say(words, *key.split("."))
        return frozenset(NodeOutcome(word) for word in given if word in allowed)

    def _loop(self, said: Table | None) -> LoopKey | None:
        if said is None:
            return None
        given = self._inner(said, LOOP_KEYS, "loop")
        for key in ("to", "times"):
            if key not in said:
                self._say(f"loop has no {key}; write {{ to = NODE, times = N }}", "loop")
        words = self._outcomes("loop.on", given.get("on", ["failed"]), LOOP_ON)
        delay = given.get("delay", "0s")
        try:
            wait = parse_duration(delay, "loop.delay")
        except InvalidInputError:
            self._say(f"loop.delay is {short(delay)}; give {DURATION.says}", "loop")
            wait = 0
        if "to" not in given:
            return None
        return LoopKey(given["to"], words, given.get("times", 1), wait)  # which is told, if missing

    def _each(self, said: Table | None) -> EachKey | None:
        if said is None:
            return None
        given = self._inner(said, EACH_KEYS, "each")
        if "in" not in said:
            self._say("each.in is no reference to a list", "each")
        return EachKey(given["in"], given.get("max", 100)) if "in" in given else None

    def _products(self, said: Any) -> dict[str, tuple[str, ...]]:
        if not isinstance(said, dict):
            return {"succeeded": tuple(said)} if said else {}
        found = {}
        for word, texts in said.items():
            if word not in OUTCOME_WORDS or word == ANY:
                words = ", ".join(each for each in OUTCOME_WORDS if each != ANY)
                self._say(f"produces.{word} is no outcome; there are {words}", "produces")
            else:
                found[word] = tuple(texts)
        return found


def _within(path: Path, key: str) -> str:
    """A key with the table that it is in. A node is named in front of its words anyway."""
    return ".".join((*path, key)) if path[:1] == ("params",) else key


def _meant(key: str, forms: Mapping[str, ValueForm]) -> str:
    """What a key that is unknown may stand for."""
    if key in _TIMES and "nodes" in forms:
        return "; for certain times: headway schedules add --workflow NAME --cron EXPR"
    if _OF_OTHERS.get(key) in forms:
        return f"; did you mean '{_OF_OTHERS[key]}'?"
    route = _ON.fullmatch(key)
    if route is not None and "on" in forms and "after" in forms:
        word = _OUTCOMES_OF_OTHERS.get(route[1], route[1])
        return f"; did you mean 'on.{word}'?" if word in OUTCOME_WORDS else ""
    return perhaps(key, list(forms))


def _meant_outcome(word: str) -> str:
    """What a word of other programs stands for; all outcomes are told before that anyway."""
    other = _OUTCOMES_OF_OTHERS.get(word.lower())
    return "" if other is None else f"; did you mean '{other}'?"


def _twice(names: Sequence[str]) -> list[str]:
    """What a list has more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def wrong_job_value(key: str, value: Any) -> str | None:
    """What is wrong with the value of a key that graph files have, too, by the code that reads
    those. What has references is checked when it is filled."""
    form = FORMS[key]
    if any(OPEN in text or "\0" in text for text in texts_in(value)):  # which is told by itself
        return None
    try:
        made = value if form.make is None else form.make(value)
        check_values(Request(**{form.field: made}))
    except InvalidInputError as error:
        return str(error)
    return None


def wrong_causes(label: Label, causes: Sequence[str]) -> str | None:
    """What is wrong with `retry_on`, which depends on who does the work. A command knows no trouble
    of the host."""
    checks = {FUNCTION_CALL: check_causes_of_call, AGENT_INVOKE: check_causes_of_agent}
    known = () if label.name in (COMMAND_RUN, CICD_RUN) else (HOST,)
    try:
        checks.get(label.name, check_causes)([each for each in causes if each not in known])
    except InvalidInputError as error:
        return str(error)
    return None


# -- parameters --------------------------------------------------------------------------------


_SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_FORM_OF = {
    "text": ValueForm("a text", _is_text),
    "slug": ValueForm(
        "small letters, digits, '.', '_' and '-'",
        lambda value: _is_text(value) and bool(_SLUG.fullmatch(value)),
    ),
    "int": ValueForm("a whole number", _is_whole),
    "number": ValueForm("a number", lambda v: isinstance(v, int | float) and not _is_flag(v)),
    "bool": FLAG,
    "path": ValueForm(
        "a path", lambda value: _is_text(value) and "\0" not in value and value != ""
    ),
    "list": ValueForm("a list", lambda value: isinstance(value, list)),
}


def type_of(value: Any) -> str:
    """The type of a parameter by its default."""
    match value:
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "number"
        case list():
            return "list"
        case _:
            return "text"


def _is_storable(text: str) -> bool:
    """Words of a command line may be no text at all."""
    try:
        return "\0" not in text and bool(text.encode() or True)
    except UnicodeEncodeError:
        return False


def misfit_of(param: Param, value: Any) -> str | None:
    """What to give instead of this value; None: it fits."""
    form = _FORM_OF[param.type]
    if not all(map(_is_storable, texts_in(value))):
        return "give a text of UTF-8, without NUL"
    if not form.fits(value):
        return f"give {form.says}"
    if param.choices and value not in param.choices:
        return f"give {listed([short(each) for each in param.choices])}"
    if param.pattern is not None and not re.fullmatch(param.pattern, str(value)):
        return f"give what fits {param.pattern}"
    return None


# -- the text ----------------------------------------------------------------------------------


def _parsed(text: str, file: str) -> dict[str, Any]:
    refuse_excess(file, text, most_keys=MOST_KEYS)
    try:
        document: dict[str, Any] = _with_plain_dates(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        found = _LINE.fullmatch(str(error))
        words = str(error)
        if found is not None:
            end = f"line {text.count(chr(10)) + 1}, column {len(text) - text.rfind(chr(10))}"
            words = f"{found[2] or end}: {found[1] or found[3]}"
        raise WorkflowError(file, [Mistake(words)], 1) from None
    except (ValueError, RecursionError) as error:
        raise WorkflowError(file, [Mistake(f"line 1, column 1: {error}")], 1) from None
    return document


def _made(document: Mapping[str, Any], file: str) -> dict[str, Any]:
    """What a program has made in place of a text; bounded as that is."""
    try:
        size = len(json.dumps(document, default=str))
    except (TypeError, ValueError, RecursionError) as error:
        raise WorkflowError(file, [Mistake(f"it is no JSON: {error}")], 1) from None
    if size > LARGEST_FILE:
        raise WorkflowError(file, [Mistake("it is larger than 1 MiB")], 1)
    found: dict[str, Any] = _with_plain_dates(dict(document))
    return found


def _with_plain_dates(value: Any) -> Any:
    """Dates and times are texts, as JSON has them."""
    if isinstance(value, dict):
        return {key: _with_plain_dates(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_plain_dates(each) for each in value]
    return value.isoformat() if hasattr(value, "isoformat") else value
