"""Reads that come together are one statement.

What is asked for while a statement is under way is read by the next one. Each read begins after it was asked for, so it
sees every change that was acknowledged before, by whatever server; nothing is remembered from one to the next.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST = 32  # things in one statement: on SQLite it holds the event loop, about 2 ms with so many
IN_FLIGHT = 2  # statements: a slow one keeps others waiting only behind a second slow one


class Lookup(Generic[K, V]):
    """Finds things by key; whoever asks for the same thing at the same time shares what is found."""

    def __init__(self, read: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]], most: int = MOST) -> None:
        self._read, self._most = read, most
        self._asked: dict[K, list[asyncio.Future[V | None]]] = {}
        self._flushes: set[asyncio.Task[None]] = set()
        self._begins = False  # a flush that has not looked yet: whoever comes before it does is read with it

    async def get(self, key: K) -> V | None:
        """What is stored under a key, as it is after this was called."""
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
        if self._asked:  # since it last looked
            self._start()

    async def _flush(self) -> None:
        self._begins = False
        while self._asked:
            keys = list(self._asked)[: self._most]
            waiting = [(key, self._asked.pop(key)) for key in keys]
            try:
                found = await self._read(keys)
            except BaseException as error:
                _fail([one for _, some in waiting for one in some], error)
                if not isinstance(error, Exception):
                    raise
                continue
            for key, some in waiting:
                value = found.get(key)
                for one in some:
                    if not one.done():
                        one.set_result(value)


def _fail(waiting: Sequence["asyncio.Future[V]"], error: BaseException) -> None:
    for one in waiting:
        if one.done():
            continue
        if isinstance(error, Exception):
            one.set_exception(error)
        else:
            one.cancel()
