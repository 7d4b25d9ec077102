"""What is refused of a workflow, in the words that are contract: before anything is written."""

import pytest
from _pytest.mark import ParameterSet
from started import Started
from written import FILE, LIMIT, checked, compiled, nodes, refused, wrong_with

from harness import Bench
from headway.base.errors import InvalidInputError
from headway.workflows.compiler import check_text, inputs_of
from headway.workflows.mistakes import MOST_SHOWN, WorkflowError
from headway.workflows.reader import LARGEST_FILE

RUN = 'argv = ["x"]'
PRINTABLE = "must be 1 to 200 printable characters on one line"
OUTCOMES = "succeeded, failed, blocked, cancelled, skipped, ended"
FAMILIES = "cap.env.builtin.*, cap.env.shell.*, cap.agent.invoke and control.*"
TREE = 'uses = "cap.env.builtin.worktree.prepare"\nargs = { slug = "s" }'
TREES = f"{TREE}\nmatrix = {{ x = [1, 2, 3] }}"
OR_ALIKE = ", or give it the matrix of 't'"
RESOLVE = 'uses = "cap.env.builtin.prompt.resolve"\nargs = { prompt_text = "Do it." }'
PROMPTS = "must produce exactly one custom:prompt_text:KEY, and produces"
AGENTS = "agent.invoke must need exactly one custom:prompt_text:KEY, and needs"


def case(
    name: str, text: str, *words: str, proves: pytest.MarkDecorator | None = None
) -> ParameterSet:
    marks = [proves] if proves is not None else []
    return pytest.param(text, list(words), id=name, marks=marks)


def one(lines: str) -> str:
    return nodes(a=lines)


def after(lines: str) -> str:
    """A node `b` behind a node `a`."""
    return nodes(a=RUN, b=f'{RUN}\nafter = ["a"]\n{lines}')


