"""Preemption: running executions are asked to stop, return unchanged, and leave their slots to the preempting ones."""

import asyncio

import pytest
from msgspec import structs

from horae.env import SECOND
from horae.model.admission.circuit import Circuit, CircuitChange
from horae.model.admission.keys import PREEMPTIBLE, PREEMPTS, EnvelopeKeys
from horae.model.admission.limits import KeyLimit, Limit, key_name
from horae.model.admission.placement.preempt import to_front
from horae.model.admission.rate import Rate
from horae.model.fleet.protocol import Step
from horae.store.admission import circuits, coarse
from horae.store.admission.placement import preempt
from horae.store.executions.durable import steps
from tests.store_contract.world import NAMESPACE, World, began, failed, released, success


async def decide(world: World, lanes=frozenset(), paused=frozenset(), **rules):
    everywhere = frozenset(await world.all_lanes())
    chosen = preempt.PreemptRules(may_take=lambda session: everywhere, **rules)
    now = world.now()
    return await world.store.write(lambda: preempt.preempt(NAMESPACE, lanes, paused, chosen, now))


async def asked(world: World):
    """Return the requests that were written: (parcel, item, kind)."""
    return await world.rows("SELECT parcel, item, kind FROM requests ORDER BY parcel, item")


async def busy(world: World, n: int = 1, *, concurrency: int | None = None, **spec):
    """Create a worker with all slots taken by preemptible work; return it and the slices that it runs."""
    job = await world.job("low", preemptible=True, **{"priority": 0, **spec})
    for _ in range(n):
        await world.parcel(job)
    w = await world.worker(concurrency=n if concurrency is None else concurrency)
    return w, await w.claim(n)


async def urgent(world: World, n: int = 1, *, keys: EnvelopeKeys | None = None, **spec):
    job = await world.job("high", preempts=True, **{"priority": 9, **spec})
    return job, await world.parcel(job, n, keys=keys)


async def test_slices_have_the_flags_of_their_job(world: World):
    _, (low,) = await busy(world)
    _, high = await urgent(world)

    assert low.flags == PREEMPTIBLE
    assert [slice.flags for slice in await world.on("queued", high)] == [PREEMPTS]


async def test_preemptible_work_is_asked_to_stop_and_goes_back_unchanged(world: World):
    w, (low,) = await busy(world)
    before = low.rank, low.queued_at
    _, high = await urgent(world)

    done = await decide(world)
    assert (done.sessions, done.items) == ([w.session], 1)
    assert await asked(world) == [(low.parcel, 0, "preempt")]
    assert await w.holds() == [low]

    await w.report(released(low, started_at=[world.now()]))
    (back,) = await world.on("queued", low.parcel)
    assert (back.rank, back.queued_at) == before
    assert (back.attempt, back.failures, back.losses) == (1, 0, 0)
    assert await asked(world) == []
    assert await world.rows("SELECT outcome FROM attempts") == [("preempted",)]
    assert [slice.parcel for slice in await w.claim(1)] == [high]


async def test_the_freed_slot_goes_to_the_preempting_execution_even_if_the_preempted_one_waited_longer(world: World):
    w, (low,) = await busy(world)
    world.clock.advance(3600 * SECOND)
    job, high = await urgent(world)
    (waits,) = await world.on("queued", high)
    assert waits.rank > low.rank

    done = await decide(world)
    assert done.lanes == {job.lane: to_front(waits.rank)}
    reply = await w.report(released(low), free=1)
    assert [slice.parcel for slice in reply.granted] == [high]


async def test_only_as_many_executions_move_to_the_front_as_get_slots(world: World):
    await busy(world, 2)
    _, high = await urgent(world, 50)
    (before,) = await world.on("queued", high)

    await decide(world)
    front, rest = sorted(await world.on("queued", high), key=lambda one: one.rank)
    assert (front.lo, front.hi, front.rank) == (0, 2, to_front(before.rank))
    assert rest == structs.replace(before, lo=2)

    await decide(world)
    assert sorted(await world.on("queued", high), key=lambda one: one.rank) == [front, rest]


async def test_requested_slots_count_as_about_to_become_free(world: World):
    await busy(world, 4)
    await urgent(world, 2)

    assert (await decide(world)).items == 2
    assert (await decide(world)).items == 0
    assert len(await asked(world)) == 2


async def test_a_requested_slot_counts_only_for_a_limited_time(world: World):
    await busy(world, 2)
    await urgent(world)
    assert (await decide(world)).items == 1

    world.clock.advance(preempt.PATIENCE + 1)
    assert (await decide(world)).items == 1
    assert len(await asked(world)) == 2


async def test_a_free_slot_is_used_before_an_execution_is_preempted(world: World):
    await busy(world, 2, concurrency=3)
    await urgent(world)

    assert (await decide(world)).items == 0


