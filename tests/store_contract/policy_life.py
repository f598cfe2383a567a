"""The daily statements of fair queues: lanes of shares, claims from several, and charges of servers."""

from msgspec import structs

from horae.model.admission.claim_plan import LaneState
from horae.model.executions.submission import Submission
from horae.store.admission import share_lanes, shares
from horae.store.admission.lanes import revisions
from horae.store.fleet import expected_durations
from horae.store.triggers.dependencies import starts
from tests.store_contract.world import NAMESPACE, TestJob, World, success

HOUR = 3_600_000_000


async def shared(world: World, job: TestJob, *given: str) -> dict[str, int]:
    """Submit an execution for each of these shares, and return their lanes."""
    wanted = [structs.replace(one, share=share) for share in given for one in world.wanted(job)]
    placed = await world.store.change(lambda now: share_lanes.assign_share_lanes(wanted, now))
    await world.store.submit([Submission(executions=placed)])
    return {one.share: one.envelope.lane for one in placed}


async def divide(world: World) -> None:
    """Claim executions of two shares at once, and exchange the servers' charges."""
    job = await world.job("divided", queue="fair")
    lanes = await shared(world, job, "a", "b", "a")
    worker = await world.worker("fair")
    views = [LaneState(lane=lane, share=share, price=1.0) for share, lane in lanes.items()]
    taken = await worker.claim(20, views=views)
    await worker.report(*(success(slice) for slice in taken))
    now = world.now()
    await world.store.write(lambda: shares.exchange_charges(world.env.new_id(), [(job.queue, "a", 5)], 0, now))
    await world.store.write(lambda: shares.forget_charges(0))
    await world.store.write(lambda: shares.touch(list(lanes.values()), now + 2 * HOUR))
    await world.store.read(lambda: shares.queue_use({job.queue: (NAMESPACE, "fair")}))
    await world.store.read(lambda: expected_durations.expected_since(0))
    await world.store.read(revisions)
    await world.do("""UPDATE queues SET policy = '{"kind":"shortest"}' WHERE id = $1""", job.queue)
    await world.store.change(lambda now: starts.lead_function_for({job.queue}, {job.id}, now))
