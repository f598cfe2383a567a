"""Watches: each version of each object fires once, whichever server scans, and however often."""

import asyncio
from uuid import UUID

import pytest

from horae.env import SECOND
from horae.features.events.store import event_sweep, watches
from horae.features.events.store.watches import FoundObject, LeaseLost, Poll
from horae.model.triggers.decisions.external import WatchTrigger
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.events.values import NewEvent
from horae.store.expiry.expiry import Cutoffs
from horae.store.triggers import triggers
from tests.store_contract.outside_life import fits
from tests.store_contract.world import TestJob, World, add_trigger, lead

ALLOW = Rules(overlap="allow")
PLACE = WatchTrigger(url="s3://bucket/in/")


def found(n: int, *, silent: bool = False) -> FoundObject:
    event = NewEvent(name="inbox", id=f"{n}#1", source="watch", scope="watch:1")
    return FoundObject(object=UUID(int=n + 1), event=event, silent=silent)


async def watch(world: World, place: WatchTrigger = PLACE, rules: Rules = ALLOW) -> TestJob:
    job = await world.job(f"job-{world.env.new_id()}")
    await add_trigger(world, job, place, rules, name="inbox")
    return job


async def due(world: World, limit: int = 10) -> list[Poll]:
    return await world.store.change(lambda now: watches.lease_due(limit, now))


async def mark_seen(world: World, poll: Poll, *objects: FoundObject) -> list[str]:
    done = await world.store.change(lambda now: watches.record_found(poll, objects, lead, fits, world.env.new_id, now))
    return [event.key for event in done.events]


async def finish(world: World, poll: Poll, after: int = 30 * SECOND) -> bool:
    at = poll.began_at
    return await world.store.write(lambda: watches.finish(poll, 1, at, at + after))


async def fires(world: World) -> int:
    return sum(row[0] for row in await world.rows("SELECT hi - lo FROM queued"))


async def test_a_watch_is_due_at_once_and_taken_by_one_server(world: World):
    job = await watch(world)

    both = await asyncio.gather(due(world), due(world))

    (poll,) = [poll for polls in both for poll in polls]
    assert (poll.job, poll.trigger, poll.place, poll.ready) == (job.id, "inbox", PLACE, False)
    assert await world.store.read(watches.next_due) == poll.began_at + watches.LEASE


async def test_each_object_version_fires_once(world: World):
    await watch(world)
    (poll,) = await due(world)

    assert await mark_seen(world, poll, found(1), found(2)) == ["1#1", "2#1"]
    assert await mark_seen(world, poll, found(2), found(3)) == ["3#1"]

    assert await world.store.read(lambda: watches.remembered_objects(poll.watch, [UUID(int=2), UUID(int=9)])) == {
        UUID(int=2)
    }
    assert await fires(world) == 3


async def test_objects_of_the_first_scan_never_fire(world: World):
    await watch(world)
    (poll,) = await due(world)

    assert await mark_seen(world, poll, found(1, silent=True)) == []
    assert await mark_seen(world, poll, found(1)) == []
    assert await fires(world) == 0


async def test_an_outdated_scan_writes_nothing(world: World):
    await watch(world)
    (slow,) = await due(world)
    world.clock.advance(watches.LEASE)
    (quick,) = await due(world)
    await mark_seen(world, quick, found(1))

    for late in (
        lambda now: watches.record_found(slow, [found(2)], lead, fits, world.env.new_id, now),
        lambda now: watches.mark_seen(slow, [UUID(int=2)], now),
        lambda now: watches.renew(slow, now),
        lambda now: watches.forget(slow, 10),
    ):
        with pytest.raises(LeaseLost):
            await world.store.change(late)
    assert not await finish(world, slow)
    assert not await world.store.write(lambda: watches.fail(slow, "late", 0))
    assert await fires(world) == 1
    assert await finish(world, quick)


async def test_another_server_finishes_the_scan_of_a_dead_one(world: World):
    await watch(world)
    (first,) = await due(world)
    await mark_seen(world, first, found(1))
    assert await due(world) == []
    world.clock.advance(watches.LEASE)

    (second,) = await due(world)

    assert await mark_seen(world, second, found(1), found(2)) == ["2#1"]
    assert await fires(world) == 2


async def test_a_server_that_goes_on_scanning_keeps_the_watch(world: World):
    await watch(world)
    (poll,) = await due(world)
    world.clock.advance(watches.LEASE - SECOND)
    await world.store.change(lambda now: watches.renew(poll, now))
    world.clock.advance(watches.LEASE - SECOND)

    assert await due(world) == []
    assert await finish(world, poll)


