"""The daily statements of limits and sequences of jobs, and of limits of queues and namespaces."""

from horae.env import SECOND
from horae.model.admission.keys import EnvelopeKeys
from horae.model.admission.limits import KeyLimit, Limit, key_name, sequence_name
from horae.model.admission.rate import Rate
from horae.store.admission import coarse, holder_sweep
from horae.store.executions.promote import LONG_AGO
from tests.store_contract.world import NAMESPACE, World, rank, success

MINUTE = 60 * SECOND
# Statements of changes and reads of limits.
RARE_LIMITS = {
    *("drop_limit", "drop_pace", "gates_of_job", "holders_of_key", "limit_named", "limit_ready"),
    *("mark_running_of_namespace", "mark_running_of_queue", "paced_of_job", "unmarked_of_namespace"),
    *("unmarked_of_queue", "wake_paced", "whole_use_of_namespaces", "whole_use_of_queues", "limits_not_ready"),
    *("stale_holders", "stale_tickets", "limits"),  # of the sweep, every few seconds
    *("all_limited", "count_holders"),  # of metrics
}


async def limit(world: World) -> None:
    """Submit, wait, claim, report and sweep under keys; claim under the limits of a queue and a namespace."""
    job = await world.job("limited", limits=(KeyLimit(key="k", concurrency=1, rate=Rate(1, MINUTE)),), queue="limited")
    keys = EnvelopeKeys(limits=(key_name(job.id, "k", "a"),), rated=True)
    for sequence in (None, sequence_name(job.id, "a")):
        for _ in range(2):
            await world.parcel(job, keys=EnvelopeKeys(limits=keys.limits, rated=True, sequence=sequence))
    other = await world.job("paced", limits=(KeyLimit(key="k", rate=Rate(1, MINUTE)),), queue="paced")
    await world.parcel(other, keys=EnvelopeKeys(limits=(key_name(other.id, "k", "b"),), rated=True))
    for _ in range(2):
        await world.parcel(other, keys=EnvelopeKeys(sequence=sequence_name(other.id, "b")))
    await world.store.write(lambda: coarse.put(Limit(sequence=True), queue=job.queue))
    await world.store.write(lambda: coarse.put(Limit(concurrency=9), namespace=NAMESPACE))
    for name in ("queue", "namespace"):
        await world.do(f"UPDATE limits SET ready = true WHERE {name} IS NOT NULL")
    worker = await world.worker("limited")
    for _ in range(8):
        for slice in await worker.claim(5):
            await worker.report(success(slice))
        world.clock.advance(MINUTE)
        await world.store.promote_due(LONG_AGO, 100, rank)
    now = world.now()
    found = await world.store.read(lambda: holder_sweep.gates("", 10))
    await world.store.write(lambda: holder_sweep.admit([one for one in found if holder_sweep.is_key(one)], now))
    await world.store.write(lambda: coarse.put(Limit(), queue=job.queue))
    await world.store.write(lambda: coarse.put(Limit(), namespace=NAMESPACE))
