"""The outside world as one argument: the clock, ids and randomness.

Only this file may read real time, uuid or random; a lint rule checks it. Production code gets `system_env()`; a
simulation builds its own `Env` on a `VirtualClock`.
"""

import asyncio
import heapq
import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random, SystemRandom
from typing import Protocol
from uuid import UUID, SafeUUID
from weakref import WeakSet

Instant = int  # microseconds since the Unix epoch, UTC
Micros = int  # a duration in microseconds

SECOND: Micros = 1_000_000
AHEAD, WIDTH = 256, 80  # the number of random numbers that are drawn at once, and the bits of each


class Clock(Protocol):
    """A source of time that can also wait."""

    def now(self) -> Instant:
        """Return Horae's time. Setting the machine's clock does not change it; only `follow` corrects it."""
        ...

    def wall(self) -> Instant:
        """Return the time of the machine's wall clock, which jumps when it is set."""
        ...

    def monotonic(self) -> float:
        """Return the seconds since some fixed instant. They never decrease, and they count while the machine sleeps."""
        ...

    def follow(self, drift: Micros) -> None:
        """Add a measured drift to `now`; a negative drift sets it back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for this many seconds; zero only lets other tasks of the event loop run once."""
        ...


def _steady_clock_id() -> int:
    """Return the id of a clock that cannot be set and that, if the system has such a clock, runs during sleep."""
    try:
        time.clock_gettime(time.CLOCK_BOOTTIME)
    except (AttributeError, OSError):
        return time.CLOCK_MONOTONIC
    return time.CLOCK_BOOTTIME


_STEADY = _steady_clock_id()


def steady_time() -> Micros:
    """Return microseconds since an instant in the past, unaffected by changes of the wall clock."""
    return time.clock_gettime_ns(_STEADY) // 1000


def wall_time() -> Instant:
    """Return the time of the machine's wall clock."""
    return time.time_ns() // 1000


class SystemClock:
    """The machine's monotonic clock plus its distance from the wall clock, measured once.

    If the wall clock is set later, `now` does not change until `follow` corrects it.
    """

    def __init__(self, wall: Callable[[], Instant] = wall_time, steady: Callable[[], Micros] = steady_time) -> None:
        self._wall, self._steady = wall, steady
        self._base = wall() - steady()

    def now(self) -> Instant:
        return self._base + self._steady()

    def wall(self) -> Instant:
        return self._wall()

    def monotonic(self) -> float:
        return self._steady() / SECOND

    def follow(self, drift: Micros) -> None:
        self._base += drift

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class VirtualClock:
    """A clock that moves only when `advance` is called; sleepers wake in the order of their wake times."""

    def __init__(self, start: Instant = 1_800_000_000 * SECOND) -> None:
        self._now = start
        self._start = start
        self._order = itertools.count()
        self._sleepers: list[tuple[Instant, int, asyncio.Future[None]]] = []

    def now(self) -> Instant:
        return self._now

    def wall(self) -> Instant:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._start) / SECOND

    def follow(self, drift: Micros) -> None:
        """Do nothing: a virtual clock has no drift."""

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + max(1, round(seconds * SECOND)), next(self._order), woken))
        await woken

    def advance(self, span: Micros) -> None:
        """Move time forward, and wake sleepers whose time has come."""
        self._now += span
        while self._sleepers and self._sleepers[0][0] <= self._now:
            woken = heapq.heappop(self._sleepers)[2]
            if not woken.done():
                woken.set_result(None)

    def next_wake(self) -> Instant | None:
        """Return the instant at which the next sleeper wakes; None without sleepers."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None


@dataclass(frozen=True)
class Env:
    """Clock, ids and randomness. `ids` makes a UUIDv7 for a given instant."""

    clock: Clock
    ids: Callable[[Instant], UUID]
    rng: Random

    def now(self) -> Instant:
        return self.clock.now()

    def new_id(self) -> UUID:
        return self.ids(self.clock.now())


def uuid7(rng: Random) -> Callable[[Instant], UUID]:
    """Return a function that makes UUIDv7s, with time bits from an instant and the other bits from `rng`."""

    def make(at: Instant) -> UUID:
        chance = rng.getrandbits(74)
        value = (
            (at // 1000 & 0xFFFF_FFFF_FFFF) << 80 | 7 << 76 | (chance >> 62) << 64 | 2 << 62 | chance & (1 << 62) - 1
        )
        return uuid_of(value)

    return make


_new, _set, _UNKNOWN = object.__new__, object.__setattr__, SafeUUID.unknown


def uuid_of(value: int) -> UUID:
    """Return the same as `UUID(int=value)` at a third of its cost.

    The cost matters because every execution that is created or moved needs a UUID.
    """
    made = _new(UUID)
    _set(made, "int", value)
    _set(made, "is_safe", _UNKNOWN)
    return made


class BufferedRandom(SystemRandom):
    """The operating system's randomness, drawn for many ids at a time.

    A forked process discards the numbers that were drawn before the fork, so that it does not repeat its parent's ids.
    """

    def __init__(self) -> None:
        super().__init__()
        self._drawn: list[int] = []
        _ALL_DRAWN.add(self)

    def getrandbits(self, k: int, /) -> int:
        if k > WIDTH:
            return super().getrandbits(k)
        if not self._drawn:
            block = memoryview(os.urandom(AHEAD * WIDTH // 8))
            self._drawn += [int.from_bytes(block[at : at + WIDTH // 8]) for at in range(0, len(block), WIDTH // 8)]
        return self._drawn.pop() >> (WIDTH - k)


_ALL_DRAWN: WeakSet[BufferedRandom] = WeakSet()


def _forget_drawn() -> None:
    for each in _ALL_DRAWN:
        each._drawn.clear()


os.register_at_fork(after_in_child=_forget_drawn)


def system_env() -> Env:
    """Return the real environment.

    Its ids use the operating system's randomness, so that neither a fork nor a random seed repeats an id.
    """
    return Env(SystemClock(), uuid7(BufferedRandom()), Random())


def virtual_env(seed: int = 0, clock: VirtualClock | None = None) -> Env:
    """Return a virtual environment, which is reproducible for equal seeds."""
    return Env(clock or VirtualClock(), uuid7(Random(seed)), Random(seed + 1))
