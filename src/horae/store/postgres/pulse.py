"""The pulse: whether PostgreSQL still answers, asked only while somebody has waited for it for a while.

A database that refuses is noticed at once. One whose packets are dropped says nothing at all, and what waits for it
would wait as long as its slowest statement may take. So when a connection has been in use for long, a new one is tried:
if that is not answered either, whatever waits is told, and whoever comes is, until somebody answers again. What
waits for another host than the one that answers is told, too: that one was the primary before.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import asyncpg

from horae.env import Clock
from horae.errors import StoreUnavailable
from horae.store.postgres.pool import Pool

BEAT = 0.5  # seconds between two looks; what is in use at both has waited
PATIENCE = 2.0  # seconds in which a new connection must be there
STALL = 0.5  # seconds more than that mean that this process itself stood still
SILENT = "PostgreSQL does not answer: what is sent to it is lost on the way."


class Pulse:
    """Tells its pools when nobody answers, and when somebody does again."""

    def __init__(
        self,
        probe: Callable[[], Awaitable[None]],
        pools: Sequence[Pool],
        clock: Clock,
        is_left: Callable[[asyncpg.Connection], bool] = lambda connection: False,
    ) -> None:
        """`probe` opens a connection and lets go of it; `is_left` tells what leads to a host that serves no more."""
        self._probe, self._pools, self._clock, self._is_left = probe, pools, clock, is_left
        self._before: list[frozenset[int]] = [frozenset() for _ in pools]
        self._silent = False
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    def start(self) -> None:
        self._task = asyncio.create_task(self._beat())

    async def close(self) -> None:
        self._ended.set()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _beat(self) -> None:
        while not self._ended.is_set():
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ended.wait(), BEAT)
            await self.look()

    async def look(self) -> None:
        """Try a new connection if one has been in use since the last look, or if nobody answered then."""
        uses = [pool.uses() for pool in self._pools]
        waited = any(now & before for now, before in zip(uses, self._before, strict=True))
        self._before = uses
        if not waited and not self._silent:
            return
        self._silent = not await self._answers()
        for pool, waiting in zip(self._pools, uses, strict=True):
            if self._silent:
                pool.silence(StoreUnavailable(SILENT), waiting)
            else:
                pool.cut(waiting, self._is_left)
                pool.hear()

    async def _answers(self) -> bool:
        """Whether a new connection is answered, be it with a refusal. A stall of our own proves nothing."""
        begun = self._clock.monotonic()
        try:
            async with asyncio.timeout(PATIENCE):
                await self._probe()
        except OSError:  # a timeout is one
            return self._clock.monotonic() - begun > PATIENCE + STALL
        except Exception:
            return True
        return True
