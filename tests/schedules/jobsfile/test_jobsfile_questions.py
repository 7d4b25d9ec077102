"""What a round asks of the user's modules, of commands and of files, with real processes."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

import headway.schedules.jobsfile.questions as asking_module
from headway.base.home import Home
from headway.base.new_home import make_home
from headway.jobs.settings import Config
from headway.schedules.jobsfile.question_process import open_prs
from headway.schedules.jobsfile.questions import Asking, EntryAnswers, EntryQuestions

Ask = Callable[..., EntryAnswers]
SHOP = """
    import os, sys, time
    from headway import condition, job, poll

    @job("sweep")
    def sweep(ctx): ...

    def mend(ctx): ...

    @condition("yes")
    def yes(ctx):
        print("what it prints is no answer")
        return True

    @condition("no")
    def no(): return False

    @condition("breaks")
    def breaks(ctx): raise ValueError("all wrong")

    @condition("exits")
    def exits(ctx): os._exit(3)

    @condition("leaves")
    def leaves(ctx): sys.exit("bye")

    @condition("hangs")
    def hangs(ctx): time.sleep(60)

    @condition("sees_two")
    def sees_two(ctx): return ctx.poll_data["open_prs"] == 2

    @condition("sees_none")
    def sees_none(ctx): return ctx.poll_data is None
    """
POLL = """
    @poll
    def fetch(ctx):
        with open("polled", "a") as file:
            file.write("x")
        return {"open_prs": 2}
    """


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Ask about entries, of these modules."""

    def asked(
        *entries: EntryQuestions, modules: tuple[str, ...] = ("shop",), **sources: str
    ) -> EntryAnswers:
        home = Home(str(tmp_path / ".headway"))
        make_home(home)
        for name, text in {"shop": SHOP, **sources}.items():
            (tmp_path / f"{name}.py").write_text("".join(dedent(part) for part in text.split("|")))
        config = Config({"app.modules": modules}, {}, {"there": ("test", "-e", "there")})
        return Asking(home, config).ask(entries)

    return asked


def of(name: str, *conditions: str, group: str = "remote", **more: object) -> EntryQuestions:
    return EntryQuestions(name, group, conditions=conditions, **more)  # type: ignore[arg-type]


@pytest.mark.req("O14")
def test_only_modules_of_the_configuration_register(ask: Ask) -> None:
    answers = ask(of("path", run="shop:mend"), of("plain", run="sweep"), modules=())
    assert list(answers.held) == ["plain"] and "app.modules" in answers.held["plain"]


