"""Sources of installed packages. What others wrote may hang or fail, so it is asked in a process of
its own, for a bounded time; what goes wrong is an error that names the source."""

import json
import subprocess
import sys
from collections.abc import Collection

from headway.base.errors import SourceError
from headway.base.programs import run_program
from headway.core.subjects import SUBJECT, Item, ItemKind, ItemState
from headway.integrations.trackers.bounded_files import one_line
from headway.integrations.trackers.model import Seen

SECONDS = 10.0


class Plugin:
    def __init__(self, name: str, project: str) -> None:
        self._name = name
        self._project = project

    def look(self, subjects: Collection[str]) -> Seen:
        asked = list(dict.fromkeys(subjects))
        answer = self._ask(json.dumps(asked).encode())
        try:
            document = json.loads(answer)
            items = {each["id"]: _item(each) for each in document["items"] if each["id"] in asked}
            return Seen(items, tuple(one_line(str(each)) for each in document["troubles"]))
        except (ValueError, KeyError, TypeError) as error:
            raise SourceError(f"source {self._name} gave no proper answer: {error}") from None

    def _ask(self, question: bytes) -> bytes:
        argv = [
            sys.executable,
            "-P",
            "-m",
            "headway.integrations.trackers",
            self._name,
            self._project,
        ]

        def start(given: int, out: int, err: int) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                argv, stdin=given, stdout=out, stderr=err, start_new_session=True
            )

        result = run_program(start, SECONDS, question=question)
        if result is None:
            raise SourceError(f"source {self._name} did not answer within {SECONDS:g} s")
        if result.code != 0:
            complaint = result.err.decode(errors="replace").strip()
            last = one_line(complaint.rpartition("\n")[2])
            raise SourceError(f"source {self._name} failed: {last or result.code}")
        return result.out


def _item(given: dict[str, object]) -> Item:
    names = [str(given["id"]), *_ids(given, "blockers"), *_ids(given, "children")]
    if not all(SUBJECT.fullmatch(each) for each in names):
        raise ValueError(f"{names[0]!r} or what it names is no id")
    hold, trouble = given.get("hold"), given.get("trouble")
    return Item(
        id=names[0],
        title=one_line(str(given.get("title") or "")),
        state=ItemState(str(given.get("state", "open"))),
        kind=ItemKind(str(given.get("kind", "task"))),
        blockers=_ids(given, "blockers"),
        children=_ids(given, "children"),
        hold=one_line(str(hold)) if hold else None,
        trouble=one_line(str(trouble)) if trouble else None,
    )


def _ids(given: dict[str, object], name: str) -> tuple[str, ...]:
    listed = given.get(name) or ()
    return tuple(str(each) for each in listed) if isinstance(listed, list | tuple) else ()
