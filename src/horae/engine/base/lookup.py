"""Concurrent reads in one statement.

Keys that are requested while a statement runs are read by the next one. Each read begins after its request, so it sees
every change that any server acknowledged before. Nothing is cached between statements.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST = 32  # keys in one statement: on SQLite a statement blocks the event loop, about 2 ms for this many
IN_FLIGHT = 2  # statements at a time: requests wait only while both run


class Lookup(Generic[K, V]):
    """Finds values by key. Concurrent requests for the same key share one answer."""

    def __init__(self, read: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]], most: int = MOST) -> None:
        self._read, self._most = read, most
        self._asked: dict[K, list[asyncio.Future[V | None]]] = {}
        self._flushes: set[asyncio.Task[None]] = set()
        self._begins = False  # a flush was created but has not taken its keys yet: later requests still join it

    async def get(self, key: K) -> V | None:
        """Return the value of a key, read after this call began."""
        found: asyncio.Future[V | None] = asyncio.get_running_loop().create_future()
        waiting = self._asked.get(key)
        if waiting is None:
            self._asked[key] = [found]
            self._start()
        else:
            waiting.append(found)
        return await found

    def _start(self) -> None:
        if not self._begins and len(self._flushes) < IN_FLIGHT:
            self._begins = True
            flush = asyncio.create_task(self._flush())
            self._flushes.add(flush)
            flush.add_done_callback(self._ended)

    def _ended(self, flush: "asyncio.Task[None]") -> None:
        self._flushes.discard(flush)
        if self._asked:  # requests arrived after the flush took its last keys
            self._start()

    async def _flush(self) -> None:
        self._begins = False
        while self._asked:
            keys = list(self._asked)[: self._most]
            waiting = [(key, self._asked.pop(key)) for key in keys]
            try:
                found = await self._read(keys)
            except BaseException as error:
                _fail([future for _, futures in waiting for future in futures], error)
                if not isinstance(error, Exception):
                    raise
                continue
            for key, futures in waiting:
                value = found.get(key)
                for future in futures:
                    if not future.done():
                        future.set_result(value)


def _fail(waiting: Sequence["asyncio.Future[V]"], error: BaseException) -> None:
    for future in waiting:
        if future.done():
            continue
        if isinstance(error, Exception):
            future.set_exception(error)
        else:
            future.cancel()
