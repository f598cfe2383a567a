"""After a crash the only worker left goes on with all that was lost: soon, unless one of them kills it again."""

import asyncio
from uuid import UUID

from msgspec import Raw, json

from horae.env import SECOND
from horae.model.job import Python, Spec
from horae.model.protocol import Submit
from horae.model.retry import POISON_BOUND
from horae.model.solo import PROBATION
from horae.store.contract import Store
from horae.store.moves import jobs
from tests.simulation.actors import Observer, Worker
from tests.simulation.check import Checker, rows
from tests.simulation.world import SETTINGS, World

HOUR = 3600 * SECOND
SLOTS = 16


class Crashing:
    """One server, one worker at a time, and executions that take as long as they are told."""

    def __init__(self) -> None:
        self.world = World(1, servers=1)
        self.world.faults.heal()
        self.observer = Observer()
        self.checker = Checker(self.world.driver, self.observer)

    async def begin(self, lengths: list[int]) -> list[UUID]:
        """Submit executions of these lengths, and let a worker begin them all."""
        await self.world.begin()
        store = Store(self.world.driver, self.world.env)
        spec = Spec(name="work", task=Python(function="work"), params={"i": 0, "ms": 1, "fail": 0})
        queue, lane = await store.ensure_lane(1, "default", spec.capabilities)
        job = self.world.env.new_id()
        await store.change(lambda now: jobs.add(job, 1, spec, queue.id, lane.id, now))
        wanted = [Submit(job="work", params=Raw(json.encode({"ms": length // 1000}))) for length in lengths]
        submitted = await self.world.servers[0].node.submitter.submit(1, wanted, origin="submit")
        ids = [receipt.execution_id for receipt in submitted]
        self.start()
        assert await self.world.run(5.0, until=self.running(len(ids)))
        return ids

    def start(self) -> None:
        self.worker = Worker(self.world, self.observer, "worker", SLOTS)
        self.worker.start()

    async def crash(self) -> None:
        await self.worker.kill()
        self.start()

    def running(self, count: int):
        """All of them run in the worker there is."""

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


def test_ten_long_executions_run_again_together_soon_after_their_only_worker_was_lost():
    async def scenario() -> None:
        crashing = Crashing()
        await crashing.begin([HOUR] * 10)
        await crashing.crash()
        soon = (SETTINGS.session_timeout + 10 * (PROBATION + 2 * SECOND)) / SECOND
        assert await crashing.world.run(soon, until=crashing.running(10)), len(crashing.observer.begun)
        await crashing.finish()

    asyncio.run(scenario())


def test_one_that_kills_its_worker_is_set_aside_and_all_its_neighbours_finish():
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
        assert deaths == POISON_BOUND
        await crashing.finish()

    asyncio.run(scenario())
