"""The pulse: checks that PostgreSQL answers, made only while operations wait for it.

A database that refuses connections is noticed at once. If packets are dropped, there is no answer at all, and clients
would wait as long as their slowest statement may take. So when a connection has been in use for long, a new one is
tried. If that gets no answer either, all waiting operations fail, and so do new ones, until the database answers again.
Operations that wait for another host than the answering one fail too: that host was the primary before.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import asyncpg

from horae.env import Clock
from horae.errors import StoreUnavailable
from horae.store.postgres.pool import Pool

BEAT = 0.5  # seconds between checks; a connection in use at two checks has waited
PATIENCE = 2.0  # seconds in which a new connection must open
STALL = 0.5  # a delay of more than this many further seconds means that this process itself stalled
SILENT = "PostgreSQL does not answer: what is sent to it is lost on the way."


class Pulse:
    """Tells its pools when the database stops answering, and when it answers again."""

    def __init__(
        self,
        probe: Callable[[], Awaitable[None]],
        pools: Sequence[Pool],
        clock: Clock,
        is_left: Callable[[asyncpg.Connection], bool] = lambda connection: False,
    ) -> None:
        """Take `probe`, which opens and closes a connection, and `is_left`, which is true for a connection to a former
        host.
        """
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
            await self.check()

    async def check(self) -> None:
        """Try a new connection if one was in use at two checks, or if the last try failed."""
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
                pool.end_silence()

    async def _answers(self) -> bool:
        """Return whether a new connection gets an answer, even a refusal. A stall of this process proves nothing."""
        begun = self._clock.monotonic()
        try:
            async with asyncio.timeout(PATIENCE):
                await self._probe()
        except OSError:  # TimeoutError is an OSError
            return self._clock.monotonic() - begun > PATIENCE + STALL
        except Exception:
            return True
        return True
