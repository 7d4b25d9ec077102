"""`headway direct`: run a command in the next free slot, here and now, without making a job of it.

The command has this terminal, and ends with this process: to kill it is to kill the command.
"""

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from headway.base.clock import SECOND
from headway.cli.options import DURATION, parse_env
from headway.cli.render import say
from headway.cli.scope import NO_CHECK, Scope
from headway.client import Client
from headway.jobs.request import Request
from headway.jobs.reservations import LONGEST_NOTE, HeldSlot, expiry_in, reserve
from headway.jobs.specification import default_name, specify
from headway.jobs.wake import start_worker
from headway.supervise.direct import VARIABLE, Overseen
from headway.supervise.outside import Outside

CAUGHT_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
OF_TERMINAL = 0x80  # SI_KERNEL: the whole foreground group got the signal, the command, too
LOOK_SECONDS = 0.1


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("--note", metavar="TEXT", help="What it is for; else the command.")
@click.option("--type", "type_", metavar="WORD", help="What limits by type go by.")
@click.option("--resource", multiple=True, metavar="R", help="It uses this resource (repeat).")
@click.option("--target", metavar="NAME", help="The target that it runs for.")
@click.option("--wait", type=DURATION, metavar="5m", help="Give up after so long without a slot.")
@click.option("--timeout", type=DURATION, metavar="1h", help="End it after this time.")
@click.option(
    "--env", multiple=True, metavar="K[=V]", help="A variable; K alone takes yours (repeat)."
)
@click.option("--cwd", metavar="DIR", help="Where it runs; else here.")
@click.option("--shell", metavar="STRING", help="A line for /bin/sh instead of CMD.")
@click.option("--no-check", is_flag=True, help="Do not look for the program and directory.")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[--] CMD ...")
@click.pass_obj
def direct(scope: Scope, /, **options: Any) -> int:
    """Run a command in the next free slot, before the queue.

    It is no job: it runs here, with your terminal, and ends with this process. Exits with its code;
    128+N for a signal, 124 if no slot came within --wait or it outlived --timeout.
    """
    if not options["argv"] and options["shell"] is None:
        raise click.UsageError("What is to run? Give a command after --, or --shell STRING.")
    request = Request(
        argv=tuple(options["argv"]),
        shell=options["shell"],
        env=parse_env(options["env"]),
        cwd=options["cwd"],
        timeout=options["timeout"],
        check=not options["no_check"],
    )
    spec = specify(request, environ=os.environ, working_directory=os.getcwd(), no_check=NO_CHECK)
    client = scope.connect_or_create()
    with signals() as caught_signals:
        call = _Call(client, caught_signals, spec.params)
        wait = options["wait"]
        with reserve(
            client.context,
            note=options["note"] or default_name(request)[:LONGEST_NOTE],
            type=options["type_"],
            resources=options["resource"],
            target=options["target"],
            timeout=None if wait is None else wait / SECOND,
            while_waiting=call.waiting,
            renewed=call.renewed,
        ) as held:
            return call.run(held)


class Signals:
    """The signals that came since it was last asked, without interrupting anything."""

    def __init__(self) -> None:
        self.expected = {
            each for each in CAUGHT_SIGNALS if signal.getsignal(each) != signal.SIG_IGN
        }

    def raise_any(self) -> None:
        """A signal before there is a command is for us."""
        for each in self._signals():
            raise SystemExit(128 + each.si_signo)

    def to_pass_on(self) -> list[int]:
        """Those that the command has not got, too."""
        return [each.si_signo for each in self._signals() if each.si_code != OF_TERMINAL]

    def _signals(self) -> Iterator[signal.struct_siginfo]:
        while (caught := signal.sigtimedwait(self.expected, 0)) is not None:
            yield caught


@contextmanager
def signals() -> Iterator[Signals]:
    """Keep signals until they are asked for: also from threads, which are started after this."""
    caught_signals = Signals()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, caught_signals.expected)
    try:
        yield caught_signals
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Call:
    """The messages to the user, and the signals, while a direct call waits and runs."""

    def __init__(self, client: Client, caught_signals: Signals, params: Any) -> None:
        self._client = client
        self._signals = caught_signals
        self._params = params
        self._overseen: Overseen | None = None
        self._said = ""

    def waiting(self, name: str, why: str) -> None:
        self._signals.raise_any()
        if why != self._said:
            self._said = why
            say(f"{name} waits: {why}")

    def renewed(self, held: HeldSlot) -> None:
        """From the thread that renews: the command lives on, or is ended with its slot."""
        overseen = self._overseen
        if overseen is not None:
            if held.lost:
                overseen.end()
            else:
                overseen.renewed()

    def run(self, held: HeldSlot) -> int:
        with self._client.context.store.read() as tx:
            silence = expiry_in(tx) / SECOND
        params = self._params
        shell = params.get("shell")
        outside = Outside(held.token, lambda request: start_worker(request, os.environ))
        overseen = Overseen(
            {
                "token": held.token,
                "argv": params["argv"] if shell is None else ["/bin/sh", "-c", shell],
                "cwd": params.get("cwd") or os.getcwd(),
                "env": {**os.environ, **params.get("env", {}), VARIABLE: held.token},
                "timeout": params.get("timeout_seconds"),
                "silence": silence,
                "cgroup": self._client.context.config["processes.cgroup"],
            }
        )
        self._overseen = overseen
        try:
            document = self._until_ended(overseen, outside)
        finally:
            outside.close()
            overseen.close()
        if document["error"] and not held.lost:
            say(document["error"])
        return int(document["code"])

    def _until_ended(self, overseen: Overseen, outside: Outside) -> dict[str, Any]:
        while True:
            for number in self._signals.to_pass_on():
                overseen.signal(number)
            lines = [overseen.fileno(), outside.fileno()]
            readable = select.select(lines, [], [], LOOK_SECONDS)[0]
            if outside.fileno() in readable:
                outside.answer()
            if overseen.fileno() in readable:
                document = overseen.ended()
                if document is not None:
                    return document
