"""What `headway doctor` finds, for tests."""

import json
import os
from pathlib import Path
from typing import Any

from harness import Site
from headway.admin.doctor import examine

WORDS = ("check", "level", "detail", "next")  # of a finding


def examined(site: Site) -> list[dict[str, Any]]:
    """In the test's process, but as the command would in the folder of the site."""
    found = examine(None, None, site.env, str(site.folder))
    findings = [dict(zip(WORDS, each, strict=True)) for each in found]
    assert all(each["next"] for each in findings if each["level"] != "green")
    return findings


def printed(site: Site) -> list[dict[str, Any]]:
    """By the command, whose code says whether something is red."""
    done = site.run("doctor", "--json", check=False)
    document = json.loads(done.stdout)
    findings: list[dict[str, Any]] = document["findings"]
    red = any(each["level"] == "red" for each in findings)
    assert document["ok"] is not red and done.returncode == int(red)
    assert all(tuple(each) == WORDS for each in findings)
    return findings


def one(site: Site, check: str, level: str) -> dict[str, Any]:
    """The finding of this check at this level, which must be there."""
    findings = examined(site)
    fitting = [each for each in findings if (each["check"], each["level"]) == (check, level)]
    assert fitting, findings
    return fitting[0]


def red(site: Site) -> list[str]:
    return [each["check"] for each in examined(site) if each["level"] == "red"]


def execute(site: Site, sql: str) -> None:
    site.client.context.store.database.execute(sql, {})  # type: ignore[attr-defined]


def everything(folder: str) -> dict[str, Any]:
    """All files with what they hold and when they were changed."""
    return {
        os.path.join(base, name): (
            os.stat(os.path.join(base, name)).st_mtime_ns,
            Path(base, name).read_bytes() if name in names else None,
        )
        for base, folders, names in os.walk(folder)
        for name in [*folders, *names]
    }
