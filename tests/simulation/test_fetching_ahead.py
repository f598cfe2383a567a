"""Prefetched items between long ones: none waits for a slot while it could run elsewhere.

There are jobs with and without an estimate, with several slots or other resources, durable jobs that sleep, and jobs
without prefetching; and workers of one or two queues, some of them slow. `HORAE_SEED=n` replays one seed.
"""

from collections import Counter
from random import Random
from typing import Any
from uuid import UUID

import pytest
from msgspec import Raw, json

from horae.env import SECOND
from horae.errors import Busy
from horae.model.base.ids import execution_id
from horae.model.definitions.job import Spec
from horae.model.definitions.retry import RetryPolicy
from horae.model.definitions.tasks import PythonTask
from horae.model.fleet.submit import Submit
from horae.store.contract import Store
from horae.store.definitions import jobs
from tests.simulation.actors import Observer, Worker
from tests.simulation.check import Checker, rows
from tests.simulation.seeds import ONLY, each, seeds
from tests.simulation.world import Actor, Lost, World

SEEDS, MORE = 8, 600  # in `make test`, and in `make prove`
GROUP = 8
BUSY, AFTER = 12.0, 6.0  # simulated seconds with submissions, and seconds after them
SLOW = 0.4  # seconds between two rounds of a slow worker
HELD = 2 * SECOND  # longest time from the grant of an item until it begins or is handed back
IDLE = 2 * SECOND  # longest time for which a worker may have room for an item without getting it
# Kinds of jobs, in the order in which a tenant defines them, besides plain ones.
KINDS: list[dict[str, Any]] = [
    {},
    {"slots": 2},
    {"resources": {"gpu": 1}},
    {"durable": True},
    {"queue": "other"},
    {"delivery": "at-most-once", "retry": RetryPolicy(retries=0)},
    {"timeout": 120 * SECOND},
    {"queue": "other", "slots": 3},
]
SLOTS, GPUS = (4, 4, 10), ({"gpu": 1}, {}, {"gpu": 2})
QUEUES = (("default", "other"), ("default",), ("other", "default"))


@pytest.mark.timeout(240)
@seeds(SEEDS, MORE, GROUP)
def test_a_granted_item_soon_begins_or_is_handed_back(group: range):
    released = sum(each(group, simulate))
    assert ONLY or released, "no item was ever handed back: this proves nothing"


async def simulate(seed: int) -> int:
    world = World(seed, servers=1 + seed % 2)
    world.faults.heal()
    world.faults.delay = world.rng.choice([0.0, 0.02, 0.2])
    await world.begin()
    observer = Observer()
    tenant = Tenant(world)
    checker = Held(world, observer, tenant)
    workers = [made_worker(world, observer, i) for i in range(3)]
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


def made_worker(world: World, observer: Observer, i: int) -> Worker:
    """Return one of three workers, with any number of slots, or enough for all kinds of jobs; some are slow."""
    slots = SLOTS[i] if world.seed % 2 else world.rng.choice([1, 4, 10])
    pulse = SLOW if world.seed % 3 == i else 0.05
    more = {"queues": QUEUES[i], "resources": GPUS[i]} if world.seed % 2 else {}
    return Worker(world, observer, f"worker-{i}", slots, pulse=pulse, **more)


