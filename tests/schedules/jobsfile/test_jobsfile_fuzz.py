"""Whatever stands in the file: entries, or a JobsFileError, in bounded time and memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import headway
from headway.schedules.jobsfile.model import Entry
from headway.schedules.jobsfile.problems import MOST_PROBLEMS
from headway.schedules.jobsfile.reader import JobsFileError, read_jobs_file
from headway.schedules.jobsfile.schema import schema_document

MIB = 1 << 20
ENTRY = b"jobs:\n  it: {type: script, run: f, interval: 60, conditions: [a]}\n"


def laughs() -> bytes:
    lines = ["lol0: &lol0 lol"]
    lines += [f"lol{n}: &lol{n} [{', '.join([f'*lol{n - 1}'] * 9)}]" for n in range(1, 10)]
    return "\n".join([*lines, "jobs: *lol9"]).encode()


# Each as large as a file may be; but what is read to its end is an eighth of that, to save time.
PART = MIB >> 3
BOMBS = {
    "billion laughs": laughs(),
    "quadratic blowup": b"a: &a " + b"x" * 50_000 + b"\nb: [" + b"*a," * 100_000 + b"]",
    "lists": b"[" * MIB,
    "mappings": b"{" * MIB,
    "mappings with keys": b"{a: " * (MIB // 4),
    "lists on lines": b"[\n" * (MIB // 2),
    "items in items": b"- " * (MIB // 2),
    "keys of keys": b"? " * (MIB // 2),
    "empty keys": b"?\n" * (MIB // 2),
    "deep maps": b"".join(b" " * depth + b"a:\n" for depth in range(1_400)),
    "closing only": b"]" * MIB,
    "many values": b"[" + b"[]," * (MIB // 3 - 1) + b"]",
    "many keys": b"jobs:\n" + b"".join(b" k%d: 1\n" % n for n in range(30_000)),
    "many entries": b"jobs:\n" + b"".join(b" k%d: {type: x}\n" % n for n in range(10_000)),
    "one key again": b"a: 1\n" * (MIB // 5),
    "one long word": b"a" * PART,
    "one long quote": b'"' + b"a" * (PART - 2) + b'"',
    "lines of a quote": b'"' + b"a\n" * (PART // 2 - 1) + b'"',
    "lines of a word": b"a\n" * (PART // 2),
    "escapes": b'"' + b"\\n" * (PART // 2 - 1) + b'"',
    "comments": b"#\n" * (PART // 2),
    "spaces": b" " * PART,
    "line ends": b"\r" * PART,
    "colons": b"a:" * (PART // 2),
    "a block": b"|\n" + b" a\n" * (PART // 3 - 1),
    "a folded block": b">\n" + b" a\n" * (PART // 3 - 1),
    "anchors": b"&a " * (MIB // 3),
    "a long tag": b"!" + b"a" * (PART - 1),
    "tag directives": b"".join(b"%%TAG !a%d! x\n" % n for n in range(6_000)) + b"--- a",
    "documents": b"---\n" * (MIB // 4),
    "a python object": b"jobs: !!python/object/apply:os.system [touch /tmp/pwned]",
    "a python name": b"jobs: !!python/name:os.system",
    "a python module": b"? !!python/module:antigravity\n: 1",
    "a merge of itself": b"a: &a {<<: *a}",
    "numbers": b"jobs: {it: {type: script, run: f, interval: " + b"9" * 100_000 + b"}}",
    "a version": b"%YAML " + b"9" * 5_000 + b".1\n--- a",
    "not a character": b'jobs: "\\U00110000"',
    "half a pair": b'jobs: {"\\ud800": 1}',
    "nan": b"jobs: {it: {type: script, run: f, interval: .nan}}",
    "infinity": b"jobs: {it: {type: script, run: f, interval: .inf}}",
    "sexagesimal": b"jobs: {it: {type: script, run: f, interval: 1:30}}",
    "binary": bytes(range(256)) * (MIB // 256),
    "utf-16": ("\ufeff" + "a: 1\n").encode("utf-16-le"),
    "overlong": b"jobs: \xc0\xaf",
    "too large": b"#" * (64 * MIB),
    "open quotes": b"jobs: {it: {type: command, interval: 1, run: \"" + b"'a " * 30_001 + b'"}}',
    "a long cron": b"jobs: {it: {type: script, run: f, cron: '" + b"1," * 50_000 + b"'}}",
    "a wide cron": b"jobs: {it: {type: script, run: f, cron: '0-999999999 * * * *'}}",
    "a long zone": b"jobs: {it: {type: script, cron: '@daily', timezone: " + b"a/" * 9_999 + b"}}",
    "a zone outside": b"jobs: {it: {type: script, cron: '@daily', timezone: ../../etc/passwd}}",
    "a long name": b"jobs: {? " + b"a" * 500_000 + b" : 1}",
    "a long path": b"jobs: {it: {type: script, run: f, interval: 1, conditions: ['file_exists:"
    + b"a/" * 100_000 + b"..']}}",
}  # fmt: skip
JUDGE = """
import resource, signal, sys
from headway.schedules.jobsfile.reader import JobsFileError, read_jobs_file
from headway.schedules.timing.rules import parse_cron
parse_cron("@daily", "UTC")
seconds, room = int(sys.argv[1]), int(sys.argv[2])
content = sys.stdin.buffer.read()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))
spent = resource.getrusage(resource.RUSAGE_SELF)
ceiling = int(spent.ru_utime + spent.ru_stime) + 1 + seconds
resource.setrlimit(resource.RLIMIT_CPU, (ceiling, ceiling + 1))
for bomb in content.split(b"\\0BOMB\\0"):
    try:
        read_jobs_file(bomb)
    except JobsFileError as error:
        assert error.problems and all(problem.line >= 1 for problem in error.problems)
        assert len(str(error)) < 100_000, len(str(error))
    else:
        raise SystemExit(f"taken: {bomb[:60]!r}")
