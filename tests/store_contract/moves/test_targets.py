"""Targets: whatever starts executions by itself knows its jobs as they are at that moment."""

from horae.env import SECOND
from horae.model.execution import Extra
from horae.model.parcel import AT_MOST_ONCE, Envelope
from horae.store.moves.targets import execution_of, targets
from tests.store_contract.world import NAMESPACE, World, lead


async def test_targets_are_read_with_all_that_executions_need(world: World):
    nightly, hourly = await world.job("nightly", priority=7, delivery="at-most-once"), await world.job("hourly")
    found = await world.store.read(lambda: targets([nightly.id, hourly.id]))

    assert {target.name for target in found.values()} == {"nightly", "hourly"}
    target = found[nightly.id]
    assert (target.key, target.state, target.version, target.spec) == ("default/nightly", "active", 1, nightly.spec)
    due = world.now() + SECOND
    made = execution_of(target, Extra(origin="event"), lead, due_at=due, item=b'{"a":1}')
    assert made.envelope == Envelope(
        namespace=NAMESPACE, job=nightly.id, version=1, queue=nightly.queue, lane=nightly.lane, priority=7,
        due_at=due, delivery=AT_MOST_ONCE,
    )  # fmt: skip
    assert (made.item, made.extra.origin, made.rank_lead) == (b'{"a":1}', "event", lead(nightly.queue, 7, nightly.id))


async def test_an_execution_may_be_more_urgent_than_its_job_says(world: World):
    job = await world.job(priority=2)
    target = (await world.store.read(lambda: targets([job.id])))[job.id]
    made = execution_of(target, Extra(), lead, priority=9)

    assert (made.envelope.priority, made.rank_lead, made.envelope.due_at) == (9, lead(job.queue, 9, job.id), 0)


async def test_nothing_is_asked_for_no_jobs(world: World):
    assert await world.store.read(lambda: targets([])) == {}
