"""LISTEN on a separate connection, which is reopened when it breaks."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import asyncpg

from horae.env import Env
from horae.store.postgres.faults import BROKEN
from horae.store.postgres.pool import Connect

CHANNEL = "horae"
_PROBE = 5.0  # seconds between checks of the connection
_PAUSE = 0.5  # seconds before a broken connection is reopened
_PATIENCE = 5.0  # seconds that `add` waits for the connection


class Listener:
    """Calls back with every notification, except those sent during a reconnection: hints may be lost."""

    def __init__(self, connect: Connect, env: Env) -> None:
        self._connect = connect
        self._clock = env.clock
        self._callbacks: list[Callable[[str], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._listening = asyncio.Event()

    async def add(self, callback: Callable[[str], None]) -> None:
        """Add a callback, and return when the connection listens.

        Return after a few seconds in any case, because hints may be lost and are not worth waiting for.
        """
        self._callbacks.append(callback)
        if self._task is None:
            self._task = asyncio.create_task(self._stay())
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._listening.wait(), _PATIENCE)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _stay(self) -> None:
        while True:
            with suppress(*BROKEN, asyncpg.PostgresError):
                await self._once()
            await self._clock.sleep(_PAUSE)

    async def _once(self) -> None:
        connection = await self._connect()
        try:
            ended = asyncio.Event()
            connection.add_termination_listener(lambda _: ended.set())
            await connection.add_listener(CHANNEL, self._heard)
            self._listening.set()
            while not ended.is_set():
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(ended.wait(), _PROBE)
                    return
                await connection.execute("SELECT 1", timeout=2)
        finally:
            connection.terminate()

    def _heard(self, _connection: Any, _pid: int, _channel: str, payload: object) -> None:
        for callback in self._callbacks:
            callback(str(payload))
