"""The memory budget of large bodies: the bodies of one namespace share a bounded amount of memory; further bodies wait.

A body that must wait is not read from its connection, so its client waits, too. Memory for a whole body is reserved
before the body is read; otherwise, many half-read bodies could fill the budget and wait for one another.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Mapping

from horae.server.route import Route

SMALL = 64 * 1024  # bytes; a body of at most this size reserves no memory
MOST = 256 * 1024 * 1024  # bytes for the large bodies of a namespace


class BodyBudget:
    """Counts the bytes of large bodies, by namespace. A body larger than the budget `most` is read alone."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._held: Counter[int] = Counter()
        self._waiting: dict[int, deque[tuple[int, asyncio.Future[None]]]] = {}

    async def enter(self, namespace: int, size: int) -> None:
        """Reserve `size` bytes, after the bodies that arrived earlier. The caller must call `leave` afterwards."""
        if namespace not in self._waiting and self._fits(namespace, size):
            self._held[namespace] += size
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(namespace, deque()).append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(namespace, size)
            raise

    def leave(self, namespace: int, size: int) -> None:
        """Release `size` bytes, and admit waiting bodies that fit now."""
        self._held[namespace] -= size
        waiting = self._waiting.get(namespace, deque())
        while waiting and (waiting[0][1].done() or self._fits(namespace, waiting[0][0])):
            wanted, turn = waiting.popleft()
            if not turn.done():
                self._held[namespace] += wanted
                turn.set_result(None)
        if not waiting:
            self._waiting.pop(namespace, None)
        if not self._held[namespace]:
            del self._held[namespace]

    def _fits(self, namespace: int, size: int) -> bool:
        held = self._held[namespace]
        return not held or held + size <= self._most


def large_body_size(route: Route, headers: Mapping[bytes, bytes]) -> int:
    """Return the most bytes that a request's body can have, by its headers and its route; 0 for a small body."""
    length = headers.get(b"content-length")
    most = route.limit if length is None or not length.isdigit() else min(int(length), route.limit)
    if length is None and b"transfer-encoding" not in headers:
        return 0
    return most if most > SMALL else 0
