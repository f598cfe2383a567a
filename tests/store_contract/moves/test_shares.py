"""Shares and queues in the store: lanes created once, claims by a plan, changed policies, and charges of servers."""

import asyncio
from uuid import UUID

import pytest
from msgspec import structs

from horae.features.statistics.store import statistics
from horae.model.admission.claim_plan import LaneState, QueuePreferences
from horae.model.admission.placement.preempt import is_in_front, to_front
from horae.model.admission.policy import FIFO, FairPolicy, Policy
from horae.model.admission.queue import QueueSpec
from horae.model.admission.rank import RankLeads
from horae.model.executions.submission import Submission
from horae.model.fleet.server import ServerProcess
from horae.store.admission import lanes, queues, share_lanes, shares
from horae.store.admission.lanes import revisions
from horae.store.fleet import expected_durations, sessions
from tests.store_contract.policy_life import HOUR, shared
from tests.store_contract.world import NAMESPACE, World, spans, success

FAIR = FairPolicy(by="job")


def views_of(lanes: dict[str, int], **prices: float) -> list[LaneState]:
    return [LaneState(lane=lane, share=share, price=prices.get(share, 1.0)) for share, lane in lanes.items()]


async def define(world: World, name: str, spec: QueueSpec, default: bool | None = None):
    return await world.store.change(lambda now: queues.define(NAMESPACE, name, lambda before: (spec, default), now))


async def rerank(world: World, lane: int, policy: Policy) -> set[int]:
    done = await world.store.change(
        lambda now: queues.rerank(lane, RankLeads(lambda queue: policy), queues.FIRST, 100, now)
    )
    return set(done.lanes)


async def test_concurrent_requests_for_a_share_get_one_lane(world: World):
    job = await world.job()

    made = await asyncio.gather(*(shared(world, job, "a", "b") for _ in range(3)))

    assert all(lanes == made[0] for lanes in made)
    assert len({job.lane, *made[0].values()}) == 3


async def test_a_claim_follows_the_plan_of_shares(world: World):
    job = await world.job()
    lanes = await shared(world, job, *["a"] * 5, *["b"] * 5, *["c"] * 5)
    w = await world.worker()

    taken = await w.claim(9, views=views_of(lanes, b=0.5))

    counts = {share: sum(s.hi - s.lo for s in taken if s.lane == lane) for share, lane in lanes.items()}
    assert counts == {"a": 5, "b": 4, "c": 0}  # one quantum at a time, and each share has less than that


async def test_a_claim_from_shares_believed_empty_ends(world: World):
    job = await world.job()
    lanes = await shared(world, job, "a", "b")
    w = await world.worker()

    assert await w.claim(9, views=[structs.replace(view, amount=0) for view in views_of(lanes)]) == []


async def test_a_parcel_is_cut_where_the_share_of_its_lane_ends(world: World):
    job = await world.job()
    big = await world.parcel(job, 100)
    lanes = await shared(world, job, "small")
    w = await world.worker()
    views = [LaneState(lane=job.lane, share="", price=1.0, virtual=1.0), *views_of(lanes)]

    first = await w.claim(17, views=views)

    assert spans(await world.on("queued", big)) == [(16, 100)]
    assert sum(s.hi - s.lo for s in first if s.parcel == big) == 16
    assert sum(s.hi - s.lo for s in first) == 17


async def test_a_small_parcel_is_not_cut_where_a_quantum_ends(world: World):
    """Its rest would be cut at the end of the next quantum, and so on."""
    job = await world.job()
    parcels = [await world.parcel(job, 6) for _ in range(4)]
    lanes = await shared(world, job, "other")
    w = await world.worker()
    views = [LaneState(lane=job.lane, share="", price=1.0, virtual=1.0), *views_of(lanes)]

    taken = await w.claim(30, views=views)

    assert [sum(s.hi - s.lo for s in taken if s.parcel == parcel) for parcel in parcels[:3]] == [6, 6, 6]
    assert sum(s.lane in lanes.values() for s in taken) == 1


async def test_a_claim_reports_slice_sizes_and_exhausted_shares(world: World):
    """One share begins late: the number that fills the turn is one more than its mean."""
    job = await world.job()
    for _ in range(3):
        await world.parcel(job, 8)
    lanes = await shared(world, job, *["other"] * 17)
    w = await world.worker()
    await w.claim(1, lanes=frozenset({job.lane}))
    views = [LaneState(lane=job.lane, share="", price=1.0, mean=8.0), *views_of(lanes)]
    parked = w.parked(39, frozenset({job.lane, *lanes.values()}))

    done = await world.store.claim_for_parked([parked], views, frozenset())

    assert sum(s.hi - s.lo for s in done.running if s.lane == job.lane) == 23
    assert done.lanes[job.lane] is None
    assert done.means[job.lane] == pytest.approx(23 / 3)


