"""After a crash the only worker goes on with all lost executions: at once, and in halves if it crashes again."""

import asyncio
from uuid import UUID

from msgspec import Raw, json

from horae.env import SECOND
from horae.model.definitions.job import Spec
from horae.model.definitions.retry import LOST
from horae.model.definitions.tasks import PythonTask
from horae.model.fleet.submit import Submit
from horae.model.fleet.suspects import tries
from horae.store.contract import Store
from horae.store.definitions import jobs
from tests.simulation.actors import Observer, Worker
from tests.simulation.check import Checker, rows
from tests.simulation.world import SETTINGS, World

HOUR = 3600 * SECOND
SLOTS = 16


class Crashing:
    """One server, one worker at a time, and executions with given durations."""

    def __init__(self) -> None:
        self.world = World(1, servers=1)
        self.world.faults.heal()
        self.observer = Observer()
        self.checker = Checker(self.world.driver, self.observer)

    async def begin(self, lengths: list[int]) -> list[UUID]:
        """Submit executions with these durations, and let a worker begin all of them."""
        await self.world.begin()
        store = Store(self.world.driver, self.world.env)
        spec = Spec(name="work", task=PythonTask(function="work"), params={"i": 0, "ms": 1, "fail": 0})
        queue, lane = await store.ensure_lane(1, "default", spec.capabilities)
        job = self.world.env.new_id()
        await store.change(lambda now: jobs.add(job, 1, spec, queue.id, lane.id, now))
        ids = await self.submit(lengths)
        self.start()
        assert await self.world.run(5.0, until=self.running(len(ids)))
        return ids

    async def submit(self, lengths: list[int]) -> list[UUID]:
        wanted = [Submit(job="work", params=Raw(json.encode({"ms": length // 1000}))) for length in lengths]
        submitted = await self.world.servers[0].node.submitter.submit(1, wanted, origin="submit")
        return [receipt.execution_id for receipt in submitted]

    def start(self) -> None:
        self.worker = Worker(self.world, self.observer, "worker", SLOTS)
        self.worker.start()

    async def crash(self) -> None:
        await self.worker.kill()
        self.start()

    def running(self, count: int):
        """Return a condition that `count` executions have begun in the present worker."""

        async def all_run() -> bool:
            session = self.worker.session
            here = [b for b in self.observer.begun if session is not None and b.session == session.id]
            return len(here) == count

        return all_run

    def ended(self) -> dict[UUID, tuple[str, str]]:
        sql = "SELECT parcel, lo, hi, state, reason FROM history"
        return {
            UUID(int=parcel.int + item): (state, reason)
            for parcel, lo, hi, state, reason in rows(self.world.driver, sql)
            for item in range(lo, hi)
        }

    async def finish(self) -> None:
        self.checker.check([self.worker])
        for actor in (*self.world.servers, self.worker):
            await actor.kill()
        await self.world.driver.close()


def test_executions_lost_with_the_only_worker_run_again_at_once():
    async def scenario() -> None:
        crashing = Crashing()
        await crashing.begin([HOUR] * 12)
        await crashing.crash()
        at_once = 2 * SETTINGS.session_timeout / SECOND
        assert await crashing.world.run(at_once, until=crashing.running(12)), len(crashing.observer.begun)
        await crashing.finish()

    asyncio.run(scenario())


def test_executions_lost_twice_run_again_in_halves():
    async def scenario() -> None:
        crashing = Crashing()
        await crashing.begin([HOUR] * 12)
        at_once = 2 * SETTINGS.session_timeout / SECOND
        for expected in (12, SLOTS // 2, SLOTS // 4):
            await crashing.crash()
            assert await crashing.world.run(at_once, until=crashing.running(expected)), len(crashing.observer.begun)
        await crashing.finish()

    asyncio.run(scenario())


def test_an_only_worker_that_is_killed_repeatedly_finishes_and_nothing_counts_as_poison():
    """The worker is killed 60 times in about 6 minutes. Afterwards all executions end within a minute."""

    async def scenario() -> None:
        crashing = Crashing()
        ids = await crashing.begin([3 * SECOND] * SLOTS)
        for _ in range(60):
            ids += await crashing.submit([3 * SECOND] * 10)
            await crashing.world.run(SETTINGS.session_timeout / SECOND + crashing.world.rng.uniform(2, 8))
            crashing.checker.check([crashing.worker])
            await crashing.crash()

        async def ended() -> bool:
            return len(crashing.ended()) == len(ids)

        await crashing.world.run(SETTINGS.session_timeout / SECOND + 60, until=ended)
        assert crashing.ended() == dict.fromkeys(ids, ("success", ""))
        await crashing.finish()

    asyncio.run(scenario())


def test_an_execution_that_kills_its_worker_fails_and_all_others_finish():
    async def scenario() -> None:
        crashing = Crashing()
        ids = await crashing.begin([40 * SECOND] * 10)
        poison = ids[4]
        await crashing.crash()
        deaths = 1
        for _ in range(20_000):
            await crashing.world.run(0.1)
            crashing.checker.check([crashing.worker])
            if sum(b.execution == poison for b in crashing.observer.begun) > deaths:
                deaths += 1
                await crashing.crash()
            if len(crashing.ended()) == len(ids):
                break
        expected = dict.fromkeys(ids, ("success", "")) | {poison: ("failed", "poison")}
        assert crashing.ended() == expected
        assert LOST + 1 <= deaths <= tries(SLOTS) + 1
        await crashing.finish()

    asyncio.run(scenario())
