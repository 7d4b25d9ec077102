"""What a type checker says of code that uses tasks. Where it must complain, an ignore stands; one
that is not needed is itself an error."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

from headway.functions import app_workflow, tasks
from headway.functions import task_options as taskoptions
from headway.functions.app import App
from headway.workflows.reader import NODE_KEYS, TOP_KEYS, WHAT_IT_DOES

USE = """
from typing import Any, assert_type

import headway
from headway import Handle
from headway.functions.tasks import Call

app = headway.App()


@app.task
def add(x: int, y: int = 0) -> int:
    return x + y


@app.task(retries=3, timeout="5m", retry_on=[ConnectionError, "timeout"])
async def fetch(url: str) -> dict[str, int]:
    return {url: 1}


assert_type(add(1), int)
assert_type(add.submit(1, y=2, priority=3), Handle[int])
assert_type(add.options(after=[add.submit(1), "job-2"]).submit(1).result(), int)
assert_type(fetch.submit("there").result(timeout=5), dict[str, int])
assert_type(add.call(1), Call)
add.call("1")  # type: ignore[arg-type]
add.call(1, z=3)  # type: ignore[call-arg]
add.options(prority=3)  # type: ignore[call-arg]
add.options(retries="three")  # type: ignore[arg-type]
add.delay(1)  # type: ignore[attr-defined]
app.task(foo=3)  # type: ignore[call-overload]

flow = app.workflow("flow", params={"n": 1}, timeout=60, finally_=["last"])
assert_type(flow, headway.AppWorkflow)
assert_type(flow.command("a", ["true"], retries=3), str)


@flow.node(after=["a"], arguments={"x": "${{ params.n }}"})
def double(x: int) -> int:
    return 2 * headway.current().step("same", add, x, y=0)


@flow.node
async def last() -> str:
    return await headway.current().step("said", said, 3)


async def said(n: int) -> str:
    return str(n)


assert_type(double(1), int)
assert_type(double.submit(1).result(), int)
assert_type(flow.start(n=3), headway.RunHandle)
assert_type(app.run("change", slug="x").wait(timeout="5m")["state"], Any)
flow.command("b", ["true"], retreis=3)  # type: ignore[call-arg]
headway.current().step("x", add, "y")  # type: ignore[arg-type]
"""


def test_results_and_options_have_types(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(USE)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "use.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout


def test_each_option_is_known_to_type_checkers() -> None:
    source = ast.parse(Path(tasks.__file__).read_text())
    classes = [each for each in ast.walk(source) if isinstance(each, ast.ClassDef)]
    (options,) = [each for each in classes if each.name == "Options"]
    fields = [line for line in options.body if isinstance(line, ast.AnnAssign)]
    assert {ast.unparse(field.target) for field in fields} == taskoptions.OPTIONS


def test_each_key_of_a_node_is_known_to_type_checkers() -> None:
    source = ast.parse(Path(app_workflow.__file__).read_text())
    classes = [each for each in ast.walk(source) if isinstance(each, ast.ClassDef)]
    (keys,) = [each for each in classes if each.name == "NodeKeys"]
    fields = [line for line in keys.body if isinstance(line, ast.AnnAssign)]
    own = {"uses", "args", *WHAT_IT_DOES}
    assert {ast.unparse(field.target) for field in fields} == {*NODE_KEYS} - own


def test_an_app_takes_each_key_of_a_file() -> None:
    taken = inspect.signature(App.workflow).parameters.keys() - {"self", "name"}
    assert {each.removesuffix("_") for each in taken} == TOP_KEYS.keys() - {"nodes"}
