"""Load: bulk submissions, and waiting until all submitted executions have ended."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from itertools import repeat

import msgspec
from msgspec import Struct

from bench.kit.stage import Stage
from bench.kit.usage import cpu_seconds
from bench.kit.wire import connected
from horae.client.transport.calls import path_of
from horae.errors import HoraeError

PATIENCE = 900.0  # seconds for one load to end
LOOK, FIRST_LOOK, LAST_LOOK = 0.005, 0.05, 0.5  # seconds between checks
LIVE = ("waiting", "queued", "running")
Submit = Callable[[Stage, int], Awaitable[float]]


class LoadRates(Struct, frozen=True):
    """The rates of one load, in executions per second."""

    submitted: float  # from the first request to the last acknowledgement
    ended: float  # from the first request, or claim, to the end of the last execution
    server: float = 0.0  # microseconds of processor time per execution
    worker: float = 0.0


async def counts(stage: Stage) -> dict[str, int]:
    """Return the number of executions by status.

    Those that have not ended are counted on the shelves, so their numbers are exact.
    """
    found: dict[str, int] = await stage.client._caller.get(path_of("executions", "counts"))
    return found


async def submit(stage: Stage, count: int, job: str = "bench-noop") -> float:
    """Submit executions in bulk; return the seconds it took."""
    begun = time.perf_counter()
    accepted = await stage.client.submit_many(job, _items(count))
    took = time.perf_counter() - begun
    refused = [item for item in accepted if item.execution_id is None]
    if refused or len(accepted) != count:
        raise HoraeError(f"{count - len(accepted) + len(refused)} of {count} submissions were refused: {refused[:1]}")
    return took


def _items(count: int) -> Iterable[dict[str, int]]:
    return ({"i": i} for i in range(count))


async def submit_singly(stage: Stage, count: int, clients: int = 64) -> float:
    """Submit executions, one per request, over several connections; return the seconds it took."""
    requests = [one_request(stage, i) for i in range(count)]
    async with connected(stage.url, clients) as wires:
        begun = time.perf_counter()
        await wires.send_all(requests)
        return time.perf_counter() - begun


async def submit_lots(stage: Stage, count: int, per_request: int, clients: int = 4) -> float:
    """Submit executions in bulk, without the SDK; return the seconds it took."""
    request = lot_request(stage, per_request)
    async with connected(stage.url, clients) as wires:
        begun = time.perf_counter()
        await wires.send_all(repeat(request, count // per_request))
        return time.perf_counter() - begun


def one_request(stage: Stage, i: int, job: str = "bench-noop", server: int = 0) -> bytes:
    """Return a request that submits one execution."""
    return stage.request("POST", "/executions", b'{"job":"%b","params":{"i":%d}}' % (job.encode(), i), server)


def lot_request(stage: Stage, count: int) -> bytes:
    """Return a request that submits many executions."""
    items = msgspec.json.encode(list(_items(count)))
    return stage.request("POST", "/executions", b'{"job":"bench-noop","items":%b}' % items)


@asynccontextmanager
async def background(stage: Stage, rate: float, per_request: int = 500) -> AsyncIterator[Callable[[], int]]:
    """Submit in bulk at a rate while the block lasts; yield a function that returns the number of sent executions."""
    sent = 0

    def requests() -> Iterable[bytes]:
        nonlocal sent
        for request in repeat(lot_request(stage, per_request)):
            yield request
            sent += per_request

    async with connected(stage.url, 8) as wires:
        task = asyncio.create_task(wires.send_paced(stage.env.clock, requests(), rate / per_request))
        try:
            yield lambda: sent
            if task.done():
                task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def drained(stage: Stage, to: int = 0) -> None:
    """Wait until at most `to` executions have not ended.

    The checks are timed by the measured rate, so they cost the server little. The end is noticed late by at most a
    tenth of the time that has passed.
    """
    clock = stage.env.clock
    before, looked = 0, 0.0
    begun = clock.monotonic()
    ends_at = begun + PATIENCE
    while (left := await live(stage) - to) > 0:
        now = clock.monotonic()
        if now > ends_at:
            raise HoraeError(f"{left} executions have not ended within {PATIENCE:g} s.")
        rate = (before - left) / (now - looked)
        before, looked = left, now
        pause = left / rate / 2 if rate > 0 else FIRST_LOOK
        await clock.sleep(max(LOOK, min(LAST_LOOK, pause, (now - begun) / 10)))


async def live(stage: Stage) -> int:
    """Return the number of executions that have not ended."""
    stage.check()
    found = await counts(stage)
    return sum(found[state] for state in LIVE)


async def whole_life(stage: Stage, count: int) -> LoadRates:
    """Submit executions to a system with a worker, and wait until all have ended."""
    used, begun = _used(stage), time.perf_counter()
    submitted = await submit(stage, count)
    await drained(stage)
    took = time.perf_counter() - begun
    server, worker = (round((now - before) / count * 1e6, 2) for now, before in zip(_used(stage), used, strict=True))
    return LoadRates(count / submitted, count / took, server, worker)


def _used(stage: Stage) -> tuple[float, float]:
    """Return the seconds of processor time that the server and the worker have used."""
    return cpu_seconds(stage.server.pid), cpu_seconds(stage.worker.pid) if stage.worker is not None else 0.0


async def drain(stage: Stage, count: int, concurrency: int, submit: Submit = submit) -> LoadRates:
    """Submit executions to a system without a worker; time a worker from about its first claim to the last end."""
    stage.stop_worker()
    submitted = await submit(stage, count)
    stage.begin_worker(concurrency)

    async def has_claimed() -> bool:
        return (await counts(stage))["queued"] < count

    await stage.until(has_claimed, "the worker's first claim", PATIENCE)
    begun, left = time.perf_counter(), await live(stage)
    await drained(stage)
    return LoadRates(count / submitted, left / (time.perf_counter() - begun))


async def turn_over(stage: Stage, count: int) -> float:
    """Submit executions and wait until as many have ended, independent of those before; return the seconds it took."""
    before = await live(stage)
    begun = time.perf_counter()
    await submit(stage, count)
    await drained(stage, before)
    return time.perf_counter() - begun


async def check_ended(stage: Stage, count: int) -> None:
    """Check that all executions succeeded; statistics are a few seconds behind."""

    async def is_told() -> bool:
        found = await counts(stage)
        others = {state: found[state] for state in ("failed", "cancelled", "skipped") if found[state]}
        if others or found["success"] > count:
            raise HoraeError(f"Of {count} executions {found['success']} succeeded, and: {others}.")
        return found["success"] == count

    await stage.until(is_told, "the statistics", 30.0, 0.1)
