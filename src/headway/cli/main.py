"""The entry point: global options, and the one place where errors become exit codes.

Data goes to stdout, messages to stderr. This module imports nothing that `submit` does not need.
"""

import os
import sys
from typing import Any

import click

from headway.base.errors import HeadwayError, InvalidInputError
from headway.cli.commands import SHORT_OF_JOBS, LazyGroup, refuse_dashes_as_values
from headway.cli.scope import Scope

INTERRUPTED = 130
BROKEN_PIPE = 141


class ReaderGone(Exception):  # noqa: N818
    """A BrokenPipeError under a name that click does not turn into exit code 1."""


class Commands(LazyGroup):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGone from error


@click.command(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"Short for `jobs`: {' '.join(SHORT_OF_JOBS)}; also logs.",
)
@click.option("--home", metavar="DIR", help="The .headway folder to use (or HEADWAY_HOME).")
@click.option("--store", metavar="URL", help="The store to use (or HEADWAY_STORE).")
@click.option("--as", "actor", metavar="ACTOR", help="Who asks, for the record.")
@click.option("--version", is_flag=True, help="Print the version.")
@click.pass_context
def cli(
    ctx: click.Context, home: str | None, store: str | None, actor: str | None, version: bool
) -> None:
    """Run commands when they may run, once. `headway help COMMAND` tells more."""
    for option, value in (("--home", home), ("--store", store), ("--as", actor)):
        if value is not None and not value.strip():
            raise InvalidInputError(f"{option} is empty; leave it out, or give a value")
    ctx.obj = Scope(home, store, actor)
    if version:
        from headway import __version__

        print(f"headway {__version__}")
        ctx.exit(0)
    if ctx.invoked_subcommand is None:
        from headway.cli.overview import overview

        overview(ctx.obj)


refuse_dashes_as_values(cli)


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(argv: list[str]) -> int:
    """Run one command line and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = cli.main(argv, prog_name="headway", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except HeadwayError as error:
        if os.environ.get("HEADWAY_DEBUG"):
            raise
        return _complain(str(error), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return 2
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except (ReaderGone, BrokenPipeError):
        # The interpreter must not find out again, when it flushes, that nobody reads.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return BROKEN_PIPE
    except Exception as error:
        if os.environ.get("HEADWAY_DEBUG"):
            raise
        if isinstance(error, FileNotFoundError) and _folder_is_gone():
            return _complain("the folder that you are in was removed; cd to one that is there", 3)
        what = f"{type(error).__name__}: {error}"
        return _complain(f"unexpected {what}; HEADWAY_DEBUG=1 shows where it comes from", 1)


def _folder_is_gone() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _complain(message: str, code: int) -> int:
    from headway.base.text import plain

    sys.stderr.write(f"headway: {plain(message)}\n")
    return code
