"""The clock watch and the rescuer: what a server may conclude from silence, and when."""

from random import Random

import pytest
from structlog.testing import capture_logs

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.promoter import Promoter
from horae.engine.executions.sweeper import Sweeper
from horae.engine.fleet.rescuer import Rescuer
from horae.engine.settings import EngineSettings
from horae.engine.topics import CancelledCount, Topics
from horae.env import SECOND, Env, SystemClock, uuid7
from horae.errors import StoreUnavailable
from horae.features.statistics.engine.statistics import Statistics
from horae.model.fleet.protocol import Register
from horae.model.triggers.decisions.rules import Misfire, Rules
from horae.model.triggers.decisions.values import Interval
from horae.store.contract import Store
from horae.store.sqlite.memory import MemoryDriver
from tests.engine.objects import base_of, deletions_of, jobs_of, scheduler_of
from tests.store_contract.world import World, add_trigger, rank, success

TIMEOUT = 15
HOUR = 3600 * SECOND
MINUTE = 60 * SECOND
T0 = 1_800_000_000 * SECOND


class JumpingClock(SystemClock):
    """The real clock over two simulated ones: a wall clock, which `jump` sets, and a monotonic clock."""

    def __init__(self):
        self.passed, self.jump = 0, 0
        super().__init__(wall=lambda: T0 + self.passed + self.jump, steady=lambda: self.passed)

    def advance(self, span):
        self.passed += span


@pytest.fixture
async def store():
    env = Env(JumpingClock(), uuid7(Random(0)), Random(1))
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
    return Rescuer(store.env, store, hints, settings, base_of(store).outcomes, watch)


async def look(rescuer, seconds):
    for _ in range(seconds):
        rescuer._env.clock.advance(SECOND)
        await rescuer.step()


async def state(store, session):
    return (await store.session(session.id)).state


async def test_a_silent_session_is_lost_after_its_timeout(store, rescuer):
    session = await store.register(1, Register(protocol=1, worker="w"))

    await look(rescuer, TIMEOUT)
    assert await state(store, session) == "live"
    await look(rescuer, 2)

    assert await state(store, session) == "lost"


async def test_a_heartbeat_keeps_a_session(store, rescuer):
    session = await store.register(1, Register(protocol=1, worker="w"))

    for n in range(1, 9):
        await look(rescuer, 5)
        await store.answer_empty([(session.id, 0, n)])

    assert await state(store, session) == "live"


async def test_an_outage_of_the_store_expires_no_session(store, rescuer):
    session = await store.register(1, Register(protocol=1, worker="w"))
    await look(rescuer, 10)

    store.env.clock.advance(3600 * SECOND)
    await rescuer.step()
    await look(rescuer, 10)

    assert await state(store, session) == "live"


async def test_failing_calls_prove_nothing(store, rescuer, monkeypatch):
    session = await store.register(1, Register(protocol=1, worker="w"))
    await look(rescuer, 10)

    async def down():
        raise StoreUnavailable("gone")

    with monkeypatch.context() as patch:
        patch.setattr(store, "watched_sessions", down)
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


@pytest.mark.parametrize(
    ("jump", "told"),
    [(0, []), (1, []), (-120, ["clock was set"]), (3600, ["clock was set"]), (90_000, ["clock jumped"])],
)
async def test_a_clock_that_was_set_is_logged_once(store, watch, jump, told):
    await watch.step()
    store.env.clock.jump = jump * SECOND

    with capture_logs() as logs:
        await watch.step()
        await watch.step()

    assert [log["event"] for log in logs] == told


async def test_a_step_of_the_wall_clock_changes_server_time_only_after_a_check(store, watch):
    await watch.step()

    store.env.clock.jump = HOUR
    assert store.env.now() == T0
    await watch.step()

    assert store.env.now() == T0 + HOUR


@pytest.mark.parametrize("jump", [-6 * MINUTE, 25 * HOUR, 75 * 365 * 24 * HOUR])
async def test_server_time_runs_on_beside_a_clock_that_is_not_trusted(store, watch, jump):
    await watch.step()

    store.env.clock.jump = jump
    await watch.step()
    store.env.clock.advance(7 * SECOND)
    await watch.step()

    assert store.env.now() == T0 + 7 * SECOND
    assert watch.jump == jump


async def test_an_accepted_clock_is_followed(store, watch):
    await watch.step()
    store.env.clock.jump = 10 * 24 * HOUR
    await watch.step()

    watch.accept()
    await watch.step()

    assert store.env.now() == T0 + 10 * 24 * HOUR


async def test_a_slow_answer_does_not_change_server_time(store, watch, monkeypatch):
    await watch.step()

    async def slow():
        shown = store.env.clock.wall()
        store.env.clock.advance(8 * SECOND)
        return shown

    monkeypatch.setattr(store.driver, "server_time", slow)
    await watch.step()

    assert store.env.now() == T0 + 8 * SECOND
    assert watch.trusted


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