FORM = [
    case("empty", "", "it has no nodes"),
    case("no table of nodes", "nodes = 3", "nodes is 3; give a table"),
    case("not TOML", "a = ", "line 1, column 5: Invalid value"),
    case("unclosed", '[nodes.a]\nargv = ["x"', "line 2, column 12: Unclosed array"),
    case("twice", "a = 1\na = 2\n", "line 2, column 6: Cannot overwrite a value"),
    case("top key", f"finaly = []\n{one(RUN)}", "unknown key 'finaly'; did you mean 'finally'?"),
    case("top key, none near", f"zzz = 1\n{one(RUN)}", "unknown key 'zzz'"),
    case("top value", f"timeout = 5\n{one(RUN)}", 'timeout is 5; give a duration like "5m"'),
    case(
        "duration", f'timeout = "soon"\n{one(RUN)}', 'timeout is "soon"; give a duration like "5m"'
    ),
    case("node key", one(f"{RUN}\nretrys = 1"), "node 'a': unknown key 'retrys'; did you mean 'retries'?"),
    case("node value", one(f"{RUN}\nretries = true"), "node 'a': retries is true; give a whole number"),
    case("argv", one("argv = []"), "node 'a': argv is []; give a list of texts, not empty"),
    case("join", one(f'{RUN}\njoin = "some"'), "node 'a': join is \"some\"; give \"all\" or \"any\""),
    case("lock", one(f'{RUN}\nlocks = [""]'), "node 'a': lock '' must be 1 to 200 printable characters on one line"),
    case(
        "node name",
        f'[nodes."My node"]\n{RUN}',
        "node 'My node' may have small letters, digits and _, and begins with a letter",
    ),
    case("node is no table", "nodes.a = 1", "node 'a': a is 1; give a table"),
    case("default", f"[defaults]\nargv = []\n{one(RUN)}", "unknown key 'argv'; did you mean 'target'?"),
    case(
        "a default is wrong once",
        f'[defaults]\ntimeout = "x"\n{nodes(a=RUN, b=RUN)}',
        "timeout 'x' is not a duration; write it like 90s, 10m, 1h30m or 2d",
    ),
    case("budget", f"budget.usd = 0\n{one(RUN)}", "usd is 0; give a number above 0"),
    case("output", one(f'{RUN}\noutputs = ["a b"]'), "node 'a': outputs is [\"a b\"]; give a list of names of letters, digits, _ and -"),
    case("NUL", one('argv = ["a\\u0000b"]'), "node 'a': argv has a NUL character; take it out"),
    case("no number", f"params.x = nan\n{one(RUN)}", "x is nan; give a number"),
    case("inputs twice", f'inputs = ["x", "x"]\nparams.x = 1\n{one(RUN)}', "inputs names 'x' twice"),
    case("inputs", f'inputs = ["x"]\n{one(RUN)}', "inputs 'x' names no parameter"),
    case("param name", f'params."a b" = 1\n{one(RUN)}', "parameter 'a b' may have letters, digits, '_', '.' and '-', and begins with a letter or _"),
    case("param type", f'params.x.type = "txt"\n{one(RUN)}', 'params.x.type is "txt"; give "text", "slug", "int", "number", "bool", "path" or "list"'),
    case("param default", f'params.x = {{ type = "int", default = "a" }}\n{one(RUN)}', "parameter 'x' is \"a\"; give a whole number"),
    case("param pattern", f'params.x.pattern = "("\n{one(RUN)}', 'params.x.pattern is "("; give a regular expression'),
]  # fmt: skip
MEANT = [  # one mistake is told once, and with what was meant
    case("a node", nodes(look=RUN, b=f'{RUN}\nafter = ["lok"]'), "node 'b': after 'lok' names no node; did you mean 'look'?"),
    case("on", nodes(look=RUN, b=f'{RUN}\non.failed = ["lok"]'), "node 'b': on.failed 'lok' names no node; did you mean 'look'?"),
    case("loop", nodes(look=RUN, b=f'{RUN}\nafter = ["look"]\nloop = {{ to = "lok", times = 1 }}'), "node 'b': loop.to 'lok' names no node; did you mean 'look'?"),
    case("finally", f'finally = ["reprt"]\n{nodes(report=RUN)}', "finally 'reprt' names no node; did you mean 'report'?"),
    case("input", f'inputs = ["kep"]\nparams.keep = 1\n{one(RUN)}', "inputs 'kep' names no parameter; did you mean 'keep'?"),
    case("parameter", f'params.keep = 1\n{one(RUN)}env = {{ K = "${{{{ params.keeep }}}}" }}', "node 'a': params.keeep: there is no parameter 'keeep'; did you mean 'keep'?"),
    case("output", nodes(a=f'{RUN}\noutputs = ["full"]', b=f'{RUN}\nafter = ["a"]\nwhen = ["${{{{ nodes.a.outputs.ful }}}} == 1"]'), "node 'b': nodes.a.outputs.ful: 'a' has no output 'ful'; did you mean 'full'?"),
    case("node of a reference", nodes(look=RUN, b=f'{RUN}\nafter = ["look"]\nwhen = ["${{{{ nodes.lok.outcome }}}} == failed"]'), "node 'b': nodes.lok.outcome: 'lok' does not come before it; did you mean 'look'?"),
    case(
        "every reference of a value",
        nodes(a=f'{RUN}\noutputs = ["full"]', b='argv = ["x ${{ run.status }}", "${{ nodes.a.output.full }}", "${{ matrix.x }}", "${{ env }}", "${{ x"]\nafter = ["a"]'),
        "node 'b': run.status: unknown; did you mean 'run.state'?",
        "node 'b': nodes.a.output.full: unknown; did you mean 'nodes.a.outputs.full'?",
        "node 'b': matrix.x: unknown",
        "node 'b': env: unknown",
        "node 'b': \"${{\" is not closed",
    ),
    case(
        "what follows from a wrong name is not told",
        nodes(look=f'{RUN}\noutputs = ["full"]', b=f'{RUN}\nafter = ["lok"]\nwhen = ["${{{{ nodes.look.outputs.full }}}} == 1"]'),
        "node 'b': after 'lok' names no node; did you mean 'look'?",
    ),
    case("a condition", one(f'{RUN}\nwhen = ["1 = 2"]'), "node 'a': when '1 = 2' is not LEFT OP RIGHT; did you mean '=='?"),
    case("a node as an artifact", nodes(a=RUN, b=f'{RUN}\nneeds = ["a"]'), "node 'b': needs is about artifacts, and 'a' is a node; write after = [\"a\"]"),
    case("words of others", nodes(a=RUN, b=f'{RUN}\ndepends_on = ["a"]\nif = "x"'), "node 'b': unknown key 'depends_on'; did you mean 'after'?", "node 'b': unknown key 'if'; did you mean 'when'?"),
    case("a time", f'cron = "0 2 * * *"\n{one(RUN)}', "unknown key 'cron'; for certain times: headway schedules add --workflow NAME --cron EXPR"),
]  # fmt: skip
DOING = [
    case("nothing", one(""), "node 'a': say what it does: uses, argv, shell, prompt, prompt_file or task"),
    case("takes no", one('uses = "control.terminal"\nargv = ["x"]'), "node 'a': control.terminal takes no argv"),
    case("takes no prompt", one(f'{RUN}\nprompt = "x"'), "node 'a': cap.agent.invoke takes no argv"),
    case("both", one(f'{RUN}\nshell = "x"'), "node 'a': give argv or shell, not both"),
    case("needs a command", one('uses = "cap.env.shell.cicd.run"'), "node 'a': cicd.run needs argv or shell"),
    case("unknown", one('uses = "run.it"'), f"node 'a': uses unknown label 'run.it'; there are {FAMILIES}", proves=pytest.mark.req("V18", "V20")),
    case("a command is no label", one('uses = "make dist"'), f"node 'a': uses unknown label 'make dist'; there are {FAMILIES}", proves=pytest.mark.req("V20")),
    case(
        "unknown, near",
        one('uses = "control.gate.aproval"'),
        f"node 'a': uses unknown label 'control.gate.aproval'; there are {FAMILIES}; did you mean 'control.gate.approval'?",
        proves=pytest.mark.req("V20"),
    ),
    case(
        "old",
        one('uses = "vizier.git.stage_commit"'),
        "node 'a': uses old label 'vizier.git.stage_commit'; write 'cap.env.builtin.git.stage_commit'",
        proves=pytest.mark.req("V19"),
    ),
    case("old, without family", one('uses = "cap.command.run"\nargv = ["x"]'), "node 'a': uses old label 'cap.command.run'; write 'cap.env.shell.command.run'", proves=pytest.mark.req("V19")),
    case("old gate", one('uses = "vizier.gate.cicd"'), "node 'a': uses old label 'vizier.gate.cicd'; write 'control.gate.cicd'", proves=pytest.mark.req("V19")),
    case("old, and gone", one('uses = "vizier.dance"'), f"node 'a': uses unknown label 'vizier.dance'; there are {FAMILIES}", proves=pytest.mark.req("V19")),
    case("argument", one('uses = "cap.env.builtin.worktree.cleanup"\nargs.allways = true'), "node 'a': worktree.cleanup has no argument 'allways'; there are always"),
    case("flag", one('uses = "cap.env.builtin.worktree.cleanup"\nargs.always = "yes"'), "node 'a': always is \"yes\"; give true or false"),
    case("slug", one('uses = "cap.env.builtin.git.integrate_plan_branch"\nargs.slug = "a b c"'), "node 'a': 'a b c' is no slug; give letters, digits, '.', '_' and '-'"),
    case("plan", one('uses = "cap.env.builtin.worktree.prepare"\nargs.plan = "-"'), "node 'a': '-' is no slug; give letters, digits, '.', '_' and '-'"),
    case("a commit without a message", one('uses = "cap.env.builtin.git.stage_commit"'), "node 'a': git.stage_commit has no message; give message, or need an artifact with a text"),
    case("an agent of any program", one('prompt = "x"\nargs = { runner = "command" }'), "node 'a': runner command runs any program; name one that has its own"),
    case("paths", one('uses = "cap.env.builtin.patch.pipeline_prepare"\nargs.files = [1]'), "node 'a': files is [1]; give a path, or a list of paths"),
    case("text", one('uses = "cap.env.builtin.worktree.prepare"\nargs.slug = ["s"]'), "node 'a': slug is [\"s\"]; give a text or a number"),
    case("of an agent", one('prompt = "x"\nargs = { budget_usd = "lots", max_turns = 1.5 }'), "node 'a': max_turns is 1.5; give a whole number", "node 'a': budget_usd is \"lots\"; give a number"),
    case("of an approval", one('uses = "control.gate.approval"\nargs = { expires = "3 days", required = 0 }'), "node 'a': required is 0; give a whole number from 1 to 100", "node 'a': expires is \"3 days\"; give a duration like \"5m\""),
    case("no arguments", one('uses = "control.terminal"\nargs.x = 1'), "node 'a': terminal has no argument 'x'; there are none"),
    case("needs", one('uses = "cap.env.builtin.worktree.prepare"'), "node 'a': worktree.prepare needs branch, slug or plan"),
]  # fmt: skip
EDGES = [
    case("after", one(f'{RUN}\nafter = ["z"]'), "node 'a': after 'z' names no node", proves=pytest.mark.req("V15")),
    case("after table", one(f'{RUN}\nafter = [{{ on = ["failed"] }}]'), "node 'a': after is {\"on\": [\"failed\"]}; give a node, or { node, on }"),
    case("after outcome", after("").replace('["a"]', '[{ node = "a", on = ["dead"] }]'), f"node 'b': after.on 'dead' is no outcome; there are {OUTCOMES}"),
    case("on", one(f'{RUN}\non.failed = ["z"]'), "node 'a': on.failed 'z' names no node", proves=pytest.mark.req("V16")),
    case("outcome", one(f'{RUN}\non.suceeded = ["a"]'), f"node 'a': on.suceeded is no outcome; there are {OUTCOMES}", proves=pytest.mark.req("V16")),
    case("on twice", nodes(a=f'{RUN}\non.failed = ["b", "b"]', b=RUN), "node 'a': on.failed names 'b' twice", proves=pytest.mark.req("V16")),
    case("terminal", nodes(a='uses = "control.terminal"\non.succeeded = ["b"]', b=RUN), "node 'a': a terminal leads nowhere; take on.succeeded out", proves=pytest.mark.req("V25")),
    case("terminal loop", nodes(b=f'{RUN}\non.failed = ["a"]', a='uses = "control.terminal"\nloop = { to = "b", times = 1 }'), "node 'a': a terminal leads nowhere; take loop out", proves=pytest.mark.req("V25")),
    case("after a terminal", nodes(a='uses = "control.terminal"', b=f'{RUN}\nafter = ["a"]'), "node 'b': after 'a', which is a terminal", proves=pytest.mark.req("V25")),
    case("finally", f'finally = ["z"]\n{one(RUN)}', "finally 'z' names no node"),
    case("finally led to", f'finally = ["b"]\n{after("")}', "finally 'b' is led to, or leads on"),
    case("finally leads on", f'finally = ["a"]\n{after("")}', "finally 'a' is led to, or leads on"),
    case("finally many", f"finally = {[f'n{n}' for n in range(101)]}\n{one(RUN)}", "finally names 101 nodes, more than 100"),
    case("tolerate", one(f'{RUN}\ntolerate = ["skipped"]'), "node 'a': tolerate is \"skipped\"; give failed, blocked or cancelled"),
]  # fmt: skip
ARTIFACTS = [
    case("undeclared", one(f'{RUN}\nproduces = ["custom:report:x"]'), "node 'a': custom:report:x is of the type 'report', which [artifacts] does not declare", proves=pytest.mark.req("V14")),
    case("undeclared need", one(f'{RUN}\nneeds = ["custom:report:x"]'), "node 'a': custom:report:x is of the type 'report', which [artifacts] does not declare", proves=pytest.mark.req("V14")),
    case("of Headway", f'artifacts.prompt_text.version = "2"\n{one(RUN)}', "[artifacts] prompt_text is made by Headway; take it out", proves=pytest.mark.req("V14")),
    case("scope", f'artifacts.report.scope = "all"\n{one(RUN)}', 'scope is "all"; give "run" or "global"'),
    case("produced when", one(f'{RUN}\nproduces.ended = ["file:x"]'), "node 'a': produces.ended is no outcome; there are succeeded, failed, blocked, cancelled, skipped"),
    case("no prompt", one(RESOLVE), f"node 'a': prompt.resolve {PROMPTS} 0", proves=pytest.mark.req("V6")),
    case("another artifact", one(f'{RESOLVE}\nproduces = ["file:x"]'), f"node 'a': prompt.resolve {PROMPTS} 0", proves=pytest.mark.req("V6")),
    case("a prompt and more", one(f'{RESOLVE}\nproduces = ["custom:prompt_text:x", "file:x"]'), f"node 'a': prompt.resolve {PROMPTS} 2", proves=pytest.mark.req("V6")),
    case("two prompts", one(f'{RESOLVE}\nproduces = ["custom:prompt_text:x", "custom:prompt_text:y"]'), f"node 'a': prompt.resolve {PROMPTS} 2", proves=pytest.mark.req("V6")),
    case("shell prompt", one('uses = "cap.env.shell.prompt.resolve"\nargv = ["x"]'), f"node 'a': prompt.resolve {PROMPTS} 0", proves=pytest.mark.req("V6")),
    case("agent", one('uses = "cap.agent.invoke"'), f"node 'a': {AGENTS} 0", proves=pytest.mark.req("V7")),
    case(
        "agent, two",
        nodes(
            p=f'{RESOLVE}\nproduces = ["custom:prompt_text:x"]\non.succeeded = ["a"]',
            q=f'{RESOLVE}\nproduces = ["custom:prompt_text:y"]\non.succeeded = ["a"]',
            a='uses = "cap.agent.invoke"\nneeds = ["custom:prompt_text:x", "custom:prompt_text:y"]',
        ),
        f"node 'a': {AGENTS} 2",
        proves=pytest.mark.req("V7"),
    ),
    case("no prompt before it", one('uses = "cap.agent.invoke"\nneeds = ["custom:prompt_text:x"]'), "node 'a': custom:prompt_text:x is produced by no node before it", proves=pytest.mark.req("V7")),
    case(
        "prompt beside it",
        nodes(p=f'{RESOLVE}\nproduces = ["custom:prompt_text:x"]', a='uses = "cap.agent.invoke"\nneeds = ["custom:prompt_text:x"]'),
        "node 'a': custom:prompt_text:x is produced by no node before it",
        proves=pytest.mark.req("V7"),
    ),
]  # fmt: skip
LOOPS = [
    case("circle", nodes(a=f'{RUN}\nafter = ["b"]', b=f'{RUN}\nafter = ["a"]'), "a circle: a -> b -> a; to go back, give 'b' loop = { to = \"a\", times = N }"),
    case("of itself", one(f'{RUN}\non.failed = ["a"]'), "a circle: a -> a; to go back, give 'a' loop = { to = \"a\", times = N }"),
    case("of three", nodes(a=f'{RUN}\non.succeeded = ["b"]', b=f'{RUN}\non.succeeded = ["c"]', c=f'{RUN}\non.failed = ["a"]'), "a circle: a -> b -> c -> a; to go back, give 'c' loop = { to = \"a\", times = N }"),
    case(
        "several circles",
        nodes(
            a=f'{RUN}\nafter = ["b"]',
            b=f'{RUN}\nafter = ["a"]',
            c=f'{RUN}\nafter = ["b", "d"]',
            d=f'{RUN}\nafter = ["c"]',
            e=f'{RUN}\nafter = ["e", "d"]',
        ),
        "a circle: a -> b -> a; to go back, give 'b' loop = { to = \"a\", times = N }",
        "a circle: c -> d -> c; to go back, give 'd' loop = { to = \"c\", times = N }",
        "a circle: e -> e; to go back, give 'e' loop = { to = \"e\", times = N }",
    ),
    case("no such node", one(f'{RUN}\nloop = {{ to = "z", times = 1 }}'), "node 'a': loop.to 'z' names no node"),
    case("forward", nodes(a=f'{RUN}\nloop = {{ to = "b", times = 1 }}', b=f'{RUN}\nafter = ["a"]'), "node 'a': loop.to 'b' does not come before it"),
    case("times", one(f'{RUN}\nloop = {{ to = "a", times = 101 }}'), "node 'a': loop.times is 101; give a whole number from 1 to 100"),
    case("without times", one(f'{RUN}\nloop = {{ to = "a" }}'), "node 'a': loop has no times; write { to = NODE, times = N }"),
    case("on", one(f'{RUN}\nloop = {{ to = "a", on = ["skipped"], times = 1 }}'), "node 'a': loop.on is \"skipped\"; give succeeded, failed or blocked"),
    case("inner key", one(f'{RUN}\nloop = {{ to = "a", time = 1, times = 1 }}'), "node 'a': unknown key 'loop.time'; did you mean 'times'?"),
    case("delay", one(f'{RUN}\nloop = {{ to = "a", times = 1, delay = "x" }}'), "node 'a': loop.delay is \"x\"; give a duration like \"5m\""),
    case(
        "taken by the loop",
        nodes(a=f'{RUN}\nloop = {{ to = "a", times = 1 }}\non.failed = ["b"]', b=RUN),
        "node 'a': on.failed never leads to 'b', because the loop takes it; lead there from on.blocked",
    ),
    case(
        "needs what a loop makes",
        nodes(a=f'{RUN}\nproduces = ["file:x"]\nloop = {{ to = "a", times = 1 }}', b=f'{RUN}\nneeds = ["file:x"]'),
        "node 'b': needs file:x, which the loop of 'a' makes; put it after the loop",
    ),
    case(
        "two loops",
        nodes(
            a=RUN,
            b=f'{RUN}\nafter = ["a", "c"]\nloop = {{ to = "a", times = 1 }}',
            c=RUN,
            d=f'{RUN}\nafter = ["c", "a"]\nloop = {{ to = "c", times = 1 }}',
        ),
        "the loops of 'a' and 'c' wait for each other",
    ),
]  # fmt: skip
NEARLY = [
    case("on", nodes(a=f'{RUN}\non.success = ["b"]', b=RUN), "node 'a': on.success is no outcome; there are succeeded, failed, blocked, cancelled, skipped, ended; did you mean 'succeeded'?"),
    case("after.on", nodes(a=RUN, b=f'{RUN}\nafter = [{{ node = "a", on = ["always"] }}]'), "node 'b': after.on 'always' is no outcome; there are succeeded, failed, blocked, cancelled, skipped, ended; did you mean 'ended'?"),
    case("on of others", one(f'{RUN}\non_failed = ["a"]\non-success = ["a"]'), "node 'a': unknown key 'on_failed'; did you mean 'on.failed'?", "node 'a': unknown key 'on-success'; did you mean 'on.succeeded'?"),
    case("on of nobody", one(f"{RUN}\non_zzzz = 1"), "node 'a': unknown key 'on_zzzz'"),
    case("retry", one(f"{RUN}\nretry = 1"), "node 'a': unknown key 'retry'; did you mean 'retries'?"),
    case("key of a parameter", f'params.x.defualt = "y"\n{one(RUN)}', "unknown key 'params.x.defualt'; did you mean 'default'?"),
    case("two in a loop", nodes(a=RUN, b=f'{RUN}\nafter = ["a"]\nloop = {{ to = "aa" }}'), "node 'b': loop has no times; write { to = NODE, times = N }", "node 'b': loop.to 'aa' names no node; did you mean 'a'?"),
]  # fmt: skip
REFERENCES = [
    case("not before", nodes(a='argv = ["${{ nodes.b.outcome }}"]', b=RUN), "node 'a': nodes.b.outcome: 'b' does not come before it"),
    case("no such node", one('argv = ["${{ nodes.z.outcome }}"]'), "node 'a': nodes.z.outcome: 'z' does not come before it"),
    case("last of nobody", one('argv = ["${{ last.z.tail }}"]'), "node 'a': last.z.tail: 'z' does not come before it"),
    case("output", after('env = { X = "${{ nodes.a.outputs.x }}" }'), "node 'b': nodes.a.outputs.x: 'a' has no output 'x'"),
    case("param", one('argv = ["${{ params.x }}"]'), "node 'a': params.x: there is no parameter 'x'"),
    case("unknown", one('argv = ["${{ secrets.x }}"]'), "node 'a': secrets.x: unknown"),
    case("matrix", one('argv = ["${{ matrix.x }}"]'), "node 'a': matrix.x: unknown"),
    case("matrix, nearly", one('argv = ["${{ matrix.pyhton }}"]\nmatrix.python = [1]'), "node 'a': matrix.pyhton: unknown; did you mean 'matrix.python'?"),
    case("item", one('argv = ["${{ item }}"]'), "node 'a': item: unknown"),
    case("file elsewhere", one('argv = ["${{ file:x }}"]'), "node 'a': file:x: unknown"),
    case("not known yet", after('locks = ["${{ nodes.a.outcome }}"]'), "node 'b': locks: nodes.a.outcome is not known when it is queued"),
    case("run.state", one(f'{RUN}\nlabels = {{ x = "${{{{ run.state }}}}" }}'), "node 'a': labels: run.state is not known when it is queued"),
    case("not closed", one('argv = ["${{ run.id"]'), "node 'a': \"${{\" is not closed"),
    case("shell", one("shell = 'echo ${{ run.id }}'"), "node 'a': shell takes no ${{ }}, because the shell would run the value; put it into env"),
    case("script", one("argv = ['sh', '-c', 'echo ${{ run.id }}']"), "node 'a': shell takes no ${{ }}, because the shell would run the value; put it into env"),
    case("other key", one(f'{RUN}\ntimeout = "${{{{ params.x }}}}"'), "node 'a': timeout takes no ${{ }}"),
    case("when of words", one(f'{RUN}\nwhen = ["a < b", "1 < 2", "a == b"]'), "node 'a': when 'a < b' compares no numbers"),
    case("when of a word", after('when = ["${{ nodes.a.outcome }} >= failed"]'), "node 'b': when '${{ nodes.a.outcome }} >= failed' compares no numbers"),
    case("when", one(f'{RUN}\nwhen = ["x"]'), "node 'a': when 'x' is not LEFT OP RIGHT"),
]  # fmt: skip
FANS = [
    case("too many", one(f"{RUN}\nmatrix = {{ x = {list(range(40))}, y = {list(range(40))} }}"), "node 'a': matrix has 1,600 combinations, more than 1000"),
    case("empty", one(f"{RUN}\nmatrix = {{ x = [] }}"), "node 'a': matrix is {\"x\": []}; give a table of lists that are not empty"),
    case("exclude", one(f"{RUN}\nmatrix = {{ x = [1] }}\nexclude = [{{ x = 2 }}]"), "node 'a': exclude {\"x\": 2} fits none"),
    case("nothing left", one(f"{RUN}\nmatrix = {{ x = [1] }}\nexclude = [{{ x = 1 }}]"), "node 'a': exclude leaves nothing of the matrix"),
    case("a value of two lines", one(f'{RUN}\nmatrix = {{ x = ["b\\nc"] }}'), f"node 'a': matrix: the name 'a[x=b\\nc]' {PRINTABLE}"),
    case("a long value", one(f'{RUN}\nmatrix = {{ x = ["{"b" * 200}"] }}'), f"node 'a': matrix: the name 'a[x={'b' * 36}' {PRINTABLE}"),
    case("of an agent", one('prompt = "x"\nmatrix = { x = ["b\\nc"] }'), f"node 'a': matrix: the name 'a.prompt[x=b\\nc]' {PRINTABLE}"),
    case("alike", one(f'{RUN}\nmatrix = {{ x = [1, "1"] }}'), "node 'a': matrix.x has \"1\" twice"),
    case("both", after('matrix = { x = [1] }\neach = { in = "${{ nodes.a.outcome }}" }'), "node 'b': matrix and each exclude each other"),
    case("no reference", one(f'{RUN}\neach = {{ in = "list" }}'), "node 'a': each.in is no reference to a list"),
    case("item of itself", one(f'{RUN}\neach = {{ in = "${{{{ item }}}}" }}'), "node 'a': item: unknown"),
    case("no list", one(f"{RUN}\neach = {{ max = 3 }}"), "node 'a': each.in is no reference to a list"),
]  # fmt: skip
ROOTS = [
    case("root", after('root = "a"'), "node 'b': root 'a' is no worktree.prepare node", proves=pytest.mark.req("V23")),
    case("no root", one(f'{RUN}\nroot = "z"'), "node 'a': root 'z' is no worktree.prepare node", proves=pytest.mark.req("V23")),
    case("two", nodes(a=TREE, b=TREE, c=f'{RUN}\nafter = ["a", "b"]'), "node 'c': two worktrees reach it, 'a' and 'b'; say root", proves=pytest.mark.req("V23")),
    case("several of a matrix", nodes(t=TREES, b=f'{RUN}\nafter = ["t"]'), f"node 'b': two worktrees reach it, 't[x=1]' and 't[x=2]'; say root{OR_ALIKE}"),
    case("another matrix", nodes(t=TREES, b=f'{RUN}\nafter = ["t"]\nmatrix = {{ y = [1, 2] }}'), f"node 'b': two worktrees reach it, 't[x=1]' and 't[x=2]'; say root{OR_ALIKE}"),
    case("a larger matrix", nodes(t=TREES, b=f'{RUN}\nafter = ["t"]\nmatrix = {{ x = [1, 2], y = [1, 2] }}'), f"node 'b': two worktrees reach it, 't[x=1]' and 't[x=2]'; say root{OR_ALIKE}"),
    case("one value more", nodes(t=TREES, b=f'{RUN}\nafter = ["t"]\nmatrix = {{ x = [1, 4] }}'), f"node 'b': two worktrees reach it, 't[x=1]' and 't[x=2]'; say root{OR_ALIKE}"),
    case("passed on", nodes(t=TREES, b=f'{RUN}\nafter = ["t"]\nmatrix = {{ x = [1] }}', c=f'{RUN}\nafter = ["b"]'), f"node 'c': two worktrees reach it, 't[x=1]' and 't[x=2]'; say root{OR_ALIKE}"),
    case("several said", nodes(t=TREES, b=f'{RUN}\nroot = "t"\nafter = ["t"]'), f"node 'b': root 't' makes two worktrees, 't[x=1]' and 't[x=2]'; name one of them{OR_ALIKE}"),
    case("no such instance", nodes(t=TREES, b=f'{RUN}\nroot = "t[x=9]"\nafter = ["t"]'), "node 'b': root 't[x=9]' is no worktree.prepare node"),
    case("an agent is told once", nodes(t=TREES, b='prompt = "x"\nargs = { runner = "claude" }\nafter = ["t"]'), f"node 'b': two worktrees reach it, 't[x=1]' and 't[x=2]'; say root{OR_ALIKE}"),
    case(
        "one for each",
        nodes(a=f'{RUN}\noutputs = ["l"]', t=f'{TREE}\nafter = ["a"]\neach = {{ in = "${{{{ nodes.a.outputs.l }}}}" }}', b=f'{RUN}\nafter = ["t"]'),
        "node 'b': 't' makes a worktree for each element; say root = \".\"",
    ),
    case("cwd", one(f'{RUN}\ncwd = "x/../../y"'), "node 'a': x/../../y is outside of the repository", proves=pytest.mark.req("V23")),
    case("prompt", one('prompt_file = "../p.md"'), "node 'a': ../p.md is outside of the repository", proves=pytest.mark.req("V23")),
    case("in a prompt", one('prompt = "${{ file:../p }}"'), "node 'a': file:../p: ../p is outside of the repository", proves=pytest.mark.req("V23")),
]  # fmt: skip


