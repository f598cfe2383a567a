"""`python -m bench latency`: the time from a submission to its start, at rest and under load."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from bench.kit.command import Steps, bench, concurrency_option, count_option, store_option

if TYPE_CHECKING:
    from bench.kit.results import Result
    from bench.kit.stage import Stage
    from bench.kit.wire import Clients

WARM_UP = 10
LEAST_PAUSE, MOST_PAUSE = 0.02, 0.12  # seconds without requests before each submission
PATIENCE = 60.0
POINTS = 100  # of a distribution
PERCENTILES = (0.5, 0.9, 0.99, 1.0)


class Sample(Struct, frozen=True):
    """The times of one submission in milliseconds, beside those of the disk."""

    acknowledged: float
    started: float
    synced: float


class _Accepted(Struct, rename="camel"):
    execution_id: str


class _Ended(Struct):
    result: int | None = None


@bench("python -m bench latency", "python -m bench latency --samples 1000 --store postgresql://postgres@db/postgres")
@count_option("--samples", 300, "Submissions to time, at rest and under load.")
@count_option("--calibrate", 50_000, "Executions that determine the half load; 0 leaves it out.", least=0)
@store_option
@concurrency_option
async def latency(samples: int, calibrate: int, store: str | None, concurrency: int) -> "Sequence[Result]":
    """The time from a submission to its start, at rest and under half load.

    Measured from sending the request to the first line of the Python function, by the clock that all processes of a
    machine share. Executions are submitted one at a time after a pause, over a kept connection and with an
    Idempotency-Key each, as the SDK sends it; no other request is sent until all have run. "Acknowledged" is the answer
    to the submission: it is on disk. "Disk" is the time of this machine to sync 4 KiB, measured before each submission:
    an acknowledgement needs one sync, a start two. "Half load" is the same while no-ops are submitted in bulk at half
    of the rate of whole lives that was measured just before.
    """
    from bench.kit.stage import staged
    from bench.kit.stores import sources
    from horae.env import system_env

    env = system_env()
    results: list[Result] = []
    with sources(store, env) as found, Steps((2 if calibrate else 1) * samples * len(found)) as steps:
        for source in found:
            async with source.fresh() as url, staged(env, url) as stage:
                await stage.start_worker(concurrency)
                settings = {"store": await source.version(), "samples": samples, "concurrency": concurrency}
                steps.begin(f"{source.name}: idle")
                taken = await _samples(stage, samples, steps)
                results += _results(f"{source.name} idle", taken, settings)
                if calibrate:
                    steps.begin(f"{source.name}: half load")
                    rate, taken = await _under_load(stage, samples, calibrate, steps)
                    results += _results(f"{source.name} half load", taken, {**settings, "background": round(rate)})
    return results


async def _under_load(stage: "Stage", samples: int, calibrate: int, steps: Steps) -> tuple[float, list[Sample]]:
    """Measure the rate of the system, load it with half of that, and take the samples meanwhile."""
    from bench.kit.load import background, whole_life

    await whole_life(stage, min(calibrate, 5_000))
    rate = (await whole_life(stage, calibrate)).ended / 2
    async with background(stage, rate):
        return rate, await _samples(stage, samples, steps)


async def _samples(stage: "Stage", count: int, steps: Steps) -> list[Sample]:
    """Submit one execution at a time; read their starts when all have run."""
    from bench.kit.wire import connected

    sent: list[tuple[str, int, float, float]] = []
    async with connected(stage.url, 1) as client:
        for number in range(WARM_UP + count):
            one = await _one(stage, client)
            if number >= WARM_UP:
                sent.append(one)
                steps.done()
        return [
            Sample(acknowledged, (await started(stage, client, execution_id) - begun) / 1e6, synced)
            for execution_id, begun, acknowledged, synced in sent
        ]


async def _one(stage: "Stage", client: "Clients") -> tuple[str, int, float, float]:
    """Submit once; return the id, the time of sending, the duration of the answer, and that of a sync."""
    env = stage.env
    request = stage.request("POST", "/executions", b'{"job":"bench-stamp"}', once=str(env.new_id()))
    await env.clock.sleep(env.rng.uniform(LEAST_PAUSE, MOST_PAUSE))
    synced = _sync(stage.folder / "sync")
    await env.clock.sleep(LEAST_PAUSE)
    begun = time.perf_counter_ns()
    body = await client.ask(request)
    acknowledged = (time.perf_counter_ns() - begun) / 1e6
    return msgspec.json.decode(body, type=_Accepted).execution_id, begun, acknowledged, synced


async def started(stage: "Stage", client: "Clients", execution_id: str) -> int:
    """Return the time when an execution's function started, which is its result."""
    found: list[int] = []

    async def has_ended() -> bool:
        body = await client.ask(stage.request("GET", f"/executions/{execution_id}"))
        result = msgspec.json.decode(body, type=_Ended).result
        found.extend([] if result is None else [result])
        return bool(found)

    await stage.until(has_ended, "a timed execution to run", PATIENCE)
    return found[0]


def _sync(file: Path) -> float:
    """Return the milliseconds to write 4 KiB to disk."""
    with file.open("ab") as end:
        end.write(bytes(4096))
        end.flush()
        begun = time.perf_counter_ns()
        os.fsync(end.fileno())
        return (time.perf_counter_ns() - begun) / 1e6


def _results(name: str, taken: Sequence[Sample], settings: dict[str, object]) -> "list[Result]":
    from bench.kit.results import Result, machine, percentile

    cases = {
        "pick-up": [sample.started for sample in taken],
        "acknowledged": [sample.acknowledged for sample in taken],
        "disk": [sample.synced for sample in taken],
    }
    return [
        Result(
            bench="latency", case=f"{name} {case}", metric=f"p{share * 100:g}", unit="ms",
            value=round(percentile(values, share), 3), settings={**settings, **machine()},
            points=_distribution(values) if share == PERCENTILES[0] else [],
        )
        for case, values in cases.items()
        for share in PERCENTILES
    ]  # fmt: skip


def _distribution(values: Sequence[float]) -> list[tuple[float, float]]:
    """Return points (milliseconds, share of all that took no longer)."""
    from bench.kit.results import percentile

    shares = [(i + 1) / POINTS for i in range(POINTS)]
    return [(round(percentile(values, share), 3), share) for share in shares]
