"""What jobs write, as parts by their offsets and as it comes."""

import os
from pathlib import Path
from typing import Any

import pytest
from served import Served
from wire import Frame, Heard

from headway.base.errors import StoreBusyError
from headway.web import streams


def wrote(frames: list[Frame], stream: str = "stdout") -> str:
    logs = [each.data for each in frames if each.event == "log"]
    return "".join(each["text"] for each in logs if each["stream"] == stream)


def ran(served: Served, script: str, **entry: Any) -> int:
    """A job that has ended."""
    job = served.submit("sh", "-c", script, **entry)
    served.bench.until_ended(job)
    return job


def part(served: Served, job: int, said: str, *, query: str = "", stream: str = "stdout") -> Heard:
    given = [("Range", said)] if said else []
    path = f"jobs/{job}/logs/{stream}{query}"
    return served.ask_as(served.token("read"), "GET", path, None, given)


# -- parts -------------------------------------------------------------------------------------


def test_a_log_is_text_with_its_offsets(shared: Served) -> None:
    job = ran(shared, "echo one; echo two >&2")
    heard = part(shared, job, "")
    assert (heard.status, heard.body) == (200, b"one\n")
    assert heard.header("content-type") == "text/plain; charset=utf-8"
    assert heard.header("headway-log-next") == "4"
    assert heard.header("headway-log-skipped") == "0"
    assert part(shared, job, "", stream="stderr").body == b"two\n"
    assert part(shared, job, "", query="?offset=4").header("headway-log-ended") == "true"
    assert part(shared, job, "", stream="stdin").status == 404


@pytest.mark.parametrize(
    ("said", "query", "code", "body", "range_"),
    [
        ("bytes=0-2", "", 206, b"012", "bytes 0-2/*"),
        ("bytes=8-", "", 206, b"89", "bytes 8-9/*"),
        ("bytes=8-99", "", 206, b"89", "bytes 8-9/*"),
        ("bytes=9-9", "", 206, b"9", "bytes 9-9/*"),
        ("bytes=10-", "", 416, None, "bytes */*"),
        ("bytes=99-", "", 416, None, "bytes */*"),
        ("", "?offset=3&limit=4", 200, b"3456", None),
        ("", "?offset=99", 200, b"", None),
        ("", "?tail=1", 200, b"0123456789", None),
    ],
)
def test_a_part_is_found_by_a_range_or_by_the_query(
    shared: Served, said: str, query: str, code: int, body: bytes | None, range_: str | None
) -> None:
    job = ran(shared, "printf 0123456789")
    heard = part(shared, job, said, query=query)
    assert heard.status == code and heard.headers.get("content-range") == range_
    assert body is None or heard.body == body
    if code == 206:
        assert heard.header("headway-log-next") == str(
            int(said[6:].split("-")[0]) + len(heard.body)
        )


def test_a_range_of_what_is_not_yet_written_is_no_part(served: Served) -> None:
    """An empty part cannot be said with 206."""
    job = served.submit("sh", "-c", "printf ab; read x < go", cwd=str(served.bench.folder))
    go = served.bench.folder / "go"
    os.mkfifo(go)
    served.bench.until(lambda: part(served, job, "").body == b"ab")
    heard = part(served, job, "bytes=2-")
    assert heard.status == 416 and heard.header("headway-log-next") == "2"
    assert heard.header("headway-log-ended") == "false"
    go.write_text("\n")
    served.bench.until_ended(job)


def test_the_last_lines_are_found(shared: Served) -> None:
    job = ran(shared, "seq 1 100")
    assert part(shared, job, "", query="?tail=2").body == b"99\n100\n"


def dropped(served: Served) -> tuple[int, int]:
    """A job whose first bytes were not kept, and how many those are."""
    job = ran(served, "printf 0123456789")
    folder = Path(served.bench.home.job(job))
    (folder / "stdout.log").rename(folder / "stdout.log.1000")
    return job, 1000


def test_bytes_that_were_dropped_are_no_part(shared: Served) -> None:
    job, kept_from = dropped(shared)
    heard = part(shared, job, "bytes=5-")
    assert heard.status == 416 and str(kept_from) in heard.json["detail"]
    heard = part(shared, job, "")
    assert heard.body == b"0123456789" and heard.header("headway-log-skipped") == str(kept_from)
    assert part(shared, job, f"bytes={kept_from}-").status == 206


def test_the_stream_says_how_much_is_not_kept(shared: Served) -> None:
    job, kept_from = dropped(shared)
    with shared.stream(f"jobs/{job}/logs") as following:
        come = following.until("end")
    assert come[0].data["skipped"] == kept_from and wrote(come) == "0123456789"


# -- as it comes -------------------------------------------------------------------------------


