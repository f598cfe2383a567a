"""Rollouts in the store: the submissions that are accepted, the counts, and the end of a rollout."""

import pytest
from msgspec import structs

from horae.env import SECOND
from horae.features.rollouts.store import rollouts
from horae.model.admission.keys import CHOSEN
from horae.model.definitions.rollout import Rollout, RolloutAttempts, RolloutPlan
from horae.model.executions.execution import Extra
from horae.model.executions.parcel import mark_rollout
from horae.model.executions.submission import NewExecution, Submission
from horae.model.fleet.protocol import Exchange
from horae.store.definitions import jobs
from horae.store.executions.entering.submit import JobMoved
from horae.store.script import Script
from horae.store.triggers.targets import execution_of, targets
from tests.store_contract.world import NAMESPACE, TestJob, World, lead, success

PLAN = RolloutPlan(shares={1: 0, 2: 100})


async def begin(world: World, job: TestJob, plan: RolloutPlan = PLAN) -> Rollout:
    def script() -> Script[Rollout]:
        if (yield from jobs.newest(job.id)) == 1:
            yield from jobs.put_version(job.id, 2, job.spec, job.queue, job.lane, world.now())
        yield from rollouts.lock(job.id, NAMESPACE)
        return (yield from rollouts.begin(job.id, plan, "key:me", world.now()))

    return await world.store.write(script)


async def end(world: World, job: TestJob, number: int | None = None) -> Rollout | None:
    return await world.store.write(lambda: rollouts.end(job.id, number, "aborted", "no", "", world.now()))


def chosen(world: World, job: TestJob, rollout: Rollout, n: int = 1) -> list[NewExecution]:
    return [
        structs.replace(
            one, envelope=mark_rollout(structs.replace(one.envelope, version=2), rollout.since), rollout=rollout.number
        )
        for one in world.wanted(job, n)
    ]


async def test_only_choices_of_the_rollout_under_way_are_accepted(world: World):
    job = await world.job()
    plain = Submission(executions=world.wanted(job))
    first = await begin(world, job)
    mine = Submission(executions=chosen(world, job, first))
    with pytest.raises(JobMoved):
        await world.store.submit([plain])
    assert (await world.store.submit([mine])).parcels[0].envelope.version == 2

    second = await begin(world, job, RolloutPlan(shares={1: 50, 2: 50}))
    assert (second.number, second.since) == (first.number + 1, first.since)
    with pytest.raises(JobMoved):
        await world.store.submit([mine])
    assert await end(world, job, first.number) is None
    assert (await end(world, job)) is not None
    assert await end(world, job) is None
    await world.store.submit([plain])
    found = (await world.store.read(lambda: targets([job.id])))[job.id]
    assert (found.rolling, found.choice) == (None, None)


async def test_a_rollout_of_other_versions_counts_from_zero(world: World):
    job = await world.job()
    first = await begin(world, job)
    await world.store.write(lambda: jobs.put_version(job.id, 3, job.spec, job.queue, job.lane, world.now()))
    other = await begin(world, job, RolloutPlan(shares={1: 50, 3: 50}))
    assert other.since > first.since


async def test_targets_choose_a_version_and_mark_the_choice(world: World):
    job = await world.job()
    rollout = await begin(world, job)
    target = (await world.store.read(lambda: targets([job.id])))[job.id]

    tried = execution_of(target, Extra(), lead, new_id=world.env.new_id)
    usual = execution_of(target, Extra(), lead)

    assert (tried.envelope.version, usual.envelope.version) == (2, 1)
    assert str(rollout.since) in (tried.envelope.keys or "")
    assert usual.envelope.keys is None


async def test_ends_of_a_rollout_are_counted_by_version(world: World):
    job = await world.job()
    rollout = await begin(world, job)
    await world.store.submit([Submission(executions=chosen(world, job, rollout, 3))])
    worker = await world.worker()
    (slice,) = await worker.claim(3)
    assert slice.flags & CHOSEN
    world.clock.advance(2 * SECOND)
    up = Exchange(channel=0, n=2, outcomes=[success(slice)])
    done = await world.store.exchange([worker.head(up, frozenset())], [], frozenset(), {})
    assert [(one.outcome, one.count) for one in done.effects.trials] == [("success", 3)]

    trials = [*done.effects.trials, RolloutAttempts(slice.parcel, job.id, "retried", 1)]
    for server in (world.env.new_id(), world.env.new_id()):
        await world.store.write(lambda: rollouts.count(server, trials))  # noqa: B023
    tallies = await world.store.read(lambda: rollouts.tallies(job.id, rollout.since))
    assert {version: tally.outcomes for version, tally in tallies.items()} == {2: {"success": 6, "retried": 2}}
