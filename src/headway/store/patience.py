"""How a process waits for its turn to write to a file: how often it looks, and for how long.

A worker that is busy writes nearly all the time, and from one commit to its next transaction there
is less than a tenth of a millisecond. Who looks more and more seldom, as SQLite itself does, finds
that gap after a second or so; and everybody who submits waits for it.
"""

from time import sleep

SECONDS = 10.0
_PAUSES = ((0.00005, 20), (0.00025, 36), (0.001, 990), (0.005, 1800))  # and how many of each
_MOST = sum(number for _, number in _PAUSES)


def wait(tries: int) -> bool:
    """Before the next try, after so many; False if it is not worth another one."""
    if tries >= _MOST:
        return False
    for pause, number in _PAUSES:
        if tries < number:
            sleep(pause)
            break
        tries -= number
    return True
