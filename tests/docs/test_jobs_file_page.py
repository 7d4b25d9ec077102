"""The page about the jobs file: its table has every key, its examples do what they say."""

import re
from pathlib import Path

import pytest
from test_tour import commands
from test_tutorial import BLOCK

from headway.base.home import Home
from headway.base.new_home import make_home
from headway.cli.main import run
from headway.schedules.jobsfile.keys import KEYS, TYPES, default_of
from headway.schedules.jobsfile.nodes import LARGEST_FILE
from headway.schedules.jobsfile.reader import read_jobs_file
from headway.schedules.jobsfile.yaml import DEEPEST, MOST_NODES

PAGE = (Path(__file__).parents[2] / "docs" / "jobs-file.md").read_text(encoding="utf-8")
# The section about functions has files of its own, which test_example_pages.py runs.
SECTION = PAGE.partition("\n## Functions of your own")[2].partition("\n## ")[0]
FILES = {
    options.strip(): text
    for kind, options, text in BLOCK.findall(PAGE.replace(SECTION, ""))
    if kind == "yaml"
}
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.split("## The keys")[1].split("\n## ")[0].splitlines()
    if line.startswith("| `")
]
ELSE = {
    "interval": "this, or `cron`",
    "cron": "this, or `interval`",
    "interval_active": "`interval`",
    "interval_idle": "`interval`",
}


def expected_rows() -> list[list[str]]:
    """Key, types, value and default of each row that there must be."""
    found = []
    for name, key in KEYS.items():
        forms = {}
        for kind, form in key.forms.items():
            forms.setdefault(form.says, []).append(kind)
        for says, kinds in forms.items():
            of = "all" if set(kinds) == set(TYPES) else ", ".join(kinds)
            default = "required" if key.required else ELSE.get(name, written(default_of(name)))
            found.append([f"`{name}`", of, says, default])
    return found


def written(value: object) -> str:
    if value is None or value == []:
        return "none"
    if isinstance(value, list):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_the_table_has_every_key_as_the_reader_knows_it() -> None:
    assert [row[:4] for row in ROWS] == expected_rows()
    assert all(len(row) == 5 and row[4] for row in ROWS)


def test_the_example_is_good_and_shows_every_type() -> None:
    entries = read_jobs_file(FILES[".headway/jobs.yaml"].encode())
    assert {entry.type for entry in entries} == set(TYPES)
    assert len(entries) == 5


@pytest.mark.req("C17")
@pytest.mark.processes
def test_the_commands_of_the_page_show_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADWAY_HOME", raising=False)
    make_home(Home(str(tmp_path / ".headway")))
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    shown = commands(PAGE)
    assert len(shown) == 2
    for command, told in shown:
        run(command.split()[1:])
        assert capsys.readouterr().err == told


def test_the_limits_of_the_page_are_those_of_the_reader() -> None:
    assert LARGEST_FILE == 1 << 20
    assert re.search(rf"At most 1 MiB, {DEEPEST} levels and {MOST_NODES:,} values", PAGE)
