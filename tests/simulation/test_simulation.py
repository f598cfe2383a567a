"""Servers, workers and clients under crashes and a bad network, seed by seed. `HORAE_SEED=n` replays one seed."""

import asyncio
from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from horae.env import SECOND
from horae.model.definitions.job import Spec
from horae.model.definitions.retry import Budgets, RetryPolicy
from horae.model.definitions.tasks import PythonTask
from horae.model.definitions.timeouts import Timeouts
from horae.model.triggers.decisions.named_trigger import NamedTrigger
from horae.model.triggers.decisions.values import Interval
from horae.model.triggers.dependency import Condition
from horae.store.contract import Store
from horae.store.definitions import jobs
from horae.store.triggers import triggers
from tests.simulation.actors import Client, Observer, Worker
from tests.simulation.check import Checker, all_final
from tests.simulation.seeds import ONLY, each, seeds
from tests.simulation.world import World

SEEDS, MORE = 20, 1_040  # in `make test`, and in `make prove`
GROUP = 20  # seeds in one test
TROUBLED = 15.0  # simulated seconds of faults
HEALING = 600.0  # simulated seconds within which all due executions must end


@pytest.mark.timeout(240)
@seeds(SEEDS, MORE, GROUP)
def test_nothing_is_lost_doubled_or_stranded(group: range):
    hits: Counter[str] = Counter()
    for found in each(group, simulate):
        hits.update(found)
    if not ONLY:
        missed = [name for name, count in hits.items() if not count]
        assert not missed, f"faults that never happened prove nothing: {missed}"


async def simulate(seed: int) -> dict[str, int]:
    world = World(seed, servers=1 + seed % 3)
    await world.begin()
    observer = Observer()
    checker = Checker(world.driver, observer)
    await _define(world)
    client = Client(world, "client", ["short", "solid", *_others(world)])
    workers = [Worker(world, observer, f"worker-{i}", 1 + world.rng.randrange(4)) for i in range(2)]
    for worker in workers:
        worker.start()
    living = client.spawn(client.live(TROUBLED))
    await _trouble(world, workers, observer, checker)
    world.faults.heal()
    await _restore(world, workers, observer)
    await world.run(HEALING / 6, until=_done(living))
    await _pause_ticks(world)
    ended = await world.run(HEALING, until=_all_final(world))
    checker.check(workers)
    assert ended, "liveness: not everything ended after the world had healed"
    checker.check_end([client])
    checker.check_dependents()
    for actor in (*world.servers, *workers, client):
        await actor.kill()
    await world.driver.close()
    return world.hits


async def _define(world: World) -> None:
    """Create jobs whose params define their course, and one that fires every two seconds."""
    store = Store(world.driver, world.env)
    await _add_job(world, store, "short", 2)
    await _add_job(world, store, "solid", 2)
    if _is_durable(world):
        await _add_job(world, store, "durable", 2, durable=True, steps=4)
    tick = await _add_job(world, store, "tick", 0)
    trigger, id = Interval(every=2 * SECOND, since=world.env.now()), world.env.new_id()
    await store.change(lambda now: triggers.add(id, triggers.Owner(tick, 1, 1), NamedTrigger(trigger=trigger), now))
    if world.seed % 2:
        await _depend(world, store, tick)
    if _is_hasty(world):
        budgets = Budgets(error=2, timeout=1)
        retry = RetryPolicy(delay=SECOND, budgets=budgets, within=9 * SECOND)
        await _add_job(world, store, "hasty", 0, retry=retry, timeouts=Timeouts(queue=4 * SECOND))


def _others(world: World) -> list[str]:
    """Return the names of further jobs, which exist in some worlds."""
    return [name for name, there in (("hasty", _is_hasty(world)), ("durable", _is_durable(world))) if there]


def _is_durable(world: World) -> bool:
    """Tell whether the world has durable executions, which sleep and wait for signals without a worker."""
    return world.seed % 11 == 1


def _is_hasty(world: World) -> bool:
    """Tell whether the world has executions with timeouts in the queue and in total."""
    return world.seed % 4 == 3


async def _depend(world: World, store: Store, tick: UUID) -> None:
    """Create a job that follows every end of another, one that follows each successful fire, and one after that."""
    solid = await store.job_named(1, "solid")
    assert solid is not None
    await _add_job(world, store, "after", 0, {solid.job.id: "finished"})
    each = await _add_job(world, store, "each", 0, {tick: "success"})
    await _add_job(world, store, "last", 0, {each: "success"})


async def _add_job(
    world: World, store: Store, name: str, retries: int, needed: dict[UUID, Condition] | None = None, **more: Any
) -> UUID:
    more = {"retry": RetryPolicy(retries=retries, delay=SECOND), **more}
    steps = {"steps": more.pop("steps")} if "steps" in more else {}
    conditions = {str(id): condition for id, condition in (needed or {}).items()}
    spec = Spec(
        name=name, task=PythonTask(function="work"), params={"i": 0, "ms": 1, "fail": 0, **steps},
        dependencies=tuple(conditions), conditions=conditions, **more,
    )  # fmt: skip
    queue, lane = await store.ensure_lane(1, "default", spec.capabilities)
    id = world.env.new_id()
    await store.change(lambda now: jobs.add(id, 1, spec, queue.id, lane.id, now))
    return id


async def _trouble(world: World, workers: list[Worker], observer: Observer, checker: Checker) -> None:
    """Crash, freeze and drain at random while time passes."""
    for _ in range(int(TROUBLED)):
        await world.run(1.0)
        checker.check(workers)
        if len(world.servers) > 1 and world.rng.random() < world.faults.server_crash:
            await world.crash_server(world.rng.choice(world.servers))
        if world.faults.failover and world.rng.random() < world.faults.failover:
            await world.fail_over()
        if len(world.servers) < 3 and world.rng.random() < 0.3:
            await world.add_server("another")
        for worker in list(workers):
            await _trouble_worker(world, workers, worker, observer)


async def _trouble_worker(world: World, workers: list[Worker], worker: Worker, observer: Observer) -> None:
    chance = world.rng.random()
    if chance < world.faults.worker_crash:
        world.hits["worker crash"] += 1
        workers.remove(worker)
        await worker.kill()
        _replace(world, workers, observer)
    elif chance < world.faults.worker_crash + world.faults.freeze:
        worker.freeze(world.rng.choice([1.0, 5.0, 15.0]))
    elif world.rng.random() < 0.02:
        worker.draining = True
    if worker.gone and worker in workers:
        workers.remove(worker)
        _replace(world, workers, observer)


def _replace(world: World, workers: list[Worker], observer: Observer) -> None:
    worker = Worker(world, observer, f"worker-{world.rng.randrange(10**6)}", 1 + world.rng.randrange(4))
    workers.append(worker)
    worker.start()


async def _restore(world: World, workers: list[Worker], observer: Observer) -> None:
    if not world.servers:
        await world.add_server("last")
    _replace(world, workers, observer)


async def _pause_ticks(world: World) -> None:
    """Stop further fires, so that all executions can end."""
    store = Store(world.driver, world.env)
    tick = await store.job_named(1, "tick")
    assert tick is not None
    for timer in await store.read(lambda: triggers.of_job(tick.job.id)):
        await store.change(lambda now: triggers.pause(timer))  # noqa: B023


def _done(living: "asyncio.Task[None]"):
    async def done() -> bool:
        return living.done()

    return done


def _all_final(world: World):
    async def done() -> bool:
        return all_final(world.driver)

    return done
