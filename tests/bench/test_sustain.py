"""`python -m bench sustain`: senders that wait for the queue to shrink when the time is over."""

import asyncio
from contextlib import asynccontextmanager
from types import SimpleNamespace

from bench.kit import wire
from bench.measures import sustain
from horae.env import system_env


async def test_senders_do_not_wait_for_a_check_after_the_end(monkeypatch):
    asked: list[bytes] = []

    async def ask(request: bytes) -> None:
        asked.append(request)

    @asynccontextmanager
    async def connected(url: str, count: int):
        yield SimpleNamespace(ask=ask)

    monkeypatch.setattr(wire, "connected", connected)
    plan = sustain.Plan(seconds=0, rate=0, servers=1, workers=1, mixed=False, per_request=1, concurrency=1)
    stage = SimpleNamespace(env=system_env(), urls=["http://localhost"], request=lambda *_: b"lot")
    load = sustain._Load(stage, plan, None)
    monkeypatch.setattr(sustain._Load, "goes_on", property(lambda self: not asked))
    load._more.clear()  # the last check found more than enough

    senders = load.start()
    await asyncio.sleep(0)
    load.end()
    await asyncio.wait_for(asyncio.gather(*senders), 30)
    assert len(asked) == len(senders)
