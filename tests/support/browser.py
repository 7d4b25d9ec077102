"""A real browser for tests of pages: chromium from PATH, or from Debian's packages when root.

As root a missing one is a failure; elsewhere the tests are listed as not run. The rules of
accessibility are those of axe-core, from a wheel that has it.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness import wait_for

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "browser"
AXE = "axe-playwright-python==0.1.8"  # of which only axe.min.js, 4.12, is taken
ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--no-first-run"),
    "--hide-scrollbars",
)
# Hears of everything that the policy refuses, from the first byte of a page on.
WITNESS = """
window.refused = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.refused.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
window.alert = (text) => { window.hacked = text; };
"""


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """One process of a run at a time."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with open(KEPT / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _programs() -> tuple[str, str] | None:
    found = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (found, driver) if found and driver else None


def programs() -> tuple[str, str]:
    """The paths of the browser and of its driver."""
    with _alone("apt"):
        found = _programs()
        if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
            get = ["apt-get", "-qq", "-o", "Acquire::Retries=3"]
            subprocess.run([*get, "update"], check=True, stdout=subprocess.DEVNULL)
            named = ["install", "-y", "--no-install-recommends", "chromium", "chromium-driver"]
            environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            subprocess.run([*get, *named], check=True, stdout=subprocess.DEVNULL, env=environ)
            found = _programs()
    if found is None and os.geteuid() == 0:
        pytest.fail("chromium and chromedriver are missing, and apt-get brought none")
    if found is None:
        pytest.skip("not run: needs a browser (chromium and chromedriver)")
    return found


def axe_source() -> str:
    """The script of axe-core."""
    kept = KEPT / "axe.min.js"
    with _alone("axe"):
        if not kept.exists():
            get = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(KEPT), AXE]
            subprocess.run(get, check=True)
            wheel = next(KEPT.glob("axe_playwright_python-*.whl"))
            with zipfile.ZipFile(wheel) as archive:
                kept.write_bytes(archive.read("axe_playwright_python/axe.min.js"))
    return kept.read_text(encoding="utf-8")


def _is_bad(entry: Any) -> bool:
    return entry["level"] == "SEVERE" and "Failed to load resource" not in entry["message"]


class Browser:
    """One window. `open` goes to a page, and every other method is about what it shows."""

    def __init__(self, folder: Path) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        program, driver = programs()
        options = webdriver.ChromeOptions()
        options.binary_location = program
        for each in (*ARGUMENTS, f"--user-data-dir={folder}"):
            options.add_argument(each)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(driver))
        self.command("Page.addScriptToEvaluateOnNewDocument", source=WITNESS)
        self.base = ""

    def close(self) -> None:
        self.driver.quit()

    def command(self, name: str, **words: Any) -> Any:
        return self.driver.execute_cdp_cmd(name, words)

    def look(self, *, width: int = 1280, height: int = 900, theme: str = "light") -> None:
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.command("Emulation.setEmulatedMedia", features=features)

    def sign_in(self, base: str, code: str) -> None:
        self.base = base
        self.driver.delete_all_cookies()
        self.driver.get(f"{base}/login#{code}")
        wait_for(lambda: "/ui/" in self.driver.current_url, what="the first page")

    def open(self, path: str) -> None:
        self.driver.get(self.base + path)

    def ask(self, script: str) -> Any:
        return self.driver.execute_script(script)

    @property
    def text(self) -> str:
        found = self.ask("return document.body ? document.body.innerText : ''")
        return str(found)

    def until_shown(self, text: str) -> None:
        wait_for(lambda: text in self.text, what=f"{text!r} on {self.driver.current_url}")

    def press(self, *keys: str) -> None:
        """Keys, as they go to what has the focus."""
        from selenium.webdriver.common.action_chains import ActionChains

        for each in keys:
            ActionChains(self.driver).send_keys(each).perform()

    def click(self, css: str) -> None:
        from selenium.webdriver.common.by import By

        self.driver.find_element(By.CSS_SELECTOR, css).click()

    def refusals(self) -> list[str]:
        """What the policy has refused, or went wrong in the script, since somebody asked last. An
        answer that refuses is none."""
        refused = [str(each) for each in self.ask("return window.refused || []")]
        logged = [each["message"] for each in self.driver.get_log("browser") if _is_bad(each)]
        return refused + logged

    def violations(self, rules: list[str] | None = None) -> list[str]:
        """What axe finds wrong, of all rules or of these."""
        if not self.ask("return typeof axe === 'object'"):
            self.driver.execute_script(axe_source())
        only = {"runOnly": {"type": "rule", "values": rules}} if rules else {}
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, arguments[0]).then("
            "(found) => done(found.violations), (error) => done(String(error)))",
            {**only, "resultTypes": ["violations"]},
        )
        assert isinstance(found, list), found
        return [
            f"{each['id']}: {node['target']} {node['html'][:120]} {node.get('failureSummary', '')}"
            for each in found
            for node in each["nodes"]
        ]