@pytest.mark.req("O16", "O9", "O17", "O14")
def test_each_entry_gets_its_own_answer(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process is asked all, and new ones after what hung or ended it."""
    monkeypatch.setattr(asking_module, "SECONDS", 1.5)
    answers = ask(
        of("good", "yes", run="sweep"),
        of("path", run="shop:mend"),
        of("held", "yes", "no"),
        of("broken", "breaks"),
        of("exit", "exits"),
        of("leave", "leaves"),
        of("hung", "hangs"),
        of("hung_too", "hangs"),
        of("lost", run="nothing"),
        of("lost_path", run="shop:nothing"),
        of("lost_module", run="no_such_module:f"),
        of("unknown", "never_heard"),
        of("last", "yes"),
        modules=("shop", "torn"),
        torn="raise RuntimeError('half done')",
    )
    held = dict(answers.held)
    torn = "; module torn cannot be imported: RuntimeError: half done"
    assert held.pop("lost") == (
        "no job 'nothing' is registered: no module of app.modules has "
        '@headway.job("nothing")' + torn
    )
    assert held.pop("unknown") == (
        "no condition 'never_heard' is known; write @headway.condition(\"never_heard\")" + torn
    )
    assert held.pop("lost_module").startswith("module no_such_module cannot be imported: Module")
    assert held == {
        "held": "condition no does not hold",
        "broken": "condition breaks raised ValueError: all wrong",
        "exit": "condition exits ended the process that asked it (exit code 3)",
        "leave": "condition leaves raised SystemExit: bye",
        "hung": "condition hangs took longer than 1.5 s",
        "hung_too": "condition hangs took longer than 1.5 s",
        "lost_path": "module shop has no function 'nothing'",
    }
    assert not answers.polled


def test_the_last_words_of_what_ended_the_process_are_told(ask: Ask) -> None:
    """Not those of an earlier question, and however much was printed."""
    text = """
        import os, headway
        @headway.condition("talks")
        def talks(ctx):
            print("earlier words")
            return True
        @headway.condition("silent")
        def silent(ctx): os._exit(4)
        @headway.condition("shouts")
        def shouts(ctx):
            for number in range(20_000):
                print("line", number)
            print("no more\\x07 \\xff")
            os._exit(5)
        """
    answers = ask(of("a", "talks", "silent"), of("b", "shouts"), modules=("loud",), loud=text)
    assert answers.held == {
        "a": "condition silent ended the process that asked it (exit code 4)",
        "b": "condition shouts ended the process that asked it (exit code 5): "
        "no more\\x07 \N{LATIN SMALL LETTER Y WITH DIAERESIS}",
    }


@pytest.mark.parametrize("name", ["json", "headway"])
def test_files_of_the_project_do_not_stand_for_what_headway_needs(ask: Ask, name: str) -> None:
    assert ask(of("a", "yes"), **{name: "raise RuntimeError('the wrong one')\n"}).held == {}


def test_why_the_process_that_asks_cannot_begin_is_told(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_module.sys, "executable", "/bin/false")
    reason = ask(of("a", "yes")).held["a"]
    assert reason.startswith("the process that asks ended the process (exit code 1)")


@pytest.mark.req("O7", "O8")
def test_the_poll_is_fetched_once_and_only_for_remote_ones(ask: Ask, tmp_path: Path) -> None:
    answers = ask(
        of("a", "sees_two", run="sweep", wants_poll=True),
        of("b", "has_open_prs"),
        of("c", run="sweep", wants_poll=True),
        of("d", "sees_none", group="local"),
        of("e", "has_open_prs", group="local"),
        shop=SHOP + "|" + POLL,
    )
    assert (tmp_path / "polled").read_text() == "x"
    assert answers.polled and answers.poll_data == {"open_prs": 2}
    assert dict(answers.held) == {
        "e": "has_open_prs needs the data of the poll, which an entry of group local lacks"
    }


@pytest.mark.req("O7")
def test_an_entry_that_is_held_back_anyway_needs_no_poll(ask: Ask, tmp_path: Path) -> None:
    answers = ask(
        of("a", "no", wants_poll=True),
        of("b", "file_exists:nowhere", "has_open_prs"),
        shop=SHOP + "|" + POLL,
    )
    assert not answers.polled and not (tmp_path / "polled").exists()
    assert answers.held["b"] == "file nowhere does not exist"


@pytest.mark.parametrize(
    ("poll", "trouble"),
    [
        ("raise OSError('down')", "poll raised OSError: down"),
        ("return {1, 2}", "what the poll returned is not JSON: Object of type set is not JSON"),
        ("return 'x' * (1 << 20)", "what the poll returned has 1,048,578 bytes, more than 1,04"),
        ("import time; time.sleep(60)", "the poll took longer than 1.5 s"),
    ],
)
def test_a_poll_that_fails_gives_nothing_and_says_why(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, poll: str, trouble: str
) -> None:
    monkeypatch.setattr(asking_module, "SECONDS", 1.5)
    answers = ask(
        of("a", "sees_none", run="sweep", wants_poll=True),
        of("b", "has_open_prs"),
        shop=f"{SHOP}|\n@poll\ndef fetch(): {poll}\n",
    )
    assert answers.poll_trouble is not None and answers.poll_trouble.startswith(trouble)
    assert answers.poll_data is None
    assert list(answers.held) == ["b"]
    assert answers.held["b"].startswith("has_open_prs has no data of the poll: " + trouble[:20])


@pytest.mark.parametrize(
    ("poll", "polled"), [("\n@poll\ndef fetch(): return None\n", True), ("", False)]
)
def test_a_poll_that_returns_nothing_is_told_from_none(ask: Ask, poll: str, polled: bool) -> None:
    answers = ask(of("a", run="sweep", wants_poll=True), shop=f"{SHOP}|{poll}")
    assert answers == EntryAnswers({}, polled)


def test_two_polls_are_an_error_that_names_both(ask: Ask) -> None:
    answers = ask(
        of("a", run="nothing"),
        modules=("shop", "other"),
        shop=SHOP + "|" + POLL,
        other="import headway\n@headway.poll\ndef again(): ...\n",
    )
    assert "there are two polls, shop.fetch and other.again; keep one" in answers.held["a"]


def test_commands_files_and_the_conditions_of_the_configuration(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    (tmp_path / "way_out").symlink_to("/etc/passwd")
    conditions = {
        "command:test -e there": None,
        "command:sh -c 'exit 1'": "condition command:sh -c 'exit 1' does not hold",
        "command:no-such-program": "condition command:no-such-program cannot be asked: No such",
        "command:'": "condition command:': No closing quotation",
        "file_exists:there": None,
        "file_exists:../x": "condition file_exists:../x is about a place outside of",
        "file_exists:/etc/passwd": "condition file_exists:/etc/passwd is about a place outside of",
        "file_exists:way_out": "condition file_exists:way_out is about a place outside of",
        "there": None,
    }
    answers = ask(*(of(each, each) for each in conditions))
    for each, reason in conditions.items():
        if reason is None:
            assert each not in answers.held
        else:
            assert answers.held[each].startswith(reason)


@pytest.mark.parametrize(
    ("data", "count"),
    [
        ({"queue_counts": {"provisional": 3}}, 3),
        ({"queue_counts": {"provisional": 0}}, 0),
        ({"open_prs": 2}, 2),
        ({"open_prs": ["a"]}, 1),
        ({"open_prs": True, "queue_counts": 7}, 0),
        ([1], 0),
        ({}, 0),
    ],
)
@pytest.mark.req("O17")
def test_how_many_pull_requests_the_poll_tells_of(data: object, count: int) -> None:
    assert open_prs(data) == count
