"""Request smuggling: every published class of it, direct, over TLS, and through nginx and haproxy.

A client sends one request with another one hidden in it. Another client sends the next request, on the same connection,
or on one that shares the proxy's connections. The hidden request is never acted on, and both clients get their own
answers. A proxy marks each request that it forwards, so a request without the mark was hidden from it.
"""

import asyncio
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from horae.cli.process import run
from horae.engine.server_node import ServerNode
from horae.env import system_env
from horae.server.app import Application
from horae.server.http import tls
from horae.server.http.listener import HttpListener
from horae.server.http.tls import Tls
from horae.server.reply import Receive, Response
from tests.acceptance.fleet import free_port
from tests.server.http.certificates import Authority
from tests.server.http.smuggling import CASES, ONE, TARGET, Case
from tests.waiting import eventually_sync

SILENCE = 3.0  # seconds of silence after which a connection seems to wait for more of its request
ROUTES = ("direct", "tls", "nginx", "haproxy")

NGINX = """
daemon off; pid {folder}/nginx.pid; error_log stderr; worker_processes 1; {user}
events {{ worker_connections 256; }}
http {{
  access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream horae {{ server 127.0.0.1:{horae}; keepalive 1; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://horae; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $host; proxy_set_header X-Seen yes; proxy_request_buffering off;
    }}
  }}
}}
"""
HAPROXY = """
defaults
  mode http
  timeout connect 10s
  timeout client 30s
  timeout server 30s
  option http-keep-alive
  http-reuse always
frontend clients
  bind 127.0.0.1:{port}
  http-request set-header X-Seen yes
  default_backend horae
backend horae
  option forwardfor
  server horae 127.0.0.1:{horae}
"""


class Target:
    """A server in a thread, with the servers' event loop. It records the requests that it acts on.

    Requests whose bodies cannot be read are not recorded.
    """

    def __init__(self, certificate: tuple[Path, Path]) -> None:
        self.acted: list[str] = []
        self.unseen: list[str] = []  # those that no proxy has recognised as requests
        self.statuses: list[int] = []
        self.plain, self.private = free_port(), free_port()
        self._certificate = certificate
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: run(self._run()), daemon=True)
        self._thread.start()
        assert self._ready.wait(60)

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        node = await ServerNode.open(system_env(), "sqlite://")
        await node.start()
        application = Application(node)

        async def answer(scope: dict[str, Any], receive: Receive) -> Response:
            readable = True

            async def receive_noted() -> Any:
                nonlocal readable
                readable = False
                part = await receive()
                readable = True
                return part

            reply = await application.answer(scope, receive_noted)
            self.statuses.append(reply.status)
            if readable:
                query = scope["query_string"].decode()
                self.acted.append(scope["path"] + (f"?{query}" if query else ""))
                if (b"x-seen", b"yes") not in scope["headers"]:
                    self.unseen.append(self.acted[-1])
            return reply

        listeners = [HttpListener(node.env, answer), HttpListener(node.env, answer, Tls(*self._certificate))]
        for listener, port in zip(listeners, (self.plain, self.private), strict=True):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(("127.0.0.1", port))
            await listener.start(sock)
        self._ready.set()
        await self._stop.wait()
        for listener in listeners:
            await listener.stop(0.1)
        await node.stop()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)


@contextmanager
def proxy(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually_sync(lambda: is_listening(port))
        yield
    finally:
        process.terminate()
        process.wait(30)


def is_listening(port: int) -> bool:
    with closing(socket.socket()) as link:
        return link.connect_ex(("127.0.0.1", port)) == 0


def program(name: str) -> str:
    """Find a proxy. With CI=true it must be installed."""
    path = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if path is None:
        missing = f"{name} is not on PATH; `make test` as root installs it, or: apt-get install nginx-light haproxy"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(missing)
    return path


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def target(authority: Authority) -> Iterator[Target]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tls, "FAREWELL", 0.3)
        made = Target(authority.sign("server"))
        yield made
        made.stop()


