"""TLS: handshakes, the server's certificate, which is read again after its renewal, and clients' certificates.

A connection counts towards the limits from the start of its handshake, which a client may never complete. So this
module accepts connections itself: the event loop's own server reports a client only after its handshake. TLS is set up
before the first read, because uvloop reads a new connection at once, even if reading was paused before.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import structlog

from horae.env import Clock
from horae.errors import BadInput
from horae.server.http.connection import HttpConnection
from horae.server.http.connection_limits import ConnectionLimits

LOOK = 60.0  # seconds between checks for changed files

log = structlog.get_logger("horae.server")


class Tls:
    """A server's certificate and key, and the authority for clients' certificates."""

    def __init__(self, certificate: Path, key: Path, client_authority: Path | None = None) -> None:
        self._files, self._authority = (certificate, key), client_authority
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        self._load()
        if client_authority is not None:
            self._trust(client_authority)
        self._seen, self._looked_at = self._changed_at(), 0.0

    @property
    def asks_for_certificates(self) -> bool:
        """Return whether workers must show a certificate."""
        return self._authority is not None

    def follow(self, now: float) -> None:
        """Use a renewed certificate for new connections. If it cannot be read, keep the old certificate."""
        if now - self._looked_at < LOOK:
            return
        self._looked_at = now
        changed_at = self._changed_at()
        if changed_at == self._seen:
            return
        try:
            self._load()
        except BadInput as error:
            log.error("the renewed certificate cannot be used", error=str(error))
        else:
            log.info("the certificate was renewed")
        self._seen = changed_at

    def _load(self) -> None:
        try:
            self.context.load_cert_chain(*self._files)
        except (OSError, ssl.SSLError) as error:
            reason = error.strerror or str(error)
            raise BadInput(
                f"The certificate {self._files[0]} with the key {self._files[1]} cannot be used: {reason}.",
                "Set tls_cert and tls_key to PEM files that belong together.",
                field="tls_cert",
            ) from None

    def _trust(self, authority: Path) -> None:
        try:
            self.context.load_verify_locations(authority)
        except (OSError, ssl.SSLError) as error:
            reason = error.strerror or str(error)
            remedy = "Name a PEM file with the authority that signs workers' certificates."
            raise BadInput(f"{authority} cannot be used: {reason}.", remedy, field="tls_client_ca") from None
        self.context.verify_mode = ssl.CERT_OPTIONAL  # browsers have no certificate; routes of workers check for one

    def _changed_at(self) -> tuple[int, ...]:
        try:
            return tuple(file.stat().st_mtime_ns for file in self._files)
        except OSError:
            return ()


HANDSHAKE = 10.0  # seconds for a client to complete its handshake
FAREWELL = 5.0  # seconds for a client to answer the end of TLS; until then its bytes are read and dropped
PAUSE = 1.0  # seconds without accepting after an error, such as too many open files


class Handshakes:
    """Accepts connections, and starts TLS on those that the limits admit."""

    def __init__(
        self,
        context: ssl.SSLContext,
        limits: ConnectionLimits,
        clock: Clock,
        make: Callable[[], HttpConnection],
        backlog: int,
    ) -> None:
        self._context, self._limits, self._clock, self._make, self._backlog = context, limits, clock, make, backlog
        self._under_way: dict[HttpConnection, tuple[str, asyncio.Task[None]]] = {}
        self._accepting: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._under_way)

    def start(self, listener: socket.socket) -> None:
        """Accept connections from now on."""
        listener.setblocking(False)
        listener.listen(self._backlog)
        self._accepting = asyncio.get_running_loop().create_task(self._accept(listener), name="horae-tls")

    def stop(self) -> None:
        """Stop accepting, and cancel unfinished handshakes."""
        if self._accepting is not None:
            self._accepting.cancel()
        for _, task in self._under_way.values():
            task.cancel()

    def end(self, connection: HttpConnection) -> None:
        """Stop counting a connection as a handshake. `HttpListener.opened` counts it again."""
        if connection in self._under_way:
            self._limits.leave(self._under_way.pop(connection)[0])

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listener:
            while True:
                try:
                    client, peer = await loop.sock_accept(listener)
                except OSError:
                    await self._clock.sleep(PAUSE)
                    continue
                if not self._limits.enter(peer[0]):
                    client.close()
                    continue
                connection = self._make()
                self._under_way[connection] = peer[0], loop.create_task(self._begin(connection, client))

    async def _begin(self, connection: HttpConnection, client: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, client, ssl=self._context, ssl_handshake_timeout=HANDSHAKE,
                ssl_shutdown_timeout=FAREWELL,
            )  # fmt: skip
        except OSError:  # TLS errors, and clients that leave or are silent
            pass
        finally:
            self.end(connection)
