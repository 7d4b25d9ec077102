"""The YAML that is understood: little, the same for everyone, and never more than can be borne."""

import pytest

from headway.schedules.jobsfile.nodes import LARGEST_FILE, YamlNode
from headway.schedules.jobsfile.problems import JobsFileError, Problems
from headway.schedules.jobsfile.yaml import DEEPEST, MOST_NODES, read_yaml


def parsed(text: str | bytes) -> YamlNode | None:
    found = Problems()
    content = text.encode() if isinstance(text, str) else text
    node = read_yaml(content, found)
    found.refuse()
    return node


def value_of(text: str) -> object:
    node = parsed(text)
    assert node is not None
    return node.value


def refusal(text: str | bytes) -> str:
    with pytest.raises(JobsFileError) as caught:
        parsed(text)
    return "\n".join(map(str, caught.value.problems))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("10", 10),
        ("-3", -3),
        ("+3", 3),
        ("0", 0),
        *((word, word) for word in ("yes", "no", "on", "off", "y", "n", "Yes", "NO", "On", "OFF")),
        *((word, word) for word in ("tRUE", "none", "010", "0o17", "0x1F", "0b11", "1_000", "1.5")),
        *((word, word) for word in ("1e3", ".inf", "-.INF", ".nan", "NaN", "12:30", "1:30:00")),
        *((word, word) for word in ("2026-01-01", "2026-01-01T00:00:00Z", "=", "9" * 30)),
        ("'10'", "10"),
        ('"true"', "true"),
        ("''", ""),
        ("|\n  true\n", "true\n"),
    ],
)
def test_a_word_is_true_false_null_a_whole_number_or_a_text(written: str, meant: object) -> None:
    # fault H3: NaN and its like
    found = value_of(written)
    assert found == meant and type(found) is type(meant)


def test_keys_are_texts_whatever_they_look_like() -> None:
    assert list(value_of("on: 1\n1: 2\ntrue: 3\n~: 4\n2026-01-01: 5\n")) == [  # type: ignore[call-overload]
        *("on", "1", "true", "~", "2026-01-01")
    ]


def test_every_node_knows_its_place() -> None:
    root = parsed("# first\na:\n  - x\n  -   y\nbb: {c: 1}\n")
    assert root is not None
    a, b = root.value["a"], root.value["bb"]
    assert (root.line, root.column) == (2, 1) and (a.line, a.column) == (2, 1)
    assert [(each.value, each.line, each.column) for each in a.node.value] == [
        ("x", 3, 5),
        ("y", 4, 7),
    ]
    c = b.node.value["c"]
    assert (b.line, c.line, c.column) == (5, 5, 6) and c.node == YamlNode(1, 5, 9)


