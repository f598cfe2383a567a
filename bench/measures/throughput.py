"""`python -m bench throughput`: Python no-ops through a real server and worker, with results stored on disk."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from bench.kit.command import Steps, bench, concurrency_option, count_option, repeats_option, store_option

if TYPE_CHECKING:
    from bench.kit.load import LoadRates
    from bench.kit.results import Result
    from bench.kit.stage import Stage
    from bench.kit.stores import Source

WARM_UP = 2_000


class Size(Struct, frozen=True, kw_only=True):
    """The size of the runs."""

    executions: int
    singles: int
    clients: int
    repeats: int
    concurrency: int


class Runs(Struct):
    """The results of each kind of run."""

    lives: "list[LoadRates]" = []
    drains: "list[LoadRates]" = []
    singles: "list[LoadRates]" = []


@bench("python -m bench throughput", "python -m bench throughput --executions 500000 --repeats 5 -o jsonl")
@count_option("--executions", 100_000, "Executions per run.")
@count_option("--singles", 20_000, "Executions that are submitted one by one, then drained.")
@count_option("--clients", 64, "Connections that submit these at the same time.")
@repeats_option()
@store_option
@concurrency_option
async def throughput(store: str | None, **size: int) -> "Sequence[Result]":
    """Executions per second: submitted in bulk or one by one, run by a worker, results stored.

    A server and a worker run as separate processes and talk HTTP; each execution is a Python function that returns its
    only param. "Whole life" begins with the first request of the SDK's submit_many and ends with the last execution,
    with a worker from the start; "drain" is timed from a worker's first claim, when all executions are queued. "Parcels
    of one" is a drain of executions that were submitted one per request by many connections; only the drain is timed.
    Processor times are those of whole lives.
    """
    from bench.kit.stage import staged
    from bench.kit.stores import sources
    from horae.env import system_env

    env, chosen = system_env(), Size(**size)
    results: list[Result] = []
    with sources(store, env) as found, Steps(3 * chosen.repeats * len(found)) as steps:
        for source in found:
            async with source.fresh() as url, staged(env, url) as stage:
                runs = await _measure(stage, source, chosen, steps)
            results += await _results(source, runs, chosen)
    return results


async def _measure(stage: "Stage", source: "Source", size: Size, steps: Steps) -> Runs:
    """Measure all kinds of run in turn, so that all see the same noise; a short run first warms everything up."""
    from bench.kit.load import check_ended, drain, submit_singly, whole_life

    async def singly(stage: "Stage", count: int) -> float:
        return await submit_singly(stage, count, size.clients)

    runs = Runs()
    await stage.start_worker(size.concurrency)
    warm_up = min(WARM_UP, size.executions)
    await whole_life(stage, warm_up)
    for _ in range(size.repeats):
        steps.begin(f"{source.name}: whole life")
        runs.lives.append(await whole_life(stage, size.executions))
        steps.done()
        steps.begin(f"{source.name}: drain")
        runs.drains.append(await drain(stage, size.executions, size.concurrency))
        steps.done()
        steps.begin(f"{source.name}: parcels of one")
        runs.singles.append(await drain(stage, size.singles, size.concurrency, singly))
        steps.done()
    await check_ended(stage, warm_up + size.repeats * (2 * size.executions + size.singles))
    return runs


async def _results(source: "Source", runs: Runs, size: Size) -> "list[Result]":
    from bench.kit.results import machine, measured
    from horae.client.bulk import MOST_ITEMS

    settings = {
        "store": await source.version(), "concurrency": size.concurrency, "repeats": size.repeats, **machine(),
    }  # fmt: skip
    bulk = {"executions": size.executions, "perRequest": MOST_ITEMS, **settings}
    single = {"executions": size.singles, "perRequest": 1, "clients": size.clients, **settings}
    figures = (
        ("whole life", "executions", "1/s", [whole.ended for whole in runs.lives], bulk),
        ("drain", "executions", "1/s", [whole.ended for whole in runs.drains], bulk),
        ("parcels of one", "executions", "1/s", [whole.ended for whole in runs.singles], single),
        ("whole life", "server processor", "us/execution", [whole.server for whole in runs.lives], bulk),
        ("whole life", "worker processor", "us/execution", [whole.worker for whole in runs.lives], bulk),
    )
    return [
        measured("throughput", f"{source.name} {case}", metric, unit, each, own)
        for case, metric, unit, each, own in figures
    ]
