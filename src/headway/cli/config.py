"""`headway config get|set|unset|list`.

`scheduler.*` are rows in the store, the rest stands in `config.toml`.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from typing import Any

import click

from headway.base.worker_lock import wake
from headway.cli.render import counted, emit, fields, say
from headway.cli.scope import Scope
from headway.client import Client
from headway.core.states import Status
from headway.jobs.settings import Setting, find_setting, store_setting, unusable_settings
from headway.jobs.views.settings import value_of

LEAVES_WITHIN = 10.0


@click.command()
@click.argument("key", metavar="KEY")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def get(scope: Scope, key: str, as_json: bool) -> None:
    """Print the value of a setting."""
    setting = find_setting(key)
    client = scope.connect()
    value, _ = value_of(client.context, setting, client.scheduler.settings())
    if as_json:
        emit({"key": key, "value": value})
    else:
        print(_written(value))


@click.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("key", metavar="KEY")
@click.argument("value", metavar="VALUE")
@click.pass_obj
def set_value(scope: Scope, key: str, value: str) -> None:
    """Change a setting."""
    setting = find_setting(key)
    parsed = setting.read(value)
    client = scope.connect_or_create()
    if setting.in_store:
        before = store_setting(client.scheduler.settings(), key)
        client.set_setting(key, parsed)
        _say_mode_if_other(client, key, before, parsed)
    else:
        client.admin.configure(key, parsed)
        _say_if_kept_by_worker(client, key)
    say(f"{key} = {_written(parsed)}")
    if key == "app.modules":
        _say_what_is_not_there(client, parsed)


@click.command()
@click.argument("key", metavar="KEY")
@click.pass_obj
def unset(scope: Scope, key: str) -> None:
    """Let a setting have its default again."""
    client = scope.connect_to_change()
    stored = client.scheduler.settings()
    if any(key == each.key for each in unusable_settings(stored)):
        client.scheduler.unset(key)
        say(f"{key}: what the store had did not count; it is removed")
        return
    setting = find_setting(key)
    if setting.in_store and key in stored:
        before = store_setting(stored, key)
        client.scheduler.unset(key)
        _say_mode_if_other(client, key, before, setting.default)
    elif not setting.in_store and client.admin.unset(key):
        _say_if_kept_by_worker(client, key)
    else:
        say(f"{key} was not set; it is {_default(setting)}, its default")
        return
    say(f"{key} = {_default(setting)}, its default")


def _say_what_is_not_there(client: Client, modules: tuple[str, ...]) -> None:
    """They may come later, so they are kept. Nothing is imported to find out."""
    project = os.path.dirname(client.home.path)
    own = client.config.env.get("PYTHONPATH", "").split(os.pathsep)
    places = [project, *(os.path.join(project, each) for each in own if each), *sys.path]
    missing = [each for each in modules if not _is_module(each, places)]
    if missing:
        say(
            f"there is no module {' and no '.join(missing)} yet, neither in {project} nor on the "
            "PYTHONPATH"
        )


def _is_module(name: str, places: Sequence[str]) -> bool:
    path, searched = "", list(places)
    for part in name.split("."):
        path = f"{path}.{part}" if path else part
        found = PathFinder.find_spec(path, searched)
        if found is None:
            return False
        searched = list(found.submodule_search_locations or ())
    return True


def _say_mode_if_other(client: Client, key: str, before: int, now: int) -> None:
    if key == "scheduler.max_active" and (before > 0) != (now > 0):
        _print_mode(client, now)


def _say_if_kept_by_worker(client: Client, key: str) -> None:
    if _kept_by_worker(client, key):
        say("the worker that is there keeps the old value; the next one takes the new")


def _print_mode(client: Client, cap: int) -> None:
    """The mode is another now: say what becomes of what is queued."""
    with client.context.store.read() as tx:
        counts = tx.jobs.count_active()
    queued = sum(count for status, count in counts.items() if status is not Status.RUNNING)
    left = counted(queued, "queued job")
    if cap <= 0:
        say(f"direct from now on; {left} may start now" if queued else "direct from now on")
    else:
        waits = f"; {left} {'waits' if queued == 1 else 'wait'} for slots" if queued else ""
        say(f"deferred from now on: at most {cap} at a time{waits}")


def _kept_by_worker(client: Client, key: str) -> bool:
    if key.startswith("display.") or not client.context.worker_is_there():
        return False
    return not (key.startswith("app.") and _renewed_worker(client))


def _renewed_worker(client: Client) -> bool:
    """Jobs wait for a module that was not named, so the background worker makes way for another.
    One that is just coming up may have read the old value, and is asked as soon as it listens."""
    if not client.config["worker.autostart"]:
        return False
    give_up_at = client.clock.monotonic() + LEAVES_WITHIN
    asked = False
    while client.context.worker_is_there():
        if client.clock.monotonic() > give_up_at or _stands_in_the_foreground(client):
            return False
        asked = asked or wake(client.home.worker_socket, b"handover")
        client.clock.sleep(0.02)
    return client.context.wake()


def _stands_in_the_foreground(client: Client) -> bool:
    with client.context.store.read() as tx:
        newest = tx.hosts.recent_workers(client.context.host.id, 1)
    return bool(newest) and newest[0].ended_at is None and newest[0].mode != "background"


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def list_settings(scope: Scope, as_json: bool) -> None:
    """List every setting, its value and meaning."""
    client = scope.connect()
    documents = client.scheduler.all_settings()
    if as_json:
        emit({"settings": documents})
        return
    for each in documents:
        default = "" if each["from"] == "default" else f"  (from {each['from']})"
        print(f"{each['key']} = {_written(each['value'])}{default}")
        for line in fields([("", each["about"])], indent="  "):
            print(line)


def _default(setting: Setting) -> str:
    return _written(setting.default) or "empty"


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool | None) else str(value)
