"""What becomes of work items: slung, blocked, closed, opened again."""

from pathlib import Path

import pytest
from direct_stories import DirectStories
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import initialize
from sling_model import BLOCKED, CLOSED, OPEN
from storytelling import SUBJECTS, act

from headway.base.errors import ConflictError
from headway.core.targets import Target
from headway.workitems.sling import Wish, sling
from headway.workitems.targets import add_target

FILES = {
    OPEN: "---\nstate: open\n---\n",
    BLOCKED: "---\nstate: open\ndepends_on: [gt-other]\n---\n",
    CLOSED: "---\nstate: closed\n---\n",
}


class SlingStories(DirectStories):
    """All that may happen to a store: to jobs, to the queue, beside it, and outside of it."""

    @initialize()
    def begin_outside(self) -> None:
        add_target(self.client.context, Target("t", ("true",), prefix="gt-", resources=("x",)))
        Path(self.home.path, "tasks").mkdir()
        Path(self.home.path, "tasks", "gt-other.md").write_text(FILES[OPEN])
        for subject in SUBJECTS:
            self.change_item(subject, OPEN)

    @act(2, subject=st.sampled_from(SUBJECTS), to=st.sampled_from((OPEN, OPEN, BLOCKED, CLOSED)))
    def change_item(self, subject: str, to: str) -> None:
        """By whoever works with the tracker."""
        Path(self.home.path, "tasks", f"{subject}.md").write_text(FILES[to])
        self.model.items[subject] = to

    @act(4, subject=st.sampled_from(SUBJECTS), force=st.booleans())
    def sling(self, subject: str, force: bool) -> None:
        """Once: who slings it again hears of the job that is open, also with force."""
        note(f"sling {subject}, which is {self.model.items[subject]}")
        wish = Wish((subject,), force=force)
        known = self.model.open_about(subject)
        if not known and self.model.items[subject] == CLOSED:
            with pytest.raises(ConflictError):
                sling(self.client.context, wish)
            return
        slung = sling(self.client.context, wish)
        if known:
            assert not slung.scheduled
            assert [each.job_id for each in slung.already] == [job.id for job in known]
            return
        job = self.model.sling(subject, resources=("x",), target="t")
        assert [each.job_id for each in slung.scheduled] == [job.id]
        assert slung.groups == (job.group,)
