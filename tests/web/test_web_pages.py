"""Pages without a browser: what is escaped, kept, refused, and how much is sent."""

import gzip
import re
import time
from collections.abc import Callable
from typing import Any
from unicodedata import category
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served import Served
from test_walk import sign_in
from wire import Heard

from harness import Bench
from headway.core.principals import PERSON, Principal, Role
from headway.jobs.request import Request
from headway.web.calls import Reply
from headway.web.pages.acts import back
from headway.web.pages.assets import ASSETS, SCRIPT, STYLE
from headway.web.pages.escapes import AnsiReader, ansi, visible
from headway.web.pages.graph import MOST_BOXES
from headway.web.pages.live import MOST_JOBS, topics_of
from headway.web.pages.page import SAID, said_of
from headway.web.pages.regions import LASTS, MOST, RegionCache, RegionKey

PAGE = [("Accept", "text/html")]


# -- texts of strangers -------------------------------------------------------------------------


@given(st.text())
def test_no_text_becomes_markup_and_none_hides(text: str) -> None:
    made = str(visible(text))
    without_ours = re.sub(r'<b class="esc">[^<>]*</b>', "", made)
    assert "<" not in without_ours and ">" not in without_ours
    assert all(each.isprintable() or each in "\n\t" or category(each) == "Zs" for each in made)


PARTS = ("\x1b[31m", "\x1b[0m", "\x1b]8;;x\x07", "a<b", "\x1b[2J", "ä", "\x1b[38;5;2m")


@given(st.lists(st.sampled_from(PARTS)), st.data())
def test_a_log_in_pieces_is_the_log_as_a_whole(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    reader = AnsiReader()
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    made = "".join(str(reader.read(each)) for each in pieces)
    assert _flat(made) == _flat(str(ansi(text)))


def _flat(html: str) -> list[tuple[str, str]]:
    """Each character with the class that it has."""
    found: list[tuple[str, str]] = []
    for look, inner, plain in re.findall(r'<span class="([^"]*)">(.*?)</span>|([^<]+)', html):
        found += [(look, char) for char in inner or plain]
    return found


def test_colours_stay_and_all_else_that_a_terminal_would_do_is_dropped() -> None:
    made = str(ansi("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 \x1b[2J<b>"))
    assert made == '<span class="bold fg-red">red</span> link &lt;b&gt;'


# -- coming back --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "leads_to"),
    [
        ("/ui/jobs?state=failed", "/ui/jobs?state=failed&said=retried.job-7"),
        ("/ui/jobs?said=approved.x&name=a", "/ui/jobs?name=a&said=retried.job-7"),
        ("/ui//evil.example/", "/ui/"),
        ("/ui/\\evil", "/ui/"),
        ("/ui/x\r\nSet-Cookie: a=b", "/ui/"),
        ("https://evil.example/ui/", "/ui/"),
        (None, "/ui/?said=retried.job-7"),
    ],
)
def test_a_form_leads_back_to_a_page_of_ours(given: str | None, leads_to: str) -> None:
    call: Any = type("Call", (), {"body": {} if given is None else {"back": given}})
    assert back(call, "retried", "job-7").headers["Location"] == leads_to


def test_what_a_page_says_is_of_its_own_words() -> None:
    assert said_of("approved.job-3") == "job-3 is approved."
    assert said_of("anything else") is None and said_of("<b>.x") is None
    assert said_of("retried.<b>hi all is well") == "It will run again."
    assert all("{}" in each or "." in each for each in SAID.values())


def test_no_template_shows_what_is_hidden(served: Served) -> None:
    job = served.submit("echo", "\u202egnp.exe")
    page = served.ask_as(served.token("read"), "GET", f"/ui/jobs/{job}", None, PAGE).body.decode()
    assert "\\u202e" in page and "\u202e" not in page


def test_nobody_agrees_on_the_overview_to_what_it_does_not_show(served: Served) -> None:
    short = served.submit("echo", "go", require_approval=True)
    long = served.submit("echo", *["harmless"] * 40, "the end", require_approval=True)
    lines = served.submit("printf", "one\ntwo", require_approval=True)
    served.bench.step()
    page = served.ask_as(served.token("operate"), "GET", "/ui/", None, PAGE).body.decode()
    assert f'formaction="/ui/jobs/job-{short}/approve"' in page
    assert str(served.bench.folder) in page
    for job in (long, lines):
        assert f'href="/ui/jobs/job-{job}/approve"' in page
        assert f'formaction="/ui/jobs/job-{job}/approve"' not in page