"""


def judged(content: bytes, *, seconds: int, room: int) -> None:
    """Read it in a process that is ended by the kernel if it takes more than this."""
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, str(seconds), str(room)],
        input=content,
        env={"PYTHONPATH": str(Path(headway.__file__).parent.parent)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]


@pytest.mark.parametrize("names", [list(BOMBS)[n::4] for n in range(4)], ids=["1", "2", "3", "4"])
def test_bombs_are_refused_in_bounded_time_and_memory(names: list[str]) -> None:
    # fault H3; a fourth of them in one process, each with at most some seconds of a processor
    judged(b"\0BOMB\0".join(BOMBS[name] for name in names), seconds=50, room=300 * MIB)


def test_a_python_object_is_not_made(tmp_path: Path) -> None:
    # fault H3: what a full loader would have run
    made = tmp_path / "made"
    for tag in ("object/apply:os.system", "object/new:os.system", "object:os.system"):
        with pytest.raises(JobsFileError, match="tag"):
            read_jobs_file(f"jobs: !!python/{tag} ['touch {made}']".encode())
    assert not made.exists()


def outcome(content: bytes) -> list[Entry] | JobsFileError:
    try:
        entries = read_jobs_file(content)
    except JobsFileError as error:
        assert error.problems and len(error.problems) <= MOST_PROBLEMS + 1
        assert all(problem.line >= 1 and problem.text for problem in error.problems)
        str(error).encode()  # can be printed and stored
        return error
    assert all(isinstance(entry, Entry) for entry in entries)
    json.dumps([entry.document() for entry in entries]).encode()
    return entries


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf")
def test_any_bytes(content: bytes) -> None:
    outcome(content)


PIECES = [
    *("jobs", ":", " ", "\n", "  ", "- ", "? ", "[", "]", "{", "}", ",", "'", '"', "|", ">", "#"),
    *("&a", "*a", "!", "!!str", "!!python/name:os", "<<", "%YAML 1.2\n", "%TAG ! x\n", "---\n"),
    *("...\n", "type", "script", "agent", "command", "run", "interval", "cron", "timezone", "60"),
    *("5m", "~", "true", "yes", ".nan", "0x1", "12:30", "2026-01-01", "\\", "\\u", "\\x0", "\t"),
    *("\u2028", "\x85", "\ufeff", "@", "`", "@daily", "* * * * *", "conditions", "file_exists:.."),
]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@example("? |\n  jobs\n: - a\n")
@example("jobs: {a: {type: {}, interval: [], run: {a: {b: c}}}}")
def test_anything_made_of_the_signs_of_yaml(text: str) -> None:
    outcome(text.encode())
    outcome(b"jobs:\n  it:\n    " + text.encode())


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_good_file_with_something_changed(data: st.DataObject) -> None:
    content = bytearray(ENTRY)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    outcome(bytes(content))


def test_an_entry_that_ends_too_early_is_refused() -> None:
    """While an editor writes it, a worker may read half of it."""
    for end in range(len(ENTRY) - 1):
        found = outcome(ENTRY[:end])
        assert isinstance(found, JobsFileError), ENTRY[:end]


def test_the_schema_itself_is_a_file_that_is_refused() -> None:
    assert isinstance(outcome(json.dumps(schema_document()).encode()), JobsFileError)