async def test_the_lowest_priority_gives_way_first_then_the_least_lost_work(world: World):
    w, slices = await busy(world, 3)
    await w.exchange(started=[began(slice, world.now()) for slice in slices])
    world.clock.advance(100 * SECOND)
    kept = slices[1]
    step = Step(parcel=kept.parcel, item=0, attempt=kept.attempt, name="half")
    now = world.now()
    await world.store.write(lambda: steps.remember([(w.session, step)], now))
    world.clock.advance(SECOND)
    await urgent(world)

    await decide(world)
    assert [row[0] for row in await asked(world)] == [kept.parcel]


@pytest.mark.parametrize("spec", [{"priority": 9}, {"preemptible": False}])
async def test_equal_priority_or_not_preemptible_executions_go_on(world: World, spec):
    job = await world.job("low", **{"preemptible": True, **spec})
    await world.parcel(job)
    w = await world.worker(concurrency=1)
    await w.claim(1)
    await urgent(world)

    assert (await decide(world)).items == 0


async def test_only_preempting_jobs_and_queues_preempt(world: World):
    await busy(world)
    job = await world.job("high", priority=9)
    await world.parcel(job)

    assert (await decide(world)).items == 0
    assert (await decide(world, lanes={job.lane})).items == 1


async def test_paused_jobs_and_unplaceable_executions_do_not_preempt(world: World):
    await busy(world)
    job, _ = await urgent(world)

    assert (await decide(world, paused=frozenset({job.id}))).items == 0
    chosen = preempt.PreemptRules(may_take=lambda session: frozenset())
    now = world.now()
    done = await world.store.write(lambda: preempt.preempt(NAMESPACE, (), frozenset(), chosen, now))
    assert done.items == 0


async def test_executions_behind_an_open_circuit_do_not_preempt(world: World):
    await busy(world)
    job, _ = await urgent(world, circuit=Circuit(), keys=EnvelopeKeys(standing=PREEMPTS, circuit=""))
    await world.store.change(lambda now: circuits.force((job.id, ""), CircuitChange("open", "down"), "me", now))
    assert (await decide(world)).items == 0

    await world.store.change(lambda now: circuits.force((job.id, ""), None, "me", now))
    assert (await decide(world)).items == 1


async def test_a_rate_by_key_limits_preemption(world: World):
    await busy(world, 3)
    limits = (KeyLimit(key="c", rate=Rate(1, SECOND, 2)),)
    job = await world.job("high", preempts=True, priority=9, limits=limits)
    keys = EnvelopeKeys(standing=PREEMPTS, limits=(key_name(job.id, "c", "a"),), rated=True)
    await world.parcel(job, 3, keys=keys)

    assert (await decide(world)).items == 2
    await world.do("INSERT INTO rates (name, pace) VALUES ($1, $2)", keys.limits[0], world.now() + 10 * SECOND)
    await world.do("DELETE FROM requests")
    assert (await decide(world)).items == 0


async def test_a_full_queue_limit_prevents_preemption(world: World):
    await busy(world, 2)
    job, _ = await urgent(world, 2, queue="narrow")
    await world.store.write(lambda: coarse.put(Limit(concurrency=1), queue=job.queue))
    assert (await decide(world)).items == 1

    ((parcel,), _) = await world.rows("SELECT parcel FROM running")
    await world.do("UPDATE running SET queue = $1, flags = 0 WHERE parcel = $2", job.queue, parcel)
    await world.do("DELETE FROM requests")
    assert (await decide(world)).items == 0


async def test_preemption_makes_room_in_a_limited_queue(world: World):
    await busy(world, 1, queue="narrow")
    job, _ = await urgent(world, queue="narrow")
    await world.store.write(lambda: coarse.put(Limit(concurrency=1), queue=job.queue))

    assert (await decide(world)).items == 1


@pytest.mark.parametrize("end", [success, failed])
async def test_an_execution_that_ends_before_it_stops_has_ended(world: World, end):
    w, (low,) = await busy(world)
    await urgent(world)
    await decide(world)
    await w.report(end(low))

    assert await world.states(low.parcel) == [end.__name__]
    assert await asked(world) == []


async def test_requests_of_a_lost_worker_are_deleted(world: World):
    w, (low,) = await busy(world)
    await urgent(world)
    await decide(world)
    await w.lose()
    await world.store.rescue(w.session, 100)

    (back,) = await world.on("queued", low.parcel)
    assert (back.losses, await asked(world)) == (1, [])
    assert (await decide(world)).items == 0


async def test_two_servers_preempt_once_for_one_waiter(world: World):
    await busy(world, 6)
    await urgent(world, 2)

    done = await asyncio.gather(*(decide(world) for _ in range(3)))
    assert sum(one.items for one in done) == 2
    assert len(await asked(world)) == 2


async def test_costs_decide_the_number_of_preempted_executions(world: World):
    await busy(world, 4)
    job, _ = await urgent(world, queue="large")

    def cost(lane):
        return {"slots": 3} if lane == job.lane else {"slots": 1}

    assert (await decide(world, cost=cost)).items == 3
