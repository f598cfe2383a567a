"""The daily statements of preemption: waiting jobs that may preempt, preemptible running ones, and prefetched items."""

from horae.env import SECOND
from horae.model.admission.circuit import Circuit
from horae.model.admission.keys import PREEMPTS, EnvelopeKeys
from horae.model.admission.limits import KeyLimit, key_name
from horae.model.admission.rate import Rate
from horae.store.admission.placement import preempt, prefetch
from tests.store_contract.world import NAMESPACE, World, released


async def give_way(world: World) -> None:
    """Fill a worker with preemptible work, submit an execution that preempts, and free a slot for it."""
    low = await world.job("yielding", preemptible=True, priority=0)
    await world.submit(low, 1)
    w = await world.worker("giving-way", concurrency=1)
    (slice,) = await w.claim(1, lanes=frozenset({low.lane}))
    limits = (KeyLimit(key="c", rate=Rate(1, SECOND)),)
    high = await world.job("preempting", preempts=True, priority=9, limits=limits, circuit=Circuit())
    keys = EnvelopeKeys(standing=PREEMPTS, limits=(key_name(high.id, "c", "a"),), rated=True, circuit="")
    await world.submit(high, 1, keys=keys)
    now, lanes = world.now(), frozenset(await world.all_lanes())
    rules = preempt.PreemptRules(may_take=lambda session: lanes if session.id == w.session else frozenset())
    await world.store.read(lambda: preempt.waiters((high.lane,), frozenset()))
    await world.store.write(lambda: preempt.preempt(NAMESPACE, (), frozenset(), rules, now))
    await world.store.read(lambda: prefetch.fronts_of([(high.lane, now)]))
    await world.store.read(lambda: prefetch.held_ready(w.session, low.queue, 0, False))
    await w.report(released(slice))