async def test_an_untrusted_clock_expires_no_session(store, rescuer, watch):
    session = await store.register(1, Register(protocol=1, worker="w"))
    watch.trusted = False

    await look(rescuer, 3 * TIMEOUT)

    assert await state(store, session) == "live"


async def test_a_jump_by_years_expires_nothing_and_makes_nothing_due(store, watch):
    world = World(store.driver, store.env)
    job = await world.job()
    await world.submit(job, key="k", key_for=3600 * SECOND)
    worker = await world.worker()
    await worker.claim(1)
    await worker.report(*map(success, await worker.holds()))
    await world.submit(job, due_at=world.now() + 3600 * SECOND)
    hints = Hints(store.env, store, store.env.new_id())
    settings = EngineSettings()
    promoter = Promoter(store.env, store, LocalDirectory(store.env, store, hints), hints, settings, watch)
    sweeper = Sweeper(
        store.env, store, store.env.new_id(), settings, watch, jobs_of(store, rank=rank).open_gate, deletions_of(store)
    )
    await watch.step()

    store.env.clock.jump = 75 * 365 * 86_400 * SECOND
    await sweeper.step()
    await promoter.step()

    kept = {name: len(await world.rows(f"SELECT 1 FROM {name}")) for name in ("history", "unique_keys", "waiting")}
    assert kept == {"history": 1, "unique_keys": 1, "waiting": 1}


async def firing(store, watch):
    """Make a trigger of every minute from T0 on, and its scheduler."""
    world = World(store.driver, store.env)
    rules = Rules(overlap="allow", misfire=Misfire(policy="latest"))
    await add_trigger(world, await world.job(), Interval(every=MINUTE, anchor=T0), rules)
    hints = Hints(store.env, store, store.env.new_id())
    scheduler = scheduler_of(store, hints, watch)
    await watch.step()

    async def minutes():
        """Check the clock and fire due triggers; return the ledger in minutes after T0."""
        await watch.step()
        while not await scheduler.step():
            pass
        rows = await world.rows("SELECT first, last, disposition FROM fires ORDER BY last")
        return [((first - T0) // MINUTE, (last - T0) // MINUTE, what) for first, last, what in rows]

    return minutes


async def test_a_jump_forward_within_a_day_is_an_outage(store, watch):
    minutes = await firing(store, watch)

    store.env.clock.jump = HOUR + 30 * SECOND

    assert await minutes() == [(1, 58, "coalesced"), (59, 59, "fired"), (60, 60, "fired")]


async def test_a_jump_back_of_minutes_fires_nothing_twice(store, watch):
    minutes = await firing(store, watch)
    store.env.clock.advance(4 * MINUTE)
    before = await minutes()

    store.env.clock.jump = -4 * MINUTE
    for _ in range(5):
        assert await minutes() == before
        store.env.clock.advance(MINUTE)

    assert await minutes() == [*before, (5, 5, "fired")]


@pytest.mark.parametrize("jump", [-6 * MINUTE, 75 * 365 * 24 * HOUR])
async def test_a_larger_jump_stops_firing_until_the_clock_is_back(store, watch, jump):
    minutes = await firing(store, watch)

    store.env.clock.jump = jump
    store.env.clock.advance(MINUTE)
    assert await minutes() == []
    store.env.clock.jump = 0

    assert await minutes() == [(1, 1, "fired")]


async def test_a_larger_jump_that_is_accepted_is_an_outage(store, watch):
    minutes = await firing(store, watch)
    store.env.clock.jump = 48 * HOUR + 30 * SECOND
    assert await minutes() == []

    watch.accept()

    assert [what for *_, what in await minutes()] == ["coalesced", "fired", "fired"]


async def test_the_sweep_forgets_records_after_their_retention(store, watch):
    world = World(store.driver, store.env)
    minutes = await firing(store, watch)
    topics = Topics(store)
    statistics = Statistics(store.env, store, store.env.new_id(), topics)
    topics.cancelled(CancelledCount((await world.job("other")).id, 1))
    await statistics.step()
    store.env.clock.advance(MINUTE)
    assert await minutes() == [(1, 1, "fired")]
    settings = EngineSettings(retention=24 * HOUR, fire_retention=48 * HOUR)
    sweeper = Sweeper(
        store.env, store, store.env.new_id(), settings, watch, jobs_of(store, rank=rank).open_gate, deletions_of(store)
    )

    async def left():
        await sweeper.step()
        return {name: len(await world.rows(f"SELECT 1 FROM {name}")) for name in ("fires", "job_minutes")}

    assert await left() == {"fires": 1, "job_minutes": 1}
    store.env.clock.advance(25 * HOUR)
    assert await left() == {"fires": 1, "job_minutes": 0}
    store.env.clock.advance(24 * HOUR)
    assert await left() == {"fires": 0, "job_minutes": 0}
