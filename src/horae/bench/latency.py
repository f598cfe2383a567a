"""`horae bench latency`: how soon an idle system starts what is submitted."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from horae.bench.command import Steps, bench, concurrency_option, count_option, store_option

if TYPE_CHECKING:
    from horae.bench.results import Result
    from horae.bench.stage import Stage
    from horae.env import Env

WARM_UP = 10
LEAST_PAUSE, MOST_PAUSE = 0.02, 0.12  # seconds of quiet before each submission
PATIENCE = 30.0


class Sample(Struct, frozen=True):
    """One submission's times in milliseconds, and the disk's own beside them."""

    acknowledged: float
    started: float
    synced: float


@bench("horae bench latency", "horae bench latency --samples 1000 --store postgresql://postgres@db/postgres")
@count_option("--samples", 300, "How many submissions are timed.")
@store_option
@concurrency_option
async def latency(samples: int, store: str | None, concurrency: int) -> "Sequence[Result]":
    """How soon an idle system starts what is submitted.

    From the submitting call to the first line of the python function, by the one clock that all processes of a machine
    share. Executions are submitted one at a time after a moment of quiet, so the server and the worker are at rest and
    the worker's connection waits. "Acknowledged" is the submitting call itself: the execution is on disk. "Disk" is
    what this machine takes to sync 4 KiB, tried before each submission: an acknowledgement needs one sync, a start two.
    """
    from horae.bench.stage import staged
    from horae.bench.stores import sources
    from horae.env import system_env

    env = system_env()
    results: list[Result] = []
    with sources(store, env) as found, Steps(samples * len(found)) as steps:
        for source in found:
            steps.begin(source.name)
            async with source.fresh() as url, staged(env, url) as stage:
                await stage.start_worker(concurrency)
                for _ in range(WARM_UP):
                    await _sample(stage, env)
                taken = []
                for _ in range(samples):
                    taken.append(await _sample(stage, env))
                    steps.done()
            settings = {"store": await source.version(), "samples": samples, "concurrency": concurrency}
            results += _results(source.name, taken, settings)
    return results


async def _sample(stage: "Stage", env: "Env") -> Sample:
    await env.clock.sleep(env.rng.uniform(LEAST_PAUSE, MOST_PAUSE))
    synced = _sync(stage.folder / "sync")
    await env.clock.sleep(LEAST_PAUSE)
    begun = time.perf_counter_ns()
    execution = await stage.client.submit("bench-stamp")
    acknowledged = time.perf_counter_ns()
    final = await stage.client.executions.wait(execution.id, timeout=PATIENCE)
    return Sample((acknowledged - begun) / 1e6, (final.result - begun) / 1e6, synced)


def _sync(file: Path) -> float:
    """Milliseconds to bring 4 KiB to disk."""
    with file.open("ab") as end:
        end.write(bytes(4096))
        end.flush()
        begun = time.perf_counter_ns()
        os.fsync(end.fileno())
        return (time.perf_counter_ns() - begun) / 1e6


def _results(name: str, taken: Sequence[Sample], settings: dict[str, object]) -> "list[Result]":
    from horae.bench.results import Result, machine, percentile

    cases = {
        "pick-up": [sample.started for sample in taken],
        "acknowledged": [sample.acknowledged for sample in taken],
        "disk": [sample.synced for sample in taken],
    }
    return [
        Result(
            bench="latency", case=f"{name} {case}", metric=f"p{share * 100:g}", unit="ms",
            value=round(percentile(values, share), 3), settings={**settings, **machine()},
        )
        for case, values in cases.items()
        for share in (0.5, 0.9, 0.99, 1.0)
    ]  # fmt: skip
