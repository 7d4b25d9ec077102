"""The pages in a real browser: live, by keys, on a phone, with names that mean harm."""

import os
from collections.abc import Callable, Iterator

import pytest
from served import Served, serving, serving_new_home
from test_walk import path_of

from browser import Browser
from harness import Bench, wait_for
from headway.core.states import Status
from headway.web.pages.page import PLACES
from headway.web.routes import PAGES
from headway.web.server import Listen

pytestmark = [pytest.mark.processes, pytest.mark.long]

HOSTILE = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(2)>", '"><svg onload=alert(3)>',
    "' onmouseover='alert(4)", "javascript:alert(5)", "{{ 7 * 7 }}", "{% raw %}", "${alert(6)}",
    "</title><script>alert(7)</script>", "<!--", "]]>", "\x1b[31mred\x1b[0m", "\u202egnp.exe",
    "<a href=//evil.example>x</a>", "<iframe srcdoc='<script>alert(8)</script>'>", "\u2066x\u2069",
    "<base href=//evil.example>", "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<style>*{display:none}</style>", "<form action=//evil.example>", "&lt;b&gt;", "x" * 190,
    "<math><mi//xlink:href='data:x,<script>alert(12)</script>'>", "<svg/onload=alert(13)>",
    "<details open ontoggle=alert(14)>", "<input autofocus onfocus=alert(15)>", "\x9b31mred",
    "<template><script>alert(16)</script></template>", "\x1b]8;;javascript:alert(17)\x07x",
    "<object data='data:text/html,<script>alert(18)</script>'>", "<embed src=//evil.example>",
    "<a href='javascript:alert(19)'>x</a>", "<body onload=alert(20)>", "\x1b]52;c;ZXZpbA==\x07",
    "--><script>alert(21)</script>", "</pre><script>alert(22)</script>", "</textarea><b>",
    "<noscript><p title='</noscript><img src=x onerror=alert(23)>'>", "\u200b\u2060hidden",
    "<link rel=stylesheet href=//evil.example>", "<video><source onerror=alert(24)>",
    "<marquee onstart=alert(25)>",
)  # fmt: skip

WORKFLOW = """\
description = "<img src=x onerror=alert(10)>"
[nodes.first]
argv = ["sleep", "600"]
[nodes.second]
argv = ["echo", "<script>alert(11)</script>"]
after = ["first"]
approval = true
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("browser"))
    made.look()
    yield made
    made.close()


def come_in(browser: Browser, served: Served, role: str = "operate") -> None:
    code = served._client.tokens.login_code(role=role, host=served.name)
    browser.sign_in(f"http://{served.name}:{served.port}", code)


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench(max_active=2)


@pytest.fixture
def at_home(browser: Browser, serve: Callable[..., Served], bench: Bench) -> Served:
    """A home of the test's own, and somebody who has come in."""
    served = serve(bench)
    come_in(browser, served)
    return served


# -- every page ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Something of everything, under names that mean harm."""
    with serving_new_home(tmp_path_factory.mktemp("home")) as served:
        bench = served.bench
        ended = bench.submit("printf", "%s", "\n".join(HOSTILE), name=HOSTILE[0])
        bad = bench.submit("sh", "-c", "echo '<script>alert(9)</script>' >&2; false", name="bad")
        bench.until_ended(ended)
        bench.until_ended(bad)
        submit_under(HOSTILE[:3], served)
        served.post("groups", {"name": "walked", "open": True})
        served.post("groups", {"name": HOSTILE[1], "open": True})
        rejected = served.submit("true", require_approval=True)
        bench.step()
        served.post(f"jobs/{rejected}/reject", {"reason": HOSTILE[2]})
        served.submit("true", after=[f"job-{bad}"], locks=["repo"], group="walked")
        served.post(
            "schedules", {"name": "walked", "cron": "0 3 * * *", "job": {"argv": ["echo", "hi"]}}
        )
        workflows = bench.folder / ".headway" / "workflows"
        workflows.mkdir()
        (workflows / "walked.toml").write_text(WORKFLOW, encoding="utf-8")
        assert served.post("workflows/walked/runs", {}).status == 201
        bench.step()
        served.ask("PUT", "templates/walked", {"argv": ["echo", "<b>"]})
        served.post("webhooks", {"name": "walked", "url": "https://hooks.example.org/x"})
        yield served


