"""Every command in one literal: where it lives and its line in the help.

Nothing is imported to show the help or to find a command; the module of a command is loaded when it
is invoked or its own help is asked for. A name with a space is a command inside a group. The path
of a command is its module: `jobs retry` is `cli/jobs/retry.py`; those of a small group share one.
`list`, `show` and others are the verbs of `jobs` under the short name that people try first.
"""

from typing import Any

import click

# name: (module:attribute, one line of help). A group has no place of its own.
COMMANDS: dict[str, tuple[str, str]] = {
    "submit": ("submit:submit", "Queue a command and print its id."),
    "exec": ("exec:exec_command", "Submit, stream the output, exit with the job's code."),
    "direct": ("direct:direct", "Run a command in the next free slot, before the queue."),
    "status": ("status:status", "How things stand; of a job, its state."),
    "top": ("top:top", "The whole home on one screen, live, with keys that act."),
    "list": ("jobs.list:list_jobs", "The same as jobs list."),
    "show": ("jobs.show:show", "The same as jobs show."),
    "logs": ("logs:logs", "Print all that a job wrote, or follow it."),
    "tail": ("jobs.tail:tail", "The same as jobs tail."),
    "wait": ("jobs.wait:wait", "The same as jobs wait."),
    "why": ("jobs.why:why", "Say why a job does not run; the same as jobs why."),
    "approve": ("jobs.approve:approve", "The same as jobs approve."),
    "cancel": ("jobs.cancel:cancel", "The same as jobs cancel."),
    "retry": ("jobs.retry:retry", "The same as jobs retry."),
    "jobs": ("", "Look at jobs and steer them."),
    "jobs list": ("jobs.list:list_jobs", "List the active jobs and the last day's."),
    "jobs show": ("jobs.show:show", "Show all about one job: its chain and its events."),
    "jobs status": ("jobs.status:status", "Print the state of a job."),
    "jobs wait": ("jobs.wait:wait", "Wait until jobs end; exit with their code."),
    "jobs why": ("jobs.why:why", "Say why a job does not run, and what would let it."),
    "jobs schedule": ("jobs.schedule:schedule", "Show what is to run and what each job waits for."),
    "jobs tail": ("jobs.tail:tail", "Show the end of a job's output, or follow it."),
    "jobs retry": ("jobs.retry:retry", "Run a failed job again, and all that follows from it."),
    "jobs cancel": ("jobs.cancel:cancel", "Cancel jobs and wait until they have ended."),
    "jobs edit": ("jobs.edit:edit", "Change a job that still waits."),
    "jobs move": ("jobs.move:move", "Let a waiting job stand elsewhere in the queue."),
    "jobs reorder": ("jobs.reorder:reorder", "Let waiting jobs take the order given."),
    "jobs gc": ("jobs.gc:gc", "Remove ended jobs that nobody needs, with their files."),
    "jobs clean": ("jobs.clean:clean", "Remove one ended job, with its files."),
    "jobs approve": ("jobs.approve:approve", "Let jobs run that ask for approval."),
    "jobs reject": ("jobs.reject:reject", "End a job that asks for approval."),
    "jobs approvals": (
        "jobs.approvals:approvals",
        "What waits for a person, and what it would run.",
    ),
    "jobs repin": ("jobs.repin:repin", "Move a waiting job's pin to the present commit."),
    "runs": ("", "Look at the executions of jobs, and repeat them."),
    "runs show": ("runs:show", "Show one execution of a job."),
    "runs retry": ("runs:retry", "Run a job again, however often it was tried."),
    "artifacts": ("", "Look at artifacts; publish one from inside a job."),
    "artifacts publish": ("artifacts:publish", "Say, inside a job, that an artifact is there."),
    "artifacts list": ("artifacts:list_artifacts", "What jobs have published, make or need."),
    "artifacts show": ("artifacts:show", "Show one artifact: payload, producers, consumers."),
    "groups": ("", "Jobs that succeed or fail together: make groups and look at them."),
    "groups create": ("groups:create", "Make a group, empty or of jobs, and print its id."),
    "groups list": ("groups:list_groups", "List the groups that run and the last day's."),
    "groups show": ("groups:show", "Show how far a group is, and its members."),
    "groups wait": ("groups:wait", "Wait until all members end; exit with their code."),
    "groups close": ("groups:close", "Let nobody join a group any more."),
    "groups cancel": ("groups:cancel", "Cancel what has not ended of a group, and close it."),
    "locks": ("locks:locks", "Who holds which lock, and who waits for it."),
    "run": ("run:run", "Start a workflow and print the id of its run."),
    "sling": ("sling:sling_command", "Make jobs of work items, groups or trees of them."),
    "targets": ("", "Where slung work goes, and what it becomes there."),
    "targets add": ("targets:add", "Make a target: a name with a recipe for its subjects."),
    "targets list": ("targets:list_targets", "List the targets."),
    "targets show": ("targets:show", "Show all about one target."),
    "targets remove": ("targets:remove", "Remove a target; what was slung to it stays."),
    "scheduler": ("", "Look at the scheduler and steer it."),
    "scheduler status": (
        "scheduler.status:status",
        "Mode, cap, slots, and why nothing starts now.",
    ),
    "scheduler list": (
        "scheduler.list:list_scheduled",
        "What is slung, by target, and what blocks it.",
    ),
    "scheduler clear": (
        "scheduler.clear:clear",
        "Cancel what is slung and waits; what runs is left.",
    ),
    "scheduler run": ("scheduler.run:run", "Do one planning step now."),
    "scheduler pause": ("scheduler.pause:pause", "Start nothing more; what runs goes on."),
    "scheduler resume": ("scheduler.resume:resume", "End the pause."),
    "scheduler reset": ("scheduler.reset:reset", "Forget launch failures and try again at once."),
    "templates": ("", "Stored jobs with defaults."),
    "templates add": ("templates:add", "Store a job with its options under a name."),
    "templates list": ("templates:list_templates", "List the templates that make jobs."),
    "templates show": ("templates:show", "Show one template: command, parameters, options."),
    "templates archive": ("templates:archive", "Let a template make no more jobs."),
    "schedules": ("", "What makes jobs at certain times, and when."),
    "schedules add": ("schedules.add:add", "Make jobs at certain times, and print an id."),
    "schedules list": ("schedules.list:list_schedules", "List the schedules, and what was missed."),
    "schedules show": ("schedules.show:show", "Show all about one schedule, and its last slots."),
    "schedules enable": ("schedules.enable:enable", "Let a schedule fire from now on."),
    "schedules disable": ("schedules.disable:disable", "Let a schedule fire no more."),
    "schedules trigger": ("schedules.trigger:trigger", "Make one of a schedule's jobs now."),
    "schedules remove": ("schedules.remove:remove", "Remove a schedule; jobs that it made stay."),
    "schedules explain": ("schedules.explain:explain", "Say a rule in words, and when it fires."),
    "jobsfile": ("", "The file of periodic jobs."),
    "jobsfile check": ("jobsfile:check", "Say all that is wrong with a jobs file."),
    "jobsfile list": ("jobsfile:list_entries", "List its entries: last run, next, what waits."),
    "jobsfile schema": ("jobsfile:schema", "Print the JSON Schema of a jobs file, for editors."),
    "workflows": ("", "Files of steps: check and draw them, look at their runs."),
    "workflows list": ("workflows:list_workflows", "List the workflows of the home."),
    "workflows check": ("workflows:check", "Say all that is wrong with workflow files."),
    "workflows show": ("workflows:show", "Show what a workflow takes and what its nodes do."),
    "workflows graph": ("workflows:graph", "Draw a workflow, as text or as a picture."),
    "workflows audit": (
        "workflows:audit",
        "Artifacts, unmet needs, loops, locks and roots.",
    ),
    "workflows runs": ("workflow_runs:runs", "List the runs, and how far each is."),
    "workflows wait": ("workflow_runs:wait", "Wait until a run ends; exit with its code."),
    "workflows stop": ("workflow_runs:stop", "Cancel a run, all but its `finally`."),
    "workflows retry": ("workflow_runs:retry", "Run what failed of a run again."),
    "workflows schema": ("workflows:schema", "Print the JSON Schema of a file, for editors."),
    "workflows init": ("workflows:init", "Write a workflow file to begin with."),
    "webhooks": ("", "URLs that are told what happens, and what was sent to them."),
    "webhooks add": ("webhooks:add", "Tell a URL what happens; print the secret that signs."),
    "webhooks list": ("webhooks:list_endpoints", "List the endpoints and their deliveries."),
    "webhooks show": ("webhooks:show", "Show all about one endpoint."),
    "webhooks test": ("webhooks:test", "Send one request now, and say what came of it."),
    "webhooks pause": ("webhooks:pause", "Send nothing to an endpoint for now."),
    "webhooks resume": ("webhooks:resume", "Send to an endpoint again."),
    "webhooks rotate": ("webhooks:rotate", "Give an endpoint a new secret, and print it."),
    "webhooks remove": ("webhooks:remove", "Remove an endpoint, with its deliveries."),
    "webhooks secret": ("webhooks:secret", "Print the secret of an endpoint."),
    "webhooks import": ("webhooks:import_secret", "Bring a secret from another home."),
    "webhooks deliveries": ("webhooks:deliveries", "List what was sent, and what came of it."),
    "webhooks replay": ("webhooks:replay", "Send deliveries again that failed."),
    "runners": ("", "The agent programs that jobs can use."),
    "runners list": (
        "runners:list_runners",
        "List the runners, and which programs are here.",
    ),
    "runners show": ("runners:show", "Show one runner: its file, its program, its command."),
    "runners resume": ("runners:resume", "Let jobs of a parked runner start again."),
    "config": ("", "Read and change settings."),
    "config get": ("config:get", "Print the value of a setting."),
    "config set": ("config:set_value", "Change a setting."),
    "config unset": ("config:unset", "Let a setting have its default again."),
    "config list": ("config:list_settings", "List every setting, its value and meaning."),
    "work": ("work:work", "Be the worker, in the foreground."),
    "serve": ("serve:serve", "Serve this home over HTTP."),
    "mcp": ("mcp:mcp", "Give agents this home as MCP tools."),
    "stop": ("stop:stop", "End the background worker; running jobs go on."),
    "web": ("", "The server of this home, for browsers."),
    "web login": ("web:login", "Print a link that signs a browser in."),
    "tokens": ("", "Who may speak to the server of this home."),
    "tokens add": ("tokens:add", "Make a token and print it, once."),
    "tokens list": ("tokens:list_tokens", "List the tokens and the sessions of browsers."),
    "tokens revoke": ("tokens:revoke", "Let a token or a session count no more."),
    "service": ("", "Have the system keep a worker for this home, from boot on."),
    "service install": ("service:install", "Put the worker's unit or crontab line in place."),
    "service status": ("service:status", "Whether the system keeps a worker, and how it is."),
    "service remove": ("service:remove", "Take the unit or line away; what runs goes on."),
    "init": ("init:init", "Make the .headway/ folder and the store."),
    "trust": ("trust:trust", "Let what a .headway/ of a checkout names count, once seen."),
    "doctor": ("doctor:doctor", "Check the host, the folder and the store."),
    "backup": ("backup:backup", "Write a consistent copy of the store, also while it is used."),
    "restore": ("restore:restore", "Put a backup in the place of the store."),
    "completion": ("completion:completion", "Print the completion script of a shell."),
    "help": ("help:help_command", "Print the help of a command."),
}

