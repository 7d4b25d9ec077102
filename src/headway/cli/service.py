"""`headway service install | status | remove`: what the system keeps for this home, a worker and
perhaps a server."""

import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any

import click

from headway.admin.service import crontab, systemd
from headway.admin.service.plan import (
    SERVER,
    WORKER,
    ServicePlan,
    cron_line,
    make_plan,
    unit_text,
)
from headway.base.clock import SECOND
from headway.base.errors import HeadwayError, InvalidInputError, NotFoundError
from headway.base.home import Home, find_home, refuse_no_home, refuse_unsafe
from headway.base.new_home import make_home
from headway.base.store_trust import refuse_untrusted_store
from headway.base.worker_lock import STAYS, WorkerLock, worker_is_there
from headway.cli.render import emit, fields, say
from headway.cli.scope import Scope
from headway.jobs.settings import Config, choose_store

SYSTEMD, CRONTAB = "systemd", "crontab"
LINGER = "it ends when you log out; to keep it, and to have it at boot: loginctl enable-linger"


@click.command()
@click.option("--print", "only_print", is_flag=True, help="Print what it would be; change nothing.")
@click.option("--web", is_flag=True, help="Keep a server, too, in a unit of its own.")
@click.pass_obj
def install(scope: Scope, only_print: bool, web: bool) -> None:
    """Put the worker's unit or crontab line in place.

    A systemd user unit, started at once and at boot; an @reboot line where there is no systemd
    of the user's own. Twice is the same as once.
    """
    home, worker = _planned(scope)
    plans = [worker]
    if web:
        _refuse_without_extra()
        plans.append(_planned(scope, SERVER)[1])
    refuse_untrusted_store(home, os.environ)
    keeper = _keeper()
    if keeper is None and not only_print:
        raise HeadwayError(_nobody_keeps_it(plans))
    for plan in plans:
        if only_print:
            _print_plan(plan, keeper)
        elif keeper == SYSTEMD:
            _install_unit(plan)
        else:
            _install_line(home, plan)


def _keeper() -> str | None:
    """What would keep a process here."""
    if systemd.manager_is_there():
        return SYSTEMD
    return CRONTAB if crontab.cron_is_there() else None


def _refuse_without_extra() -> None:
    from importlib.util import find_spec

    if find_spec("uvicorn") is None:
        raise InvalidInputError("a server needs the extra `web`: pip install 'headway[web]'")


def _print_plan(plan: ServicePlan, keeper: str | None) -> None:
    """What would be put in place here; where nothing would, the unit, for use elsewhere."""
    if keeper == CRONTAB:
        print(cron_line(plan))
        say("it would be a line of your crontab")
        return
    sys.stdout.write(unit_text(plan))
    say(f"it would be {systemd.unit_path(plan)}")
    if keeper is None:
        say(_nobody_keeps_it([plan]))


def _nobody_keeps_it(plans: Sequence[ServicePlan]) -> str:
    commands = ", and: ".join(shlex.join(plan.argv) for plan in plans)
    return (
        "neither a systemd of this user's own answers (it does after a login, not after su; or "
        "after loginctl enable-linger) nor is there a crontab; have whatever starts programs here "
        f"run: {commands}"
    )


def _install_unit(plan: ServicePlan) -> None:
    path = systemd.unit_path(plan)
    changed = systemd.install(plan)
    print(path)
    done = f"installed; a {plan.what} runs and comes back by itself"
    say(done if changed else "it was already there")
    if plan.what == WORKER and systemd.lingers() is False:
        say(LINGER)


def _install_line(home: Home, plan: ServicePlan) -> None:
    line = cron_line(plan)
    make_home(home)  # the line needs the folder of the log
    changed = crontab.install(plan)
    print(line)
    now = {WORKER: "now with any submit", SERVER: "now with headway serve"}[plan.what]
    done = f"it is a line of your crontab; a {plan.what} comes with the next boot, {now}"
    say(done if changed else "it was already there")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.pass_obj
def status(scope: Scope, as_json: bool) -> None:
    """Whether the system keeps a worker for this home, and how it is."""
    home, plan = _planned(scope)
    document = _service_document(home, plan)
    server = _kept(_planned(scope, SERVER)[1])
    document["server"] = server if server["kind"] else None
    if as_json:
        emit({"service": document})
        return
    for line in fields(_shown(document), indent=""):
        print(line)
    if document["server"]:
        print()
        for line in fields(_shown_place(document["server"]), indent=""):
            print(line)
    again = "headway service install" + (" --web" if document["server"] else "")
    kept = [each for each in (document, document["server"]) if each]
    if document["kind"] is None:
        say(f"next: {again}")
    elif not all(each["current"] for each in kept):
        say(f"it is not as it would be installed now; next: {again}")
    elif document["linger"] is False:
        say(LINGER)


