"""Artifacts: named facts that one job makes and others need.

Written `kind:name`, as in `plan_doc:login`, `custom:report:june` or `file:/srv/data.csv`. Custom
ones are there when a job has published them; all others are probed where they are: in the
repository, on disk, in a job's folder. Those of a repository are known by their text and the
repository, which together are the artifact's key.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from headway.base.errors import InvalidInputError


class ArtifactKind(StrEnum):
    PLAN_BRANCH = "plan_branch"
    PLAN_DOC = "plan_doc"
    PLAN_COMMITS = "plan_commits"
    TARGET_BRANCH = "target_branch"
    MERGE_SENTINEL = "merge_sentinel"
    COMMAND_PATCH = "command_patch"
    CUSTOM = "custom"
    FILE = "file"


_OF_A_PLAN = frozenset({ArtifactKind.PLAN_BRANCH, ArtifactKind.PLAN_DOC, ArtifactKind.PLAN_COMMITS})
IN_REPOSITORY = _OF_A_PLAN | {ArtifactKind.TARGET_BRANCH}
LONGEST = 500

SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_CUSTOM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}:[^\s:][^\s]{0,199}")
_JOB = re.compile(r"job-([1-9][0-9]{0,17})")
_BRANCH = re.compile(r"[^\s~^:?*\[\\-][^\s~^:?*\[\\]*")

ArtifactKey = str


class Artifact(NamedTuple):
    """One artifact; `name` is what follows the kind."""

    kind: ArtifactKind
    name: str

    @property
    def text(self) -> str:
        return f"{self.kind}:{self.name}"

    @property
    def branch(self) -> str | None:
        """The branch that it is, or is on."""
        if self.kind is ArtifactKind.TARGET_BRANCH:
            return self.name
        return plan_branch(self.name) if self.kind in _OF_A_PLAN else None

    @property
    def job_id(self) -> int:
        """The job whose patch it is."""
        match = _JOB.fullmatch(self.name)
        return int(match[1]) if match else 0


def plan_branch(slug: str) -> str:
    return f"draft/{slug}"


def with_branch(text: str) -> str:
    """The artifact as views show it: one of a plan with the branch that it is on."""
    kind, _, slug = text.partition(":")
    return f"{text} ({plan_branch(slug)})" if kind in _OF_A_PLAN else text


def plan_document(slug: str) -> str:
    """Where a plan's document is on its branch."""
    return f".headway/plans/{slug}.md"


def sentinel_path(home: str, slug: str) -> str:
    """The file that says that a merge of this plan met a conflict."""
    return f"{home}/merge-conflicts/{slug}.json"


_FORMS = {
    ArtifactKind.PLAN_BRANCH: (SLUG, "plan_branch:SLUG"),
    ArtifactKind.PLAN_DOC: (SLUG, "plan_doc:SLUG"),
    ArtifactKind.PLAN_COMMITS: (SLUG, "plan_commits:SLUG"),
    ArtifactKind.TARGET_BRANCH: (_BRANCH, "target_branch:BRANCH"),
    ArtifactKind.MERGE_SENTINEL: (SLUG, "merge_sentinel:SLUG"),
    ArtifactKind.COMMAND_PATCH: (_JOB, "command_patch:job-N"),
    ArtifactKind.CUSTOM: (_CUSTOM, "custom:TYPE:KEY"),
    ArtifactKind.FILE: (re.compile(r".+"), "file:PATH"),
}


def parse_artifact(text: str) -> Artifact:
    kind, colon, name = text.partition(":")
    if not colon or kind not in set(ArtifactKind):
        raise InvalidInputError(
            f"artifact {text[:60]!r} is not of a known kind: {', '.join(ArtifactKind)}"
            + _meant(text, kind, name)
        )
    form, example = _FORMS[ArtifactKind(kind)]
    if len(text) > LONGEST or not text.isprintable() or not form.fullmatch(name):
        raise InvalidInputError(f"artifact {text[:60]!r} is not of the form {example}")
    return Artifact(ArtifactKind(kind), name)


def is_artifact(text: str) -> bool:
    try:
        return bool(parse_artifact(text))
    except InvalidInputError:
        return False


def wrong_slug(text: str) -> str | None:
    """Why a text cannot be the slug of a plan."""
    if SLUG.fullmatch(text):
        return None
    return f"{text[:60]!r} is no slug; give letters, digits, '.', '_' and '-'"


def _meant(text: str, kind: str, name: str) -> str:
    """A text without a kind is most often a path; a kind without its beginning is known."""
    if kind == text:
        return f"; did you mean file:{text[:60]}?"
    like = [each for each in ArtifactKind if each.endswith(f"_{kind}")]
    return f"; did you mean {' or '.join(f'{each}:{name[:60]}' for each in like)}?" if like else ""


def artifact_key(text: str, repo: str | None) -> ArtifactKey:
    """The key of the artifact: two repositories may have a branch of the same name."""
    kind = text.partition(":")[0]
    return f"{text} {repo}" if repo and kind in IN_REPOSITORY else text


def paths_of_files(texts: Iterable[str]) -> list[str]:
    """The paths of those artifacts that are files."""
    split = (text.partition(":") for text in texts)
    return [path for kind, _, path in split if kind == ArtifactKind.FILE]


def split_key(key: ArtifactKey) -> tuple[str, str | None]:
    """The artifact's text and the repository that it belongs to, if any."""
    if key.partition(":")[0] not in IN_REPOSITORY:
        return key, None
    text, _, repo = key.partition(" ")
    return text, repo or None


def artifact_topic(key: ArtifactKey) -> str:
    """The topic under which a job is parked while it waits for this artifact."""
    return f"artifact:{key}"
