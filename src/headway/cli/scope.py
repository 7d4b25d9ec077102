"""What the options before the command say: which home, which store, who asks."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from headway.base.home import Home
    from headway.client import Client
    from headway.jobs.settings import Config

NO_CHECK = "--no-check"


class Scope:
    """Kept in the click context; opens the client that a command works with."""

    def __init__(self, home: str | None, store: str | None, actor: str | None) -> None:
        self.home = home
        self.store = store
        self.actor = actor
        self._reported = False

    def be_quiet(self) -> None:
        """Report nothing beside what was asked for."""
        self._reported = True

    def connect(self) -> "Client":
        """For commands that only read: nothing is made."""
        return self._connect(reading=True)

    def connect_to_store(self) -> "Client":
        """The same for commands that copy a store, so one must be there."""
        import os

        from headway.base.errors import NotFoundError

        client = self.connect()
        if client.home.store_url is None and not os.path.exists(client.home.database):
            client.close()
            raise NotFoundError(f"{client.home.path} has no store yet; the first submit makes one")
        return client

    def connect_to_change(self) -> "Client":
        """For commands that change what is there: a home is completed, but none is made."""
        return self._connect()

    def connect_or_create(self) -> "Client":
        """For commands that need a home: one is made where none is, and that is said."""
        client = self.create()
        if client.context.made_home:
            from headway.cli.render import say

            say(f"made {client.home.path}")
        return client

    def create(self) -> "Client":
        """The same for the command that is there to make a home, and says so itself."""
        return self._connect(create=True)

    def connect_as_person(self) -> "Client":
        """For what people decide: they are known by their git identity, unless they say who."""
        import os

        from headway.jobs.actor import who_decides

        return self._connect(actor=self.actor or who_decides(os.environ, os.getcwd()))

    def connect_or_nothing(self) -> "Client":
        """For commands that only read, and show nothing where no home is. A named one must be."""
        import os

        from headway.base.home import find_home, is_home
        from headway.client import without_home

        home, exists = find_home(self.home, os.environ, os.getcwd())
        named = self.home or os.environ.get("HEADWAY_HOME")
        if named or (exists and (is_home(home.path) or os.listdir(home.path))):
            return self.connect()
        return without_home(home.path, self.actor)

    def config_to_be(self) -> "Config":
        """Of the home that a command would use, also if it would have to be made."""
        import os

        from headway.base.home import find_home

        home, _ = find_home(self.home, os.environ, os.getcwd())
        return self.config_of(home)

    def config_of(self, home: "Home") -> "Config":
        """What counts of its `config.toml`; what does not is named."""
        from headway.jobs.settings import load_config

        config = load_config(home)
        self._report_untrusted(home, config)
        return config

    def _connect(
        self, *, create: bool = False, reading: bool = False, actor: str | None = None
    ) -> "Client":
        from headway.client import connect

        client = connect(
            home=self.home,
            store_url=self.store,
            actor=actor or self.actor,
            create=create,
            reading=reading,
        )
        client.context.no_check = NO_CHECK
        self._report_untrusted(client.home, client.config)
        if create:
            self.say_if_outer(client.home)
        return client

    def say_if_outer(self, home: "Home") -> None:
        """What is made lands in a home outside of the repository that one is in: say so, unless
        that home was named."""
        import os

        from headway.base.home import inner_repository

        if self.home or os.environ.get("HEADWAY_HOME"):
            return
        repository = inner_repository(home.path, os.getcwd())
        if repository is not None:
            from headway.cli.render import say

            say(
                f"{repository} has no .headway/ of its own, so {home.path} is used; "
                f"`headway --home {repository}/.headway init` makes one"
            )

    def _report_untrusted(self, home: "Home", config: "Config") -> None:
        """Once for each command."""
        if not config.untrusted or self._reported:
            return
        from headway.base.trust import NEXT_STEP
        from headway.cli.render import say

        self._reported = True
        say(f"{home.path} is not trusted, so {reported_untrusted(config)}; {NEXT_STEP}")


MOST_NAMED = 8


def reported_untrusted(config: "Config") -> str:
    """Names what does not count, as a part of a sentence."""
    names = list(config.untrusted)
    if len(names) > MOST_NAMED:
        names[MOST_NAMED:] = [f"{len(names) - MOST_NAMED} more"]
    listed = ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else names[0]
    return f"{listed} {'do' if len(names) > 1 else 'does'} not count"
