"""Scheduled calls by the clock of the environment, so that a simulation can control them."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Any

from horae.env import Clock


class ScheduledCall:
    """A call that is still to be made."""

    __slots__ = ("_timers", "args", "call")

    def __init__(self, timers: "Timers", call: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.call: Callable[..., object] | None = call
        self.args = args
        self._timers = timers

    def cancel(self) -> None:
        """Cancel the call. Its timer is removed when it is due, or with many other cancelled timers."""
        if self.call is not None:
            self.call, self.args = None, ()
            self._timers.forget_one()


class Timers:
    """Any number of timers that share one sleeping task."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, ScheduledCall]] = []
        self._order = itertools.count()
        self._sleeper: asyncio.Task[None] | None = None
        self._sleeps_until = 0.0
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, when: float, call: Callable[..., object], *args: Any) -> ScheduledCall:
        """Call at a monotonic time, or as soon as possible after it."""
        timer = ScheduledCall(self, call, args)
        heapq.heappush(self._heap, (when, next(self._order), timer))
        if self._sleeper is None or when < self._sleeps_until:
            self._sleep()
        return timer

    def after(self, seconds: float, call: Callable[..., object], *args: Any) -> ScheduledCall:
        """Call after this many seconds."""
        return self.at(self._clock.monotonic() + seconds, call, *args)

    def forget_one(self) -> None:
        """Count a cancelled timer. If these are more than 100, and more than half of all, remove them."""
        self._cancelled += 1
        if self._cancelled > 100 and self._cancelled > len(self._heap) // 2:
            self._heap = [entry for entry in self._heap if entry[2].call is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def close(self) -> None:
        self._heap.clear()
        if self._sleeper is not None:
            self._sleeper.cancel()

    def _sleep(self) -> None:
        if self._sleeper is not None:
            self._sleeper.cancel()
        self._sleeps_until = self._heap[0][0]
        self._sleeper = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while self._heap:
            self._sleeps_until = self._heap[0][0]
            wait = self._sleeps_until - self._clock.monotonic()
            if wait > 0:
                await self._clock.sleep(wait)
            self._ring()
        self._sleeper = None

    def _ring(self) -> None:
        now = self._clock.monotonic()
        due = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        for timer in due:
            call, timer.call = timer.call, None
            if call is not None:
                call(*timer.args)
            else:
                self._cancelled = max(0, self._cancelled - 1)
