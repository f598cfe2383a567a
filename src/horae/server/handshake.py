"""TLS handshakes. A client counts from the moment it connects: one that never ends its handshake holds a place, too."""

import asyncio
import ssl
from typing import Any, Protocol, cast

from horae.server.crowd import Crowd
from horae.server.http import Connection

PATIENCE = 10.0  # seconds


class Greeter(Protocol):
    """The owner of handshakes and of the connections that follow them."""

    crowd: Crowd
    handshakes: set[asyncio.Task[None]]

    def make(self) -> Connection: ...


class Handshake(asyncio.Protocol):
    """A connection until TLS has begun; then a `Connection` goes on with it."""

    def __init__(self, greeter: Greeter, context: ssl.SSLContext) -> None:
        self._greeter, self._context = greeter, context
        self._early: list[bytes] = []  # what came together with the end of the handshake
        self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        plain = cast(asyncio.Transport, transport)
        peer: tuple[Any, ...] = plain.get_extra_info("peername") or ("", 0)
        if not self._greeter.crowd.enter(peer[0]):
            plain.abort()
            return
        plain.pause_reading()
        task = asyncio.get_running_loop().create_task(self._begin(plain, peer[0]))
        self._greeter.handshakes.add(task)
        task.add_done_callback(self._greeter.handshakes.discard)

    def data_received(self, data: bytes) -> None:
        self._early.append(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = True

    async def _begin(self, plain: asyncio.Transport, address: str) -> None:
        loop = asyncio.get_running_loop()
        try:
            private = await loop.start_tls(plain, self, self._context, server_side=True, ssl_handshake_timeout=PATIENCE)
        except OSError:  # what TLS refuses is one of these, as is a client that goes or is silent
            return
        finally:
            self._greeter.crowd.leave(address)
        if private is None or self._lost:
            return
        connection = self._greeter.make()
        private.set_protocol(connection)
        connection.connection_made(private)
        if self._early:
            connection.data_received(b"".join(self._early))