def test_a_byte_order_mark_and_windows_line_ends_are_fine() -> None:
    root = parsed(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert root is not None and {key: pair.node for key, pair in root.value.items()} == {
        "a": YamlNode(1, 1, 4),
        "b": YamlNode(2, 2, 4),
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        # fault H3: duplicate keys, at any depth
        ("a: 1\nb: 2\na: 3\n", "line 3: a: it stands twice; the first is in line 1"),
        ("a:\n  b: {c: 1, 'c': 2}\n", "line 2: a.b.c: it stands twice; the first is in line 2"),
        ("1: a\n'1': b\n", "line 2: 1: it stands twice"),
        ("a:\n- {b: 1, b: 2}\n", "line 2: a.b: it stands twice"),
        ("a: {<<: {b: 1}}\n", "line 1: a: merge keys are not allowed"),
        ("a: &x 1\n", "line 1: a: the anchor &x is not allowed"),
        ("a: 1\nb: *a\n", "line 2: b: the alias *a is not allowed"),
        ("a: !!str 1\n", "line 1: a: the tag tag:yaml.org,2002:str is not allowed"),
        ("a: ! x\n", "line 1: a: the tag ! is not allowed"),
        ("a: !!python/object/apply:os.system [id]\n", "line 1: a: the tag tag:yaml.org"),
        ("a: !!binary aGk=\n", "line 1: a: the tag"),
        ("? [a]\n: 1\n", "line 1: a key is one text"),
        ("? {a: 1}\n: 1\n", "line 1: a key is one text"),
        ("a: 1\n---\nb: 2\n", "line 2: a second document begins"),
        ("a: 1\n  b: 2\n", "line 2: it is not YAML: mapping values are not allowed here"),
        ('a: "x\n\nb: 1\n', "line 4: it is not YAML: found unexpected end of stream"),
        ("a:\n\tb: 1\n", "line 2: it is not YAML: found character '\\t'"),
        ("a: [1\nb: 2\n", "line 2: it is not YAML"),
        ("a: @x\n", "line 1: it is not YAML"),
        ('\na: "\\UFFFFFFFF"\n', "line 2: it is not YAML"),
        (f"%YAML 1.{'1' * 5000}\n---\na\n", "line 1: it is not YAML"),
        ('a: "\\ud800"\n', "line 1: a: the text has the control character U+D800"),
        ('a: "\\0"\n', "line 1: a: the text has the control character U+0000"),
        ('a: "\\e[2J"\n', "line 1: a: the text has the control character U+001B"),
        ("a: 1\nb: \x1b[2J\n", "line 2: the control character U+001B"),
        ("a: 1\n\x00", "line 2: the control character U+0000"),
        (b"a: 1\nb: \xff\n", "line 2: it is not UTF-8"),
        ("a: 1\n".encode("utf-16"), "line 1: it is not UTF-8"),
        (b"\x00\x01\x02\x7fELF" * 100, "line 1: the control character"),
    ],
)
def test_what_is_refused_is_named_with_its_line(text: str | bytes, told: str) -> None:
    assert told in refusal(text)


def test_what_is_not_at_its_end_is_told_with_its_beginning() -> None:
    assert refusal('a: 1\nb: "x\nc: 1\n').endswith("while scanning a quoted scalar of line 2")


def test_several_things_are_told_at_once() -> None:
    told = refusal("a: &x 1\nb: *x\nb: !!str 2\n").splitlines()
    assert [line.split(":")[0] for line in told] == ["line 1", "line 2", "line 3", "line 3"]


@pytest.mark.parametrize("opened", ["[", "{", "- ", "? ", "[\n", "{a: ", "a: [", "- - [ "])
def test_depth_is_bounded_however_it_is_reached(opened: str) -> None:
    # fault H3: 1 MB of [
    told = refusal(opened * (LARGEST_FILE // len(opened)))
    assert "nested more than 32 deep" in told or "not YAML" in told
    deep = "".join(f"{' ' * depth}a:\n" for depth in range(DEEPEST + 1))
    assert (
        refusal(f"{deep}{' ' * (DEEPEST + 1)}a: 1\n") == "line 33: it is nested more than 32 deep"
    )


def test_as_deep_as_allowed_is_read() -> None:
    value = value_of("[" * DEEPEST + "]" * DEEPEST)
    for _ in range(DEEPEST - 1):
        [node] = value  # type: ignore[misc]
        value = node.value
    assert value == []


def test_size_and_number_are_bounded() -> None:
    assert "larger than 1 MiB" in refusal(b"a" * (LARGEST_FILE + 1))
    assert f"more than {MOST_NODES:,} values" in refusal("[" + "a," * MOST_NODES + "]")


def test_a_billion_laughs_are_not_even_begun() -> None:
    # fault H3: a YAML bomb
    lines = ["a0: &a0 [lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    told = refusal("\n".join(lines))
    assert "the anchor &a0 is not allowed" in told and "the alias *a0 is not allowed" in told


def test_nothing_is_nothing() -> None:
    assert parsed(b"") is None and parsed(b"# only a comment\n") is None
