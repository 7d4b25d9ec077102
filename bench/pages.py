"""The pages in a real browser: what they weigh, how soon they show, what they cost, and ten tasks.

`pages.py measure` prints the figures of docs/benchmarks.md, `pages.py tasks` does ten tasks on a
home of 3,000 jobs and counts clicks and seconds; without a word it does both. `--quick` is smaller.
Needs the virtual environment of `make test`, chromium and chromedriver.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from apps import fill, held, site, working
from headway.client import Client
from headway.jobs.request import Request
from homes import HEADWAY, home, open_client, submit, until_drained, worker
from measure import HERE, Figures, Lab, cpu_seconds, quantile, wait_for
from web import Serving, server_of

sys.path.insert(0, str(HERE.parent / "tests" / "support"))

from browser import Browser

# In each page, before anything else: when all of it was painted, which frames came, which marks.
PROBE = """
window.frames = []; window.seen = {};
document.addEventListener("DOMContentLoaded", () => {
  requestAnimationFrame(() => setTimeout(() => { window.painted = performance.now(); }));
  new MutationObserver(() => {
    for (const mark of document.body.textContent.match(/mark-\\d+/g) || [])
      window.seen[mark] ??= Date.now();
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
});
const listen = EventSource.prototype.addEventListener;
EventSource.prototype.addEventListener = function (name, heard) {
  return listen.call(this, name, (event) => {
    if (name === "news") window.frames.push(performance.now());
    heard(event);
  });
};
"""
SIZES = """
return [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .filter((each) => !each.name.includes("/ui/live"))
  .reduce((sum, each) => [sum[0] + each.decodedBodySize, sum[1] + each.encodedBodySize,
    sum[2] + each.transferSize], [0, 0, 0])
"""
SCROLLED = """
const done = arguments[arguments.length - 1], box = document.querySelector(".canvas"), took = [];
let before = performance.now(), left = 60;
const next = (now) => {
  took.push(now - before); before = now;
  box.scrollTop += 120; box.scrollLeft += 200; window.scrollBy(0, 10);
  if (left--) requestAnimationFrame(next); else done(took.slice(1));
};
requestAnimationFrame(next);
"""


@contextmanager
def browsing(client: Client, serving: Serving, folder: Path) -> Iterator[Browser]:
    """A browser that has signed in."""
    folder.mkdir(exist_ok=True)
    browser = Browser(folder)
    browser.command("Page.addScriptToEvaluateOnNewDocument", source=PROBE)
    try:
        browser.look()
        code = client.tokens.login_code(host="127.0.0.1")
        browser.sign_in(serving.url, code)
        yield browser
    finally:
        browser.close()


# -- what is loaded, and when it is seen ---------------------------------------------------------


def painted(browser: Browser, path: str) -> tuple[float, float]:
    """Milliseconds to the first paint, and until the whole page is painted."""
    browser.open(path)
    whole = wait_for(lambda: browser.ask("return window.painted"))
    first = browser.ask("return performance.getEntriesByName('first-paint')[0]?.startTime")
    return float(first or whole), max(float(first or whole), float(whole))


def loads(lab: Lab) -> Figures:
    """First and later load of the overview and of 50 rows; 50 rows and 1,000 boxes to the eye."""
    figures: Figures = {}
    with home(lab.fresh("loads"), max_active=4) as client:
        client.pause("only pages are measured")
        chains = [
            Request(("true",), name=f"job {number}", local=f"j{number}",
                    after=(f"j{number - 10}",) if number >= 10 else ())
            for number in range(1_000)
        ]  # fmt: skip
        client.submit_many(chains)
        with (
            server_of(client) as serving,
            browsing(client, serving, lab.fresh("browser")) as browser,
        ):
            for name, path in {"overview": "/ui/", "rows": "/ui/jobs"}.items():
                browser.command("Network.clearBrowserCache")
                browser.open(path)
                raw, packed, _ = browser.ask(SIZES)
                browser.open(path)
                _, _, later = browser.ask(SIZES)
                figures[f"pages.{name}.first_raw_kb"] = raw / 1000
                figures[f"pages.{name}.first_gzip_kb"] = packed / 1000
                figures[f"pages.{name}.later_kb"] = later / 1000
            for name, path in {"rows": "/ui/jobs", "boxes": "/ui/graph"}.items():
                found = [painted(browser, path) for _ in range(5)]
                figures[f"pages.{name}.first_paint_ms"] = statistics.median(
                    each[0] for each in found
                )
                figures[f"pages.{name}.painted_ms"] = statistics.median(each[1] for each in found)
    return figures


def commits(lab: Lab) -> Figures:
    """From the return of a submit until the page shows its job."""
    delays = []
    with home(lab.fresh("commits"), max_active=4) as client:
        client.pause("only pages are measured")
        with (
            server_of(client) as serving,
            browsing(client, serving, lab.fresh("browser")) as browser,
        ):
            browser.open("/ui/jobs")
            time.sleep(1.5)
            for number in range(20):
                mark = f"mark-{number}"
                client.submit(Request(("true",), name=mark))
                committed = time.time()
                seen = wait_for(lambda mark=mark: browser.ask(f"return window.seen['{mark}']"))
                delays.append(seen - 1000 * committed)
                time.sleep(random.uniform(0.3, 1.2))
    return {
        "pages.commit_p50_ms": quantile(delays, 0.5),
        "pages.commit_p95_ms": quantile(delays, 0.95),
    }


def boxes(lab: Lab) -> Figures:
    """3,000 boxes: until they are there, frames while they are scrolled, and a click on one."""
    with home(lab.fresh("boxes"), max_active=4) as client:
        client.pause("only pages are measured")
        client.submit_many(
            [
                Request(("true",), name=f"job {number}", local=f"j{number}",
                        after=tuple(f"j{number - back}" for back in (30, 31) if number >= back))
                for number in range(3_000)
            ]
        )  # fmt: skip
        with (
            server_of(client) as serving,
            browsing(client, serving, lab.fresh("browser")) as browser,
        ):
            found = [painted(browser, "/ui/graph") for _ in range(3)]
            drawn = browser.ask("return document.querySelectorAll('.canvas [data-job]').length")
            took = browser.driver.execute_async_script(SCROLLED)
            begin = time.monotonic()
            browser.ask(
                "const box = document.querySelector('.canvas [data-job=\"job-1\"]');"
                "box.scrollIntoView({block: 'center'});"
                "box.dispatchEvent(new MouseEvent('click', {bubbles: true}))"
            )
            wait_for(lambda: "/ui/jobs/" in browser.driver.current_url)
            clicked = time.monotonic() - begin
    return {
        "pages.boxes3000.count": drawn,
        "pages.boxes3000.first_paint_ms": statistics.median(each[0] for each in found),
        "pages.boxes3000.painted_ms": statistics.median(each[1] for each in found),
        "pages.boxes3000.frame_p50_ms": quantile(took, 0.5),
        "pages.boxes3000.frame_max_ms": max(took),
        "pages.boxes3000.click_ms": 1000 * clicked,
    }


# -- what it costs beside others -----------------------------------------------------------------


def drains(lab: Lab) -> Figures:
    """20,000 functions alone and with an open page: frames of its stream in a second."""
    count = lab.size(20_000)
    alone, _ = _functions(lab, count, page=False)
    watched, frames = _functions(lab, count, page=True)
    most = max(
        (sum(1 for other in frames if each <= other < each + 1000) for each in frames), default=0
    )
    passed = (frames[-1] - frames[0]) / 1000 if len(frames) > 1 else 1.0
    return {
        "pages.drain.alone": alone,
        "pages.drain.watched": watched,
        "pages.drain.frames": len(frames),
        "pages.drain.frames_per_second": len(frames) / passed,
        "pages.drain.most_in_a_second": most,
    }


def _functions(lab: Lab, count: int, *, page: bool) -> tuple[float, list[float]]:
    with site(lab, "sqlite", max_active=100) as there, working(there) as process:
        if not page:
            return _drained_functions(there, process, count), []
        with (
            server_of(there.client) as serving,
            browsing(there.client, serving, lab.fresh("browser")) as browser,
        ):
            browser.open("/ui/")
            time.sleep(1.5)
            browser.ask("window.frames.length = 0")
            before = cpu_seconds(serving.pid)
            rate = _drained_functions(there, process, count)
            print(f"  CPU of the server: {cpu_seconds(serving.pid) - before:.2f} s")
            return rate, list(browser.ask("return window.frames"))


def _drained_functions(there: Any, process: Any, count: int) -> float:
    with held(there, process):
        fill(there, count)
        begin = time.perf_counter()
    until_drained(there.client)
    return count / (time.perf_counter() - begin)


def regions(lab: Lab) -> Figures:
    """CPU of the server for a cached region beside an empty answer and a small document."""
    figures: Figures = {}
    window = 2.0 if lab.quick else 5.0
    with home(lab.fresh("regions"), max_active=4) as client:
        client.pause("only pages are measured")
        submit(client, 200, "true")
        with server_of(client) as serving:
            asked = {
                "empty": "/healthz",
                "version": "/api/v1/version",
                "region": "/ui/jobs?region=list",
                "status": "/ui/jobs?region=status",
            }
            for name, path in asked.items():
                _ask(serving, 0.5, 0, path)
                before = cpu_seconds(serving.pid)
                found = _ask(serving, window, 0, path)
                spent = cpu_seconds(serving.pid) - before
                figures[f"pages.cached.{name}_us"] = 1e6 * spent / (found["rate"] * window)
    return figures


def _ask(serving: Serving, seconds: float, pace: float, path: str) -> dict[str, Any]:
    command = [sys.executable, str(HERE / "asking.py"), "rate", serving.url, serving.token]
    command += ["4", str(seconds), str(pace), "GET", path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    if found["codes"] != ["200"]:
        raise RuntimeError(f"{path}: {found['codes']}")
    return found


def dashboards(lab: Lab) -> Figures:
    """2,000 `true` at 8 slots, alone and beside 100 streams of pages and 50 reads a second of their
    regions."""
    count = lab.size(2_000)
    return {
        "pages.dashboards.alone": _commands(lab, count, streams=0),
        "pages.dashboards.hundred": _commands(lab, count, streams=100),
    }


def _commands(lab: Lab, count: int, *, streams: int) -> float:
    with home(lab.fresh("dashboards"), max_active=8) as client:
        submit(client, count, "true")
        if not streams:
            return _drained(client, count)
        with server_of(client) as serving:
            tokens = [client.tokens.add(f"page-{each}", role="read") for each in range(8)]
            asking = [sys.executable, str(HERE / "asking.py")]
            listen = [*asking, "listen", serving.url, ",".join(tokens), str(streams), "/ui/live"]
            read = [*asking, "rate", serving.url, serving.token, "4", "600", "50", "GET"]
            with subprocess.Popen(
                listen, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as pages:
                assert pages.stdout is not None
                if pages.stdout.readline() != "all hear\n":
                    raise RuntimeError("not all streams began")
                reader = subprocess.Popen([*read, "/ui/?region=queue"], stdout=subprocess.DEVNULL)
                try:
                    rate = _drained(client, count)
                finally:
                    reader.kill()
                    reader.wait()
                    said, _ = pages.communicate(timeout=60)
            if json.loads(said.strip().splitlines()[-1])["lost"]:
                raise RuntimeError("a stream ended early")
            return rate


def _drained(client: Client, count: int) -> float:
    begin = time.perf_counter()
    with worker(client):
        until_drained(client)
        return count / (time.perf_counter() - begin)


MEASURES: tuple[Callable[[Lab], Figures], ...] = (
    loads,
    commits,
    boxes,
    regions,
    drains,
    dashboards,
)

# -- ten tasks -----------------------------------------------------------------------------------

TRAINING = "i=0; while :; do i=$((i+1)); echo epoch $i; sleep 0.3; done"
RELEASE = """\
[nodes.build]
shell = "true"

[nodes.test]
shell = "exit 3"
after = ["build"]

[nodes.ship]
shell = "true"
after = ["test"]
"""


class BusyReceiver(BaseHTTPRequestHandler):
    """Has no time for what it gets, until somebody says otherwise."""

    is_busy = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(503 if BusyReceiver.is_busy else 204)
        self.send_header("Retry-After", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Person:
    """Somebody at the browser, whose clicks are counted."""

    def __init__(self, client: Client, browser: Browser) -> None:
        self.client = client
        self.browser = browser
        self.clicks = 0

    def click(self, css: str, text: str = "") -> None:
        """A click on the first of these, with this text, that can be seen; once it is there."""
        script = (
            f"return [...document.querySelectorAll({json.dumps(css)})].find((each) =>"
            f" each.textContent.includes({json.dumps(text)}) && each.getClientRects().length)"
        )
        found = wait_for(lambda: self.browser.ask(script), within=20, every=0.02)
        self.browser.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
        found.click()
        self.clicks += 1

    def go(self, place: str) -> None:
        """A click on a page in the head."""
        self.click("nav a", place)

    def sees(self, text: str) -> None:
        wait_for(lambda: text in self.browser.text, within=20, every=0.02)

    def find(self, name: str) -> None:
        """Type a name into the search of Jobs."""
        field = self.browser.driver.find_element("id", "find")
        field.send_keys(name + "\ue007")
        wait_for(lambda: f"name={name}" in self.browser.driver.current_url, within=20)


def why_it_waits(person: Person) -> None:
    person.go("Jobs")
    person.find("needle")
    person.click("a.job", "needle")
    person.sees("repo is held by")


def approve_on_a_phone(person: Person) -> None:
    person.click("#status a", "approval")
    person.click("button.go", "Approve")
    person.sees("is approved.")


def retry_the_night(person: Person) -> None:
    person.click("a", "all that failed within a day")
    person.click("a.button", "Retry all")
    person.click("button.go", "Retry")
    person.sees("jobs will run again.")


def follow_a_log(person: Person) -> None:
    person.click("#running a", "train model")
    first = person.browser.ask("return document.getElementById('output').textContent.length")
    wait_for(
        lambda: (
            person.browser.ask("return document.getElementById('output').textContent.length")
            > first
        ),
        within=20,
    )


def cancel_a_group(person: Person) -> None:
    person.go("Groups")
    person.click("tr:has(a) .button", "Cancel")
    person.click("button.danger", "Cancel")
    person.sees("Cancelled, or asked to end")


def see_the_next_hour(person: Person) -> None:
    person.go("Schedules")
    person.sees("To come")
    person.sees("hourly")


def who_holds_the_lock(person: Person) -> None:
    person.go("Limits")
    person.sees("repo")
    person.sees("(exclusive)")


def rerun_from_a_node(person: Person) -> None:
    person.go("Runs")
    person.click("#runs a.job", "release")
    person.click("#nodes tr:nth-child(2) button", "Retry from here")
    person.sees("will run again.")


def replay_a_webhook(person: Person) -> None:
    BusyReceiver.is_busy = False
    person.click("#needs a", "deliver")
    person.click("#sent td button", "Replay")
    person.sees("is sent again.")


def pause_everything(person: Person) -> None:
    person.click("#status button", "Pause everything")
    person.sees("Everything is paused.")


TASKS: dict[str, Callable[[Person], None]] = {
    "find why a job waits": why_it_waits,
    "approve, 380 px wide": approve_on_a_phone,
    "retry last night's failures": retry_the_night,
    "follow a log": follow_a_log,
    "cancel a group": cancel_a_group,
    "see what the next hour will run": see_the_next_hour,
    "find who holds a lock": who_holds_the_lock,
    "re-run a workflow from a node": rerun_from_a_node,
    "replay a failed webhook": replay_a_webhook,
    "pause everything": pause_everything,
}
MOST_CLICKS = 3


def furnish(client: Client, folder: Path, hook: str, many: int) -> None:
    """A night with failures, what runs and waits now, and many others."""
    client.set_setting("scheduler.max_active", 8)
    workflows = folder / ".headway" / "workflows"
    workflows.mkdir()
    (workflows / "release.toml").write_text(RELEASE, encoding="utf-8")
    client.submit_many([Request(("false",), name=f"night {each}") for each in range(9)])
    client.submit(Request(("true",), name="told", webhooks=(hook,)))
    client.submit(Request(("sh", "-c", TRAINING), name="train model", locks=("repo",)))
    client.workflows.start("release")
    run_headway(client, "groups", "create", "--name", "release-7", "--mode", "parallel")
    for each in range(3):
        client.submit(Request(("sleep", "600"), name=f"member {each}", group="release-7"))
    run_headway(client, "schedules", "add", "--name", "hourly", "--every", "1h", "--", "true")
    client.submit_many([Request(("true",), name=f"compile {each}") for each in range(many)])
    client.submit(Request(("true",), name="needle", locks=("repo",)))
    client.submit(Request(("echo", "deploy"), name="deploy", require_approval=True))
    train = next(each for each in client.listing() if each["name"] == "train model")
    client.submit_many(
        [
            Request(("true",), name=f"waits {each}", after=(int(train["id"][4:]),))
            for each in range(960)
        ]
    )


def run_headway(client: Client, *words: str) -> None:
    command = [*HEADWAY, "--home", client.context.home.path, *words]
    subprocess.run(command, check=True, capture_output=True, env={**client.context.environ})


def tasks(lab: Lab) -> Figures:
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), BusyReceiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    port = receiver.server_address[1]
    folder = lab.fresh("tasks")
    open_client(folder).close()
    with open(folder / ".headway" / "config.toml", "a", encoding="utf-8") as config:
        config.write(f'[webhooks]\nallow = ["127.0.0.1:{port}"]\n')
    figures: Figures = {}
    with connected(folder) as client, worker(client):
        furnish(client, folder, f"http://127.0.0.1:{port}/", lab.size(2_000))
        failed = lambda: [*client.webhooks.deliveries(state="failed")]  # noqa: E731
        wait_for(lambda: len(client.listing()) and failed(), within=240, every=0.5)
        with (
            server_of(client) as serving,
            browsing(client, serving, lab.fresh("browser")) as browser,
        ):
            for name, task in TASKS.items():
                browser.look(width=380 if "380" in name else 1280)
                browser.open("/ui/")
                person = Person(client, browser)
                begin = time.monotonic()
                task(person)
                figures[f"tasks.{name}.seconds"] = time.monotonic() - begin
                figures[f"tasks.{name}.clicks"] = person.clicks
                print(f"  {name:34} {person.clicks} clicks  {time.monotonic() - begin:.1f} s")
                if person.clicks > MOST_CLICKS:
                    raise RuntimeError(f"{name}: {person.clicks} clicks")
        client.resume()
        client.cancel([each["id"] for each in client.listing() if each["state"] == "running"])
    receiver.shutdown()
    return figures


@contextmanager
def connected(folder: Path) -> Iterator[Client]:
    """The home in this folder, with the settings that its file has now."""
    from headway.client import connect
    from homes import environment

    client = connect(
        home=str(folder / ".headway"),
        environ={**environment(folder), "HEADWAY_TRUST": "1"},
        actor="bench",
    )
    try:
        yield client
    finally:
        client.close()


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("what", nargs="*", help="measure, tasks, or the name of one measure")
    asked.add_argument("--quick", action="store_true")
    given = asked.parse_args()
    what = given.what or ["measure", "tasks"]
    with tempfile.TemporaryDirectory(prefix="headway-pages-") as folder:
        os.environ["HEADWAY_TRUST"] = "1"
        lab = Lab(Path(folder), quick=given.quick)
        for measure in (*MEASURES, tasks):
            name = measure.__name__
            if name in what or ("measure" in what and measure is not tasks):
                print(name)
                for key, value in measure(lab).items():
                    if measure is not tasks:
                        print(f"  {key:34} {value:,.2f}", flush=True)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
