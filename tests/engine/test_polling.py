"""Services do not poll in a busy loop for rows that others hold, and do not miss concurrent changes."""

import asyncio

import pytest

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions import directory as directory_module
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.promoter import RETRY_HELD, Promoter
from horae.engine.settings import EngineSettings
from horae.env import SECOND, virtual_env
from horae.model.admission.limits import Limit, queue_limit
from horae.model.admission.rate import Rate
from horae.store.contract import Store
from horae.store.executions.promote import PromotionResult
from horae.store.sqlite.memory import MemoryDriver
from horae.store.triggers.fire import FireResult
from tests.engine.objects import scheduler_of


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
def directory(store, hints):
    return LocalDirectory(store.env, store, hints)


def answering(value):
    async def answer(*_, **__):
        return value

    return answer


async def test_rows_that_another_server_promotes_cause_no_busy_loop(store, hints, directory, monkeypatch):
    promoter = Promoter(store.env, store, directory, hints, EngineSettings(), ClockWatch(store.env, store, hints))
    monkeypatch.setattr(store, "promote_due", answering(PromotionResult({}, 0, [])))
    monkeypatch.setattr(store, "next_wake", answering(store.env.now() - 1))

    assert await promoter.step() == RETRY_HELD


async def test_a_timer_that_became_due_during_a_step_is_read_at_once(store, hints, directory, monkeypatch):
    promoter = Promoter(store.env, store, directory, hints, EngineSettings(), ClockWatch(store.env, store, hints))
    due = store.env.now() + 1

    async def late():
        store.env.clock.advance(SECOND)
        return due

    monkeypatch.setattr(store, "next_wake", late)

    assert await promoter.step() == 0.0


async def test_timers_that_another_server_fires_cause_no_busy_loop(store, hints, directory, monkeypatch):
    scheduler = scheduler_of(store, hints, ClockWatch(store.env, store, hints))
    monkeypatch.setattr(store, "fire", answering(FireResult(0, [], {}, None)))
    monkeypatch.setattr(store, "next_fire_at", answering(store.env.now() - 1))

    assert await scheduler.step() == RETRY_HELD


async def test_a_scan_does_not_overwrite_a_concurrent_hint(store, hints, directory, monkeypatch):
    lane = (await store.ensure_lane(1, "default", ()))[1].id
    await directory.load()

    async def scan():
        hints.send_locally(Hint(lanes={lane: 50}))
        return {lane: 100}

    monkeypatch.setattr(store, "occupied", scan)
    await directory.step()

    assert [(view.lane, view.low) for view in directory.lane_states()] == [(lane, 50)]


@pytest.mark.parametrize("span", [0.25, 10], ids=["often", "seldom"])
async def test_lanes_that_a_rate_keeps_full_cause_no_busy_loop(store, hints, directory, monkeypatch, span):
    """A second lane of the queue is full for another reason."""
    clock, now = store.env.clock, store.env.now
    queue, lane = await store.ensure_lane(1, "default", ())
    other = (await store.ensure_lane(1, "default", ("gpu",)))[1]
    monkeypatch.setattr(store, "occupied", answering({lane.id: 1, other.id: 1}))
    limit = {queue_limit(queue.id): Limit(concurrency=2, rate=Rate(count=1, per=int(span * SECOND)))}
    monkeypatch.setattr(directory_module, "all_limits", scripted(limit))
    opens_at, starts = 0, []

    def claim(hint: Hint) -> None:
        nonlocal opens_at
        if lane.id in hint.lanes and now() >= opens_at:
            starts.append(now())
            opens_at = now() + int(span * SECOND)
        full = {lane.id: opens_at, other.id: None}
        directory.mark_full({one: at for one, at in full.items() if one in hint.lanes}, directory.marks())

    hints.listen(claim)
    steps, ends_at = 0, clock.monotonic() + 30
    while clock.monotonic() < ends_at:
        waiting = asyncio.ensure_future(directory.alarm.wait(clock, await directory.step()))
        steps += 1
        assert steps < 300
        while not waiting.done():
            await asyncio.sleep(0)
            clock.advance(SECOND // 200)

    assert len(starts) >= 0.9 * 30 / span
    assert steps <= 30 + 2 * len(starts) + 1


def scripted(value):
    def script():
        yield from ()
        return value

    return script