@pytest.mark.parametrize("verb", ["approve", "reject", "cancel"])
def test_what_has_ended_has_no_button(served: Served, verb: str) -> None:
    job = served.submit("true")
    served.bench.until_ended(job)
    path = f"/ui/jobs/job-{job}/{verb}"
    page = served.ask_as(served.token("operate"), "GET", path, None, PAGE).body.decode()
    assert "<form" in page and not re.search(r'<button class="main', page)


def test_a_login_link_that_is_used_up_is_a_page_in_a_browser(served: Served) -> None:
    form = [("Content-Type", "application/x-www-form-urlencoded"), ("Sec-Fetch-Site", "none")]
    with served.wire() as wire:
        heard = wire.ask("POST", "/login", [*form, *PAGE], b"code=used")
    assert heard.status == 403 and "headway web login" in heard.body.decode()
    assert heard.header("content-type") == "text/html; charset=utf-8"


def test_a_form_changes_only_what_was_seen(served: Served) -> None:
    job = served.submit("echo", "one", require_approval=True)
    served.bench.step()
    secret, mark = sign_in(served, "operate")
    given = [("Cookie", f"headway={secret}"), ("Sec-Fetch-Site", "same-origin"), *PAGE]
    (asked,) = served.get("approvals")["approvals"]
    served.ask("PATCH", f"jobs/{job}", {"argv": ["echo", "two"]})
    form = f"csrf={mark}&revision={asked['revision']}"

    def approve(form: str) -> int:
        with served.wire() as wire:
            headers = [*given, ("Content-Type", "application/x-www-form-urlencoded")]
            return wire.ask("POST", f"/ui/jobs/{job}/approve", headers, form.encode()).status

    assert approve(form) == 412
    assert approve(form.replace(mark, mark[:-1])) == 403
    fresh = served.get("approvals")["approvals"][0]["revision"]
    assert approve(f"csrf={mark}&revision={fresh}") == 303
    assert served.get("approvals")["approvals"] == []


# -- regions ------------------------------------------------------------------------------------


def key(
    path: str = "/ui/", position: int = 1, role: Role = Role.READ, name: str = "a"
) -> RegionKey:
    return RegionKey.of(path, {"region": "x"}, Principal(name, name, PERSON, role), position)


def test_a_region_is_kept_for_a_moment_for_readers_who_may_the_same() -> None:
    cache = RegionCache()
    cache.keep(key(), 10.0, Reply(body=b"x"))
    assert cache.find(key(name="b"), 10.5) == Reply(body=b"x")
    assert cache.find(key(), 10.0 + LASTS + 0.1) is None, "time, the worker and logs go on"
    assert cache.find(key(position=2), 10.5) is None, "something has happened"
    assert cache.find(key(role=Role.OPERATE), 10.5) is None
    cache.keep(key(role=Role.SUBMIT), 10.0, Reply(body=b"y"))
    assert cache.find(key(role=Role.SUBMIT, name="b"), 10.5) is None, "its own jobs are others"


def test_the_cache_is_bounded() -> None:
    cache = RegionCache()
    for number in range(MOST + 10):
        cache.keep(key(position=number), 10.0, Reply(body=b"x"))
    assert cache.find(key(position=0), 10.0) is None
    assert cache.find(key(position=MOST + 9), 10.0) is not None
    cache.keep(key(position=-1), 10.0, Reply(body=b"x" * (33 << 20)))
    assert cache.find(key(position=MOST + 9), 10.0) is None, "by bytes as well"


def test_a_region_has_neither_the_name_nor_the_mark_of_its_reader(served: Served) -> None:
    served.submit("echo", "go", require_approval=True)
    served.bench.step()
    secret, mark = sign_in(served, "operate")
    cookie = [("Cookie", f"headway={secret}"), *PAGE]
    whole = served.ask_as(None, "GET", "/ui/approvals", None, cookie)
    assert mark.encode() in whole.body and b"owner" in whole.body
    region = served.ask_as(None, "GET", "/ui/approvals?region=inbox", None, cookie)
    assert region.status == 200 and b"Approve" in region.body
    assert mark.encode() not in region.body and b"owner" not in region.body
    missing = served.ask_as(None, "GET", "/ui/approvals?region=main", None, cookie)
    assert missing.status == 404, "only what is live is a region"


# -- what is live -------------------------------------------------------------------------------


def test_a_drain_is_few_words() -> None:
    events = [{"kind": "succeeded", "job": f"job-{each}"} for each in range(20_000)]
    frame = topics_of(
        [*events, {"kind": "schedule_fired", "job": None}, {"kind": "paused", "job": None}]
    )
    assert frame["topics"] == ["jobs", "schedules", "scheduler"] or set(frame["topics"]) == {
        "jobs", "scheduler", "schedules"
    }  # fmt: skip
    assert len(frame["jobs"]) == MOST_JOBS and frame["more"]