# The help of the program: each command under what one wants.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Run": (
        *("submit", "exec", "direct", "sling", "groups", "templates", "schedules", "jobsfile"),
        *("run", "workflows", "targets"),
    ),
    "Look and steer": (
        *("status", "top", "jobs", "runs", "artifacts", "locks", "scheduler", "work", "serve"),
        *("mcp", "stop"),
    ),
    "Set up": (
        *("init", "config", "service", "web", "tokens", "webhooks", "runners", "trust"),
        *("doctor", "backup", "restore", "completion"),
    ),
}
SHORT = ("list", "show", "logs", "tail", "wait", "why", "approve", "cancel", "retry")
SHORT_OF_JOBS = tuple(name for name in SHORT if f"jobs {name}" in COMMANDS)
# What other programs call it: the words that people try, and the commands that they mean.
NEIGHBOURS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("add", "enqueue", "push", "queue", "new"), ("submit",)),
    "start": ("exec", "submit", "run"),
    **dict.fromkeys(("kill", "abort", "terminate"), ("cancel",)),
    **dict.fromkeys(
        ("rm", "remove", "delete", "del"),
        ("cancel", "jobs clean", "schedules remove", "templates archive"),
    ),
    **dict.fromkeys(("ls", "ps"), ("list", "status")),
    "history": ("list",),
    **dict.fromkeys(("log", "output", "cat"), ("logs",)),
    **dict.fromkeys(("follow", "attach"), ("tail",)),
    **dict.fromkeys(("info", "describe", "inspect", "get"), ("show",)),
    **dict.fromkeys(("rerun", "redo", "restart", "requeue"), ("retry",)),
    **dict.fromkeys(("prune", "purge", "cleanup"), ("jobs gc",)),
    **dict.fromkeys(("htop", "monitor"), ("top",)),
    "daemon": ("work",),
    **dict.fromkeys(("http", "server", "api", "dashboard", "ui"), ("serve",)),
    **dict.fromkeys(("settings", "set"), ("config list", "config set")),
    "cron": ("schedules add",),
    "version": ("--version",),
}
MOST_MEANT = 3
ALIKE = 0.7  # `restore` is not what is meant by `retry`


