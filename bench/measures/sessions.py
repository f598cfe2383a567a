"""`python -m bench sessions`: many worker sessions on one server, or on several with one killed."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from bench.kit.command import Steps, bench, count_option, store_option
from bench.kit.fleet import Fleet

if TYPE_CHECKING:
    from bench.kit.results import Result
    from bench.kit.stage import Stage
    from bench.kit.stores import Source
    from horae.env import Env

SETTLE = 3.0  # seconds between the last registration and the first measurement; less with few sessions
PATIENCE = 60.0
IN_FLIGHT = 8  # connections that submit the trickle


class Size(Struct, frozen=True, kw_only=True):
    """The numbers of sessions and servers, and the load."""

    sessions: int
    servers: int
    rate: int
    seconds: int


@bench("python -m bench sessions", "python -m bench sessions --sessions 3000 --servers 3 --kill")
@count_option("--sessions", 1_000, "The total of worker sessions.")
@count_option("--servers", 1, "Servers; more than one needs PostgreSQL.")
@count_option("--rate", 100, "Executions per second of the trickle.")
@count_option("--seconds", 15, "How long each of idle and trickle is measured.")
@click.option(
    "--kill", is_flag=True, help="Kill one of the servers instead, and measure the reconnection of its sessions."
)
@store_option
async def sessions(
    sessions: int, servers: int, rate: int, seconds: int, kill: bool, store: str | None
) -> "Sequence[Result]":
    """The cost of many worker sessions for a server, and their reconnection when it is killed.

    The sessions are those of bundled workers in one process, each with its own connections; they run an async function.
    Processor times are those of the busiest server process, and of PostgreSQL if the bench has started it, once without
    load and once with a trickle of single submissions. With --kill, one of several servers gets SIGKILL while the
    trickle continues at another: measured are the time until the last of its sessions has an answer from another
    server, which includes up to five seconds of polling, and whether all acknowledged executions have run, once.
    """
    from bench.kit.stores import sources
    from horae.env import system_env
    from horae.errors import BadInput
    from horae.worker.processes.spawner import raise_open_files

    if kill and servers < 2:
        raise BadInput("The only server cannot be killed.", "Name more with --servers.", field="servers")
    raise_open_files()  # servers inherit it: a connection is an open file
    env, size = system_env(), Size(sessions=sessions, servers=servers, rate=rate, seconds=seconds)
    results: list[Result] = []
    with sources(store, env) as found, Steps(2 * seconds * len(found)) as steps:
        for source in found:
            if servers == 1 or source.name == "postgresql":
                results += await _measure(env, source, size, kill, steps)
    return results


async def _measure(env: "Env", source: "Source", size: Size, kill: bool, steps: Steps) -> "list[Result]":
    from bench.kit.results import machine, measured
    from bench.kit.stage import staged

    steps.begin(f"{source.name}: {size.sessions} sessions register")
    async with (
        source.fresh() as url,
        staged(env, url, size.servers) as stage,
        Fleet(env, stage.urls, stage.key, size.sessions) as fleet,
    ):
        await fleet.registered(PATIENCE + size.sessions / 20)
        await env.clock.sleep(min(SETTLE, size.sessions / 100))
        if kill:
            cases = [("a server killed", await _kill(stage, fleet, size, source, steps))]
        else:
            cases = await _costs(stage, source, size, steps)
    settings = {
        "store": await source.version(), "sessions": size.sessions, "servers": size.servers, "rate": size.rate,
        "seconds": size.seconds, **machine(),
    }  # fmt: skip
    return [
        measured("sessions", f"{source.name} {case}", metric, unit, [value], settings)
        for case, figures in cases
        for metric, value, unit in figures
    ]


Figures = list[tuple[str, float, str]]


async def _costs(stage: "Stage", source: "Source", size: Size, steps: Steps) -> list[tuple[str, Figures]]:
    """Return the processor time without load, and with a trickle."""
    steps.begin(f"{source.name}: idle")
    idle = await _usage(stage, source, size.seconds, steps)
    steps.begin(f"{source.name}: trickle")
    async with _trickle(stage, size.rate) as sent:
        trickle = await _usage(stage, source, size.seconds, steps)
    await _all_ended(stage, sent())
    return [("idle", idle), ("trickle", trickle)]


async def _usage(stage: "Stage", source: "Source", seconds: int, steps: Steps) -> Figures:
    from bench.kit.usage import cpu_seconds, rss_bytes

    pids = [server.pid for server in stage.servers]
    database = source.pid()
    before, begun = [cpu_seconds(pid) for pid in pids], time.perf_counter()
    theirs = cpu_seconds(database) if database else 0.0
    for _ in range(seconds):
        await stage.env.clock.sleep(1.0)
        stage.check()
        steps.done()
    passed = time.perf_counter() - begun
    busiest = max(cpu_seconds(pid) - used for pid, used in zip(pids, before, strict=True))
    figures = [
        ("server processor", busiest / passed * 100, "% of a core"),
        ("server memory", max(map(rss_bytes, pids)) / 2**20, "MiB"),
    ]
    if database:
        figures.append(("database processor", (cpu_seconds(database) - theirs) / passed * 100, "% of a core"))
    return figures


@asynccontextmanager
async def _trickle(stage: "Stage", rate: int) -> AsyncIterator[Callable[[], int]]:
    """Submit single executions at the last server while the block lasts; yield a function that returns their number."""
    from bench.kit.app import runs
    from bench.kit.load import one_request
    from bench.kit.wire import connected

    runs.clear()
    numbers, sent, stopped = count(), 0, asyncio.Event()

    def requests() -> Iterator[bytes]:
        nonlocal sent
        while not stopped.is_set():
            sent += 1
            yield one_request(stage, next(numbers), "bench-visit", server=-1)

    async with connected(stage.urls[-1], IN_FLIGHT) as wires:
        task = asyncio.create_task(wires.send_paced(stage.env.clock, requests(), rate))
        try:
            yield lambda: sent
            stopped.set()
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _all_ended(stage: "Stage", sent: int) -> None:
    from bench.kit.app import runs

    async def is_so() -> bool:
        return len(runs) >= sent

    await stage.until(is_so, f"{sent} executions to run", PATIENCE, 0.1)


async def _kill(stage: "Stage", fleet: Fleet, size: Size, source: "Source", steps: Steps) -> Figures:
    """Kill the first server; return the reconnection times of its sessions, and the results of the trickle."""
    from bench.kit.app import runs
    from bench.kit.load import live
    from bench.kit.results import percentile
    from horae.client.client import Client

    steps.begin(f"{source.name}: a server is killed")
    await stage.client.close()
    stage.client = Client(stage.urls[-1], stage.key, env=stage.env)
    async with _trickle(stage, size.rate) as sent:
        await stage.env.clock.sleep(size.seconds / 3)
        killed = stage.urls[0]
        moved = fleet.at(killed)
        begun = time.perf_counter()
        stage.kill_server(0)
        await stage.until(
            lambda: fleet.all_left(moved, killed), "all sessions to be answered elsewhere", PATIENCE, 0.05
        )
        took = fleet.moved_after(moved, begun)
        await stage.env.clock.sleep(size.seconds / 3)

    async def is_quiet() -> bool:
        return await live(stage) == 0

    await stage.until(is_quiet, "what was acknowledged to end", PATIENCE, 0.1)
    steps.done(2 * size.seconds)
    return [
        ("sessions that moved", float(len(moved)), ""),
        ("reconnected p50", percentile(took, 0.5), "s"),
        ("reconnected within", max(took), "s"),
        ("sessions lost", float(fleet.lost), ""),
        ("executions", float(sent()), ""),
        ("lost", float(sent() - len(runs)), ""),
        ("run twice", float(sum(n > 1 for n in runs.values())), ""),
    ]