def submit_under(names: tuple[str, ...], served: Served) -> None:
    for name in names:
        said = name if name.isprintable() else repr(name)
        served.submit("echo", name, name=said, labels={"note": said}, require_approval=True)


LISTS = ("/ui/", "/ui/jobs", "/ui/approvals", "/ui/events", "/ui/graph", "/ui/graph?all=true")


def pages() -> Iterator[str]:
    for route in PAGES:
        if route.method == "GET" and "text/html" in route.media:
            yield path_of(route).replace("workflow-runs/1", "workflow-runs/wf-1")
    yield "/ui/jobs/job-2"
    yield "/ui/jobs/job-3/edit"
    yield "/ui/jobs/job-1?stream=stdout&find=script"
    yield "/ui/graph?job=job-2"
    yield "/ui/settings?doctor=true"
    yield "/ui/graph?all=true"
    yield "/ui/jobs/bulk?verb=retry&job=job-2,job-1"


def test_an_empty_home_is_open_to_all(browser: Browser, at_home: Served) -> None:
    wrong: dict[str, list[str]] = {}
    for route in PAGES:
        if route.method == "GET" and "text/html" in route.media and "{" not in route.path:
            browser.look(width=380)
            if "bulk" not in route.path:
                browser.open(route.path)
                wrong[route.path] = browser.violations()
                wide = browser.ask("return document.documentElement.scrollWidth")
                assert wide <= 380, (route.path, wide)
    browser.look()
    assert {path: found for path, found in wrong.items() if found} == {}


def check_whole(browser: Browser, path: str, width: int) -> None:
    """It has its place on the screen, and nothing of strangers runs in it."""
    browser.look(width=width)
    wide = browser.ask("return document.documentElement.scrollWidth")
    assert wide <= width, (path, wide)
    assert "Headway" in browser.driver.title, path
    assert browser.ask("return window.hacked") is None, path
    known = browser.ask("return document.scripts.length")
    assert known <= 1 and not browser.ask(
        "return document.querySelectorAll('iframe, base, form[action*=evil], [onload]').length"
    ), path
    assert browser.refusals() == [], path


def test_each_page_is_whole_open_to_all_and_runs_nothing_of_strangers(
    browser: Browser, furnished: Served
) -> None:
    """Each is loaded once: axe is quick only after its first look."""
    come_in(browser, furnished, "admin")
    wrong: dict[str, list[str]] = {}
    for path in pages():
        browser.open(path)
        wrong[path] = []
        for width in (1280, 380):
            check_whole(browser, path, width)
            wrong[path] += browser.violations()
            browser.look(width=width, theme="dark")
            wrong[path] += browser.violations(["color-contrast"])
    assert {path: found for path, found in wrong.items() if found} == {}


def test_a_list_of_names_that_mean_harm_is_whole_and_runs_nothing(
    browser: Browser, furnished: Served
) -> None:
    come_in(browser, furnished, "admin")
    submit_under(HOSTILE[3:], furnished)
    furnished.bench.step()
    for path in LISTS:
        browser.look()
        browser.open(path)
        for width in (1280, 380):
            check_whole(browser, path, width)
    browser.open("/ui/jobs?limit=100")
    assert len(HOSTILE) <= browser.ask("return document.querySelectorAll('a.job').length")
    assert browser.violations() == []


