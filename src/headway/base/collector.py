"""Python's collector of circles, paused while much is made that stays.

It looks through all that there is again and again, finds nothing, and takes a third of the time in
which a large workflow is compiled.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Of several threads that ask for it the first to leave lets it run again."""
    ran = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if ran:
            gc.enable()
