"""The listener: accepts connections, closes idle and slow ones, and stops after unfinished requests are answered."""

import asyncio
import itertools
import socket
from email.utils import formatdate

from horae.env import SECOND, Env
from horae.server.http.connection import Answer, HttpConnection
from horae.server.http.connection_limits import ConnectionLimits
from horae.server.http.tls import Handshakes, Tls
from horae.server.reply import SAFETY, STRICT_TRANSPORT

BACKLOG = 4096  # connections that wait in the kernel to be accepted
KEEP_ALIVE = 75.0  # seconds without a request before a connection is closed; long, as workers reuse connections
TICK = 1.0  # seconds between checks of all connections


class HttpListener:
    """Accepts the connections of one listening socket, on the event loop that created it."""

    def __init__(
        self, env: Env, answer: Answer, tls: Tls | None = None, limits: ConnectionLimits | None = None
    ) -> None:
        self.answer, self._tls, self.limits = answer, tls, limits or ConnectionLimits()
        self.stopping = False
        headers = SAFETY if tls is None else (*SAFETY, STRICT_TRANSPORT)
        self.safety = b"".join(b"%b: %b\r\n" % header for header in headers)
        self.date, self.now = b"", 0.0
        mine = env.rng.getrandbits(48)
        self._ids = (b"%012x-%x" % (mine, number) for number in itertools.count(1))
        self._env = env
        self._connections: set[HttpConnection] = set()
        self.handshakes = None if tls is None else Handshakes(tls.context, self.limits, env.clock, self.make, BACKLOG)
        self._empty = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._looking: asyncio.Task[None] | None = None

    async def start(self, listener: socket.socket) -> None:
        """Accept connections from now on."""
        loop = asyncio.get_running_loop()
        self._look()
        self._looking = loop.create_task(self._keep_looking(), name="horae-http")
        if self.handshakes is not None:
            self.handshakes.start(listener)
        else:
            self._server = await loop.create_server(self.make, sock=listener, backlog=BACKLOG)

    def make(self) -> HttpConnection:
        """Create a connection of this listener."""
        return HttpConnection(self)

    async def stop(self, grace: float) -> None:
        """Stop accepting, answer unfinished requests, and close all connections within `grace` seconds."""
        self.stopping = True
        if self._server is not None:
            self._server.close()
        if self.handshakes is not None:
            self.handshakes.stop()
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

    def new_id(self) -> bytes:
        """Create the id of a request: a number after random digits, which differ for each server and each start."""
        return next(self._ids)

    def opened(self, connection: HttpConnection) -> bool:
        """Register a connection; return False if a limit on connections is reached."""
        if self.handshakes is not None:
            self.handshakes.end(connection)
        if not self.limits.enter(connection.peer[0]):
            return False
        self._connections.add(connection)
        if self.stopping:
            connection.close()
        return True

    def closed(self, connection: HttpConnection) -> None:
        if connection in self._connections:
            self.limits.leave(connection.peer[0])
        self._connections.discard(connection)
        if not self._connections:
            self._empty.set()

    async def _keep_looking(self) -> None:
        while True:
            await self._env.clock.sleep(TICK)
            self._look()
            if self._tls is not None:
                self._tls.follow(self.now)

    def _look(self) -> None:
        """Update the time, and close connections that are idle for too long or whose client is too slow."""
        self.date = formatdate(self._env.now() / SECOND, usegmt=True).encode()
        self.now = self._env.clock.monotonic()
        for connection in list(self._connections):
            silent = self.now - connection.heard_at
            if connection.is_late(self.now):
                connection.abort()
            elif silent > KEEP_ALIVE and connection.idle:
                connection.close()
