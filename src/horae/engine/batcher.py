"""Group commit: what concurrent callers ask for while a batch is under way is done together in the next one."""

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
    """Latency at low load, throughput at high load: the first caller is served at once, the others meet.

    `run` answers each of a batch in order; an answer may be an exception for that caller alone. When `run` itself
    raises, the batch is repeated one by one, so that only the guilty one fails; but not when it may have been done
    all the same (a commit whose answer was lost), for then it would be done twice.

    With several batches `in_flight`, those with the same `key` are never in two of them: they would wait for one
    another in the store, where they meet nobody.
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
        self.sizes = Buckets(SIZES)  # of the batches so far
        self._busy: set[Hashable] = set()  # keys of what is under way
        self._pending: deque[tuple[T, asyncio.Future[R]]] = deque()
        self._in_flight = in_flight
        self._active = 0  # flushes that will look at what is pending once more
        self._flushes: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._pending)

    async def do(self, what: T) -> R:
        """Have something done with the next batch."""
        done: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._pending.append((what, done))
        if self._active < self._in_flight:
            self._active += 1
            flush = asyncio.create_task(self._flush())
            self._flushes.add(flush)
            flush.add_done_callback(self._flushes.discard)
        return await done

    async def close(self) -> None:
        """Finish what was asked for."""
        while self._flushes:
            await asyncio.gather(*self._flushes, return_exceptions=True)

    async def _flush(self) -> None:
        try:
            while batch := self._next():
                keys = {self._key(what) for what, _ in batch} if self._key is not None else set()
                self._busy |= keys
                self.sizes.add(len(batch))
                try:
                    await self._answer(batch)
                finally:
                    self._busy -= keys
        except asyncio.CancelledError:
            for _, done in self._pending:
                done.cancel()
            raise
        finally:
            self._active -= 1

    def _next(self) -> list[tuple[T, asyncio.Future[R]]]:
        """What is done next, in the order in which it came; what waits for others of its key is passed over."""
        batch: list[tuple[T, asyncio.Future[R]]] = []
        passed: list[tuple[T, asyncio.Future[R]]] = []
        total = 0
        while self._pending and len(batch) < self._most:
            what = self._pending[0][0]
            if self._busy and self._key is not None and self._key(what) in self._busy:
                passed.append(self._pending.popleft())
                continue
            total += self._size(what)
            if batch and self._most_size and total > self._most_size:
                break
            batch.append(self._pending.popleft())
        self._pending.extendleft(reversed(passed))
        return batch

    async def _answer(self, batch: Sequence[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            answers = await self._run([what for what, _ in batch])
        except asyncio.CancelledError:
            for _, done in batch:
                done.cancel()
            raise
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
        for one in batch:
            await self._answer([one])


def all_fail(
    read: Callable[[Sequence[T]], Awaitable[Sequence[R]]],
) -> Callable[[Sequence[T]], Awaitable[Sequence[R | BaseException]]]:
    """A read that does not reach the store fails for the whole batch: none of it is guilty, each would wait in turn."""

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
