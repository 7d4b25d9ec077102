"""No effect of engine and supervisor without a crash point, and no crash point without a visit."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from test_points import POINTS

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src" / "headway"
FILES = sorted(SOURCE.rglob("*.py"))
# The worker and all that it does through its parts and its hosts, and what runs beside each job.
ROOMS = (
    *("worker", "supervise", "functions/pool", "schedules/part", "schedules/timekeeper"),
    *("schedules/jobsfile/part", "schedules/jobsfile/rounds", "schedules/jobsfile/entries"),
    *("schedules/jobsfile/reload", "workitems/part", "workitems/helpers", "jobs/passes"),
    *("webhooks/part", "webhooks/courier", "webhooks/expansion"),
    *("base/worker_lock", "base/watchlist", "base/background", "base/wake_up", "base/proc"),
)


def name_of(file: Path) -> str:
    return file.relative_to(SOURCE).with_suffix("").as_posix()


DURABLE = [
    file for file in FILES if f"{name_of(file)}/".startswith(tuple(f"{each}/" for each in ROOMS))
]

# What leaves a trace that outlives the process: on disk, in the store, or in another process.
EFFECTS = {
    *("fsync", "fdatasync", "rename", "replace", "link", "symlink", "commit"),
    *("fork", "forkpty", "posix_spawn", "posix_spawnp", "Popen"),
    *("send", "sendall", "sendmsg", "sendto", "send_fds", "write"),
}
OF_A_FOLDER = {"create", "touch", "remove"}  # evidence comes and goes through these alone
EXECS = {"execv", "execve", "execvp", "execvpe"}

# file, function: why the effects in it need no point of their own
EXCUSED = {
    ("supervise/cgroup", "_write"): "a control group; each caller names what it did with it",
    ("supervise/child", "_exec"): "its caller names the instant before",
    ("supervise/child", "_prefer_for_oom_kill"): "a wish to the kernel that dies with the process",
    ("functions/pool/host", "flush"): "the verb itself; who hands out calls names it",
    ("supervise/direct", "_become"): "its words, after which it exits at once",
    ("supervise/direct", "_send"): "the verb itself; end of file and silence say that nothing came",
    (
        "worker/functions",
        "adopt",
    ): "the store names it; until then the next worker adopts them again",
    ("worker/dispatch", "committed"): "the host pool names what it sends",
    ("supervise/evidence", "_remove_files"): "its callers name the removal as a whole",
    ("supervise/evidence", "ask_for_worker"): "a temporary name; the rename is named",
    ("supervise/folder", "rename"): "the verb itself; each caller names what it renamed",
    ("supervise/folder", "write_all"): "the verb itself; each caller names what it wrote",
    ("supervise/helper", "__init__"): "the verb itself; who has it run names it",
    ("supervise/helper", "_become"): "its words, after which it exits at once; or git's own doing",
    (
        "workitems/helpers",
        "_start",
    ): "nobody waits for it; the kernel ends it, the next pass runs another",
    ("functions/pool/processes", "ask"): "the verb itself; who hands out calls names it",
    ("worker/fastlane/lane", "committed"): "the host pool names what it sends",
    ("worker/fastlane/steps", "step"): "the host pool names what it sends",
    ("worker/fastlane/steps", "_meanwhile"): "the host pool names what it sends",
    ("supervise/logs", "_forget_oldest"): "output, which is no evidence",
    ("supervise/logs", "append"): "output, which is no evidence",
    ("supervise/tree", "fork"): "the verb itself; the supervisor names it",
    ("base/worker_lock", "_become_worker"): "its report, after which it exits at once",
}


# Points of a command that has neither jobs nor workers under it, or of an operation, which knows no
# store: the test that visits them.
VISITED_ELSEWHERE = {
    "agent": "integrations/agents/test_parking.py",
    "restore": "cli/test_cli_restore_midway.py",
    "direct": "cli/test_cli_direct.py",
    "mcp": "mcp/test_stdio.py",
    **dict.fromkeys(("webhooks", "courier"), "webhooks/test_courier_crashes.py"),
    **dict.fromkeys(
        ("worktree", "commit", "plan", "integrate", "patch", "conflict"),
        "workflows/test_operation_crashes.py",
    ),
}


class Effect(NamedTuple):
    file: str
    function: str
    what: str
    line: int  # the last one of it


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def inside(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """What is in a function, but not in one that is inside of it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef):
            yield node
            waiting.extend(ast.iter_child_nodes(node))


