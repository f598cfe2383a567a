"""The backstop: what runs past its timeout is asked to end, and its definition is read once."""

import msgspec
import pytest

from horae.engine.backstop import SLACK, Backstop
from horae.engine.directory import Directory
from horae.engine.hints import Hints
from horae.env import SECOND
from tests.store_contract.world import World


@pytest.fixture
def backstop(world: World):
    hints = Hints(world.env, world.store, world.env.new_id())
    return Backstop(world.env, world.store, Directory(world.env, world.store, hints), hints)


async def test_what_runs_past_its_timeout_is_asked_to_end_once(world: World, backstop: Backstop):
    quick = await world.job("quick", timeout=10 * SECOND, grace=5 * SECOND)
    slow = await world.job("slow", timeout=3600 * SECOND)
    endless = await world.job("endless")
    for job in (quick, slow, endless):
        await world.parcel(job, 1)
    worker = await world.worker()
    await worker.claim(3)

    world.clock.advance(15 * SECOND + SLACK)
    await backstop.step()
    assert await world.store.requests_of(worker.session) == []
    world.clock.advance(1)
    await backstop.step()
    await backstop.step()

    (late,) = [slice for slice in await worker.holds() if slice.job == quick.id]
    assert [(parcel, kind) for parcel, *_, kind in await world.store.requests_of(worker.session)] == [
        (late.parcel, "timeout")
    ]
    assert backstop.asked == 1


async def test_a_definition_is_read_and_decoded_once(world: World, backstop: Backstop, monkeypatch):
    job = await world.job(timeout=3600 * SECOND)
    for _ in range(3):
        await world.parcel(job, 1)
    await (await world.worker()).claim(3)
    world.clock.advance(2 * SLACK)
    decoded, decode = [], msgspec.json.decode
    monkeypatch.setattr(msgspec.json, "decode", lambda *args, **more: decoded.append(args) or decode(*args, **more))

    for _ in range(5):
        await backstop.step()

    assert world.driver.statements["definitions"] == 1
    assert len(decoded) == 1
