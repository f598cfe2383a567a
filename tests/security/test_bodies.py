"""Bodies that are too large or differ from their declared length: the server refuses them early, with little memory."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.acceptance.fleet import KEY, Fleet

MIB = 1 << 20
SENT = 1024 * MIB  # or as much as the server reads before it closes the connection
MOST_GROWTH = 50 * MIB
NOBODY = "0198c5a0-0000-7000-8000-000000000000"
ROUTES = (
    ("POST", "/api/v1/executions", KEY, 413),  # a large limit
    ("POST", "/api/v1/jobs", KEY, 413),
    ("PATCH", "/api/v1/jobs/report", KEY, 413),
    ("POST", f"/api/v1/sessions/{NOBODY}/exchange", KEY, 413),
    ("PUT", f"/api/v1/sessions/{NOBODY}/artifacts/a?parcel={NOBODY}&item=0&attempt=1", KEY, 404),  # a stream
    ("POST", "/api/v1/sign-in", "", 413),
    ("POST", "/api/v1/sign-in/password", "", 413),
    ("POST", "/hooks/whoever", "", 401),
    ("POST", "/api/v1/jobs", "", 401),
    ("POST", "/nowhere", KEY, 404),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("bodies")
    fleet = Fleet(folder, f"sqlite:///{folder}/horae.db")
    fleet.add_server("a")
    yield fleet
    fleet.close()


def connected(server: Fleet) -> socket.socket:
    place = urlsplit(server.urls["a"])
    return socket.create_connection((str(place.hostname), int(place.port or 0)), timeout=30)


def memory(server: Fleet, what: str = "VmHWM") -> int:
    """Return the memory of the server's process, current or peak."""
    status = Path(f"/proc/{server.servers['a'].pid}/status").read_text()
    found = re.search(rf"{what}:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024


def head(method: str, path: str, key: str, *more: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: x", "content-type: application/json", *more]
    lines += [f"authorization: Bearer {key}"] if key else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def status_of(link: socket.socket) -> int:
    """Return the status of the answer; 0 when the connection ended without one."""
    try:
        said = link.recv(65536)
    except ConnectionError:
        return 0
    return int(said.split()[1]) if said else 0


def send_chunks(link: socket.socket, size: int) -> int:
    """Send chunks of a mebibyte until the server stops reading; return the number of bytes sent."""
    chunk = b"%x\r\n%b\r\n" % (MIB, b'"' + b"x" * (MIB - 1))
    sent = 0
    try:
        for _ in range(size // MIB):
            link.sendall(chunk)
            sent += MIB
        link.sendall(b"0\r\n\r\n")
    except ConnectionError:
        pass
    return sent


@pytest.mark.parametrize(("method", "path", "key", "status"), ROUTES, ids=range(len(ROUTES)))
def test_an_endless_body_is_refused_without_filling_memory(
    server: Fleet, method: str, path: str, key: str, status: int
):
    before = memory(server, "VmRSS")
    with connected(server) as link:
        link.sendall(head(method, path, key, "transfer-encoding: chunked"))
        sent = send_chunks(link, SENT)
        answered = status_of(link)
    assert answered in (status, 0)  # a client that still sends when the connection ends may not get the answer
    assert sent < SENT // 2
    assert memory(server) - before < MOST_GROWTH
    assert server.is_ready(server.urls["a"])


def test_a_declared_oversized_body_is_refused_before_it_is_sent(server: Fleet):
    for path in ("/api/v1/jobs", "/api/v1/executions"):
        with connected(server) as link:
            link.sendall(head("POST", path, KEY, f"content-length: {10 << 30}"))
            said = link.recv(65536)
            assert said.startswith(b"HTTP/1.1 413")
            assert b"connection: close" in said.lower()


@pytest.mark.parametrize("length", ["-1", "+5", "0x5", "5, 6", "5.0", "", "five", "99999999999999999999999"])
def test_an_invalid_content_length_is_refused(server: Fleet, length: str):
    with connected(server) as link:
        link.sendall(head("POST", "/api/v1/jobs", KEY, f"content-length: {length}") + b"{}")
        assert status_of(link) in (400, 413)


def test_two_content_lengths_are_refused(server: Fleet):
    for more in (("content-length: 2", "content-length: 3"), ("content-length: 2", "transfer-encoding: chunked")):
        with connected(server) as link:
            link.sendall(head("POST", "/api/v1/jobs", KEY, *more) + b"{}")
            assert status_of(link) == 400


def test_a_body_shorter_than_declared_has_no_effect(server: Fleet):
    body = b'{"name": "half", "command": ["true"]}'
    with connected(server) as link:
        link.sendall(head("POST", "/api/v1/jobs", KEY, f"content-length: {len(body) + 10}") + body)
        link.shutdown(socket.SHUT_WR)
        assert link.recv(65536)[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 499")
    assert server.request("GET", "/jobs/half").status_code == 404


def test_bytes_after_the_declared_length_are_ignored(server: Fleet):
    body = b'{"name": "whole", "command": ["true"]}'
    smuggled = b"DELETE /api/v1/jobs/whole HTTP/1.1\r\nhost: x\r\n\r\n"
    with connected(server) as link:
        link.sendall(head("POST", "/api/v1/jobs", KEY, f"content-length: {len(body)}") + body + smuggled)
        said = b""
        while said.count(b"HTTP/1.1 ") < 2 and (more := link.recv(65536)):
            said += more
    statuses = re.findall(rb"HTTP/1\.1 (\d+)", said)
    assert statuses == [b"201", b"401"]  # it has no credential
    assert server.request("GET", "/jobs/whole").status_code == 200
