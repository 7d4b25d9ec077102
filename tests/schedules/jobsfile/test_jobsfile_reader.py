"""A jobs file becomes entries, or all that is wrong with it, each thing with line and key."""

from typing import Any

import pytest
from jobsfiles import one, problems, read, with_one

from headway.schedules.jobsfile.keys import MOST_ENTRIES
from headway.schedules.jobsfile.model import Entry, entry_of
from headway.schedules.jobsfile.problems import MOST_PROBLEMS

SECOND = 1_000_000
HOUSEKEEPING = """\
# Periodic work of the project.
jobs:
  check_finished_agents:
    interval: 10
    type: script
    run: orchestrator.jobs:check_finished_agents
    group: local          # needs no data of the poll

  register_orchestrator:
    interval: 5m
    interval_active: 30s
    interval_idle: 1h
    type: script
    run: register

  sweep_stale_worktrees:
    interval: 3600
    type: script
    run: sweep_stale_worktrees
    group: local
    conditions:
      - no_agents_running
      - command:git diff --quiet
      - file_exists:build/ready
    enabled: false

  review_stale_prs:
    interval: 7200
    type: agent
    prompt: |
      Review open PRs older than 48 hours.
      Post a summary.
    model: haiku
    runner: claude
    max_turns: 5
    allowed_tools: [Read, "Bash(git log:*)"]
    timeout: 30m
    conditions:
      - has_open_prs

  backup:
    cron: "30 0 * * *"
    timezone: Europe/Berlin
    type: command
    run: [tar, -czf, backup.tgz, "my files"]
    priority: -5
    resources: [disk]

  report:
    cron: "@daily"
    type: command
    run: make report DATE='last week'
"""


@pytest.mark.req("O1", "O4", "O6", "O11", "O16", "C27", "C32")
def test_a_whole_file_is_read_in_its_order() -> None:
    assert read(HOUSEKEEPING) == [
        Entry(
            "check_finished_agents",
            "script",
            3,
            interval=10 * SECOND,
            run="orchestrator.jobs:check_finished_agents",
            group="local",
        ),
        Entry(
            "register_orchestrator",
            "script",
            9,
            interval=300 * SECOND,
            interval_active=30 * SECOND,
            interval_idle=3600 * SECOND,
            run="register",
            group="remote",
            enabled=True,
        ),
        Entry(
            "sweep_stale_worktrees",
            "script",
            16,
            interval=3600 * SECOND,
            run="sweep_stale_worktrees",
            group="local",
            conditions=(
                *("no_agents_running", "command:git diff --quiet", "file_exists:build/ready"),
            ),
            enabled=False,
        ),
        Entry(
            "review_stale_prs",
            "agent",
            27,
            interval=7200 * SECOND,
            prompt="Review open PRs older than 48 hours.\nPost a summary.\n",
            model="haiku",
            runner="claude",
            max_turns=5,
            allowed_tools=("Read", "Bash(git log:*)"),
            timeout=1800 * SECOND,
            conditions=("has_open_prs",),
        ),
        Entry(
            "backup",
            "command",
            41,
            cron="30 0 * * *",
            timezone="Europe/Berlin",
            argv=("tar", "-czf", "backup.tgz", "my files"),
            priority=-5,
            resources=("disk",),
        ),
        Entry("report", "command", 49, cron="@daily", argv=("make", "report", "DATE=last week")),
    ]


def test_what_is_kept_of_entries_gives_them_back() -> None:
    import json

    entries = read(HOUSEKEEPING)
    kept = json.loads(json.dumps([entry.document() for entry in entries]))
    assert [entry_of(each) for each in kept] == entries


@pytest.mark.req("O3", "O6", "O11")
def test_what_an_entry_does_not_say_is_usual() -> None:
    entry = one("agent")
    assert (entry.group, entry.enabled, entry.conditions) == ("remote", True, ())
    assert (entry.max_turns, entry.allowed_tools) == (10, ("Read", "Grep", "Glob"))
    assert (entry.runner, entry.model, entry.timeout, entry.timezone) == (None, None, None, "UTC")


