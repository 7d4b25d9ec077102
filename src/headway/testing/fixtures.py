"""Fixtures for users' tests; pytest finds them by the entry point `headway`.

def test_build(headway_home):
    with headway.testing.using(app, home=headway_home.parent) as clock: ...
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headway.functions.app import App


@pytest.fixture
def headway_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary `.headway/` in which no worker is started. Code under test that looks for a home
    finds this one; so do the apps of modules. A test that waits there without end for a job,
    or for a slot, fails at once while no worker is there."""
    from headway.jobs.wait import TEST_HOME
    from headway.testing import make_test_home

    path = make_test_home(tmp_path)
    monkeypatch.setenv("HEADWAY_HOME", path)
    monkeypatch.setenv(TEST_HOME, path)
    monkeypatch.delenv("HEADWAY_STORE", raising=False)
    close_apps()
    yield Path(path)
    close_apps()


def close_apps() -> None:
    """An app of a module that is open keeps to the home it has found; closed, it looks again. One
    that was given a home, as by `using`, does not look for one."""
    headway_app = sys.modules.get("headway.functions.app")
    if headway_app is None:
        return
    for module in list(sys.modules.values()):
        for value in list(getattr(module, "__dict__", {}).values()):
            is_app = issubclass(type(value), headway_app.App)  # a stand-in is better not asked
            if is_app and value._where["home"] is None:
                value.close()


@pytest.fixture
def headway_app(headway_home: Path) -> Iterator[App]:
    """An app of its own, with a fake clock: declare tasks, submit, `headway.testing.drain`."""
    from headway.functions.app import App
    from headway.testing import using

    app = App()
    with using(app, home=headway_home.parent):
        yield app