async def test_a_worker_with_ordered_queues_takes_from_the_second_when_the_first_is_empty(world: World):
    one, two = await world.job("one", queue="one"), await world.job("two", queue="two")
    await world.parcel(one, 2)
    await world.parcel(two, 9)
    w = await world.worker()
    views = [LaneState(lane=job.lane, queue=job.queue) for job in (two, one)]
    parked = w.parked(5, frozenset({one.lane, two.lane}))
    taste = QueuePreferences({one.queue: 1.0, two.queue: 1.0}, strict=True)

    done = await world.store.claim_for_parked(
        [type(parked)(want=parked.want, lanes=parked.lanes, preferences=taste)], views, frozenset()
    )

    assert [(s.queue, s.hi - s.lo) for s in done.running] == [(one.queue, 2), (two.queue, 3)]


async def test_every_lane_is_read_with_its_queue_while_queues_are_created(world: World):
    script, found, made = lanes.directory(), None, 0
    op = next(script)
    while found is None:

        def alone(op=op):
            return (yield op)

        rows = await world.driver.read(alone)
        made += 1
        await world.job(f"made-{made}", queue=f"made-{made}")
        try:
            op = script.send(rows)
        except StopIteration as end:
            found = end.value
    assert {lane.queue for lane in found.lanes} <= {queue.id for queue in found.queues}


async def test_a_queue_is_defined_and_one_is_the_default(world: World):
    before = await world.store.read(revisions)
    first = await define(world, "first-default", QueueSpec(policy=FAIR), True)
    second = await define(world, "second-default", QueueSpec(), True)

    found = {queue.name: queue for queue in (await world.store.directory()).queues}
    assert (first.policy, second.is_default, found["first-default"].is_default) == (FAIR, True, False)
    assert first.ranked == first.revision
    assert await world.store.read(revisions) != before


async def test_a_changed_policy_needs_a_reranking_until_it_is_recorded(world: World):
    await define(world, "mail", QueueSpec())
    changed = await define(world, "mail", QueueSpec(policy=FIFO))
    await world.store.write(lambda: queues.set_state(changed.id, "draining"))
    (queue,) = [q for q in (await world.store.directory()).queues if q.name == "mail"]

    assert queue.ranked < queue.revision
    await world.store.write(lambda: queues.set_ranked(queue.id, queue.revision))
    (queue,) = [q for q in (await world.store.directory()).queues if q.name == "mail"]
    assert queue.ranked == queue.revision


async def test_queued_executions_are_reranked_by_the_present_policy(world: World):
    job = await world.job()
    urgent = await world.parcel(job, 3, priority=9)
    world.clock.advance(1)
    usual = await world.parcel(job, 2)

    await rerank(world, job.lane, FIFO)

    queued = sorted(await world.on("queued"), key=lambda s: s.rank)
    assert [s.parcel for s in queued] == [urgent, usual]
    assert queued[1].rank - queued[0].rank == 1


async def test_preempting_executions_stay_in_front_after_a_reranking(world: World):
    job = await world.job()
    first, urgent = await world.parcel(job), await world.parcel(job)
    (slice,) = await world.on("queued", urgent)
    await world.do("UPDATE queued SET rank = $1 WHERE parcel = $2", to_front(slice.rank), urgent)

    await rerank(world, job.lane, FIFO)

    ranks = {slice.parcel: slice.rank for slice in await world.on("queued")}
    assert is_in_front(ranks[urgent])
    assert not is_in_front(ranks[first])


async def test_slices_are_split_and_moved_to_the_lanes_of_their_shares_and_back(world: World):
    job = await world.job()
    parcel = await world.parcel(job, 6)  # with params i = 0..5
    policy = FairPolicy(by="${params.i < 2 ? 'low' : 'high'}")

    lanes = await rerank(world, job.lane, policy)

    assert job.lane not in lanes
    assert spans(await world.on("queued", parcel)) == [(0, 2), (2, 6)]
    back = set()
    for lane in lanes:
        back |= await rerank(world, lane, FIFO)
    assert back == {job.lane}
    assert await world.states(parcel) == ["queued"] * 6


async def test_a_reranking_reads_a_bounded_number_of_items(world: World, monkeypatch):
    monkeypatch.setattr(queues, "MAX_ITEMS", 5)
    job = await world.job()
    parcels = [await world.parcel(job, 4) for _ in range(3)]
    leads = RankLeads(lambda queue: FairPolicy(by="${params.i < 2 ? 'low' : 'high'}"))
    at, batches = queues.FIRST, 0

    while at is not None:
        place = at
        done = await world.store.change(lambda now: queues.rerank(job.lane, leads, place, 100, now))  # noqa: B023
        at, batches = done.next, batches + 1

    assert batches == 3
    assert [spans(await world.on("queued", parcel)) for parcel in parcels] == [[(0, 2), (2, 4)]] * 3
    assert all(slice.lane != job.lane for slice in await world.on("queued"))


async def test_a_purge_ends_queued_and_waiting_executions(world: World):
    job = await world.job()
    queued, delayed = await world.parcel(job, 3), await world.parcel(job, 2, due_at=world.now() + HOUR)

    new_id = world.env.new_id
    one = await world.store.change(lambda now: queues.purge_lane(job.lane, new_id, 10, "purged", now))
    two = await world.store.change(
        lambda now: queues.purge_waiting(job.queue, new_id, (UUID(int=0), -1), 10, "purged", now)
    )

    assert (one.jobs, two.jobs) == ({job.id: 3}, {job.id: 2})
    assert await world.states(queued) == ["cancelled"] * 3
    assert await world.states(delayed) == ["cancelled"] * 2


