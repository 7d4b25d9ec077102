"""The functions of Headway's function jobs. The worker's host imports this module, as a user's."""

import os
import time

import headway

app = headway.App()


@app.task
def noop(number: int, other: int) -> None:
    """Nothing: what is left is what a job costs."""


@app.task
def record(path: str) -> None:
    """Say when it began, in a file beside the store."""
    write_instant(path)


def write_instant(path: str) -> None:
    """The file is there only when it is whole."""
    now = time.time_ns()
    with open(f"{path}.part", "w") as file:
        file.write(str(now))
    os.rename(f"{path}.part", path)