def test_a_log_is_followed_while_it_is_written(served: Served) -> None:
    go = served.bench.folder / "go"
    os.mkfifo(go)
    script = "echo one; read x < go; echo two; echo three >&2; exit 3"
    job = served.submit("sh", "-c", script, cwd=str(served.bench.folder))
    with served.stream(f"jobs/{job}/logs") as following:
        served.bench.until(lambda: part(served, job, "").body == b"one\n")
        first = next(following.frames)
        assert first.data == {
            "job": f"job-{job}",
            "stream": "stdout",
            "offset": 0,
            "text": "one\n",
            "skipped": 0,
        }
        go.write_text("\n")
        served.bench.until_ended(job)
        rest = following.until("end")
    assert (wrote(rest), wrote(rest, "stderr")) == ("two\n", "three\n")
    assert rest[-1].data == {"job": f"job-{job}", "state": "failed"}
    assert first.id == f"{job}-4-0" and rest[-1].id == f"{job}-8-6"


def test_one_who_comes_back_gets_the_rest(shared: Served) -> None:
    job = ran(shared, "printf 0123456789; printf abc >&2")
    with shared.stream(f"jobs/{job}/logs", [("Last-Event-ID", f"{job}-7-1")]) as following:
        come = following.until("end")
    assert (wrote(come), wrote(come, "stderr")) == ("789", "bc")
    assert [each.data["offset"] for each in come if each.event == "log"] == [7, 1]


def test_no_piece_is_cut_inside_a_character(
    shared: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.web.handlers.jobs.LOG_PIECE", 7)
    text = "aé€😀" * 20
    job = ran(shared, f"printf '{text}'")
    with shared.stream(f"jobs/{job}/logs") as following:
        come = following.until("end")
    assert wrote(come) == text and len(come) > 20
    at = 0
    for each in come[:-1]:
        assert each.data["offset"] == at
        at += len(each.data["text"].encode())
        assert each.id == f"{job}-{at}-0"


def test_broken_bytes_are_shown_as_broken_and_stop_nothing(shared: Served) -> None:
    job = ran(shared, r"printf 'a\377b\342\202'")  # the last one is a part of a character
    with shared.stream(f"jobs/{job}/logs") as following:
        come = following.until("end")
    assert wrote(come) == "a\ufffdb\ufffd" and come[-1].id == f"{job}-5-0"


@pytest.fixture(scope="module")
def tried(shared: Served) -> int:
    """The first job of a chain of two."""
    script = "echo $HEADWAY_JOB_ID; test -e once || { touch once; exit 1; }"
    folder = str(shared.bench.folder)
    job = shared.submit("sh", "-c", script, retries=1, retry_base="1ms", cwd=folder)
    shared.bench.until_ended(job)
    return job


def test_the_stream_follows_the_chain(shared: Served, tried: int) -> None:
    with shared.stream(f"jobs/{tried}/logs") as following:
        come = following.until("end")
    last = shared.bench.last(tried).id
    assert [each.event for each in come] == ["log", "next", "log", "end"]
    assert come[1].data == {"job": f"job-{last}"} and come[1].id == f"{last}-0-0"
    assert wrote(come) == f"job-{tried}\njob-{last}\n"
    assert come[-1].data == {"job": f"job-{last}", "state": "succeeded"}
    with shared.stream(f"jobs/{tried}/logs", [("Last-Event-ID", come[1].id)]) as following:
        assert wrote(following.until("end")) == f"job-{last}\n"


def test_with_this_it_stays_with_the_one_job(shared: Served, tried: int) -> None:
    with shared.stream(f"jobs/{tried}/logs?this=true") as following:
        come = following.until("end")
    assert [each.event for each in come] == ["log", "end"]
    assert come[-1].data == {"job": f"job-{tried}", "state": "failed"}


def test_a_stream_ends_with_bye_when_the_store_cannot_be_read(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One who is told comes back; one who is cut off may think that it was all."""
    job = served.submit("true")

    def fail(*_: Any, **__: Any) -> Any:
        raise StoreBusyError("another process keeps the store locked")

    with served.stream(f"jobs/{job}/logs") as following:
        monkeypatch.setattr("headway.web.handlers.jobs.read_logs", fail)
        come = list(following.frames)
    assert [each.event for each in come] == ["bye"]
    assert not served.log.errors, "it is no mistake of the program"


def test_a_long_log_comes_whole(shared: Served) -> None:
    assert streams.LOG_PIECE == 64 << 10
    job = ran(shared, "seq 1 60000")
    with shared.stream(f"jobs/{job}/logs") as following:
        come = following.until("end")
    assert wrote(come) == "".join(f"{number}\n" for number in range(1, 60001))
