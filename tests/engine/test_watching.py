"""The clock's watch and the rescuer: what a server may conclude from silence, and when."""

import pytest

from horae.engine.clockwatch import ClockWatch
from horae.engine.directory import Directory
from horae.engine.hints import Hints
from horae.engine.promote import Promoter
from horae.engine.rescue import Rescuer
from horae.engine.settings import EngineSettings
from horae.engine.statistics import Statistics
from horae.engine.sweep import Sweeper
from horae.env import SECOND, VirtualClock, virtual_env
from horae.errors import StoreUnavailable
from horae.model.protocol import Register
from horae.store.contract import Store
from horae.store.sqlite.memory import MemoryDriver
from tests.store_contract.world import World, success

TIMEOUT = 15


class JumpingClock(VirtualClock):
    """A wall clock that can be set, over a monotonic one that cannot."""

    jump = 0

    def now(self):
        return super().now() + self.jump


@pytest.fixture
async def store():
    env = virtual_env(clock=JumpingClock())
    driver = MemoryDriver(env)
    await driver.migrate()
    yield Store(driver, env)
    await driver.close()


@pytest.fixture
def watch(store):
    return ClockWatch(store.env, store, Hints(store.env, store, store.env.new_id()))


@pytest.fixture
def rescuer(store, watch):
    hints = Hints(store.env, store, store.env.new_id())
    settings = EngineSettings(session_timeout=TIMEOUT * SECOND)
    return Rescuer(store.env, store, hints, settings, Statistics(store.env, store, store.env.new_id()), watch)


async def look(rescuer, seconds):
    for _ in range(seconds):
        rescuer._env.clock.advance(SECOND)
        await rescuer.step()


async def state(store, session):
    return (await store.session(session.id)).state


async def test_a_silent_session_is_lost_after_its_timeout(store, rescuer):
    session = await store.register(1, Register(protocol=1, worker="w"), 1)

    await look(rescuer, TIMEOUT)
    assert await state(store, session) == "live"
    await look(rescuer, 2)

    assert await state(store, session) == "lost"


async def test_a_heartbeat_keeps_a_session(store, rescuer):
    session = await store.register(1, Register(protocol=1, worker="w"), 1)

    for n in range(1, 9):
        await look(rescuer, 5)
        await store.answer_empty([(session.id, 0, n)])

    assert await state(store, session) == "live"


async def test_an_outage_of_the_store_expires_nobody(store, rescuer):
    session = await store.register(1, Register(protocol=1, worker="w"), 1)
    await look(rescuer, 10)

    store.env.clock.advance(3600 * SECOND)
    await rescuer.step()
    await look(rescuer, 10)

    assert await state(store, session) == "live"


async def test_failing_calls_prove_nothing(store, rescuer, monkeypatch):
    session = await store.register(1, Register(protocol=1, worker="w"), 1)
    await look(rescuer, 10)

    async def down():
        raise StoreUnavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr(store, "watched", down)
        for _ in range(30):
            store.env.clock.advance(SECOND)
            with pytest.raises(StoreUnavailable):
                await rescuer.step()
    await look(rescuer, 10)

    assert await state(store, session) == "live"


@pytest.mark.parametrize(
    ("jump", "trusted"),
    [(0, True), (3600, True), (86_000, True), (-200, True), (-400, False), (90_000, False), (75 * 365 * 86_400, False)],
)
async def test_a_jump_is_trusted_within_bounds(store, watch, jump, trusted):
    await watch.step()
    store.env.clock.advance(5 * SECOND)

    store.env.clock.jump = jump * SECOND
    await watch.step()

    assert watch.trusted is trusted


async def test_an_untrusted_clock_is_trusted_again_when_it_is_back(store, watch):
    await watch.step()
    store.env.clock.jump = -3600 * SECOND
    await watch.step()
    assert not watch.trusted

    store.env.clock.jump = 0
    await watch.step()

    assert watch.trusted


async def test_an_untrusted_clock_is_trusted_again_when_it_is_accepted(store, watch):
    await watch.step()
    store.env.clock.jump = 10 * 86_400 * SECOND
    await watch.step()

    watch.accept()
    await watch.step()

    assert watch.trusted


async def test_nobody_expires_by_a_clock_that_is_not_trusted(store, rescuer, watch):
    session = await store.register(1, Register(protocol=1, worker="w"), 1)
    watch.trusted = False

    await look(rescuer, 3 * TIMEOUT)

    assert await state(store, session) == "live"


async def test_a_clock_that_jumps_by_years_makes_nothing_old_and_nothing_due(store, watch):
    world = World(store.driver, store.env)
    job = await world.job()
    await world.submit(job, key="k", key_for=3600 * SECOND)
    worker = await world.worker()
    await worker.claim(1)
    await worker.report(*map(success, await worker.holds()))
    await world.submit(job, due_at=world.now() + 3600 * SECOND)
    hints = Hints(store.env, store, store.env.new_id())
    settings = EngineSettings()
    promoter = Promoter(store.env, store, Directory(store.env, store, hints), hints, settings, watch)
    sweeper = Sweeper(store.env, store, store.env.new_id(), settings, promoter, watch)
    await watch.step()

    store.env.clock.jump = 75 * 365 * 86_400 * SECOND
    await sweeper.step()
    await promoter.step()

    kept = {name: len(await world.rows(f"SELECT 1 FROM {name}")) for name in ("history", "unique_keys", "waiting")}
    assert kept == {"history": 1, "unique_keys": 1, "waiting": 1}