def test_the_stream_names_what_changed_and_brings_the_log(served: Served) -> None:
    job = served.submit("sh", "-c", "printf '\\033[31mred\\033[0m <b>'; sleep 600")
    served.bench.until(lambda: served.get(f"jobs/{job}")["job"]["state"] == "running")
    with served.stream(f"/ui/live?log={job}-0-0") as stream:
        seen = stream.until("log")
        assert seen[0].event == "hello"
        assert seen[-1].data["html"] == '<span class="fg-red">red</span> &lt;b&gt;'
        served.post(f"jobs/{job}/cancel")
        news = stream.until("news")[-1].data
        assert f"job-{job}" in news["jobs"] and "jobs" in news["topics"]
    assert served.ask("GET", "/ui/live?log=9-0-0").status == 404
    assert served.ask("GET", "/ui/live?log=x").status == 400


def test_frames_are_four_a_second_at_most(served: Served) -> None:
    with served.stream("/ui/live") as stream:
        stream.until("hello")
        begun, named, count = time.monotonic(), set[str](), 0
        jobs = {f"job-{served.submit('true')}" for _ in range(40)}
        while not jobs <= named:
            named |= set(stream.until("news")[-1].data["jobs"])
            count += 1
            if count < 5:
                jobs.add(f"job-{served.submit('true')}")
        passed = time.monotonic() - begun
    assert 4 <= count <= passed / 0.25 + 2


def test_who_comes_back_is_told_whether_something_was_missed(served: Served) -> None:
    with served.stream("/ui/live") as stream:
        last = stream.until("hello")[-1].id
    with served.stream("/ui/live", [("Last-Event-ID", last)]) as stream:
        assert stream.until("hello")[-1].data == {"missed": False}
    served.submit("true")
    with served.stream("/ui/live", [("Last-Event-ID", last)]) as stream:
        assert stream.until("hello")[-1].data == {"missed": True}


# -- who sees what ------------------------------------------------------------------------------


def test_a_reader_sees_no_button(served: Served) -> None:
    job = served.submit("echo", "go", require_approval=True)
    served.bench.step()
    for path in ("/ui/", "/ui/jobs", "/ui/approvals", f"/ui/jobs/{job}"):
        heard = served.ask_as(served.token("read"), "GET", path, None, PAGE)
        assert heard.status == 200 and b"formaction" not in heard.body, path
    agent = served.ask_as(served.token("operate", agent=True), "GET", "/ui/approvals", None, PAGE)
    assert b"Approve" not in agent.body, "a person decides"


def test_one_who_is_not_signed_in_is_told_how(served: Served) -> None:
    heard = served.ask_as(None, "GET", "/ui/jobs?state=failed", None, PAGE)
    assert heard.status == 401
    page = heard.body.decode()
    assert "headway web login --plain" in page
    assert f"http://{served.name}:{served.port}/ui/jobs?state=failed" in page
    assert served.ask_as(None, "GET", "/ui/jobs").json["status"] == 401, "programs get a document"


def test_values_of_an_environment_are_on_no_page(served: Served) -> None:
    job = served.submit("true", env={"TOKEN": "canary"})
    page = served.ask_as(served.token("admin"), "GET", f"/ui/jobs/{job}", None, PAGE).body
    assert b"TOKEN" in page and b"canary" not in page


# -- what a page has ----------------------------------------------------------------------------


def page_of(served: Served, path: str, role: str = "admin") -> str:
    heard = served.ask_as(served.token(role), "GET", path, None, PAGE)
    assert heard.status == 200, heard
    return heard.body.decode()


def sent(served: Served, path: str, **words: str) -> Heard:
    """What a form of a page sends."""
    secret, mark = sign_in(served, "operate")
    kind = ("Content-Type", "application/x-www-form-urlencoded")
    headers = [("Cookie", f"headway={secret}"), ("Sec-Fetch-Site", "same-origin"), *PAGE, kind]
    with served.wire() as wire:
        return wire.ask("POST", path, headers, urlencode({"csrf": mark, **words}).encode())


def test_a_schedule_that_fires_often_hides_no_other(served: Served) -> None:
    for name, cron in {"often": "* * * * *", "rare": "30 2 * * *"}.items():
        served.post("schedules", {"name": name, "cron": cron, "job": {"argv": ["true"]}})
    page = page_of(served, "/ui/schedules?region=calendar")
    soon, _, week = page.partition("To come")
    assert ">often</a>" in soon and "29 or more times" in soon
    assert week.count(">rare</a>") == 7
    assert week.count(">often</a>") == 1 and "every minute" in week