def refuse_dashes_as_values(command: click.Command) -> None:
    """The dashes before a command are never the value of an option. click takes them for one where
    a value was forgotten, and the command would run with a lock, a name or a slug `--`."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.callback is None:
            parameter.callback = _not_the_dashes


def _not_the_dashes(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    if value == "--" or (isinstance(value, tuple) and "--" in value):
        raise click.BadOptionUsage(
            parameter.opts[0], f"Option '{parameter.opts[0]}' needs a value before the --.", ctx
        )
    return value


# What Headway itself starts: it is in no list, no help and no completion.
HIDDEN: dict[str, tuple[str, str]] = {
    "__workflow-node": ("workflow_node:workflow_node", ""),
}


class LazyGroup(click.Group):
    """A group whose commands are those of COMMANDS that begin with its path."""

    def __init__(self, path: str = "", **attrs: Any) -> None:
        super().__init__(**attrs)
        self._prefix = f"{path} " if path else ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        inside = (name for name in COMMANDS if name.startswith(self._prefix))
        names = (name.removeprefix(self._prefix) for name in inside)
        return [name for name in names if " " not in name]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        path = self._prefix + cmd_name
        if (path not in COMMANDS and path not in HIDDEN) or " " in cmd_name:
            return None
        place, about = COMMANDS.get(path) or HIDDEN[path]
        if not place:
            return LazyGroup(path, name=cmd_name, help=about, no_args_is_help=True)
        from importlib import import_module

        module, _, attribute = place.partition(":")
        command: click.Command = getattr(import_module(f"headway.cli.{module}"), attribute)
        refuse_dashes_as_values(command)
        if ctx.resilient_parsing:  # a shell asks what could stand here
            from headway.cli.candidates import offer_candidates

            offer_candidates(path, command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = self._meant(args[0], self.list_commands(ctx))
            if not close:
                raise
            meant = f"{error.message} (Did you mean {' or '.join(close)}?)"
            raise click.UsageError(meant, ctx) from None

    def _meant(self, word: str, inside: list[str]) -> list[str]:
        """What was meant by a word that is no command here: what a neighbour calls so, here before
        elsewhere, and the same word elsewhere; else one like it here, else one like it elsewhere.
        """
        from difflib import get_close_matches

        elsewhere: dict[str, list[str]] = {}
        for path in COMMANDS:
            elsewhere.setdefault(path.rpartition(" ")[2], []).append(path)
        theirs = NEIGHBOURS.get(word, ())
        here = [last for path in theirs if (last := path.rpartition(" ")[2]) in inside]
        if here and self._prefix:
            return here
        if theirs:
            return _whole([*theirs, *elsewhere.get(word, ())])
        if word in elsewhere:
            return _said(elsewhere[word])
        close = get_close_matches(word, inside, MOST_MEANT, ALIKE)
        if close:
            return close
        close = get_close_matches(word, elsewhere, MOST_MEANT, ALIKE)
        return _said([path for each in close for path in elsewhere[each]])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections = {"Commands": tuple(self.list_commands(ctx))} if self._prefix else SECTIONS
        for title, names in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[self._prefix + name][1]) for name in names])


def _said(paths: list[str]) -> list[str]:
    """Whole commands. A short name stands for what it is short for."""
    short = [path for path in paths if " " not in path]
    return _whole(short or paths)


def _whole(paths: list[str]) -> list[str]:
    return [f"headway {path}" for path in dict.fromkeys(paths)][:MOST_MEANT]
