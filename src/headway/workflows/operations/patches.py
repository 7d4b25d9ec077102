"""Patches: what a worktree holds becomes a file, and files of patches become a tree."""

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from headway.base.crashpoints import reach
from headway.integrations.git.branches import WRITE_SECONDS, turn_tree
from headway.integrations.git.commits import head_commit, index_aside, tree_of
from headway.integrations.git.lock import holding
from headway.integrations.git.ownership import write_document
from headway.integrations.git.patches import LIMIT_BYTES, base_of, save_patch
from headway.integrations.git.program import ask, failed, run
from headway.workflows.operations.model import Done, FailedError, NodeTask
from headway.workflows.operations.repository import (
    blocked_by_people,
    checkout,
    file_of,
    refuse_unfinished,
)

PATCH = "command.patch"  # what `command_patch:job-N` is
MANIFEST = "pipeline.json"
FOLDER = "patches"


def save_worktree_patch(task: NodeTask) -> Done:
    """All that differs between the base of the worktree, or the head, and the files now."""
    top = checkout(task)
    base = task.root["base"] if task.root is not None else base_of(top)
    to = os.path.join(task.folder, PATCH)
    size = save_patch(top, base, to, LIMIT_BYTES)
    return Done(f"{size} bytes in {to}", {"patch": to, "bytes": size})


def prepare_pipeline(task: NodeTask) -> Done:
    """Copies of the files in the job's folder, and a manifest of them in their order."""
    entries = []
    for name in _files(task):
        content = _read(task, name)
        digest = hashlib.sha256(content).hexdigest()
        entries.append({"name": name, "sha256": digest, "bytes": len(content)})
        path = os.path.join(task.folder, FOLDER, f"{digest}.patch")
        if not _has(path, digest):
            _write(path, content)
        entries[-1]["path"] = path
    manifest = os.path.join(task.folder, MANIFEST)
    write_document(manifest, {"version": 1, "files": entries})
    return Done(f"{len(entries)} patches", {"manifest": manifest, "total": len(entries)})


def execute_pipeline(task: NodeTask) -> Done:
    """Apply patches in their order, all or none, onto what is checked out; they are staged."""
    top = checkout(task)
    refuse_unfinished(task, top)
    head = head_commit(top)
    if head is None:
        raise FailedError(f"patch.execute_pipeline: {top} has no commit yet; commit first")
    patches = _patches(task)
    with index_aside(top, head, task.folder) as environ:
        for name, path in patches:
            args = ("apply", "--cached", "--whitespace=nowarn", "--", path)
            answer = run(top, *args, environ=environ, writes=True, timeout=WRITE_SECONDS)
            if answer.code != 0:
                error = failed(top, args, answer.code, answer.err)
                if error.of_host:
                    raise error
                lines = answer.err.splitlines()
                why = lines[0].removeprefix("error: ") if lines else f"exit {answer.code}"
                raise FailedError(f"patch.execute_pipeline failed applying {name}: {why}")
        tree = ask(top, "write-tree", environ=environ, writes=True).lines[0]
    reach("patch.aside")
    with blocked_by_people(task), holding(top) as held:
        turn_tree(held, top, tree_of(top, head), tree, key=task.key)
    reach("patch.moved")
    return Done(f"{len(patches)} patches applied", {"applied": len(patches), "tree": tree})


def _files(task: NodeTask) -> list[str]:
    given = task.args.get("files")
    files = [given] if isinstance(given, str) else given
    if not isinstance(files, list) or not all(isinstance(each, str) and each for each in files):
        raise FailedError(f"{task.operation}: files is not a list of paths")
    return files


def _patches(task: NodeTask) -> list[tuple[str, str]]:
    """Name and path of each, by the manifest of another node or as the arguments name them."""
    if "from" not in task.args:
        found = [(name, file_of(task, name)) for name in _files(task)]
    else:
        manifest = task.args.get("manifest")
        try:
            with open(str(manifest), encoding="utf-8") as file:
                entries: list[Mapping[str, Any]] = json.load(file)["files"]
            found = [(each["name"], each["path"]) for each in entries]
        except (OSError, ValueError, KeyError, TypeError):
            words = f"{task.operation}: the manifest of {task.args['from']} cannot be read"
            raise FailedError(f"{words}; retry from {task.args['from']}") from None
    for name, path in found:
        if not os.path.isfile(path):
            raise FailedError(f"{task.operation} missing patch file {name}")
    return found


def _read(task: NodeTask, name: str) -> bytes:
    try:
        with open(file_of(task, name), "rb") as file:
            content = file.read(LIMIT_BYTES + 1)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        raise FailedError(f"patch.pipeline_prepare missing patch file {name}") from None
    if len(content) > LIMIT_BYTES:
        raise FailedError(f"patch.pipeline_prepare: {name} is larger than {LIMIT_BYTES} bytes")
    return content


def _has(path: str, digest: str) -> bool:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest() == digest
    except FileNotFoundError:
        return False


def _write(path: str, content: bytes) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    new = f"{path}.new"
    with open(new, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(new, path)
