"""`python -m bench timers`: the lag of triggers beside millions of others, and when very many fire at once."""

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
MOVED = 5_000  # fires per second while a server is killed
LONG = 100_000  # triggers that take so long that progress is also printed without a terminal


class Size(Struct, frozen=True, kw_only=True):
    """The numbers of triggers, of fires and of servers."""

    triggers: int
    herd: int
    servers: int
    seconds: int


@bench("python -m bench timers", "python -m bench timers --triggers 10000000 --store postgresql://")
@count_option("--triggers", 1_000_000, "Triggers that exist and are not due.")
@click.option("--rate", "rates", type=click.IntRange(min=1), multiple=True, help="Fires per second; repeatable.")
@count_option("--seconds", 60, "The length of each rate.")
@count_option("--herd", 200_000, "Triggers that are due at one instant.")
@count_option("--servers", 3, "The most servers; more than one needs PostgreSQL.")
@store_option
async def timers(store: str | None, rates: Sequence[int], **size: int) -> "Sequence[Result]":
    """The lag of triggers beside millions of others, and when very many fire at once.

    The triggers have 500 expressions in 50 zones, ten per job, written in bulk like the product writes them; none of
    them is due meanwhile. "Steady" triggers are additional ones that fire one after another, at an interval or by an
    expression with a fixed offset: the lag is measured from the nominal instant to the commit that queues the
    execution, or to its recorded queueing time if the store has no commit times. A "herd" is due at one instant, with
    overlap `skip`: as triggers of as many jobs, or of one job; all have fired before, and their executions have ended.
    While these fire, one connection reads a job and submits an execution in turn. "First fire" counts from the start of
    the server's process. No worker runs the queued executions.

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
    """Return the number of runs on a store: loaded, started, the rates, two herds, and those of several servers."""
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
    """Return the cost of computing the next fire of an expression, in sequence and for many similar triggers."""
    from bench.kit.results import machine, measured
    from bench.runs.timer_fill import cost_of_next

    settings = {"triggers": size.triggers, **machine()}
    return [
        measured("timers", f"next() {case}", "cost", "us", [cost], settings) for case, cost in cost_of_next().items()
    ]