class Tenant(Actor):
    """A client that submits bursts of short executions, and between them long ones that take every slot."""

    def __init__(self, world: World) -> None:
        super().__init__("tenant")
        self.world, self.rng = world, Random(world.rng.random())
        self._jobs: list[str] = []
        self.specs: dict[UUID, Spec] = {}

    async def live(self, seconds: float) -> None:
        end = self.world.clock.monotonic() + seconds
        while self.world.clock.monotonic() < end:
            if not self._jobs or self.rng.random() < (0.3 if self.world.seed % 2 else 0.1):
                await self._define(len(self._jobs))
            await self._submit(self.rng.choice(self._jobs))
            await self.world.clock.sleep(self.rng.choice([0.0, 0.05, 0.2, 1.0]))

    async def _define(self, number: int) -> None:
        store = Store(self.world.driver, self.world.env)
        kind = KINDS[number % len(KINDS)] if self.world.seed % 2 else {}
        params = {"i": 0, "ms": 1, "fail": 0, "steps": 3 if kind.get("durable") else 0}
        spec = Spec(name=f"job-{number}", task=PythonTask(function="work"), params=params, **kind)
        queue, lane = await store.ensure_lane(1, spec.queue, spec.lane_needs)
        id = self.world.env.new_id()
        await store.change(lambda now: jobs.add(id, 1, spec, queue.id, lane.id, now))
        self._jobs.append(spec.name)
        self.specs[id] = spec

    async def _submit(self, job: str) -> None:
        """Submit mostly short executions, and sometimes long ones, perhaps of a job with short ones before."""
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
    """A checker that also checks that workers begin or hand back their items, and leave no room unused for long."""

    def __init__(self, world: World, observer: Observer, tenant: Tenant) -> None:
        super().__init__(world.driver, observer)
        self.world, self.tenant = world, tenant
        self._begun: set[tuple[object, int]] = set()
        self._idle: dict[
            tuple[str, UUID, int], int
        ] = {}  # start of the time in which a worker with room begins nothing

    def check(self, workers: list[Worker]) -> None:
        super().check(workers)
        self._begun |= {(b.execution, b.attempt) for b in self.observer.begun[len(self._begun) :]}
        since = self.world.env.now() - HELD - self._slack(workers)
        sql = f"SELECT parcel, lo, hi, attempt FROM running WHERE granted_at < {since}"
        waiting = [
            f"{parcel}[{item}]"
            for parcel, lo, hi, attempt in rows(self.driver, sql)
            for item in range(lo, hi)
            if (execution_id(parcel, item), attempt) not in self._begun
        ]
        assert not waiting, f"{len(waiting)} items wait for a slot of their worker: {waiting[:3]}"

        self._check_idle(workers)

    def _slack(self, workers: list[Worker]) -> int:
        """Return the additional time that a slow network and slow workers may take."""
        return int((4 * self.world.faults.delay + 3 * (max(w.pulse for w in workers) - 0.05)) * SECOND)

    def _check_idle(self, workers: list[Worker]) -> None:
        """Check that no worker has unused room for long while an item for it is queued or held by another worker."""
        now = self.world.env.now()
        waiting = {job for (job,) in rows(self.driver, "SELECT DISTINCT job FROM queued")}
        waiting |= {
            job
            for job, parcel, lo, hi, attempt in rows(self.driver, "SELECT job, parcel, lo, hi, attempt FROM running")
            if any((execution_id(parcel, item), attempt) not in self._begun for item in range(lo, hi))
        }
        begun = Counter(begin.session for begin in self.observer.begun)
        idle = {
            (worker.name, job, begun[worker.session.id])
            for worker in workers
            for job in waiting
            if worker.session is not None and self._has_room(worker, job)
        }
        self._idle = {key: self._idle.get(key, now) for key in idle}
        bound = IDLE + self._slack(workers)
        unused = [f"{self.tenant.specs[key[1]].name} on {key[0]}" for key, at in self._idle.items() if now - at > bound]
        assert not unused, f"room is not used, although executions wait for it: {unused}"

    def _has_room(self, worker: Worker, job: UUID) -> bool:
        spec, session = self.tenant.specs.get(job), worker.session
        if spec is None or session is None or session.ended or spec.queue not in worker.queues:
            return False
        stock = session.stock
        room = stock.room if spec.resources else {}
        return spec.cost.times(stock.slots - stock.busy, room) > 0

    def handed_back(self) -> int:
        """Return the number of items with a later attempt than their first, although none failed or was lost."""
        later = (rows(self.driver, f"SELECT lo, hi FROM {shelf} WHERE attempt > 1") for shelf in ("running", "history"))
        return sum(hi - lo for found in later for lo, hi in found)
