"""`headway restore`: go back to a backup, and say what that means for the jobs."""

import os

import click

from headway.cli.render import counted, emit, say
from headway.cli.scope import Scope


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--force", is_flag=True, help="Replace a store that holds jobs; it is kept aside.")
@click.option("--json", "as_json", is_flag=True, help="Print one document.")
@click.pass_obj
def restore(scope: Scope, file: str, force: bool, as_json: bool) -> None:
    """Put the backup FILE in the place of the store.

    FILE is one that `headway backup` wrote, of a store on SQLite or PostgreSQL. No worker may be
    there. What jobs did since the backup is taken from their folders; jobs submitted since then are
    lost. Refused, with nothing changed, if FILE is damaged or the store holds jobs.
    """
    from headway.admin.restore import Restorer
    from headway.base.clock import SystemClock
    from headway.base.home import Home, find_home, refuse_no_home, refuse_unsafe
    from headway.base.store_trust import refuse_untrusted_store
    from headway.core.model import shown
    from headway.jobs.context import login
    from headway.jobs.settings import choose_store

    found, exists = find_home(scope.home, os.environ, os.getcwd())
    if exists:
        refuse_unsafe(found.path)
        if os.listdir(found.path):
            refuse_no_home(found.path)
    config = scope.config_of(found)
    named = choose_store(config, scope.store, os.environ)
    home = Home(found.path, named)
    if exists:
        refuse_untrusted_store(home, os.environ)
    restored = Restorer(
        home,
        named or f"sqlite://{home.database}",
        SystemClock(),
        actor=scope.actor or os.environ.get("HEADWAY_ACTOR") or login(os.environ),
        force=force,
        unsafe_fs=config["store.unsafe_fs"],
    ).restore(os.path.abspath(file))
    if as_json:
        emit(
            {
                "file": os.path.abspath(file),
                "jobs": restored.jobs,
                "active": restored.active,
                "taken_up": [shown(each) for each in restored.taken_up],
                "lost": restored.lost,
                "unknown": [shown(each) for each in restored.unknown],
                "unwatched": [shown(each) for each in restored.unwatched],
                "without_environment": [shown(each) for each in restored.bare],
                "next_id": shown(restored.next_id),
                "replaced": restored.replaced._asdict() if restored.replaced else None,
                "kept": restored.kept,
            }
        )
        return
    say(f"restored {counted(restored.jobs, 'job')}, {restored.active} of them active")
    if restored.taken_up:
        names = ", ".join(shown(each) for each in restored.taken_up)
        say(f"started since the backup, so the next worker looks how they ended: {names}")
    if restored.lost:
        say(
            f"{counted(restored.lost, 'job')} submitted since the backup: lost to the store; "
            f"{counted(len(restored.unknown), 'folder')} of theirs "
            f"{'stays' if len(restored.unknown) == 1 else 'stay'} in {home.jobs}"
        )
    if restored.unwatched:
        names = ", ".join(shown(each) for each in restored.unwatched)
        say(f"of these still running, and nobody watches them any more: {names}")
    if restored.bare:
        names = ", ".join(shown(each) for each in restored.bare)
        say(f"environments of waiting jobs belong into env/ and are not there: {names}")
    if restored.kept:
        say(f"what was there before is kept in {restored.kept}")
    say("no worker was started; next: headway jobs list, then headway work")