@pytest.mark.parametrize(
    ("kind", "more", "field", "meant"),
    [
        ("agent", "max_turns: 1", "max_turns", 1),
        ("agent", "allowed_tools: [Read]", "allowed_tools", ("Read",)),
        ("agent", "model: gpt-4.1", "model", "gpt-4.1"),
        ("agent", 'model: "4.1"', "model", "4.1"),
        ("agent", "runner: my-runner_2", "runner", "my-runner_2"),
        ("script", "enabled: false", "enabled", False),
        ("script", "enabled: TRUE", "enabled", True),
        ("script", "timeout: 1", "timeout", SECOND),
        ("script", "timeout: 1h30m", "timeout", 5400 * SECOND),
        ("script", "interval_active: 1.5s", "interval_active", 1_500_000),
        ("script", "conditions: []", "conditions", ()),
        (
            "script",
            "conditions: ['file_exists:a/..b/c..']",
            "conditions",
            ("file_exists:a/..b/c..",),
        ),
        ("script", "conditions: [mine.two-x]", "conditions", ("mine.two-x",)),
        ("command", "priority: 1000000", "priority", 1_000_000),
        ("command", "resources: [net/api]", "resources", ("net/api",)),
    ],
)
def test_a_value_means_what_it_says(kind: str, more: str, field: str, meant: Any) -> None:
    assert getattr(one(kind, more), field) == meant


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("make test", ("make", "test")),
        ("[make, test]", ("make", "test")),
        ("sh -c 'echo $HOME; ls | wc'", ("sh", "-c", "echo $HOME; ls | wc")),
        ("[echo, '', 'a b']", ("echo", "", "a b")),
        ("echo $HOME && rm *", ("echo", "$HOME", "&&", "rm", "*")),
    ],
)
def test_a_command_is_words_that_no_shell_sees(written: str, words: tuple[str, ...]) -> None:
    [entry] = read(f"jobs:\n  it:\n    type: command\n    interval: 1\n    run: {written}\n")
    assert entry.argv == words and entry.run is None


@pytest.mark.parametrize(
    "text",
    [
        *(
            "{{ 7 * 7 }}",
            "${{ secrets.TOKEN }}",
            "{x}",
            "$(id)",
            "`id`",
            "${HOME}",
            "$HOME",
            "%(a)s",
        ),
        *("{% for x in y %}", "<%= 1 %>", "#{1+1}", "{0.__class__}", "~/x", "\\n", "!cmd"),
    ],
)
def test_texts_stay_as_they_are(text: str) -> None:
    # fault H6: there is no template language to escape from
    [agent, command, script] = read(
        f"""\
        jobs:
          agent: {{type: agent, interval: 1, prompt: '{text}', allowed_tools: ['x{text}']}}
          command:
            type: command
            interval: 1
            run: [echo, '{text}']
          script: {{type: script, interval: 1, run: f, conditions: ['command:test {text}']}}
        """
    )
    assert agent.prompt == text and agent.allowed_tools == (f"x{text}",)
    assert command.argv == ("echo", text)
    assert script.conditions == (f"command:test {text}",)


@pytest.mark.req("C17", "C27", "O4", "O5")
def test_all_that_is_wrong_is_told_at_once_with_line_and_key() -> None:
    assert problems(
        """\
        jobs:
          fine: {type: script, run: f, interval: 1}
          review_stale_prs:
            type: agent
            interval: often
            max_turns: ten
            maxturns: 3
            run: x
            conditions:
              - has_open_prs
              - file_exists:../secret
              - 12
            enabled: yes
          forgotten:
            run: f
          wrong_type:
            type: skript
            interval: 5
          "my job": {type: command, cron: "0 0 * * *"}
        job: 1
        """
    ) == [
        "line 3: jobs.review_stale_prs: type agent needs prompt; "
        "write e.g. prompt: Review the open pull requests.",
        'line 5: jobs.review_stale_prs.interval: "often" is not whole seconds (at least 1) '
        "or a duration; write e.g. 300 or 5m",
        'line 6: jobs.review_stale_prs.max_turns: "ten" is not a whole number from 1 to 100,000; '
        "write e.g. 10",
        "line 7: jobs.review_stale_prs.maxturns: unknown key; did you mean max_turns?",
        "line 8: jobs.review_stale_prs.run: it belongs to type script or command, and this is "
        "agent; take it out",
        'line 11: jobs.review_stale_prs.conditions: "file_exists:../secret" does not belong into '
        "a list of names, command:WORDS and file_exists:PATH inside of the project; "
        "write e.g. [no_agents_running]",
        "line 12: jobs.review_stale_prs.conditions: 12 does not belong into a list of names, "
        "command:WORDS and file_exists:PATH inside of the project; write e.g. [no_agents_running]",
        'line 13: jobs.review_stale_prs.enabled: "yes" is not true or false; write e.g. true',
        "line 14: jobs.forgotten: it has no type; write e.g. type: script",
        "line 14: jobs.forgotten: it has no interval; write e.g. interval: 300, or a cron",
        'line 17: jobs.wrong_type.type: "skript" is not script, agent, command or workflow; '
        "write e.g. script",
        "line 19: jobs.my job: the name may have letters, digits, _ - and ., at most 64 of them, "
        "and begins with a letter, a digit or _",
        "line 19: jobs.my job: type command needs run; write e.g. run: [make, test] or make test",
        "line 20: job: unknown key; did you mean jobs?",
    ]


