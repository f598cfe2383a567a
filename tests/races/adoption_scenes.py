"""Scenes of adoption: a job gets a limit on itself while its executions run, end, and are claimed.

Executions of one parcel that get the key at different times are in `tests/engine/test_limits.py`, because only the
limits service admits what they leave.
"""

import msgspec
from msgspec import structs

from horae.model.admission.keys import EnvelopeKeys
from horae.model.admission.limits import OWN, key_name
from horae.model.executions.slice import RunningSlice
from horae.store.admission import adoption, holder_sweep
from horae.store.script import Script
from tests.races.limit_scenes import Limited
from tests.races.scenes import cast, scene
from tests.races.stage import Move, Scene
from tests.store_contract.world import Worker, World, success


class Adopting(Limited):
    """A job with executions from before its own limit, and others that wait for this limit."""

    async def set_limit(self, most: int) -> None:
        spec = structs.replace(self.job.spec, concurrency=most)
        encoded = msgspec.json.encode(spec).decode()
        await self.world.do("UPDATE job_versions SET spec = $2 WHERE job = $1", self.job.id, encoded)
        self.keys = EnvelopeKeys(limits=(key_name(self.job.id, OWN, ""),))

    def mark(self, w: Worker) -> Move:
        return Move("mark", lambda: adoption.mark(w.session, self.job.id))

    def adopt(self) -> list[Move]:
        """Return the transactions of the limits service after it has marked the running executions."""

        def admit() -> Script[None]:
            keys = yield from holder_sweep.wake_paced(self.job.id, self.now)
            yield from holder_sweep.admit(keys, self.now)

        return [Move("adopt", lambda: adoption.adopt(self.job.id, 10, self.now)), Move("admit", admit)]


async def running(world: World, most: int) -> tuple[Adopting, Worker, RunningSlice]:
    """Let a worker run two executions, and set a limit on their job."""
    c = await cast(world)
    await world.parcel(c.job, 2)
    w = await world.worker()
    (held,) = await w.claim(2)
    c = Adopting(c.world, c.job)
    await c.set_limit(most)
    return c, w, held


@scene("report / adoption of its executions")
async def _(world: World) -> Scene:
    c, w, held = await running(world, 3)
    await c.parcels(5)
    return Scene(left=[c.report(w, success(held))], right=[c.mark(w), *c.adopt()])


@scene("claim / adoption of the executions")
async def _(world: World) -> Scene:
    c, w, _ = await running(world, 3)
    await world.parcel(c.job, 4)
    return Scene(left=[c.claim(w, 2)], right=[c.mark(w), *c.adopt()])