CAUSES = "is not an exit code or one of signal, timeout, unknown"
JOB_KEYS = [  # by the code that checks every job, and told before a run is started
    case("retries", one(f"{RUN}\nretries = 101"), "node 'a': retries 101 is not between 0 and 100"),
    case("several", one(f"{RUN}\npriority = 9999999\nretry_jitter = 2"), "node 'a': priority 9999999 is not between -1000000 and 1000000", "node 'a': retry-jitter 2.0 is not between 0 and 1"),
    case("of defaults", f"[defaults]\nretries = -1\n{one(RUN)}", "retries -1 is not between 0 and 100"),
    case("timeout of no length", one(f'{RUN}\ntimeout = "0s"'), "node 'a': timeout must be longer than 0 s and shorter than a hundred years"),
    case("timeout of the run", f'timeout = "0s"\n{one(RUN)}', "timeout must be longer than 0 s and shorter than a hundred years"),
    case("cause", one(f'{RUN}\nretry_on = ["sometimes"]'), f"node 'a': --retry-on 'sometimes' {CAUSES}"),
    case("cause of what is no command", one(f'{RUN}\nretry_on = ["host"]'), f"node 'a': --retry-on 'host' {CAUSES}"),
    case("cause of checks", one(f'uses = "cap.env.shell.cicd.run"\n{RUN}\nretry_on = ["host"]'), f"node 'a': --retry-on 'host' {CAUSES}"),
    case("cause of an agent", one('uses = "control.gate.cicd"\nretry_on = ["host", "limit"]'), f"node 'a': --retry-on 'limit' {CAUSES}"),
    case("cause of an operation", one('task = "shop.report"\nretry_on = ["no class"]'), "node 'a': retry_on 'no class' is not an exit code, a class of exceptions or one of signal, timeout, unknown"),
    case("cause of defaults", f'[defaults]\nretry_on = ["host"]\n{one(RUN)}', f"node 'a': --retry-on 'host' {CAUSES}"),
    case("precondition", one(f'{RUN}\nrequire = ["clean"]'), "node 'a': --require 'clean' is not one of clean_worktree, branch_exists, branch_exists:BRANCH, custom:ID"),
    case("code", one(f"{RUN}\nskip_exit_codes = [0]"), "node 'a': --skip-exit-code 0 is not between 1 and 255"),
    case("variable", one(f'{RUN}\nenv = {{ "1X" = "" }}'), "node 'a': '1X' is not the name of an environment variable"),
    case("label", one(f'{RUN}\nlabels = {{ "a b" = "" }}'), "node 'a': label 'a b' may have letters, digits and . _ / -"),
    case("target", one(f'{RUN}\ntarget = "a b"'), "node 'a': target 'a b' may have letters, digits and . _ / -, at most 64 of them, and begins with a letter or digit"),
    case("resource", one(f'{RUN}\nresources = ["-"]'), "node 'a': resource '-' may have letters, digits and . _ / -, at most 64 of them, and begins with a letter or digit"),
    case("empty program", one('argv = [" "]'), "node 'a': the program's name is empty"),
    case("empty line", one('shell = " "'), "node 'a': the line for the shell (--shell) is empty"),
    case("empty folder", one(f'{RUN}\ncwd = ""'), "node 'a': --cwd is empty; leave it out, or give a path"),
    case("what an agent may use", one('prompt = "x"\nargs = { budget_usd = 0, max_turns = 0 }'), "node 'a': max_turns 0 is not a whole number from 1 to 100,000", "node 'a': budget_usd 0 is not a sum in dollars above 0"),
]  # fmt: skip