INTERVAL = "whole seconds (at least 1) or a duration"


@pytest.mark.parametrize(
    ("kind", "more", "told"),
    [
        ("script", "timeout: 0", f"it.timeout: 0 is not {INTERVAL}"),
        ("script", "timeout: -5", f"it.timeout: -5 is not {INTERVAL}"),
        ("script", "timeout: 1.5", f'it.timeout: "1.5" is not {INTERVAL}'),
        ("script", 'timeout: "10"', f'it.timeout: "10" is not {INTERVAL}'),
        ("script", "timeout: 010", f'it.timeout: "010" is not {INTERVAL}'),
        ("script", "timeout: .nan", f'it.timeout: ".nan" is not {INTERVAL}'),
        ("script", "timeout: true", f"it.timeout: true is not {INTERVAL}"),
        ("script", "timeout: [1]", f"it.timeout: a list is not {INTERVAL}"),
        ("script", "timeout: {a: 1}", f"it.timeout: a mapping is not {INTERVAL}"),
        ("script", "timeout:", "it.timeout: it has no value; write e.g. 600 or 10m"),
        ("script", "timeout: 500ms", 'it.timeout: "500ms" is less than a second'),
        ("script", "timeout: 0s", 'it.timeout: "0s" is less than a second'),
        ("script", "timeout: 99999999999", f"it.timeout: 99999999999 is not {INTERVAL}"),
        ("script", "timeout: 5300w", "it.timeout: '5300w' is longer than a hundred years"),
        ("script", "interval_active: 0", "it.interval_active: 0 is not"),
        ("script", "timezone: UTC", "it.timezone: it needs cron"),
        ("script", "cron: '@daily'", "it.cron: give interval or cron, not both"),
        ("script", "prompt: x", "it.prompt: it belongs to type agent, and this is script"),
        ("script", "model: x", "it.model: it belongs to type agent"),
        ("command", "max_turns: 1", "it.max_turns: it belongs to type agent, and this is command"),
        ("agent", "run: x", "it.run: it belongs to type script or command, and this is agent"),
        ("agent", "max_turns: 0", "it.max_turns: 0 is not a whole number from 1"),
        ("agent", "max_turns: 100001", "it.max_turns: 100001 is not a whole number from 1"),
        ("agent", "model: --yolo", 'it.model: "--yolo" is not the name of a model'),
        ("agent", "runner: ../x", 'it.runner: "../x" is not a name of letters'),
        ("agent", "allowed_tools: []", "it.allowed_tools: "),
        ("agent", "runner: command", "it.runner: runner command needs a program; write type: "),
        (
            "script",
            "group: local, conditions: [has_open_prs]",
            "it.conditions: has_open_prs asks the poll, whose data a local job has not",
        ),
        ("agent", "allowed_tools: Read", 'it.allowed_tools: "Read" is not a list of tools'),
        ("agent", "allowed_tools: [-x]", '"-x" does not belong into a list of tools'),
        ("agent", "allowed_tools: ['']", '"" does not belong into a list of tools'),
        ("script", "group: both", 'it.group: "both" is not local or remote; write e.g. local'),
        ("script", "enabled: 1", "it.enabled: 1 is not true or false"),
        ("script", "enabled: off", 'it.enabled: "off" is not true or false'),
        ("script", "conditions: x", 'it.conditions: "x" is not a list of names'),
        ("script", "conditions: [a b]", '"a b" does not belong into'),
        ("script", "conditions: ['shell:x']", '"shell:x" does not belong into'),
        ("script", "conditions: ['command:']", '"command:" does not belong into'),
        ("script", "conditions: ['command: ']", '"command: " does not belong into'),
        ("script", 'conditions: ["command:a \'b"]', "the words cannot be told apart"),
        ("script", "conditions: ['file_exists:']", '"file_exists:" does not belong into'),
        ("script", "conditions: ['file_exists:/etc/x']", "does not belong into"),
        ("script", "conditions: ['file_exists:..']", "does not belong into"),
        ("script", "conditions: ['file_exists:a/..']", "does not belong into"),
        ("script", "conditions: ['file_exists:a/../../b']", "does not belong into"),
        ("script", 'conditions: ["file_exists:a\\n/../b"]', "does not belong into"),
        ("script", f"conditions: [{', '.join('a' * 21)}]", "it has 21 items, at most 20 may be"),
        ("script", "priority: high", 'it.priority: "high" is not a whole number'),
        ("script", "priority: 1000001", "it.priority: 1000001 is not a whole number"),
        ("script", "resources: [a b]", '"a b" does not belong into a list of words'),
        ("script", "naem: x", "it.naem: unknown key; there are type, interval"),
        ("script", "intervall: 5", "it.intervall: unknown key; did you mean interval?"),
        ("script", "promptt: 5", "it.promptt: unknown key; there are type"),
        ("agent", "promptt: 5", "it.promptt: unknown key; did you mean prompt?"),
    ],
)
def test_a_wrong_value_is_told_with_its_key(kind: str, more: str, told: str) -> None:
    [problem] = problems(with_one(kind, more))
    assert problem.startswith("line 2: jobs.it.") and told in problem


