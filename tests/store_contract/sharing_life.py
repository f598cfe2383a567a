"""The daily statements of deduplication and of namespaces with quotas."""

import msgspec

from horae.env import SECOND
from horae.model.admission.quota import UNBOUNDED, Quota, QuotaBounds, QuotaUsage
from horae.model.base.ids import parcel_of
from horae.model.executions.deduplication import Batch, Cache, Debounce, DeduplicationKey, Unique
from horae.model.executions.submission import Submission
from horae.model.triggers.decisions.values import Interval
from horae.store.admission import quotas
from horae.store.executions.deduplication import key_expiry
from tests.store_contract.world import NAMESPACE, World, add_trigger, lead

MINUTE = 60 * SECOND
RARE_SHARING = {
    *("forget_results", "namespace_named", "quotas", "set_quota", "count_live", "usage_of_days"),
}


async def share(world: World) -> None:
    """Submit executions that meet a stored one, twice each, with quotas, and delete keys that stand for nothing."""
    job = await world.job("shared", queue="shared")
    rules = (
        Unique(keep="latest"),
        Unique(span=MINUTE),
        Debounce(wait=MINUTE),
        Debounce(wait=MINUTE, keep="first"),
        Batch(size=5, wait=MINUTE),
        Cache(ttl=MINUTE),
    )
    bounds = QuotaBounds({NAMESPACE: Quota(queued=1000, submissions_per_second=1000)}, {job.queue: ("shared", 1000)})
    made = []
    for place, rule in enumerate((*rules, *rules)):
        (one,) = world.wanted(job)
        asked = msgspec.structs.replace(one, deduplication=(DeduplicationKey(rule, f"k{place % len(rules)}"),))
        done = await world.store.submit([Submission(executions=[asked])], bounds=bounds)
        made += [receipt.execution_id for receipt in done.answers[0]]
    for id in sorted(set(made)):
        await world.store.cancel(parcel_of(id), 0, "")
    await add_trigger(world, job, Interval(every=MINUTE, anchor=world.now()))
    world.clock.advance(MINUTE + 5 * SECOND)
    world.store.set_bounds(bounds)
    await world.store.fire(10, lead)
    world.store.set_bounds(UNBOUNDED)
    now, server = world.now(), world.env.new_id()
    await world.store.write(lambda: key_expiry.expire(now, 10))
    await world.store.write(lambda: key_expiry.forget(key_expiry.START, 10, now))
    await world.store.write(lambda: quotas.add_usage(server, {(NAMESPACE, 1): QuotaUsage(1)}))
    await world.store.read(lambda: quotas.used_on(1))
    await world.store.write(lambda: quotas.forget_usage(0, 10))