EVERY = [
    *FORM,
    *DOING,
    *EDGES,
    *ARTIFACTS,
    *LOOPS,
    *NEARLY,
    *REFERENCES,
    *FANS,
    *ROOTS,
    *MEANT,
    *JOB_KEYS,
]


@pytest.mark.req("V100")
@pytest.mark.parametrize(("text", "words"), EVERY)
def test_it_is_refused_in_these_words(text: str, words: list[str]) -> None:
    assert wrong_with(text) == words


@pytest.mark.req("V6", "V7", "V14", "V15", "V16", "V18", "V19", "V20", "V25")
def test_a_start_of_what_is_refused_writes_nothing(bench: Bench) -> None:
    for text, words in (each.values for each in EVERY):
        with pytest.raises(WorkflowError) as refused:
            Started(bench, text)
        assert {*words} <= {each.words for each in refused.value.mistakes}
        assert refused.value.exit_code == 5
    with bench.store.read() as tx:
        assert tx.jobs.active() == [] and tx.workflows.since(0, 10) == []
        assert tx.events.since(0, 10) == []


PARAMS = """\
[params]
n = { type = "int", default = 1 }
who = { type = "text", choices = ["ada", "bob"] }
v = { type = "text", pattern = '[0-9]+', default = "1" }
s = { type = "slug", default = "x" }
"""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "parameter 'who' has no value; give --set who=VALUE"),
        ({"who": "ada", "x": "1"}, "there is no parameter 'x'; there are n, who, v, s"),
        ({"who": "eve"}, 'parameter \'who\' is "eve"; give "ada" or "bob"'),
        ({"who": "ada", "n": "x"}, "parameter 'n' is \"x\"; give a whole number"),
        ({"who": "ada", "n": "true"}, "parameter 'n' is \"true\"; give a whole number"),
        ({"who": "ada", "v": "a1"}, "parameter 'v' is \"a1\"; give what fits [0-9]+"),
        ({"who": "ada", "v": "1\n"}, "parameter 'v' is \"1\\n\"; give what fits [0-9]+"),
        (
            {"who": "ada", "s": "../x"},
            "parameter 's' is \"../x\"; give small letters, digits, '.', '_' and '-'",
        ),
        ({"who": "a\0"}, "parameter 'who' is \"a\\u0000\"; give a text of UTF-8, without NUL"),
        (
            {"who": "ada", "v": "\udcff"},
            "parameter 'v' is \"\udcff\"; give a text of UTF-8, without NUL",
        ),
    ],
)
def test_a_parameter_is_refused(given: dict[str, str], words: str) -> None:
    assert refused(PARAMS + one(RUN), **given) == [words]


