"""What the tests of restore share: a site that is backed up, restored, stepped and looked at."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import warm
from harness import Site, wait_for
from headway.admin.doctor import Finding
from headway.base.clock import SystemClock
from headway.client import Client
from headway.core.states import Status
from headway.jobs.context import Context
from headway.jobs.settings import Config
from headway.store import open_store
from headway.store.store import Store


def reopen(site: Site) -> Client:
    """A client of the store that is there now."""
    site.client.close()
    url = site.home.store_url or f"sqlite://{site.home.database}"
    site.client = Client(
        Context(
            site.home,
            Config({"worker.autostart": False}),
            open_store(url, SystemClock()),
            SystemClock(),
            environ=site.env,
            actor="tester",
        )
    )
    return site.client


def backup(site: Site, name: str = "backup.db") -> Path:
    return Path(site.client.admin.backup(str(site.folder / name)))


def restore(site: Site, file: Path, *options: str) -> Any:
    document = json.loads(site.run("restore", str(file), "--json", *options).stdout)
    reopen(site)
    return document


def step(site: Site) -> None:
    site.run("scheduler", "run")


def outcome(site: Site, job_id: int) -> bool:
    return any(Path(site.home.job(job_id)).glob("outcome.*.json"))


def run_to_its_end(site: Site, job_id: int) -> None:
    """Start it, wait for its outcome, and settle it."""
    step(site)
    wait_for(lambda: outcome(site, job_id), what="the outcome")
    step(site)
    assert site.status(job_id) is Status.SUCCEEDED


def counting(site: Site, *, blocked: bool = False) -> str:
    """A command that leaves a line for each time that it is run."""
    wait = "; while [ ! -e go ]; do sleep 0.02; done" if blocked else ""
    return f"echo x >> {site.folder}/ran{wait}"


def times_run(site: Site) -> int:
    ran = site.folder / "ran"
    return len(ran.read_text().splitlines()) if ran.exists() else 0


def names(store: Store) -> list[str]:
    with store.read() as tx:
        return sorted(job.name for job in [*tx.jobs.active(), *tx.jobs.finished(0, 100)])


def leftovers(site: Site) -> list[str]:
    return sorted(each for each in os.listdir(site.home.path) if ".new" in each)


def kept(site: Site) -> list[str]:
    return sorted(each for each in os.listdir(site.home.path) if "before-restore" in each)


def red(site: Site) -> list[Finding]:
    return [each for each in site.client.admin.doctor() if each.level == "red"]


def start(site: Site, file: Path, points: str) -> subprocess.Popen[str]:
    return warm.start(
        [],
        ["restore", str(file), "--force"],
        cwd=site.folder,
        env={**site.env, "HEADWAY_POINTS": points},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def is_stopped(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "T"
