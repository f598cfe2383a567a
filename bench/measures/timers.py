"""`python -m bench timers`: triggers by the million: how late they fire, and how very many at once do."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from bench.kit.command import Steps, bench, count_option, store_option

if TYPE_CHECKING:
    from bench.kit.results import Result
    from bench.kit.stores import Source
    from bench.runs.timer_runs import Figures
    from horae.env import Env

RATES = {"sqlite": (100, 10_000), "postgresql": (100, 5_000, 20_000)}
MOVED = 5_000  # fires a second while a server is killed
LONG = 100_000  # triggers with which it takes so long that progress is told, whoever watches


class Size(Struct, frozen=True, kw_only=True):
    """How much there is, and how much of it fires."""

    triggers: int
    herd: int
    servers: int
    seconds: int


@bench("python -m bench timers", "python -m bench timers --triggers 10000000 --store postgresql://")
@count_option("--triggers", 1_000_000, "Triggers that are there and not due.")
@click.option("--rate", "rates", type=click.IntRange(min=1), multiple=True, help="Fires a second; may be repeated.")
@count_option("--seconds", 60, "How long each rate lasts.")
@count_option("--herd", 200_000, "Triggers that are due at one instant.")
@count_option("--servers", 3, "Servers at most; more than one needs PostgreSQL.")
@store_option
async def timers(store: str | None, rates: Sequence[int], **size: int) -> "Sequence[Result]":
    """How late triggers fire beside millions of others, and what happens when very many fire at once.

    The triggers have 500 expressions in 50 zones, ten to a job, written in bulk as the product writes them; none of
    them is due meanwhile. "Steady" are more that fire one after another, at an interval or by an expression with their
    own place after it: the lag is from the nominal instant to the commit that queues the execution, or to where
    the store says it was queued if it tells no more. A "herd" is due at one instant, with overlap `skip`: as triggers
    of as many jobs, or of one job; all have fired before, and what they fired has ended. While these are fired, one
    connection reads a job and submits an execution in turn. "First fire" counts from the start of the server's process.
    Nothing runs what is queued.

    A million triggers on one store take about 8 minutes, ten million on PostgreSQL about 20.
    """
    from bench.kit.stores import sources
    from horae.env import system_env

    env, chosen = system_env(), Size(**size)
    results: list[Result] = []
    with sources(store, env, {"track_commit_timestamp": "on"}) as found:
        total = sum(_count(source, chosen, rates) for source in found)
        with Steps(total, long=chosen.triggers >= LONG) as steps:
            for source in found:
                results += await _measure(env, source, chosen, rates or RATES[source.name], steps)
    return [*results, *_next(chosen)]


def _count(source: "Source", size: Size, rates: Sequence[int]) -> int:
    """How many runs there are on a store: loaded, started, the rates, two herds, and those of several servers."""
    several = size.servers if source.name == "postgresql" and size.servers > 1 else 0
    return 4 + len(rates or RATES[source.name]) + several


async def _measure(env: "Env", source: "Source", size: Size, rates: Sequence[int], steps: Steps) -> "list[Result]":
    from bench.kit.results import machine, measured
    from bench.runs.timer_runs import Runs

    cases: dict[str, Figures] = {}
    async with source.fresh() as url:
        runs = Runs(env, source, url, steps)
        cases["loaded"] = await runs.load(size.triggers)
        cases["start"] = await runs.start()
        for rate in rates:
            cases[f"steady {rate}/s"] = await runs.steady(rate, size.seconds)
        cases["herd, separate jobs"] = await runs.herd(size.herd, 1)
        cases["herd, one job"] = await runs.herd(size.herd, size.herd)
        if source.name == "postgresql":
            for servers in range(2, size.servers + 1):
                cases[f"herd, {servers} servers"] = await runs.herd(size.herd, 1, servers)
            if size.servers > 1:
                cases["a server killed"] = await runs.killed(min(MOVED, max(rates)), size.seconds, size.servers)
    settings = {
        "store": await source.version(), "triggers": size.triggers, "seconds": size.seconds, "herd": size.herd,
        **machine(),
    }  # fmt: skip
    return [
        measured("timers", f"{source.name} {case}", metric, unit, [value], settings)
        for case, figures in cases.items()
        for metric, value, unit in figures
    ]


def _next(size: Size) -> "list[Result]":
    """What the next fire of an expression costs, asked for one after another and for many triggers alike."""
    from bench.kit.results import machine, measured
    from bench.runs.timer_fill import cost_of_next

    settings = {"triggers": size.triggers, **machine()}
    return [
        measured("timers", f"next() {case}", "cost", "us", [cost], settings) for case, cost in cost_of_next().items()
    ]
