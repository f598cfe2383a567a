"""`python -m bench sustain`: a long load, with changes of rate, latency and memory."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, pairwise
from typing import TYPE_CHECKING

import click
import msgspec
from msgspec import Struct

from bench.kit.command import Steps, bench, concurrency_option, count_option, store_option

if TYPE_CHECKING:
    from bench.kit.results import Result
    from bench.kit.stage import Stage

PER_REQUEST, PACED_PER_REQUEST = 1_000, 20
SENDERS, MOST_SENDERS = 4, 64  # connections per server that submit: few with large requests, many with small ones
# Executions in the queue: below the first number more are sent, above the second none.
ENOUGH, TOO_MUCH = 50_000, 100_000
LOOK = 0.25  # seconds between checks of the queue
PARTS = 5  # the number of parts for which results are given
WARM_UP = 5_000
# Shares of a hundred requests: no-ops, sleepers of a hundredth of a second, sleepers of a second.
MIX = (("bench-noop", b'{"i":1}', 90), ("bench-hold", b'{"seconds":0.01}', 8), ("bench-hold", b'{"seconds":1}', 2))


class Snapshot(Struct, frozen=True):
    """A measurement at one instant of the run."""

    at: float
    ended: int
    queued: int
    server: float  # MiB
    worker: float
    used: dict[str, float] = {}  # seconds of processor time so far, by process


class Plan(Struct, frozen=True, kw_only=True):
    """The options of a run."""

    seconds: int
    rate: int
    servers: int
    workers: int
    mixed: bool
    per_request: int
    concurrency: int


@bench(
    "python -m bench sustain",
    "python -m bench sustain --seconds 3600 --rate 1160 --mixed",
    "python -m bench sustain --servers 3",
)
@count_option("--seconds", 60, "The length of the load.")
@count_option("--rate", 0, "Executions to submit per second; 0 submits as fast as they run.", least=0)
@count_option("--servers", 1, "Server processes on one store; more than one need PostgreSQL.")
@count_option("--workers", 1, "Worker processes.")
@click.option("--mixed", is_flag=True, help="Of 100 executions, 90 do nothing, 8 sleep 10 ms and 2 sleep a second.")
@count_option("--per-request", PER_REQUEST, "Executions per request, if no rate is given.")
@store_option
@concurrency_option
async def sustain(
    seconds: int,
    rate: int,
    servers: int,
    workers: int,
    mixed: bool,
    per_request: int,
    store: str | None,
    concurrency: int,
) -> "Sequence[Result]":
    """A long load: changes of rate, latency and memory.

    Executions are submitted in bulk for the given time, at a rate or as fast as they run, and results are stored. With
    a rate, one more is submitted alone ten times a second, and its pick-up is timed as in `latency`. The run is divided
    into fifths: "steadiness" is the last fifth's figure divided by the first one's. "Processor" is the time per
    execution that all servers, all workers, a database that the bench started and the bench itself used.
    """
    from bench.kit.stage import staged
    from bench.kit.stores import sources
    from horae.env import system_env

    plan = Plan(
        seconds=seconds, rate=rate, servers=servers, workers=workers, mixed=mixed,
        per_request=PACED_PER_REQUEST if rate else per_request, concurrency=concurrency,
    )  # fmt: skip
    env = system_env()
    results: list[Result] = []
    with sources(store, env) as found:
        usable = [source for source in found if servers == 1 or source.name != "sqlite"]
        with Steps(seconds * len(usable)) as steps:
            for source in usable:
                async with source.fresh() as url, staged(env, url, servers) as stage:
                    steps.begin(source.name)
                    looks, picked = await _run(stage, plan, source.pid(), steps)
                results += _results(source.name, plan, looks, picked, await source.version())
    return results


async def _run(
    stage: "Stage", plan: Plan, database: int | None, steps: Steps
) -> tuple[list[Snapshot], list[tuple[float, float]]]:
    """Run the load; return the measurements and (time, milliseconds) of timed pick-ups."""
    from bench.kit.load import check_ended, drained, submit

    await stage.start_worker(plan.concurrency, plan.workers)
    await submit(stage, WARM_UP)
    await drained(stage)
    load = _Load(stage, plan, database)
    picked: list[tuple[float, float]] = []
    tasks = [*load.start(), *([asyncio.create_task(_pick_ups(load, picked))] if plan.rate else [])]
    looks = [await load.look()]
    while load.goes_on:
        await stage.env.clock.sleep(LOOK)
        if any(task.done() for task in tasks):
            await asyncio.gather(*(task for task in tasks if task.done()))
        look = await load.look()
        if look.at >= looks[-1].at + max(1.0, plan.seconds / 200):
            steps.done(round(look.at) - round(looks[-1].at))
            looks.append(look)
    load.end()
    await asyncio.gather(*tasks)
    await drained(stage)
    await check_ended(stage, WARM_UP + load.sent + len(picked))
    return looks, picked


class _Load:
    """A load that submits until the time is over."""

    def __init__(self, stage: "Stage", plan: Plan, database: int | None) -> None:
        self.stage, self.plan, self._database = stage, plan, database
        self.sent = 0
        self.begun = time.perf_counter()
        self._more = asyncio.Event()
        self._more.set()

    @property
    def goes_on(self) -> bool:
        return time.perf_counter() - self.begun < self.plan.seconds

    def start(self) -> list["asyncio.Task[None]"]:
        senders = 1 if self.plan.rate else _senders(self.plan.per_request)
        send = self._at_a_rate if self.plan.rate else self._all_that_is_run
        return [asyncio.create_task(send(server)) for server in range(self.plan.servers) for _ in range(senders)]

    def end(self) -> None:
        """End the load: the queue is no longer checked, so no sender may wait for it."""
        self._more.set()

    async def look(self) -> Snapshot:
        """Measure the present state.

        Executions that have not ended are counted on the shelves, so their number is exact.
        """
        from bench.kit.load import live
        from bench.kit.usage import rss_bytes

        queued, sent = await live(self.stage), self.sent
        if queued < ENOUGH:
            self._more.set()
        elif queued > TOO_MUCH:
            self._more.clear()
        return Snapshot(
            at=time.perf_counter() - self.begun, ended=sent - queued, queued=queued,
            server=max(rss_bytes(server.pid) for server in self.stage.servers) / 2**20,
            worker=max(rss_bytes(worker.pid) for worker in self.stage.workers) / 2**20, used=self._used(),
        )  # fmt: skip

    def _used(self) -> dict[str, float]:
        from bench.kit.usage import cpu_seconds

        whole = {
            "server": sum(cpu_seconds(server.pid) for server in self.stage.servers),
            "worker": sum(cpu_seconds(worker.pid) for worker in self.stage.workers),
            "bench": time.process_time(),
        }
        return whole if self._database is None else {**whole, "database": cpu_seconds(self._database)}

    async def _all_that_is_run(self, server: int) -> None:
        from bench.kit.wire import connected

        size = self.plan.per_request
        lots = self._lots(size, server)
        async with connected(self.stage.urls[server], 1) as client:
            while self.goes_on:
                await self._more.wait()
                await client.ask(next(lots))
                self.sent += size

    async def _at_a_rate(self, server: int) -> None:
        from bench.kit.wire import connected

        lots, total = self._lots(PACED_PER_REQUEST, server), self.plan.rate * self.plan.seconds // self.plan.servers

        def requests() -> Iterator[bytes]:
            for _ in range(total // PACED_PER_REQUEST):
                self.sent += PACED_PER_REQUEST
                yield next(lots)

        async with connected(self.stage.urls[server], 16) as clients:
            rate = self.plan.rate / self.plan.servers / PACED_PER_REQUEST
            await clients.send_paced(self.stage.env.clock, requests(), rate)

    def _lots(self, size: int, server: int) -> Iterator[bytes]:
        mix = MIX if self.plan.mixed else MIX[:1]
        made = [
            [self.stage.request("POST", "/executions", _lot(job, params, size), server)] * weight
            for job, params, weight in mix
        ]
        shuffled = [request for requests in made for request in requests]
        self.stage.env.rng.shuffle(shuffled)
        return cycle(shuffled)


def _senders(per_request: int) -> int:
    return max(SENDERS, min(MOST_SENDERS, PER_REQUEST // per_request))


def _lot(job: str, params: bytes, size: int) -> bytes:
    return b'{"job":"%b","items":[%b]}' % (job.encode(), b",".join([params] * size))


async def _pick_ups(load: _Load, picked: list[tuple[float, float]]) -> None:
    """Submit one execution alone ten times a second; read their starts after the load."""
    from bench.kit.wire import connected
    from bench.measures.latency import started

    stage = load.stage
    request = stage.request("POST", "/executions", b'{"job":"bench-stamp"}')
    sent: list[tuple[str, int]] = []
    async with connected(stage.url, 1) as client:
        while load.goes_on:
            await stage.env.clock.sleep(0.1)
            begun = time.perf_counter_ns()
            sent.append((msgspec.json.decode(await client.ask(request))["executionId"], begun))
        for execution_id, begun in sent:
            took = (await started(stage, client, execution_id) - begun) / 1e6
            picked.append((begun / 1e9 - load.begun, took))


def _results(
    store: str, plan: Plan, looks: Sequence[Snapshot], picked: Sequence[tuple[float, float]], version: str
) -> "list[Result]":
    from bench.kit.results import Result, machine, median, percentile

    settings = {"store": version, **msgspec.structs.asdict(plan), **machine()}
    rates = [(late.at, (late.ended - early.ended) / (late.at - early.at)) for early, late in pairwise(looks)]
    whole = (looks[-1].ended - looks[0].ended) / (looks[-1].at - looks[0].at)
    figures = [
        ("executions", "1/s", whole, rates),
        ("steadiness of the rate", "", _steadiness(plan, rates, _mean), []),
        ("largest queue", "executions", max(look.queued for look in looks), []),
        ("server memory", "MiB", looks[-1].server, [(look.at, look.server) for look in looks]),
        ("server memory after a fifth", "MiB", _at(looks, plan.seconds / PARTS).server, []),
        ("worker memory", "MiB", looks[-1].worker, [(look.at, look.worker) for look in looks]),
        ("worker memory after a fifth", "MiB", _at(looks, plan.seconds / PARTS).worker, []),
    ]
    ended = max(1, looks[-1].ended - looks[0].ended)
    figures += [
        (f"{who} processor", "us/execution", (used - looks[0].used[who]) / ended * 1e6, [])
        for who, used in looks[-1].used.items()
    ]
    if picked:
        took = [each for _, each in picked]
        figures += [
            (f"pick-up p{share * 100:g}", "ms", percentile(took, share), _by_part(plan, picked, share))
            for share in (0.5, 0.99, 1.0)
        ]
        figures += [("steadiness of the pick-up's p50", "", _steadiness(plan, picked, median), [])]
    load = f"{plan.rate}/s" if plan.rate else "all it takes"
    return [
        Result(
            bench="sustain", case=f"{store} {load}", metric=metric, unit=unit, value=round(value, 3), settings=settings,
            points=[(round(x, 1), round(y, 1)) for x, y in points],
        )
        for metric, unit, value, points in figures
    ]  # fmt: skip


def _by_part(plan: Plan, picked: Sequence[tuple[float, float]], share: float) -> list[tuple[float, float]]:
    """Return a percentile of each fifth of the run, at its end."""
    from bench.kit.results import percentile

    length = plan.seconds / PARTS
    parts = [[took for at, took in picked if i == min(PARTS - 1, int(at / length))] for i in range(PARTS)]
    return [(length * (i + 1), percentile(part, share)) for i, part in enumerate(parts) if part]


def _at(looks: Sequence[Snapshot], at: float) -> Snapshot:
    return min(looks, key=lambda look: abs(look.at - at))


def _steadiness(plan: Plan, points: Sequence[tuple[float, float]], middle: Callable[[Sequence[float]], float]) -> float:
    """Return the last fifth's figure divided by the first one's."""
    part = plan.seconds / PARTS
    first = [value for at, value in points if at <= part]
    last = [value for at, value in points if plan.seconds - part <= at <= plan.seconds + LOOK]
    return middle(last) / middle(first) if first and last and middle(first) else 1.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
