"""`python -m bench concurrency`: workers with many concurrent executions."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from bench.kit.command import Steps, bench, count_option, store_option

if TYPE_CHECKING:
    from datetime import datetime

    from bench.kit.results import Result
    from bench.kit.stage import Stage
    from bench.kit.stores import Source
    from horae.client.views import WorkerInfo

SECONDS = 3600  # the length of an execution: it runs until the bench ends
START = 240.0
LOOK = 0.25  # seconds between checks of the workers' heartbeats
DEFAULTS = {"async": (10_000, 1), "command": (1_000, 10)}  # executions, workers


class Size(Struct, frozen=True, kw_only=True):
    """The kind and number of executions, and the number of workers."""

    kind: str
    executions: int
    workers: int
    seconds: int


@bench("python -m bench concurrency", "python -m bench concurrency --kind command --executions 1000 --workers 10")
@click.option(
    "--kind", type=click.Choice(tuple(DEFAULTS)), default="async", show_default=True, help="The executions: sleeping "
    "async functions or sleeping commands.",
)  # fmt: skip
@count_option("--executions", 0, "Executions that run at once.  [0: 10000 async ones, 1000 commands]", least=0)
@count_option("--workers", 0, "Worker processes that share them.  [0: 1 for async ones, 10 for commands]", least=0)
@count_option("--seconds", 20, "How long they run; heartbeats are sent every five seconds.")
@store_option
async def concurrency(kind: str, executions: int, workers: int, seconds: int, store: str | None) -> "Sequence[Result]":
    """Many async executions in one worker, or many commands in several workers.

    Workers with as many slots as there are executions run all of them at once. Then they continue for a while: no
    execution may be taken from a worker, and the times between its heartbeats are read from the server. Memory is the
    largest of a single worker process, without commands; processor time is that of all workers.
    """
    from bench.kit.results import machine, measured
    from bench.kit.stage import staged
    from bench.kit.stores import sources
    from horae.env import system_env

    env, (usual, usual_workers) = system_env(), DEFAULTS[kind]
    size = Size(kind=kind, executions=executions or usual, workers=workers or usual_workers, seconds=seconds)
    results: list[Result] = []
    with sources(store or "sqlite://", env) as found, Steps(seconds * len(found)) as steps:
        for source in found:
            async with source.fresh() as url, staged(env, url) as stage:
                figures = await _hold(stage, source, size, steps)
            settings = {
                "store": await source.version(), "executions": size.executions, "workers": size.workers,
                "seconds": seconds, **machine(),
            }  # fmt: skip
            results += [
                measured("concurrency", f"{source.name} {kind}", metric, unit, [value], settings)
                for metric, value, unit in figures
            ]
    return results


async def _hold(stage: "Stage", source: "Source", size: Size, steps: Steps) -> list[tuple[str, float, str]]:
    from bench.kit.load import counts
    from bench.kit.usage import cpu_seconds, own_rss_bytes

    steps.begin(f"{source.name}: starting")
    await stage.client.jobs.apply({"name": "bench-sleep", "command": ["sleep", str(SECONDS)]})
    await stage.start_worker(-(-size.executions // size.workers), size.workers)
    pids = [worker.pid for worker in stage.workers]
    before = max(map(own_rss_bytes, pids))
    begun = time.perf_counter()
    job, params = ("bench-sleep", {}) if size.kind == "command" else ("bench-hold", {"seconds": SECONDS})
    await stage.client.submit_many(job, (params for _ in range(size.executions)))

    async def all_run() -> bool:
        return (await counts(stage))["running"] == size.executions

    await stage.until(all_run, f"{size.executions} executions to run", START, 0.05)
    started = time.perf_counter() - begun
    steps.begin(f"{source.name}: holding")
    used, held = sum(map(cpu_seconds, pids)), time.perf_counter()
    gap = await _watch(stage, size, steps)
    share = (sum(map(cpu_seconds, pids)) - used) / (time.perf_counter() - held)
    return [
        ("worker memory", max(map(own_rss_bytes, pids)) / 2**20, "MiB"),
        ("worker memory before", before / 2**20, "MiB"),
        ("worker processor", share * 100, "% of a core"),
        ("largest gap between heartbeats", gap, "s"),
        ("all started", started, "s"),
    ]


async def _watch(stage: "Stage", size: Size, steps: Steps) -> float:
    """Let all executions run for a while; return the most seconds between two heartbeats of a worker at the server."""
    heard: dict[str, datetime] = {}
    largest, begun, told = 0.0, time.perf_counter(), 0
    while (passed := time.perf_counter() - begun) < size.seconds:
        for worker in await _live_workers(stage, size):
            assert worker.last_heartbeat is not None
            last = heard.setdefault(worker.worker_id, worker.last_heartbeat)
            largest = max(largest, (worker.last_heartbeat - last).total_seconds())
            heard[worker.worker_id] = worker.last_heartbeat
        steps.done(int(passed) - told)
        told = int(passed)
        await stage.env.clock.sleep(LOOK)
    return max(largest, await _silence(stage, heard))


async def _silence(stage: "Stage", heard: "dict[str, datetime]") -> float:
    """Return the seconds since the oldest last heartbeat: a gap that has not ended."""
    from horae.env import SECOND

    now = stage.env.now() / SECOND
    return max(now - at.timestamp() for at in heard.values())


async def _live_workers(stage: "Stage", size: Size) -> "Sequence[WorkerInfo]":
    """Return the workers; check that all are live and that no execution was taken from them."""
    from bench.kit.load import counts
    from horae.errors import HoraeError

    stage.check()
    workers = await stage.client.workers.list()
    running = (await counts(stage))["running"]
    states = [worker.status for worker in workers]
    if states != ["live"] * size.workers or running != size.executions:
        raise HoraeError(f"The workers are {', '.join(map(str, states))}; {running} of {size.executions} run.")
    return workers
