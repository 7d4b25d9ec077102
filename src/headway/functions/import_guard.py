"""Whether one of Headway's own processes imports the calling code.

Function hosts import the user's modules. So do `testing.drain` and the process that evaluates
jobs-file conditions. A module that submits a job when it is imported would make one in each of
them, for ever.
"""

import sys
from types import FrameType


def is_imported_by_headway() -> bool:
    """Whether the calling code runs because Headway imports a module of the user's."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is None or not main.name.startswith("headway."):
        return False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_back is not None:
        by = frame.f_back.f_globals.get("__name__", "")
        if _name(frame) == "importlib.import_module" and f"{by}.".startswith(
            ("headway.", "__main__.")
        ):
            return True
        frame = frame.f_back
    return False


def _name(frame: FrameType) -> str:
    return f"{frame.f_globals.get('__name__')}.{frame.f_code.co_name}"
