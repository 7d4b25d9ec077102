"""Scenes of the visiting test in which somebody runs a failed segment again."""

from stage import Part, Stage

from headway.core.states import Status
from headway.jobs.retry import rewind


def run_again(part: Part, job: int) -> None:
    rewind(part.client().context, job)


def rewinder_dies(stage: Stage, point: str) -> None:
    """After the commit: the segment runs again, once, though nobody was told."""
    first = stage.job("a", f"test -e {stage.folder}/again || exit 3")
    follower = stage.job("b", after=(first,))
    stage.finish()
    assert stage.status(follower) is Status.BLOCKED_BY_DEPENDENCY
    (stage.folder / "again").touch()
    stage.dies_at(point, run_again, first)
    stage.called("a again", follower + 1)
    stage.called("b again", follower + 2)
    stage.finish()
    ends = [[each["state"] for each in stage.client.jobs.chain(job)] for job in (first, follower)]
    assert ends == [["failed", "succeeded"], ["blocked_by_dependency", "succeeded"]]
    told = [entry for entry in stage.written() if entry[0] == "start"]
    assert told == [("start", "a"), ("start", "a"), ("start", "b")]
