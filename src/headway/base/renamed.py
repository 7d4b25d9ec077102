"""Names of before that still work for one release, with a warning that says the new name."""

from collections.abc import Callable, Mapping
from typing import Any


def warn_of_name(old: str, new: str, *, above: int = 3) -> None:
    """Warn the caller's caller; `above` counts the frames up to the line that has the old name."""
    import warnings

    warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=above)


def forwarded(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module of before. A new name is one of `headway`, as `Request`, or a
    method of a client, as `Client.groups.submit`, which the old function got as its first argument.
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        new = names[name]
        warn_of_name(f"{module}.{name}", f"headway.{new}")
        if not new.startswith("Client."):
            from importlib import import_module

            return getattr(import_module("headway"), new)

        def call(client: Any, *args: Any, **words: Any) -> Any:
            found = client
            for part in new.split(".")[1:]:
                found = getattr(found, part)
            return found(*args, **words)

        return call

    return find
