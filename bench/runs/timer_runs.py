"""Runs of `python -m bench timers`.

Triggers are written, servers fire them, and the results are read from the store.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from math import inf

from bench.kit.command import Steps
from bench.kit.load import counts, one_request
from bench.kit.results import percentile
from bench.kit.stage import Stage, staged
from bench.kit.stores import Source
from bench.kit.usage import rss_bytes
from bench.kit.wire import connected
from bench.runs.timer_fill import Load, filling_timers, herd, resting, steady
from bench.runs.timer_fires import FireRecords, read_fires
from horae.env import SECOND, Env, Instant
from horae.errors import HoraeError
from horae.model.triggers.decisions.named_trigger import NamedTrigger

PER_JOB = 10
MANY = 1_000_000  # triggers between two progress messages
PROBES = 20  # requests per second beside the fires
HEADWAY = 2.0  # seconds between the last written trigger and the first due one: servers start meanwhile
PATIENCE = 120.0
SETTLE = 3 * SECOND  # after the last due fire
QUICK = 25_000  # fires per second: the earliest end that is checked for, so that counting does not disturb the fires
FEW, BRIEF = 10, 60  # fires per second, and seconds in which a server starts

Figures = list[tuple[str, float, str]]


class Runs:
    """Measurements on one store, run after run; queued executions stay there."""

    def __init__(self, env: Env, source: Source, url: str, steps: Steps) -> None:
        self._env, self._source, self._url, self._steps = env, source, url, steps
        self._number = count()
        self._opening, self._pace = 0.0, inf  # seconds to open the store, and triggers written per second after that

    async def load(self, triggers: int) -> Figures:
        """Write the triggers at rest; return the rate and their size on disk."""
        self._begin(f"{triggers:,} triggers are written")
        async with staged(self._env, self._url) as stage:  # a store that was in use, if only for a moment
            await self._until(stage, self._env.now() + SETTLE)
        before, opening = await self._source.size(self._url), time.perf_counter()
        async with filling_timers(self._env, self._url) as filler:
            begun = time.perf_counter()
            await filler.load(Load("rest", self._with_progress(resting(triggers, self._env.now())), PER_JOB))
            took = time.perf_counter() - begun
        grown = await self._source.size(self._url) - before
        self._opening, self._pace = begun - opening, triggers / took
        self._steps.done()
        return [("triggers written", triggers / took, "1/s"), ("disk", grown / triggers, "bytes/trigger")]

    async def start(self) -> Figures:
        """Measure the time from the start of a server's process to the first fire, and its memory with all triggers."""
        self._begin("a server starts")
        at = self._env.now() + SECOND
        await self._write("start", steady(FEW, BRIEF, at), PER_JOB, at + BRIEF * SECOND)
        begun = self._env.now()
        async with staged(self._env, self._url) as stage:
            await self._queued(stage, 1)
            await self._until(stage, self._env.now() + SETTLE)
            memory = rss_bytes(stage.server.pid)
        found = await read_fires(self._env, self._url, at)
        self._steps.done()
        return [("first fire", (found.first - begun) / SECOND, "s"), ("server memory", memory / 2**20, "MiB")]

    async def steady(self, rate: int, seconds: int) -> Figures:
        """Measure fires one after another."""
        self._begin(f"{rate:,} fires a second")
        at = self._soon(rate * seconds)
        await self._write("steady", steady(rate, seconds, at), PER_JOB, at)
        async with staged(self._env, self._url) as stage, _probed(stage) as probes:
            await self._until(stage, at + seconds * SECOND + SETTLE)
            memory = rss_bytes(stage.server.pid)
        found = await read_fires(self._env, self._url, at)
        self._steps.done()
        return [
            *_lags(found),
            *_exactly(found, rate * seconds),
            ("API p99", percentile(probes, 0.99) * 1000, "ms"),
            ("server memory", memory / 2**20, "MiB"),
        ]

    async def herd(self, triggers: int, per_job: int, servers: int = 1) -> Figures:
        """Measure fires at one instant."""
        self._begin(f"{triggers:,} at once")
        at = self._soon(triggers, servers)
        await self._write("herd", herd(triggers, at), per_job, at, ran=True)
        async with staged(self._env, self._url, servers) as stage:
            there = (await counts(stage)).get("queued", 0)
            await self._until(stage, at - SECOND)
            probed_from = self._env.now()
            async with _probed(stage) as probes:
                await self._until(stage, at + triggers * SECOND // QUICK)
                await self._queued(stage, there + triggers)
            memory = max(rss_bytes(server.pid) for server in stage.servers)
        found = await read_fires(self._env, self._url, at)
        self._steps.done()
        took = found.took(at)
        meanwhile = probes[: round(((at - probed_from) / SECOND + took) * PROBES)]
        return [
            ("fires", triggers / took, "1/s"),
            ("all queued after", took, "s"),
            *_exactly(found, triggers),
            ("API p99", percentile(meanwhile, 0.99) * 1000, "ms"),
            ("server memory", memory / 2**20, "MiB"),
        ]

    async def killed(self, rate: int, seconds: int, servers: int) -> Figures:
        """Measure fires one after another while one of the servers is killed."""
        self._begin("a server is killed")
        at = self._soon(rate * seconds, servers)
        await self._write("killed", steady(rate, seconds, at), PER_JOB, at)
        async with staged(self._env, self._url, servers) as stage:
            await self._until(stage, at + seconds * SECOND // 2)
            stage.kill_server(0)
            await self._until(stage, at + seconds * SECOND + SETTLE)
        found = await read_fires(self._env, self._url, at)
        self._steps.done()
        return [("longest gap", found.gap / SECOND, "s"), *_lags(found), *_exactly(found, rate * seconds)]

    def _with_progress(self, whens: Iterator[NamedTrigger]) -> Iterator[NamedTrigger]:
        """Yield the same triggers, and print a message per million."""
        for number, when in enumerate(whens, 1):
            yield when
            if number % MANY == 0:
                self._steps.tell(f"{self._source.name}: {number:,} triggers are written")

    def _begin(self, what: str) -> None:
        self._steps.begin(f"{self._source.name}: {what}")

    def _soon(self, triggers: int, servers: int = 1) -> Instant:
        """Return a whole second at which the triggers are written and all servers have started."""
        seconds = HEADWAY + 2 * servers + 2 * self._opening + 2 * triggers / self._pace
        return (self._env.now() // SECOND + round(seconds)) * SECOND

    async def _write(
        self, name: str, whens: Iterator[NamedTrigger], per_job: int, before: Instant, *, ran: bool = False
    ) -> None:
        async with filling_timers(self._env, self._url) as filler:
            await filler.load(Load(f"{name}{next(self._number)}", whens, per_job, ran))
        if self._env.now() >= before:
            raise HoraeError(
                "Triggers were due before all of them were written.", "Is this machine busy with other work?"
            )

    async def _until(self, stage: Stage, at: Instant) -> None:
        while self._env.now() < at:
            stage.check()
            await self._env.clock.sleep(min(0.5, max(0.0, (at - self._env.now()) / SECOND)))

    async def _queued(self, stage: Stage, count: int) -> None:
        """Wait until enough executions are queued; counting them costs the servers a little."""

        async def all_are() -> bool:
            return (await counts(stage)).get("queued", 0) >= count

        await stage.until(all_are, f"{count:,} executions to be queued", PATIENCE, 1.0)
        await self._env.clock.sleep(1.0)  # some of those may be the bench's own


def _lags(found: FireRecords) -> Figures:
    """Return the lags from the nominal instant."""
    return [(f"lag p{share}", percentile(found.lags, share / 100) / 1000, "ms") for share in (50, 99, 100)]


def _exactly(found: FireRecords, expected: int) -> Figures:
    """Return the numbers of lost and of repeated fires."""
    return [
        ("not fired", float(expected - found.fired), ""),
        ("fired twice", float(found.executions - found.fired), ""),
    ]


@asynccontextmanager
async def _probed(stage: Stage) -> AsyncIterator[list[float]]:
    """Yield the durations of requests during the block: a job is read and an execution submitted, in turn."""
    took: list[float] = []
    stopped = asyncio.Event()

    def requests() -> Iterator[bytes]:
        for number in count():
            if stopped.is_set():
                return
            yield stage.request("GET", "/jobs/bench-noop") if number % 2 else one_request(stage, number)

    async with connected(stage.url, 2) as wires:
        task = asyncio.create_task(wires.send_paced(stage.env.clock, requests(), PROBES))
        try:
            yield took
            stopped.set()
            took += (await task).took
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
