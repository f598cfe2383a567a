"""`python -m bench growth`: the cost of a long history, or a long queue."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from bench.kit.command import Steps, bench, concurrency_option, count_option, repeats_option, store_option

if TYPE_CHECKING:
    from bench.kit.results import Result
    from bench.kit.stage import Stage
    from bench.kit.stores import Source
    from horae.env import Env

WARM_UP = 5_000
TENTH = 10_000  # from this size on, a tenth of it is measured, too, for the shape of the curve


class Size(Struct, frozen=True, kw_only=True):
    """The size of parcels and runs."""

    parcel: int
    executions: int
    repeats: int
    concurrency: int


class GrowthRates(Struct):
    """Executions per second, by the number of executions in the store; an empty store is measured beside each."""

    without: list[float] = []
    by_size: dict[int, list[float]] = {}


@bench("python -m bench growth", "python -m bench growth --history 10000000 --queued 5000000 -o jsonl")
@count_option("--history", 1_000_000, "Executions that have ended before; 0 leaves it out.", least=0)
@count_option("--queued", 500_000, "Executions that are queued before; 0 leaves it out.", least=0)
@count_option("--parcel", 500, "Executions per parcel.")
@count_option("--executions", 50_000, "Executions per run.")
@repeats_option()
@store_option
@concurrency_option
async def growth(history: int, queued: int, store: str | None, **size: int) -> "Sequence[Result]":
    """Throughput with a long history or a long queue, compared with an empty store.

    The store is filled with its own functions, before a server opens it. A run submits executions in bulk and ends when
    as many have ended, with a worker from the start, so a long queue keeps its length. Runs alternate between the grown
    store and a fresh one each time, so that both see the same noise; the ratio compares the medians.
    """
    from bench.kit.stores import sources
    from horae.env import system_env

    env, chosen = system_env(), Size(**size)
    kinds = {kind: count for kind, count in (("history", history), ("queued", queued)) if count}
    results: list[Result] = []
    with sources(store, env) as found, Steps(_turns(kinds) * chosen.repeats * len(found)) as steps:
        for source in found:
            for kind, count in kinds.items():
                grown = await _measure(env, source, (kind, count), chosen, steps)
                settings = {
                    "store": await source.version(), kind: count, "executionsAParcel": chosen.parcel,
                    "executions": chosen.executions, "concurrency": chosen.concurrency, "repeats": chosen.repeats,
                }  # fmt: skip
                results += _results(f"{source.name} {kind}", count, grown, settings)
    return results


async def _measure(env: "Env", source: "Source", what: tuple[str, int], size: Size, steps: Steps) -> GrowthRates:
    """Return executions per second, on empty stores and on a growing one, in turn."""
    from bench.kit.stage import staged

    (kind, count), grown, there = what, GrowthRates(), 0
    async with source.fresh() as url:
        for wanted in _sizes(count):
            await _fill(env, url, kind, (wanted - there, size.parcel), source, steps)
            there = wanted
            async with staged(env, url) as old:
                for turn in range(size.repeats):
                    for is_old in (True, False) if turn % 2 else (False, True):
                        steps.begin(f"{source.name}: {there if is_old else 0:,} {kind}")
                        if is_old:
                            grown.by_size.setdefault(there, []).append(await _run(old, size))
                        else:
                            grown.without.append(await _run_on_fresh(env, source, size))
                        steps.done()
    return grown


def _sizes(count: int) -> list[int]:
    return [count // 10, count] if count >= TENTH else [count]


def _turns(kinds: Mapping[str, int]) -> int:
    """Return the number of runs per repetition: each size beside an empty store."""
    return sum(2 * len(_sizes(count)) for count in kinds.values())


async def _fill(env: "Env", url: str, kind: str, much: tuple[int, int], source: "Source", steps: Steps) -> None:
    from bench.kit.fill import filling

    left, parcel = much

    def told(done: int) -> None:
        nonlocal left
        left -= done
        steps.begin(f"{source.name}: filling {kind}, {left:,} to go")

    if left:
        async with filling(env, url) as filler:
            await (filler.finish if kind == "history" else filler.queue)(left, parcel, told)


async def _run_on_fresh(env: "Env", source: "Source", size: Size) -> float:
    from bench.kit.stage import staged

    async with source.fresh() as fresh, staged(env, fresh) as young:
        return await _run(young, size)


async def _run(stage: "Stage", size: Size) -> float:
    from bench.kit.load import turn_over

    await stage.start_worker(size.concurrency)
    await turn_over(stage, min(WARM_UP, size.executions))
    rate = size.executions / await turn_over(stage, size.executions)
    stage.stop_worker()
    return rate


def _results(case: str, count: int, grown: GrowthRates, settings: dict[str, object]) -> "list[Result]":
    from msgspec import structs

    from bench.kit.results import machine, measured, median

    settings = {**settings, **machine()}
    without, at_full = median(grown.without), median(grown.by_size[count])
    points = [(0.0, without), *((float(there), median(runs)) for there, runs in grown.by_size.items())]
    full = measured("growth", case, "executions with", "1/s", grown.by_size[count], settings)
    return [
        measured("growth", case, "executions without", "1/s", grown.without, settings),
        structs.replace(full, points=[(there, round(rate, 1)) for there, rate in points]),
        measured("growth", case, "ratio", "", [at_full / without], settings),
    ]
