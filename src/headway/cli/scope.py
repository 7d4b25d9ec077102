"""What the options before the command say: which home, which store, who asks."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from headway.client import Client


class Scope:
    """Kept in the click context; opens the client that a command works with."""

    def __init__(self, home: str | None, store: str | None, actor: str | None) -> None:
        self.home = home
        self.store = store
        self.actor = actor

    def connect(self, *, create: bool = False) -> "Client":
        from headway.client import connect

        return connect(home=self.home, store_url=self.store, actor=self.actor, create=create)

    def connect_as_person(self) -> "Client":
        """For what people decide: they are known by their git identity, unless they say who."""
        import os

        from headway.client import connect
        from headway.person import who_decides

        actor = self.actor or who_decides(os.environ, os.getcwd())
        return connect(home=self.home, store_url=self.store, actor=actor)