def test_a_file_without_parameters_says_that_there_are_none() -> None:
    assert refused(one(RUN), x=1) == ["there is no parameter 'x'; there are none"]


def test_inputs_are_counted_and_given_once() -> None:
    workflow = checked('inputs = ["n"]\nparams.n = 1\n' + one(RUN))
    assert inputs_of(workflow, ["3"], {}) == {"n": "3"}
    with pytest.raises(InvalidInputError, match=r"w takes 1 input \(n\); 2 are given"):
        inputs_of(workflow, ["3", "4"], {})
    with pytest.raises(InvalidInputError, match="w takes no inputs; give --set K=V"):
        inputs_of(checked(one(RUN)), ["3"], {})
    with pytest.raises(InvalidInputError, match="parameter 'n' is given twice"):
        inputs_of(workflow, ["3"], {"n": "4"})


def test_what_a_parameter_fills_is_checked_when_it_is_filled() -> None:
    text = 'params.p = "x"\n' + one(f'{RUN}\ncwd = "${{{{ params.p }}}}"')
    assert refused(text, p="a/../..") == ["node 'a': a/../.. is outside of the repository"]
    text = 'params.p = "x"\n' + one(f'{RUN}\nneeds = ["plan_doc:${{{{ params.p }}}}"]')
    assert compiled(text).nodes[0].needs == ("plan_doc:x",)
    (words,) = refused(text, p="a b")
    assert words.startswith("node 'a': ") and "plan_doc" in words