def test_a_job_that_waits_is_edited(served: Served) -> None:
    job = served.submit("echo", "two words", name="first", delay="1h")
    path = f"/ui/jobs/{job}/edit"
    page = page_of(served, path)
    assert "echo &#39;two words&#39;</textarea>" in page
    found = re.search(r'name="revision" value="([^"]+)"', page)
    assert found is not None
    revision = found[1]
    words = {"name": "first", "command": "echo 'three  words'", "priority": "7"}
    assert sent(served, path, revision=revision, **words).status == 303
    changed = served.get(f"jobs/{job}")["job"]
    assert changed["params"]["argv"] == ["echo", "three  words"]
    assert (changed["name"], changed["priority"]) == ("first", 7)
    assert sent(served, path, revision=revision, name="late").status == 412, "it was seen before"
    assert sent(served, path, command="echo 'open").status == 400
    assert served.get(f"jobs/{job}")["job"]["name"] == "first"


def test_lines_of_a_script_are_not_changed_by_their_ends(served: Served) -> None:
    heard = served.post("jobs", {"shell": "echo one\necho two", "delay": "1h"})
    job = heard.json["job"]["id"]
    assert sent(served, f"/ui/jobs/{job}/edit", command="echo one\r\necho two").status == 303
    events = served.get(f"jobs/{job}?include=events")["events"]
    assert "edited" not in [each["kind"] for each in events]


def test_what_runs_has_no_form(served: Served) -> None:
    job = served.submit("true")
    served.bench.until_ended(job)
    assert "It waits no longer" in page_of(served, f"/ui/jobs/{job}/edit")
    assert f"/ui/jobs/job-{job}/edit" not in page_of(served, f"/ui/jobs/{job}")


def test_a_log_is_seen_by_stream_and_by_text(served: Served) -> None:
    job = served.submit("sh", "-c", "seq 1000; echo Trouble at 3 >&2; echo fine >&2")
    served.bench.until_ended(job)

    def log(query: str) -> str:
        page = page_of(served, f"/ui/jobs/{job}{query}")
        return page.partition('id="output"')[2].partition(">")[2].partition("</pre>")[0]

    assert "1000" in log("") and "fine" in log("") and "\n3\n" not in log("")
    assert "1000" not in log("?stream=stderr") and "fine" in log("?stream=stderr")
    assert log("?find=trouble") == '<span class="err">Trouble at 3\n</span>'
    assert log("?find=33&stream=stdout").split()[:2] == ["33", "133"]
    assert log("?find=nowhere") == ""


def test_a_job_shows_how_far_it_came(served: Served) -> None:
    job = served.submit("true")
    assert "waits" in page_of(served, f"/ui/jobs/{job}").partition('"steps"')[2][:300]
    served.bench.until_ended(job)
    steps = page_of(served, f"/ui/jobs/{job}").partition('"steps"')[2].partition("</ol>")[0]
    words = re.findall(r"<li>(\w+)", steps)
    assert words == ["submitted", "waited", "ran", "succeeded"]


def test_the_overview_says_what_is_usual_and_since_when_others_wait(
    serve: Callable[..., Served], make_bench: Callable[..., Bench]
) -> None:
    served = serve(make_bench(max_active=2))
    served.bench.until_ended(served.submit("true", name="build"))
    running = [served.submit("sleep", "600", name="build") for _ in range(2)]
    served.bench.until(lambda: len(served.get("jobs?state=running")["jobs"]) == 2)
    served.submit("true")
    served.bench.step()
    served.clock.pass_by(90)
    page = page_of(served, "/ui/")
    assert page.count("usually") == 2 and "1 ready, the oldest for" in page
    assert ">1m 3" in page.partition("the oldest for")[2][:200]
    served._client.cancel(running)


def test_a_run_says_why_each_node_waits(served: Served) -> None:
    folder = served.bench.folder / ".headway" / "workflows"
    folder.mkdir()
    text = '[nodes.a]\nargv = ["false"]\n[nodes.b]\nargv = ["true"]\nafter = ["a"]\n'
    (folder / "short.toml").write_text(text, encoding="utf-8")
    assert served.post("workflows/short/runs", {}).status == 201
    served.bench.step()
    nodes = page_of(served, "/ui/workflow-runs/wf-1?region=nodes")
    assert 'waiting on job <a href="/ui/jobs/job-1">' in nodes
    served.bench.until_ended(1)
    assert "exit code 1" in page_of(served, "/ui/workflow-runs/wf-1").partition('"nodes"')[2]


