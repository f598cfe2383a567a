"""Triggers with a limited number of fires: their views count the fires so far."""

from typing import Any

import pytest

from horae.engine.definitions.jobs import Jobs
from horae.engine.triggers.fires import Fires
from horae.engine.triggers.triggers import Triggers
from horae.env import SECOND
from horae.model.base.instant import format_instant
from tests.engine.objects import jobs_of, triggers_of
from tests.store_contract.world import NAMESPACE, World, lead, rank

MINUTE = 60 * SECOND


@pytest.fixture
def jobs(world: World) -> Jobs:
    return jobs_of(world.store, rank=rank)


@pytest.fixture
def triggers(world: World, jobs: Jobs) -> Triggers:
    return triggers_of(world.store, jobs)


async def create(jobs: Jobs, **schedule: Any) -> None:
    await jobs.create(NAMESPACE, {"name": "report", "command": "true", "schedule": {"overlap": "allow", **schedule}})


async def fire(world: World, after: int = MINUTE) -> None:
    world.clock.advance(after)
    await world.store.fire(100, lead)


async def test_coming_fires_end_with_the_last_allowed_one(jobs, world):
    start = world.now()
    await create(jobs, every="1m", maxFires=3)
    await fire(world)
    fires = Fires(world.env, world.store)

    async def planned(**window: str) -> list[str]:
        return [one.at for one in (await fires.list(NAMESPACE, disposition="planned", **window)).items]

    assert await planned() == [format_instant(start + n * MINUTE) for n in (2, 3)]
    assert await planned(since=format_instant(start + 3 * MINUTE)) == [format_instant(start + 3 * MINUTE)]
    assert await planned(since=format_instant(start + 4 * MINUTE)) == []
    first = await fires.list(NAMESPACE, disposition="planned", limit=1)
    rest = await fires.list(NAMESPACE, disposition="planned", limit=1, cursor=first.next_cursor)
    assert [one.at for one in rest.items] == [format_instant(start + 3 * MINUTE)]
    assert rest.next_cursor is None


async def test_a_preview_of_a_trigger_that_exists_shows_its_own_instants(jobs, triggers, world):
    """An interval counts from its creation, not from the time of the request."""
    start = world.now()
    await create(jobs, every="1m", maxFires=3)
    await fire(world)
    world.clock.advance(7 * SECOND)
    shown = await triggers.preview(NAMESPACE, {"job": "report"})

    assert shown.fires == [format_instant(start + n * MINUTE) for n in (2, 3)]
    later = await triggers.preview(NAMESPACE, {"job": "report", "from": format_instant(start + 2 * MINUTE)})
    assert later.fires == [format_instant(start + 3 * MINUTE)]


@pytest.mark.parametrize("schedule", [{"every": "1m", "maxFires": 1}, {"every": "1m", "endAt": 90}, {"at": 60}])
async def test_a_trigger_that_fires_no_more_has_ended(jobs, triggers, world, schedule):
    moved = {
        field: format_instant(world.now() + n * SECOND) for field, n in schedule.items() if field in ("at", "endAt")
    }
    await create(jobs, **schedule | moved)
    assert (await triggers.get(NAMESPACE, "report", "schedule")).state == "active"
    await fire(world)

    assert (await triggers.get(NAMESPACE, "report", "schedule")).state == "ended"
    assert [one.name for one in (await triggers.list(NAMESPACE, state="ended")).items] == ["schedule"]
    assert (await triggers.list(NAMESPACE, state="active")).items == []
    shown = await triggers.preview(NAMESPACE, {"job": "report"})
    assert (shown.fires, shown.notes) == ([], ["The trigger has no more fires."])


async def test_a_trigger_of_a_paused_job_has_not_ended(jobs, triggers, world):
    await create(jobs, every="1m")
    await jobs.pause(NAMESPACE, "report")

    assert (await triggers.get(NAMESPACE, "report", "schedule")).state == "active"


async def test_new_fires_of_an_ended_trigger_begin_at_the_edit(jobs, triggers, world):
    """The time after the trigger's end is no outage, so no fire was missed."""
    start = world.now()
    await create(jobs, every="1m", maxFires=1, misfire="all")
    await fire(world)
    world.clock.advance(10 * MINUTE)
    await triggers.edit(NAMESPACE, "report", "schedule", {"maxFires": 3})
    await fire(world)

    fired = await Fires(world.env, world.store).list(NAMESPACE, until=format_instant(world.now() + 1))
    assert [(one.at, one.disposition) for one in fired.items] == [
        (format_instant(start + MINUTE), "fired"),
        (format_instant(start + 12 * MINUTE), "fired"),
    ]
    shown = await triggers.preview(NAMESPACE, {"job": "report"})
    assert shown.fires == [format_instant(start + 13 * MINUTE)]
