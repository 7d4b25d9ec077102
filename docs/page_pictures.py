"""Takes the pictures of docs/dashboard.md from a real home with a real server, worker and browser:
`python docs/page_pictures.py`. Where there is no browser it says so and leaves them as they are.

Needs the virtual environment of `make test`, and chromium with chromedriver.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pictures import headway, submit

if TYPE_CHECKING:
    from browser import Browser

DOCS = Path(__file__).parent
HEADWAY = [sys.executable, "-m", "headway"]
sys.path.insert(0, str(DOCS.parent / "tests" / "support"))

TRAINING = """\
i=11; while :; do i=$((i + 1)); echo "epoch $i of 40, loss 0.$((900 / i))"; sleep 1; done"""
BUILDING = """\
i=0; while :; do i=$((i + 1)); echo "[$i/400] compiling cart/module_$i.c"; sleep 0.3; done"""
IMPORTING = r"""
echo 'reading rates.csv'
printf '\033[32mok\033[0m      EUR  1.0000\n\033[32mok\033[0m      CHF  0.9371\n'
printf '\033[33mold\033[0m     GBP  0.8322 (of yesterday)\n\033[31mmissing\033[0m USD\n'
echo "rates.csv, line 4: no rate for USD" >&2
exit 2
"""
DEPLOY = ["./deploy.sh", "v1.4", "--to", "production", "--region", "eu-central"]
MIGRATE = "psql -v ON_ERROR_STOP=1 -f migrations/0042_orders_by_day.sql shop"

WORKFLOW = """\
description = "build, test on three systems, publish when a person agrees"

[nodes.fetch]
shell = "sleep 1.5; echo 214 files"

[nodes.lint]
shell = "sleep 1; echo clean"
after = ["fetch"]

[nodes.build]
shell = "sleep 2.5; echo built"
after = ["fetch"]

[nodes.test]
argv = ["sleep", "${{ matrix.seconds }}"]
after = ["build"]
matrix = { seconds = ["1", "2", "3"] }

[nodes.package]
shell = "sleep 1; echo shop.tar.zst"
after = ["lint", "test"]

[nodes.sign]
shell = "sleep 600"
after = ["package"]

[nodes.publish]
argv = ["./publish.sh"]
after = ["sign"]
approval = true
"""


def fill() -> None:
    """A morning: what the night left, what runs, what waits for a person."""
    Path(".headway/workflows").mkdir()
    Path(".headway/workflows/release.toml").write_text(WORKFLOW, encoding="utf-8")
    for each in ("deploy.sh", "publish.sh", "tell.sh"):
        Path(each).write_text("#!/bin/sh\n", encoding="utf-8")
        Path(each).chmod(0o755)
    headway("config", "set", "scheduler.max_active", "6")
    headway("run", "release")
    submit("--name", "fetch prices", "--", "sh", "-c", "echo 1,204 prices; sleep 1")
    submit("--name", "import rates", "--retries", "1", "--retry-base", "1s", "--shell", IMPORTING)
    rates = ["jobs", "list", "--name", "import rates", "--json"]
    first = json.loads(headway(*rates))["jobs"][0]["id"]
    submit("--name", "convert the invoices", "--after", first, "--", "true")
    submit("--name", "train model", "--shell", TRAINING)
    submit("--name", "build shop", "--lock", "tree", "--shell", BUILDING)
    submit("--name", "clean the tree", "--lock", "tree", "--", "true")
    deploy = submit("--name", "deploy shop 1.4", "--require-approval", "--", *DEPLOY)
    submit("--name", "migrate the database", "--require-approval", "--shell", MIGRATE)
    submit("--name", "tell the team", "--after", deploy, "--", "./tell.sh", "shop 1.4 is out")


def is_settled() -> bool:
    documents = json.loads(headway("jobs", "list", "--all", "--json"))["jobs"]
    states = [each["state"] for each in documents]
    nodes = json.loads(headway("workflows", "show", "wf-1", "--json"))["run"]["nodes"]
    signing = any(each["id"] == "sign" and each["state"] == "running" for each in nodes)
    return signing and "blocked_by_dependency" in states and "waiting_on_locks" in states


@contextmanager
def server() -> Iterator[str]:
    """The address of a server of this home."""
    process = subprocess.Popen([*HEADWAY, "serve", "--json"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def take(
    browser: "Browser", name: str, path: str, width: int, height: int, first: str = "status"
) -> None:
    """What a window of this size shows of a page, from this part on, once it is quiet."""
    browser.look(width=width, height=height)
    browser.open(path)
    time.sleep(1.5)
    if first != "status":
        browser.ask(f"document.getElementById({first!r}).scrollIntoView()")
    picture = browser.driver.get_screenshot_as_png()
    (DOCS / f"page-{name}.png").write_bytes(picture)
    print(f"page-{name}.png: {len(picture) / 1000:.0f} KB")


def main() -> None:
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        print("chromium and chromedriver are missing: the pictures of pages stay as they are")
        return
    from browser import Browser

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "shop"
        folder.mkdir()
        os.chdir(folder)
        os.environ |= {"USER": "ada", "HEADWAY_ACTOR": "ada", "HEADWAY_HOME": f"{folder}/.headway"}
        headway("init")
        try:
            fill()
            give_up_at = time.monotonic() + 60
            while not is_settled() and time.monotonic() < give_up_at:
                time.sleep(0.1)
            with server() as url:
                browser = Browser(Path(name) / "browser")
                try:
                    link = headway("web", "login")
                    browser.sign_in(url, link.partition("#")[2])
                    rates = json.loads(headway("jobs", "list", "--name", "import rates", "--json"))
                    last = rates["jobs"][-1]["id"]
                    take(browser, "overview", "/ui/", 1100, 700)
                    take(browser, "job", f"/ui/jobs/{last}", 1100, 760)
                    take(browser, "approvals", "/ui/approvals", 380, 760)
                    take(browser, "run", "/ui/workflow-runs/wf-1", 1100, 1100, "bars")
                finally:
                    browser.close()
        finally:
            headway("scheduler", "pause")
            for each in json.loads(headway("jobs", "list", "--json"))["jobs"]:
                if each["state"] == "running":
                    subprocess.run([*HEADWAY, "jobs", "cancel", each["id"]], check=False)
            headway("stop")


if __name__ == "__main__":
    main()
