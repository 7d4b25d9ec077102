"""What a type checker says of code that uses tasks. Where it must complain, an ignore stands; one
that is not needed is itself an error."""

import ast
import subprocess
import sys
from pathlib import Path

from headway.functions import task_options as taskoptions
from headway.functions import tasks

USE = """
from typing import assert_type

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
