"""Items that a worker has fetched ahead, between long ones: none waits for a slot while it could run elsewhere.

`HORAE_SEED=n` replays one.
"""

from random import Random

import pytest
from msgspec import Raw, json

from horae.env import SECOND
from horae.errors import Busy
from horae.model.ids import execution_id
from horae.model.job import Python, Spec
from horae.model.protocol import Submit
from horae.store.contract import Store
from horae.store.moves import jobs
from tests.simulation.actors import Observer, Worker
from tests.simulation.check import Checker, rows
from tests.simulation.seeds import ONLY, each, seeds
from tests.simulation.world import Actor, Lost, World

SEEDS, MORE = 12, 600  # in `make test`, and in `make prove`
GROUP = 12
BUSY, AFTER = 12.0, 6.0  # simulated seconds of submissions, and of looking on
HELD = 2 * SECOND  # from its grant until an item has begun or is handed back


@pytest.mark.timeout(240)
@seeds(SEEDS, MORE, GROUP)
def test_an_item_begins_or_goes_back_soon_after_a_worker_was_given_it(group: range):
    released = sum(each(group, simulate))
    assert ONLY or released, "no item was ever handed back: this proves nothing"


async def simulate(seed: int) -> int:
    world = World(seed, servers=1 + seed % 2)
    world.faults.heal()
    world.faults.delay = world.rng.choice([0.0, 0.02, 0.2])
    await world.begin()
    observer = Observer()
    checker = Held(world, observer)
    tenant = Tenant(world)
    workers = [Worker(world, observer, f"worker-{i}", world.rng.choice([1, 4, 10])) for i in range(3)]
    for worker in workers:
        worker.start()
    living = tenant.spawn(tenant.live(BUSY))

    async def watched() -> bool:
        checker.check(workers)
        return False

    await world.run(BUSY + AFTER, until=watched)
    assert living.done()
    handed_back = checker.handed_back()
    for actor in (*world.servers, *workers, tenant):
        await actor.kill()
    await world.driver.close()
    return handed_back


class Tenant(Actor):
    """Submits bursts of short executions and, between them, long ones that take every slot; of jobs old and new."""

    def __init__(self, world: World) -> None:
        super().__init__("tenant")
        self.world, self.rng = world, Random(world.rng.random())
        self._jobs: list[str] = []

    async def live(self, seconds: float) -> None:
        end = self.world.clock.monotonic() + seconds
        while self.world.clock.monotonic() < end:
            if not self._jobs or self.rng.random() < 0.1:
                await self._define(f"job-{len(self._jobs)}")
            await self._submit(self.rng.choice(self._jobs))
            await self.world.clock.sleep(self.rng.choice([0.0, 0.05, 0.2, 1.0]))

    async def _define(self, name: str) -> None:
        store = Store(self.world.driver, self.world.env)
        spec = Spec(name=name, task=Python(function="work"), params={"i": 0, "ms": 1, "fail": 0})
        queue, lane = await store.ensure_lane(1, "default", spec.capabilities)
        id = self.world.env.new_id()
        await store.change(lambda now: jobs.add(id, 1, spec, queue.id, lane.id, now))
        self._jobs.append(name)

    async def _submit(self, job: str) -> None:
        """Mostly short ones; now and then some that take minutes, perhaps of a job that was short before."""
        long = self.rng.random() < 0.25
        count, ms = (12, 60_000) if long else self.rng.choice([(1, 1), (20, 1), (40, 10), (99, 2), (30, 40), (8, 1500)])
        params = Raw(json.encode({"ms": ms}))
        while True:
            try:
                await self.world.call(
                    lambda node: node.submitter.submit(1, [Submit(job=job, params=params)] * count, origin="submit")
                )
            except (Lost, Busy):
                await self.world.clock.sleep(0.1)
            else:
                return


class Held(Checker):
    """What always holds, and: a worker begins what it was given, or hands it back."""

    def __init__(self, world: World, observer: Observer) -> None:
        super().__init__(world.driver, observer)
        self.world = world
        self._begun: set[tuple[object, int]] = set()

    def check(self, workers: list[Worker]) -> None:
        super().check(workers)
        self._begun |= {(b.execution, b.attempt) for b in self.observer.begun[len(self._begun) :]}
        since = self.world.env.now() - HELD - 4 * int(self.world.faults.delay * SECOND)
        sql = f"SELECT parcel, lo, hi, attempt FROM running WHERE granted_at < {since}"
        waiting = [
            f"{parcel}[{item}]"
            for parcel, lo, hi, attempt in rows(self.driver, sql)
            for item in range(lo, hi)
            if (execution_id(parcel, item), attempt) not in self._begun
        ]
        assert not waiting, f"{len(waiting)} items wait for a slot of their worker: {waiting[:3]}"

    def handed_back(self) -> int:
        """How many items have a later attempt than their first, though none failed or was lost."""
        later = (rows(self.driver, f"SELECT lo, hi FROM {shelf} WHERE attempt > 1") for shelf in ("running", "history"))
        return sum(hi - lo for found in later for lo, hi in found)