async def test_a_server_reads_the_charges_of_others_but_not_its_own(world: World):
    me, other = world.env.new_id(), world.env.new_id()
    now = world.now()
    await world.store.write(lambda: shares.exchange_charges(other, [(1, "a", 7)], 0, now))

    heard = await world.store.write(lambda: shares.exchange_charges(me, [(1, "a", 3)], 0, now))

    assert [tuple(row[:4]) for row in heard] == [(1, "a", other, 7)]


async def test_charges_are_kept_as_long_as_their_server_runs(world: World):
    running, gone, now = world.env.new_id(), world.env.new_id(), world.now()
    server = ServerProcess(id=running, url="", host="a", pid=1, version="1", roles=("api",))
    await world.store.write(lambda: sessions.record_server(server, now))
    for one in (running, gone):
        await world.store.write(lambda: shares.exchange_charges(one, [(1, "a", 4)], 0, now))  # noqa: B023
    await world.store.write(lambda: shares.forget_charges(now))
    assert len(await world.rows("SELECT 1 FROM share_charges")) == 2
    await world.store.write(lambda: shares.forget_charges(now + 1))
    assert await world.rows("SELECT server FROM share_charges") == [(running,)]


async def test_running_executions_and_slots_of_a_queue_are_counted(world: World):
    job = await world.job()
    await world.parcel(job, 5)
    w = await world.worker(concurrency=8)
    await w.claim(3)

    found = await world.store.read(lambda: shares.queue_use({job.queue: (NAMESPACE, "default")}))

    assert (found.running, found.slots) == ({job.lane: 3}, {job.queue: 8})


async def test_durations_of_jobs_are_learned_from_statistics(world: World):
    job = await world.job()
    counts = statistics.OutcomeCounts(success=4, busy=800)
    minute = world.now() // 60_000_000
    await world.store.write(lambda: statistics.add(world.env.new_id(), {(job.id, minute): counts}))

    assert await world.store.read(lambda: expected_durations.expected_since(minute - 1)) == {job.id: 200}
    assert await world.store.change(lambda now: expected_durations.expected_of([job.id], now)) == {job.id: 200}


@pytest.mark.parametrize("held", [False, True])
async def test_a_claim_takes_nothing_from_a_paused_queue(world: World, held: bool):
    from horae.model.admission.hold import Hold
    from horae.store.admission import holds

    job = await world.job()
    lanes = await shared(world, job, "a", "b")
    pause = Hold(id=world.env.new_id(), namespace=NAMESPACE, queue=job.queue, until_at=None, created_at=world.now())
    await world.store.write(lambda: holds.open_hold(pause))
    if not held:
        assert len(await world.store.write(lambda: holds.resume(NAMESPACE, job.queue, "me", world.now()))) == 1
    w = await world.worker()

    taken = await w.claim(2, views=views_of(lanes))

    assert len(taken) == (0 if held else 2)
    if not held:
        await w.report(*(success(slice) for slice in taken))


async def test_releasing_a_timed_hold_leaves_a_pause(world: World):
    from horae.model.admission.hold import Hold
    from horae.store.admission import holds

    job, now = await world.job(), world.now()
    for end in (None, now + HOUR):
        hold = Hold(id=world.env.new_id(), namespace=NAMESPACE, queue=job.queue, until_at=end, created_at=now)
        await world.store.write(lambda hold=hold: holds.open_hold(hold))

    released = await world.store.write(lambda: holds.release(NAMESPACE, job.queue, None, "me", now))

    assert [hold.until_at for hold in released] == [now + HOUR]
    assert [hold.is_pause for hold in await world.store.read(holds.all_open)] == [True]


async def test_lanes_that_exist_are_found_without_a_write(world: World):
    job = await world.job()
    await shared(world, job, "a")

    found = await world.store.read(lambda: share_lanes.lanes_of({(job.lane, "a")}, world.now()))

    assert list(found) == [(job.lane, "a")]


async def test_unused_lanes_are_deleted_and_slices_put_there_later_are_found(world: World):
    job = await world.job()
    lanes = await shared(world, job, "gone", "kept")
    w = await world.worker()
    taken = await w.claim(1, views=[LaneState(lane=lanes["gone"], share="gone")])
    await w.report(*(success(slice) for slice in taken))

    assert await world.store.write(lambda: queues.forget_lanes(world.now() + HOUR)) == 1
    assert {lane.share for lane in (await world.store.directory()).lanes} == {"", "kept"}
    late = structs.replace(world.wanted(job)[0].envelope, lane=lanes["gone"])  # a server that still has the lane cached
    await world.store.submit([Submission(executions=[structs.replace(world.wanted(job)[0], envelope=late)])])
    done = await world.store.change(
        lambda now: queues.rerank(lanes["gone"], RankLeads(lambda queue: FIFO), queues.FIRST, 100, now, astray=True)
    )

    assert set(done.lanes) == {job.lane}
