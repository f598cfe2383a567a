"""Listening: the socket, uvicorn around the application, and an orderly end."""

import asyncio
import errno
import ipaddress
import platform
import socket
from collections.abc import Collection

import uvicorn

from horae.engine.node import PARTS, Node
from horae.errors import BadInput
from horae.server.app import Application
from horae.server.joined import JoinedProtocol

BACKLOG = 2048
KEEP_ALIVE = 75  # seconds; workers keep their connections between exchanges
EVERYWHERE = ("0.0.0.0", "::", "")
GRACE = 10  # seconds for requests under way when the server stops


class Serving:
    """A server that listens; it runs on the event loop that made it."""

    def __init__(self, node: Node, server: uvicorn.Server, listener: socket.socket, host: str) -> None:
        self._node, self._server, self._listener = node, server, listener
        self.host = host
        self.port: int = listener.getsockname()[1]
        self.url = local_url(host, self.port)
        self.remote = remote_url(host, self.port)  # empty: only `url` leads here
        self._running = asyncio.create_task(server.main_loop(), name="horae-http")

    async def stop(self) -> None:
        """Answer who waits at once, finish what was begun, then let go of the store."""
        self._node.events.close()
        await self._node.gateway.stop()
        self._server.should_exit = True
        await self._running
        await self._server.shutdown(sockets=[self._listener])
        await self._node.stop()


async def serve(
    node: Node, host: str, port: int, *, parts: Collection[str] = PARTS, allow_remote: bool = False, grace: int = GRACE
) -> Serving:
    """Start a node and serve it over HTTP; port 0 takes a free one.

    Returns when requests are answered. Raises BadInput for an address that cannot be had, or that other machines reach
    unless `allow_remote` says that this is meant.
    """
    check_bind(host, allow_remote=allow_remote)
    listener = _listen(host, port)
    try:
        port = listener.getsockname()[1]
        node.presence.url = node.presence.url or remote_url(host, port) or local_url(host, port)
        server = _server(node, parts, grace)
        await node.start(parts)
        await server.startup(sockets=[listener])
    except BaseException:
        listener.close()
        raise
    return Serving(node, server, listener, host)


def check_bind(host: str, *, allow_remote: bool) -> None:
    """Refuse an address that other machines reach, unless asked for: keys would travel in the clear."""
    if allow_remote or is_loopback(host):
        return
    raise BadInput(
        f"Listening on {host or 'all addresses'} would let other machines in, without TLS.",
        "Put a TLS proxy in front and listen on 127.0.0.1, or say `allow_remote` on a network you trust.",
        field="host",
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, so that asyncio sets TCP_NODELAY: else an answer's second part waits 40 ms for the first one's ACK.
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
    """Why an address cannot be had: its port is somebody's, or the host is not this machine."""
    detail = f"Cannot listen on {host or 'all addresses'}, port {port}: {error.strerror}."
    if error.errno in (errno.EADDRINUSE, errno.EACCES):
        return BadInput(detail, "Choose another port with --port, or stop what listens there.", field="port")
    remedy = "Name an address of this machine with --host: 127.0.0.1, or 0.0.0.0 to let other machines in."
    return BadInput(detail, remedy, field="host")


def local_url(host: str, port: int) -> str:
    """Where this machine reaches a server; an address that stands for all of them is none to go to."""
    place = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{place}]:{port}" if ":" in place else f"http://{place}:{port}"


def remote_url(host: str, port: int) -> str:
    """Where other machines reach a server that listens on all addresses; empty for one that has an address."""
    return f"http://{platform.node()}:{port}" if host in EVERYWHERE else ""


def _server(node: Node, parts: Collection[str], grace: int) -> uvicorn.Server:
    """uvicorn without its signals, logs and start-up protocol: the process and the node have their own."""
    config = uvicorn.Config(
        Application(node, parts),
        http=JoinedProtocol,
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=grace,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    return server
