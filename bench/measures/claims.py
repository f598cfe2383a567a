"""`python -m bench claims`: the speed of claims with many lanes in use, and with millions of queued executions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.kit.command import Steps, bench, count_option, repeats_option, store_option

if TYPE_CHECKING:
    from bench.kit.results import Result
    from bench.kit.stores import Source

LANES = (1, 10, 100, 1_000)
QUEUED = (1_000, 100_000, 1_000_000)


@bench("python -m bench claims", "python -m bench claims --queued 1000000 --store postgresql://")
@count_option("--lanes", 1_000, "The most lanes in use; one lane and powers of ten are measured before.")
@count_option("--queued", 5_000_000, "The most queued executions; a thousand and sizes between are measured before.")
@count_option("--parcel", 8, "Executions per parcel, when lanes are measured.")
@count_option("--deep-parcel", 20, "Executions per parcel, when the length of the queue is measured.")
@count_option("--executions", 20_000, "Executions to claim and report in one measurement.")
@count_option("--free", 100, "Executions requested per claim.")
@repeats_option()
@store_option
async def claims(store: str | None, lanes: int, queued: int, repeats: int, **size: int) -> "Sequence[Result]":
    """The speed of claims with many lanes in use, and with millions of queued executions.

    A server's engine in this process claims and reports, exchange by exchange, without HTTP. Lanes are those of a fair
    queue's shares, all equally full. Before each measurement, a tenth of its executions is claimed untimed. Sizes take
    turns, a thousand executions at a time, so that all see the same noise and the servers' regular work for lanes; a
    ratio compares medians with the first size.
    """
    from bench.kit.results import machine, measured, median
    from bench.kit.stores import sources
    from bench.runs.claim_runs import Size, by_lanes, by_queued
    from horae.env import system_env

    chosen = Size(repeats=repeats, **size)
    some_lanes = [*(count for count in LANES if count < lanes), lanes]
    some_queued = [*(count for count in QUEUED if count < queued), queued]
    results: list[Result] = []
    with sources(store, system_env()) as found, Steps(2 * len(found)) as steps:
        for source in found:
            for kind, counts, measure in (("lanes", some_lanes, by_lanes), ("queued", some_queued, by_queued)):
                steps.begin(f"{source.name}: {kind}")
                rates = await measure(source, counts, chosen)
                settings = {"store": await _version(source), **size, "repeats": repeats, **machine()}
                for count, runs in rates.items():
                    case = f"{source.name} {count:,} {kind}"
                    own = {**settings, kind: count}
                    results.append(measured("claims", case, "executions claimed and reported", "1/s", runs, own))
                    ratio = median(runs) / median(rates[counts[0]])
                    results.append(measured("claims", case, "ratio", "", [ratio], own))
                steps.done()
    return results


async def _version(source: "Source") -> str:
    return await source.version()