@pytest.mark.parametrize(
    ("kind", "run", "told"),
    [
        ("script", "a b", '"a b" is not a registered name or module:function'),
        ("script", "os:system:x", '"os:system:x" is not a registered name'),
        ("script", "'mod:'", '"mod:" is not a registered name'),
        ("script", "mod:f.g", '"mod:f.g" is not a registered name'),
        ("script", "../x", '"../x" is not a registered name'),
        ("script", "mod:f()", '"mod:f()" is not a registered name'),
        ("script", "[a]", "a list is not a registered name"),
        ("script", '"f\\n"', '"f" is not a registered name'),
        ("command", "[]", "the list is empty"),
        ("command", "' '", '" " is not a command'),
        ("command", "12", "12 is not a command"),
        ("command", "[make, 1]", "1 does not belong into a command"),
        ("command", "['', a]", "the program has no name"),
        ("command", "\"'' a\"", "the program has no name"),
        ("command", '"make \'x"', "the words cannot be told apart: no closing quotation"),
    ],
)
def test_a_wrong_run_is_told(kind: str, run: str, told: str) -> None:
    [problem] = problems(f"jobs:\n  it:\n    type: {kind}\n    interval: 1\n    run: {run}\n")
    assert problem.startswith("line 5: jobs.it.run: ") and told in problem


@pytest.mark.parametrize(
    ("cron", "zone", "key"),
    [
        ("61 0 * * *", "UTC", "cron"),
        ("0 0 31 2 *", "UTC", "cron"),
        ("often", "UTC", "cron"),
        ("* * * * * *", "UTC", "cron"),
        ("0 0 * * *", "Mars/Olympus", "timezone"),
    ],
)
def test_a_cron_that_never_comes_is_told_at_its_own_key(cron: str, zone: str, key: str) -> None:
    line = {"cron": 4, "timezone": 5}[key]
    [problem] = problems(
        f"jobs:\n  it:\n    type: script\n    cron: '{cron}'\n    timezone: {zone}\n    run: f\n"
    )
    assert problem.startswith(f"line {line}: jobs.it.{key}: ")


