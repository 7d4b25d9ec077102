"""TOML of strangers: read in time that grows with its size, refused with one clear error."""

import os
import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.base.errors import InvalidInputError
from headway.base.home import Home
from headway.base.new_home import make_home
from headway.base.toml_file import DEEPEST, LARGEST_FILE, MOST_KEYS, parse, read_content
from headway.integrations.agents.files import load_runner
from headway.jobs.settings import load_config, write_config

QUICK = 2.0  # seconds, on a busy machine; what is not bounded takes ten times as long

EXCESS = {
    "one key of many parts": ".".join(["a"] * 20_000) + " = 1\n",
    "one quoted key of many parts": ".".join(['"a"'] * 10_000) + " = 1\n",
    "one section of many parts": "[" + ".".join(["a"] * 20_000) + "]\n",
    "one array of sections of many parts": "[[" + ".".join(["a"] * 20_000) + "]]\n",
    "arrays in arrays": "a = " + "[" * 30_000,
    "closed arrays in arrays": "a = " + "[" * 20_000 + "]" * 20_000 + "\n",
    "tables in tables": "a = " + "{a=" * 15_000,
    "many dotted keys": "".join(f"a.b.c.k{at} = 1\n" for at in range(4500)),
    "many keys": "".join(f"k{at}=1\n" for at in range(6000)),
    "many keys in a table": "a={" + ",".join(f"k{at}=1" for at in range(6000)) + "}\n",
    "a text without an end": 'a="""' + '\\"""' * 15_000,
    "a number of many digits": "a = " + "1" * 60_000 + "\n",
    "a large file": "#" * (LARGEST_FILE + 1),
    "no UTF-8": "a = '\udcff'\n",
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(str(tmp_path / ".headway"))
    make_home(made)
    return made


def refused_quickly(what: str, reading: object) -> str:
    begin = time.monotonic()
    with pytest.raises(InvalidInputError) as caught:
        reading()  # type: ignore[operator]
    assert time.monotonic() - begin < QUICK, what
    assert len(str(caught.value)) < 1000, "one clear error, not one for each key"
    return str(caught.value)


@pytest.mark.parametrize("what", EXCESS)
def test_a_config_beyond_all_bounds_is_refused_in_time(home: Home, what: str) -> None:
    content = EXCESS[what].encode(errors="surrogateescape")
    Path(home.config).write_bytes(content)
    assert home.config in refused_quickly(what, lambda: load_config(home))
    refused_quickly(what, lambda: write_config(home, "worker.idle", "5s"))
    assert Path(home.config).read_bytes() == content


@pytest.mark.parametrize("what", EXCESS)
def test_a_runner_beyond_all_bounds_is_refused_in_time(home: Home, what: str) -> None:
    path = Path(home.path, "runners", "x.toml")
    path.parent.mkdir()
    path.write_bytes(EXCESS[what].encode(errors="surrogateescape"))
    assert str(path) in refused_quickly(what, lambda: load_runner("x", home.path))


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("", {}),
        (".".join("a" * DEEPEST) + " = 1", None),
        ("a = [" + "1.5, " * 500 + "]", {"a": [1.5] * 500}),
        ("".join(f"k{at}=1\n" for at in range(MOST_KEYS)), None),
        ('a = """x.' + "y." * 50 + '"""', None),
        ("a = '''" + "[" * 50 + "'''", None),
        ("# " + "[." * 50 + "\na = 1", {"a": 1}),
        ('a = "' + "\\\\." * 50 + '"', None),
        ("a = ['" + "].[." * 50 + "']", None),
        ('"' + "." * 50 + '" = 1', {"." * 50: 1}),
        ("a = " + "[" * DEEPEST + "]" * DEEPEST, None),
    ],
)
def test_what_is_within_bounds_is_read_as_ever(text: str, document: object) -> None:
    read = parse("x", text.encode())
    assert read == tomllib.loads(text)
    assert document is None or read == document


PIECES = ['"', "'", '"""', "'''", "\\", "[", "]", "{", "}", "a", ".", "=", "\n", "#", ",", "1", " "]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_no_text_is_taken_for_another(text: str) -> None:
    """What the parser reads, the look before it lets pass, unless it goes too deep."""
    try:
        expected = tomllib.loads(text)
    except ValueError:
        with pytest.raises(InvalidInputError):
            parse("x", text.encode())
        return
    assert parse("x", text.encode()) == expected


@pytest.mark.parametrize("kind", ["fifo", "folder", "link"])
def test_what_is_no_file_is_refused_and_nobody_waits(home: Home, kind: str) -> None:
    if kind == "fifo":
        os.mkfifo(home.config)
    elif kind == "folder":
        os.mkdir(home.config)
    else:
        os.symlink("nowhere", home.config)
    with pytest.raises(InvalidInputError, match=r"is not a file|cannot be read"):
        load_config(home)
    os.rmdir(home.config) if kind == "folder" else os.unlink(home.config)
    assert read_content(home.config) is None
