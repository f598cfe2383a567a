"""A name server with false answers: a real one over UDP, installed at the lowest level of name resolution."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import pytest

A, AAAA = 1, 28


class NameServer:
    """A name server that answers each query from `answers`, with a time to live of zero."""

    def __init__(self, answers: Callable[[str], list[str]]) -> None:
        self._answers = answers
        self.asked = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = self._socket.getsockname()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._socket.sendto(b"", self.address)
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            query, client = self._socket.recvfrom(4096)
            if not query:
                return
            self.asked += 1
            self._socket.sendto(self._reply(query), client)

    def _reply(self, query: bytes) -> bytes:
        end = query.index(b"\0", 12) + 5
        records = b""
        found = [ip_address(text).packed for text in self._answers(_name(query[12 : end - 4]))]
        for packed in found:
            records += struct.pack(">HHHIH", 0xC00C, A if len(packed) == 4 else AAAA, 1, 0, len(packed)) + packed
        return query[:2] + struct.pack(">HHHHH", 0x8180, 1, len(found), 0, 0) + query[12:end] + records


def _name(wire: bytes) -> str:
    labels, at = [], 0
    while wire[at]:
        labels.append(wire[at + 1 : at + 1 + wire[at]].decode())
        at += 1 + wire[at]
    return ".".join(labels)


def _query(host: str) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in host.rstrip(".").split("."))
    return struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", A, 1)


def asking(server: NameServer, real: Callable[..., Any]) -> Callable[..., Any]:
    """Replace `socket.getaddrinfo` by this server for names; the system still parses addresses in all notations."""

    def getaddrinfo(host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if not name.endswith(".test"):
            return real(host, port, family, type, proto, flags)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            asker.settimeout(5)
            asker.sendto(_query(name), server.address)
            answer = asker.recv(4096)
        at, found = 12 + len(_query(name)) - 12, []
        for _ in range(struct.unpack_from(">H", answer, 6)[0]):
            size = struct.unpack_from(">H", answer, at + 10)[0]
            address = str(ip_address(answer[at + 12 : at + 12 + size]))
            at += 12 + size
            kind = socket.AF_INET6 if ":" in address else socket.AF_INET
            found.append((kind, type, proto, "", (address, port, 0, 0) if ":" in address else (address, port)))
        return found

    return getaddrinfo


class Sockets:
    """A record of every address that was connected to. Connections to `public` reach a site of the test."""

    def __init__(self, public: str) -> None:
        self.public = public
        self.site = ("127.0.0.1", 9)
        self.reached: list[str] = []

    def outside(self) -> set[str]:
        return set(self.reached) - {self.public}


@contextmanager
def lying(
    patch: pytest.MonkeyPatch, answers: Callable[[str], list[str]], public: str
) -> Iterator[tuple[NameServer, Sockets]]:
    """Resolve names under .test by such a server, and record all connections."""
    server, sockets = NameServer(answers), Sockets(public)
    real = socket.socket.connect

    def connect(self: socket.socket, place: Any) -> None:
        if self.type & socket.SOCK_STREAM and self.family in (socket.AF_INET, socket.AF_INET6):
            sockets.reached.append(place[0])
            place = sockets.site if place[0] == public else ("127.0.0.1", 9)  # where nobody listens
        real(self, place)

    patch.setattr(socket, "getaddrinfo", asking(server, socket.getaddrinfo))
    patch.setattr(socket.socket, "connect", connect)
    try:
        yield server, sockets
    finally:
        patch.undo()
        server.close()