Connect = Callable[[], socket.socket]


@pytest.fixture(scope="module", params=ROUTES)
def connect(
    request: pytest.FixtureRequest, target: Target, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Connect]:
    """Open connections to the server on one of the routes to it."""
    route, folder = request.param, tmp_path_factory.mktemp(request.param)
    trust = ssl.create_default_context(cafile=str(authority.certificate))
    port = {"direct": target.plain, "tls": target.private}.get(route) or free_port()

    def open_one() -> socket.socket:
        link = socket.create_connection(("127.0.0.1", port), timeout=60)
        return trust.wrap_socket(link, server_hostname="localhost") if route == "tls" else link

    with ExitStack() as stack:
        if route in ("nginx", "haproxy"):
            user = "user root;" if os.getuid() == 0 else ""
            config = folder / f"{route}.conf"
            text = NGINX if route == "nginx" else HAPROXY
            config.write_text(text.format(folder=folder, port=port, horae=target.plain, user=user))
            command = ["-p", str(folder), "-e", "stderr", "-c"] if route == "nginx" else ["-db", "-q", "-f"]
            stack.enter_context(proxy([program(route), *command, str(config)], port))
        yield open_one


def exchange(connect: Connect, sent: bytes) -> bytes:
    """Send bytes; return the answers. A server that waits for more of the last request is left."""
    said = b""
    with closing(connect()) as link:
        link.settimeout(SILENCE)
        try:
            link.sendall(sent)
            while part := link.recv(65536):
                said += part
        except (TimeoutError, ConnectionError, ssl.SSLError):
            pass
    return said


def ask(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode()


def statuses(said: bytes) -> list[int]:
    """Return the final statuses among the answers in some bytes."""
    found = [int(part[:3]) for part in said.split(b"HTTP/1.1 ")[1:] if part[:3].isdigit()]
    return [status for status in found if status >= 200]


@pytest.mark.parametrize("name", CASES)
def test_no_request_is_hidden_in_another(name: str, connect: Connect, target: Target, request: pytest.FixtureRequest):
    case: Case = CASES[name]
    route = request.node.callspec.params["connect"]
    for noted in (target.acted, target.unseen, target.statuses):
        noted.clear()
    said = exchange(connect, case.sent + ask("/after"))
    victim = exchange(connect, ask("/victim"))

    assert target.acted.count(TARGET) <= 1
    assert target.acted.count("/after") <= 1
    assert target.acted.count("/victim") == 1
    assert b"/victim" in victim, "the next client gets its own answer"
    assert [status for status in target.statuses if status >= 500] == []
    if route in ("nginx", "haproxy"):  # they read some bytes leniently, and forward their reading
        assert target.unseen == [], "the proxy has not seen this request"
    else:
        assert "/smuggled" not in target.acted
        found = statuses(said)
        if case.read == ONE:
            assert target.acted[:2] in ([TARGET, "/after"], [TARGET, "/victim"])
            assert target.acted.count(TARGET) == 1
            assert found[0] < 500
        else:
            assert target.acted == ["/victim"], "an ambiguous request is acted on"
            assert [status for status in found if not 400 <= status < 500] == []
            assert len(found) == 1


@pytest.mark.parametrize("trailer", [b"a" * 65536, b"x: y\r\n" * 11000], ids=["one", "many"])
def test_endless_trailers_do_not_block_other_clients(
    trailer: bytes, connect: Connect, target: Target, request: pytest.FixtureRequest
):
    route = request.node.callspec.params["connect"]
    sent, most = 0, 24 << 20 if route in ("nginx", "haproxy") else 4 << 30
    with closing(connect()) as link:
        link.settimeout(SILENCE)
        try:
            link.sendall(b"GET /api/v1/me HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nx: ")
            while sent < most:
                link.sendall(trailer)
                sent += len(trailer)
        except OSError:
            pass
        assert b"/victim" in exchange(connect, ask("/victim"))
    assert route in ("nginx", "haproxy") or sent < most
