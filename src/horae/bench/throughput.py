"""`horae bench throughput`: python no-ops through a real server and worker, results stored, on disk."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from horae.bench.command import Steps, bench, concurrency_option, count_option, repeats_option, store_option

if TYPE_CHECKING:
    from horae.bench.load import Whole
    from horae.bench.results import Result
    from horae.bench.stage import Stage
    from horae.bench.stores import Source

WARM_UP = 2_000


@bench("horae bench throughput", "horae bench throughput --executions 500000 --repeats 5 -o jsonl")
@count_option("--executions", 100_000, "How many executions a run has.")
@repeats_option()
@store_option
@concurrency_option
async def throughput(executions: int, repeats: int, store: str | None, concurrency: int) -> "Sequence[Result]":
    """Executions a second: submitted in bulk, run by a worker, results stored.

    A server and a worker run as processes of their own and talk HTTP; each execution is a python function that returns
    its only param. "Whole life" begins with the first request and ends with the last execution, the worker being there
    from the start; "drain" is timed from a worker's first claim, everything being queued. Processor times are those of
    whole lives.
    """
    from horae.bench.stage import staged
    from horae.bench.stores import sources
    from horae.env import system_env

    env = system_env()
    results: list[Result] = []
    with sources(store, env) as found, Steps(2 * repeats * len(found)) as steps:
        for source in found:
            async with source.fresh() as url, staged(env, url) as stage:
                runs = await _measure(stage, source, executions, repeats, concurrency, steps)
            results += await _results(source, runs, executions, concurrency)
    return results


Runs = tuple[list["Whole"], list["Whole"]]


async def _measure(
    stage: "Stage", source: "Source", executions: int, repeats: int, concurrency: int, steps: Steps
) -> Runs:
    """Both kinds of run in turn, so that both see the same noise; a short one first warms everything up."""
    from horae.bench.load import check_ended, drain, whole_life

    lives, drains = [], []
    await stage.start_worker(concurrency)
    warm_up = min(WARM_UP, executions)
    await whole_life(stage, warm_up)
    for _ in range(repeats):
        steps.begin(f"{source.name}: whole life")
        lives.append(await whole_life(stage, executions))
        steps.done()
        steps.begin(f"{source.name}: drain")
        drains.append(await drain(stage, executions, concurrency))
        steps.done()
    await check_ended(stage, warm_up + 2 * repeats * executions)
    return lives, drains


async def _results(source: "Source", runs: Runs, executions: int, concurrency: int) -> "list[Result]":
    from horae.bench.results import Result, machine, median
    from horae.client.bulk import MOST_ITEMS

    lives, drains = runs
    settings = {
        "store": await source.version(),
        "executions": executions,
        "perRequest": MOST_ITEMS,
        "concurrency": concurrency,
        "repeats": len(lives),
        **machine(),
    }
    figures = {
        ("whole life", "executions", "1/s"): [whole.ended for whole in lives],
        ("drain", "executions", "1/s"): [whole.ended for whole in drains],
        ("submit", "executions", "1/s"): [whole.submitted for whole in drains],
        ("whole life", "server processor", "us/execution"): [whole.server for whole in lives],
        ("whole life", "worker processor", "us/execution"): [whole.worker for whole in lives],
    }
    return [
        Result(
            bench="throughput", case=f"{source.name} {case}", metric=metric, unit=unit, value=round(median(each), 2),
            settings={**settings, "runs": [round(run, 2) for run in each]},
        )
        for (case, metric, unit), each in figures.items()
    ]  # fmt: skip
