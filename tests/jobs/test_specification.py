"""What may be asked for: every refusal comes before anything is written, and names its thing."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness import Bench
from headway.base.errors import InvalidInputError, NotFoundError
from headway.base.units import LONGEST
from headway.core.model import JobSpec, Lock, LockMode
from headway.core.states import Status
from headway.jobs.references import parse_job_id
from headway.jobs.request import Request
from headway.jobs.specification import (
    LARGEST_SPEC,
    LONGEST_NAME,
    default_name,
    parse_lock,
    specify,
)

ENVIRON = {"PATH": os.environ["PATH"]}
HOSTILE_NAMES = [
    "../../x",
    "/etc/passwd",
    "..",
    "a/b/../../c",
    "%2e%2e%2f",
    "~root",
    "-rf",
    "$(touch x)",
    "`id`",
    "'; drop table jobs; --",
    "CON",
    "é日本語",
    "x" * LONGEST_NAME,
]
UNPRINTABLE = ["", "a\nb", "a\rb", "a\tb", "a\0b", "\x1b[31m", "a\u202eb", "\u200b", "\udcff"]


def spec(
    *argv: str, here: Path | str = "/", no_check: str | None = None, **options: Any
) -> JobSpec:
    if not argv and "shell" not in options:
        argv = ("true",)
    return specify(
        Request(argv=argv, **options),
        environ=ENVIRON,
        working_directory=str(here),
        no_check=no_check,
    )


def refusal(*argv: str, here: Path | str = "/", **options: Any) -> str:
    with pytest.raises(InvalidInputError) as raised:
        spec(*argv, here=here, **options)
    assert raised.value.exit_code == 5
    return str(raised.value)


def output(bench: Bench, job: int) -> bytes:
    return Path(bench.home.job(job), "stdout.log").read_bytes()


# -- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_name_is_any_printable_line_because_it_reaches_no_path(name: str) -> None:  # fault H4
    asked = spec(name=name, key=name, labels={"a": name}, locks=(parse_lock(name),))
    assert (asked.name, asked.key, asked.labels["a"]) == (name, name, name)


@pytest.mark.parametrize("text", [*UNPRINTABLE, "x" * (LONGEST_NAME + 1), "x" * 100_000])
@pytest.mark.parametrize("what", ["name", "key"])
def test_a_name_or_key_that_is_no_printable_line_is_refused(  # fault H4
    what: str, text: str
) -> None:
    message = refusal(**{what: text})
    assert message.startswith(f"{what} {text[:40]!r} must be 1 to 200 printable characters")


@pytest.mark.parametrize("slug", ["a", "A.b_c-9", "x" * 64, "0"])
def test_a_slug_is_a_short_plain_word(slug: str) -> None:
    assert spec(slug=slug).slug == slug


@pytest.mark.parametrize(
    "slug",
    [*UNPRINTABLE, "../../x", "a/b", "a b", "a\n", "é", "x" * 65, "$x", "a:b", "*", "a\\b"],
)
def test_every_other_slug_is_refused(slug: str) -> None:  # fault H4
    assert refusal(slug=slug).startswith(f"slug {slug!r} ")


@pytest.mark.parametrize("label", ["a", "team/x", "a.b_c-d", "x" * 64])
def test_a_label_may_have_a_slash_and_an_empty_value(label: str) -> None:
    assert spec(labels={label: ""}).labels == {label: ""}


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        ({"": "x"}, "label ''"),
        ({"a b": "x"}, "label 'a b'"),
        ({"a=b": "x"}, "label 'a=b'"),
        ({"x" * 65: "y"}, "label 'xxx"),
        ({"a\n": "x"}, "label 'a\\n'"),
        ({"a": "x\ny"}, "label a 'x\\ny'"),
        ({"a": "x" * 201}, "label a 'xxx"),
    ],
)
def test_every_other_label_is_refused(labels: dict[str, str], named: str) -> None:  # fault H4
    assert refusal(labels=labels).startswith(named)


@pytest.mark.parametrize(
    ("env", "named"),
    [
        ({"": "x"}, "''"),
        ({"A=B": "x"}, "'A=B'"),
        ({"1A": "x"}, "'1A'"),
        ({"A B": "x"}, "'A B'"),
        ({"A\0": "x"}, "'A\\x00'"),
        ({"A\n": "x"}, "'A\\n'"),
        ({"BASH_FUNC_x%%": "() { id; }"}, "'BASH_FUNC_x%%'"),
        ({"A": "x\0y"}, "the value of A contains a NUL byte"),
    ],
)
def test_a_variable_that_cannot_be_one_is_refused(env: dict[str, str], named: str) -> None:
    assert refusal(env=env).startswith(named)


@pytest.mark.parametrize(
    "options",
    [
        {"argv": ("echo", "a\0b")},
        {"argv": ("a\0b",)},
        {"shell": "echo a\0b"},
        {"argv": ("true",), "on_finish": ("echo", "a\0b")},
        pytest.param({"argv": ("true",), "stdin": "a\0b"}),
        {"argv": ("true",), "cwd": "a\0b"},
        pytest.param({"argv": ("true",), "stdin": "a\0b", "check": False}),
        pytest.param({"argv": ("true",), "cwd": "a\0b", "check": False}),
    ],
)
def test_a_nul_byte_is_refused(options: dict[str, Any]) -> None:  # fault H4
    request = Request(**options)
    with pytest.raises(InvalidInputError):
        specify(request, environ=ENVIRON, working_directory="/")


@pytest.mark.parametrize(
    "options",
    [
        {"argv": ("echo", "\ud800")},
        {"shell": "echo \ud800"},
        {"argv": ("true",), "env": {"A": "\ud800"}},
        {"argv": ("true",), "on_finish": ("echo", "\ud800")},
        {"argv": ("true",), "cwd": "/\ud800", "check": False},
        {"argv": ("true",), "stdin": "/\ud800"},
        {"argv": ("true",), "stdin": "/\ud800", "check": False},
    ],
)
def test_text_that_no_process_can_be_given_is_refused(options: dict[str, Any]) -> None:
    """Half a character, as JSON may have it; bytes that are no text are another thing."""
    with pytest.raises(InvalidInputError):
        specify(Request(**options), environ=ENVIRON, working_directory="/")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "give a command after --, or --shell STRING, and not both"),
        ({"argv": ("true",), "shell": "true"}, "and not both"),
        ({"argv": ("",)}, "the program's name is empty"),
        ({"argv": ("", "x"), "check": False}, "the program's name is empty"),
    ],
)
def test_there_is_exactly_one_command(options: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInputError, match=why):
        specify(Request(**options), environ=ENVIRON, working_directory="/")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"priority": 1_000_001}, "priority 1000001 "),
        ({"priority": -1_000_001}, "priority -1000001 "),
        ({"retries": -1}, "retries -1 "),
        ({"retries": 101}, "retries 101 "),
        ({"delay": -1}, "delay -1 "),
        ({"delay": LONGEST + 1}, "delay "),
        ({"retry_base": -1}, "retry-base -1 "),
        ({"grace": -1}, "grace -1 "),
        ({"grace": LONGEST + 1}, "grace "),
        ({"timeout": 0}, "timeout must be longer than 0 s"),
        ({"timeout": -1}, "timeout must be longer than 0 s"),
        ({"timeout": LONGEST + 1}, "timeout"),
        ({"delay": 1, "at": 1}, "give --delay or --at, not both"),
        ({"skip_exit_codes": (0,)}, "--skip-exit-code 0 "),
        ({"skip_exit_codes": (75, 256)}, "--skip-exit-code 256 "),
        ({"retry_on": ("0",)}, "--retry-on '0'"),
        ({"retry_on": ("256",)}, "--retry-on '256'"),
        ({"retry_on": ("-1",)}, "--retry-on '-1'"),
        ({"retry_on": ("",)}, "--retry-on ''"),
        ({"retry_on": ("signal", "SIGKILL")}, "--retry-on 'SIGKILL'"),
        pytest.param({"retry_on": ("²",)}, "--retry-on '²'"),
        pytest.param({"retry_on": ("٣",)}, "--retry-on '٣'"),
        pytest.param({"retry_on": ("007",)}, "--retry-on '007'"),
        pytest.param({"at": 10**30}, "at "),
    ],
)
def test_a_number_out_of_range_is_refused_by_name(options: dict[str, Any], named: str) -> None:
    assert refusal(**options).startswith(named)


@pytest.mark.parametrize(
    "options",
    [
        {"priority": -1_000_000},
        {"priority": 1_000_000},
        {"retries": 100},
        {"delay": LONGEST},
        {"timeout": 1},
        {"grace": 0},
        {"skip_exit_codes": (1, 255)},
        {"retry_on": ("1", "255", "signal", "timeout", "unknown")},
    ],
)
def test_the_bounds_themselves_are_accepted(options: dict[str, Any]) -> None:
    assert spec(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"argv": ("true", "x" * LARGEST_SPEC)},
        {"argv": ("true", *["x"] * LARGEST_SPEC)},
        {"shell": "x" * LARGEST_SPEC},
        {"argv": ("true",), "env": {"A": "x" * LARGEST_SPEC}},
        pytest.param({"argv": ("true",), "on_finish": ("true", "x" * LARGEST_SPEC)}),
        pytest.param({"argv": ("true",), "labels": {f"k{n}": "v" * 200 for n in range(6000)}}),
    ],
    ids=["argument", "arguments", "shell", "env", "on-finish", "labels"],
)
def test_a_specification_larger_than_a_mebibyte_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="larger than 1 MiB"):
        specify(Request(**options), environ=ENVIRON, working_directory="/")


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150
)
@given(st.text(max_size=300), st.text(max_size=80))
@example("../../x", "..")
@example("/tmp/x", "a/../../b")
@example("x" * 300, "x" * 300)
def test_no_name_makes_a_file_outside_the_home(  # fault H4
    bench: Bench, name: str, slug: str
) -> None:
    """Names reach no path: whatever they are, the folder around the home stays as it is."""
    try:
        job = bench.submit("true", name=name, slug=slug or None, delay=LONGEST)
    except InvalidInputError:
        job = None
    assert set(os.listdir(bench.folder)) == {".headway"}
    assert set(os.listdir(bench.home.jobs)) == set()
    if job is not None:
        assert bench.job(job).name == name


def test_a_hostile_name_runs_in_a_folder_with_a_number(bench: Bench) -> None:  # fault H4
    jobs = [
        bench.submit("echo", "x", name=name, slug="..", key=name, locks=(Lock(name),))
        for name in HOSTILE_NAMES
    ]
    bench.until_ended(*jobs)
    assert {bench.status(job) for job in jobs} == {Status.SUCCEEDED}
    assert set(os.listdir(bench.home.jobs)) == {str(job) for job in jobs}
    assert set(os.listdir(bench.folder)) == {".headway"}


# -- the command ----------------------------------------------------------------------------------

METACHARACTERS = [
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned",
    "| touch pwned",
    "&& touch pwned &",
    "> pwned",
    "*",
    "~",
    "$HOME ${PATH}",
    "a b  c",
    "'\"\\",
    "new\nline\ttab",
    "--help",
    "",
    "!!",
    "é日本\udcff",
    "%s%n\\x00",
    "{a,b}",
]


def test_metacharacters_arrive_as_one_argument_each(  # fault H5
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = bench.folder / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    script = "import os,sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
    job = bench.submit(sys.executable, "-c", script, *METACHARACTERS)
    bench.until_ended(job)
    assert output(bench, job).split(b"\0") == [os.fsencode(each) for each in METACHARACTERS]
    assert os.listdir(work) == []


def test_values_reach_a_shell_only_as_values(  # fault H5
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = bench.folder / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    job = bench.submit(
        shell='printf "%s" "$VALUE"', env={"VALUE": "$(touch pwned); `id`"}, name="$(touch pwned)"
    )
    bench.until_ended(job)
    assert output(bench, job) == b"$(touch pwned); `id`"
    assert os.listdir(work) == []


@pytest.mark.parametrize(
    ("argv", "shell", "name"),
    [
        (("echo", "a", "b"), None, "echo a b"),
        (("/usr/bin/env", "x"), None, "env x"),
        (("/",), None, "/"),
        ((), "make all  &&\n make test", "make all && make test"),
        (("sh", "-c", "a\nb\tc"), None, "sh -c a b c"),
        (("echo", "\x1b[31mred"), None, "echo [31mred"),
        (("echo", "\udcff"), None, "echo"),
        (("\n",), None, "command"),
        ((), "\x01", "command"),
        (("echo", "x" * 100), None, "echo " + "x" * 52 + "..."),
        (("x" * 60,), None, "x" * 60),
    ],
)
def test_a_command_names_itself(argv: tuple[str, ...], shell: str | None, name: str) -> None:
    assert default_name(Request(argv=argv, shell=shell)) == name


@given(st.lists(st.text(), min_size=1))
def test_a_name_made_from_a_command_is_always_one_printable_line(argv: list[str]) -> None:
    name = default_name(Request(argv=tuple(argv)))
    assert 1 <= len(name) <= 60 and name.isprintable()
    assert spec("true", name=name).name == name


# -- locks, ids, predecessors ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "key", "mode"),
    [
        ("repo", "repo", LockMode.EXCLUSIVE),
        ("repo:shared", "repo", LockMode.SHARED),
        ("repo:exclusive", "repo", LockMode.EXCLUSIVE),
        ("a:b", "a:b", LockMode.EXCLUSIVE),
        ("a:b:shared", "a:b", LockMode.SHARED),
        ("../../x", "../../x", LockMode.EXCLUSIVE),
    ],
)
def test_a_lock_is_a_key_and_perhaps_a_mode(text: str, key: str, mode: LockMode) -> None:
    assert parse_lock(text) == Lock(key, mode)


@pytest.mark.parametrize("text", ["", ":shared", "a\nb", "a\0", "x" * 201])
def test_a_lock_without_a_plain_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^lock "):
        parse_lock(text)


@pytest.mark.parametrize(
    ("asked", "merged"),
    [
        (["a", "a"], ["a"]),
        (["a:shared", "a:shared"], ["a:shared"]),
        (["a:shared", "a"], ["a"]),
        (["a", "a:shared"], ["a"]),
        (["b", "a:shared", "c", "b:shared"], ["a:shared", "b", "c"]),
        ([], []),
    ],
)
def test_locks_are_merged_by_key_and_the_stronger_wins(asked: list[str], merged: list[str]) -> None:
    locks = spec(locks=tuple(parse_lock(each) for each in asked)).locks
    assert locks == tuple(parse_lock(each) for each in merged)


def test_the_same_predecessor_twice_is_one(bench: Bench) -> None:
    assert spec(after=(3, 1, 3, 1, 2)).after == (3, 1, 2)
    first = bench.submit("true")
    second = bench.submit("true", after=(first, first))
    assert bench.job(second).after == (first,)
    bench.until_ended(second)
    assert bench.status(second) is Status.SUCCEEDED


@pytest.mark.parametrize(
    ("text", "job_id"),
    [("24", 24), ("job-24", 24), ("#24", 24), (" 24 ", 24), ("9" * 18, int("9" * 18))],
)
def test_a_job_is_named_by_its_number(text: str, job_id: int) -> None:
    assert parse_job_id(text) == job_id


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "job-", "job-0", "24x", "2 4", "٢", "1.0", "Job-1", "9" * 19, "../1"]
)
def test_what_names_no_job_is_not_found(text: str) -> None:
    with pytest.raises(NotFoundError, match="is not a job; write it like") as raised:
        parse_job_id(text)
    assert repr(text) in str(raised.value) and raised.value.exit_code == 3


# -- files ----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").write_text("x")
    (tmp_path / "data").chmod(0o644)
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "sub").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("argv", "options", "named"),
    [
        (("no-such-program",), {}, "program 'no-such-program' was not found"),
        (("./missing",), {}, "program './missing' was not found"),
        (("./data",), {}, "program './data' was not found, or may not be executed"),
        (("./sub",), {}, "program './sub' was not found"),
        (("tool",), {}, "program 'tool' was not found"),
        (("true",), {"env": {"PATH": "/nowhere"}}, "program 'true' was not found"),
        (("true",), {"cwd": "missing"}, "there is no directory {here}/missing"),
        (("true",), {"cwd": "data"}, "there is no directory {here}/data"),
        (("true",), {"stdin": "missing"}, "--stdin {here}/missing cannot be read"),
        (("true",), {"stdin": "../data", "cwd": "sub"}, "--stdin {here}/../data cannot be read"),
        (("./tool",), {"cwd": "sub"}, "program './tool' was not found"),
        (("true",), {"on_finish": ("no-such-program",)}, "program 'no-such-program'"),
    ],
)
def test_what_is_not_there_is_refused_and_no_check_skips_that(
    folder: Path, argv: tuple[str, ...], options: dict[str, Any], named: str
) -> None:
    message = refusal(*argv, here=folder, no_check="--no-check", **options)
    assert message.startswith(named.format(here=folder))
    assert message.endswith("(--no-check skips this)")
    assert "skips this" not in refusal(*argv, here=folder, **options), "not all callers have it"
    assert spec(*argv, here=folder, check=False, **options).params["argv"] == list(argv)


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        (("true",), {}),
        (("/bin/sh",), {}),
        (("./tool",), {}),
        (("../tool",), {"cwd": "sub"}),
        (("tool",), {"env": {"PATH": "{here}"}}),
        (("true",), {"stdin": "data"}),
        (("true",), {"stdin": "data", "cwd": "sub"}),
        (("true",), {"stdin": "/dev/null"}),
    ],
)
def test_what_is_there_is_accepted(
    folder: Path, argv: tuple[str, ...], options: dict[str, Any]
) -> None:
    if "env" in options:
        options = {"env": {"PATH": str(folder)}}
    assert spec(*argv, here=folder, **options)


def test_a_refused_submit_writes_nothing(bench: Bench) -> None:
    before = sorted(str(path) for path in bench.folder.rglob("*"))
    for request in (
        Request(argv=("no-such-program",)),
        Request(argv=("true",), cwd="/nowhere"),
        Request(argv=("true",), slug="../x"),
    ):
        with pytest.raises(InvalidInputError):
            bench.client.submit_many([Request(argv=("true",)), request])
    assert bench.client.listing(everything=True) == []
    assert sorted(str(path) for path in bench.folder.rglob("*")) == before


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("db:read", "db:shared"),
        ("db:share", "db:shared"),
        ("db:Shared", "db:shared"),
        ("db:ro", "db:shared"),
        ("db:write", "db:exclusive"),
        ("db:rw", "db:exclusive"),
    ],
)
def test_a_word_that_only_looks_like_a_mode_is_refused(text: str, meant: str) -> None:
    with pytest.raises(InvalidInputError, match=f"did you mean '{meant}'") as refusal:
        parse_lock(text)
    assert f"'{text}:exclusive'" in str(refusal.value)
    assert parse_lock(f"{text}:exclusive") == Lock(text)
    assert parse_lock(meant)


@pytest.mark.parametrize("text", ["repo:main", "read", ":read", "db:", "host:8080", "db:shard"])
def test_other_words_behind_a_colon_are_of_the_key(text: str) -> None:
    assert parse_lock(text) == Lock(text)
