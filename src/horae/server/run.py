"""Serving: starts a node, its application and its socket, and stops all three in order."""

import errno
import ipaddress
import platform
import socket
from collections.abc import Collection

from horae.engine.parts.part import ROLES
from horae.engine.server_node import ServerNode
from horae.errors import BadInput
from horae.server.app import Application
from horae.server.cors import Cors
from horae.server.http.connection_limits import ConnectionLimits
from horae.server.http.listener import HttpListener
from horae.server.http.proxies import Proxies
from horae.server.http.tls import Tls

EVERYWHERE = ("0.0.0.0", "::", "")
GRACE = 10  # seconds for unfinished requests when the server stops


class Serving:
    """A running server on the event loop that created it."""

    def __init__(
        self, node: ServerNode, listener: HttpListener, host: str, port: int, grace: float, *, is_private: bool = False
    ) -> None:
        self._node, self._listener, self._grace = node, listener, grace
        self.host, self.port, self.is_private = host, port, is_private
        scheme = "https" if is_private else "http"
        self.url = local_url(host, self.port, scheme)
        self.remote = remote_url(host, self.port, scheme)  # for other machines; empty if they can only use `url`

    async def stop(self) -> None:
        """Answer waiting requests at once, finish the others, then release the store."""
        self._node.base.events.close()
        await self._node.gateway.stop()
        await self._listener.stop(self._grace)
        await self._node.stop()


async def serve(
    node: ServerNode,
    host: str,
    port: int,
    *,
    roles: Collection[str] = ROLES,
    allow_remote: bool = False,
    grace: int = GRACE,
    tls: Tls | None = None,
    limits: ConnectionLimits | None = None,
    proxies: Proxies | None = None,
    cors: Cors | None = None,
) -> Serving:
    """Start a node and serve it over HTTP. Port 0 means any free port.

    Returns once the server accepts requests. Raises BadInput if the address is unavailable, or if other machines can
    reach it without TLS and `allow_remote` is not set. `grace` has the seconds for unfinished requests at the end.
    """
    check_bind(host, allow_remote=allow_remote or tls is not None)
    bound = _listen(host, port)
    try:
        port = bound.getsockname()[1]
        application = Application(node, roles, certified=_asks(tls), proxies=proxies, cors=cors)
        listener = HttpListener(node.env, application.answer, tls, limits)
        serving = Serving(node, listener, host, port, grace, is_private=tls is not None)
        await node.start(roles, serving.remote or serving.url)
        await listener.start(bound)
    except BaseException:
        bound.close()
        raise
    return serving


def _asks(tls: Tls | None) -> bool:
    return tls is not None and tls.asks_for_certificates


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_bind(host: str, *, allow_remote: bool) -> None:
    """Refuse an address that other machines can reach, unless that is allowed, since they would send keys in clear."""
    if allow_remote or is_loopback(host):
        return
    raise BadInput(
        f"Listening on {host or 'all addresses'} would let other machines connect without TLS.",
        "Name a certificate with tls_cert and tls_key, put a TLS proxy in front and listen on 127.0.0.1, or set"
        " `allow_remote` on a network you trust.",
        field="host",
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Explicitly TCP, so that asyncio sets TCP_NODELAY: otherwise an answer's second part waits 40 ms for the first ACK.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise _refused(host, port, error) from None
    listener.setblocking(False)
    return listener


def _refused(host: str, port: int, error: OSError) -> BadInput:
    """Return the reason why an address is unavailable: its port is in use, or the host is not this machine."""
    detail = f"Cannot listen on {host or 'all addresses'}, port {port}: {error.strerror}."
    if error.errno in (errno.EADDRINUSE, errno.EACCES):
        return BadInput(detail, "Choose another port with --port, or stop the program on this one.", field="port")
    remedy = "Name an address of this machine with --host: 127.0.0.1, or 0.0.0.0 to let other machines connect."
    return BadInput(detail, remedy, field="host")


def local_url(host: str, port: int, scheme: str = "http") -> str:
    """Return the URL of a server on this machine; a wildcard address becomes the loopback address."""
    place = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"{scheme}://[{place}]:{port}" if ":" in place else f"{scheme}://{place}:{port}"


def remote_url(host: str, port: int, scheme: str = "http") -> str:
    """Return the URL that other machines use for a server on all addresses; empty for a server on one address."""
    return f"{scheme}://{platform.node()}:{port}" if host in EVERYWHERE else ""
