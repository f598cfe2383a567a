"""Backfills under crashes between any two statements, a bad network and lost workers, seed by seed."""

import asyncio
from collections import Counter
from typing import Any
from uuid import UUID

import msgspec
import pytest

from horae.env import SECOND
from horae.errors import HoraeError
from horae.features.backfills.model.request import BackfillRequest
from horae.features.backfills.model.values import Backfill
from horae.features.backfills.part import BackfillsPart
from horae.features.backfills.store import backfills
from horae.model.triggers.decisions.named_trigger import NamedTrigger
from horae.model.triggers.decisions.rules import Misfire, Rules
from horae.model.triggers.decisions.values import Interval
from horae.store.contract import Store
from horae.store.triggers import audit_fires, triggers
from tests.simulation.actors import Observer, Worker
from tests.simulation.check import Checker, all_final, rows
from tests.simulation.seeds import each, seeds
from tests.simulation.test_simulation import _add_job, _replace, _restore, _trouble_worker
from tests.simulation.world import Actor, Lost, World

SEEDS, MORE = 10, 60  # in `make test`, and in `make prove`
GROUP = 10
EVERY = 2 * SECOND
LAST = UUID(int=2**128 - 1)
MOST = 3  # executions of a backfill that may be live


@pytest.mark.timeout(240)
@seeds(SEEDS, MORE, GROUP)
def test_every_past_fire_runs_once_despite_faults(group: range):
    each(group, simulate)


async def simulate(seed: int) -> None:
    world = World(seed, servers=1 + seed % 3)
    await world.begin()
    world.driver.before = world._between_statements
    observer = Observer()
    checker = Checker(world.driver, observer)
    store = Store(world.driver, world.env)
    start = world.env.now()
    tick = await _add_job(world, store, "tick", 1)
    rules = Rules(overlap="skip", misfire=Misfire(policy="skip"), grace=SECOND)
    when, id = NamedTrigger(trigger=Interval(every=EVERY, since=start), rules=rules), world.env.new_id()
    await store.change(lambda now: triggers.add(id, triggers.Owner(tick, 1, 1), when, now))
    workers = [Worker(world, observer, f"worker-{i}", 1 + world.rng.randrange(4)) for i in range(2)]
    for worker in workers:
        worker.start()
    operator, asking = Actor("operator"), list[asyncio.Task[None]]()
    for second in range(20):
        await world.run(1.0)
        if second in (5, 11):
            asking.append(operator.spawn(_ask(world, start - 20 * SECOND)))
        checker.check(workers)
        _check_live(world)
        await _crash(world, workers, observer)
    world.faults.heal()
    await _restore(world, workers, observer)
    asking.append(operator.spawn(_ask(world, start - 30 * SECOND)))
    await world.run(60.0, until=_answered(asking))
    for timer in await store.read(lambda: triggers.of_job(tick)):
        await store.change(lambda now: triggers.pause(timer))  # noqa: B023
    ended = await world.run(600.0, until=_ended(world, store))
    assert ended, "liveness: a backfill did not come to its end"
    await _check_ledger(world, store)
    for actor in (*world.servers, *workers, operator):
        await actor.kill()
    await world.driver.close()


async def _ask(world: World, since: int) -> None:
    """Request a backfill up to now; lost answers may lead to several."""
    asked = BackfillRequest(
        job="tick", since=since, until=world.env.now(), max_concurrent=MOST,
        order="newest" if world.rng.random() < 0.5 else "oldest", force=world.rng.random() < 0.2,
    )  # fmt: skip
    while True:
        try:
            await world.call(lambda node: node.part(BackfillsPart).backfills.create(1, asked))
        except (Lost, HoraeError):
            await world.clock.sleep(0.2)
        else:
            return


async def _crash(world: World, workers: list[Worker], observer: Observer) -> None:
    if len(world.servers) > 1 and world.rng.random() < world.faults.server_crash:
        await world.crash_server(world.rng.choice(world.servers))
    if len(world.servers) < 3 and world.rng.random() < 0.3:
        await world.add_server("another")
    for worker in list(workers):
        await _trouble_worker(world, workers, worker, observer)
    if not workers:
        _replace(world, workers, observer)


def _executions(world: World) -> list[tuple[str, Any]]:
    """Return the extras of all live executions."""
    found = []
    live = " UNION ALL ".join(f"SELECT parcel, lo, hi FROM {shelf}" for shelf in ("waiting", "queued", "running"))
    parcels = {id: (n, msgspec.json.decode(extras)) for id, n, extras in rows(
        world.driver, "SELECT id, n, extras FROM parcels WHERE extras IS NOT NULL")}  # fmt: skip
    for parcel, lo, hi in rows(world.driver, live):
        n, extras = parcels[parcel]
        each = extras if isinstance(extras, list) else [extras] * n
        found += [("live", extra) for extra in each[lo:hi]]
    return found


def _check_live(world: World) -> None:
    """Check, by counting rows, that no backfill has more live executions than it may."""
    if world.driver._turn.locked():
        return
    live = Counter(extra["backfill"] for _, extra in _executions(world) if extra.get("origin") == "backfill")
    assert all(count <= MOST for count in live.values()), f"more live than allowed: {live}"


def _answered(asking: list[asyncio.Task[None]]):
    async def done() -> bool:
        return all(task.done() for task in asking)

    return done


def _ended(world: World, store: Store):
    async def done() -> bool:
        open_ones = await store.read(lambda: backfills.unfinished(100))
        return not open_ones and all_final(world.driver)

    return done


async def _check_ledger(world: World, store: Store) -> None:
    report = await store.read(audit_fires.audit_fires)
    assert report.findings == [], report.findings
    runs: Counter[tuple[str, int]] = Counter()
    forced: Counter[tuple[str, int]] = Counter()
    for n, extras in rows(world.driver, "SELECT n, extras FROM parcels WHERE extras IS NOT NULL"):
        decoded = msgspec.json.decode(extras)
        for extra in decoded if isinstance(decoded, list) else [decoded] * n:
            runs[extra["trigger"], extra["fireAt"]] += 1
    for trigger, at, again in rows(world.driver, "SELECT trigger_id, at, forced FROM backfill_runs"):
        forced[str(trigger), at] += bool(again)
    twice = [fire for fire, count in runs.items() if count > 1 + forced[fire]]
    assert not twice, f"I1: run twice without force: {twice[:3]}"
    made = await store.read(lambda: backfills.page(1, LAST, None, None, 100))
    assert made
    for backfill in made:
        _check_counts(backfill)
    last = max(made, key=lambda b: b.until)
    left = rows(world.driver, f"SELECT first FROM fires WHERE execution IS NULL AND last < {last.until}")
    assert left == [], "fires that did not run were not backfilled"


def _check_counts(backfill: Backfill) -> None:
    c = backfill.counts
    assert backfill.state == "done"
    assert c.live == 0
    assert c.already + c.started + c.unknown == c.total, c
