"""Bodies that are too large, or not as long as they say: refused early, by a real server, whose memory stays small."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.acceptance.fleet import KEY, Fleet

MIB = 1 << 20
SENT = 1024 * MIB  # or as much of it as the server takes before it hangs up
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
    """What the server's process has of memory, or had at most."""
    status = Path(f"/proc/{server.servers['a'].pid}/status").read_text()
    found = re.search(rf"{what}:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * 1024


def head(method: str, path: str, key: str, *more: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: x", "content-type: application/json", *more]
    lines += [f"authorization: Bearer {key}"] if key else []
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def status_of(link: socket.socket) -> int:
    """The status of the answer; 0 when the connection ended without one."""
    try:
        said = link.recv(65536)
    except ConnectionError:
        return 0
    return int(said.split()[1]) if said else 0


def send_chunks(link: socket.socket, size: int) -> int:
    """Send so much, in chunks of a mebibyte, until the other side has enough; how much went out."""
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
def test_a_body_without_end_is_refused_and_does_not_fill_the_memory(
    server: Fleet, method: str, path: str, key: str, status: int
):
    before = memory(server, "VmRSS")
    with connected(server) as link:
        link.sendall(head(method, path, key, "transfer-encoding: chunked"))
        sent = send_chunks(link, SENT)
        answered = status_of(link)
    assert answered in (status, 0)  # who still sends when the connection ends may not hear it
    assert sent < 80 * MIB
    assert memory(server) - before < MOST_GROWTH
    assert server.is_ready(server.urls["a"])


def test_one_that_says_how_much_too_large_it_is_is_refused_before_it_is_sent(server: Fleet):
    for path in ("/api/v1/jobs", "/api/v1/executions"):
        with connected(server) as link:
            link.sendall(head("POST", path, KEY, f"content-length: {10 << 30}"))
            said = link.recv(65536)
            assert said.startswith(b"HTTP/1.1 413")
            assert b"connection: close" in said.lower()


@pytest.mark.parametrize("length", ["-1", "+5", "0x5", "5, 6", "5.0", "", "five", "99999999999999999999999"])
def test_what_is_no_length_is_refused(server: Fleet, length: str):
    with connected(server) as link:
        link.sendall(head("POST", "/api/v1/jobs", KEY, f"content-length: {length}") + b"{}")
        assert status_of(link) in (400, 413)


def test_two_lengths_are_none(server: Fleet):
    for more in (("content-length: 2", "content-length: 3"), ("content-length: 2", "transfer-encoding: chunked")):
        with connected(server) as link:
            link.sendall(head("POST", "/api/v1/jobs", KEY, *more) + b"{}")
            assert status_of(link) == 400


def test_a_body_that_is_shorter_than_it_says_does_nothing(server: Fleet):
    body = b'{"name": "half", "command": ["true"]}'
    with connected(server) as link:
        link.sendall(head("POST", "/api/v1/jobs", KEY, f"content-length: {len(body) + 10}") + body)
        link.shutdown(socket.SHUT_WR)
        assert link.recv(65536)[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 499")
    assert server.request("GET", "/jobs/half").status_code == 404


def test_what_is_beyond_the_length_is_no_part_of_the_body_and_no_request_of_anybody(server: Fleet):
    body = b'{"name": "whole", "command": ["true"]}'
    smuggled = b"DELETE /api/v1/jobs/whole HTTP/1.1\r\nhost: x\r\n\r\n"
    with connected(server) as link:
        link.sendall(head("POST", "/api/v1/jobs", KEY, f"content-length: {len(body)}") + body + smuggled)
        said = b""
        while said.count(b"HTTP/1.1 ") < 2 and (more := link.recv(65536)):
            said += more
    statuses = re.findall(rb"HTTP/1\.1 (\d+)", said)
    assert statuses == [b"201", b"401"]  # it comes without a credential of its own
    assert server.request("GET", "/jobs/whole").status_code == 200
