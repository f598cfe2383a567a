"""`horae bench growth`: what a long history costs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from horae.bench.command import Steps, bench, concurrency_option, count_option, repeats_option, store_option

if TYPE_CHECKING:
    from horae.bench.results import Result
    from horae.bench.stage import Stage
    from horae.bench.stores import Source
    from horae.env import Env

WARM_UP = 5_000
LOAD = 100_000  # executions drained at a time while history is filled


@bench("horae bench growth", "horae bench growth --history 10000000 -o jsonl")
@count_option("--history", 2_000_000, "Executions that have ended before.")
@count_option("--executions", 50_000, "How many executions a run has.")
@repeats_option(5)
@store_option
@concurrency_option
async def growth(
    history: int, executions: int, repeats: int, store: str | None, concurrency: int
) -> "Sequence[Result]":
    """Throughput with a long history, against throughput on an empty store.

    The history is real: so many executions are submitted and run by the same server and worker before anything is
    timed. Runs as in `horae bench throughput` (whole life) alternate between that store and a fresh one each time, so
    that both meet the same noise; the ratio is that of the medians.
    """
    from horae.bench.stores import sources
    from horae.env import system_env

    env = system_env()
    results: list[Result] = []
    with sources(store, env) as found, Steps((2 * repeats + -(-history // LOAD)) * len(found)) as steps:
        for source in found:
            empty, grown = await _measure(env, source, (history, executions, repeats, concurrency), steps)
            settings = {
                "store": await source.version(), "history": history, "executions": executions,
                "concurrency": concurrency, "repeats": repeats,
            }  # fmt: skip
            results += _results(source.name, empty, grown, settings)
    return results


async def _measure(
    env: "Env", source: "Source", size: tuple[int, int, int, int], steps: Steps
) -> tuple[list[float], list[float]]:
    """Executions a second, on an empty store and on a grown one, in turn."""
    from horae.bench.load import whole_life
    from horae.bench.stage import staged

    history, executions, repeats, concurrency = size
    empty, grown = [], []
    async with source.fresh() as url, staged(env, url) as old:
        await old.start_worker(concurrency)
        await _fill(old, history, source, steps)
        for turn in range(repeats):
            for is_old in (True, False) if turn % 2 else (False, True):
                steps.begin(f"{source.name}: {'after' if is_old else 'without'} history")
                if is_old:
                    await whole_life(old, WARM_UP)
                    grown.append((await whole_life(old, executions)).ended)
                else:
                    async with source.fresh() as fresh, staged(env, fresh) as young:
                        await young.start_worker(concurrency)
                        await whole_life(young, WARM_UP)
                        empty.append((await whole_life(young, executions)).ended)
                steps.done()
    return empty, grown


async def _fill(stage: "Stage", history: int, source: "Source", steps: Steps) -> None:
    from horae.bench.load import check_ended, whole_life

    for left in range(history, 0, -LOAD):
        steps.begin(f"{source.name}: filling history, {left:,} to go")
        await whole_life(stage, min(LOAD, left))
        steps.done()
    await check_ended(stage, history)


def _results(name: str, empty: Sequence[float], grown: Sequence[float], settings: dict[str, object]) -> "list[Result]":
    from horae.bench.results import Result, machine, median

    cases = {
        "empty": (median(empty), "1/s", [round(each, 1) for each in empty]),
        "grown": (median(grown), "1/s", [round(each, 1) for each in grown]),
        "ratio": (median(grown) / median(empty), "", []),
    }
    return [
        Result(
            bench="growth", case=f"{name} {case}", metric="ratio" if case == "ratio" else "executions", unit=unit,
            value=round(value, 3), settings={**settings, **machine(), "runs": runs},
        )
        for case, (value, unit, runs) in cases.items()
    ]  # fmt: skip