def test_an_argument_is_checked_when_it_is_filled_and_told_once() -> None:
    text = 'params.p = "no"\n' + one(
        'uses = "cap.env.builtin.worktree.cleanup"\nargs.always = "${{ params.p }}"\n'
        "matrix = { x = [1, 2] }"
    )
    assert wrong_with(text) == []
    assert refused(text) == ["node 'a': always is \"no\"; give true or false"]
    assert compiled(text.replace('"no"', "true")).nodes[0].args == {"always": True}


def test_more_nodes_than_a_graph_may_have_are_refused() -> None:
    text = one(f"{RUN}\nmatrix = {{ x = [1, 2, 3] }}") + nodes(b=RUN)
    assert wrong_with(text, limit=4) == []
    assert wrong_with(text, limit=3) == ["4 nodes are more than scheduler.graph_limit"]


# -- all at once, each with its place ----------------------------------------------------------

SEVERAL = """\
# a file
timeout = "soon"

[nodes.a]
argv = ["x"]
  after = ["z"]

[nodes.b]
uses = "what"
on.failed = ["y"]
"""


def test_all_mistakes_are_told_together_in_the_order_of_the_file() -> None:
    _, problems = check_text(SEVERAL, name="w", file=FILE, limit=LIMIT)
    assert [each.placed for each in problems.mistakes] == [
        'timeout is "soon"; give a duration like "5m" (line 2, column 1)',
        "node 'a': after 'z' names no node (line 6, column 3)",
        f"node 'b': uses unknown label 'what'; there are {FAMILIES} (line 9, column 1)",
        "node 'b': on.failed 'y' names no node (line 10, column 1)",
    ]
    with pytest.raises(WorkflowError) as refusal:
        problems.raise_if_any()
    assert refusal.value.exit_code == 5
    assert str(refusal.value).startswith(f"{FILE}: timeout is")
    assert str(refusal.value).count(f"{FILE}: ") == 4


