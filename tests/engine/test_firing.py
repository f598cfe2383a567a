"""The scheduler: it decides a backlog in concurrent batches, each fire once, and rereads the right range of timers."""

import pytest

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.settings import EngineSettings
from horae.engine.triggers.scheduler import FEWEST, BatchSize
from horae.env import SECOND, virtual_env
from horae.model.triggers.decisions.rules import Rules
from horae.model.triggers.decisions.values import Interval
from horae.store.contract import Store
from horae.store.sqlite.memory import MemoryDriver
from horae.store.triggers.due import FIRST
from horae.store.triggers.fire import FireResult
from tests.engine.objects import scheduler_of
from tests.store_contract.world import World, add_trigger

HOUR = 3600 * SECOND


@pytest.fixture
async def store():
    env = virtual_env()
    driver = MemoryDriver(env)
    await driver.migrate()
    yield Store(driver, env)
    await driver.close()


@pytest.fixture
def hints(store):
    return Hints(store.env, store, store.env.new_id())


@pytest.fixture
def scheduler(store, hints):
    _directory, watch = LocalDirectory(store.env, store, hints), ClockWatch(store.env, store, hints)
    return scheduler_of(store, hints, watch, EngineSettings(fire_batch=10))


@pytest.mark.parametrize("count", [9, 10, 11, 195])
async def test_every_fire_of_a_backlog_is_decided_once(store, scheduler, count):
    world = World(store.driver, store.env)
    job = await world.job()
    for i in range(count):
        when = Interval(every=HOUR, anchor=store.env.now() + (1 + i % 7) * SECOND)
        await add_trigger(world, job, when, Rules(), name=f"t{i}")
    store.env.clock.advance(10 * SECOND)

    while not await scheduler.step():
        pass

    fired = await world.rows("SELECT trigger_id FROM fires WHERE disposition = 'fired'")
    assert len(fired) == len(set(fired)) == scheduler.fired == count


def test_the_batch_size_adapts_to_the_speed_of_the_store():
    pace = BatchSize(1000, 0.03)
    sizes = []
    for took in (0.06, 0.05, 0.01, 10.0, 0.0):
        pace.learn(pace.size, took)
        sizes.append(pace.size)

    assert sizes == [500, 300, 900, FEWEST, FEWEST]


@pytest.fixture
def marks(store, monkeypatch):
    """Record the begin of each read of timers."""
    found = []

    async def fire(limit, lead, low, *_):
        found.append(low)
        return FireResult(0, [], {}, None)

    monkeypatch.setattr(store, "fire", fire)
    return found


async def test_a_step_reads_from_one_second_back_and_everything_once_a_second(store, scheduler, marks):
    begun = store.env.now()
    for _ in range(3):
        await scheduler.step()
        store.env.clock.advance(SECOND // 2)

    assert marks == [FIRST, (begun - SECOND, FIRST[1]), FIRST]


async def test_a_hint_makes_the_next_step_read_everything(store, scheduler, hints, marks):
    await scheduler.step()
    hints.send_locally(Hint(fire_at=store.env.now()))
    await scheduler.step()

    assert marks == [FIRST, FIRST]
