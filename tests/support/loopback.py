"""A home with its server in this process: a thread listens on loopback, a token may do all.

No worker is there and none is started, so nothing that a test submits ever runs.
"""

import threading

from headway.base.home import Home
from headway.client import Client, connect
from headway.web.server import Listen, Server

PATIENCE = 10.0


class ServedHome:
    def __init__(self, home: Home) -> None:
        self._home = home
        self.client = self._open()
        self.token = self.client.tokens.add("tests", role="admin")
        self._server = Server(self.client, self._open, Listen(("127.0.0.1",), 0))
        ready = threading.Event()
        self._thread = threading.Thread(target=self._server.run, args=(lambda server: ready.set(),))
        self._thread.start()
        assert ready.wait(PATIENCE), "the server did not come up"
        assert self._server.place is not None
        self.url = f"http://127.0.0.1:{self._server.place.port}"
        self.headers = {"Authorization": f"Bearer {self.token}"}

    def _open(self) -> Client:
        client = connect(home=self._home.path, store_url=self._home.store_url)
        client.context.config = client.config.changed({"worker.autostart": False})
        return client

    def close(self) -> None:
        self._server.stop()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        self.client.close()
