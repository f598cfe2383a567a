"""The listener: accepts connections, looks after idle ones, and ends in good order."""

import asyncio
import socket
from email.utils import formatdate

from horae.env import SECOND, Env
from horae.server.http import Answer, Connection

BACKLOG = 4096
KEEP_ALIVE = 75.0  # seconds without a request; workers keep their connections between exchanges
PATIENCE = 30.0  # seconds for the next piece of a request that has begun
TICK = 1.0


class Listener:
    """Connections of one socket, on the event loop that made it."""

    def __init__(self, env: Env, answer: Answer) -> None:
        self.answer = answer
        self.stopping = False
        self.date, self.now = b"", 0.0
        self._env = env
        self._connections: set[Connection] = set()
        self._empty = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._looking: asyncio.Task[None] | None = None

    async def start(self, listener: socket.socket) -> None:
        """Accept from now on."""
        loop = asyncio.get_running_loop()
        self._look()
        self._looking = loop.create_task(self._keep_looking(), name="horae-http")
        self._server = await loop.create_server(lambda: Connection(self), sock=listener, backlog=BACKLOG)

    async def stop(self, grace: float) -> None:
        """Accept nobody, answer what is under way, and end all connections within so many seconds."""
        self.stopping = True
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            if connection.idle:
                connection.close()
        try:
            if self._connections:
                self._empty.clear()
                await asyncio.wait_for(self._empty.wait(), grace)
        except TimeoutError:
            for connection in list(self._connections):
                connection.abort()
        if self._looking is not None:
            self._looking.cancel()

    def opened(self, connection: Connection) -> None:
        self._connections.add(connection)
        if self.stopping:
            connection.close()

    def closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if not self._connections:
            self._empty.set()

    async def _keep_looking(self) -> None:
        while True:
            await self._env.clock.sleep(TICK)
            self._look()

    def _look(self) -> None:
        """What time it is, and who has been silent for too long."""
        self.date = formatdate(self._env.now() / SECOND, usegmt=True).encode()
        self.now = self._env.clock.monotonic()
        for connection in list(self._connections):
            silent = self.now - connection.heard_at
            if silent > KEEP_ALIVE and connection.idle:
                connection.close()
            elif silent > PATIENCE and (connection.stalled or connection.leaving):
                connection.abort()
