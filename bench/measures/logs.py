"""`python -m bench logs`: log lines beside half load, and lost lines."""

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from bench.kit.command import Steps, bench, concurrency_option, count_option, store_option

if TYPE_CHECKING:
    from bench.kit.results import Result
    from bench.kit.stage import Stage

WRITERS = 4  # executions that write at the same time
PATIENCE = 600.0
LOOK = 0.1


class LogFigures(Struct, frozen=True):
    """The results of writing lines."""

    rate: float  # lines per second, from the first written line to the last readable one
    lost: int
    worker: float  # MiB, the highest value
    server: float  # microseconds of processor time per line, including those of other jobs
    writer: float
    beside: float = 0.0  # executions of other jobs that ended per second meanwhile


@bench("python -m bench logs", "python -m bench logs --rate 40000 --store postgresql://")
@count_option("--rate", 22_000, "Lines per second that jobs write.")
@count_option("--seconds", 10, "How long they write.")
@count_option("--calibrate", 50_000, "Executions that determine the half load; 0 leaves other jobs out.", least=0)
@store_option
@concurrency_option
async def logs(rate: int, seconds: int, calibrate: int, store: str | None, concurrency: int) -> "Sequence[Result]":
    """Log lines per second that are stored beside half load, and lost lines.

    Four executions write numbered lines of a hundred characters, first at a common rate, then as fast as they can: too
    fast writers have to wait. Meanwhile no-ops are submitted in bulk at half of the rate of whole lives that was
    measured just before. A line counts when it can be read; all lines are read, and "lost" are those that are missing
    or out of order. "Worker memory" is the most that the worker used meanwhile.
    """
    from bench.kit.results import Result, machine
    from bench.kit.stage import staged
    from bench.kit.stores import sources
    from horae.env import system_env

    env = system_env()
    results: list[Result] = []
    with sources(store, env) as found, Steps(2 * len(found)) as steps:
        for source in found:
            async with source.fresh() as url, staged(env, url) as stage:
                await stage.start_worker(concurrency)
                half = await _half_load(stage, calibrate)
                settings = {
                    "store": await source.version(), "rate": rate, "seconds": seconds, "writers": WRITERS,
                    "background": round(half), "concurrency": concurrency, **machine(),
                }  # fmt: skip
                for case, paced in (("at a rate", rate), ("all it takes", 0)):
                    steps.begin(f"{source.name}: {case}")
                    written = await _beside(stage, half, rate * seconds // WRITERS, paced // WRITERS)
                    results += [
                        Result(
                            bench="logs", case=f"{source.name} {case}", metric=metric, unit=unit,
                            value=round(value, 3), settings=settings,
                        )
                        for metric, unit, value in _figures(written)
                    ]  # fmt: skip
                    steps.done()
    return results


def _figures(written: LogFigures) -> list[tuple[str, str, float]]:
    return [
        ("lines", "1/s", written.rate),
        ("lost", "lines", written.lost),
        ("worker memory", "MiB", written.worker),
        ("server processor", "us/line", written.server),
        ("worker processor", "us/line", written.writer),
        ("executions beside", "1/s", written.beside),
    ]


async def _half_load(stage: "Stage", calibrate: int) -> float:
    """Return half of the system's rate."""
    from bench.kit.load import whole_life

    if not calibrate:
        return 0.0
    await whole_life(stage, min(calibrate, 5_000))
    return (await whole_life(stage, calibrate)).ended / 2


async def _beside(stage: "Stage", half: float, lines: int, rate: int) -> LogFigures:
    """Write lines while other jobs run."""
    from bench.kit.load import background, drained, live

    if not half:
        return await _write(stage, lines, rate)
    async with background(stage, half) as sent:
        begun, before = time.perf_counter(), sent()
        written = await _write(stage, lines, rate)
        ended = sent() - before - await live(stage)
        took = time.perf_counter() - begun
    await drained(stage)
    return structs.replace(written, beside=max(0.0, ended / took))


async def _write(stage: "Stage", lines: int, rate: int) -> LogFigures:
    from bench.kit.usage import cpu_seconds, rss_bytes

    assert stage.worker is not None
    pids = stage.server.pid, stage.worker.pid
    used, begun, most = [cpu_seconds(pid) for pid in pids], time.perf_counter(), 0
    made = [
        await stage.client.submit("bench-chatter", {"lines": lines, "rate": rate, "writer": i}) for i in range(WRITERS)
    ]
    ends = asyncio.gather(*(stage.client.executions.wait(one.id, timeout=PATIENCE) for one in made))
    while not ends.done():
        most = max(most, rss_bytes(stage.worker.pid))
        await stage.env.clock.sleep(LOOK)
    await ends
    took = time.perf_counter() - begun  # an outcome follows the last line of its execution
    total = WRITERS * lines
    each = [(cpu_seconds(pid) - before) / total * 1e6 for pid, before in zip(pids, used, strict=True)]
    lost = sum([await _lost(stage, one.id, lines) for one in made])
    return LogFigures(total / took, lost, most / 2**20, *each)


async def _lost(stage: "Stage", execution_id: str, lines: int) -> int:
    """Return the number of lines that are missing or out of order."""
    expected, missing, rest = 0, 0, b""
    async for piece in stage.client.executions.read_log(execution_id):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            number = int(line.split(b" ", 2)[1])
            missing += abs(number - expected)
            expected = number + 1
    return missing + abs(lines - expected)