def test_who_decides_is_led_to_what_was_written_before(served: Served) -> None:
    first = served.submit("echo", "read me")
    job = served.submit("true", after=[f"job-{first}"], require_approval=True)
    served.bench.until_ended(first)
    served.bench.step()
    page = page_of(served, "/ui/approvals")
    assert f'"/ui/jobs/job-{first}#log"' in page and f'"/ui/jobs/job-{job}#why"' in page


def test_an_admin_sees_what_the_doctor_says(served: Served) -> None:
    page = page_of(served, "/ui/settings?doctor=true")
    assert "all rows fit together" in page and '<span class="state good">ok</span>' in page
    assert 'id="doctor"' not in page_of(served, "/ui/settings")
    assert 'id="doctor"' not in page_of(served, "/ui/settings?doctor=true", "operate")


def test_a_form_has_what_is_hidden_as_it_is(served: Served) -> None:
    """Escapes for its reader would end the value, and be sent as a part of it."""
    page = page_of(served, "/ui/jobs?name=%E2%80%AEx%22")
    assert 'value="\u202ex&#34;"' in page


def test_thousands_of_equal_jobs_share_a_box(served: Served) -> None:
    served._client.scheduler.pause()
    served._client.submit_many([Request(("true",), name="lone")] * (MOST_BOXES + 1))
    page = page_of(served, "/ui/graph?region=picture")
    assert f"{MOST_BOXES + 1:,} × lone" in page and page.count("data-job=") == 1
    whole, half = (page_of(served, f"/ui/graph?region=picture&size={each}") for each in (100, 50))
    widths = [int(re.findall(r'<svg [^>]*width="(\d+)"', each)[0]) for each in (whole, half)]
    assert widths[0] == 2 * widths[1]


def test_pages_name_a_few_of_thousands_and_count_the_others(served: Served) -> None:
    """So a page is as fast beside 3,000 as beside three."""
    served._client.scheduler.pause()
    first = served.submit("true", locks=["repo"])
    many = [Request(("true",), after=(first,), locks=("repo",))] * 30
    served._client.submit_many(many)
    served._client.submit_many([Request(("true",), require_approval=True)] * 110)
    page = page_of(served, f"/ui/jobs/{first}?region=around")
    assert page.count("waits for jobs") + page.count("queued") == 20 and "and 10 more" in page
    assert "and 10 more" in page_of(served, f"/ui/jobs/{first}/cancel")
    page = page_of(served, "/ui/approvals")
    assert page.count('class="ask-card"') == 100 and "10 more are not shown here" in page


# -- weight -------------------------------------------------------------------------------------


def test_a_page_is_light(serve: Callable[..., Served], make_bench: Callable[..., Bench]) -> None:
    served = serve(make_bench(max_active=2))
    for each in range(60):
        served.submit("true", name=f"job of some length {each}")
    assert SCRIPT.size <= 24 << 10 and STYLE.size <= 16 << 10
    assets = [each.reply.content() for each in ASSETS]
    for path in ("/ui/", "/ui/jobs", "/ui/approvals", "/ui/jobs/1"):
        page = served.ask_as(served.token("operate"), "GET", path, None, PAGE).body
        raw = [page, *assets]
        packed = [gzip.compress(each, 3) for each in raw]
        assert sum(map(len, raw)) <= 100 << 10, path
        assert sum(map(len, packed)) <= 35 << 10, path
        assert len(gzip.compress(page, 3)) <= 20 << 10, path


def test_an_asset_is_kept_for_ever_under_the_digest_of_its_content(served: Served) -> None:
    for each in ASSETS:
        heard = served.ask("GET", each.path, role=None)
        assert heard.status == 200 and heard.body == each.reply.body
        assert "immutable" in heard.header("cache-control")


# -- what needs a person ------------------------------------------------------------------------


def test_a_failure_stays_on_the_overview_until_somebody_retries_it(served: Served) -> None:
    """However much has ended since, and not what another failure only held up."""
    first = served.submit("false", name="of-the-night", retries=1, retry_base="1ms")
    served.submit("true", name="held-up", after=[f"job-{first}"])
    bad = served.bench.until_ended(first)[0].id
    many = served._client.submit_many([Request(("true",))] * 2100)
    served._client.cancel([each.job_id for each in many])
    page = served.ask_as(served.token("operate"), "GET", "/ui/?region=needs", None, PAGE)
    assert b"of-the-night" in page.body and b"held-up" not in page.body
    heard = served.post(f"jobs/{bad}/retry")
    assert heard.status == 201, heard
    page = served.ask_as(served.token("operate"), "GET", "/ui/?region=needs", None, PAGE)
    assert b"of-the-night" not in page.body
