"""What the options before the command say: which home, which store, who asks."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from headway.client import Client
    from headway.config import Config
    from headway.home import Home


class Scope:
    """Kept in the click context; opens the client that a command works with."""

    def __init__(self, home: str | None, store: str | None, actor: str | None) -> None:
        self.home = home
        self.store = store
        self.actor = actor
        self._told = False

    def connect(self) -> "Client":
        """For who only looks: nothing is made."""
        return self._connect(reading=True)

    def connect_to_store(self) -> "Client":
        """The same for who needs a store that is there, to copy it."""
        import os

        from headway.errors import NotFoundError

        client = self.connect()
        if client.home.store_url is None and not os.path.exists(client.home.database):
            client.close()
            raise NotFoundError(f"{client.home.path} has no store yet; the first submit makes one")
        return client

    def connect_to_change(self) -> "Client":
        """For who changes what is there; a home is completed, but none is made."""
        return self._connect()

    def connect_or_create(self) -> "Client":
        """For who needs a home, so that one is made where none is."""
        return self._connect(create=True)

    def connect_as_person(self) -> "Client":
        """For what people decide: they are known by their git identity, unless they say who."""
        import os

        from headway.person import who_decides

        return self._connect(actor=self.actor or who_decides(os.environ, os.getcwd()))

    def connect_or_nothing(self) -> "Client":
        """For who only looks, and sees nothing where no home is; one that was named must be."""
        import os

        from headway.client import without_home
        from headway.home import find_home, is_home

        home, exists = find_home(self.home, os.environ, os.getcwd())
        named = self.home or os.environ.get("HEADWAY_HOME")
        if named or (exists and (is_home(home.path) or os.listdir(home.path))):
            return self.connect()
        return without_home(home.path, self.actor)

    def config_of(self, home: "Home") -> "Config":
        """What counts of its `config.toml`; what does not is named."""
        from headway.config import load_config

        config = load_config(home)
        self._tell_untrusted(home, config)
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
        self._tell_untrusted(client.home, client.config)
        return client

    def _tell_untrusted(self, home: "Home", config: "Config") -> None:
        """Once for each command."""
        if not config.untrusted or self._told:
            return
        from headway.cli.render import say
        from headway.trust import NEXT_STEP

        self._told = True
        say(f"{home.path} is not trusted, so {told_untrusted(config)}; {NEXT_STEP}")


MOST_NAMED = 8


def told_untrusted(config: "Config") -> str:
    """Names what does not count, as a part of a sentence."""
    names = list(config.untrusted)
    if len(names) > MOST_NAMED:
        names[MOST_NAMED:] = [f"{len(names) - MOST_NAMED} more"]
    listed = ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else names[0]
    return f"{listed} {'do' if len(names) > 1 else 'does'} not count"
