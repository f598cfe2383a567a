"""The service that passes turns on: at once after the end of an execution, otherwise every second."""

import asyncio
from typing import Any

import pytest

from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.triggers.turns import Turns
from horae.env import SECOND
from horae.model.base.event import ChangeEvent
from horae.model.base.ids import execution_id, index_of, parcel_of
from tests.engine.objects import base_of, executions_of, jobs_of
from tests.store_contract.world import NAMESPACE, World, cancelled, lead, rank, success

MINUTE = 60 * SECOND


@pytest.fixture
def hints(world: World) -> Hints:
    return Hints(world.env, world.store, world.env.new_id())


@pytest.fixture
def told() -> list[Any]:
    return []


@pytest.fixture
def service(world: World, hints: Hints, told: list[Any]) -> Turns:
    directory = LocalDirectory(world.env, world.store, hints)
    base = base_of(world.store)
    base.hints.listen(lambda hint: told.extend(hint.sessions))
    base.topics.cancelled.subscribe("test", lambda cancelled: told.append(tuple(cancelled)))
    return Turns(world.env, world.store, directory, hints, base.outcomes, base.topics)


async def fires(world: World, overlap: Any, times: int) -> list[Any]:
    jobs = jobs_of(world.store, rank=rank)
    job = await jobs.create(
        NAMESPACE, {"name": "report", "command": "true", "schedule": {"every": "1m", "overlap": overlap}}
    )
    made = [job.job_id]
    for _ in range(times):
        world.clock.advance(MINUTE)
        made += [execution_id(parcel.id, 0) for parcel in (await world.store.fire(10, lead)).parcels]
    return made


async def state(world: World, id: Any) -> str:
    return (await world.states(parcel_of(id)))[index_of(id)]


async def test_the_next_begins_when_the_last_has_ended(world: World, service: Turns, hints: Hints):
    job, first, second = await fires(world, {"queueAll": 5}, 2)
    await service.step()
    assert await state(world, second) == "waiting"
    shown = await executions_of(world.store).get(NAMESPACE, second)
    assert (shown.reason, "has ended" in (shown.hint or "")) == ("overlap", True)
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    await worker.report(success(slice))
    hints.send_locally(Hint(events=[ChangeEvent("execution", first, "success", NAMESPACE, world.now(), job)]))
    await asyncio.wait_for(service.alarm.wait(world.env.clock, 3600), 30)
    await service.step()

    assert await state(world, second) == "queued"


async def test_a_newer_fire_replaces_a_queued_execution(world: World, service: Turns, told: list[Any]):
    job, first, second = await fires(world, "cancelOther", 2)
    await service.step()
    assert await state(world, first) == "cancelled"
    assert told == [(job, 1)]
    await service.step()

    assert await state(world, second) == "queued"


async def test_a_newer_fire_asks_a_running_execution_to_stop_once(world: World, service: Turns, told: list[Any]):
    _, first = await fires(world, "cancelOther", 1)
    worker = await world.worker()
    (slice,) = await worker.claim(1)
    world.clock.advance(MINUTE)
    (parcel,) = (await world.store.fire(10, lead)).parcels
    await service.step()
    await service.step()
    assert told == [worker.session]
    assert await world.states(parcel.id) == ["waiting"]
    await worker.report(cancelled(slice))
    await service.step()

    assert await state(world, first) == "cancelled"
    assert await world.states(parcel.id) == ["queued"]
