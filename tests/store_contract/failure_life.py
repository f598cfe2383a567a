"""The daily statements of failures: queue timeouts, budgets by class, streaks and replays."""

from horae.env import SECOND
from horae.features.dead_letters.model import LetterFilter, Replay
from horae.features.dead_letters.store import replays
from horae.model.admission.claim_plan import LaneState
from horae.model.base.ids import execution_id
from horae.model.definitions.retry import Budgets, RetryPolicy
from horae.model.definitions.timeouts import Timeouts
from horae.model.triggers.decisions.values import Interval
from horae.store.executions.leaving import dead_letters, timeouts
from horae.store.expiry.expiry import Cutoffs
from horae.store.triggers import streaks
from tests.store_contract.world import NAMESPACE, World, add_trigger, failed, success

MINUTE = 60 * SECOND
RARE_FAILURES = {"replay", "replays", "lock_replay", "set_replay_state", "standing_replays"}  # requested by users


async def suffer(world: World) -> None:
    """Let executions exceed timeouts, fail by class and in a row, and replay dead letters."""
    await run_late(world)
    await spend(world)
    await fail_in_a_row(world)
    await replay(world)


async def run_late(world: World) -> None:
    """Run a part of a parcel while the rest exceeds its timeout."""
    job = await world.job("late", queue="late", timeouts=Timeouts(queue=SECOND))
    parcel = await world.parcel(job, 3)
    worker = await world.worker("late")
    held = await worker.claim(1, views=[LaneState(lane=job.lane)])
    world.clock.advance(SECOND)
    await world.store.end_overdue(10)
    await worker.report(*[success(slice) for slice in held])
    world.clock.advance(MINUTE)
    await world.store.end_overdue(10)
    await world.store.read(timeouts.next_due)
    assert await world.rows("SELECT count(*) FROM timeouts WHERE parcel = $1", parcel) == [(0,)]


async def spend(world: World) -> None:
    job = await world.job("spending", queue="spending", retry=RetryPolicy(budgets=Budgets(error=1)))
    await world.parcel(job, 1)
    worker = await world.worker("spending")
    held = await worker.claim(1, views=[LaneState(lane=job.lane)])
    await worker.report(*[failed(slice) for slice in held], policies=job.policy)
    (letter,) = [execution_id(slice.parcel, slice.lo) for slice in held]
    (again,) = await world.submit(job, 1)
    await world.store.change(lambda now: dead_letters.mark("retried", [(letter, again.execution_id)], now))


async def fail_in_a_row(world: World) -> None:
    """Let a job fail until its triggers pause, and resume them."""
    job = await world.job("failing", queue="failing", pause_after=1)
    await add_trigger(world, job, Interval(every=MINUTE, anchor=world.now()))
    await world.parcel(job, 1)
    worker = await world.worker("failing")
    held = await worker.claim(1, views=[LaneState(lane=job.lane)])
    await worker.report(*[failed(slice) for slice in held], policies=job.policy)
    now = world.now()
    await world.store.read(lambda: streaks.failed_lately(now // MINUTE))
    assert await world.store.write(lambda: streaks.pause_if_failing(job.id, now))
    await world.store.read(lambda: streaks.pauses([job.id]))
    assert await world.store.write(lambda: streaks.resume(job.id, NAMESPACE, 1, now))


async def replay(world: World) -> None:
    now, id = world.now(), world.env.new_id()
    made = Replay(id=id, namespace=NAMESPACE, letters=LetterFilter(), place=(id, 0), next_at=now, created_at=now)
    await world.store.write(lambda: replays.put(made))
    await world.store.read(replays.next_due)
    taken = await world.store.write(lambda: replays.take_up(now))
    assert taken is not None
    await world.store.write(lambda: replays.advance(taken, (id, 0), now, (1, 1, 0), "", now))
    await world.store.write(lambda: replays.sweep(Cutoffs(now + 1, 0, now)))
