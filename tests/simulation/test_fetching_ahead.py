"""Items that a worker has fetched ahead, between long ones: none waits for a slot while it could run elsewhere.

Jobs with and without an estimate, with several slots or other resources, durable ones that sleep in between, and those
of which nothing is fetched ahead; workers of one queue or of two, some of them slow. `HORAE_SEED=n` replays one.
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
BUSY, AFTER = 12.0, 6.0  # simulated seconds of submissions, and of looking on
SLOW = 0.4  # seconds between two looks around of a worker that is slow
HELD = 2 * SECOND  # from its grant until an item has begun or is handed back
IDLE = 2 * SECOND  # for which a worker that could run an item has room for it, and does not get it
# What jobs are like, in the order in which a tenant defines them; each stands beside the plain ones.
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
    """One of three: any number of slots, or enough for all kinds of jobs; every third world has a slow one."""
    slots = SLOTS[i] if world.seed % 2 else world.rng.choice([1, 4, 10])
    pulse = SLOW if world.seed % 3 == i else 0.05
    more = {"queues": QUEUES[i], "resources": GPUS[i]} if world.seed % 2 else {}
    return Worker(world, observer, f"worker-{i}", slots, pulse=pulse, **more)


class Tenant(Actor):
    """Submits bursts of short executions and, between them, long ones that take every slot; of jobs old and new."""

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
    """What always holds, and: a worker begins what it was given, or hands it back; no room is left unused for long."""

    def __init__(self, world: World, observer: Observer, tenant: Tenant) -> None:
        super().__init__(world.driver, observer)
        self.world, self.tenant = world, tenant
        self._begun: set[tuple[object, int]] = set()
        self._idle: dict[tuple[str, UUID, int], int] = {}  # since when a worker has room for a job, and begins nothing

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
        """How much longer it may take as the network and the workers are slow."""
        return int((4 * self.world.faults.delay + 3 * (max(w.pulse for w in workers) - 0.05)) * SECOND)

    def _check_idle(self, workers: list[Worker]) -> None:
        """No worker has room for long, and begins nothing, while something for it is queued or held by another."""
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
        assert not unused, f"room is not used, though something waits for it: {unused}"

    def _has_room(self, worker: Worker, job: UUID) -> bool:
        spec, session = self.tenant.specs.get(job), worker.session
        if spec is None or session is None or session.ended or spec.queue not in worker.queues:
            return False
        stock = session.stock
        room = stock.room if spec.resources else {}
        return spec.cost.times(stock.slots - stock.busy, room) > 0

    def handed_back(self) -> int:
        """How many items have a later attempt than their first, though none failed or was lost."""
        later = (rows(self.driver, f"SELECT lo, hi FROM {shelf} WHERE attempt > 1") for shelf in ("running", "history"))
        return sum(hi - lo for found in later for lo, hi in found)
