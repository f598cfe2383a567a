"""Group commit: requests that arrive while a batch runs are done together in the next batch."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

from horae.errors import StoreUnavailable
from horae.model.base.buckets import Buckets

T = TypeVar("T")
R = TypeVar("R")
SIZES = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)


class Batcher(Generic[T, R]):
    """Serves the first caller at once and gathers concurrent callers: low latency, and high throughput under load.

    `run` returns one answer per item, in order; an answer may be an exception for that caller alone. When `run` itself
    raises, the items are repeated one by one, so that only the failing item fails. A batch that may have been committed
    (because the answer of its commit was lost) is not repeated, because it would be done twice.

    With several batches `in_flight`, items with the same `key` are never in two batches at a time: the second batch
    would only wait for the first one's locks in the store.
    """

    def __init__(
        self,
        run: Callable[[Sequence[T]], Awaitable[Sequence[R | BaseException]]],
        *,
        most: int,
        size: Callable[[T], int] = lambda _: 0,
        most_size: int = 0,
        in_flight: int = 1,
        key: Callable[[T], Hashable] | None = None,
    ) -> None:
        self._run, self._most, self._size, self._most_size = run, most, size, most_size
        self._key = key
        self.sizes = Buckets(SIZES)  # sizes of the batches so far
        self._busy: set[Hashable] = set()  # keys of the running batches
        self._pending: deque[tuple[T, asyncio.Future[R]]] = deque()
        self._in_flight = in_flight
        self._active = 0  # flushes that will check the pending items once more
        self._flushes: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._pending)

    async def do(self, item: T) -> R:
        """Do an item with the next batch and return its answer."""
        done: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._pending.append((item, done))
        if self._active < self._in_flight:
            self._active += 1
            flush = asyncio.create_task(self._flush())
            self._flushes.add(flush)
            flush.add_done_callback(self._flushes.discard)
        return await done

    async def close(self) -> None:
        """Finish all pending items."""
        while self._flushes:
            await asyncio.gather(*self._flushes, return_exceptions=True)

    async def _flush(self) -> None:
        batch: list[tuple[T, asyncio.Future[R]]] = []
        try:
            while batch := self._next():
                keys = {self._key(item) for item, _ in batch} if self._key is not None else set()
                self._busy |= keys
                self.sizes.add(len(batch))
                try:
                    await self._answer(batch)
                finally:
                    self._busy -= keys
        except asyncio.CancelledError:
            for _, done in (*batch, *self._pending):
                done.cancel()
            raise
        finally:
            self._active -= 1

    def _next(self) -> list[tuple[T, asyncio.Future[R]]]:
        """Take the next batch in the order of arrival. Items with the key of a running batch stay pending."""
        batch: list[tuple[T, asyncio.Future[R]]] = []
        passed: list[tuple[T, asyncio.Future[R]]] = []
        total = 0
        while self._pending and len(batch) < self._most:
            item = self._pending[0][0]
            if self._busy and self._key is not None and self._key(item) in self._busy:
                passed.append(self._pending.popleft())
                continue
            total += self._size(item)
            if batch and self._most_size and total > self._most_size:
                break
            batch.append(self._pending.popleft())
        self._pending.extendleft(reversed(passed))
        return batch

    async def _answer(self, batch: Sequence[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            answers = await self._run([item for item, _ in batch])
        except Exception as error:
            await self._one_by_one(batch, error)
            return
        for (_, done), answer in zip(batch, answers, strict=True):
            _resolve(done, answer)

    async def _one_by_one(self, batch: Sequence[tuple[T, asyncio.Future[R]]], error: Exception) -> None:
        if len(batch) == 1 or (isinstance(error, StoreUnavailable) and error.fields.get("unknown")):
            for _, done in batch:
                _resolve(done, error)
            return
        for pair in batch:
            await self._answer([pair])


def fail_together(
    read: Callable[[Sequence[T]], Awaitable[Sequence[R]]],
) -> Callable[[Sequence[T]], Awaitable[Sequence[R | BaseException]]]:
    """Make a read fail for its whole batch while the store is unreachable.

    Otherwise the batcher would repeat the items one by one, and each repetition would wait for the store again.
    """

    async def run(batch: Sequence[T]) -> Sequence[R | BaseException]:
        try:
            return await read(batch)
        except StoreUnavailable as error:
            return [error] * len(batch)

    return run


def _resolve(done: "asyncio.Future[R]", answer: R | BaseException) -> None:
    if done.done():
        return
    if isinstance(answer, BaseException):
        done.set_exception(answer)
    else:
        done.set_result(answer)
