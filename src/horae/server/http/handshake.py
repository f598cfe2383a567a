"""TLS handshakes. A client counts from the moment it connects: one that never ends its handshake holds a place, too.

Connections are accepted here, not by the event loop's server, which tells of a client only after its handshake. And TLS
is there before anything is read: uvloop reads a connection once it is made, even if reading was paused before.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable

from horae.env import Clock
from horae.server.http.crowd import Crowd
from horae.server.http.http import Connection

PATIENCE = 10.0  # seconds
FAREWELL = 5.0  # seconds for a client to end TLS, too; what it still sends is read and dropped until then
PAUSE = 1.0  # seconds without accepting after an error, such as too many open files


class Handshakes:
    """Accepts connections, and begins TLS on those that there is room for."""

    def __init__(
        self, context: ssl.SSLContext, crowd: Crowd, clock: Clock, make: Callable[[], Connection], backlog: int
    ) -> None:
        self._context, self._crowd, self._clock, self._make, self._backlog = context, crowd, clock, make, backlog
        self._under_way: dict[Connection, tuple[str, asyncio.Task[None]]] = {}
        self._accepting: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._under_way)

    def start(self, listener: socket.socket) -> None:
        """Accept from now on."""
        listener.setblocking(False)
        listener.listen(self._backlog)
        self._accepting = asyncio.get_running_loop().create_task(self._accept(listener), name="horae-tls")

    def stop(self) -> None:
        """Accept nobody, and end the handshakes that are under way."""
        if self._accepting is not None:
            self._accepting.cancel()
        for _, task in self._under_way.values():
            task.cancel()

    def end(self, connection: Connection) -> None:
        """Give a connection's place back: its handshake is over."""
        if connection in self._under_way:
            self._crowd.leave(self._under_way.pop(connection)[0])

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listener:
            while True:
                try:
                    client, peer = await loop.sock_accept(listener)
                except OSError:
                    await self._clock.sleep(PAUSE)
                    continue
                if not self._crowd.enter(peer[0]):
                    client.close()
                    continue
                connection = self._make()
                self._under_way[connection] = peer[0], loop.create_task(self._begin(connection, client))

    async def _begin(self, connection: Connection, client: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, client, ssl=self._context, ssl_handshake_timeout=PATIENCE,
                ssl_shutdown_timeout=FAREWELL,
            )  # fmt: skip
        except OSError:  # what TLS refuses is one of these, as is a client that goes or is silent
            pass
        finally:
            self.end(connection)
