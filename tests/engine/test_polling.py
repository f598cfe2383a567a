"""Services do not poll in a busy loop for rows that others hold, and do not miss concurrent changes."""

import pytest

from horae.engine.base.clockwatch import ClockWatch
from horae.engine.base.hints import Hint, Hints
from horae.engine.definitions.directory import LocalDirectory
from horae.engine.executions.promoter import RETRY_HELD, Promoter
from horae.engine.settings import EngineSettings
from horae.env import SECOND, virtual_env
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
