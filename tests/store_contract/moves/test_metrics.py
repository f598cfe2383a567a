"""Reads for metrics: queued executions and the oldest of them, executions under limits, and holders of keys."""

from msgspec import structs

from horae.env import SECOND
from horae.features.alerts.model.findings import RuleFinding
from horae.features.alerts.model.rule import MissingSuccess
from horae.features.alerts.store import alerts
from horae.features.alerts.store import rules as alert_rules
from horae.model.admission.keys import EnvelopeKeys
from horae.model.admission.limits import KeyLimit, Limit, key_name, namespace_limit, queue_limit
from horae.model.admission.rate import Rate
from horae.model.base.duration import DAY
from horae.store.admission import coarse, limit_reads
from horae.store.executions.reads import depths
from tests.store_contract.world import NAMESPACE, World, failed


async def test_depths_count_queued_executions_and_give_the_oldest(world: World):
    job, other = await world.job(), await world.job("other", queue="other")
    since = world.now()
    await world.submit(job, 3)
    world.clock.advance(SECOND)
    await world.submit(job, 2)
    await world.submit(other, 1)

    await world.job("idle", queue="idle")
    told = await world.store.read(depths.all_depths)
    assert {one.queue: (one.items, one.since) for one in told if one.items} == {
        job.queue: (5, since), other.queue: (1, since + SECOND),
    }  # fmt: skip
    assert [(one.namespace, one.items, one.since) for one in told if one.name == "idle"] == [(NAMESPACE, 0, None)]
    assert await world.store.read(depths.names) == {NAMESPACE: "default"}


async def test_limits_report_their_running_executions(world: World):
    job = await world.job()
    await world.store.write(lambda: coarse.put(Limit(concurrency=3), queue=job.queue))
    await world.store.write(lambda: coarse.put(Limit(concurrency=9), namespace=NAMESPACE))
    rated = await world.job("rated", queue="rated")
    await world.store.write(lambda: coarse.put(Limit(rate=Rate(1, SECOND)), queue=rated.queue))
    await world.submit(job, 5)
    names = queue_limit(job.queue), namespace_limit(NAMESPACE)
    views = [structs.replace(view, limits=names) for view in await world.views()]
    assert len(await (await world.worker()).claim(2, views=views)) == 1

    found = await world.store.read(limit_reads.limit_uses)

    assert sorted((use.queue, use.used, use.most) for use in found if use.queue is not None) == [(job.queue, 2, 3)]
    assert [(use.namespace, use.used, use.most) for use in found if use.queue is None] == [(NAMESPACE, 2, 9)]


async def test_holders_of_keys_are_counted_up_to_a_bound(world: World):
    job = await world.job(limits=(KeyLimit(key="k", concurrency=9),))
    for _ in range(3):
        await world.parcel(job, keys=EnvelopeKeys(limits=(key_name(job.id, "k", "a"),)))

    assert [await world.store.read(lambda most=most: limit_reads.count_holders(most)) for most in (2, 100)] == [2, 3]


async def test_failed_attempts_are_counted_by_class(world: World):
    job = await world.job()
    await world.submit(job, 3)
    worker = await world.worker()
    (slice,) = await worker.claim(3)

    await worker.report(failed(slice))

    assert worker.effects.failures == {"error": 3}


async def test_alerts_that_are_firing_are_counted_by_severity(world: World):
    rule = MissingSuccess(after=DAY, severity="critical")
    stored = await world.store.change(lambda now: alert_rules.put_rule(NAMESPACE, "watched", rule, now))
    for subjects in (("a", "b"), ("b",)):
        found = [RuleFinding(subject=subject, message="") for subject in subjects]
        await world.store.change(lambda now, found=found: alerts.settle(stored, found, world.env.new_id, now))

    assert await world.store.read(alerts.firing) == {(NAMESPACE, "critical"): 1}