def test_only_the_first_twenty_are_told() -> None:
    text = nodes(**{f"n{number}": 'argv = ["x"]\nafter = ["z"]' for number in range(30)})
    with pytest.raises(WorkflowError) as refusal:
        compiled(text)
    assert (len(refusal.value.mistakes), refusal.value.count) == (MOST_SHOWN, 30)
    assert str(refusal.value).endswith("; and 10 more")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = " + "[" * 17 + "]" * 17, "line 1: its values nest too deeply; 16 levels are allowed"),
        ("a" + ".a" * 20 + " = 1", "line 1: its values nest too deeply; 16 levels are allowed"),
    ],
)
def test_a_file_that_nests_too_deeply_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        compiled(text)
    assert str(refusal.value) == f"{FILE}: {words}"


def test_a_file_may_have_a_mebibyte() -> None:
    assert LARGEST_FILE == 1 << 20


def test_long_words_are_cut() -> None:
    (words,) = wrong_with(one(f'{RUN}\nafter = ["{"x" * 10_000}"]'))
    assert len(words) == 500 and words.endswith("...")


@pytest.mark.req("V23")
def test_a_path_that_leaves_and_comes_back_is_outside() -> None:
    for path in ("../repository/x", "a/../../repository"):
        (words,) = wrong_with(one(f'{RUN}\ncwd = "{path}"'))
        assert words == f"node 'a': {path} is outside of the repository"
    assert wrong_with(one(f'{RUN}\ncwd = "a/../b/./c"')) == []
