"""The job of a node with `each`: it says how many instances there are to be, or why none."""

from headway.workflows.operations.model import Done, FailedError, NodeTask


def announce(task: NodeTask) -> Done:
    """`args` has the number of elements, null if there is no list, and how many there may be."""
    count, most = task.args["count"], task.args["max"]
    if count is None:
        raise FailedError("each.in is no list")
    if count > most:
        raise FailedError(f"each.in has {count:,} elements, more than max = {most}")
    return Done(f"{count} instances" if count != 1 else "1 instance")
