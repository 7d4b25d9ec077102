"""What all tests share: who they run as, and the waiting that never sleeps blindly."""

import os

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that need root run as root (CI does) and are elsewhere named, not silently passed."""
    if os.geteuid() == 0:
        return
    needy = [item for item in items if item.get_closest_marker("root")]
    if needy:
        items[:] = [item for item in items if item not in needy]
        config.hook.pytest_deselected(items=needy)
        config.stash.setdefault(_NOT_RUN, []).extend(item.nodeid for item in needy)


_NOT_RUN: pytest.StashKey[list[str]] = pytest.StashKey()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for nodeid in config.stash.get(_NOT_RUN, []):
        terminalreporter.write_line(f"not run: needs root: {nodeid}")
