"""The pulse: checks whether PostgreSQL answers, made only while operations wait for it.

A database that refuses connections is noticed at once. But if packets are lost, there is no answer at all, and each
operation would wait until its statement timeout. So when a connection is still in use at the next check, the pulse
opens a new one. If that gets no answer either, all waiting operations fail, and new ones fail at once, until the
database answers again. If it does get an answer, only operations that wait for a former primary fail.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import asyncpg

from horae.env import Clock
from horae.errors import StoreUnavailable
from horae.store.postgres.pool import Pool

BEAT = 0.5  # seconds between checks; a use of a connection that is seen at two checks counts as waiting
PATIENCE = 2.0  # seconds in which a new connection must open
# If a check lasts more than PATIENCE and this many seconds, this process itself stalled, and the check says nothing.
STALL = 0.5
SILENT = "PostgreSQL does not answer: it may be hanging, or packets to it are lost."


class Pulse:
    """Makes the operations of its pools fail while the database does not answer."""

    def __init__(
        self,
        probe: Callable[[], Awaitable[None]],
        pools: Sequence[Pool],
        clock: Clock,
        is_left: Callable[[asyncpg.Connection], bool] = lambda connection: False,
    ) -> None:
        """Check the database with `probe`, which opens and closes a connection.

        `is_left` returns whether a connection leads to a former primary.
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
        """Try a new connection if one has been in use since the last check, or if the last try failed."""
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
        """Return whether a new connection gets an answer, which may be a refusal.

        Return True also if this process itself stalled, because then the missing answer proves nothing.
        """
        begun = self._clock.monotonic()
        try:
            async with asyncio.timeout(PATIENCE):
                await self._probe()
        except OSError:  # TimeoutError is an OSError
            return self._clock.monotonic() - begun > PATIENCE + STALL
        except Exception:
            return True
        return True
