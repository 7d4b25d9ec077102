"""Worktrees and patches as a user meets them, and what the doctor says about them."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Site
from headway.admin.doctor.services import Service, judged, service_of

IDENTITY = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *IDENTITY, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def shop(tmp_path: Path, store_url: str | None) -> Iterator[Site]:
    """A repository with a home at its top."""
    (tmp_path / "file").write_text("first\n")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "-q", "-m", "begin")
    made = Site(tmp_path, config="[worker]\nidle = '1s'\n", store_url=store_url)
    yield made
    made.close()


def found(site: Site, check: str = "worktrees") -> list[str]:
    findings = json.loads(site.run("doctor", "--json", check=False).stdout)["findings"]
    return [each["detail"] for each in findings if each["check"] == check]


def test_a_job_in_a_worktree_from_submit_to_patch(shop: Site) -> None:
    done = shop.run(
        "exec", "--worktree", "--save-patch", "--shell", "pwd; echo more >>file", check=True
    )
    path = Path(shop.home.worktrees, "job-1")
    assert done.stdout == f"{path}\n"
    patch = Path(shop.home.job(1), "command.patch")
    assert "+more" in patch.read_text() and (shop.folder / "file").read_text() == "first\n"
    told = shop.run("jobs", "show", "1").stdout
    assert "runs in    .headway" in told and "worktree   headway/job-1" in told
    assert "command.patch (" in " ".join(told.split())
    user = shop.run("exec", "--needs", "command_patch:job-1", "--", "cat", str(patch))
    assert "+more" in user.stdout
    (told,) = found(shop)
    assert "1, each of a job" in told


def test_a_worktree_needs_a_repository_and_a_base(
    shop: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    refused = shop.run("submit", "--worktree", "--cwd", str(elsewhere), "--", "true", check=False)
    assert refused.returncode == 5 and "not in a git repository" in refused.stderr
    refused = shop.run("submit", "--worktree", "nowhere", "--", "true", check=False)
    assert refused.returncode == 3 and "nowhere" in refused.stderr
    assert shop.run("jobs", "list", "--all").stdout.count("job-") == 0


@pytest.mark.parametrize("base", [[], ["main"], ["HEAD"]])
def test_a_worktree_needs_a_commit(file_site: Site, base: list[str]) -> None:
    git(file_site.folder, "init", "-q", "-b", "main")
    refused = file_site.run("submit", "--worktree", *base, "--", "true", check=False)
    assert refused.returncode == 3
    assert "has no commit yet" in refused.stderr and "commit first" in refused.stderr
    assert "git log" not in refused.stderr


def test_a_clean_names_what_stays_of_a_worktree(shop: Site) -> None:
    commit = "git -c user.name=A -c user.email=a@b commit -q --allow-empty -m two"
    shop.run("exec", "--worktree", "--shell", f"{commit}; echo more >>file")
    told = shop.run("jobs", "clean", "1").stderr.splitlines()
    saved = Path(shop.home.saved, "job-1.patch")
    assert told == [
        "headway: removed job-1",
        f"headway: kept {saved}",
        "headway: kept branch headway/job-1",
    ]
    assert "+more" in saved.read_text()
    shop.run("exec", "--worktree", "--", "true")
    assert json.loads(shop.run("jobs", "clean", "2", "--json").stdout)["left"] == []


@pytest.mark.req("V40")
def test_a_cancel_makes_up_for_what_could_not_be_cleaned(shop: Site) -> None:
    shop.run("exec", "--worktree", "--shell", "echo more >>file; exit 1", check=False)
    in_the_way = Path(shop.home.job(1), "worktree.patch")
    (in_the_way / "full").mkdir(parents=True)
    shop.run("jobs", "retry", "1")
    assert any("could not be cleaned" in line for line in found(shop))
    shutil.rmtree(in_the_way)
    shop.until_ended(2)
    assert "cleaned away now" in shop.run("jobs", "cancel", "1").stderr
    assert "+more" in in_the_way.read_text()


def test_the_doctor_names_worktrees_without_a_job_and_jobs_without_a_worktree(shop: Site) -> None:
    shop.run("exec", "--worktree", "--", "true")
    assert len(found(shop)) == 1
    Path(shop.home.worktrees, "job-77").mkdir()
    shutil.rmtree(Path(shop.home.worktrees, "job-1"))
    told = found(shop)
    assert any("no job owns: job-77" in line for line in told)
    assert any("job-1 own one that is gone" in line for line in told)


# -- a worker that systemd runs ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "service"),
    [
        ("0::/system.slice/headway.service\n", Service("headway.service", False)),
        (
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/headway.service\n",
            Service("headway.service", True),
        ),
        ("12:pids:/x\n1:name=systemd:/system.slice/h.service\n", Service("h.service", False)),
        ("0::/user.slice/user-1000.slice/session-3.scope\n", None),
        ("0::/user.slice/user-1000.slice/user@1000.service\n", None),
        ("0::/\n", None),
        ("nonsense\n", None),
    ],
)
def test_the_unit_of_a_worker_is_read_from_its_control_group(  # fault B17
    tmp_path: Path, text: str, service: Service | None
) -> None:
    file = tmp_path / "cgroup"
    file.write_text(text)
    assert service_of(str(file)) == service
    assert service_of(str(tmp_path / "gone")) is None


@pytest.mark.parametrize(
    ("mode", "level"),
    [("control-group", "yellow"), ("mixed", "yellow"), ("process", "green"), (None, "yellow")],
)
def test_a_unit_that_takes_its_jobs_down_is_warned_of(  # fault B17
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str | None, level: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if mode is not None:
        systemctl = tmp_path / "systemctl"
        systemctl.write_text(
            '#!/bin/sh\ntest "$*" = "--user show --property=KillMode --value -- h.service"'
            f" && echo {mode}\n"
        )
        systemctl.chmod(0o755)
    (finding,) = judged(Service("h.service", of_user=True))
    assert (finding.check, finding.level) == ("service", level)
    assert (finding.next_step is None) == (level == "green")
    assert list(judged(None)) == []
