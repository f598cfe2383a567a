"""The backstop: executions past their timeout are asked to end, and their definition is read once."""

import msgspec
import pytest

from horae.engine.base.hints import Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.fleet.backstop import SLACK, Backstop
from horae.env import SECOND
from horae.model.definitions.retry import RetryPolicy
from horae.model.definitions.timeouts import Timeouts
from tests.store_contract.world import World, began, progress


@pytest.fixture
def backstop(world: World):
    hints = Hints(world.env, world.store, world.env.new_id())
    return Backstop(world.env, world.store, LocalDirectory(world.env, world.store, hints), hints)


async def test_an_execution_past_its_timeout_is_asked_to_end_once(world: World, backstop: Backstop):
    quick = await world.job("quick", timeout=10 * SECOND, grace=5 * SECOND)
    slow = await world.job("slow", timeout=3600 * SECOND)
    endless = await world.job("endless")
    for job in (quick, slow, endless):
        await world.parcel(job, 1)
    worker = await world.worker()
    await worker.claim(3)

    world.clock.advance(15 * SECOND + SLACK)
    await backstop.step()
    assert (await world.store.requests_of([worker.session]))[worker.session] == []
    world.clock.advance(1)
    await backstop.step()
    await backstop.step()

    (late,) = [slice for slice in await worker.holds() if slice.job == quick.id]
    assert [
        (parcel, kind) for parcel, *_, kind in (await world.store.requests_of([worker.session]))[worker.session]
    ] == [(late.parcel, "timeout")]
    assert backstop.requested == 1


@pytest.mark.parametrize(
    ("spec", "begins", "kind"),
    [
        ({"timeouts": Timeouts(start=10 * SECOND)}, False, "startTimeout"),
        ({"timeouts": Timeouts(start=10 * SECOND)}, True, None),
        ({"timeouts": Timeouts(heartbeat=10 * SECOND)}, True, "heartbeatTimeout"),
        ({"timeouts": Timeouts(heartbeat=10 * SECOND)}, False, None),
        ({"retry": RetryPolicy(within=10 * SECOND)}, True, "totalTimeout"),
        ({"retry": RetryPolicy(within=10 * SECOND)}, False, "totalTimeout"),
    ],
)
async def test_each_request_names_its_timeout(world: World, backstop: Backstop, spec, begins, kind):
    await world.parcel(await world.job(**spec), 1)
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    if begins:
        await worker.exchange(started=[began(slice, world.now())])
    world.clock.advance(11 * SECOND + SLACK)
    await backstop.step()
    await backstop.step()

    asked = [request[3] for request in (await world.store.requests_of([worker.session]))[worker.session]]
    assert asked == ([] if kind is None else [kind])
    assert backstop.requested == len(asked)


async def test_an_execution_with_recent_progress_is_not_asked_to_end(world: World, backstop: Backstop):
    await world.parcel(await world.job(timeouts=Timeouts(heartbeat=10 * SECOND)), 1)
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    await worker.exchange(started=[began(slice, world.now())], progress=[progress(slice, 0, 40.0, message="on it")])
    for _ in range(3):
        world.clock.advance(8 * SECOND + SLACK)
        await worker.exchange(progress=[progress(slice, 0, None)])
        await backstop.step()

    assert (await world.store.requests_of([worker.session]))[worker.session] == []
    assert await world.rows("SELECT percent, message FROM progress") == [(40.0, "on it")]
    world.clock.advance(11 * SECOND + SLACK)
    await backstop.step()
    assert [request[3] for request in (await world.store.requests_of([worker.session]))[worker.session]] == [
        "heartbeatTimeout"
    ]


async def test_an_execution_that_began_against_a_request_is_asked_to_end(world: World, backstop: Backstop):
    await world.parcel(await world.job(timeouts=Timeouts(start=SECOND), timeout=60 * SECOND), 1)
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    world.clock.advance(2 * SECOND + SLACK)
    await backstop.step()
    await worker.exchange(started=[began(slice, world.now())])
    world.clock.advance(71 * SECOND + SLACK)
    await backstop.step()

    asked = (await world.store.requests_of([worker.session]))[worker.session]
    assert [request[3] for request in asked] == ["startTimeout", "timeout"]


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
