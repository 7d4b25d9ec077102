"""Agent jobs from submit to result.json, with programs that speak the streams of the real ones."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
from agents import RUNNERS, Agents

from harness import wait_for
from headway.base.errors import (
    InvalidInputError,
)
from headway.core.model import shown
from headway.core.settle import Ending, Outcome, settle
from headway.core.states import Status
from headway.jobs.agents import agent_request
from headway.jobs.submit import specify_all, submit_calls

AUTHOR = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
EVERY_RUNNER = pytest.mark.parametrize("runner", RUNNERS)
FIELDS = {
    *("version", "runner", "runner_version", "session_id", "model", "ok", "error_class", "reason"),
    *("exit_code", "signal", "turns", "usage", "tokens", "cost_usd", "cost_source", "denials"),
    *("final_text", "summary", "artifacts", "structured", "git", "started_at", "finished_at"),
    *("log_sha256", "unreadable_lines", "too_long_lines"),
}


@pytest.mark.req("O3", "O19", "O20", "E1")
@EVERY_RUNNER
def test_an_agent_that_does_its_work_succeeds(agents: Agents, runner: str) -> None:
    job_id = agents.submit(runner, "do it well")
    queued = agents.bench.job(job_id)
    assert (queued.status, queued.type) == (Status.QUEUED, "agent")
    assert queued.retry.max_attempts == 0
    job = agents.bench.until_ended(job_id)[0]
    assert (job.status, job.reason) == (Status.SUCCEEDED, None)
    result = agents.result(job)
    assert set(result) == FIELDS
    assert (result["ok"], result["error_class"], result["reason"]) == (True, None, None)
    assert (result["runner"], result["exit_code"], result["final_text"]) == (
        runner,
        0,
        "all is well",
    )
    assert result["session_id"] == "0b8ff4e6-8d2f-4b42-9c07-3f3f2f6f3a10"
    assert result["usage"]["input"] == 1200 and result["usage"]["cached"] == 300
    assert result["cost_source"] == ("reported" if runner == "claude" else "unknown")
    last = agents.log(job, "stderr").splitlines()[-1]
    assert last.startswith(f"headway: {runner} done; ") and "all is well" in last
    assert all(json.loads(line) for line in agents.log(job, "stdout").splitlines()[1:])


@EVERY_RUNNER
def test_an_error_of_the_model_fails_the_job_with_its_reason(agents: Agents, runner: str) -> None:
    job = agents.ended(runner, "overloaded")
    assert job.status is Status.FAILED
    assert job.reason is not None and job.reason.startswith(f"{runner}: ")
    assert "verloaded" in job.reason
    result = agents.result(job)
    assert (result["ok"], result["error_class"], result["exit_code"]) == (False, "transient", 1)
    assert result["reason"] == job.reason


@EVERY_RUNNER
def test_an_error_in_the_stream_is_a_failure_whatever_the_exit_code(
    agents: Agents, runner: str
) -> None:
    job = agents.ended(runner, "quietly")
    assert (job.status, job.reason) == (Status.FAILED, f"{runner}: it went wrong")
    result = agents.result(job)
    assert (result["exit_code"], result["error_class"]) == (0, "task")
    assert agents.bench.client.document(job.id)["run"]["exit_code"] == 1


@EVERY_RUNNER
def test_a_denied_tool_fails_the_job_unless_its_runner_allows_that(
    agents: Agents, runner: str
) -> None:
    job = agents.ended(runner, "denied")
    assert job.status is Status.FAILED
    assert job.reason is not None and job.reason.startswith(f"{runner} was denied ")
    result = agents.result(job)
    assert result["error_class"] == "permission"
    assert len(result["denials"]) == 1 and result["denials"][0]["tool"] in job.reason
    agents.built_in(runner, parser=f'"{_parser(agents, runner)}"\ndenials = "allow"')
    job = agents.ended(runner, "denied")
    assert job.status is Status.SUCCEEDED
    assert len(agents.result(job)["denials"]) == 1


def _parser(agents: Agents, runner: str) -> str:
    from headway.integrations.agents.files import load_runner

    return load_runner(runner, agents.bench.home.path).parser


@EVERY_RUNNER
def test_an_agent_that_says_nothing_is_ended(agents: Agents, runner: str) -> None:
    agents.built_in(runner, first_output='"300ms"')
    job = agents.ended(runner, "hang", grace=1_000_000)
    assert (job.status, job.reason) == (
        Status.FAILED,
        f"{runner}: no output within 0.3 s of its start",
    )
    result = agents.result(job)
    assert (result["error_class"], result["signal"]) == ("stalled", "SIGTERM")
    assert agents.bench.client.document(job.id)["run"]["exit_code"] == 124


def test_silence_in_between_and_a_work_too_long_are_ended(agents: Agents) -> None:
    agents.built_in("claude", idle='"300ms"')
    job = agents.ended("claude", "stall", grace=1_000_000)
    assert job.reason == "claude: no output for 0.3 s"
    assert agents.result(job)["error_class"] == "stalled"
    agents.built_in("claude", wall='"300ms"')
    job = agents.ended("claude", "stall", grace=1_000_000)
    assert job.reason == "claude: not done within 0.3 s"
    result = agents.result(job)
    assert result["error_class"] == "limit"
    assert result["session_id"] is not None, "what it had told by then is kept"


def test_an_agent_that_does_not_heed_is_killed(agents: Agents) -> None:
    agents.built_in("claude", idle='"200ms"')
    job = agents.ended("claude", "ignores", grace=1_200_000)
    assert job.reason == "claude: no output for 0.2 s"
    assert agents.result(job)["signal"] == "SIGKILL"


def test_the_jobs_own_timeout_takes_the_place_of_the_runners(agents: Agents) -> None:
    agents.built_in("claude", wall='"100ms"')
    job = agents.ended("claude", "stall", timeout=600_000, grace=1_500_000)
    assert (job.status, job.reason) == (Status.FAILED, "timed out after 0.6 s")
    result = agents.result(job)
    assert (result["ok"], result["reason"]) == (False, "claude: it was stopped")


def test_a_cancelled_agent_is_cancelled_and_leaves_its_result(agents: Agents) -> None:
    job = agents.submit("claude", "stall")
    log = Path(agents.bench.home.job(job)) / "stdout.log"
    agents.bench.until(lambda: log.exists() and "init" in log.read_text())
    agents.bench.client.cancel([job])
    ended = agents.bench.until_ended(job)[0]
    assert ended.status is Status.CANCELLED
    assert agents.result(ended)["ok"] is False


def test_nothing_that_an_agent_leaves_behind_keeps_its_result_from_being_written(
    agents: Agents,
) -> None:
    """Cancelled, out of time, or cancelled when it had ended and its child had not."""
    grace = {"grace": 1_000_000}
    cancelled = agents.submit("claude", "clings", **grace)
    late = agents.submit("claude", "clings", timeout=600_000, **grace)
    done = agents.submit("claude", "leaves", **grace)
    agents.bench.until(lambda: all(_pid(agents, job) for job in (cancelled, done)))
    agents.bench.until(lambda: _is_gone(_pid(agents, done)))
    agents.bench.client.cancel([cancelled, done])
    jobs = agents.bench.until_ended(cancelled, late, done)
    results = [agents.result(job) for job in jobs]
    assert [each["signal"] for each in results] == ["SIGKILL", "SIGKILL", None]
    assert [each["reason"] for each in results] == [*["claude: it was stopped"] * 2, None]
    assert results[2]["final_text"] == "all is well"


def _pid(agents: Agents, job: int) -> int:
    log = Path(agents.bench.home.job(job)) / "stderr.log"
    words = log.read_text().split() if log.exists() else []
    return int(words[1]) if words[:1] == ["pid"] and len(words) > 1 else 0


def _is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("runner", ["codex", "gemini", "command"])
def test_turns_are_counted_where_the_program_cannot(agents: Agents, runner: str) -> None:
    job = agents.ended(runner, "turns 9", max_turns=3, grace=1_000_000)
    assert (job.status, job.reason) == (Status.FAILED, f"{runner}: it used up its 3 turns")
    assert agents.result(job)["error_class"] == "limit"


@EVERY_RUNNER
def test_a_crash_is_told_with_its_signal(agents: Agents, runner: str) -> None:
    job = agents.ended(runner, "crash")
    assert (job.status, job.reason) == (Status.FAILED, f"{runner} was killed by SIGSEGV")
    assert agents.result(job)["signal"] == "SIGSEGV"


def test_an_exit_code_counts_against_a_good_stream(agents: Agents) -> None:
    job = agents.ended("claude", "loudly")
    assert job.reason == "claude ended with exit code 3: it went wrong after all"
    assert agents.bench.client.document(job.id)["run"]["exit_code"] == 3


def test_an_exit_code_means_skipped_if_it_is_the_agents_own(agents: Agents) -> None:
    own = agents.submit("claude", "loudly", skip_exit_codes=(3,))
    of_the_wrapper = agents.submit("claude", "quietly", skip_exit_codes=(1,))
    jobs = agents.bench.until_ended(own, of_the_wrapper)
    assert [job.status for job in jobs] == [Status.SKIPPED, Status.FAILED]
    assert jobs[1].reason == "claude: it went wrong"


@pytest.mark.parametrize("runner", ["claude", "codex", "gemini"])
def test_a_stream_that_ends_without_its_result_is_no_success(agents: Agents, runner: str) -> None:
    job = agents.ended(runner, "mute")
    assert (job.status, job.reason) == (
        Status.FAILED,
        f"{runner} ended without telling a result",
    )


@EVERY_RUNNER
def test_lines_that_nobody_understands_hurt_nothing(agents: Agents, runner: str) -> None:
    job = agents.ended(runner, "garbage")
    assert job.status is Status.SUCCEEDED
    assert agents.result(job)["final_text"] == "all is well"


def test_a_line_without_end_is_passed_on_and_left_unread(agents: Agents) -> None:
    job = agents.ended("claude", "huge")
    assert job.status is Status.SUCCEEDED
    assert agents.result(job)["too_long_lines"] == 1
    assert len(agents.log(job, "stdout")) > 5 << 20


def test_what_an_agent_leaves_behind_is_ended_with_it(agents: Agents) -> None:
    token = f"left-{agents.bench.folder.name}"
    job = agents.ended("claude", "children", env={"HEADWAY_TEST_LEFT": token})
    assert job.status is Status.SUCCEEDED
    wait_for(lambda: not _with_variable(f"HEADWAY_TEST_LEFT={token}"))


def _with_variable(text: str) -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if text.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
        except OSError:
            continue
    return found


def test_an_agent_does_not_outlive_its_wrapper(agents: Agents) -> None:
    token = f"orphan-{agents.bench.folder.name}"
    job = agents.submit("claude", "stall", env={"HEADWAY_TEST_LEFT": token})
    folder = Path(agents.bench.home.job(job))
    agents.bench.until(lambda: (folder / "stdout.log").exists())
    started = json.loads(next(folder.glob("started.*")).read_text())
    os.kill(started["child_pid"], signal.SIGKILL)
    ended = agents.bench.until_ended(job)[0]
    assert (ended.status, ended.reason) == (Status.FAILED, "killed by SIGKILL")
    wait_for(lambda: not _with_variable(f"HEADWAY_TEST_LEFT={token}"))
    assert agents.bench.client.document(job)["run"]["result"] is None


def test_there_is_no_terminal_and_standard_input_has_an_end(agents: Agents) -> None:
    job = agents.ended("claude", "terminal")  # fault B15
    assert agents.result(job)["final_text"] == "no terminal, stdin is at its end: ''"


def test_only_what_the_runner_lets_through_reaches_the_agent(agents: Agents) -> None:
    environ = agents.bench.client.context.environ
    secrets = {"ANTHROPIC_API_KEY": "k", "AWS_REGION": "r", "SECRET": "s", "LANG": "C.UTF-8"}
    agents.bench.client.context.environ = {**environ, **secrets, "OPENAI_API_KEY": "k"}
    job = agents.ended("claude", "environment", env={"EXTRA": "1"})
    seen = set(agents.result(job)["final_text"].split())
    assert {"ANTHROPIC_API_KEY", "AWS_REGION", "LANG", "PATH", "HOME", "EXTRA"} <= seen
    assert {"HEADWAY_JOB_ID", "HEADWAY_RESULT_FILE", "CLAUDE_CODE_MAX_RETRIES"} <= seen
    assert not seen & {"SECRET", "OPENAI_API_KEY"}
    kept = Path(agents.bench.home.job(job.id))
    written = "".join(each.read_text(errors="replace") for each in kept.iterdir())
    assert '"s"' not in written


def test_an_agent_that_nobody_submitted_sees_little(
    agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("HOME", "/somewhere")
    path = f"{agents.programs}:/usr/bin:/bin"
    agents.built_in("claude", DISABLE_AUTOUPDATER=f'"1"\nPATH = "{path}"')
    specs = specify_all(agents.bench.client.context, [agent_request("environment")])
    [submitted] = submit_calls(agents.bench.client.context, specs)
    job = agents.bench.until_ended(submitted.job_id)[0]
    seen = set(agents.result(job)["final_text"].split())
    assert {"HOME", "PATH", "HEADWAY_JOB_ID", "CLAUDE_CODE_MAX_RETRIES"} <= seen
    assert not seen & {"SECRET", "ANTHROPIC_API_KEY"}


def test_a_schedule_makes_agent_jobs(agents: Agents) -> None:
    path = f"{agents.programs}:/usr/bin:/bin"
    agents.built_in("codex")
    text = (Path(agents.bench.home.path) / "runners" / "codex.toml").read_text()
    agents.runner("own", f'{text}\n[env]\nPATH = "{path}"\n')
    agents.bench.client.schedules.add(name="ask", every="1h", runner="own", prompt="where")
    job = agents.bench.until_ended(agents.bench.client.schedules.trigger("ask").job_id)[0]
    assert (job.status, job.type, job.retry.max_attempts) == (Status.SUCCEEDED, "agent", 0)
    assert job.schedule_id == "schedule-1"
    assert agents.result(job)["final_text"] == str(agents.bench.folder)


@pytest.mark.req("O19")
def test_an_agent_works_at_the_root_of_the_project_and_has_its_own_folder(
    agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = agents.bench.folder / "deep" / "down"
    elsewhere.mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    job = agents.ended("claude", "where")
    assert agents.result(job)["final_text"] == str(agents.bench.folder)
    job = agents.ended("claude", "where", cwd=str(elsewhere))
    assert agents.result(job)["final_text"] == str(elsewhere)


def test_what_the_agent_wrote_down_is_taken_in(agents: Agents) -> None:
    job = agents.ended("claude", "writes")
    result = agents.result(job)
    assert (result["summary"], result["artifacts"]) == ("I did it", ["file:app"])
    assert "more" not in result
    assert "I did it" in agents.log(job, "stderr").splitlines()[-1]


def test_the_words_are_those_of_the_runner_and_no_shell_reads_them(agents: Agents) -> None:
    job = agents.ended(
        "claude",
        "words $(touch boom); touch boom",
        model="opus; touch boom",
        max_turns=4,
        allowed_tools=["Read", "Bash(git log:*)"],
        budget_usd=2.5,
    )
    words = json.loads(agents.result(job)["final_text"])
    assert "--model=opus; touch boom" in words and "--max-turns=4" in words
    assert "--allowedTools=Read,Bash(git log:*)" in words and "--max-budget-usd=2.5" in words
    assert not (agents.bench.folder / "boom").exists()
    job = agents.ended("claude", "words")
    words = json.loads(agents.result(job)["final_text"])
    assert "--max-turns=10" in words and "--allowedTools=Read,Grep,Glob" in words
    assert not any(word.startswith(("--model", "--max-budget")) for word in words)


@pytest.mark.parametrize(
    ("way", "word"),
    [("file", '"--file", "{prompt_file}"'), ("argument", '"--argument", "--", "{prompt}"')],
)
def test_a_prompt_can_come_by_file_or_as_an_argument(agents: Agents, way: str, word: str) -> None:
    agents.runner(
        "own", f'argv = ["claude", {word}]\nprompt = "{way}"\nparser = "claude-stream-json"\n'
    )
    job = agents.ended("own", "terminal -x" if way == "file" else "-words")
    result = agents.result(job)
    assert result["ok"], result
    if way == "file":
        assert result["final_text"].startswith("no terminal")
        prompt = Path(agents.bench.home.job(job.id)) / "prompt.txt"
        assert prompt.stat().st_mode & 0o777 == 0o600


def test_a_cause_of_an_agent_can_be_named_for_retries(agents: Agents) -> None:
    wanted = {"retries": 1, "retry_base": 1000}
    first = agents.submit("claude", "overloaded", retry_on=("transient",), **wanted)
    agents.built_in("claude", tested='"1"\nauth = "fail"')
    other = agents.submit("claude", "refused", retry_on=("transient",), **wanted)
    agents.bench.until_ended(first, other)
    assert len(agents.bench.client.jobs.chain(first)) == 2
    assert len(agents.bench.client.jobs.chain(other)) == 1
    assert agents.result(agents.bench.job(other))["error_class"] == "auth"
    with pytest.raises(InvalidInputError, match="is not an exit code or one of"):
        agents.submit("claude", "x", retry_on=("ValueError",))


@pytest.mark.parametrize("ending", ["host_rebooted", "evidence_missing", "outcome_unknown"])
def test_what_cannot_be_known_of_an_agent_is_never_tried_again(agents: Agents, ending: str) -> None:
    agents.bench.engine.dispatching = False
    job = agents.bench.job(agents.submit("claude", "do it", retries=3))
    running = job._replace(status=Status.RUNNING)
    answer = settle(running, Outcome(Ending(ending), 1))
    assert getattr(answer, "retry", None) is None
    command = running._replace(type="command", params={"argv": ["true"]})
    assert getattr(settle(command, Outcome(Ending(ending), 1)), "retry", None) is not None


def test_agents_count_for_the_limit_of_their_type(agents: Agents) -> None:
    agents.bench.client.set_setting("scheduler.limits.type.agent", 1)
    first, second = (agents.submit("claude", "stall") for _ in range(2))
    agents.bench.until(lambda: agents.bench.status(first) is Status.RUNNING)
    agents.bench.step()
    assert agents.bench.status(second) is Status.QUEUED
    agents.bench.client.cancel([first, second])
    agents.bench.until_ended(first, second)


def test_an_agent_works_in_a_worktree_of_its_own(agents: Agents) -> None:
    for words in (["init", "-q"], [*AUTHOR, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *words], check=True, cwd=agents.bench.folder)
    job = agents.ended("claude", "where", worktree="")
    assert agents.result(job)["final_text"].endswith(f"worktrees/{shown(job.id)}")


def test_the_result_says_what_was_done_in_the_repository(agents: Agents, tmp_path: Path) -> None:
    repo = tmp_path / "repo"

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *AUTHOR, *words], cwd=repo, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    repo.mkdir()
    git("init", "-q", "-b", "main")
    (repo / "kept").write_text("one\ntwo\n")
    git("add", "."), git("commit", "-qm", "first")
    base = git("rev-parse", "HEAD")
    author = " ".join(f"'{each}'" for each in AUTHOR)
    script = agents.programs / "worker"
    script.write_text(
        "#!/bin/sh\ncat > /dev/null\necho new > 'made file'; echo three >> kept\n"
        f"git add kept; git {author} commit -qm second; echo left > kept\n"
    )
    script.chmod(0o755)
    job = agents.ended("command", "x", argv=("worker",), cwd=str(repo))
    assert job.status is Status.SUCCEEDED
    assert agents.result(job)["git"] == {
        "branch": "main",
        "base": base,
        "head": git("rev-parse", "HEAD"),
        "commits": 1,
        "files_changed": 2,
        "files": ["kept", "made file"],
        "insertions": 1,
        "deletions": 2,
    }


def test_an_idle_timeout_takes_the_place_of_its_runners(agents: Agents) -> None:
    job = agents.ended("claude", "stall", idle_timeout="1s")
    assert (job.status, job.reason) == (Status.FAILED, "claude: no output for 1 s")
