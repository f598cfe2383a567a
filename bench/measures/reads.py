"""`python -m bench reads`: reads while many executions run."""

import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from bench.kit.command import Steps, bench, concurrency_option, count_option, repeats_option, store_option

if TYPE_CHECKING:
    from uuid import UUID

    from bench.kit.results import Result
    from bench.kit.stage import Stage
    from bench.kit.stores import Source
    from horae.env import Env

DISTINCT = 5_000  # different executions to read
WARM_UP = 5_000


class Size(Struct, frozen=True, kw_only=True):
    """The size of the store, of the load and of the reads."""

    history: int
    parcel: int
    drain: int
    rate: int
    clients: int
    seconds: int
    checks: int
    repeats: int
    concurrency: int


class Runs(Struct):
    """The results of each run: reads and ended executions per second, and durations of reads in milliseconds."""

    reads: list[float] = []
    ended: list[float] = []
    took: list[list[float]] = []


@bench("python -m bench reads", "python -m bench reads --history 10000000 --seconds 30 -o jsonl")
@count_option("--history", 1_000_000, "Executions that have ended before.")
@count_option("--parcel", 500, "Executions per parcel.")
@count_option("--drain", 20_000, "Executions per second that are submitted and run meanwhile; 0 for none.", least=0)
@count_option("--rate", 3_300, "Reads per second; 0 for as many as possible.", least=0)
@count_option("--clients", 64, "Connections that read.")
@count_option("--seconds", 10, "The length of a run.")
@count_option("--checks", 200, "Changes at one server that are read at another; 0 for none.", least=0)
@repeats_option()
@store_option
@concurrency_option
async def reads(store: str | None, **size: int) -> "Sequence[Result]":
    """Reads per second and their durations, while many executions run on a store with a long history.

    Half of the reads are GET /executions/{id} of executions from the whole history, half GET /jobs/{id} of the running
    job. They are sent at a steady rate, independent of the server's speed; a read's time counts from its due time, so
    it includes waiting for a free connection. On PostgreSQL a second server is then started: executions are submitted
    and a job is edited at one server, and read at the other as soon as that is acknowledged.
    """
    from bench.kit.stores import sources
    from horae.env import system_env

    env, chosen = system_env(), Size(**size)
    results: list[Result] = []
    with sources(store, env) as found, Steps((chosen.repeats + 1) * len(found)) as steps:
        for source in found:
            async with source.fresh() as url:
                runs = await _measure(env, source, url, chosen, steps)
                results += await _results(source, runs, chosen)
                if source.name == "postgresql" and chosen.checks:
                    steps.begin(f"{source.name}: two servers")
                    results.append(await _across(env, source, url, chosen))
                steps.done()
    return results


async def _measure(env: "Env", source: "Source", url: str, size: Size, steps: Steps) -> Runs:
    from bench.kit.fill import filling
    from bench.kit.load import turn_over
    from bench.kit.stage import staged

    steps.begin(f"{source.name}: filling history")
    async with filling(env, url) as filler:
        ids = await filler.finish(size.history, size.parcel)
    runs = Runs()
    async with staged(env, url) as stage:
        await stage.start_worker(size.concurrency)
        await turn_over(stage, min(WARM_UP, size.history))
        requests = await _requests(stage, ids)
        for _ in range(size.repeats):
            steps.begin(f"{source.name}: reading")
            await _run(stage, requests, size, runs)
            steps.done()
    return runs


async def _requests(stage: "Stage", ids: "Sequence[UUID]") -> list[bytes]:
    """Return requests for executions and a job in turn."""
    job = await stage.client.jobs.get("bench-noop")
    look = stage.request("GET", f"/jobs/{job.id}")
    chosen = stage.env.rng.sample(list(ids), min(DISTINCT, len(ids)))
    return [
        request for execution_id in chosen for request in (stage.request("GET", f"/executions/{execution_id}"), look)
    ]


async def _run(stage: "Stage", requests: list[bytes], size: Size, runs: Runs) -> None:
    from bench.kit.load import background, drained, live
    from bench.kit.wire import connected

    async with connected(stage.url, size.clients) as clients, background(stage, max(size.drain, 1)) as sent:
        sent_before, live_before = sent(), await live(stage)
        begun = time.perf_counter()
        if size.rate:
            paced = await clients.send_paced(stage.env.clock, cycle(requests), size.rate, size.seconds)
            took, answered = paced.took, paced.answered
        else:
            took = await clients.send_all(_until(begun + size.seconds, requests))
            answered = len(took)
        seconds = time.perf_counter() - begun
        runs.reads.append(answered / seconds)
        runs.ended.append((sent() - sent_before - await live(stage) + live_before) / seconds)
        runs.took.append([each * 1000 for each in took])
    await drained(stage)


def _until(end: float, requests: list[bytes]) -> Iterator[bytes]:
    for request in cycle(requests):
        if time.perf_counter() > end:
            return
        yield request


async def _across(env: "Env", source: "Source", url: str, size: Size) -> "Result":
    """Return the number of reads at a server that missed an acknowledged change of another."""
    from bench.kit.results import machine, measured
    from bench.kit.stage import staged

    async with staged(env, url, servers=2) as stage:
        stale = await _stale(stage, size.checks)
    settings = {"store": await source.version(), "checks": 2 * size.checks, "servers": 2, **machine()}
    return measured("reads", f"{source.name} two servers", "stale reads", "", [stale], settings)


async def _stale(stage: "Stage", checks: int) -> int:
    from bench.kit.load import one_request
    from bench.kit.wire import connected

    stale = 0
    job = (await stage.client.jobs.create("bench-edited", python="bench-noop")).id
    look = stage.request("GET", f"/jobs/{job}", server=1)
    async with connected(stage.urls[0], 1) as here, connected(stage.urls[1], 1) as there:
        for number in range(checks):
            execution_id = msgspec.json.decode(await here.ask(one_request(stage, number)))["executionId"]
            found = msgspec.json.decode(await there.ask(stage.request("GET", f"/executions/{execution_id}", server=1)))
            stale += found["executionId"] != execution_id
            said = b'{"description":"%d"}' % number
            await here.ask(stage.request("PATCH", f"/jobs/{job}", said))
            stale += msgspec.json.decode(await there.ask(look))["description"] != str(number)
    return stale


async def _results(source: "Source", runs: Runs, size: Size) -> "list[Result]":
    from bench.kit.results import machine, measured, percentile

    settings = {
        "store": await source.version(), "history": size.history, "executionsAParcel": size.parcel,
        "drain": size.drain, "rate": size.rate, "clients": size.clients, "seconds": size.seconds,
        "concurrency": size.concurrency, "repeats": size.repeats, **machine(),
    }  # fmt: skip
    figures = {
        ("reads", "1/s"): runs.reads,
        ("p50", "ms"): [percentile(took, 0.5) for took in runs.took],
        ("p99", "ms"): [percentile(took, 0.99) for took in runs.took],
        ("executions meanwhile", "1/s"): runs.ended,
    }
    return [
        measured("reads", f"{source.name} reads", metric, unit, each, settings)
        for (metric, unit), each in figures.items()
    ]
