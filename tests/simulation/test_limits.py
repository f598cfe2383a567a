"""Limits under crashes and a bad network: they are never exceeded, as seen by an observer outside, and only live
executions use them. `HORAE_SEED=n` replays one seed.
"""

from collections import defaultdict
from typing import Any
from uuid import UUID

import pytest

from horae.env import SECOND
from horae.model.admission.keys import keys_of
from horae.model.admission.limits import KeyLimit, Limit
from horae.model.admission.rate import Rate
from horae.model.base.ids import parcel_of
from horae.model.definitions.job import Spec
from horae.model.definitions.retry import RetryPolicy
from horae.model.definitions.tasks import PythonTask
from horae.store.admission import coarse, holder_sweep
from horae.store.contract import Store
from horae.store.definitions import jobs
from tests.simulation.actors import Begin, Client, Observer, Worker
from tests.simulation.check import Checker, all_final, rows
from tests.simulation.seeds import each, seeds
from tests.simulation.test_simulation import _done, _restore, _trouble
from tests.simulation.world import World

SEEDS, MORE = 6, 240  # in `make test`, and in `make prove`
GROUP = 6
TROUBLED = 12.0
HEALING = 600.0
AT_ONCE = 2  # of each key
IN_QUEUE = 4
PACE = Rate(40, SECOND, 8)


@pytest.mark.timeout(240)
@seeds(SEEDS, MORE, GROUP)
def test_limits_hold_despite_faults(group: range):
    each(group, simulate)


async def simulate(seed: int) -> None:
    world = World(seed, servers=1 + seed % 3)
    await world.begin()
    observer = Observer()
    checker = Limits(world, observer)
    await _define(world)
    client = Client(world, "client", ["keyed", "ordered", "narrow"])
    workers = [Worker(world, observer, f"worker-{i}", 1 + world.rng.randrange(4)) for i in range(3)]
    for worker in workers:
        worker.start()
    living = client.spawn(client.live(TROUBLED))
    await _trouble(world, workers, observer, checker)
    world.faults.heal()
    await _restore(world, workers, observer)
    await world.run(HEALING / 6, until=_done(living))

    async def final() -> bool:
        return all_final(world.driver)

    ended = await world.run(HEALING, until=final)
    checker.check(workers)
    assert ended, "liveness: not everything ended after the world had healed"
    checker.check_end([client])
    checker.check_from_outside()
    for actor in (*world.servers, *workers, client):
        await actor.kill()
    await world.driver.close()


async def _define(world: World) -> None:
    """Create a job with a limit by key, one with sequences, and one with a limit of its own; half of the worlds also
    limit the queue.
    """
    store = Store(world.driver, world.env)
    pace = PACE if world.seed % 4 else None
    said: dict[str, dict[str, Any]] = {
        "keyed": {"limits": (KeyLimit(key="${params.i % 3}", concurrency=AT_ONCE, rate=pace),)},
        "ordered": {"sequence": "${params.i % 2}"},
        "narrow": {"concurrency": 1},
    }
    for name, limits in said.items():
        spec = Spec(
            name=name, task=PythonTask(function="work"), retry=RetryPolicy(retries=2, delay=SECOND),
            params={"i": 0, "ms": 1, "fail": 0}, **limits,
        )  # fmt: skip
        queue, lane = await store.ensure_lane(1, "default", spec.capabilities)
        id = world.env.new_id()
        await store.change(lambda now: jobs.add(id, 1, spec, queue.id, lane.id, now))  # noqa: B023
    if world.seed % 2:
        await store.write(lambda: coarse.put(Limit(concurrency=IN_QUEUE), queue=queue.id))
        for server in world.servers:
            await server.node.base.directory.load()


class Limits(Checker):
    """A checker that also checks limits."""

    def __init__(self, world: World, observer: Observer) -> None:
        super().__init__(world.driver, observer)
        self.world = world

    def check(self, workers: list[Worker]) -> None:
        super().check(workers)
        if self.driver._turn.locked():
            return
        used: dict[str, int] = defaultdict(int)
        running = 0
        for shelf in ("queued", "running"):
            sql = f"SELECT s.hi - s.lo, p.keys FROM {shelf} s JOIN parcels p ON p.id = s.parcel"
            for count, encoded in rows(self.driver, sql):
                running += count if shelf == "running" else 0
                for key in keys_of(encoded).guarded:
                    used[key] += count
        for key, count in used.items():
            assert count <= self._most(key), f"I5: {count} hold {key}"
        if self.world.seed % 2:
            assert running <= IN_QUEUE, f"I5: {running} run in a queue that allows {IN_QUEUE}"

    def _most(self, key: str) -> int:
        (job,) = rows(self.driver, f"SELECT name FROM jobs WHERE lower(hex(id)) = '{UUID(key.split(':')[1]).hex}'")
        return AT_ONCE if job[0] == "keyed" else 1

    def check_end(self, clients: list[Client]) -> None:
        """Check that no limit is in use after all executions have ended."""
        super().check_end(clients)
        assert rows(self.driver, "SELECT key FROM tickets") == [], "a place in a sequence is left"
        left = [key for (key,) in rows(self.driver, "SELECT key FROM holders") if holder_sweep.is_key(key)]
        assert left == [], "a key is held by what has ended"

    def check_from_outside(self) -> None:
        """Check I9 by overlaps in time of the attempts of each key, except attempts of lost sessions."""
        lost = {id for (id,) in rows(self.driver, "SELECT id FROM sessions WHERE state = 'lost'")}
        keys = {id: keys_of(encoded) for id, encoded in rows(self.driver, "SELECT id, keys FROM parcels")}
        seen: dict[str, list[Begin]] = defaultdict(list)
        for begin in self.observer.begun:
            ended = self.observer.ended.get((begin.execution, begin.attempt))
            if begin.session not in lost and ended is not None:
                for key in keys[parcel_of(begin.execution)].guarded:
                    seen[key].append(begin)
        for key, begun in seen.items():
            self._check_overlaps(key, begun)
            if keys[parcel_of(begun[0].execution)].rated:
                self._check_pace(key, sorted(begin.at for begin in begun))

    def _check_overlaps(self, key: str, begun: list[Begin]) -> None:
        moments = [(begin.at, 1) for begin in begun]
        moments += [(self.observer.ended[begin.execution, begin.attempt], -1) for begin in begun]
        now = 0
        for _, change in sorted(moments):
            now += change
            assert now <= self._most(key), f"I9: {now} of {key} ran at once"

    def _check_pace(self, key: str, starts: list[int]) -> None:
        """Check the rate of starts. A prefetched item begins later than its charge, by at most a heartbeat."""
        for i, since in enumerate(starts):
            in_second = sum(since <= at < since + SECOND for at in starts[i:])
            assert in_second <= PACE.count + 2 * PACE.burst, f"{in_second} of {key} began in a second"