def test_what_nobody_could_see_is_shown(browser: Browser, furnished: Served) -> None:
    come_in(browser, furnished)
    browser.look()
    browser.open("/ui/jobs/job-1")
    browser.until_shown("\\u202egnp.exe")
    assert "<script>alert(1)</script>" in browser.text
    red = browser.ask("return document.querySelector('#output .fg-red').textContent")
    assert red == "red", "colours of a terminal are kept"


# -- acting -------------------------------------------------------------------------------------


def test_keys_alone_approve_a_job(browser: Browser, at_home: Served) -> None:
    job = at_home.submit("echo", "go", require_approval=True)
    at_home.bench.step()
    browser.open("/ui/approvals")
    browser.until_shown("echo go")
    browser.press("j", "a", "\ue007")
    wait_for(
        lambda: (
            at_home.get(f"jobs/job-{job}")["job"]["state"] != "waiting_on_approval"
            or at_home.get("approvals")["approvals"] == []
        ),
        what="the approval",
    )
    browser.until_shown(f"job-{job} is approved.")
    at_home.bench.until_ended(job)
    assert at_home.bench.status(job) is Status.SUCCEEDED


def test_keys_lead_everywhere(browser: Browser, at_home: Served) -> None:
    """`g` and a letter, rows, a tick, the search; all but what is typed into a field."""
    jobs = [at_home.submit("true", name=f"job {each}", delay="1h") for each in range(3)]
    browser.open("/ui/")
    for _, path, key in PLACES:
        browser.press("g", key)
        wait_for(lambda path=path: browser.driver.current_url.endswith(path), what=path)
    browser.press("g", "j")
    browser.until_shown("job 0")
    browser.press("j", "j", "k", "j", "x")
    ticked = "return [...document.querySelectorAll('input:checked[name=job]')].map((e) => e.value)"
    assert browser.ask(ticked) == [f"job-{jobs[1]}"]
    browser.press("/", "g", "j")
    assert browser.ask("return document.getElementById('find').value") == "gj"
    browser.ask("document.activeElement.blur()")
    browser.press("?")
    browser.until_shown("next, previous row")
    browser.press("k", "\ue007")
    wait_for(lambda: f"/ui/jobs/job-{jobs[2]}" in browser.driver.current_url, what="the job")


def test_without_script_all_works_but_live(browser: Browser, at_home: Served) -> None:
    job = at_home.submit("echo", "go", require_approval=True)
    at_home.bench.step()
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.look(width=380)
        browser.open("/ui/approvals")
        browser.click(f"#a-job-{job} a.button")  # reject, which asks first
        browser.driver.find_element("id", "reason").send_keys("not today")
        browser.click("button.danger")  # which returns before the form is answered
        wait_for(
            lambda: at_home.get(f"jobs/job-{job}")["job"]["state"] == "blocked_by_approval",
            what="the rejection",
        )
        assert "not today" in at_home.get(f"jobs/job-{job}")["job"]["reason"]
    finally:
        browser.command("Emulation.setScriptExecutionDisabled", value=False)
        browser.look()


def test_many_are_retried_after_a_look_at_them(browser: Browser, at_home: Served) -> None:
    jobs = [at_home.submit("false", name=f"night-{each}") for each in range(3)]
    for each in jobs:
        at_home.bench.until_ended(each)
    browser.open("/ui/jobs?state=failed&since=24h")
    browser.click("p.bulk a.button")
    browser.until_shown("Retry 3 jobs?")
    browser.click("button.go")
    browser.until_shown("3 jobs will run again.")
    assert len(at_home.get("jobs")["jobs"]) == 6


def test_everything_is_paused_with_one_click(browser: Browser, at_home: Served) -> None:
    browser.open("/ui/")
    browser.click("#status button")
    browser.until_shown("Everything is paused.")
    assert at_home.get("scheduler")["paused_by"]
    browser.click("#status button")
    browser.until_shown("The pause is over.")
    assert not at_home.get("scheduler")["paused"]


