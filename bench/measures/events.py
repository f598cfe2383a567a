"""`python -m bench events`: the cost of listeners of the stream for a server."""

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from bench.kit.command import Steps, bench, concurrency_option, count_option, store_option
from horae.errors import HoraeError

if TYPE_CHECKING:
    from bench.kit.results import Result
    from bench.kit.stage import Stage

SETTLE = 1.0  # seconds between a change of the load and a measurement
CASES = (("coalesced", "&every=250ms"), ("each event", ""))


class ServerUsage(Struct, frozen=True):
    """The resources that a server used for a while."""

    share: float  # of a core, in percent
    memory: float  # MiB
    told: float = 0.0  # kB per second and listener
    changes: float = 0.0  # executions per second that each listener is notified of


@bench("python -m bench events", "python -m bench events --listeners 1000 --store sqlite://")
@count_option("--listeners", 200, "Connections that follow the stream.")
@count_option("--rate", 1_000, "Executions that end a second, each submitted alone.")
@count_option("--seconds", 10, "How long each case is measured.")
@store_option
@concurrency_option
async def events(listeners: int, rate: int, seconds: int, store: str | None, concurrency: int) -> "Sequence[Result]":
    """The cost of listeners of the stream for a server under load.

    Executions are submitted one by one at a rate and run: every end is an event. The server's processor time and memory
    are read without listeners, then with many real connections that receive counts four times a second, then with as
    many that receive each event; their cost is the difference.
    """
    from bench.kit.results import Result, machine
    from bench.kit.stage import staged
    from bench.kit.stores import sources
    from horae.env import system_env

    env = system_env()
    results: list[Result] = []
    with sources(store, env) as found, Steps(3 * len(found)) as steps:
        for source in found:
            async with source.fresh() as url, staged(env, url) as stage:
                await stage.start_worker(concurrency)
                settings = {
                    "store": await source.version(), "listeners": listeners, "rate": rate, "seconds": seconds,
                    **machine(),
                }  # fmt: skip
                alone, cases = await _measure(stage, listeners, rate, seconds, steps, source.name)
                for case, used in cases.items():
                    results += [
                        Result(
                            bench="events", case=f"{source.name} {case}", metric=metric, unit=unit,
                            value=round(value, 3), settings=settings,
                        )
                        for metric, unit, value in _figures(alone, used)
                    ]  # fmt: skip
    return results


def _figures(alone: ServerUsage, used: ServerUsage) -> list[tuple[str, str, float]]:
    return [
        ("listeners' processor", "% of a core", max(0.0, used.share - alone.share)),
        ("listeners' memory", "MiB", max(0.0, used.memory - alone.memory)),
        ("server processor", "% of a core", used.share),
        ("told", "kB/s a listener", used.told),
        ("changes told", "1/s", used.changes),
    ]


async def _measure(
    stage: "Stage", listeners: int, rate: int, seconds: int, steps: Steps, name: str
) -> tuple[ServerUsage, dict[str, ServerUsage]]:
    """Return the usage of the server without listeners, and with them."""
    from itertools import count

    from bench.kit.load import one_request
    from bench.kit.wire import connected

    async with connected(stage.url, 16) as wires:
        requests = (one_request(stage, i) for i in count())
        load = asyncio.create_task(wires.send_paced(stage.env.clock, requests, rate))
        try:
            steps.begin(f"{name}: nobody listens")
            alone = await _watch(stage, seconds, [])
            steps.done()
            cases = {}
            for case, query in CASES:
                steps.begin(f"{name}: {case}")
                cases[case] = await _listened(stage, listeners, seconds, query)
                steps.done()
            if load.done():
                load.result()
            return alone, cases
        finally:
            load.cancel()
            await asyncio.gather(load, return_exceptions=True)


async def _listened(stage: "Stage", listeners: int, seconds: int, query: str) -> ServerUsage:
    address = urlsplit(stage.url)
    host, port = address.hostname or "", address.port or 0
    request = stage.request("GET", f"/stream?topics=executions{query}")
    loop = asyncio.get_running_loop()
    ears = [
        (await loop.create_connection(partial(StreamListener, request, keeps=not i), host, port))[1]
        for i in range(listeners)
    ]
    try:
        return await _watch(stage, seconds, ears)
    finally:
        for ear in ears:
            ear.close()


async def _watch(stage: "Stage", seconds: int, ears: "Sequence[StreamListener]") -> ServerUsage:
    """Return the server's usage for a while."""
    from bench.kit.usage import cpu_seconds, rss_bytes

    clock, pid = stage.env.clock, stage.server.pid
    await clock.sleep(SETTLE)
    counted = ears[0].changes() if ears else 0
    heard, before, begun = sum(ear.heard for ear in ears), cpu_seconds(pid), time.perf_counter()
    await clock.sleep(seconds)
    stage.check()
    took = time.perf_counter() - begun
    told = (sum(ear.heard for ear in ears) - heard) / took / max(1, len(ears)) / 1000
    if ears and not all(ear.heard for ear in ears):
        raise HoraeError("Some listeners heard nothing.", "Is this machine busy with other things?")
    changes = (ears[0].changes() - counted) / took if ears else 0.0
    return ServerUsage((cpu_seconds(pid) - before) / took * 100, rss_bytes(pid) / 2**20, told, changes)


class StreamListener(asyncio.Protocol):
    """A connection that follows the stream and counts the received bytes.

    With `keeps`, it stores them, so that changes can be counted.
    """

    def __init__(self, request: bytes, *, keeps: bool = False) -> None:
        self._request = request
        self._kept: list[bytes] | None = [] if keeps else None
        self._transport: asyncio.Transport | None = None
        self.heard = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self.heard += len(data)
        if self._kept is not None:
            self._kept.append(data)

    def changes(self) -> int:
        """Return the number of executions that it was notified of."""
        blocks = [b for b in b"".join(self._kept or ()).replace(b"\r\n", b"").split(b"\n\n") if b'data: {"' in b]
        told = [msgspec.json.decode(block.partition(b"data: ")[2]) for block in blocks if block.endswith(b"}")]
        return sum(one.get("count", 1) for each in told for one in each.get("changes", [each]))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