def attribute_called(node: ast.AST) -> tuple[str, str] | None:
    """`os`, `fork` of `os.fork(...)`; of a longer receiver its last name."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    receiver = node.func.value
    name = receiver.attr if isinstance(receiver, ast.Attribute) else getattr(receiver, "id", "")
    return name.lstrip("_"), node.func.attr


def is_effect(receiver: str, verb: str) -> bool:
    if verb in ("replace", "write"):  # others have them too: texts, and stores
        return receiver == "os"
    if verb in OF_A_FOLDER:
        return receiver in ("folder", "opened")
    return verb in EFFECTS or verb in EXECS


def effects(file: str, function: ast.FunctionDef) -> Iterator[Effect]:
    for node in inside(function):
        called = attribute_called(node)
        if called is not None and is_effect(*called):
            yield Effect(file, function.name, called[1], node.end_lineno or 0)
        if isinstance(node, ast.With):
            managers = [attribute_called(item.context_expr) for item in node.items]
            if any(each is not None and each == ("store", "write") for each in managers):
                yield Effect(file, function.name, "commit", node.end_lineno or 0)


def points(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int]]:
    for node in nodes:
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "reach":
            (name,) = node.args
            assert isinstance(name, ast.Constant), f"line {node.lineno}: a point is a literal"
            yield name.value, node.lineno


def unnamed(file: str, source: str) -> list[Effect]:
    """Effects without a point between them and the next effect of another kind; and what is
    exec'd without a point before it, since nothing comes after."""
    found = []
    for function in functions(ast.parse(source)):
        lines = sorted(line for _, line in points(inside(function)))
        here = sorted(effects(file, function), key=lambda effect: effect.line)
        for number, effect in enumerate(here):
            later = [each.line for each in here[number + 1 :] if each.what != effect.what]
            until = later[0] if later else float("inf")
            if effect.what in EXECS:
                named = any(line < effect.line for line in lines)
            else:
                named = any(effect.line < line <= until for line in lines)
            if not named:
                found.append(effect)
    return found


@pytest.mark.parametrize("file", DURABLE, ids=name_of)
def test_every_effect_has_its_point(file: Path) -> None:
    missing = unnamed(name_of(file), file.read_text())
    assert [each for each in missing if (each.file, each.function) not in EXCUSED] == []


def test_every_excuse_is_needed() -> None:
    used = {
        (e.file, e.function) for file in DURABLE for e in unnamed(name_of(file), file.read_text())
    }
    assert set(EXCUSED) == used


def test_every_point_of_the_source_is_visited() -> None:
    named = {name for file in FILES for name, _ in points(ast.walk(ast.parse(file.read_text())))}
    elsewhere = {name for name in named if name.partition(".")[0] in VISITED_ELSEWHERE}
    assert set(POINTS) == named - elsewhere
    for name in elsewhere:
        module, _, what = name.partition(".")
        tree = ast.parse((TESTS / VISITED_ELSEWHERE[module]).read_text())
        texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        assert {what, name} & texts, f"{VISITED_ELSEWHERE[module]} does not visit {name}"


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("def f(fd):\n    os.fsync(fd)\n", ["fsync"]),
        ("def f(fd):\n    reach('x')\n    os.fsync(fd)\n", ["fsync"]),
        ("def f(fd):\n    os.fsync(fd)\n    reach('x')\n", []),
        ("def f(fd):\n    os.fsync(fd)\n    os.rename(a, b)\n    reach('x')\n", ["fsync"]),
        ("def f(fd):\n    with self._store.write() as tx:\n        reach('x')\n", ["commit"]),
        ("def f(fd):\n    with self._store.write() as tx:\n        pass\n    reach('x')\n", []),
        ("def f(fd):\n    with self.store.read() as tx:\n        pass\n", []),
        ("def f(a):\n    os.execv(a, a)\n    reach('x')\n", ["execv"]),
        ("def f(a):\n    reach('x')\n    os.execv(a, a)\n", []),
        ("def f(s):\n    s.replace('a', 'b')\n", []),
        ("def f(fd):\n    def g():\n        os.fork()\n    reach('x')\n", ["fork"]),
    ],
)
def test_an_effect_without_a_point_would_be_found(source: str, missing: list[str]) -> None:
    assert [each.what for each in unnamed("f.py", source)] == missing
