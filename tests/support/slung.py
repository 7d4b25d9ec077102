"""A project with a beads export and a target, and a witness that nothing of it is changed."""

import hashlib
import json
from pathlib import Path
from typing import Any

from harness import Bench
from headway.core.targets import Target
from headway.workitems.sling import Slung, Wish, sling
from headway.workitems.targets import add_target

Issue = dict[str, Any]


def issue(name: str, *edges: tuple[str, str], **fields: Any) -> Issue:
    listed = [{"issue_id": name, "depends_on_id": other, "type": kind} for other, kind in edges]
    return {"id": name, "title": f"Do {name}", "status": "open", "dependencies": listed, **fields}


class Project:
    def __init__(self, bench: Bench, *issues: Issue) -> None:
        self.bench = bench
        self.export = bench.folder / ".beads" / "issues.jsonl"
        self.export.parent.mkdir(exist_ok=True)
        self.write(*issues)
        self.target("gas", "true", prefix="gt-")

    def write(self, *issues: Issue) -> None:
        self.issues = {each["id"]: each for each in issues}
        self._save()

    def change(self, name: str, **fields: Any) -> None:
        self.issues[name].update(fields)
        self._save()

    def _save(self) -> None:
        text = "".join(json.dumps(each) + "\n" for each in self.issues.values())
        fresh = self.export.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(self.export)

    def target(self, name: str, *argv: str, **fields: Any) -> Target:
        return add_target(self.bench.client.context, Target(name, argv, **fields), replace=True)

    def sling(self, *words: str, rehearse: bool = False, **wish: Any) -> Slung:
        return sling(self.bench.client.context, Wish(words, **wish), rehearse=rehearse)

    def job_of(self, slung: Slung) -> int:
        [scheduled] = slung.scheduled
        assert scheduled.job_id is not None
        return scheduled.job_id


def fingerprints(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Every file below with its content, its time of change and its inode."""
    return {
        str(path): (
            hashlib.sha256(path.read_bytes()).hexdigest(),
            path.stat().st_mtime_ns,
            path.stat().st_ino,
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
