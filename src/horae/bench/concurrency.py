"""`horae bench concurrency`: a worker that holds many async executions at once."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from horae.bench.command import Steps, bench, count_option, store_option

if TYPE_CHECKING:
    from horae.bench.results import Result
    from horae.bench.stage import Stage

SECONDS = 3600.0  # an execution's own length: it is there until the bench ends
START = 120.0


@bench("horae bench concurrency", "horae bench concurrency --executions 10000")
@count_option("--executions", 1_000, "How many async executions run at once.")
@count_option("--seconds", 12, "How long they are held; heartbeats come every five.")
@store_option
async def concurrency(executions: int, seconds: int, store: str | None) -> "Sequence[Result]":
    """Memory of a worker that holds many async executions.

    A worker with as many slots runs that many async functions at once. When all run, they are held for a while, in
    which the worker must stay live; then its memory is read, and its processor time over that while.
    """
    from horae.bench.results import Result, machine
    from horae.bench.stage import staged
    from horae.bench.stores import sources
    from horae.env import system_env

    env = system_env()
    results: list[Result] = []
    with sources(store or "sqlite://", env) as found, Steps(seconds * len(found)) as steps:
        for source in found:
            steps.begin(f"{source.name}: starting")
            async with source.fresh() as url, staged(env, url) as stage:
                await stage.start_worker(executions)
                figures = await _hold(stage, executions, seconds, steps)
            settings = {"store": await source.version(), "executions": executions, "seconds": seconds, **machine()}
            results += [
                Result(bench="concurrency", case=f"{source.name} held", metric=metric, value=value, unit=unit,
                       settings=settings)
                for metric, value, unit in figures
            ]  # fmt: skip
    return results


async def _hold(stage: "Stage", executions: int, seconds: int, steps: Steps) -> list[tuple[str, float, str]]:
    from horae.bench.load import counts
    from horae.bench.usage import cpu_seconds, rss_bytes

    assert stage.worker is not None
    pid, before = stage.worker.pid, rss_bytes(stage.worker.pid)
    begun = time.perf_counter()
    await stage.client.submit_many("bench-hold", ({"seconds": SECONDS} for _ in range(executions)))

    async def all_run() -> bool:
        return (await counts(stage))["running"] == executions

    await stage.until(all_run, f"{executions} executions to run", START, 0.05)
    started = time.perf_counter() - begun
    used, held = cpu_seconds(pid), time.perf_counter()
    for _ in range(seconds):
        await stage.env.clock.sleep(1.0)
        await _check_live(stage, executions)
        steps.done()
    share = (cpu_seconds(pid) - used) / (time.perf_counter() - held)
    return [
        ("worker memory", round(rss_bytes(pid) / 2**20, 1), "MiB"),
        ("worker memory before", round(before / 2**20, 1), "MiB"),
        ("worker processor", round(share * 100, 2), "% of a core"),
        ("all started", round(started, 3), "s"),
    ]


async def _check_live(stage: "Stage", executions: int) -> None:
    """The worker is heard of on time, and nothing was taken from it."""
    from horae.bench.load import counts
    from horae.errors import HoraeError

    stage.check()
    (worker,) = await stage.client.workers.list()
    running = (await counts(stage))["running"]
    if worker.status != "live" or running != executions:
        raise HoraeError(f"The worker is {worker.status} and {running} of {executions} executions run.")
