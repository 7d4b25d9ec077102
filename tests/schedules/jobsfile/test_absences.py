"""What a good jobs file names and is not there is found before an entry is due."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from headway.base.home import Home
from headway.base.new_home import make_home
from headway.jobs.settings import load_config
from headway.schedules.jobsfile.absences import absences, sign_of_shell


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("make test", None),
        ("ls | wc -l", "|"),
        ("cd /tmp && ls", "&&"),
        ("a;b", ";"),
        ("echo x > file", ">"),
        ("echo `date`", "`"),
        ("echo $HOME/x", "$HOME/x"),
        ('echo "in $HOME"', '$HOME"'),
        ('echo "$(date)"', '$(date)"'),
        ("ls ~/x", "~"),
        ("cd /tmp", "cd"),
        ("LANG=C sort", "LANG=C"),
        ("grep '|' file", None),
        ("grep '$HOME' file", None),
        ("grep \\| file", None),
        ('grep "a;b" file', None),
        ("find . -name *.py", None),
        ("echo 5$ a~b x=y", None),
    ],
)
def test_a_line_for_a_shell_is_known_by(text: str, sign: str | None) -> None:
    assert sign_of_shell(text) == sign


def found(folder: Path, text: str, files: Mapping[str, str] = {}) -> dict[str, str]:
    home = Home(str(folder / ".headway"))
    make_home(home)
    for name, content in files.items():
        (folder / name).write_text(content)
    problems = absences(text.encode(), home, load_config(home))
    return {f"{each.line} {each.key}": each.text for each in problems}


@pytest.mark.processes
def test_what_is_not_there_is_named_with_its_line_and_key(tmp_path: Path) -> None:
    text = """jobs:
  program: {type: command, run: no-such-program -x, interval: 1}
  shell: {type: command, run: "ls | wc -l", interval: 1}
  list: {type: command, run: [sh, -c, "ls | wc -l"], interval: 1}
  name:
    type: script
    run: nowhere
    interval: 1
    conditions: [office, known, "command:no-such-test x", file_exists:x, no_agents_running]
  function: {type: script, run: "mine:nothing", interval: 1}
  module: {type: script, run: "no_such.module:x", interval: 1}
  good: {type: script, run: "mine:there", interval: 1}
  registered: {type: script, run: sweep, interval: 1}
  off: {type: command, run: no-such-program, interval: 1, enabled: false}
"""
    module = """
import headway
def there(): ...
@headway.job("sweep")
def sweep(): ...
@headway.condition("known")
def known(): raise SystemExit("it was asked")
"""
    config = '[app]\nmodules = ["mine"]\n'
    said = found(tmp_path, text, {"mine.py": module, ".headway/config.toml": config})
    assert list(said) == [
        "2 jobs.program.run",
        "3 jobs.shell.run",
        "7 jobs.name.run",
        "9 jobs.name.conditions",
        "10 jobs.function.run",
        "11 jobs.module.run",
    ]
    assert "program 'no-such-program' was not found" in said["2 jobs.program.run"]
    assert said["3 jobs.shell.run"].endswith('write run: [sh, -c, "ls | wc -l"]')
    assert "no job 'nowhere' is registered" in said["7 jobs.name.run"]
    assert "no condition 'office' is known" in said["9 jobs.name.conditions"]
    assert said["10 jobs.function.run"] == "module mine has no function 'nothing'"
    assert "No module named 'no_such'" in said["11 jobs.module.run"]


@pytest.mark.processes
def test_a_module_that_cannot_be_imported_is_the_reason(tmp_path: Path) -> None:
    text = "jobs:\n  sweep: {type: script, run: sweep, interval: 1}\n"
    config = '[app]\nmodules = ["gone"]\n'
    said = found(tmp_path, text, {".headway/config.toml": config})
    assert "module gone cannot be imported" in said["2 jobs.sweep.run"]


def test_nothing_of_a_home_that_is_not_trusted_is_imported(tmp_path: Path) -> None:
    folder = tmp_path / ".headway"
    folder.mkdir()
    (tmp_path / "mine.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    home = Home(str(folder))
    text = b"jobs:\n  x: {type: script, run: 'mine:x', interval: 1}\n"
    assert absences(text, home, load_config(home)) == []
    assert not (tmp_path / "imported").exists()