def test_both_the_cron_and_its_zone_are_told() -> None:
    told = problems("jobs: {it: {type: script, run: f, cron: x, timezone: y}}")
    assert len(told) == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1: it is empty; write `jobs: {}` if there are to be none"),
        ("# jobs:\n", "line 1: it is empty"),
        ("~\n", "line 1: it is empty"),
        ("- a\n", "line 1: it is a list; write `jobs:` and below it entries"),
        ("hello\n", 'line 1: it is "hello"; write `jobs:`'),
        ("{}\n", "line 1: it has no `jobs`; write `jobs:` and below it entries"),
        ("jobs:\n", "line 1: jobs: nothing is not a mapping; write entries below it"),
        ("jobs: []\n", "line 1: jobs: a list is not a mapping"),
        ("jobs:\n  a:\n", "line 2: jobs.a: nothing is not an entry; write its keys below it"),
        ("jobs:\n  a: [1]\n", "line 2: jobs.a: a list is not an entry"),
        ("jobs: {}\nversion: 1\n", "line 2: version: unknown key; there are jobs"),
    ],
)
def test_a_file_of_another_form_is_told(text: str, told: str) -> None:
    [problem] = problems(text)
    assert problem.startswith(told)


def test_a_file_without_entries_is_good_if_it_says_so() -> None:
    assert read("jobs: {}\n") == []


@pytest.mark.parametrize("name", ["a", "A-1", "_x", "9", "a.b_c-d", "x" * 64])
def test_a_name_is_a_word(name: str) -> None:
    [entry] = read(f"jobs: {{'{name}': {{type: script, run: f, interval: 1}}}}")
    assert entry.name == name and entry.schedule_id == f"jobs.yaml:{name}"


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".a", "-a", "a b", "a/b", "ä", "x" * 65, "a:b", "a\\n"]
)
def test_other_names_are_refused(name: str) -> None:
    [problem] = problems(f'jobs: {{"{name}": {{type: script, run: f, interval: 1}}}}')
    assert "the name may have letters, digits" in problem and len(problem) < 250


def test_a_second_entry_of_the_same_name_is_refused() -> None:
    # fault H3: duplicate keys
    text = "jobs:\n" + "  a: {type: script, run: f, interval: 1}\n" * 2
    assert problems(text) == ["line 3: jobs.a: it stands twice; the first is in line 2"]


def test_there_are_not_too_many_entries() -> None:
    line = "  n{}: {{type: script, run: f, interval: 1}}\n"
    most = "jobs:\n" + "".join(line.format(number) for number in range(MOST_ENTRIES))
    assert len(read(most)) == MOST_ENTRIES
    assert problems(most + line.format("x")) == ["line 1: jobs: it has more than 1,000 entries"]


def test_where_hardly_anything_is_right_it_is_given_up_early() -> None:
    told = problems("jobs:\n  a:\n" + "".join(f"    key{n}: 1\n" for n in range(2_000)))
    assert len(told) == MOST_PROBLEMS + 1
    assert told[-1].endswith("too much is wrong; correct these first")


def test_long_texts_are_shortened_where_they_are_quoted() -> None:
    long = "x" * 1_000
    told = problems(with_one("agent", f"max_turns: {long}, {long}: 1")) + problems(f"{long}: 1")
    assert len(told) >= 3 and all(len(each) < 400 for each in told)


def test_a_prompt_is_bounded() -> None:
    text = "jobs:\n  it:\n    type: agent\n    interval: 1\n    prompt: {}\n"
    assert read(text.format("x" * 100_000))[0].prompt == "x" * 100_000
    assert "is not a text of at most 100,000 characters" in problems(text.format("x" * 100_001))[0]
    assert "it.prompt" in problems(text.format("'  '"))[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tpye: script, interval: 5, run: a.b", "a.tpye: unknown key; did you mean type?"),
        (
            "type: script, intervall: 5, run: a.b",
            "a.intervall: unknown key; did you mean interval?",
        ),
        ("type: script, interval: 5, rnu: a.b", "a.rnu: unknown key; did you mean run?"),
        (
            "type: script, cron: '0 0 * * *', run: a.b, timezon: UTC",
            "a.timezon: unknown key; did you mean timezone?",
        ),
    ],
)
def test_a_misspelt_key_is_not_missing_as_well(text: str, told: str) -> None:
    [problem] = problems(f"jobs:\n  a: {{{text}}}\n")
    assert told in problem