async def test_the_next_scan_follows_after_the_interval(world: World):
    await watch(world)
    (poll,) = await due(world)
    await finish(world, poll)
    assert await due(world) == []

    world.clock.advance(30 * SECOND)
    (again,) = await due(world)
    assert again.ready


async def test_a_watch_has_a_trouble_until_its_location_can_be_read(world: World):
    await watch(world)
    (poll,) = await due(world)
    await world.store.write(lambda: watches.fail(poll, "no such bucket", poll.began_at + SECOND))

    assert await world.store.read(watches.troubled) == 1
    assert await world.rows("SELECT trouble FROM timers") == [("s3://bucket/in/ cannot be watched: no such bucket",)]
    world.clock.advance(SECOND)
    (again,) = await due(world)
    await finish(world, again)
    assert await world.store.read(watches.troubled) == 0
    assert await world.rows("SELECT trouble FROM timers") == [(None,)]


async def test_an_edit_without_a_new_location_keeps_the_known_objects(world: World):
    job = await watch(world)
    (poll,) = await due(world)
    await mark_seen(world, poll, found(1))
    await finish(world, poll)

    (timer,) = await world.store.read(lambda: triggers.of_job(job.id))
    await world.store.change(lambda now: triggers.end(timer, now))
    await add_trigger(world, job, WatchTrigger(url=PLACE.url, interval=SECOND), ALLOW, name="inbox")
    (again,) = await due(world)

    assert again.watch == poll.watch
    assert again.ready
    assert again.place.interval == SECOND
    assert await mark_seen(world, again, found(1), found(2)) == ["2#1"]


async def test_a_new_location_starts_a_new_watch(world: World):
    job = await watch(world)
    (poll,) = await due(world)
    await finish(world, poll)
    await add_trigger(world, job, WatchTrigger(url="s3://bucket/out/"), ALLOW, name="outbox")

    (other,) = await due(world)

    assert other.watch != poll.watch
    assert not other.ready


@pytest.mark.parametrize("table", ["jobs", "triggers"])
async def test_a_watch_is_not_due_while_its_job_or_trigger_is_paused(world: World, table: str):
    await watch(world)
    await world.do(f"UPDATE {table} SET state = 'paused'")

    assert await due(world) == []
    assert await world.store.read(watches.next_due) is None
    await world.do(f"UPDATE {table} SET state = 'active'")
    assert len(await due(world)) == 1


@pytest.mark.parametrize("table", ["jobs", "triggers"])
async def test_objects_found_during_a_pause_fire_after_the_resume(world: World, table: str):
    await watch(world)
    (poll,) = await due(world)
    await world.do(f"UPDATE {table} SET state = 'paused'")
    with pytest.raises(LeaseLost):
        await mark_seen(world, poll, found(1))
    await world.do(f"UPDATE {table} SET state = 'active'")
    world.clock.advance(watches.LEASE)

    (again,) = await due(world)

    assert await mark_seen(world, again, found(1)) == ["1#1"]


async def test_a_deleted_object_is_forgotten_and_fires_when_it_returns(world: World):
    await watch(world)
    (poll,) = await due(world)
    await mark_seen(world, poll, found(1), found(2))
    await finish(world, poll)
    world.clock.advance(30 * SECOND)

    (counting,) = await due(world)
    await world.store.change(lambda now: watches.mark_seen(counting, [found(2).object], now))
    assert not await world.store.write(lambda: watches.forget(counting, 10))

    assert [row[0] for row in await world.rows("SELECT object FROM watched")] == [found(2).object]


async def test_the_watch_of_an_ended_trigger_is_deleted(world: World):
    job = await watch(world)
    (poll,) = await due(world)
    await mark_seen(world, poll, *(found(n, silent=True) for n in range(5)))
    (timer,) = await world.store.read(lambda: triggers.of_job(job.id))
    await world.store.change(lambda now: triggers.end(timer, now))
    world.clock.advance(SECOND)

    while await world.store.write(lambda: event_sweep.sweep(Cutoffs(world.now(), world.now(), world.now()), 2)):
        pass

    assert await world.rows("SELECT id FROM watches") == []
    assert await world.rows("SELECT object FROM watched") == []


async def test_two_servers_that_found_the_same_fire_it_once(world: World):
    await watch(world)
    (poll,) = await due(world)

    done = await asyncio.gather(*(mark_seen(world, poll, *(found(n) for n in range(20))) for _ in range(3)))

    assert sorted(key for keys in done for key in keys) == sorted(f"{n}#1" for n in range(20))
    assert await fires(world) == 20
    assert len(await world.rows("SELECT event FROM event_fires WHERE disposition = 'fired'")) == 20
