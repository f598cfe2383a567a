"""A cheap load generator: kept connections and prepared requests, without a task or a parser per request.

Answers are split by their content-length, and only their status is checked. This takes a tenth of the SDK's processor
time, so one process loads the server and not itself.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from typing import cast
from urllib.parse import urlsplit

from horae.env import Clock
from horae.errors import HoraeError

HEAD_END, LENGTH = b"\r\n\r\n", b"content-length: "
TICK = 0.002  # seconds between checks for due requests
Then = Callable[[int, bytes], None]


def build(url: str, key: str, method: str, path: str, body: bytes = b"", once: str = "") -> bytes:
    """Return a complete request; `once` is its Idempotency-Key."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        f"{f'Idempotency-Key: {once}{chr(13)}{chr(10)}' if once else ''}\r\n"
    )
    return head.encode("latin-1") + body


class Wire(asyncio.Protocol):
    """One connection that carries one request at a time."""

    def __init__(self, on_lost: Callable[[str], None]) -> None:
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._then: Then | None = None
        self._buffer = b""

    def send(self, request: bytes, then: Then) -> None:
        """Send a request; call `then` with the status and body of its answer."""
        assert self._transport is not None
        self._then = then
        self._transport.write(request)

    def close(self) -> None:
        self._then = None
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        if self._then is not None:
            self._on_lost(str(error or "the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        if self._buffer:
            data = self._buffer + data
        head = data.find(HEAD_END)
        at = data.find(LENGTH, 0, head) if head >= 0 else -1
        end = head + 4 + (int(data[at + len(LENGTH) : data.index(b"\r", at)]) if at >= 0 else 0)
        if head < 0 or len(data) < end:
            self._buffer = data
            return
        self._buffer = b""
        then, self._then = self._then, None
        if then is not None:
            then(int(data[9:12]), data[head + 4 : end])


class Clients:
    """Several connections to one server."""

    def __init__(self, wires: list[Wire], failed: "asyncio.Future[None]") -> None:
        self._wires, self._failed = wires, failed

    async def ask(self, request: bytes) -> bytes:
        """Send one request on the first connection; return the body of its answer."""
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def then(status: int, body: bytes) -> None:
            if not answered.done():
                answered.set_result(_checked(status, body))

        self._wires[0].send(request, self._guarded(then))
        await self._either(answered)
        return answered.result()

    async def send_all(self, requests: Iterable[bytes]) -> list[float]:
        """Send all requests; each connection waits for an answer before its next request.

        Return the seconds of each.
        """
        left, took = iter(requests), list[float]()
        busy = len(self._wires)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def send(wire: Wire) -> None:
            nonlocal busy
            request = next(left, None)
            if request is None:
                busy -= 1
                if not busy:
                    done.set_result(None)
                return
            begun = time.perf_counter()

            def then(status: int, body: bytes) -> None:
                _checked(status, body)
                took.append(time.perf_counter() - begun)
                send(wire)

            wire.send(request, self._guarded(then))

        for wire in self._wires:
            send(wire)
        await self._either(done)
        return took

    async def send_paced(
        self, clock: Clock, requests: Iterable[bytes], rate: float, seconds: float = inf
    ) -> "PacedRequests":
        """Send requests at a rate, independent of the server's speed; return their durations.

        A duration includes waiting for a free connection. Requests that are still in line when the time is up are not
        sent, and count with their waiting time.
        """
        paced = PacedRequests(self._wires, self._guarded)
        begun = time.perf_counter()
        for sent, request in enumerate(requests):
            while sent >= (time.perf_counter() - begun) * rate:
                await self._either(asyncio.ensure_future(clock.sleep(TICK)))
            if time.perf_counter() - begun > seconds:
                paced.stop()
                break
            paced.give(request)
        while paced.busy:
            await self._either(asyncio.ensure_future(clock.sleep(TICK)))
        return paced

    def _guarded(self, then: Then) -> Then:
        """Return a callback that turns an exception into the failure of the load instead of that of the connection."""

        def guarded(status: int, body: bytes) -> None:
            try:
                then(status, body)
            except Exception as error:
                if not self._failed.done():
                    self._failed.set_exception(error)

        return guarded

    async def _either(self, done: "asyncio.Future[object] | asyncio.Future[None] | asyncio.Future[bytes]") -> None:
        try:
            await asyncio.wait({done, self._failed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not done.done():
                done.cancel()
        if self._failed.done():
            self._failed.result()


class PacedRequests:
    """Requests at a rate: due ones go out on free connections, the rest waits in line."""

    def __init__(self, wires: list[Wire], guarded: Callable[[Then], Then]) -> None:
        self.took: list[float] = []  # seconds
        self.answered = 0
        # Connections are used in turn: a server closes those that are silent for long.
        self._free, self._all = deque(wires), len(wires)
        self._line: deque[tuple[float, bytes]] = deque()
        self._guarded = guarded

    @property
    def busy(self) -> bool:
        return bool(self._line) or len(self._free) < self._all

    def give(self, request: bytes) -> None:
        self._line.append((time.perf_counter(), request))
        if self._free:
            self._send(self._free.popleft())

    def stop(self) -> None:
        """Send no more requests."""
        now = time.perf_counter()
        self.took += [now - due for due, _ in self._line]
        self._line.clear()

    def _send(self, wire: Wire) -> None:
        due, request = self._line.popleft()

        def then(status: int, body: bytes) -> None:
            _checked(status, body)
            self.took.append(time.perf_counter() - due)
            self.answered += 1
            if self._line:
                self._send(wire)
            else:
                self._free.append(wire)

        wire.send(request, self._guarded(then))


def _checked(status: int, body: bytes) -> bytes:
    if status not in (200, 201):
        raise HoraeError(f"A request of the load was answered with {status}: {body[:300].decode(errors='replace')}")
    return body


@asynccontextmanager
async def connected(url: str, count: int) -> AsyncIterator[Clients]:
    """Open connections, which are closed when the block ends."""
    loop = asyncio.get_running_loop()
    failed: asyncio.Future[None] = loop.create_future()

    def lost(why: str) -> None:
        if not failed.done():
            failed.set_exception(HoraeError(f"The server left a request unanswered: {why}."))

    place = urlsplit(url)
    wires = [Wire(lost) for _ in range(count)]
    try:
        for wire in wires:
            await loop.create_connection(partial(_itself, wire), place.hostname or "", place.port or 80)
        yield Clients(wires, failed)
    finally:
        for wire in wires:
            wire.close()
        if failed.done():
            failed.exception()  # already reported to the waiting caller, or no longer needed


def _itself(wire: Wire) -> Wire:
    return wire
