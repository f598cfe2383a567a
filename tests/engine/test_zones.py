"""With newer time zone rules, coming fires are computed anew."""

import pytest

from horae.engine.base import zones
from horae.engine.base.hints import Hints
from horae.engine.base.zones import AGAIN, ZoneRules
from horae.env import SECOND
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Cron, Interval
from horae.store.triggers import audit_fires, zone_rules
from tests.store_contract.world import World, add_trigger

HOUR = 3600 * SECOND
PARIS = Cron(expression="0 9 * * *", timezone="Europe/Paris")


@pytest.fixture(autouse=True)
async def _unknown(world: World) -> None:
    await world.do("DELETE FROM store WHERE key IN ('zone_rules', 'zone_rules_log')")


def service(world: World, version: str) -> ZoneRules:
    return ZoneRules(world.env, world.store, Hints(world.env, world.store, world.env.new_id()), version)


async def next_fire(world: World, id) -> int | None:
    ((at,),) = await world.rows("SELECT next_fire_at FROM timers WHERE trigger_id = $1", id)
    return at


async def run(zones: ZoneRules) -> None:
    while await zones.step() != AGAIN:
        pass


async def test_timers_follow_newer_rules_and_others_are_left_alone(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(zones, "BATCH", 2)
    job = await world.job()
    zoned = [await add_trigger(world, job, PARIS, Rules(spread=HOUR, offset=HOUR // 2)) for _ in range(3)]
    plain = await add_trigger(world, job, Interval(every=HOUR))
    paused = await add_trigger(world, job, PARIS, paused=True)
    right = await next_fire(world, zoned[0])
    await world.do("UPDATE timers SET next_fire_at = next_fire_at + 3600000000 WHERE next_fire_at IS NOT NULL")
    moved = await next_fire(world, plain)
    await run(service(world, "2026b"))

    assert [await next_fire(world, id) for id in zoned] == [right] * 3
    assert (await next_fire(world, plain), await next_fire(world, paused)) == (moved, None)
    assert await world.store.read(zone_rules.stored_version) == "2026b"


async def test_a_server_with_older_rules_leaves_them(world: World):
    zoned = await add_trigger(world, await world.job(), PARIS)
    await run(service(world, "2026b"))
    await world.do("UPDATE timers SET next_fire_at = next_fire_at + 3600000000")
    moved = await next_fire(world, zoned)
    await run(service(world, "2026a"))
    assert await next_fire(world, zoned) == moved
    await run(service(world, "2026b"))  # it already has these rules
    assert await next_fire(world, zoned) == moved
    await run(service(world, "2026c"))
    assert await next_fire(world, zoned) != moved


async def test_the_validity_of_earlier_rules_is_recorded(world: World):
    job = await world.job()
    await add_trigger(world, job, PARIS)
    await run(service(world, "2026a"))
    world.clock.advance(HOUR)
    changed = world.now()
    await run(service(world, "2026b"))
    await run(service(world, "2026b"))

    assert await world.store.read(zone_rules.earlier_versions) == [("2026a", changed)]
    report = await world.store.read(
        lambda: audit_fires.audit_job(job.id, None, changed - HOUR, changed + HOUR, world.now())
    )
    later = await world.store.read(
        lambda: audit_fires.audit_job(job.id, None, changed + 1, changed + HOUR, world.now())
    )
    assert (report.zones, later.zones) == ([("2026a", changed)], [])


async def test_timers_computed_by_older_rules_are_found_again(world: World):
    zoned = await add_trigger(world, await world.job(), PARIS)
    right = await next_fire(world, zoned)
    zones = service(world, "2026b")
    for _ in range(2):
        await world.do("UPDATE timers SET next_fire_at = next_fire_at + 3600000000")
        await run(zones)
        assert await next_fire(world, zoned) == right


async def test_due_timers_are_left_to_the_scheduler(world: World):
    zoned = await add_trigger(world, await world.job(), PARIS)
    world.clock.advance(48 * HOUR)
    before = await next_fire(world, zoned)
    await run(service(world, "2026b"))
    assert await next_fire(world, zoned) == before