def _service_document(home: Home, plan: ServicePlan) -> dict[str, Any]:
    lock = WorkerLock(home.worker_lock)
    alive = lock.is_held(STAYS)
    return {**_kept(plan), "worker": {"alive": alive, "pid": lock.read_pid() if alive else None}}


def _kept(plan: ServicePlan) -> dict[str, Any]:
    """What keeps it, and how that stands."""
    document: dict[str, Any] = {
        "name": plan.name,
        "kind": None,
        "place": None,
        "current": None,
        "enabled": None,
        "active": None,
        "result": None,
        "linger": None,
    }
    if unit := systemd.state(plan):
        document |= {"kind": SYSTEMD, "place": unit.path, "current": unit.current}
        document |= {"enabled": unit.enabled, "active": unit.active, "linger": unit.lingers}
        document["result"] = unit.result or None
    elif line := crontab.state(plan):
        document |= {
            "kind": CRONTAB,
            "place": line.line,
            "current": line.current,
            "enabled": True,
        }
    return document


def say_if_not_kept(scope: Scope) -> None:
    """What comes by itself needs a worker when its time comes, and not only until the next boot."""
    if _is_kept(scope) is False:
        say("no service keeps a worker after a reboot; next: headway service install")


def say_what_keeps(scope: Scope) -> None:
    """The same for what starts no worker by itself."""
    home, _ = _home_of(scope)
    if worker_is_there(home.worker_lock):
        say_if_not_kept(scope)
    elif _is_kept(scope):
        say("a service keeps a worker, but none is there now; next: headway service status")
    else:
        say("no worker is there to run it; next: headway service install, or headway work for now")


def _is_kept(scope: Scope) -> bool | None:
    """Whether the system keeps a worker for this home, as far as that can be told at once. None:
    it cannot be told; `service install` says why."""
    try:
        _, plan = _planned(scope)
        return os.path.exists(systemd.unit_path(plan)) or crontab.state(plan) is not None
    except HeadwayError:
        return None


def _shown(document: dict[str, Any]) -> list[tuple[str, str | None]]:
    worker = document["worker"]
    there = f"there, pid {worker['pid']}" if worker["alive"] else "none is there now"
    return [*_shown_place(document), ("worker", there)]


def _shown_place(document: dict[str, Any]) -> list[tuple[str, str | None]]:
    kinds = {SYSTEMD: "a systemd user unit", CRONTAB: "a line of your crontab"}
    state = document["active"]
    if state is not None and state != "active" and document["result"] not in (None, "success"):
        state = f"{state} ({document['result']}); see: journalctl --user -u {document['name']}"
    if document["enabled"] is False:
        state = f"{state}, not enabled"
    return [
        ("service", document["name"]),
        ("kept by", kinds.get(document["kind"], "nothing")),
        ("place", document["place"]),
        ("state", state),
    ]


@click.command()
@click.pass_obj
def remove(scope: Scope) -> None:
    """Take the units or lines away; what runs goes on.

    The worker of a unit is stopped, and its jobs are left to the next worker.
    """
    plans = [_planned(scope, what)[1] for what in (SERVER, WORKER)]
    removed = [plan for plan in plans if any([systemd.remove(plan), crontab.remove(plan)])]
    for plan in removed:
        say(f"{plan.name} is removed")
    if not removed:
        say("no service is installed for this home")


def _home_of(scope: Scope) -> tuple[Home, Config]:
    found, exists = find_home(scope.home, os.environ, os.getcwd())
    if not exists:
        raise NotFoundError("there is no .headway/ to keep a worker for; `headway init` makes one")
    refuse_unsafe(found.path)
    refuse_no_home(found.path)
    config = scope.config_of(found)
    return Home(found.path, choose_store(config, scope.store, os.environ)), config


def _planned(scope: Scope, what: str = WORKER) -> tuple[Home, ServicePlan]:
    home, config = _home_of(scope)
    apart = scope.store or os.environ.get("HEADWAY_STORE")
    if apart == (config.values.get("store.url") or f"sqlite://{Home(home.path).database}"):
        apart = None
    plan = make_plan(
        home.path,
        python=sys.executable,
        log=home.worker_log if what == WORKER else os.path.join(home.run, "web.log"),
        store_url=apart,
        grace_seconds=config.micros("worker.grace") // SECOND,
        environ=os.environ,
        what=what,
    )
    return home, plan