def test_a_change_of_what_was_not_seen_is_refused(browser: Browser, at_home: Served) -> None:
    job = at_home.submit("echo", "one", require_approval=True)
    at_home.bench.step()
    browser.open(f"/ui/jobs/job-{job}/approve")
    at_home.ask("PATCH", f"jobs/{job}", {"argv": ["echo", "two"]})
    browser.click("button.go")
    browser.until_shown("Changed meanwhile")
    assert at_home.get(f"jobs/{job}")["job"]["state"] == "waiting_on_approval"


def test_a_live_page_never_swaps_what_is_approved(browser: Browser, at_home: Served) -> None:
    """The command is changed under the pointer: the button still means the one before."""
    job = at_home.submit("echo", "one", require_approval=True)
    at_home.bench.step()
    for page in ("/ui/", "/ui/approvals", f"/ui/jobs/job-{job}"):
        browser.open(page)
        text = f"swapped under {page}"
        at_home.ask("PATCH", f"jobs/{job}", {"argv": ["echo", text]})
        at_home.bench.step()
        browser.until_shown(text)
        browser.until_shown("Changed: look again")
        browser.click("button[name=revision]")
        browser.until_shown("Changed meanwhile")
        assert at_home.get(f"jobs/{job}")["job"]["state"] == "waiting_on_approval"


# -- live ---------------------------------------------------------------------------------------


def test_what_happens_is_shown_without_a_reload(browser: Browser, at_home: Served) -> None:
    browser.open("/ui/")
    browser.until_shown("Nothing was submitted yet")
    browser.ask("window.same = true")
    job = at_home.submit("sh", "-c", "echo first; read x < pipe; echo last", name="watched")
    os.mkfifo(at_home.bench.folder / "pipe")
    at_home.bench.until(lambda: at_home.bench.status(job) is Status.RUNNING)
    browser.until_shown("watched")
    browser.until_shown("first")
    browser.open(f"/ui/jobs/job-{job}")
    browser.ask("window.same = true")
    browser.until_shown("first")
    (at_home.bench.folder / "pipe").write_text("go\n")
    browser.until_shown("last")
    at_home.bench.until_ended(job)
    browser.until_shown("succeeded")
    assert browser.ask("return window.same"), "the page was never loaded again"
    assert browser.refusals() == []


def test_a_page_goes_on_when_its_server_is_there_again(browser: Browser, bench: Bench) -> None:
    with serving(bench) as served:
        come_in(browser, served)
        port = served.port
        browser.open("/ui/jobs")
        browser.ask("window.same = true")
    browser.until_shown("not connected")
    with serving(bench, Listen(port=port)) as served:
        served.submit("true", name="while-it-was-away")
        browser.until_shown("while-it-was-away")
        assert browser.ask("return window.same")
    browser.driver.get("about:blank")
    browser.refusals()


def test_a_page_that_is_left_says_nothing(browser: Browser, at_home: Served) -> None:
    """Browsers end the stream of a page before the page itself."""
    browser.open("/ui/")
    browser.until_shown("worker")
    told = """
        const done = arguments[arguments.length - 1], link = document.getElementById("link");
        new MutationObserver(() => sessionStorage.setItem("told", link.textContent))
          .observe(link, { childList: true, attributes: true });
        sessionStorage.removeItem("told"); setTimeout(done, 500);
    """
    browser.driver.execute_async_script(told)
    for _ in range(3):
        browser.open("/ui/jobs")
    assert browser.ask("return sessionStorage.getItem('told')") is None


def test_one_who_is_signed_out_is_told_so(browser: Browser, at_home: Served) -> None:
    browser.open("/ui/")
    (session,) = [each for each in at_home._client.tokens.list() if each.sort == "session"]
    at_home._client.tokens.revoke(session.name)
    at_home.submit("true")
    browser.until_shown("signed out")
    browser.open("/ui/jobs")
    browser.until_shown("headway web login")
    browser.refusals()
