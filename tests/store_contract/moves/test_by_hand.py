"""Manual changes of circuits, holds and limits lock tables against claims, which hold locks of rates and limits."""

import asyncio

from horae.env import SECOND
from horae.model.admission.circuit import Circuit, CircuitChange
from horae.model.admission.claim_plan import LaneState
from horae.model.admission.keys import EnvelopeKeys
from horae.model.admission.limits import KeyLimit, Limit, key_name, queue_limit
from horae.model.admission.rate import Rate
from horae.store.admission import circuits, coarse, holds
from tests.store_contract.moves.test_circuits import let_go
from tests.store_contract.moves.test_holds import opened
from tests.store_contract.world import NAMESPACE, TestJob, World, success

ROUNDS = 12
RATE = Rate(1_000_000, SECOND, 1_000_000)


async def work(world: World, name: str, views: list[LaneState]) -> int:
    """Let a worker claim from these lanes in this order, and report; return the number of ended executions."""
    worker, ended = await world.worker(name), 0
    for _ in range(3 * ROUNDS):
        taken = await worker.claim(3, views=views)
        await worker.report(*(success(slice) for slice in taken))
        ended += sum(slice.hi - slice.lo for slice in taken)
    return ended


async def open_and_close(world: World, job: TestJob, paced: TestJob) -> None:
    """Make manual changes again and again; in the end nothing is held back."""
    for _ in range(ROUNDS):
        await world.store.change(lambda now: circuits.force((job.id, ""), CircuitChange("open", "down"), "me", now))
        await opened(world, paced)
        await world.store.write(lambda: coarse.put(Limit(concurrency=5), queue=paced.queue))
        await world.store.change(lambda now: circuits.force((job.id, ""), None, "me", now))
        await world.store.change(lambda now: holds.release(NAMESPACE, paced.queue, None, "me", now))
        await world.store.write(lambda: coarse.put(Limit(concurrency=6), queue=paced.queue))


async def test_manual_changes_and_claims_do_not_deadlock(world: World):
    broken = await world.job("broken", circuit=Circuit(), queue="one")
    paced = await world.job("paced", limits=(KeyLimit(key="k", rate=RATE),), queue="two")
    keys = EnvelopeKeys(limits=(key_name(paced.id, "k", "a"),), rated=True)
    await world.store.write(lambda: coarse.put(Limit(concurrency=6), queue=paced.queue))
    for _ in range(40):
        await world.submit(broken, keys=EnvelopeKeys(circuit=""))
        await world.submit(paced, keys=keys)
    lanes = [LaneState(lane=broken.lane), LaneState(lane=paced.lane, limits=(queue_limit(paced.queue),))]

    await asyncio.gather(
        *(work(world, f"w{i}", lanes if i % 2 else lanes[::-1]) for i in range(4)),
        open_and_close(world, broken, paced),
    )
    await let_go(world, broken)
    await work(world, "last", lanes)

    assert await world.rows("SELECT sum(hi - lo) FROM history") == [(80,)]
    await world.check()
