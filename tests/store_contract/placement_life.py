"""The daily statements of placement: relaxed lanes, affinities, reservations and spread."""

from msgspec import structs

from horae.model.admission.claim_plan import LaneState, WorkerGroup
from horae.model.admission.keys import EnvelopeKeys, encode_keys
from horae.model.admission.placement.placement import Affinity, Preference, read_needs, without_preferences
from horae.model.admission.placement.reservation import Reservation
from horae.model.base.duration import DAY
from horae.model.executions.submission import Submission
from horae.store.admission.placement import affinity, relax, reserve
from horae.store.executions.reads import execution_reads
from horae.store.fleet import sessions
from tests.store_contract.world import NAMESPACE, TestJob, World, success

HOUR = 3_600_000_000


async def place(world: World) -> None:
    """Submit executions that prefer a worker, have an affinity, are spread, or have a reserved worker."""
    await prefer(world)
    await belong(world)
    await share_out(world)
    await keep(world)


async def needs_of(world: World, job: TestJob) -> frozenset[str]:
    return next(lane.needs for lane in (await world.store.directory()).lanes if lane.id == job.lane)


async def prefer(world: World) -> None:
    job = await world.job("preferring", prefers=(Preference(label="zone=eu", patience=1),))
    await world.submit(job)
    needs, now = without_preferences(await needs_of(world, job)), world.now()
    await world.store.read(lambda: relax.longest_wait(job.lane))
    await world.store.write(lambda: relax.relax(job.lane, now, needs, 100, now))
    await world.store.read(lambda: execution_reads.ever_offered(NAMESPACE))


async def belong(world: World) -> None:
    """Grant an affinity key twice, two hours apart, so that the use of its worker's lane is recorded."""
    job = await world.job("belonging", affinity=Affinity(key="k", patience=1))
    worker = await world.worker("had")
    for _ in range(3):
        keys = encode_keys(EnvelopeKeys(affinity="k"))
        asked = [structs.replace(e, envelope=structs.replace(e.envelope, keys=keys)) for e in world.wanted(job)]
        await world.store.submit([Submission(executions=asked)])
        needs, now = await needs_of(world, job), world.now()
        await world.store.write(lambda needs=needs, now=now: affinity.direct(job.lane, needs, 100, now))
        await worker.report(*[success(slice) for slice in await worker.claim(10)])
        world.clock.advance(2 * HOUR)
    await world.store.write(lambda: relax.forget_lanes(world.now() - DAY))


async def share_out(world: World) -> None:
    job = await world.job("spread", spread=True)
    await world.submit(job, 2)
    worker = await world.worker("even")
    among = WorkerGroup("default", read_needs(await needs_of(world, job)))
    held = await worker.claim(10, views=[LaneState(lane=job.lane, spread_over=among)])
    await world.store.read(lambda: sessions.held_by_lane([worker.session]))
    await worker.report(*[success(slice) for slice in held])


async def keep(world: World) -> None:
    job = await world.job("wide", slots=2)
    await world.submit(job)
    made = [Reservation(lane=job.lane, session=(await world.worker("kept")).session, since=world.now())]
    await world.store.write(lambda: reserve.change([], [], 0, made))
    await world.store.read(lambda: reserve.read_reservations([job.lane]))
    await world.store.write(lambda: reserve.change([], made, world.now(), []))
    await world.store.write(lambda: reserve.change(made, [], 0, []))
