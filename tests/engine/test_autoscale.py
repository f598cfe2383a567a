"""Autoscaling signals of a queue: its backlog, rates and duration, and the number of workers that it needs."""

import pytest

from horae.engine.base.hints import Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.fleet.autoscale import Autoscale
from horae.engine.topics import Topics
from horae.env import SECOND
from horae.errors import NotFound
from horae.features.statistics.engine.statistics import Statistics
from tests.store_contract.world import NAMESPACE, World, success


@pytest.fixture
async def autoscale(world: World) -> Autoscale:
    hints = Hints(world.env, world.store, world.env.new_id())
    return Autoscale(world.env, world.store, LocalDirectory(world.env, world.store, hints))


async def test_signals_contain_backlog_running_age_and_slots(world: World, autoscale: Autoscale):
    job = await world.job()
    await world.parcel(job, 30)
    w = await world.worker(concurrency=10)
    await w.claim(8)
    world.clock.advance(4 * SECOND)
    await world.parcel(job, 5)

    advice = await autoscale.advise(NAMESPACE, "default", 5 * SECOND)
    told = advice.signals
    assert (told.backlog, told.running, told.oldest_age) == (27, 8, 4.0)
    assert (told.workers, told.slots, told.utilisation) == (1, 10, 0.8)
    assert told.duration == 4.0  # nothing has ended: the mean so far of running executions
    assert advice.desired == 2


async def test_rates_follow_arrivals_and_ends(world: World, autoscale: Autoscale):
    statistics = Statistics(world.env, world.store, world.env.new_id(), Topics(world.store))
    job = await world.job()
    w = await world.worker(concurrency=10)
    assert (await autoscale.advise(NAMESPACE, "default", SECOND)).desired == 0

    for _ in range(12):
        await world.parcel(job, 10)
        (slice,) = await w.claim(10)
        world.clock.advance(SECOND)
        await w.report(success(slice, started_at=[world.now() - SECOND // 2], ended_at=[world.now()]))
        statistics.add(w.effects)
        world.clock.advance(4 * SECOND)
    await statistics.step()
    told = (await autoscale.advise(NAMESPACE, "default", SECOND)).signals
    assert told.arrival_rate == pytest.approx(2.0, rel=0.05)
    assert told.service_rate > 0.5
    assert told.duration == pytest.approx(0.05, rel=0.01)  # ten executions took half a second in total


async def test_draining_workers_and_workers_of_other_queues_do_not_count(world: World, autoscale: Autoscale):
    await world.job()
    w = await world.worker(concurrency=10)
    await world.store.ask_drain(w.session)

    assert (await autoscale.advise(NAMESPACE, "default", SECOND)).signals.workers == 0


async def test_an_unknown_queue_is_refused(world: World, autoscale: Autoscale):
    with pytest.raises(NotFound, match="nowhere"):
        await autoscale.advise(NAMESPACE, "nowhere", SECOND)
