"""Batches of steps to remember: all steps that end while calls are in flight are sent together in the next call."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from uuid import UUID

from msgspec import Raw

from horae.errors import Busy, Conflict, HoraeError, NotFound
from horae.model.fleet.protocol import MOST_STEPS, Remember, Remembered, Step

IN_FLIGHT = 2  # calls at once
MOST_BYTES = 1024 * 1024  # bytes of results in one call; a single larger result is sent alone

Send = Callable[[UUID, Remember], Awaitable[Remembered]]
Waiting = tuple[UUID, Step, "asyncio.Future[Raw]"]


class StepBatcher:
    """Sends steps to the servers in batches. Each caller waits until its own step is stored."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waiting: deque[Waiting] = deque()
        self._flushes: set[asyncio.Task[None]] = set()

    async def remember(self, session: UUID, step: Step) -> Raw:
        """Store the result of a step and return the stored result: an earlier one, if there is one already.

        Raises the server's error if it refuses the step.
        """
        stored: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._waiting.append((session, step, stored))
        if len(self._flushes) < IN_FLIGHT:
            flush = asyncio.create_task(self._flush())
            self._flushes.add(flush)
            flush.add_done_callback(self._flushes.discard)
        return await stored

    async def close(self) -> None:
        """Cancel the calls in flight."""
        for flush in list(self._flushes):
            flush.cancel()
        await asyncio.gather(*self._flushes, return_exceptions=True)

    async def _flush(self) -> None:
        while self._waiting:
            await self._call(self._next())

    def _next(self) -> list[Waiting]:
        """Take as many waiting steps of one session as one call may carry."""
        batch = [self._waiting.popleft()]
        size = len(bytes(batch[0][1].result))
        while self._waiting and len(batch) < MOST_STEPS and self._waiting[0][0] == batch[0][0]:
            size += len(bytes(self._waiting[0][1].result))
            if size > MOST_BYTES:
                break
            batch.append(self._waiting.popleft())
        return batch

    async def _call(self, batch: list[Waiting]) -> None:
        """Send one call; if it is refused, send each step alone, so that only the faulty one fails."""
        try:
            answer = await self._send(batch[0][0], Remember(steps=[step for _, step, _ in batch]))
        except HoraeError as error:
            if len(batch) == 1 or isinstance(error, Busy | NotFound):  # no single step is at fault
                for _, _, stored in batch:
                    _fail(stored, error)
                return
            for one in batch:
                await self._call([one])
            return
        except BaseException:
            for _, _, stored in batch:
                stored.cancel()
            raise
        for (_, step, stored), answered in zip(batch, answer.steps, strict=True):
            if answered.refused:
                _fail(
                    stored, Conflict("This session does not hold that execution at that attempt.", "Stop running it.")
                )
            elif not stored.done():
                stored.set_result(answered.result if answered.known else step.result)


def _fail(stored: "asyncio.Future[Raw]", error: Exception) -> None:
    if not stored.done():
        stored.set_exception(error)
