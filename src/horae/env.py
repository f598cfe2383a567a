"""The outside world as one argument: the clock, ids and chance.

This is the only file that may read real time, uuid or random; a lint rule keeps it so. Production code gets
`system_env()`, a simulation builds an `Env` of its own on a `VirtualClock`.
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
Micros = int  # a length of time in microseconds

SECOND: Micros = 1_000_000
AHEAD, WIDTH = 256, 80  # how many times chance is drawn at once, and bits of each


class Clock(Protocol):
    """What time it is, and how to wait."""

    def now(self) -> Instant:
        """The time everything goes by. It moves by itself only as time passes; `follow` corrects it."""
        ...

    def wall(self) -> Instant:
        """What the machine's own clock shows, which somebody may set."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards and run on while the machine sleeps."""
        ...

    def follow(self, drift: Micros) -> None:
        """Move `now` by what it was measured to be off."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; zero yields to the event loop once."""
        ...


def _running_on() -> int:
    """The clock that nobody can set and that runs on in the machine's sleep, where there is one."""
    try:
        time.clock_gettime(time.CLOCK_BOOTTIME)
    except (AttributeError, OSError):
        return time.CLOCK_MONOTONIC
    return time.CLOCK_BOOTTIME


_STEADY = _running_on()


def steady_time() -> Micros:
    """Microseconds since some instant in the past, whatever becomes of the machine's wall clock."""
    return time.clock_gettime_ns(_STEADY) // 1000


def wall_time() -> Instant:
    """What the machine's own clock shows."""
    return time.time_ns() // 1000


class SystemClock:
    """A clock that cannot be set, plus a measured base: a step of the machine's wall clock moves nothing by itself."""

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
    """A clock that stands still until it is moved; sleepers wake in the order of their instants."""

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
        """It is never off."""

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + max(1, round(seconds * SECOND)), next(self._order), woken))
        await woken

    def advance(self, span: Micros) -> None:
        """Move time forward, waking whoever slept until then."""
        self._now += span
        while self._sleepers and self._sleepers[0][0] <= self._now:
            woken = heapq.heappop(self._sleepers)[2]
            if not woken.done():
                woken.set_result(None)

    def next_wake(self) -> Instant | None:
        """The earliest instant somebody sleeps until."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None


@dataclass(frozen=True)
class Env:
    """Clock, ids and chance. `ids` makes a UUIDv7 for a given instant."""

    clock: Clock
    ids: Callable[[Instant], UUID]
    rng: Random

    def now(self) -> Instant:
        return self.clock.now()

    def new_id(self) -> UUID:
        return self.ids(self.clock.now())


def uuid7(rng: Random) -> Callable[[Instant], UUID]:
    """Make UUIDv7s whose time bits come from the given instant and whose rest comes from `rng`."""

    def make(at: Instant) -> UUID:
        chance = rng.getrandbits(74)
        value = (
            (at // 1000 & 0xFFFF_FFFF_FFFF) << 80 | 7 << 76 | (chance >> 62) << 64 | 2 << 62 | chance & (1 << 62) - 1
        )
        return uuid_of(value)

    return make


_new, _set, _UNKNOWN = object.__new__, object.__setattr__, SafeUUID.unknown


def uuid_of(value: int) -> UUID:
    """What UUID(int=value) makes, at a third of its cost: every execution that is made or moved is named here."""
    made = _new(UUID)
    _set(made, "int", value)
    _set(made, "is_safe", _UNKNOWN)
    return made


class DrawnAhead(SystemRandom):
    """The operating system's chance, drawn for many ids at a time. A fork forgets what was drawn before it."""

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


_ALL_DRAWN: WeakSet[DrawnAhead] = WeakSet()


def _forget_drawn() -> None:
    for each in _ALL_DRAWN:
        each._drawn.clear()


os.register_at_fork(after_in_child=_forget_drawn)


def system_env() -> Env:
    """The real world; its ids draw from the operating system, so neither forks nor seeds repeat them."""
    return Env(SystemClock(), uuid7(DrawnAhead()), Random())


def virtual_env(seed: int = 0, clock: VirtualClock | None = None) -> Env:
    """A world of its own that repeats itself for equal seeds."""
    return Env(clock or VirtualClock(), uuid7(Random(seed)), Random(seed + 1))
